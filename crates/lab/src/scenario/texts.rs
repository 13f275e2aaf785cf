//! Requests and replies of a given length. Wireshark recognizes the longer ones as HTTP.

use bytes::Bytes;

/// Returns a request of exactly `len` bytes.
pub(super) fn request(len: usize) -> Bytes {
    filled("GET /", " HTTP/1.1\r\nHost: a\r\n\r\n", len)
}

/// Returns a reply of exactly `len` bytes.
pub(super) fn reply(len: usize) -> Bytes {
    filled("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", "", len)
}

fn filled(head: &str, tail: &str, len: usize) -> Bytes {
    match len.checked_sub(head.len() + tail.len()) {
        Some(rest) => [head, &"x".repeat(rest), tail].concat().into(),
        None => "x".repeat(len).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_exact() {
        for len in [0, 1, 26, 27, 28, 38, 43, 200, 10_000] {
            assert_eq!((request(len).len(), reply(len).len()), (len, len));
        }
        assert_eq!(&request(27)[..], b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }
}
