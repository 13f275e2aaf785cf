//! URLs and the addresses of their servers.
use crate::failure::Failure;
use crate::values::Resolved;
use firstbyte::Backend;
use hyper::Uri;
use hyper::header::HeaderValue;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// An `http` or `https` URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) scheme: Scheme,
    /// Host name or address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Target of the request line.
    pub(crate) path: Uri,
    /// Value of the `Host` header.
    pub(crate) authority: HeaderValue,
}

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    /// The scheme's text before `://`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(format!("expected a URL with its scheme, such as http://{text}"));
        };
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other => return Err(format!("only http and https are supported, not {other}")),
        };
        if rest.is_empty() || rest.starts_with('/') {
            return Err("the host is missing; write http://HOST[:PORT]/PATH".to_owned());
        }
        let text = text.split_once('#').map_or(text, |(url, _)| url);
        let uri: Uri = text.parse().map_err(|error| format!("{error}; write http://HOST[:PORT]/PATH"))?;
        let authority = uri.authority().ok_or("the host is missing")?;
        if authority.as_str().contains('@') {
            return Err("a user name in a URL is not supported; use --header 'Authorization: …'".to_owned());
        }
        let port = match authority.as_str().strip_prefix(authority.host()).unwrap_or_default() {
            "" | ":" => scheme.port(),
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
            scheme,
            host: uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned(),
            port,
            path: path.parse().map_err(|error| format!("{error}"))?,
            authority: HeaderValue::from_str(authority.as_str().trim_end_matches(':'))
                .map_err(|error| format!("{error}"))?,
        })
    }
}

impl Target {
    /// Returns the server's addresses: a literal, one from --resolve, or those of the system's
    /// resolver.
    pub(crate) async fn resolve(
        &self,
        by_hand: &[Resolved],
        backend: Option<Backend>,
    ) -> Result<Vec<SocketAddr>, Failure> {
        if let Some(addr) = self.literal() {
            return Ok(vec![SocketAddr::new(addr, self.port)]);
        }
        let named = by_hand.iter().filter(|by_hand| {
            by_hand.name.eq_ignore_ascii_case(&self.host) && by_hand.addr.port() == self.port
        });
        let named: Vec<SocketAddr> = named.map(|named| named.addr).collect();
        if !named.is_empty() {
            return Ok(named);
        }
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await;
        let mut found: Vec<SocketAddr> = found
            .map_err(|error| {
                Failure::failed(format!(
                    "cannot resolve {}: {error}; give its address with --resolve {}:{}:ADDRESS",
                    self.host, self.host, self.port
                ))
            })?
            .collect();
        if found.is_empty() {
            return Err(Failure::failed(format!("cannot resolve {}: it has no address", self.host)));
        }
        if backend == Some(Backend::Stack) {
            // The stack has an IPv4 address by default.
            found.sort_by_key(SocketAddr::is_ipv6);
        }
        Ok(found)
    }

    /// The address in the URL, if it has no name.
    pub(crate) fn literal(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// True if both have the same scheme, host and port (RFC 6454 §5).
    pub(crate) fn has_origin_of(&self, other: &Target) -> bool {
        let origin = |target: &Target| (target.scheme, target.host.to_ascii_lowercase(), target.port);
        origin(self) == origin(other)
    }

    /// Resolves a reference, such as a `Location`, against this URL (RFC 3986 §5.2).
    pub(crate) fn join(&self, reference: &str) -> Result<Target, String> {
        let reference = reference.split_once('#').map_or(reference, |(url, _)| url);
        let origin = format!("{}://{}", self.scheme.name(), self.authority.to_str().unwrap_or(&self.host));
        let (path, query) = match reference.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (reference, None),
        };
        if has_scheme(path) {
            let target: Target = reference.parse()?;
            return match (self.scheme, target.scheme) {
                (Scheme::Https, Scheme::Http) => Err("it leads from https to http".to_owned()),
                _ => Ok(target),
            };
        }
        if path.starts_with("//") {
            return format!("{}:{reference}", self.scheme.name()).parse();
        }
        let (own_path, own_query) = (self.path.path(), self.path.query());
        let (path, query) = match path {
            "" => (own_path.to_owned(), query.or(own_query)),
            path if path.starts_with('/') => (without_dots(path), query),
            path => {
                let folder = &own_path[..=own_path.rfind('/').unwrap_or(0)];
                (without_dots(&format!("{folder}{path}")), query)
            }
        };
        let query = query.map_or(String::new(), |query| format!("?{query}"));
        format!("{origin}{path}{query}").parse()
    }
}

/// True if a reference begins with a scheme (RFC 3986 §3.1).
fn has_scheme(path: &str) -> bool {
    path.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|each| each.is_ascii_alphanumeric() || "+-.".contains(each))
    })
}

/// Removes the segments `.` and `..` of an absolute path (RFC 3986 §5.2.4).
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." => {}
            ".." => _ = kept.pop(),
            segment => {
                kept.push(segment);
                continue;
            }
        }
        if is_last {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
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
        let target: Target = "https://a/b".parse().unwrap();
        assert_eq!((target.scheme, target.port, target.host.as_str()), (Scheme::Https, 443, "a"));
        let target: Target = "http://10.78.0.1?x=1".parse().unwrap();
        assert_eq!((target.host.as_str(), target.path.to_string().as_str()), ("10.78.0.1", "/?x=1"));
    }

    #[test]
    fn wrong_urls_are_refused_with_a_right_one() {
        let cases = [
            ("10.78.0.1/x", "http://10.78.0.1/x"),
            ("ftp://a/", "only http and https are supported, not ftp"),
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

    /// The examples of RFC 3986 §5.4 that are http URLs.
    #[test]
    fn references_are_resolved_as_in_the_examples_of_the_rfc() {
        let base: Target = "http://a/b/c/d?q".parse().unwrap();
        let cases = [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d?q"),
            ("g?y#s", "http://a/b/c/g?y"),
            ("", "http://a/b/c/d?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g..", "http://a/b/c/g.."),
            ("./../g", "http://a/b/g"),
            ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("http://e:81/f", "http://e:81/f"),
        ];
        for (reference, url) in cases {
            assert_eq!(base.join(reference).map(|target| target.url), Ok(url.to_owned()), "{reference}");
        }
        let secure: Target = "https://a/b".parse().unwrap();
        assert_eq!(secure.join("//g/x").map(|target| target.url), Ok("https://g/x".to_owned()));
        assert_eq!(secure.join("http://a/c"), Err("it leads from https to http".to_owned()));
        for reference in ["mailto:a@b", "ftp://a/", "http://"] {
            assert!(base.join(reference).is_err(), "{reference}");
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let origin = |url: &str| url.parse::<Target>().unwrap();
        assert!(origin("http://A/x").has_origin_of(&origin("http://a:80/y")));
        assert!(!origin("http://a/").has_origin_of(&origin("http://a:81/")));
        assert!(!origin("http://a/").has_origin_of(&origin("http://b/")));
        assert!(!origin("https://a:80/").has_origin_of(&origin("http://a/")));
    }

    #[tokio::test]
    async fn names_given_by_hand_come_first() {
        let target: Target = "http://example.test:81/".parse().unwrap();
        let by_hand =
            ["example.test:80:10.0.0.1", "Example.test:81:10.0.0.2"].map(|text| text.parse().unwrap());
        assert_eq!(target.resolve(&by_hand, None).await, Ok(vec!["10.0.0.2:81".parse().unwrap()]));
    }
}
