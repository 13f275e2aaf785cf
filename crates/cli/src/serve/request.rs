//! A request and its reply, as the logs describe them.
use super::body::Body;
use hyper::Version;
use hyper::body::Body as _;
use hyper::header::{HeaderName, HeaderValue, REFERER, USER_AGENT};
use std::time::SystemTime;

/// A request and its reply.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) version: Version,
    pub(crate) status: u16,
    /// Bytes of the reply's body.
    pub(crate) bytes: u64,
    /// True if it arrived before the handshake was complete: on the SYN, or as early data of TLS.
    pub(crate) early: bool,
    pub(crate) tls: bool,
    pub(crate) referer: Option<String>,
    pub(crate) user_agent: Option<String>,
    pub(crate) begun: SystemTime,
}

impl Request {
    /// Notes a request, whose reply is not known yet.
    pub(crate) fn of<B>(request: &hyper::Request<B>, early: bool, tls: bool) -> Request {
        let field = |name: HeaderName| {
            let value = request.headers().get(name).map(HeaderValue::as_bytes)?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        Request {
            method: request.method().to_string(),
            path: request.uri().path().to_owned(),
            query: request.uri().query().map(str::to_owned),
            version: request.version(),
            status: 0,
            bytes: 0,
            early,
            tls,
            referer: field(REFERER),
            user_agent: field(USER_AGENT),
            begun: SystemTime::now(),
        }
    }

    /// Notes its reply.
    pub(crate) fn answered(mut self, reply: &hyper::Response<Body>) -> Request {
        self.status = reply.status().as_u16();
        self.bytes = match self.method.as_str() {
            "HEAD" => 0,
            _ => reply.body().size_hint().exact().unwrap_or(0),
        };
        self
    }
}
