//! The choice of requests that may be sent before the handshake is complete.
use super::repeatable::{Judgement, is_http2, judge};

/// Which first requests of a connection may be sent early: on the SYN, or as early data of TLS.
///
/// Early bytes may be delivered twice (RFC 7413 §6.1, RFC 8446 §8). A request that is not sent
/// early waits for the handshake, which costs one round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FirstRequest {
    /// No request.
    Never,
    /// Requests that change nothing at the server: GET, HEAD and OPTIONS without a body (the safe
    /// methods of RFC 9110 §9.2.1 that RFC 8470 §2.1 allows in early data).
    #[default]
    Repeatable,
    /// Every request, and every other protocol. Choose it only if the server may execute each
    /// request twice.
    Always,
}

impl FirstRequest {
    /// Judges the bytes that were written so far.
    pub(crate) fn judge(self, written: &[u8]) -> Judgement {
        match self {
            FirstRequest::Never => Judgement::NotRepeatable,
            FirstRequest::Repeatable => judge(written),
            FirstRequest::Always => Judgement::Repeatable,
        }
    }

    /// Returns whether more bytes should be awaited before anything is sent: the start of HTTP/2
    /// without a request.
    pub(crate) fn awaits_request(self, written: &[u8]) -> bool {
        self != FirstRequest::Never && judge(written) == Judgement::Incomplete && is_http2(written)
    }
}
