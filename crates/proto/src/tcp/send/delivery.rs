//! Delivery rate: a sample per acknowledgment (draft-ietf-ccwg-bbr §4.1, as in Linux's `tcp_rate`).
//!
//! A segment records how much was delivered when it was sent, and when. Its acknowledgment tells
//! how much was delivered since. The divisor is the longer of the times that sending and
//! acknowledging took, so that neither bursts nor compressed acknowledgments feign a rate. Samples
//! taken while the application had nothing to send are marked: they are lower bounds.
//!
//! A sample also has the data in flight and lost when the segment left. Loss rates are computed
//! from these.

use crate::Instant;
use core::time::Duration;
use wire::SeqNum;

/// State at the transmission of a segment. Times are microseconds modulo 2³².
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// Bytes delivered before it was sent, modulo 2³².
    delivered: u32,
    /// Time of the last delivery.
    delivered_at: u32,
    /// Time when the first segment of its flight was sent.
    first_sent_at: u32,
    /// Bytes marked lost before it was sent, modulo 2³².
    lost: u32,
    /// Bytes in flight including it, and [`APP_LIMITED`].
    tx_in_flight: u32,
}

const _: () = assert!(size_of::<Snapshot>() <= 20);

/// The application may have limited the rate. (No flight has this many bytes or lasts this many
/// microseconds.)
const APP_LIMITED: u32 = 1 << 31;

impl Snapshot {
    fn app_limited(&self) -> bool {
        self.tx_in_flight & APP_LIMITED != 0
    }

    fn tx_in_flight(&self) -> u32 {
        self.tx_in_flight & !APP_LIMITED
    }
}

/// A measured rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// Bytes.
    delivered: u32,
    /// Duration in microseconds; not zero.
    micros: u32,
    /// The application, not the path, may have limited it.
    pub(crate) app_limited: bool,
}

impl Rate {
    /// Returns bytes per second.
    pub(crate) fn per_second(&self) -> u64 {
        u64::from(self.delivered) * 1_000_000 / u64::from(self.micros.max(1))
    }

    /// Returns whether it is at least as high as another rate, without a division.
    fn is_at_least(&self, other: &Rate) -> bool {
        u64::from(self.delivered) * u64::from(other.micros)
            >= u64::from(other.delivered) * u64::from(self.micros)
    }
}

/// Result of an acknowledgment, by the segment sent last among those it acknowledges (RS of the
/// draft). All quantities are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateSample {
    /// Bytes acknowledged, cumulatively or not.
    pub(in crate::tcp) newly_acked: u32,
    /// Number of pieces, each sent as one.
    pub(in crate::tcp) runs: u8,
    /// Bytes delivered in all, modulo 2³²: now, and when the segment was sent.
    pub(in crate::tcp) total: u32,
    pub(in crate::tcp) prior_delivered: u32,
    /// Duration of the difference in microseconds; 0 if unknown.
    pub(in crate::tcp) micros: u32,
    /// The application, not the path, may have limited it.
    pub(in crate::tcp) app_limited: bool,
    /// Bytes in flight when the segment was sent, including it.
    pub(in crate::tcp) tx_in_flight: u32,
    /// Bytes marked lost since then.
    pub(in crate::tcp) lost: u32,
    /// Time since its transmission, if it was sent once.
    pub(in crate::tcp) rtt: Option<Duration>,
}

impl RateSample {
    pub(crate) fn delivered(&self) -> u32 {
        self.total.wrapping_sub(self.prior_delivered)
    }

    pub(crate) fn rate(&self) -> Option<Rate> {
        let (delivered, micros, app_limited) = (self.delivered(), self.micros, self.app_limited);
        (micros > 0).then_some(Rate { delivered, micros, app_limited })
    }
}

/// A segment that was just marked lost, and the data lost by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LostSegment {
    pub(in crate::tcp) seq: SeqNum,
    /// Bytes.
    pub(in crate::tcp) len: u32,
    /// Bytes in flight when it was sent, and lost since then, both including it.
    pub(in crate::tcp) tx_in_flight: u32,
    pub(in crate::tcp) lost: u32,
    pub(in crate::tcp) app_limited: bool,
    /// Bytes delivered in all, modulo 2³².
    pub(in crate::tcp) total: u32,
}

