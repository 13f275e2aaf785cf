use super::http2::PREFACE;
use super::{Judgement, judge};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::rt::{TokioExecutor, TokioIo};
use proptest::prelude::*;
use std::time::Duration;
use tokio::io::AsyncReadExt;

const NO: Judgement = Judgement::NotRepeatable;
const YES: Judgement = Judgement::Repeatable;
const MORE: Judgement = Judgement::Incomplete;

#[test]
fn requests_without_a_body_are_repeatable() {
    for text in [
        "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n",
    ] {
        assert_eq!(judge(text.as_bytes()), YES, "{text:?}");
        for cut in 0..text.len() {
            let judgement = judge(&text.as_bytes()[..cut]);
            assert!(judgement == MORE || text[..cut].ends_with("\r\n\r\n"), "{:?}", &text[..cut]);
        }
    }
}

#[test]
fn requests_that_change_something_or_are_unclear_are_not() {
    for text in [
        "POST / HTTP/1.1\r\nhost: a\r\n\r\n",
        "POST /",
        "PUT / HTTP/1.1\r\n\r\n",
        "get / HTTP/1.1\r\n\r\n",
        "CONNECT a:443 HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\ncontent-length: 1\r\n\r\n",
        "GET / HTTP/1.1\r\ncontent-length: 0\r\ncontent-length: 5\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 0, 5\r\n\r\n",
        "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\nPOST / HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\n\r\nbody?",
        "GET / HTTP/2.0\r\n\r\n",
        "GET / HTTP/1.1\r\n folded: x\r\n\r\n",
        "*1\r\n$4\r\nPING\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\u{fc}\x03\x03",
    ] {
        assert_eq!(judge(text.as_bytes()), NO, "{text:?}");
    }
}

#[test]
fn more_fields_than_can_be_judged_are_not_repeatable() {
    let fields = "a: b\r\n".repeat(101);
    assert_eq!(judge(format!("GET / HTTP/1.1\r\n{fields}\r\n").as_bytes()), NO);
}

/// Returns what hyper's client writes for one request on a connection of its own.
async fn written_by_hyper(method: Method, body: &'static str) -> Vec<u8> {
    let (client, mut server) = tokio::io::duplex(64 * 1024);
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(client));
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let request = Request::builder().method(method).uri("http://server/path?query");
    let answer = sender.send_request(request.body(Full::<Bytes>::from(body)).unwrap());
    tokio::spawn(answer);
    let mut written = Vec::new();
    // The clock is paused: this passes once everybody waits.
    let reading = async { while server.read_buf(&mut written).await.unwrap() > 0 {} };
    let _ = tokio::time::timeout(Duration::from_secs(1), reading).await;
    written
}

/// Splits what a client wrote into the preface and frames.
fn frames(written: &[u8]) -> Vec<&[u8]> {
    let (preface, mut rest) = written.split_at(PREFACE.len());
    let mut parts = vec![preface];
    while let [a, b, c, ..] = *rest {
        let len = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        let (frame, behind) = rest.split_at(9 + len);
        parts.push(frame);
        rest = behind;
    }
    parts
}

#[tokio::test(start_paused = true)]
async fn requests_of_hypers_http2_client_are_judged() {
    for (method, body, expected) in [
        (Method::GET, "", YES),
        (Method::HEAD, "", YES),
        (Method::OPTIONS, "", YES),
        (Method::GET, "body", NO),
        (Method::POST, "", NO),
        (Method::POST, "body", NO),
        (Method::PUT, "", NO),
        (Method::DELETE, "", NO),
        (Method::TRACE, "", NO),
        (Method::PATCH, "", NO),
    ] {
        let written = written_by_hyper(method.clone(), body).await;
        assert_eq!(judge(&written), expected, "{method} {body:?}: {written:02x?}");
        // Preface and SETTINGS come first, alone.
        let parts = frames(&written);
        let settings = parts[0].len() + parts[1].len();
        assert_eq!((parts[1][3], judge(&written[..settings])), (4, MORE));
        for cut in 0..written.len() {
            assert_ne!(judge(&written[..cut]), YES, "{method}, {cut} bytes");
        }
    }
}

/// The start of a client's connection, with one frame behind empty SETTINGS.
fn with_frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut written = PREFACE.to_vec();
    written.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    written.extend([0, (payload.len() >> 8) as u8, payload.len() as u8, kind, flags, 0, 0, 0, 1]);
    written.extend(payload);
    written
}

const ONE: u8 = 0x05;

