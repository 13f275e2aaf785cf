//! Pages that are not files.
use super::body::Body;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

/// Returns a short text page.
pub(crate) fn text(status: StatusCode, text: impl Into<String>) -> Response<Body> {
    let mut reply = Response::new(Body::whole(text.into().into()));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    reply
}
