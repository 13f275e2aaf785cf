//! Requests that a server may execute twice, recognised by their first bytes.
//!
//! HTTP/1.1 (RFC 9112) and HTTP/2 with prior knowledge (RFC 9113). A request is repeatable if it
//! changes nothing at the server: GET, HEAD or OPTIONS without a body (RFC 9110 §9.2.1, RFC 8470
//! §2.1). Bytes that cannot be judged are not repeatable.
mod http1;
mod http2;

/// The judgement of the first bytes that a client writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// Complete requests, at least one, and all of them repeatable.
    Repeatable,
    /// A request that must not be repeated, or bytes that cannot be judged. More bytes do not
    /// change this.
    NotRepeatable,
    /// No request is complete, or the last one is not. More bytes decide.
    Incomplete,
}

/// Returns whether a connection begins with HTTP/2, as far as it was written.
pub(crate) fn is_http2(written: &[u8]) -> bool {
    let common = written.len().min(http2::PREFACE.len());
    written[..common] == http2::PREFACE[..common]
}

/// Judges all bytes that a client has written so far, from the first byte of the connection.
pub(crate) fn judge(written: &[u8]) -> Judgement {
    let common = written.len().min(http2::PREFACE.len());
    match written[..common] == http2::PREFACE[..common] {
        true if common < http2::PREFACE.len() => Judgement::Incomplete,
        true => http2::judge(&written[common..]),
        false => http1::judge(written),
    }
}

/// Returns whether a method is safe (RFC 9110 §9.2.1), and its requests usually have no body.
fn is_safe(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS")
}

#[cfg(test)]
mod tests;
