//! Chooses the reply to a request.
use super::body::Body;
use super::files::{Extras, Root};
use super::page::text;
use crate::failure::Failure;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, HOST, HeaderMap, HeaderValue, SERVER, TRANSFER_ENCODING,
};
use hyper::http::uri::Authority;
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The site to serve.
#[derive(Clone)]
pub(crate) struct Site {
    root: Option<Arc<Root>>,
    allow_early_unsafe: bool,
    bodies: Bodies,
}

/// The time at which a request arrived. Before the end of the handshake it may be a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// At least its first bytes were on a SYN whose handshake is not complete.
    Syn,
    /// In early data of TLS, whose handshake is not complete.
    EarlyData,
    /// After the handshake.
    Late,
    /// After the handshake of TLS.
    Secure,
}

/// Time limits for the body of a request.
#[derive(Clone, Copy)]
pub(crate) struct Bodies {
    /// Limit of the wait for the next bytes.
    pub(crate) pause: Duration,
    /// Limit of the wait for the last byte.
    pub(crate) total: Duration,
}

impl Site {
    /// Opens a folder; without one, replies are a greeting.
    pub(crate) fn open(
        root: Option<&Path>,
        extras: Extras,
        allow_early_unsafe: bool,
        bodies: Bodies,
    ) -> Result<Site, Failure> {
        let root = root.map(|path| Root::open(path, bodies.pause, extras)).transpose()?.map(Arc::new);
        Ok(Site { root, allow_early_unsafe, bodies })
    }

    /// Answers a request.
    pub(crate) async fn answer(&self, request: Request<Incoming>, arrival: Arrival) -> Response<Body> {
        let may_be_replay = matches!(arrival, Arrival::Syn | Arrival::EarlyData)
            || request.headers().get(EARLY_DATA).is_some_and(|value| value == "1");
        let allowed = if self.root.is_some() { FILE_METHODS } else { GREETING_METHODS };
        let mut reply = match (request.method(), &self.root) {
            _ if !names_host(&request) => {
                text(StatusCode::BAD_REQUEST, "A request needs exactly one field `Host`.\n")
            }
            _ if has_other_coding(request.headers()) => other_coding(),
            (method, _) if !method.is_safe() && may_be_replay && !self.allow_early_unsafe => too_early(),
            (&Method::OPTIONS, _) => options(allowed),
            (&Method::GET | &Method::HEAD, Some(root)) => root.answer(&request.into_parts().0).await,
            (&Method::GET | &Method::HEAD, None) if !names_path(request.uri()) => {
                text(StatusCode::BAD_REQUEST, "The target of a request must be a path, such as `/`.\n")
            }
            (&Method::GET | &Method::HEAD, None) => greeting(arrival),
            (&Method::POST | &Method::PUT, None) => receipt(request, self.bodies).await,
            (method, _) if is_known(method) => not_allowed(allowed),
            _ => text(StatusCode::NOT_IMPLEMENTED, "This method is not supported.\n"),
        };
        reply.headers_mut().insert(SERVER, HeaderValue::from_static(PRODUCT));
        reply
    }
}

const FILE_METHODS: &str = "GET, HEAD, OPTIONS";
const GREETING_METHODS: &str = "GET, HEAD, POST, PUT, OPTIONS";

/// RFC 9112 §3.2: "A server MUST respond with a 400 (Bad Request) status code to any HTTP/1.1
/// request message that lacks a Host header field and to any request message that contains more
/// than one Host header field line or a Host header field with an invalid field value."
fn names_host<T>(request: &Request<T>) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if request.version() == Version::HTTP_2 => request.uri().authority().is_some(),
        (None, _) => request.version() < Version::HTTP_11,
        (Some(host), None) => is_host(host.as_bytes()),
        _ => false,
    }
}

/// Parses `uri-host [ ":" port ]` (RFC 9110 §7.2). It is empty if the target has no authority.
fn is_host(value: &[u8]) -> bool {
    value.is_empty()
        || (!value.contains(&b'@') && !value.contains(&b',') && Authority::try_from(value).is_ok())
}

/// RFC 9112 §6.1: "A server that receives a request message with a transfer coding it does not
/// understand SHOULD respond with 501 (Not Implemented)." Only `chunked` is supported, once.
fn has_other_coding(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = |value: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    codings.next().is_some_and(|first| !is_chunked(first) || codings.next().is_some())
}

/// Returns false for `*`, and for a name without a slash, which other methods use (RFC 9112 §3.2).
fn names_path(uri: &Uri) -> bool {
    uri.path().starts_with('/')
}

/// True if the method is one of RFC 9110 §9.3, or PATCH (RFC 5789). Others are not implemented,
/// instead of not allowed (§15.6.2).
fn is_known(method: &Method) -> bool {
    [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::CONNECT,
        Method::OPTIONS,
        Method::TRACE,
        Method::PATCH,
    ]
    .contains(method)
}

/// Header for a request that was early data on an earlier hop (RFC 8470 §5.1).
const EARLY_DATA: &str = "early-data";
const PRODUCT: &str = concat!("firstbyte/", env!("CARGO_PKG_VERSION"));

fn greeting(arrival: Arrival) -> Response<Body> {
    let how = match arrival {
        Arrival::Syn => "Your request arrived on the SYN: TCP Fast Open.",
        Arrival::EarlyData => "Your request arrived as early data: a resumed session of TLS.",
        Arrival::Secure => "Your request arrived after the handshakes of TCP and TLS.",
        Arrival::Late => {
            "Your request arrived after the handshake. With curl --tcp-fastopen, the next one \
            arrives on the SYN."
        }
    };
    let mut reply = text(StatusCode::OK, format!("Hello from Firstbyte.\n{how}\n"));
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// Reads a body and replies with its length.
async fn receipt(request: Request<Incoming>, bodies: Bodies) -> Response<Body> {
    let end = Instant::now() + bodies.total;
    let method = request.method().clone();
    let mut body = request.into_body();
    let mut len = 0;
    loop {
        match timeout_at(end.min(Instant::now() + bodies.pause), body.frame()).await {
            Ok(Some(Ok(frame))) => len += frame.data_ref().map_or(0, bytes::Bytes::len),
            Ok(None) => return text(StatusCode::OK, format!("{method}: {len} bytes received.\n")),
            Ok(Some(Err(_))) => return text(StatusCode::BAD_REQUEST, "the body ended early\n"),
            Err(_) => {
                return text(StatusCode::REQUEST_TIMEOUT, "the rest of the body did not arrive\n");
            }
        }
    }
}

/// Returns the reply 425 Too Early (RFC 8470 §5.2).
fn too_early() -> Response<Body> {
    let advice = "This request came before the end of a handshake, so it may be a copy. Send it again \
        after the handshake (RFC 8470), or start the server with --allow-early-unsafe.\n";
    text(StatusCode::TOO_EARLY, advice)
}

fn other_coding() -> Response<Body> {
    let mut reply = text(StatusCode::NOT_IMPLEMENTED, "The only supported transfer coding is `chunked`.\n");
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    reply
}

/// Returns the reply to OPTIONS (RFC 9110 §9.3.7).
fn options(allow: &'static str) -> Response<Body> {
    let mut reply = Response::new(Body::new([]));
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    reply
}

fn not_allowed(allow: &'static str) -> Response<Body> {
    let mut reply = text(StatusCode::METHOD_NOT_ALLOWED, format!("Allowed here: {allow}.\n"));
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    reply
}
