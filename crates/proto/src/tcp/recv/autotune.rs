//! Buffers that follow the path: the receive buffer is sized by what the application takes in a round trip (dynamic right-sizing,
//! Linux's `tcp_rcv_space_adjust`), the send buffer by the congestion window (`tcp_sndbuf_expand`). State is kept only for connections
//! that receive in bulk.

mod connection;

use super::receiver_rtt::ReceiverRtt;
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
    rtt: ReceiverRtt,
    /// Most bytes the application took in a round trip.
    space: u32,
    /// Since then, and from there on, is measured what the application takes.
    since: Instant,
    copied: SeqNum,
}

impl Tuner {
    /// Round trip and most bytes taken in one, as far as they are known.
    pub(crate) fn measured(&self) -> (Option<Duration>, Option<u32>) {
        (self.rtt.get(), Some(self.space))
    }

    fn new(now: Instant, copied: SeqNum) -> Tuner {
        Tuner { rtt: ReceiverRtt::default(), space: BULK as u32, since: now, copied }
    }

    /// The window that `taken` bytes in the last round trip ask for: twice as much, as the peer learns of it a round trip later, and
    /// as much again as its slow start would double its rate; for short round trips less, in proportion.
    fn window_for(&self, taken: u32, config: &Config) -> u64 {
        let window = 2 * u64::from(taken);
        let (rtt, low) = (u64::from(self.rtt.micros()), u64::from(config.tcp_rcvbuf_low_rtt));
        if rtt < low {
            return window + window * rtt / low;
        }
        window + 2 * window * u64::from(taken.saturating_sub(self.space)) / u64::from(self.space.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_twice_what_was_taken_and_follows_slow_start() {
        let config = Config::default();
        let mut tuner = Tuner::new(Instant::ZERO, SeqNum(0));
        tuner.space = 50_000;
        tuner.rtt.sample_echo((1, Duration::from_millis(100)), true, true);
        assert_eq!(tuner.window_for(50_000, &config), 100_000);
        assert_eq!(
            tuner.window_for(100_000, &config),
            200_000 + 400_000,
            "twice as much as in the round before"
        );
        tuner.rtt.sample_echo((2, Duration::from_micros(250)), true, true);
        assert_eq!(
            tuner.window_for(100_000, &config),
            200_000 + 50_000,
            "a quarter of the low round-trip time"
        );
    }
}
