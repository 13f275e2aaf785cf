//! Requests of HTTP/1.1 (RFC 9112).
use super::{Judgement, is_safe};
use httparse::{EMPTY_HEADER, Header, Request, Status};

/// Fields of one request. hyper's own limit is 100.
const FIELDS_MAX: usize = 100;

/// Judges one request or several (pipelining, RFC 9112 §9.3.2).
pub(super) fn judge(mut written: &[u8]) -> Judgement {
    loop {
        match judge_head(written) {
            (Judgement::Repeatable, len) if len < written.len() => written = &written[len..],
            (judgement, _) => return judgement,
        }
    }
}

/// Judges the first request, and returns the length of its head.
fn judge_head(written: &[u8]) -> (Judgement, usize) {
    let mut fields = [EMPTY_HEADER; FIELDS_MAX];
    let mut request = Request::new(&mut fields);
    let parsed = request.parse(written);
    if request.method.is_some_and(|method| !is_safe(method)) {
        return (Judgement::NotRepeatable, 0);
    }
    match parsed {
        Err(_) => (Judgement::NotRepeatable, 0),
        Ok(Status::Partial) => (Judgement::Incomplete, 0),
        Ok(Status::Complete(_)) if request.headers.iter().any(adds_something) => {
            (Judgement::NotRepeatable, 0)
        }
        Ok(Status::Complete(len)) => (Judgement::Repeatable, len),
    }
}

/// Returns whether a field announces a body (RFC 9112 §6) or another protocol (RFC 9110 §7.8).
fn adds_something(field: &Header<'_>) -> bool {
    let is = |name: &str| field.name.eq_ignore_ascii_case(name);
    is("transfer-encoding") || is("upgrade") || is("content-length") && field.value != b"0"
}
