//! What streams carry: every byte can be told from those around it and from those of other streams.

use bytes::Bytes;
use std::sync::OnceLock;

/// More than any end says; further bytes are made one by one.
const KEPT: usize = 1 << 18;
/// Streams whose text is kept.
const STREAMS: usize = 32;

/// The text of one end of a connection.
#[derive(Clone, Copy)]
pub(super) struct Text {
    /// Among [`STREAMS`].
    stream: usize,
}

impl Text {
    pub(super) fn of(side: usize, which: usize) -> Text {
        Text { stream: side * 16 + which }
    }

    fn byte_at(self, at: u64) -> u8 {
        ((at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ self.stream as u8
    }

    /// `len` bytes from there on. Making them anew for each write took a quarter of all time.
    pub(super) fn bytes(self, from: u64, len: u64) -> Bytes {
        static TEXTS: [OnceLock<Bytes>; STREAMS] = [const { OnceLock::new() }; STREAMS];
        let end = from + len;
        match TEXTS.get(self.stream) {
            Some(text) if end <= KEPT as u64 => text
                .get_or_init(|| (0..KEPT as u64).map(|at| self.byte_at(at)).collect())
                .slice(from as usize..end as usize),
            _ => (from..end).map(|at| self.byte_at(at)).collect(),
        }
    }

    /// Where `text`, read from there on, is not what was written.
    pub(super) fn differs(self, from: u64, text: &[u8]) -> Option<u64> {
        let written = self.bytes(from, text.len() as u64);
        if written == text {
            return None;
        }
        (from..)
            .zip(text.iter().zip(written))
            .find(|(_, (read, written))| **read != *written)
            .map(|(at, _)| at)
    }
}
