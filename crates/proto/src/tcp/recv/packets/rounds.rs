//! How the buffer grows: with what the application takes in a round trip as the receiver sees it (Linux's `tcp_rcv_space_adjust`,
//! `tcp_rcvbuf_grow`, `tcp_rcv_rtt_measure`).

use super::PacketSpace;
use crate::{Config, Instant};
use core::time::Duration;
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
    /// Eight times the round trip, µs; 0: unknown.
    rtt_8: u32,
    /// The window that opened at `began` is used up with this; `None`: none is measured.
    until: SeqNum,
    began: Option<Instant>,
    /// Echo of the last sample.
    last_tsecr: u32,
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
            rmem_max: config.tcp_rmem[2],
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

    /// The round trip; `None`: unknown.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        (self.rtt_8 > 0).then(|| Duration::from_micros((self.rtt_8 >> 3).into()))
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

    /// By the window: only the least counts, for the peer may pause. `advertised`: where the window last advertised ends, from `rcv_nxt` on.
    pub(crate) fn sample_window(&mut self, now: Instant, rcv_nxt: SeqNum, advertised: u32) {
        if let Some(began) = self.began {
            if rcv_nxt.before(self.until) {
                return;
            }
            let sample = bounded(now.since(began)).max(1) << 3;
            if self.rtt_8 == 0 || sample < self.rtt_8 {
                self.rtt_8 = sample;
            }
        }
        (self.until, self.began) = (rcv_nxt + advertised, Some(now));
    }

    /// By a timestamp that is echoed for the first time; `full`: with a full-sized segment. `age`: of the echo.
    pub(crate) fn sample_echo(&mut self, (tsecr, age): (u32, Option<Duration>), full: bool, rcv_nxt: SeqNum) {
        if tsecr == core::mem::replace(&mut self.last_tsecr, tsecr) || !full {
            return;
        }
        let Some(sample) = age.map(bounded).filter(|sample| *sample > 0) else { return };
        if self.rtt_8 == 0 || sample << 3 < self.rtt_8 {
            self.rtt_8 = sample << 3;
        } else if rcv_nxt == self.copied {
            self.rtt_8 = self.rtt_8 - (self.rtt_8 >> 3) + sample;
        }
    }
}

/// Microseconds of a round trip, as many as eight times that can be counted.
fn bounded(rtt: Duration) -> u32 {
    rtt.as_micros().min(u128::from(u32::MAX >> 3)) as u32
}

impl PacketSpace {
    /// The application has taken something. Once in a round trip the buffer is fitted to what it took.
    pub(super) fn adjust(&mut self, growth: &Growth) {
        let rounds = &mut self.rounds;
        if rounds.rtt_8 == 0 || self.stamp.since(rounds.since).as_micros() < u128::from(rounds.rtt_8 >> 3) {
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
        let rtt = u64::from(self.rounds.rtt_8 >> 3);
        let more = if rtt < growth.low_rtt.into() {
            window * rtt / u64::from(growth.low_rtt)
        } else {
            (window << 1) * u64::from(taken.wrapping_sub(before)) / u64::from(before.max(1))
        };
        let beyond = self.out_of_order_end().map_or(0, |end| end.since(growth.rcv_nxt));
        let window = (window + more) as u32;
        let memory = (u64::from(window.wrapping_add(beyond)) << 8) / u64::from(self.ratio);
        let memory = (memory as u32).min(growth.rmem_max);
        if memory > self.rcvbuf {
            self.rcvbuf = memory;
            self.clamp = self.payload_of(memory.into()) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An hour, whose eightfold has no room in a count of microseconds.
    #[test]
    fn a_round_trip_may_take_very_long() {
        let mut rounds = Rounds::default();
        for tsecr in 1..4 {
            rounds.sample_echo((tsecr, Some(Duration::from_secs(3600))), true, SeqNum(0));
        }
        assert_eq!(rounds.rtt(), Some(Duration::from_micros(u64::from(u32::MAX >> 3))));
        rounds.sample_window(Instant::ZERO, SeqNum(0), 1);
        rounds.sample_window(Instant::ZERO + Duration::from_secs(537), SeqNum(1), 1);
        assert!(rounds.rtt() > Some(Duration::from_secs(500)), "not what is left of it");
    }
}
