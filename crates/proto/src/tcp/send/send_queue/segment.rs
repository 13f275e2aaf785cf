//! One segment of the send queue: its bytes, and what recovery needs to know of its transmissions.

use super::Slices;
use crate::Instant;
use crate::tcp::send::delivery::Snapshot;
use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;
use wire::SeqNum;

/// A run of bytes that is sent, acknowledged and retransmitted as one.
#[derive(Debug)]
pub(crate) struct TxSegment {
    pub(in crate::tcp) seq: SeqNum,
    pub(in crate::tcp) len: u32,
    /// Bytes it counts as for the congestion window, once sent: its own, or those of whole segments (`window_unit`).
    pub(in crate::tcp) weight: u32,
    /// Times it was handed to the device.
    pub(in crate::tcp) transmissions: u8,
    /// The last byte of an application's write ends here, or enough of a long one to hand it on.
    pub(super) push: bool,
    /// A record ends here: what follows is never sent in the same segment.
    pub(super) eor: bool,
    /// The peer holds it, though it is not acknowledged (RFC 2018).
    pub(in crate::tcp) sacked: bool,
    /// Held to be lost, once at least.
    pub(in crate::tcp) lost: bool,
    /// Sent again, and of that transmission nothing is known yet.
    pub(in crate::tcp) retransmitted: bool,
    /// Times it was held to be lost since it was last sent.
    pub(in crate::tcp) losses: u8,
    /// What is left of a packet whose first bytes were acknowledged by themselves.
    pub(in crate::tcp) begun: bool,
    /// True if it was last sent in one packet, or in one burst for segmentation offload, with the
    /// end of the segment before it.
    pub(in crate::tcp) follows: bool,
    /// When it was last handed over.
    pub(in crate::tcp) sent_at: Instant,
    /// What was delivered by then.
    pub(in crate::tcp) snapshot: Snapshot,
    pub(super) parts: SmallVec<[Bytes; 1]>,
}

/// Losses of one transmission that time may tell: each but the first comes of a recovery that was taken for spurious. A peer that feigns such
/// costs no more walks than there were transmissions. (Linux's RACK tells one.)
const LOSSES_MOST: u8 = 4;

impl TxSegment {
    pub(crate) fn end(&self) -> SeqNum {
        self.seq + self.len
    }

    /// When it was last handed over, and the number behind it.
    pub(crate) fn transmission(&self) -> (Instant, SeqNum) {
        (self.sent_at, self.end())
    }

    /// What it counts, when it was last handed over, and whether it was only then.
    pub(super) fn departure(&self) -> (u32, Instant, bool) {
        (self.weight, self.sent_at, self.transmissions == 1)
    }

    /// Its last transmission is neither known to have arrived nor held to be lost.
    pub(crate) fn is_thought_in_flight(&self) -> bool {
        !self.sacked && (!self.lost || self.retransmitted)
    }

    /// Time may show its last transmission to be lost.
    pub(super) fn is_judged_by_time(&self) -> bool {
        self.losses < LOSSES_MOST
    }

    /// It was sent once, and of that nothing is known yet.
    #[inline]
    pub(super) fn is_fresh(&self) -> bool {
        self.transmissions == 1 && !self.sacked && !self.lost && !self.begun
    }

    /// It is the last, and what was written at its end stays as it is.
    #[inline(never)]
    pub(super) fn freeze(&mut self, tail: &mut BytesMut) {
        if !tail.is_empty() {
            self.parts.push(tail.split().freeze());
        }
    }

    #[inline]
    pub(super) fn add_parts_to(&self, slices: &mut Slices) {
        match &self.parts[..] {
            [part] => slices.push(part.clone()),
            parts => slices.extend(parts.iter().cloned()),
        }
    }

    pub(super) fn new(seq: SeqNum) -> TxSegment {
        TxSegment::of(seq, 0, SmallVec::new())
    }

    /// Not sent yet; `parts` are `len` bytes.
    pub(super) fn of(seq: SeqNum, len: u32, parts: SmallVec<[Bytes; 1]>) -> TxSegment {
        TxSegment {
            seq,
            len,
            weight: 0,
            transmissions: 0,
            push: false,
            eor: false,
            sacked: false,
            lost: false,
            retransmitted: false,
            losses: 0,
            begun: false,
            follows: false,
            sent_at: Instant::ZERO,
            snapshot: Snapshot::default(),
            parts,
        }
    }

    /// Takes over the bytes of the next one. They must be frozen.
    pub(super) fn absorb(&mut self, next: TxSegment) {
        self.len += next.len;
        self.weight += next.weight;
        (self.push, self.eor) = (next.push, next.eor);
        self.parts.extend(next.parts);
    }

    /// Cuts off everything from `at` bytes on. All bytes must be frozen.
    pub(super) fn split_off(&mut self, at: u32) -> TxSegment {
        let mut rest = TxSegment {
            seq: self.seq + at,
            len: self.len - at,
            push: self.push,
            eor: self.eor,
            follows: self.transmissions > 0,
            parts: SmallVec::new(),
            ..*self
        };
        let mut keep = at as usize;
        let mut kept = SmallVec::new();
        for mut part in self.parts.drain(..) {
            if keep == 0 {
                rest.parts.push(part);
            } else if part.len() <= keep {
                keep -= part.len();
                kept.push(part);
            } else {
                rest.parts.push(part.split_off(keep));
                keep = 0;
                kept.push(part);
            }
        }
        self.parts = kept;
        self.len = at;
        self.push = false;
        self.eor = false;
        rest
    }
}
