//! CoDel (RFC 8289). The schedule of drops is the RFC's: first after an interval above the target, then every interval/√n.
use super::bed::{Bed, Frame, MS, SECOND};
use qdisc::{Ecn, Verdict};

/// How often a frame is offered: 2 % more than a wire of 100 Mbit/s carries.
const GAP: u64 = 117_600;

fn overload(bed: &mut Bed, until: u64, ecn: Ecn) {
    let mut number = 0;
    while bed.now < until {
        bed.offer(Frame { number, ecn, ..Frame::default() }, 1500);
        number += 1;
        let next = bed.now + GAP;
        bed.advance(next);
    }
}

#[test]
fn below_the_target_nothing_is_dropped() {
    let mut bed = Bed::new("codel", Some(100_000_000));
    for number in 0..10_000 {
        bed.send(number, 0, 1500);
        bed.advance(u64::from(number + 1) * 125_000);
    }
    assert_eq!((bed.dropped.len(), bed.left.len()), (0, 10_000));
}

#[test]
fn a_burst_shorter_than_an_interval_is_let_through() {
    // 600 frames at once take 72 ms to leave: all of that time above the target, but no interval long.
    let mut bed = Bed::new("codel", Some(100_000_000));
    for number in 0..600 {
        bed.send(number, 0, 1500);
    }
    bed.drain();
    assert_eq!(bed.dropped.len(), 0);
}

#[test]
fn drops_come_ever_faster_as_the_square_root() {
    let mut bed = Bed::new("codel limit 100000", Some(100_000_000));
    let mut drops = Vec::new();
    let mut number = 0;
    while drops.len() < 10 {
        bed.send(number, 0, 1500);
        number += 1;
        let before = bed.dropped.len();
        let next = bed.now + MS / 10;
        bed.advance(next);
        drops.extend((before..bed.dropped.len()).map(|_| bed.now));
    }
    // An arriving frame waits a frame's time at most until it is looked at.
    let spans: Vec<f64> = drops.windows(2).map(|w| (w[1] - w[0]) as f64 / MS as f64).collect();
    // Newton's method, one step a drop, starts from 1: at first it is off as Linux is.
    for (span, expected) in spans.iter().zip([100.0, 50.0, 56.25, 48.8]) {
        assert!((span - expected).abs() < 1.0, "{spans:?}");
    }
    for (n, span) in spans.iter().enumerate().skip(4) {
        let expected = 100.0 / ((n + 1) as f64).sqrt();
        assert!((span - expected).abs() < 1.0, "{span} ms, {expected} ms by the control law: {spans:?}");
    }
}

#[test]
fn under_lasting_overload_the_delay_falls_back_to_the_target() {
    let mut bed = Bed::new("codel limit 100000", Some(100_000_000));
    overload(&mut bed, 30 * SECOND, Ecn::NotEct);
    let late = bed.left.iter().rev().take(1000);
    let offered_at = |number: u32| u64::from(number) * GAP;
    let worst = late.map(|left| left.at - offered_at(left.frame.number)).max().unwrap();
    assert!(worst < 100 * MS, "{} ms", worst / MS);
}

#[test]
fn with_ecn_packets_are_marked_and_none_is_lost() {
    let mut bed = Bed::new("codel limit 100000 ecn", Some(100_000_000));
    overload(&mut bed, 4 * SECOND, Ecn::Ect0);
    let marked = bed.left.iter().filter(|left| left.frame.ecn == Ecn::Ce).count();
    assert!(bed.dropped.is_empty() && marked > 5, "{marked}");
    assert!(bed.tc("-s qdisc show").contains(&format!("ecn_mark {marked} drop_overlimit 0")));
}

#[test]
fn a_full_queue_refuses() {
    let mut bed = Bed::new("codel limit 2", Some(8000));
    let verdicts: Vec<Verdict> = (0..4).map(|number| bed.send(number, 0, 1000)).collect();
    assert!(matches!(verdicts[..], [Verdict::Queued, Verdict::Queued, Verdict::Queued, Verdict::Dropped(_)]));
}

#[test]
fn it_is_shown_as_tc_does() {
    let mut bed = Bed::new("codel ecn ce_threshold 1ms", None);
    let expected =
        "qdisc codel 1: root refcnt 2 limit 1000p target 5ms ce_threshold 999us interval 100ms ecn \n";
    assert_eq!(bed.tc("qdisc show"), expected);
    bed.tc("qdisc change root handle 1: codel noecn limit 7");
    assert!(bed.tc("qdisc show").contains("limit 7p target 5ms ce_threshold 999us interval 100ms \n"));
}