/// The part of the estimator that outlives a [`Flight`].
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    /// Bytes acknowledged, modulo 2³².
    delivered: u32,
    /// Last reported sample. An app-limited one is reported only if it is higher than the last
    /// other one. Bytes, and microseconds (0: none) with [`APP_LIMITED`].
    best: (u32, u32),
}

const _: () = assert!(size_of::<Delivery>() <= 12);

/// The part of the estimator that exists while data is queued. Times are microseconds modulo 2³²,
/// as in a [`Snapshot`].
#[derive(Debug)]
pub(in crate::tcp) struct Flight {
    /// Bytes marked lost, modulo 2³².
    lost: u32,
    delivered_at: u32,
    first_sent_at: u32,
    /// While `app_limited`: the value of [`Delivery::delivered`] from which on no packet was sent
    /// app-limited (C.app_limited of the rate-sample draft).
    app_limited_until: u32,
    /// Bytes newly acknowledged, and of the segment sent last among them: its time and its
    /// snapshot.
    news: u32,
    newest_sent_at: u32,
    newest: Snapshot,
    newest_once: bool,
    /// Number of runs in `news`; 255: at least so many.
    runs: u8,
    app_limited: bool,
}

/// The segment of a sample: its transmission in microseconds modulo 2³², and the bytes marked lost
/// by now.
struct Newest {
    sent_at: u32,
    once: bool,
    then: Snapshot,
    lost: u32,
}

impl Flight {
    /// The snapshot of a connection that has delivered nothing.
    pub(in crate::tcp) const FIRST: Flight = Flight {
        lost: 0,
        delivered_at: 0,
        first_sent_at: 0,
        app_limited_until: 0,
        news: 0,
        newest_sent_at: 0,
        newest: Snapshot { delivered: 0, delivered_at: 0, first_sent_at: 0, lost: 0, tx_in_flight: 0 },
        newest_once: false,
        runs: 0,
        app_limited: true,
    };

    /// Begins a flight: the next segment is sent with nothing in flight.
    pub(in crate::tcp) fn begin(&mut self, now: Instant) {
        self.first_sent_at = micros(now);
        self.delivered_at = micros(now);
    }

    /// Returns whether rate samples of data sent now are marked app-limited.
    pub(in crate::tcp) fn is_app_limited(&self) -> bool {
        self.app_limited
    }

    pub(in crate::tcp) fn clear_app_limited(&mut self) {
        self.app_limited = false;
    }

    /// Returns the time of the last delivery, or of the start of the flight, at most `now`.
    pub(in crate::tcp) fn delivered_at(&self, now: Instant) -> Instant {
        let age = u64::from(micros(now).wrapping_sub(self.delivered_at));
        Instant::from_nanos(now.as_nanos().saturating_sub(age * 1000))
    }

    /// Notes a lost segment. `delivered` bytes were acknowledged in all.
    pub(in crate::tcp) fn on_lost(
        &mut self,
        delivered: u32,
        (seq, len): (SeqNum, u32),
        snapshot: &Snapshot,
    ) -> LostSegment {
        self.lost = self.lost.wrapping_add(len);
        LostSegment {
            seq,
            len,
            tx_in_flight: snapshot.tx_in_flight(),
            lost: self.lost.wrapping_sub(snapshot.lost),
            app_limited: snapshot.app_limited(),
            total: delivered,
        }
    }

    /// Returns whether something was acknowledged since the last sample.
    #[inline]
    pub(in crate::tcp) fn has_news(&self) -> bool {
        self.news > 0
    }

    /// Returns the bytes, and the number of their runs.
    pub(in crate::tcp) fn news(&self) -> (u32, u8) {
        (self.news, self.runs)
    }

    /// Returns how much had been delivered when the last sent of the newly acknowledged segments
    /// left.
    pub(in crate::tcp) fn delivered_before_newest(&self) -> Option<u32> {
        self.has_news().then_some(self.newest.delivered)
    }

    /// Notes the first acknowledgment of a segment.
    fn note(&mut self, bytes: u32, sent_at: Instant, once: bool, snapshot: &Snapshot) {
        let sent_at = micros(sent_at);
        if self.news == 0 || !is_before(sent_at, self.newest_sent_at) {
            (self.newest_sent_at, self.newest, self.newest_once) = (sent_at, *snapshot, once);
        }
        self.news = self.news.saturating_add(bytes);
        self.runs = self.runs.saturating_add(1);
    }
}

