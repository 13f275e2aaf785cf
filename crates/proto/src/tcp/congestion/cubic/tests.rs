//! CUBIC against the formulas of RFC 9438, computed here in floating point.

use super::super::events::{acked, idle as idle_for, start};
use super::*;
use alloc::vec::Vec;
use core::time::Duration;
use std::println;

const MSS: u32 = 1000;
const RTT_MS: u64 = 100;

fn cubic(segments: u32, ssthresh: u32) -> Cubic<Bytes> {
    Cubic::<Bytes>::new(&start(segments * MSS, ssthresh))
}

fn loss(cubic: &mut Cubic<Bytes>) {
    cubic.on_loss(&Lost { in_flight: cubic.cwnd, smss: MSS, timeout: false, left: 0, again: false });
}

/// W_cubic of RFC 9438 §4.2, in segments.
fn avoidance(cubic: &mut Cubic<Bytes>) -> &mut Avoidance<Bytes> {
    cubic.avoidance.get_or_insert_default()
}

fn w_cubic(w_max: f64, cwnd_epoch: f64, t: f64) -> f64 {
    let k = ((w_max - cwnd_epoch) / 0.4).cbrt();
    0.4 * (t - k).powi(3) + w_max
}

/// One window's acknowledgements, a segment each, spread over a round trip that begins at `ms`.
fn round(cubic: &mut Cubic<Bytes>, ms: u64) {
    let segments = u64::from(cubic.cwnd / MSS);
    for number in 0..segments {
        let now = Instant::from_nanos(ms * 1_000_000 + number * RTT_MS * 1_000_000 / segments);
        let srtt = Duration::from_millis(RTT_MS);
        cubic.on_ack(&Acked { now, srtt, ..acked(0, MSS, MSS) });
    }
}

#[test]
fn k_is_the_cube_root_of_the_distance() {
    for (segments, seconds) in [(0u32, 0f64), (30, 4.217_163), (300, 9.085_603), (30_000, 42.171_633)] {
        let k = f64::from(k_of::<Bytes>(segments * MSS, MSS)) / f64::from(1 << Bytes::TIME_BITS);
        assert!((k - seconds).abs() < 2e-6, "{segments} segments: {k}");
    }
    assert_eq!(Bytes::ticks(1_000_000_000), 1 << Bytes::TIME_BITS);
}

#[test]
fn the_window_follows_the_cubic_function() {
    let mut cubic = cubic(1000, 0);
    loss(&mut cubic);
    assert_eq!((cubic.cwnd, cubic.ssthresh, avoidance(&mut cubic).w_max), (700 * MSS, 700 * MSS, 1000 * MSS));
    for number in 0..180u64 {
        let expected = w_cubic(1000.0, 700.0, number as f64 / 10.0);
        let got = f64::from(cubic.cwnd) / f64::from(MSS);
        // The window moves towards where the function will be a round trip later, over that round trip.
        assert!((got - expected).abs() < expected * 0.005, "{number}: {got}, not {expected}");
        round(&mut cubic, number * RTT_MS);
    }
    let avoidance = avoidance(&mut cubic);
    assert_eq!(avoidance.w_cubic(u64::from(avoidance.k), MSS), u64::from(1000 * MSS), "the plateau at K");
    let twice = avoidance.w_cubic(2 * u64::from(avoidance.k), MSS);
    assert!(twice.abs_diff(u64::from(1300 * MSS)) < 5, "as far beyond as it was below: {twice}");
}

/// §4.3: where the windows are small Reno's estimate is ahead: 9/17 of a segment per round, a whole one from cwnd_prior on.
#[test]
fn small_windows_grow_as_renos() {
    let mut cubic = cubic(20, 0);
    loss(&mut cubic);
    assert_eq!(cubic.cwnd, 14 * MSS);
    let mut cwnds = Vec::new();
    // A round trip of 1 ms is nothing to the cubic function.
    for number in 0..30u64 {
        for _ in 0..cubic.cwnd / MSS {
            cubic.on_ack(&Acked { srtt: Duration::from_millis(1), ..acked(number, MSS, MSS) });
        }
        cwnds.push(f64::from(cubic.cwnd) / f64::from(MSS));
    }
    let below = cwnds.iter().position(|cwnd| *cwnd >= 20.0).unwrap();
    assert_eq!(below, 11, "(20 - 14) / (9/17) = 11.3 rounds: {cwnds:?}");
    let per_round = (cwnds[29] - cwnds[19]) / 10.0;
    assert!((0.95..=1.0).contains(&per_round), "{per_round}");
}

