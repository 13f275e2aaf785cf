//! Packets that a capture has twice, as one on several interfaces has those that a router or a bridge forwards.

use crate::packet::Packet;
use core::time::Duration;
use std::collections::VecDeque;
use wire::{Flags, SeqNum};

/// A capture on several interfaces sees a packet again within this time; no sender repeats an IPv4 identification so soon.
pub(super) const COPY_WITHIN: Duration = Duration::from_millis(2);

/// Packets that may lie between one and its copy: Linux passes packets on in batches of 8 (`gro_normal_batch`).
const BETWEEN: usize = 16;

/// What one side sent last.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent(VecDeque<Seen>);

/// By what a copy is known.
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
    /// Is it one of them once more?
    pub(super) fn is_copy(&mut self, packet: &Packet<'_>) -> bool {
        let seen = Seen::of(packet);
        while self.0.front().is_some_and(|first| seen.at.abs_diff(first.at) > COPY_WITHIN) {
            self.0.pop_front();
        }
        // Without an identification, as in IPv6, text that comes again behind others may be retransmitted, and what has no text may be another
        // duplicate acknowledgement.
        let candidates = match (seen.ident, seen.text_len) {
            (0, 0) => 0,
            (0, _) => 1,
            _ => BETWEEN,
        };
        let is_copy = self.0.iter().rev().take(candidates).any(|earlier| earlier.is_same(&seen));
        if !is_copy {
            if self.0.len() == BETWEEN {
                self.0.pop_front();
            }
            self.0.push_back(seen);
        }
        is_copy
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

    fn is_same(&self, other: &Seen) -> bool {
        self.at.abs_diff(other.at) <= COPY_WITHIN
            && (self.seq, self.ack, self.flags, self.window, self.text_len, self.ident, self.tsval)
                == (other.seq, other.ack, other.flags, other.window, other.text_len, other.ident, other.tsval)
    }
}
