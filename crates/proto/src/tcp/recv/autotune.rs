//! Buffers that follow the path: the receive buffer is sized by what the application takes in a round trip (dynamic right-sizing,
//! Linux's `tcp_rcv_space_adjust`), the send buffer by the congestion window (`tcp_sndbuf_expand`).
//!
//! The receiver's own idea of the round trip: by timestamps the age of the echo that a full-sized segment brings, without them the
//! time in which a window's worth arrives. State is kept only for connections that receive in bulk.

mod connection;

use crate::time::nanos;
use crate::{Config, Instant};
use core::time::Duration;
use wire::SeqNum;

/// A connection that has received less needs no larger buffer than it begins with (Linux: ten segments).
const BULK: u64 = 10 * 1460;
/// The congestion window is taken to be this many segments at least (Linux's `TCP_INIT_CWND`).
const SEGMENTS_MIN: u32 = 10;
/// Send buffer that does for round trips below `tcp_rcvbuf_low_rtt`, bytes: more would only cool the caches.
const NEAR: u32 = 262_144;

/// Linux's `MAX_TCP_HEADER` with `skb_shared_info`, and its `sk_buff`, on a 64-bit machine.
const HEADROOM: u32 = 576;
const DESCRIPTOR: u32 = 256;

/// What is known of a receiver's rounds.
#[derive(Debug)]
pub(crate) struct Tuner {
    /// Round-trip time, nanoseconds; 0: unknown.
    rtt: u64,
    /// The window that opened at `began` is used up with this.
    until: SeqNum,
    began: Instant,
    /// Echo of the last sample.
    last_tsecr: u32,
    /// Most bytes the application took in a round trip.
    space: u32,
    /// Since then, and from there on, is measured what the application takes.
    since: Instant,
    copied: SeqNum,
}

impl Tuner {
    /// Round trip and most bytes taken in one, as far as they are known.
    pub(crate) fn measured(&self) -> (Option<Duration>, Option<u32>) {
        ((self.rtt > 0).then(|| Duration::from_nanos(self.rtt)), Some(self.space))
    }

    fn new(now: Instant, copied: SeqNum, until: SeqNum) -> Tuner {
        Tuner { rtt: 0, until, began: now, last_tsecr: 0, space: BULK as u32, since: now, copied }
    }

    /// By the window: only the least counts, for the peer may pause.
    fn sample_window(&mut self, now: Instant, rcv_nxt: SeqNum, edge: SeqNum) {
        if rcv_nxt.before(self.until) {
            return;
        }
        let sample = now.nanos_since(self.began).max(1_000);
        if self.rtt == 0 || sample < self.rtt {
            self.rtt = sample;
        }
        (self.until, self.began) = (edge, now);
    }

    /// By timestamps. `prompt`: nothing waited to be read.
    fn sample_echo(&mut self, tsecr: u32, age: Duration, prompt: bool) {
        let age = nanos(age);
        if tsecr == core::mem::replace(&mut self.last_tsecr, tsecr) || age == 0 {
            return;
        }
        if self.rtt == 0 || age < self.rtt {
            self.rtt = age;
        } else if prompt {
            self.rtt = self.rtt - self.rtt / 8 + age / 8;
        }
    }

    /// The window that `taken` bytes in the last round trip ask for: twice as much, as the peer learns of it a round trip later, and
    /// as much again as its slow start would double its rate; for short round trips less, in proportion.
    fn window_for(&self, taken: u32, config: &Config) -> u64 {
        let window = 2 * u64::from(taken);
        let (rtt, low) = (self.rtt / 1_000, u64::from(config.tcp_rcvbuf_low_rtt));
        if rtt < low {
            return window + window * rtt / low;
        }
        window + 2 * window * u64::from(taken.saturating_sub(self.space)) / u64::from(self.space.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn tuner() -> Tuner {
        Tuner::new(at(0), SeqNum(0), SeqNum(65_536))
    }

    #[test]
    fn without_timestamps_a_round_is_a_window_and_the_shortest_counts() {
        let mut tuner = tuner();
        tuner.sample_window(at(70), SeqNum(65_535), SeqNum(120_000));
        assert_eq!(tuner.rtt, 0, "a byte is missing");
        for (now, rcv_nxt, edge, rtt) in
            [(100, 65_536, 131_072, 100), (250, 131_072, 200_000, 100), (330, 200_001, 260_000, 80)]
        {
            tuner.sample_window(at(now), SeqNum(rcv_nxt), SeqNum(edge));
            assert_eq!(tuner.rtt / 1_000_000, rtt, "at {now}");
        }
    }

    #[test]
    fn an_echo_is_a_sample_once_and_smoothed_unless_it_is_less() {
        let mut tuner = tuner();
        let ms = Duration::from_millis;
        for (tsecr, age, prompt, rtt) in [
            (1, 80, true, 80),
            (1, 10, true, 80),
            (2, 160, true, 90),
            (3, 200, false, 90),
            (4, 40, false, 40),
            (5, 0, true, 40),
        ] {
            tuner.sample_echo(tsecr, ms(age), prompt);
            assert_eq!(tuner.measured().0, Some(ms(rtt)), "echo {tsecr} of {age} ms");
        }
    }

    #[test]
    fn the_window_is_twice_what_was_taken_and_follows_slow_start() {
        let config = Config::default();
        let mut tuner = tuner();
        tuner.space = 50_000;
        tuner.rtt = 100_000_000;
        assert_eq!(tuner.window_for(50_000, &config), 100_000);
        assert_eq!(
            tuner.window_for(100_000, &config),
            200_000 + 400_000,
            "twice as much as in the round before"
        );
        tuner.rtt = 250_000;
        assert_eq!(
            tuner.window_for(100_000, &config),
            200_000 + 50_000,
            "a quarter of the low round-trip time"
        );
    }
}