impl Delivery {
    /// Begins a flight of data that only the application delayed: everything before is
    /// acknowledged.
    pub(in crate::tcp) fn new_flight(&self) -> Flight {
        Flight { app_limited_until: self.delivered, ..Flight::FIRST }
    }

    /// Returns the snapshot of a segment that is sent now. `in_flight` includes it.
    pub(in crate::tcp) fn snapshot(&self, flight: &Flight, in_flight: u32) -> Snapshot {
        Snapshot {
            delivered: self.delivered,
            delivered_at: flight.delivered_at,
            first_sent_at: flight.first_sent_at,
            lost: flight.lost,
            tx_in_flight: in_flight.min(APP_LIMITED - 1) | if flight.app_limited { APP_LIMITED } else { 0 },
        }
    }

    /// Marks the connection app-limited until the `in_flight` bytes are delivered: nothing waits
    /// although the window has room.
    pub(in crate::tcp) fn set_app_limited(&self, flight: &mut Flight, in_flight: u32) {
        flight.app_limited = true;
        flight.app_limited_until = self.delivered.wrapping_add(in_flight);
    }

    /// Notes the first acknowledgment of a segment (cumulatively or by SACK). It was last sent at
    /// `sent_at`, and only then if `once`.
    pub(super) fn on_delivered(
        &mut self,
        flight: &mut Flight,
        (bytes, sent_at, once): (u32, Instant, bool),
        snapshot: &Snapshot,
    ) {
        self.delivered = self.delivered.wrapping_add(bytes);
        flight.note(bytes, sent_at, once, snapshot);
    }

    /// Notes a delivery that no segment shows: a duplicate, or data behind other data.
    pub(in crate::tcp) fn delivered_besides(
        &mut self,
        flight: Option<&mut Flight>,
        now: Instant,
        bytes: u32,
    ) {
        self.delivered = self.delivered.wrapping_add(bytes);
        if let Some(flight) = flight {
            flight.delivered_at = micros(now);
            flight.app_limited &= !is_before(flight.app_limited_until, self.delivered);
        }
    }

    /// Takes back bytes that were counted before the present acknowledgment.
    pub(in crate::tcp) fn was_delivered_before(&mut self, flight: &mut Flight, bytes: u32, segment: u32) {
        self.delivered = self.delivered.wrapping_sub(bytes);
        flight.news = flight.news.saturating_sub(bytes);
        let runs = u8::try_from(bytes.div_ceil(segment.max(1))).unwrap_or(u8::MAX);
        flight.runs = flight.runs.saturating_sub(runs);
    }

    /// Returns the bytes acknowledged, cumulatively or not, modulo 2³².
    pub(in crate::tcp) fn delivered(&self) -> u32 {
        self.delivered
    }

    /// Returns whether nothing was acknowledged since the snapshot.
    pub(in crate::tcp) fn is_still_at(&self, then: &Snapshot) -> bool {
        self.delivered == then.delivered
    }

    /// Ends an acknowledgment and returns its sample. There is none without news, and no rate if
    /// less than `min_rtt` microseconds (0: unknown) have passed: the first transmission was
    /// acknowledged then, not the retransmission.
    pub(in crate::tcp) fn take_sample(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        min_rtt: u32,
    ) -> Option<RateSample> {
        let (newly_acked, runs) = (core::mem::take(&mut flight.news), core::mem::take(&mut flight.runs));
        if newly_acked == 0 {
            return None;
        }
        flight.delivered_at = micros(now);
        flight.first_sent_at = flight.newest_sent_at;
        flight.app_limited &= !is_before(flight.app_limited_until, self.delivered);
        let newest = Newest {
            sent_at: flight.newest_sent_at,
            once: flight.newest_once,
            then: flight.newest,
            lost: flight.lost,
        };
        Some(self.sample(now, min_rtt, (newly_acked, runs), &newest))
    }

