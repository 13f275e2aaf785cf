//! CUBIC in segments, against what Linux's does.

use super::super::super::events::{acked, start};
use super::super::super::{Controller, RoundTrip};
use super::*;
use crate::Instant;
use core::time::Duration;
use wire::SeqNum;

const MSS: u32 = 1000;

/// An acknowledgement at `ms` up to `una`, sample and all.
fn ack(it: &mut Cubic<Segments>, times: (u64, u64), una: u32, nxt: u32, bytes: u32) {
    ack_paced(it, false, times, una, nxt, bytes);
}

fn ack_paced(it: &mut Cubic<Segments>, paced: bool, (ms, rtt): (u64, u64), una: u32, nxt: u32, bytes: u32) {
    let (una, nxt) = (SeqNum(una), SeqNum(nxt));
    let acked = Acked { una, nxt, ..acked(ms, bytes, MSS) };
    let rtt = Duration::from_millis(rtt);
    it.on_round_trip(&RoundTrip { now: acked.now, rtt, una, nxt, smss: MSS, paced });
    it.on_ack(&acked);
}

fn cubic(initial_window: u32) -> Cubic<Segments> {
    Cubic::new(&start(initial_window, u32::MAX))
}

fn loss(timeout: bool) -> Lost {
    Lost { in_flight: u32::MAX, smss: MSS, timeout, left: 0, again: false }
}

/// A loss leaves 717/1024 of the window in whole segments.
#[test]
fn a_loss_leaves_seven_tenths_of_the_window() {
    for (before, after) in [(10, 7), (13, 9), (20, 14), (3, 2), (2, 2)] {
        let mut it = cubic(before * MSS);
        it.on_loss(&loss(false));
        assert_eq!((it.cwnd(), it.ssthresh()), (after * MSS, after * MSS), "{before}");
    }
}

/// The last acknowledgement of slow start brings the window to ssthresh, and what is left of it counts in congestion avoidance:
/// before any loss a segment more for each 20.
#[test]
fn slow_start_hands_over_what_it_does_not_use() {
    let mut it = Cubic::<Segments>::new(&start(10 * MSS, 12 * MSS));
    it.on_ack(&acked(100, 2 * MSS, MSS));
    assert_eq!(it.cwnd(), 12 * MSS);
    it.on_ack(&acked(100, 19 * MSS, MSS));
    assert_eq!((it.cwnd(), it.avoidance.as_ref().unwrap().growth.per), (12 * MSS, 20));
    it.on_ack(&acked(101, MSS, MSS));
    assert_eq!(it.cwnd(), 13 * MSS);
}

/// Half a segment now and half a segment then are one.
#[test]
fn parts_of_segments_add_up() {
    let mut it = cubic(10 * MSS);
    it.on_ack(&acked(1, MSS / 2, MSS));
    assert_eq!(it.cwnd(), 10 * MSS);
    it.on_ack(&acked(2, MSS / 2, MSS));
    assert_eq!(it.cwnd(), 11 * MSS);
}

/// 20 segments that arrived in 200 ms are acknowledged two by two, 240 ms after they were sent: the ninth sample ends slow start.
#[test]
fn a_delay_that_grows_by_an_eighth_ends_slow_start() {
    let mut it = cubic(20 * MSS);
    it.slow_start.least_delay = 200_000;
    let mut una = 0;
    for n in 0..10 {
        una += 2 * MSS;
        ack(&mut it, (640 + n, 240), una, una + 30 * MSS, 2 * MSS);
        let ends_at = (n >= 8).then_some(36 * MSS);
        assert_eq!(it.ssthresh(), ends_at.unwrap_or(u32::MAX), "sample {}", n + 1);
    }
    assert_eq!(it.cwnd(), 36 * MSS);
}

/// Acknowledgements a millisecond apart for more than half of the least delay, and a millisecond for bursts; for all of it where pacing may
/// have spread the segments.
#[test]
fn a_train_of_half_the_delay_ends_slow_start() {
    for (paced, last, ssthresh) in [(false, 11, 27 * MSS), (true, 22, 38 * MSS)] {
        let mut it = cubic(16 * MSS);
        it.slow_start.least_delay = 20_000;
        let mut ended = None;
        for n in 0..30u32 {
            ack_paced(&mut it, paced, (n.into(), 20), (n + 1) * MSS, 40 * MSS, MSS);
            if it.ssthresh() < u32::MAX {
                ended.get_or_insert(n);
            }
        }
        assert_eq!((ended, it.ssthresh()), (Some(last), ssthresh), "paced: {paced}");
    }
}

/// A time-out forgets the plateau and the delay; a second within the recovery leaves ssthresh.
#[test]
fn a_timeout_forgets_the_path() {
    let mut it = cubic(10 * MSS);
    it.slow_start.least_delay = 5;
    it.on_loss(&loss(true));
    assert_eq!(
        (it.cwnd(), it.ssthresh(), it.avoidance.is_some(), it.slow_start.least_delay),
        (MSS, 7 * MSS, false, 0)
    );
    it.on_loss(&Lost { again: true, ..loss(true) });
    assert_eq!(it.ssthresh(), 7 * MSS);
}

/// The plateau of ten segments is left for seven; K is 1.96 s. The curve's distance from the plateau is rounded down to segments, so that
/// each is won early.
#[test]
fn the_window_comes_back_to_the_plateau() {
    let mut it = cubic(10 * MSS);
    it.on_loss(&loss(false));
    let mut ms = 0;
    while it.cwnd() < 10 * MSS {
        ms += 100;
        it.on_ack(&Acked { now: Instant::from_nanos(ms * 1_000_000), ..acked(0, it.cwnd(), MSS) });
    }
    assert_eq!(ms, 400);
}