#[test]
fn header_blocks_begin_with_the_method() {
    let cases: &[(&[u8], Judgement)] = &[
        (b"\x82\x86\x84", YES),
        // POST, an index of the dynamic table, a path, and nothing.
        (b"\x83\x86\x84", NO),
        (b"\xbe\x86\x84", NO),
        (b"\x84\x82", NO),
        (b"", NO),
        // Literals with and without Huffman code.
        (b"\x42\x04HEAD\x86", YES),
        (b"\x02\x84\xc7\x82\x1b\xff\x86", YES),
        (b"\x12\x87\xd5\xaf\x7e\x4d\x5a\x77\x7f\x86", YES),
        (b"\x42\x03GET", YES),
        (b"\x42\x04HEADX", YES),
        (b"\x42\x05HEADX", NO),
        (b"\x42\x04HEA", NO),
        (b"\x42\x06DELETE", NO),
        (b"\x42", NO),
        // A name in full is not resolved.
        (b"\x40\x07:method\x04HEAD", NO),
        // Updates of the table's size: none, 4096, and an integer without an end.
        (b"\x20\x3f\xe1\x1f\x82", YES),
        (b"\x20\x20\x20\x82", NO),
        (b"\x3f\xff\xff\xff", NO),
    ];
    for (block, expected) in cases {
        assert_eq!(judge(&with_frame(1, ONE, block)), *expected, "{block:02x?}");
    }
}

#[test]
fn frames_that_add_to_a_request_are_not_repeatable() {
    // DATA, RST_STREAM, PUSH_PROMISE, GOAWAY, CONTINUATION, an unknown frame.
    for kind in [0, 3, 5, 7, 9, 200] {
        assert_eq!(judge(&with_frame(kind, 0, b"\x82")), NO, "{kind}");
    }
    // A request that goes on: without END_STREAM, without END_HEADERS.
    for flags in [0, 0x01, 0x04] {
        assert_eq!(judge(&with_frame(1, flags, b"\x82")), NO, "{flags}");
    }
    // PRIORITY, PING and WINDOW_UPDATE without a request.
    for kind in [2, 6, 8, 16] {
        assert_eq!(judge(&with_frame(kind, 0, &[0; 8])), MORE, "{kind}");
    }
    let two = [with_frame(1, ONE, b"\x82"), with_frame(1, ONE, b"\x83").split_off(33)].concat();
    assert_eq!((judge(&two[..two.len() - 10]), judge(&two)), (YES, NO));
    let mut long = with_frame(1, ONE, b"\x82");
    long[33] = 1;
    assert_eq!(judge(&long), NO);
}

#[test]
fn padding_and_priority_are_skipped() {
    assert_eq!(judge(&with_frame(1, ONE | 0x08, b"\x02\x82\0\0")), YES);
    assert_eq!(judge(&with_frame(1, ONE | 0x20, b"\0\0\0\0\x10\x82")), YES);
    assert_eq!(judge(&with_frame(1, ONE | 0x28, b"\x01\0\0\0\0\x10\x82\0")), YES);
    for payload in [&b""[..], b"\x05\x82", b"\x02\0\0", b"\x00\x83"] {
        assert_eq!(judge(&with_frame(1, ONE | 0x08, payload)), NO, "{payload:02x?}");
    }
    assert_eq!(judge(&with_frame(1, ONE | 0x20, b"\x82\x82")), NO);
}

/// Bytes that often come close to a request.
fn near_requests() -> impl Strategy<Value = Vec<u8>> {
    let pieces = proptest::sample::select(vec![
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"HEAD / HTTP/1.1\r\n",
        b"GET ",
        b"HEAD ",
        b"POST ",
        b"/ HTTP/1.1\r\n",
        b"content-length: ",
        b"0\r\n",
        b"upgrade: x\r\n",
        b"\r\n",
        PREFACE,
        b"\0\0\0\x04\0\0\0\0\0",
        b"\0\0\x01\x01\x05\0\0\0\x01\x82",
        b"\0\0\x01\x01\x05\0\0\0\x03\x83",
        b"\0\0\x02\x00\x01\0\0\0\x01",
        b"\x3f\xe1",
        b"\x0d",
    ]);
    let piece = prop_oneof![
        4 => pieces.prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(any::<u8>(), 0..40),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_bytes_panic_and_a_refusal_is_final(written in near_requests()) {
        let mut refused = false;
        for cut in 0..=written.len() {
            let judgement = judge(&written[..cut]);
            prop_assert!(!refused || judgement == NO, "{} bytes of {:?}", cut, written);
            refused = judgement == NO;
        }
    }

    #[test]
    fn a_repeatable_request_starts_with_a_safe_method(written in near_requests()) {
        if judge(&written) == YES {
            let start = if written.starts_with(PREFACE) { &written[33..] } else { &written[..] };
            let text = String::from_utf8_lossy(start);
            let is_safe = text.trim_start().starts_with("GET ") || text.trim_start().starts_with("HEAD ");
            prop_assert!(is_safe || written.starts_with(PREFACE), "{:?}", written);
            prop_assert!(!text.contains("POST ") && !text.contains("upgrade"), "{:?}", written);
        }
    }
}
