//! What the peer sent: bytes in order for the application, and pieces that arrived too early.
//!
//! Payloads are kept as slices of the packets they came in, unless that would pin more than four times their size: then they are
//! copied together. So the memory a peer can make us hold is bounded by four times the buffer.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use wire::SeqNum;

/// A payload smaller than its packet's memory by this factor is copied.
const PIN_FACTOR: usize = 4;
/// Copied payloads share chunks of this size.
const COMPACT_CHUNK: usize = 2048;
/// Early pieces kept at most; beyond it they are dropped (the peer retransmits).
const REASSEMBLY_MAX: usize = 256;

/// In-order bytes that wait for `read`.
#[derive(Debug, Default)]
pub(crate) struct ReceiveBuffer {
    chunks: VecDeque<Bytes>,
    /// Copied small payloads, behind all `chunks`.
    small: BytesMut,
    len: usize,
}

impl ReceiveBuffer {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a payload that pins `truesize` bytes.
    pub(crate) fn push(&mut self, payload: Bytes, truesize: usize) {
        self.len += payload.len();
        if payload.len() * PIN_FACTOR >= truesize {
            self.freeze_small();
            self.chunks.push_back(payload);
            return;
        }
        if self.small.capacity() - self.small.len() < payload.len() {
            self.freeze_small();
            // Not `reserve`: it could move bytes a reader still holds a part of.
            self.small = BytesMut::with_capacity(COMPACT_CHUNK.max(payload.len()));
        }
        self.small.extend_from_slice(&payload);
    }

    fn freeze_small(&mut self) {
        if !self.small.is_empty() {
            self.chunks.push_back(self.small.split().freeze());
        }
    }

    pub(crate) fn read(&mut self, mut buf: &mut [u8]) -> usize {
        let mut read = 0;
        while !buf.is_empty() {
            let Some(chunk) = self.pop(buf.len()) else { break };
            buf[..chunk.len()].copy_from_slice(&chunk);
            buf = &mut buf[chunk.len()..];
            read += chunk.len();
        }
        read
    }

    /// Copies from the front; takes nothing.
    pub(crate) fn peek(&self, buf: &mut [u8]) -> usize {
        let mut peeked = 0;
        for chunk in self.chunks.iter().map(|chunk| &chunk[..]).chain([&self.small[..]]) {
            let len = chunk.len().min(buf.len() - peeked);
            buf[peeked..peeked + len].copy_from_slice(&chunk[..len]);
            peeked += len;
        }
        peeked
    }

    /// Takes at most `max` bytes of the first chunk.
    pub(crate) fn pop(&mut self, max: usize) -> Option<Bytes> {
        if self.chunks.is_empty() {
            self.freeze_small();
        }
        let chunk = self.chunks.front_mut().filter(|_| max > 0)?;
        let taken = if chunk.len() <= max { self.chunks.pop_front()? } else { chunk.split_to(max) };
        self.len -= taken.len();
        if self.len == 0 {
            *self = ReceiveBuffer::default();
        }
        Some(taken)
    }
}

/// Pieces beyond `rcv_nxt`, in order, not overlapping.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    pieces: VecDeque<Piece>,
    /// What arrived twice, until the peer is told (RFC 2883).
    pub(crate) duplicate: Option<(SeqNum, SeqNum)>,
}

#[derive(Debug)]
struct Piece {
    seq: SeqNum,
    payload: Bytes,
}

impl Piece {
    fn end(&self) -> SeqNum {
        self.seq + self.payload.len() as u32
    }
}