/// Average window in segments where every `period`th segment is lost: of ten cycles, once it has settled from `first`.
fn average_window(period: u64, rtt_ms: u64, first: f64) -> f64 {
    let mut cubic = cubic(first as u32, 0);
    loss(&mut cubic);
    let (mut nanos, mut counted_from, mut acks) = (0f64, 0f64, 0f64);
    let settling = (300_000 / period).clamp(10, 300);
    for cycle in 0..settling + 10 {
        if cycle == settling {
            (counted_from, acks) = (nanos, 0.0);
        }
        for _ in 0..period {
            nanos += rtt_ms as f64 * 1e6 * f64::from(MSS) / f64::from(cubic.cwnd);
            acks += 1.0;
            let (now, srtt) = (Instant::from_nanos(nanos as u64), Duration::from_millis(rtt_ms));
            cubic.on_ack(&Acked { now, srtt, ..acked(0, MSS, MSS) });
        }
        // Without fast convergence, which the analysis leaves out.
        avoidance(&mut cubic).w_max = 0;
        loss(&mut cubic);
    }
    acks * rtt_ms as f64 * 1e6 / (nanos - counted_from)
}

/// RFC 9438 §5.1, tables 1 and 2, column C = 0.4: the average window by loss rate, and in the Reno-friendly region that of Reno beside it
/// (1.2 / √p there; exactly √(3/2) / √p, 2 % more).
#[test]
fn rfc9438_section_5_1_average_windows() {
    for (rtt_ms, period, segments) in [
        (100, 100, 12.0),
        (100, 1_000, 38.0),
        (100, 10_000, 187.0),
        (100, 100_000, 1054.0),
        (10, 100, 12.0),
        (10, 1_000, 38.0),
        (10, 10_000, 120.0),
        (10, 100_000, 379.0),
    ] {
        // W_max is C·K³/4 = 0.075 W_max above the average: it takes long to settle from farther away.
        let average = average_window(period, rtt_ms, segments / 0.925);
        println!("RTT {rtt_ms} ms, p = 1/{period}: {average:.1}, the table has {segments}");
        assert!((0.95..1.08).contains(&(average / segments)), "{rtt_ms} ms, 1/{period}: {average}");
    }
}

/// §4.7: a flow that loses below its last W_max makes room for others.
#[test]
fn loss_below_the_last_maximum_lowers_the_plateau() {
    let mut cubic = cubic(100, 0);
    loss(&mut cubic);
    assert_eq!((cubic.cwnd, avoidance(&mut cubic).w_max), (70 * MSS, 100 * MSS));
    loss(&mut cubic);
    assert_eq!((cubic.cwnd, avoidance(&mut cubic).w_max), (49 * MSS, 59_500));
    assert_eq!(avoidance(&mut cubic).growth.cwnd_prior, 70 * MSS);
}

/// §4.8: one segment, ssthresh by β; the next epoch starts with K = 0 from the window it finds.
#[test]
fn after_a_timeout_the_plateau_is_the_window_it_starts_from() {
    let mut cubic = cubic(100, 0);
    cubic.on_loss(&Lost { in_flight: 100 * MSS, smss: MSS, timeout: true, left: 0, again: false });
    assert_eq!((cubic.cwnd, cubic.ssthresh), (MSS, 70 * MSS));
    let mut now = 0;
    while cubic.cwnd < 70 * MSS {
        now += RTT_MS;
        round(&mut cubic, now);
    }
    round(&mut cubic, now + RTT_MS);
    assert_eq!((avoidance(&mut cubic).k, avoidance(&mut cubic).w_max), (0, 70 * MSS));
}

