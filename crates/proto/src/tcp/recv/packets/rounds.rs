//! How the buffer grows: with what the application takes in a round trip as the receiver sees it (Linux's `tcp_rcv_space_adjust`,
//! `tcp_rcvbuf_grow`).

use super::PacketSpace;
use super::window::LARGEST;
use crate::tcp::recv::receiver_rtt::ReceiverRtt;
use crate::tcp::recv::window_space::RCVBUF_MAX;
use crate::{Config, Instant};
use wire::SeqNum;

/// What is known of a receiver's rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    /// Most bytes the application took in a round trip.
    space: u32,
    /// Number of the first byte of this round, and when it began.
    first: SeqNum,
    since: Instant,
    /// Number of the next byte the application reads.
    copied: SeqNum,
    pub(crate) rtt: ReceiverRtt,
}

/// What bounds the growth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    rcv_nxt: SeqNum,
    rmem_max: u32,
    low_rtt: u32,
    moderates: bool,
}

impl Growth {
    pub(crate) fn new(config: &Config, rcv_nxt: SeqNum) -> Growth {
        Growth {
            rcv_nxt,
            rmem_max: config.tcp_rmem[2].min(RCVBUF_MAX),
            low_rtt: config.tcp_rcvbuf_low_rtt,
            moderates: config.tcp_moderate_rcvbuf,
        }
    }
}

impl Rounds {
    pub(super) fn begin(&mut self, now: Instant, rcv_nxt: SeqNum, space: u32) {
        *self = Rounds { space, first: rcv_nxt, since: now, copied: rcv_nxt, ..Rounds::default() };
    }

    /// Most bytes taken in a round trip.
    pub(crate) fn space(&self) -> u32 {
        self.space
    }

    pub(crate) fn copied(&self) -> SeqNum {
        self.copied
    }

    pub(super) fn note_copied(&mut self, upto: SeqNum) {
        self.copied = upto;
    }

    pub(super) fn bound(&mut self, clamp: u32) {
        self.space = self.space.min(clamp);
    }
}

impl PacketSpace {
    /// The application has taken something. Once in a round trip the buffer is fitted to what it took.
    pub(super) fn adjust(&mut self, growth: &Growth) {
        let rounds = &mut self.rounds;
        if !rounds.rtt.has_passed(rounds.since, self.stamp) {
            return;
        }
        let taken = rounds.copied.since(rounds.first).cast_signed();
        let taken = taken.wrapping_sub(growth.rcv_nxt.since(rounds.copied).cast_signed());
        (rounds.first, rounds.since) = (rounds.copied, self.stamp);
        if i64::from(taken) > i64::from(rounds.space) {
            self.fit(taken.cast_unsigned(), growth);
        }
    }

    /// Twice what is taken in a round trip, as the peer learns of it a round trip late; and as much again as its slow start would double
    /// its rate, for short round trips less. Behind a gap the window must hold what came after it, too.
    pub(crate) fn fit(&mut self, taken: u32, growth: &Growth) {
        let before = core::mem::replace(&mut self.rounds.space, taken);
        if !growth.moderates || self.locked {
            return;
        }
        let window = u64::from(taken) << 1;
        let rtt = u64::from(self.rounds.rtt.micros());
        let more = if rtt < growth.low_rtt.into() {
            window * rtt / u64::from(growth.low_rtt)
        } else {
            (window << 1) * u64::from(taken.wrapping_sub(before)) / u64::from(before.max(1))
        };
        let beyond = self.out_of_order_end().map_or(0, |end| end.since(growth.rcv_nxt));
        let window = (window + more) as u32;
        let memory = (u64::from(window.wrapping_add(beyond)) << 8) / u64::from(self.ratio);
        let memory = memory.min(growth.rmem_max.into()) as u32;
        if memory > self.rcvbuf {
            self.rcvbuf = memory;
            self.clamp = (self.payload_of(memory.into()) as u32).min(LARGEST);
        }
    }
}
