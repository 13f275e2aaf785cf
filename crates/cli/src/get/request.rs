//! The request: method, headers and body, and the requests that follow it.
use super::target::{Scheme, Target};
use crate::failure::Failure;
use crate::input;
use bytes::Bytes;
use firstbyte::FastOpen;
use http_body_util::Full;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, COOKIE, HOST,
    HeaderMap, HeaderName, HeaderValue, IF_RANGE, PROXY_AUTHORIZATION, RANGE, USER_AGENT,
};
use hyper::{Method, Request, StatusCode, Version};
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// The request, and the way to connect.
#[derive(Clone, Debug)]
pub(crate) struct How {
    pub(crate) target: Target,
    pub(crate) method: Method,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
    /// The part of the file that is missing, if a download continues.
    pub(crate) rest: Option<Rest>,
    /// True if redirects are followed.
    pub(crate) follows: bool,
    pub(crate) early: Early,
    pub(crate) data_less: bool,
    pub(crate) syn_fin: bool,
    pub(crate) limits: Limits,
}

/// The rule for requests on a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Early {
    Never,
    /// Only a request that may be repeated.
    Repeatable,
    Always,
}

/// Time limits of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Limit of the time without progress.
    pub(crate) pause: Duration,
    /// Limit of the whole request.
    pub(crate) total: Option<Duration>,
}

/// The rest of a file that was received in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    pub(crate) from: u64,
    /// The strong ETag or the date of the version that the part belongs to.
    pub(crate) validator: HeaderValue,
}

impl How {
    /// True if the request may be executed twice: its method is safe (RFC 9110 §9.2.1), and it has
    /// no body.
    pub(crate) fn is_repeatable(&self) -> bool {
        [Method::GET, Method::HEAD, Method::OPTIONS].contains(&self.method) && self.body.is_empty()
    }

    /// Returns the use of Fast Open for this request. With TLS, only the ClientHello is on the SYN
    /// of a request that is not repeatable.
    pub(crate) fn fast_open(&self) -> FastOpen {
        match self.early {
            Early::Repeatable if self.is_secure() => FastOpen::Auto,
            Early::Always => FastOpen::Auto,
            Early::Repeatable if self.is_repeatable() => FastOpen::Auto,
            _ => FastOpen::Off,
        }
    }

    pub(crate) fn is_secure(&self) -> bool {
        self.target.scheme == Scheme::Https
    }

    /// True if the request waits for the handshake, although Fast Open is on.
    pub(crate) fn is_late(&self) -> bool {
        self.early == Early::Repeatable && !self.is_repeatable()
    }

    /// Returns the same request after a handshake.
    pub(crate) fn late(&self) -> How {
        How { early: Early::Never, syn_fin: false, data_less: false, ..self.clone() }
    }

    /// Returns the request that follows a redirect to `target` (RFC 9110 §15.4). Another origin
    /// gets no credentials and no `Host` of this one.
    pub(crate) fn redirected(&self, status: StatusCode, target: Target) -> How {
        let mut next = How { rest: None, ..self.clone() };
        let becomes_get = match status {
            StatusCode::SEE_OTHER => self.method != Method::HEAD,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            next.method = Method::GET;
            next.body = Bytes::new();
            next.headers.retain(|(name, _)| !describes_body(name));
        }
        if !self.target.has_origin_of(&target) {
            next.headers.retain(|(name, _)| !is_of_one_origin(name));
        }
        next.target = target;
        next
    }

    /// Builds the request. HTTP/2 has the authority in the target, and no fields of connections
    /// (RFC 9113 §8.2.2, §8.3.1).
    pub(crate) fn request(&self, version: Version) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        let mut headers = self.headers();
        if version == Version::HTTP_2 {
            let host = headers.remove(HOST);
            headers.remove(CONNECTION);
            let authority = host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or_default();
            let uri = format!("{}://{authority}{}", self.target.scheme.name(), self.target.path);
            *request.uri_mut() = uri.parse().unwrap_or_else(|_| self.target.path.clone());
        } else {
            *request.uri_mut() = self.target.path.clone();
        }
        *request.headers_mut() = headers;
        request
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, self.target.authority.clone());
        headers
            .insert(USER_AGENT, HeaderValue::from_static(concat!("firstbyte/", env!("CARGO_PKG_VERSION"))));
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        if !self.is_secure() {
            // Over TLS a server that closes first sends no ticket for the next visit.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if !self.body.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        }
        if let Some(Rest { from, validator }) = &self.rest
            && let Ok(range) = HeaderValue::try_from(format!("bytes={from}-"))
        {
            headers.insert(RANGE, range);
            headers.insert(IF_RANGE, validator.clone());
        }
        for (name, _) in &self.headers {
            headers.remove(name);
        }
        for (name, value) in &self.headers {
            headers.append(name, value.clone());
        }
        headers
    }
}