#[test]
fn loss_leaves_two_segments_at_least() {
    let mut cubic = cubic(2, u32::MAX);
    cubic.on_loss(&Lost { in_flight: MSS, smss: MSS, timeout: false, left: 0, again: false });
    assert_eq!((cubic.cwnd, cubic.ssthresh), (2 * MSS, 2 * MSS));
}

/// §4.2: time in which the window was not used, or nothing was sent, does not count.
#[test]
fn time_without_use_is_not_counted() {
    let (mut busy, mut idle, mut unused) = (cubic(1000, 0), cubic(1000, 0), cubic(1000, 0));
    for cubic in [&mut busy, &mut idle, &mut unused] {
        loss(cubic);
        (0..10).for_each(|number| round(cubic, number * RTT_MS));
    }
    round(&mut busy, 1000);
    idle.on_idle(&Idle { rto: None, ..idle_for(7000, 1000) });
    round(&mut idle, 8000);
    unused.on_ack(&Acked { limited: false, ..acked(1000, MSS, MSS) });
    round(&mut unused, 9000);
    assert_eq!([idle.cwnd, unused.cwnd], [busy.cwnd; 2]);
}

/// Also where a loss had ended it that was none.
#[test]
fn slow_start_passes_into_avoidance_where_the_rtt_grows() {
    for undone in [false, true] {
        let mut cubic = cubic(10, u32::MAX);
        if undone {
            let before = (cubic.cwnd, cubic.ssthresh);
            cubic.on_loss(&Lost { in_flight: cubic.cwnd, smss: MSS, timeout: true, left: 0, again: false });
            cubic.on_undo(before.0, before.1);
        }
        let (mut una, mut nxt) = (0u32, 10 * MSS);
        for number in 0..12u64 {
            for _ in 0..(nxt - una) / MSS {
                // The path holds 40 segments; each one more waits a millisecond.
                let queue = u64::from((cubic.cwnd / MSS).saturating_sub(40));
                let rtt = Duration::from_millis(40 + queue);
                una += MSS;
                cubic.on_ack(&Acked {
                    una: wire::SeqNum(una),
                    nxt: wire::SeqNum(nxt),
                    rtt: Some(rtt),
                    srtt: rtt,
                    ..acked(number * 50, MSS, MSS)
                });
                nxt = una + cubic.cwnd / MSS * MSS;
            }
        }
        assert_ne!(cubic.ssthresh, u32::MAX, "slow start has ended without loss");
        // Noticed with 80 in flight; five rounds more at a quarter of the growth.
        assert!((200 * MSS..270 * MSS).contains(&cubic.ssthresh), "{}", cubic.ssthresh);
        assert_eq!((avoidance(&mut cubic).k, avoidance(&mut cubic).w_max), (0, cubic.ssthresh));
    }
}

/// Neither huge times nor huge windows overflow.
#[test]
fn extremes_do_not_panic() {
    for smss in [8, 1448, 65_535] {
        let mut cubic = Cubic::<Bytes>::new(&start(u32::MAX, 0));
        cubic.on_loss(&Lost { in_flight: u32::MAX, smss, timeout: false, left: 0, again: false });
        for ms in [0, 1, u64::from(u32::MAX), 1 << 43] {
            cubic.on_ack(&Acked { srtt: Duration::MAX, ..acked(ms, u32::MAX, smss) });
        }
        assert_eq!(cubic.cwnd, u32::MAX);
    }
}

/// RFC 9438 §4.9.1, but for the epoch, which begins anew: K is 0 there.
#[test]
fn a_loss_that_was_none_is_forgotten() {
    for timeout in [false, true] {
        let mut cubic = cubic(100, 0);
        let before = (cubic.cwnd, cubic.ssthresh);
        cubic.on_loss(&Lost { in_flight: cubic.cwnd, smss: MSS, timeout, left: 0, again: false });
        assert!(cubic.cwnd < before.0);
        (0..20).for_each(|number| round(&mut cubic, number * RTT_MS));
        cubic.on_undo(before.0, before.1);
        assert!(cubic.cwnd >= before.0);
        round(&mut cubic, 21 * RTT_MS);
        assert_eq!(avoidance(&mut cubic).k, 0);
        assert!(cubic.cwnd >= before.0);
    }
}
