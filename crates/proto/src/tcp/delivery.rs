//! How fast the path delivers: a sample per acknowledgement (draft-ietf-ccwg-bbr §4.1, as Linux's `tcp_rate`).
//!
//! Every segment remembers how much was delivered, and when, at the time it was sent. Its acknowledgement then tells how much was
//! delivered while it was on its way; the longer of the time it took to send that and the time it took to acknowledge it is the
//! divisor, so that neither a burst nor compressed acknowledgements feign a rate. Samples taken while the application had nothing
//! to send are marked: they are lower bounds.

use crate::Instant;
use core::time::Duration;

/// What a segment remembers. Moments are microseconds modulo 2³².
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// Bytes delivered before it was sent, modulo 2³².
    delivered: u32,
    /// When the last of them was.
    delivered_at: u32,
    /// When the first segment of the flight it belongs to was sent.
    first_sent_at: u32,
    app_limited: bool,
}

const _: () = assert!(size_of::<Snapshot>() <= 16);

/// A rate that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateSample {
    /// Bytes.
    pub(crate) delivered: u32,
    /// Microseconds they took; not zero.
    pub(crate) micros: u32,
    /// The application, not the path, may have limited it.
    pub(crate) app_limited: bool,
}

impl RateSample {
    /// Bytes per second.
    pub(crate) fn rate(&self) -> u64 {
        u64::from(self.delivered) * 1_000_000 / u64::from(self.micros.max(1))
    }
}

/// The connection's side of it. Moments are microseconds modulo 2³², as in a [`Snapshot`].
#[derive(Debug)]
pub(crate) struct Delivery {
    /// Bytes acknowledged, modulo 2³².
    delivered: u32,
    delivered_at: u32,
    first_sent_at: u32,
    /// The value of `delivered` beyond which nothing was sent in a lull; counts while `lull`.
    lull_end: u32,
    /// Of the segments newly acknowledged the one sent last, if `news`: when, and its snapshot.
    newest_sent_at: u32,
    newest: Snapshot,
    lull: bool,
    news: bool,
    /// The last sample worth telling: one of a lull only if none without is lower.
    best: Option<RateSample>,
}

const _: () = assert!(size_of::<Delivery>() <= 52);

impl Delivery {
    pub(super) fn new() -> Delivery {
        Delivery {
            delivered: 0,
            delivered_at: 0,
            first_sent_at: 0,
            // What is sent first waits for nothing but the application.
            lull_end: 1,
            lull: true,
            newest_sent_at: 0,
            newest: Snapshot::default(),
            news: false,
            best: None,
        }
    }

    /// The next segment is sent with nothing in flight.
    pub(super) fn begin_flight(&mut self, now: Instant) {
        self.first_sent_at = micros(now);
        self.delivered_at = micros(now);
    }

    /// For a segment that is sent now.
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.lull,
        }
    }

    /// Nothing more waits to be sent though the window has room; so much is in flight, bytes.
    pub(super) fn lull(&mut self, in_flight: u32) {
        self.lull = true;
        self.lull_end = self.delivered.wrapping_add(in_flight);
    }

    /// A segment of `bytes`, last sent at `sent_at`, is acknowledged for the first time (cumulatively or by SACK).
    pub(super) fn on_delivered(&mut self, bytes: u32, sent_at: Instant, snapshot: Snapshot) {
        self.delivered = self.delivered.wrapping_add(bytes);
        let sent_at = micros(sent_at);
        if !self.news || !is_before(sent_at, self.newest_sent_at) {
            (self.newest_sent_at, self.newest) = (sent_at, snapshot);
        }
        self.news = true;
    }

    #[cfg(test)]
    pub(super) fn delivered(&self) -> u32 {
        self.delivered
    }

    /// The acknowledgement has been worked through. No sample without news, nor where less than `min_rtt` has passed: then what was
    /// acknowledged had been sent before the repetition that seems to be meant.
    pub(super) fn take_sample(&mut self, now: Instant, min_rtt: Option<Duration>) -> Option<RateSample> {
        if !std::mem::take(&mut self.news) {
            return None;
        }
        let (now, sent_at, then) = (micros(now), self.newest_sent_at, self.newest);
        self.delivered_at = now;
        self.first_sent_at = sent_at;
        self.lull &= !is_before(self.lull_end, self.delivered);
        let (sending, acknowledging) =
            (sent_at.wrapping_sub(then.first_sent_at), now.wrapping_sub(then.delivered_at));
        let micros = sending.max(acknowledging);
        // The difference of two truncated moments may lack one.
        let too_fast = |least: Duration| u128::from(micros) + 1 < least.as_micros();
        if micros == 0 || min_rtt.is_some_and(too_fast) {
            return None;
        }
        let sample = RateSample {
            delivered: self.delivered.wrapping_sub(then.delivered),
            micros,
            app_limited: then.app_limited,
        };
        if !sample.app_limited || self.best.is_none_or(|best| sample.rate() >= best.rate()) {
            self.best = Some(sample);
        }
        Some(sample)
    }

    pub(crate) fn best(&self) -> Option<RateSample> {
        self.best
    }
}

fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

fn micros(at: Instant) -> u32 {
    (at.as_nanos() / 1000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// Ten segments, one per 10 ms from 1000 ms on; acknowledged one per `gap` ms from 1100 ms on. Returns the samples' rates.
    fn rates(gap: u64) -> Vec<u64> {
        let mut delivery = Delivery::new();
        delivery.begin_flight(at(1000));
        let sent: Vec<_> = (0..10).map(|n| (at(1000 + 10 * n), delivery.snapshot())).collect();
        let samples = sent.into_iter().zip(0..).map(|((sent_at, snapshot), n)| {
            delivery.on_delivered(MSS, sent_at, snapshot);
            delivery.take_sample(at(1100 + gap * n), None).unwrap().rate()
        });
        samples.collect()
    }

    /// The n-th acknowledgement: n segments in 100 ms and n − 1 gaps.
    #[test]
    fn the_rate_is_what_was_delivered_since_the_segment_left() {
        let expected: Vec<u64> = (1..=10).map(|n| n * 1_000_000 / (100 + 10 * (n - 1))).collect();
        assert_eq!(rates(10), expected);
    }

    /// All acknowledged within a moment: the time it took to send them counts.
    #[test]
    fn compressed_acknowledgements_feign_no_rate() {
        let mut delivery = Delivery::new();
        delivery.begin_flight(at(0));
        let sent: Vec<_> = (0..10).map(|n| (at(50 * n), delivery.snapshot())).collect();
        for (sent_at, snapshot) in sent {
            delivery.on_delivered(MSS, sent_at, snapshot);
        }
        let sample = delivery.take_sample(at(451), None).unwrap();
        assert_eq!((sample.delivered, sample.micros), (10 * MSS, 451_000));
        // The next flight, sent over 200 ms, acknowledged in 2 ms.
        let sent: Vec<_> = (0..5).map(|n| (at(460 + 50 * n), delivery.snapshot())).collect();
        delivery.on_delivered(MSS, sent[0].0, sent[0].1);
        delivery.take_sample(at(660), None).unwrap();
        for (sent_at, snapshot) in &sent[1..] {
            delivery.on_delivered(MSS, *sent_at, *snapshot);
        }
        let sample = delivery.take_sample(at(662), None).unwrap();
        assert_eq!((sample.delivered, sample.micros), (5 * MSS, 211_000));
    }

    #[test]
    fn a_sample_of_a_lull_is_marked_and_replaces_none_that_is_higher() {
        let mut delivery = Delivery::new();
        let mut exchange = |ms: u64, segments: u32, lull: bool| {
            delivery.begin_flight(at(ms));
            let snapshot = delivery.snapshot();
            if lull {
                delivery.lull(segments * MSS);
            }
            delivery.on_delivered(segments * MSS, at(ms), snapshot);
            let sample = delivery.take_sample(at(ms + 100), None).unwrap();
            (sample.app_limited, delivery.best().unwrap().rate())
        };
        assert_eq!(exchange(0, 10, false), (true, 100_000), "the first is always of a lull");
        assert_eq!(exchange(200, 5, true), (false, 50_000), "marked is what is sent after the lull began");
        assert_eq!(exchange(400, 2, true), (true, 50_000));
        assert_eq!(exchange(600, 8, true), (true, 80_000));
        assert_eq!(exchange(800, 3, false), (true, 80_000));
        assert_eq!(exchange(1000, 1, false), (false, 10_000));
    }

    #[test]
    fn faster_than_the_path_is_no_sample() {
        let mut delivery = Delivery::new();
        delivery.begin_flight(at(0));
        delivery.on_delivered(MSS, at(0), delivery.snapshot());
        assert_eq!(delivery.take_sample(at(9), Some(Duration::from_millis(10))), None);
        assert_eq!(delivery.take_sample(at(20), None), None, "nothing new");
    }
}
