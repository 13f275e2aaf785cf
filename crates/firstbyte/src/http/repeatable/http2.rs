//! Requests of HTTP/2 with prior knowledge (RFC 9113 §3.3).
use super::{Judgement, is_safe};

/// The first bytes of a client (RFC 9113 §3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Length of a frame's header (RFC 9113 §4.1).
const FRAME_HEADER_LEN: usize = 9;

/// The largest frame before the server's settings arrive (`SETTINGS_MAX_FRAME_SIZE`, RFC 9113
/// §6.5.2).
const FRAME_LEN_MAX: usize = 16_384;

/// Frame types (RFC 9113 §6, RFC 9218 §7.1).
mod frame {
    pub(super) const HEADERS: u8 = 1;
    pub(super) const PRIORITY: u8 = 2;
    pub(super) const SETTINGS: u8 = 4;
    pub(super) const PING: u8 = 6;
    pub(super) const WINDOW_UPDATE: u8 = 8;
    pub(super) const PRIORITY_UPDATE: u8 = 16;
}

/// Flags of HEADERS (RFC 9113 §6.2).
mod flag {
    pub(super) const END_STREAM: u8 = 0x01;
    pub(super) const END_HEADERS: u8 = 0x04;
    pub(super) const PADDED: u8 = 0x08;
    pub(super) const PRIORITY: u8 = 0x20;
}

/// Judges the frames behind the preface.
pub(super) fn judge(mut written: &[u8]) -> Judgement {
    let mut has_request = false;
    loop {
        let Some((header, rest)) = written.split_at_checked(FRAME_HEADER_LEN) else {
            return match has_request && written.is_empty() {
                true => Judgement::Repeatable,
                false => Judgement::Incomplete,
            };
        };
        let len = usize::from(header[0]) << 16 | usize::from(header[1]) << 8 | usize::from(header[2]);
        let (kind, flags) = (header[3], header[4]);
        if len > FRAME_LEN_MAX || !may_be_sent_twice(kind, flags) {
            return Judgement::NotRepeatable;
        }
        let Some((payload, rest)) = rest.split_at_checked(len) else { return Judgement::Incomplete };
        if kind == frame::HEADERS {
            if !header_block(payload, flags).is_some_and(begins_with_a_safe_method) {
                return Judgement::NotRepeatable;
            }
            has_request = true;
        }
        written = rest;
    }
}

/// Returns whether a frame of this type may be part of a repeatable request. HEADERS must hold the
/// whole request.
fn may_be_sent_twice(kind: u8, flags: u8) -> bool {
    match kind {
        frame::HEADERS => {
            let whole = flag::END_STREAM | flag::END_HEADERS;
            flags & whole == whole
        }
        frame::SETTINGS | frame::WINDOW_UPDATE | frame::PRIORITY | frame::PRIORITY_UPDATE | frame::PING => {
            true
        }
        _ => false,
    }
}

/// Returns the header block of a HEADERS frame, without padding and priority.
fn header_block(mut payload: &[u8], flags: u8) -> Option<&[u8]> {
    let mut padding = 0;
    if flags & flag::PADDED != 0 {
        let (len, rest) = payload.split_first()?;
        (padding, payload) = (usize::from(*len), rest);
    }
    if flags & flag::PRIORITY != 0 {
        payload = payload.get(5..)?;
    }
    payload.get(..payload.len().checked_sub(padding)?)
}

/// Returns whether the first field of a header block (RFC 7541 §6) is `:method` with a safe value.
/// An index of the dynamic table is not resolved.
fn begins_with_a_safe_method(block: &[u8]) -> bool {
    let Some((first, rest)) = without_size_updates(block).split_first() else { return false };
    match first {
        // `:method: GET`, index 2 of the static table.
        0x82 => true,
        // The name of index 2 with a value: indexed from now on, not indexed, never indexed.
        0x42 | 0x02 | 0x12 => METHODS.iter().any(|(method, huffman)| {
            is_safe(method) && (is_string(rest, 0, method.as_bytes()) || is_string(rest, 0x80, huffman))
        }),
        _ => false,
    }
}

/// The safe methods with their Huffman code (RFC 7541 Appendix B).
const METHODS: [(&str, &[u8]); 3] = [
    ("GET", &[0xc5, 0x83, 0x7f]),
    ("HEAD", &[0xc7, 0x82, 0x1b, 0xff]),
    ("OPTIONS", &[0xd5, 0xaf, 0x7e, 0x4d, 0x5a, 0x77, 0x7f]),
];

/// Returns whether `field` begins with this string literal (RFC 7541 §5.2).
fn is_string(field: &[u8], huffman: u8, value: &[u8]) -> bool {
    field.split_first().is_some_and(|(len, rest)| {
        usize::from(*len) == usize::from(huffman) | value.len() && rest.starts_with(value)
    })
}

/// Skips changes of the dynamic table's size, which are only at the beginning (RFC 7541 §4.2): at
/// most two.
fn without_size_updates(mut block: &[u8]) -> &[u8] {
    for _ in 0..2 {
        let Some((first, mut rest)) = block.split_first() else { return block };
        if first & 0xe0 != 0x20 {
            return block;
        }
        // The rest of an integer whose prefix of 5 bits is full (RFC 7541 §5.1).
        if first & 0x1f == 0x1f {
            let continued = rest.iter().take_while(|byte| *byte & 0x80 != 0).count();
            rest = rest.get(continued + 1..).unwrap_or_default();
        }
        block = rest;
    }
    block
}