fn describes_body(name: &HeaderName) -> bool {
    [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE].contains(name)
}

/// True for headers that are meant for one origin only.
fn is_of_one_origin(name: &HeaderName) -> bool {
    [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, HOST].contains(name)
}

/// Parses a header, `Name: value`.
pub(crate) fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("expected `Name: value`")?;
    let name = name.trim().parse().map_err(|_| format!("`{}` is not a header name", name.trim()))?;
    let value = value.trim().parse().map_err(|_| format!("`{}` is not a header value", value.trim()))?;
    Ok((name, value))
}

/// Returns the request body: the text itself, or the file after an `@`; `@-` is stdin.
pub(crate) fn data(text: &str) -> Result<Bytes, Failure> {
    match text.strip_prefix('@') {
        None => Ok(text.to_owned().into()),
        Some("-") => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().take(input::RECORDED_MAX).read_to_end(&mut bytes);
            read.map_err(|error| Failure::failed(format!("cannot read the body from stdin: {error}")))?;
            Ok(bytes.into())
        }
        Some(path) => input::bytes(Path::new(path), input::RECORDED_MAX).map(Bytes::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(method: Method, headers: &[&str], body: &'static str) -> How {
        How {
            target: "http://a/".parse().unwrap(),
            method,
            headers: headers.iter().map(|text| header(text).unwrap()).collect(),
            body: body.into(),
            rest: None,
            follows: true,
            early: Early::Repeatable,
            data_less: false,
            syn_fin: false,
            limits: Limits { pause: Duration::from_secs(1), total: None },
        }
    }

    fn names(how: &How) -> Vec<&str> {
        how.headers.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn every_header_given_is_sent_and_replaces_the_default() {
        let request = how(Method::GET, &["Cookie: a=1", "Accept: text/html", "Cookie: b=2"], "")
            .request(Version::HTTP_11);
        let sent = |name: &str| request.headers().get_all(name).iter().collect::<Vec<_>>();
        assert_eq!(sent("cookie"), ["a=1", "b=2"]);
        assert_eq!(sent("accept"), ["text/html"]);
        assert_eq!(sent("host"), ["a"]);
        assert!(sent("content-type").is_empty());
        let request = how(Method::POST, &[], "x").request(Version::HTTP_11);
        assert_eq!(request.headers()["content-type"], "application/x-www-form-urlencoded");
    }

    #[test]
    fn http_2_has_the_authority_in_its_target() {
        let request = how(Method::GET, &["Host: b"], "").request(Version::HTTP_2);
        assert_eq!(request.uri(), "http://b/");
        assert!(!request.headers().contains_key(HOST) && !request.headers().contains_key(CONNECTION));
    }

    #[test]
    fn headers_have_a_colon() {
        assert!(header("Accept: text/html").is_ok());
        assert!(header("Accept").is_err() && header("A b: c").is_err());
    }

    #[test]
    fn only_a_repeatable_request_is_on_a_syn_unless_asked_for() {
        let uses = |method, body| how(method, &[], body).fast_open();
        for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
            assert_eq!(uses(method.clone(), ""), FastOpen::Auto, "{method}");
            assert_eq!(uses(method.clone(), "x"), FastOpen::Off, "{method}");
        }
        for method in [Method::PUT, Method::DELETE, Method::POST, Method::PATCH] {
            assert_eq!(uses(method.clone(), ""), FastOpen::Off, "{method}");
            let forced = How { early: Early::Always, ..how(method, &[], "") };
            assert_eq!(forced.fast_open(), FastOpen::Auto);
        }
    }

    #[test]
    fn a_redirect_changes_the_method_as_browsers_do() {
        let after = |status: u16, method: Method| {
            let how = how(method, &["Content-Type: text/plain"], "x");
            let next = how.redirected(StatusCode::from_u16(status).unwrap(), "http://a/b".parse().unwrap());
            (next.method.to_string(), next.body.len(), next.headers.len())
        };
        for status in [301, 302, 303] {
            assert_eq!(after(status, Method::POST), ("GET".to_owned(), 0, 0), "{status}");
        }
        for status in [307, 308] {
            assert_eq!(after(status, Method::POST), ("POST".to_owned(), 1, 1), "{status}");
        }
        assert_eq!(after(301, Method::PUT), ("PUT".to_owned(), 1, 1));
        assert_eq!(after(303, Method::HEAD).0, "HEAD");
    }

    #[test]
    fn another_origin_gets_no_credentials() {
        let given = ["Authorization: x", "Cookie: a", "Host: h", "X-Trace: 1"];
        let next =
            |url: &str| how(Method::GET, &given, "").redirected(StatusCode::FOUND, url.parse().unwrap());
        assert_eq!(names(&next("http://a/b")).len(), 4);
        for url in ["http://b/", "http://a:81/"] {
            assert_eq!(names(&next(url)), ["x-trace"], "{url}");
        }
    }
}
