//! Which answer a request gets.
use super::body::Body;
use super::files::Root;
use super::page::text;
use crate::failure::Failure;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, HOST, HeaderValue, SERVER};
use hyper::{Method, Request, Response, StatusCode, Version};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What is served.
#[derive(Clone)]
pub(crate) struct Site {
    root: Option<Arc<Root>>,
    allow_early_unsafe: bool,
    /// How long a body may pause.
    timeout: Duration,
}

impl Site {
    /// A folder, or without one the greeting.
    pub(crate) fn open(
        root: Option<&Path>,
        allow_early_unsafe: bool,
        timeout: Duration,
    ) -> Result<Site, Failure> {
        let root = root.map(|path| Root::open(path, timeout)).transpose()?.map(Arc::new);
        Ok(Site { root, allow_early_unsafe, timeout })
    }

    /// The answer. `early`: the request, or its beginning, came in a SYN of a handshake that is not complete.
    pub(crate) async fn answer(&self, request: Request<Incoming>, early: bool) -> Response<Body> {
        let may_be_replay = early || request.headers().get(EARLY_DATA).is_some_and(|value| value == "1");
        let mut reply = match (request.method(), &self.root) {
            _ if !names_host(&request) => text(StatusCode::BAD_REQUEST, "A request has one field `Host`.\n"),
            (method, _) if !method.is_safe() && may_be_replay && !self.allow_early_unsafe => too_early(),
            (&Method::GET | &Method::HEAD, Some(root)) => root.answer(&request.into_parts().0).await,
            (&Method::GET | &Method::HEAD, None) => greeting(early),
            (&Method::POST | &Method::PUT, None) => receipt(request, self.timeout).await,
            (_, Some(_)) => not_allowed("GET, HEAD"),
            (_, None) => not_allowed("GET, HEAD, POST, PUT"),
        };
        reply.headers_mut().insert(SERVER, HeaderValue::from_static(PRODUCT));
        reply
    }
}

/// RFC 9112 §3.2: "A server MUST respond with a 400 (Bad Request) status code to any HTTP/1.1 request message that lacks a Host header field and to
/// any request message that contains more than one Host header field line".
fn names_host<T>(request: &Request<T>) -> bool {
    match request.headers().get_all(HOST).iter().count() {
        0 => request.version() < Version::HTTP_11,
        count => count == 1,
    }
}

/// RFC 8470 §5.1: the request was early data on an earlier hop.
const EARLY_DATA: &str = "early-data";
const PRODUCT: &str = concat!("firstbyte/", env!("CARGO_PKG_VERSION"));

fn greeting(early: bool) -> Response<Body> {
    let how = match early {
        true => "Your request came on the SYN: TCP Fast Open.",
        false => {
            "Your request came after the handshake. With curl --tcp-fastopen, the next one comes on the SYN."
        }
    };
    let mut reply = text(StatusCode::OK, format!("Hello from Firstbyte.\n{how}\n"));
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// Takes a body and says how long it was.
async fn receipt(request: Request<Incoming>, timeout: Duration) -> Response<Body> {
    let method = request.method().clone();
    let mut body = request.into_body();
    let mut len = 0;
    loop {
        match tokio::time::timeout(timeout, body.frame()).await {
            Ok(Some(Ok(frame))) => len += frame.data_ref().map_or(0, bytes::Bytes::len),
            Ok(None) => return text(StatusCode::OK, format!("{method}: {len} bytes received.\n")),
            Ok(Some(Err(_))) => return text(StatusCode::BAD_REQUEST, "the body broke off\n"),
            Err(_) => return text(StatusCode::REQUEST_TIMEOUT, "the rest of the body did not come\n"),
        }
    }
}

/// RFC 8470 §5.2.
fn too_early() -> Response<Body> {
    let advice = "This request came on a SYN, which the network may deliver twice. Send it again after the handshake \
                  (RFC 8470), or start the server with --allow-early-unsafe.\n";
    text(StatusCode::TOO_EARLY, advice)
}

fn not_allowed(allow: &'static str) -> Response<Body> {
    let mut reply = text(StatusCode::METHOD_NOT_ALLOWED, format!("Allowed here: {allow}.\n"));
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    reply
}
