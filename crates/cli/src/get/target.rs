//! URLs, headers, bodies, and the address of a peer.
use crate::failure::Failure;
use crate::input;
use crate::values::Resolved;
use bytes::Bytes;
use hyper::Uri;
use hyper::header::{HeaderName, HeaderValue};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::str::FromStr;

/// An `http` URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) url: String,
    /// Host name or address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Target of the request line.
    pub(crate) path: Uri,
    /// Value of the `Host` header.
    pub(crate) authority: HeaderValue,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(format!("expected a URL with its scheme, such as http://{text}"));
        };
        if scheme.eq_ignore_ascii_case("https") {
            return Err("only http is supported: there is no TLS here".to_owned());
        }
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(format!("only http is supported, not {scheme}"));
        }
        if rest.is_empty() || rest.starts_with('/') {
            return Err("the host is missing; write http://HOST[:PORT]/PATH".to_owned());
        }
        let uri: Uri = text.parse().map_err(|error| format!("{error}; write http://HOST[:PORT]/PATH"))?;
        let authority = uri.authority().ok_or("the host is missing")?;
        if authority.as_str().contains('@') {
            return Err("a user name in a URL is not supported; use --header 'Authorization: …'".to_owned());
        }
        let port = match authority.as_str().strip_prefix(authority.host()).unwrap_or_default() {
            "" | ":" => 80,
            given => {
                let port = given[1..].parse().ok().filter(|port| *port > 0);
                port.ok_or("expected a port from 1 to 65535")?
            }
        };
        // A query may directly follow the host; the request line then needs the empty path (RFC
        // 9112 §3.2.1).
        let path = match uri.path_and_query().map_or("/", |path| path.as_str()) {
            query if query.starts_with('?') => format!("/{query}"),
            path => path.to_owned(),
        };
        Ok(Target {
            url: text.to_owned(),
            host: uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned(),
            port,
            path: path.parse().map_err(|error| format!("{error}"))?,
            authority: HeaderValue::from_str(authority.as_str().trim_end_matches(':'))
                .map_err(|error| format!("{error}"))?,
        })
    }
}

impl Target {
    /// Returns the peer's address: a literal, one from --resolve, or the first from the system's
    /// resolver.
    pub(crate) async fn resolve(&self, by_hand: &[Resolved]) -> Result<SocketAddr, Failure> {
        if let Ok(addr) = self.host.parse::<IpAddr>() {
            return Ok(SocketAddr::new(addr, self.port));
        }
        let named = by_hand.iter().find(|by_hand| {
            by_hand.name.eq_ignore_ascii_case(&self.host) && by_hand.addr.port() == self.port
        });
        if let Some(named) = named {
            return Ok(named.addr);
        }
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await;
        let found: Vec<SocketAddr> = found
            .map_err(|error| {
                Failure::failed(format!(
                    "cannot resolve {}: {error}; give its address with --resolve {}:{}:ADDRESS",
                    self.host, self.host, self.port
                ))
            })?
            .collect();
        // The stack has an IPv4 address by default.
        let first = found.iter().find(|addr| addr.is_ipv4()).or(found.first());
        first
            .copied()
            .ok_or_else(|| Failure::failed(format!("cannot resolve {}: it has no address", self.host)))
    }
}

/// Parses a header, `Name: value`.
pub(crate) fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("expected `Name: value`")?;
    let name = name.trim().parse().map_err(|_| format!("`{}` is not a header name", name.trim()))?;
    let value = value.trim().parse().map_err(|_| format!("`{}` is not a header value", value.trim()))?;
    Ok((name, value))
}

/// Returns the request body: the text itself, or the file after an `@`.
pub(crate) fn data(text: &str) -> Result<Bytes, Failure> {
    match text.strip_prefix('@') {
        None => Ok(text.to_owned().into()),
        Some(path) => input::bytes(Path::new(path), input::RECORDED_MAX).map(Bytes::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let target: Target = "http://10.78.0.1/a%20b?c=d#e".parse().unwrap();
        assert_eq!(
            (target.host.as_str(), target.port, target.path.to_string().as_str()),
            ("10.78.0.1", 80, "/a%20b?c=d")
        );
        let target: Target = "HTTP://[fd78::1]:8080".parse().unwrap();
        assert_eq!(
            (target.host.as_str(), target.port, target.path.to_string().as_str()),
            ("fd78::1", 8080, "/")
        );
        assert_eq!(target.authority, "[fd78::1]:8080");
        let target: Target = "http://10.78.0.1?x=1".parse().unwrap();
        assert_eq!((target.host.as_str(), target.path.to_string().as_str()), ("10.78.0.1", "/?x=1"));
    }

    #[test]
    fn wrong_urls_are_refused_with_a_right_one() {
        let cases = [
            ("10.78.0.1/x", "http://10.78.0.1/x"),
            ("https://a/", "TLS"),
            ("ftp://a/", "only http is supported, not ftp"),
            ("http://", "host is missing"),
            ("http:///x", "host is missing"),
            ("http://a:99999/", "from 1 to 65535"),
            ("http://a:0/", "from 1 to 65535"),
            ("http://me@a/", "Authorization"),
            ("http://a b/", "http://HOST[:PORT]/PATH"),
        ];
        for (url, part) in cases {
            let error = url.parse::<Target>().expect_err(url);
            assert!(error.contains(part), "{url}: {error}");
        }
    }

    #[tokio::test]
    async fn names_given_by_hand_come_first() {
        let target: Target = "http://example.test:81/".parse().unwrap();
        let by_hand =
            ["example.test:80:10.0.0.1", "Example.test:81:10.0.0.2"].map(|text| text.parse().unwrap());
        assert_eq!(target.resolve(&by_hand).await, Ok("10.0.0.2:81".parse().unwrap()));
    }

    #[test]
    fn headers_have_a_colon() {
        assert!(header("Accept: text/html").is_ok());
        assert!(header("Accept").is_err() && header("A b: c").is_err());
    }
}