    /// Returns the sample of a flight that was a single segment, sent once, like
    /// [`take_sample`](Self::take_sample).
    pub(in crate::tcp) fn sample_lone(
        &mut self,
        flight: &Flight,
        now: Instant,
        min_rtt: u32,
        (weight, sent_at): (u32, Instant),
        then: Snapshot,
    ) -> RateSample {
        self.delivered = self.delivered.wrapping_add(weight);
        let newest = Newest { sent_at: micros(sent_at), once: true, then, lost: flight.lost };
        self.sample(now, min_rtt, (weight, 1), &newest)
    }

    fn sample(
        &mut self,
        now: Instant,
        min_rtt: u32,
        (newly_acked, runs): (u32, u8),
        newest: &Newest,
    ) -> RateSample {
        let (now, sent_at, then) = (micros(now), newest.sent_at, &newest.then);
        let (sending, acknowledging) =
            (sent_at.wrapping_sub(then.first_sent_at), now.wrapping_sub(then.delivered_at));
        let micros = sending.max(acknowledging);
        // The difference of two truncated times may be one too small.
        let too_fast = u64::from(micros) + 1 < u64::from(min_rtt);
        let rtt = Duration::from_micros(now.wrapping_sub(sent_at).into());
        let sample = RateSample {
            newly_acked,
            runs,
            total: self.delivered,
            prior_delivered: then.delivered,
            micros: if too_fast { 0 } else { micros },
            app_limited: then.app_limited(),
            tx_in_flight: then.tx_in_flight(),
            lost: newest.lost.wrapping_sub(then.lost),
            rtt: newest.once.then_some(rtt),
        };
        if let Some(rate) = sample.rate() {
            let app_limited = if rate.app_limited { APP_LIMITED } else { 0 };
            // Which is larger is unpredictable, so this has no branch.
            let yields = rate.app_limited && self.best().is_some_and(|best| !rate.is_at_least(&best));
            self.best = if yields {
                self.best
            } else {
                (rate.delivered, rate.micros.min(APP_LIMITED - 1) | app_limited)
            };
        }
        sample
    }

