//! Detects packets that a capture has twice, as a capture on several interfaces of a router or
//! bridge has.

use crate::packet::Packet;
use core::time::Duration;
use std::collections::VecDeque;
use wire::{Flags, SeqNum};

/// Time within which a capture on several interfaces records a packet again.
pub(super) const COPY_WITHIN: Duration = Duration::from_millis(2);

/// Time within which the network delivers a packet a second time. A sender retransmits later
/// (Linux's minimum time-out is 200 ms), with another identification.
const DUPLICATE_WITHIN: Duration = Duration::from_millis(150);

/// Most packets between a packet and its copy. Linux passes packets on in batches of 8
/// (`gro_normal_batch`).
const BETWEEN: usize = 16;

/// The last packets of one side.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    seen: VecDeque<Seen>,
    /// True if two different packets in a row had the same identification, which then means
    /// nothing.
    is_ident_constant: bool,
}

/// The way in which a packet repeats an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// The capture recorded it twice.
    Copy,
    /// The network delivered it twice.
    Duplicate,
}

/// Properties that identify a copy.
#[derive(Clone, Debug)]
struct Seen {
    at: Duration,
    seq: SeqNum,
    ack: SeqNum,
    flags: Flags,
    window: u16,
    text_len: u32,
    ident: u16,
    tsval: Option<u32>,
}

impl Recent {
    /// Returns how the packet repeats an earlier one, or `None` if it is new. `next`: the sequence
    /// number after the last captured one.
    pub(super) fn again(&mut self, packet: &Packet<'_>, next: Option<SeqNum>) -> Option<Again> {
        let seen = Seen::of(packet);
        while self.seen.front().is_some_and(|first| seen.at.abs_diff(first.at) > DUPLICATE_WITHIN) {
            self.seen.pop_front();
        }
        if let Some(last) = self.seen.back()
            && seen.ident != 0
            && last.ident == seen.ident
            && !last.is_same(&seen)
            && !last.is_part_of(&seen)
            && !seen.is_part_of(last)
        {
            self.is_ident_constant = true;
        }
        let is_new = next.is_none_or(|next| packet.end_seq().after(next));
        let again = self.find(&seen).or_else(|| (!is_new && self.has_parts_of(&seen)).then_some(Again::Copy));
        if again.is_none() {
            if self.seen.len() == BETWEEN {
                self.seen.pop_front();
            }
            self.seen.push_back(seen);
        }
        again
    }

    fn find(&self, seen: &Seen) -> Option<Again> {
        let is_ident_known = seen.ident != 0 && !self.is_ident_constant;
        // Without an identification, as in IPv6, repeated data behind other data may be
        // retransmitted, and a packet without data may be another duplicate acknowledgement.
        let candidates = match (is_ident_known, seen.text_len) {
            (false, 0) => 0,
            (false, _) => 1,
            (true, _) => BETWEEN,
        };
        let earlier = self.seen.iter().rev().take(candidates).find(|earlier| earlier.is_same(seen))?;
        match earlier.at.abs_diff(seen.at) {
            since if since <= COPY_WITHIN => Some(Again::Copy),
            _ if is_ident_known => Some(Again::Duplicate),
            _ => None,
        }
    }

    /// Returns whether one interface merged segments and another did not: the identifications
    /// continue from that of the first part.
    fn has_parts_of(&self, seen: &Seen) -> bool {
        seen.ident != 0
            && !self.is_ident_constant
            && self.seen.iter().any(|earlier| {
                let is_one_time = earlier.tsval == seen.tsval && earlier.ack == seen.ack;
                let is_soon = earlier.at.abs_diff(seen.at) <= COPY_WITHIN;
                is_one_time && is_soon && (earlier.is_part_of(seen) || seen.is_part_of(earlier))
            })
    }

    /// Returns the bytes of heap memory that it takes.
    pub(super) fn footprint(&self) -> usize {
        self.seen.capacity() * size_of::<Seen>()
    }
}

impl Seen {
    fn of(packet: &Packet<'_>) -> Seen {
        Seen {
            at: packet.at,
            seq: packet.seq,
            ack: packet.ack,
            flags: packet.flags,
            window: packet.window,
            text_len: packet.text_len,
            ident: packet.ident,
            tsval: packet.options.timestamps.map(|timestamps| timestamps.tsval),
        }
    }

    /// Returns whether this segment is one of those that were merged into `whole`.
    fn is_part_of(&self, whole: &Seen) -> bool {
        let (offset, before) = (self.seq.since(whole.seq), self.ident.wrapping_sub(whole.ident));
        self.text_len > 0
            && offset.checked_add(self.text_len).is_some_and(|end| end <= whole.text_len)
            && self.text_len < whole.text_len
            // All except the last have the same size.
            && u32::from(before) <= offset / self.text_len.min(offset.max(1))
            && (before == 0) == (offset == 0)
    }

    fn is_same(&self, other: &Seen) -> bool {
        (self.seq, self.ack, self.flags, self.window, self.text_len, self.ident, self.tsval)
            == (other.seq, other.ack, other.flags, other.window, other.text_len, other.ident, other.tsval)
    }
}