impl Reassembly {
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.duplicate.is_none()
    }

    /// Number behind the last piece.
    pub(crate) fn end(&self) -> Option<SeqNum> {
        self.pieces.back().map(Piece::end)
    }

    /// The first part of this range that is here already.
    pub(crate) fn overlap(&self, seq: SeqNum, end: SeqNum) -> Option<(SeqNum, SeqNum)> {
        let index = self.pieces.partition_point(|piece| piece.end().before_or_eq(seq));
        let piece = self.pieces.get(index).filter(|piece| piece.seq.before(end))?;
        Some((piece.seq.latest(seq), piece.end().earliest(end)))
    }

    /// Keeps what is new of a payload. Returns false when there was no room.
    pub(crate) fn insert(&mut self, seq: SeqNum, payload: Bytes, truesize: usize) -> bool {
        let payload =
            if payload.len() * PIN_FACTOR < truesize { Bytes::copy_from_slice(&payload) } else { payload };
        let mut rest = Piece { seq, payload };
        let mut index = self.pieces.partition_point(|piece| piece.end().before_or_eq(seq));
        while !rest.payload.is_empty() {
            if self.pieces.len() >= REASSEMBLY_MAX {
                return false;
            }
            match self.pieces.get(index) {
                Some(next) if next.seq.before_or_eq(rest.seq) => {
                    let covered = next.end().since(rest.seq).min(rest.payload.len() as u32);
                    rest.seq += covered;
                    rest.payload = rest.payload.slice(covered as usize..);
                }
                Some(next) if next.seq.before(rest.end()) => {
                    let fits = next.seq.since(rest.seq);
                    let gap = Piece { seq: rest.seq, payload: rest.payload.split_to(fits as usize) };
                    rest.seq += fits;
                    self.pieces.insert(index, gap);
                }
                _ => {
                    self.pieces.insert(index, rest);
                    return true;
                }
            }
            index += 1;
        }
        true
    }

    /// Takes the piece that continues at `rcv_nxt`, if there is one.
    pub(crate) fn next(&mut self, rcv_nxt: SeqNum) -> Option<Bytes> {
        while let Some(first) = self.pieces.front() {
            if first.seq.after(rcv_nxt) {
                return None;
            }
            let piece = self.pieces.pop_front()?;
            if piece.end().after(rcv_nxt) {
                return Some(piece.payload.slice(rcv_nxt.since(piece.seq) as usize..));
            }
        }
        None
    }

    /// Up to `max` blocks for the SACK option (RFC 2018 §4): the one that holds `latest` first, then in order.
    pub(crate) fn sack_blocks(&self, latest: SeqNum, max: usize) -> impl Iterator<Item = (SeqNum, SeqNum)> {
        let mut blocks: Vec<(SeqNum, SeqNum)> = Vec::new();
        for piece in &self.pieces {
            match blocks.last_mut() {
                Some((_, end)) if *end == piece.seq => *end = piece.end(),
                _ => blocks.push((piece.seq, piece.end())),
            }
        }
        if let Some(at) =
            blocks.iter().position(|(start, end)| start.before_or_eq(latest) && latest.before(*end))
        {
            blocks[..=at].rotate_right(1);
        }
        blocks.into_iter().take(max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_payloads_are_copied_together_and_keep_their_order() {
        let mut buffer = ReceiveBuffer::default();
        buffer.push(Bytes::from_static(b"big one"), 7);
        buffer.push(Bytes::from_static(b"a"), 1500);
        buffer.push(Bytes::from_static(b"b"), 1500);
        buffer.push(Bytes::from_static(b" and on"), 7);
        assert_eq!((buffer.len(), buffer.chunks.len()), (16, 3));
        let mut out = [0; 32];
        assert_eq!(buffer.read(&mut out[..8]), 8);
        assert_eq!(buffer.pop(100).as_deref(), Some(b"b".as_slice()));
        assert_eq!(buffer.read(&mut out[8..]), 7);
        assert_eq!(&out[..15], b"big onea and on");
        assert!(buffer.is_empty() && buffer.pop(1).is_none());
    }

    #[test]
    fn pieces_fill_gaps_and_overlaps_are_cut() {
        let mut early = Reassembly::default();
        assert!(early.insert(SeqNum(10), Bytes::from_static(b"klmno"), 5));
        assert!(early.insert(SeqNum(20), Bytes::from_static(b"uv"), 2));
        assert!(early.insert(SeqNum(8), Bytes::from_static(b"ijKLMNOpqrstUVw"), 15));
        assert_eq!(early.sack_blocks(SeqNum(22), 4).collect::<Vec<_>>(), [(SeqNum(8), SeqNum(23))]);
        let mut all = Vec::new();
        let mut next = SeqNum(9);
        while let Some(piece) = early.next(next) {
            next += piece.len() as u32;
            all.extend_from_slice(&piece);
        }
        assert_eq!(all, b"jklmnopqrstuvw");
        assert!(early.is_empty());
    }

    #[test]
    fn the_block_that_just_arrived_is_reported_first() {
        let mut early = Reassembly::default();
        for start in [10, 30, 50] {
            early.insert(SeqNum(start), Bytes::from_static(b"12345"), 5);
        }
        let starts: Vec<u32> = early.sack_blocks(SeqNum(30), 3).map(|(start, _)| start.0).collect();
        assert_eq!(starts, [30, 10, 50]);
    }

    #[test]
    fn the_number_of_pieces_is_bounded() {
        let mut early = Reassembly::default();
        let kept = (0..1000).filter(|i| early.insert(SeqNum(i * 10), Bytes::from_static(b"x"), 1)).count();
        assert_eq!(kept, REASSEMBLY_MAX);
    }
}