    pub(crate) fn best(&self) -> Option<Rate> {
        let (delivered, micros) = (self.best.0, self.best.1 & !APP_LIMITED);
        (micros > 0).then_some(Rate { delivered, micros, app_limited: self.best.1 & APP_LIMITED != 0 })
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
    use alloc::vec::Vec;

    const MSS: u32 = 1000;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// Sends ten segments, one per 10 ms from 1000 ms on. They are acknowledged one per `gap` ms
    /// from 1100 ms on. Returns the rates of the samples.
    fn rates(gap: u64) -> Vec<u64> {
        let (mut delivery, mut flight) = (Delivery::default(), Flight::FIRST);
        flight.begin(at(1000));
        let sent: Vec<_> = (0..10).map(|n| (at(1000 + 10 * n), delivery.snapshot(&flight, MSS))).collect();
        let samples = sent.into_iter().zip(0..).map(|((sent_at, snapshot), n)| {
            delivery.on_delivered(&mut flight, (MSS, sent_at, true), &snapshot);
            delivery.take_sample(&mut flight, at(1100 + gap * n), 0).unwrap().rate().unwrap().per_second()
        });
        samples.collect()
    }

    /// The n-th acknowledgment: n segments in 100 ms and n − 1 gaps.
    #[test]
    fn the_rate_is_what_was_delivered_since_the_segment_left() {
        let expected: Vec<u64> = (1..=10).map(|n| n * 1_000_000 / (100 + 10 * (n - 1))).collect();
        assert_eq!(rates(10), expected);
    }

    /// All are acknowledged at once: the time of sending counts.
    #[test]
    fn compressed_acknowledgements_feign_no_rate() {
        let (mut delivery, mut flight) = (Delivery::default(), Flight::FIRST);
        flight.begin(at(0));
        let sent: Vec<_> = (0..10).map(|n| (at(50 * n), delivery.snapshot(&flight, MSS))).collect();
        for (sent_at, snapshot) in sent {
            delivery.on_delivered(&mut flight, (MSS, sent_at, true), &snapshot);
        }
        let sample = delivery.take_sample(&mut flight, at(451), 0).unwrap();
        assert_eq!((sample.delivered(), sample.micros), (10 * MSS, 451_000));
        // The next flight is sent over 200 ms and acknowledged in 2 ms.
        let sent: Vec<_> = (0..5).map(|n| (at(460 + 50 * n), delivery.snapshot(&flight, MSS))).collect();
        delivery.on_delivered(&mut flight, (MSS, sent[0].0, true), &sent[0].1);
        delivery.take_sample(&mut flight, at(660), 0).unwrap();
        for (sent_at, snapshot) in &sent[1..] {
            delivery.on_delivered(&mut flight, (MSS, *sent_at, true), snapshot);
        }
        let sample = delivery.take_sample(&mut flight, at(662), 0).unwrap();
        assert_eq!((sample.delivered(), sample.micros), (5 * MSS, 211_000));
    }

    #[test]
    fn an_app_limited_sample_is_marked_and_replaces_none_that_is_higher() {
        let (mut delivery, mut flight) = (Delivery::default(), Flight::FIRST);
        let mut exchange = |ms: u64, segments: u32, app_limited: bool| {
            flight.begin(at(ms));
            let snapshot = delivery.snapshot(&flight, segments * MSS);
            if app_limited {
                delivery.set_app_limited(&mut flight, segments * MSS);
            }
            delivery.on_delivered(&mut flight, (segments * MSS, at(ms), true), &snapshot);
            let sample = delivery.take_sample(&mut flight, at(ms + 100), 0).unwrap();
            (sample.app_limited, delivery.best().unwrap().per_second())
        };
        assert_eq!(exchange(0, 10, false), (true, 100_000), "the first is always app-limited");
        assert_eq!(
            exchange(200, 5, true),
            (false, 50_000),
            "marked is what is sent after the sender became app-limited"
        );
        assert_eq!(exchange(400, 2, true), (true, 50_000));
        assert_eq!(exchange(600, 8, true), (true, 80_000));
        assert_eq!(exchange(800, 3, false), (true, 80_000));
        assert_eq!(exchange(1000, 1, false), (false, 10_000));
    }

    #[test]
    fn faster_than_the_path_is_no_sample() {
        let (mut delivery, mut flight) = (Delivery::default(), Flight::FIRST);
        flight.begin(at(0));
        let snapshot = delivery.snapshot(&flight, MSS);
        delivery.on_delivered(&mut flight, (MSS, at(0), true), &snapshot);
        let sample = delivery.take_sample(&mut flight, at(9), 10_000).unwrap();
        assert_eq!((sample.rate(), sample.newly_acked), (None, MSS));
        assert_eq!(delivery.take_sample(&mut flight, at(20), 0), None, "nothing new");
    }

    /// Of ten segments the second and third are lost. Each sample has the data lost since its
    /// segment was sent, and the fourth acknowledgment reveals both losses. A retransmission gives
    /// no round trip.
    #[test]
    fn a_sample_tells_what_was_in_flight_and_what_of_it_was_lost() {
        let (mut delivery, mut flight) = (Delivery::default(), Flight::FIRST);
        flight.begin(at(0));
        let sent: Vec<_> = (1..=10).map(|n| delivery.snapshot(&flight, n * MSS)).collect();
        delivery.on_delivered(&mut flight, (MSS, at(0), true), &sent[0]);
        let first = delivery.take_sample(&mut flight, at(100), 0).unwrap();
        assert_eq!((first.tx_in_flight, first.lost, first.rtt), (MSS, 0, Some(Duration::from_millis(100))));
        let lost =
            [1, 2].map(|n| flight.on_lost(delivery.delivered(), (SeqNum(n * MSS), MSS), &sent[n as usize]));
        assert_eq!(
            lost.map(|segment| (segment.tx_in_flight, segment.lost)),
            [(2 * MSS, MSS), (3 * MSS, 2 * MSS)]
        );
        let again = delivery.snapshot(&flight, 8 * MSS);
        delivery.on_delivered(&mut flight, (MSS, at(0), true), &sent[3]);
        let fourth = delivery.take_sample(&mut flight, at(101), 0).unwrap();
        assert_eq!((fourth.tx_in_flight, fourth.lost, fourth.delivered()), (4 * MSS, 2 * MSS, 2 * MSS));
        delivery.on_delivered(&mut flight, (MSS, at(100), false), &again);
        let repeated = delivery.take_sample(&mut flight, at(200), 0).unwrap();
        assert_eq!((repeated.lost, repeated.rtt, repeated.prior_delivered), (0, None, MSS));
    }
}
