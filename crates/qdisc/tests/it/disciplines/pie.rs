//! pie (RFC 8033, Linux's `sch_pie.c`).
use super::bed::{Bed, Frame, MS, SECOND};
use qdisc::Ecn;

fn offer(bed: &mut Bed, until: u64, gap: u64, ecn: Ecn) {
    let mut number = 0;
    while bed.now < until {
        bed.offer(Frame { number, ecn, ..Frame::default() }, 1000);
        number += 1;
        let next = bed.now + gap;
        bed.advance(next);
    }
}

#[test]
fn it_is_shown_as_tc_does() {
    let mut bed = Bed::new("pie ecn bytemode", None);
    assert_eq!(
        bed.tc("-s qdisc show"),
        "qdisc pie 1: root refcnt 2 limit 1000p target 15ms tupdate 15ms alpha 2 beta 20 ecn bytemode 
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) 
 backlog 0b 0p requeues 0
  prob 0 delay 0us
  pkts_in 0 overlimit 0 dropped 0 maxq 0 ecn_mark 0\n"
    );
}

#[test]
fn a_burst_after_a_pause_is_let_through() {
    // RFC 8033 section 4.4: 150 ms.
    let mut bed = Bed::new("pie", Some(10_000_000));
    bed.advance(SECOND);
    for number in 0..100 {
        bed.send(number, 0, 1000);
    }
    bed.drain();
    assert_eq!(bed.dropped.len(), 0);
}

#[test]
fn the_time_of_a_pause_is_not_taken_off_the_burst() {
    let mut bed = Bed::new("pie limit 10000", Some(10_000_000));
    for begins_at in [SECOND, 4 * SECOND] {
        bed.advance(begins_at);
        let end = bed.now + SECOND;
        offer(&mut bed, end, 200_000, Ecn::NotEct); // 0.8 ms a frame
        bed.drain();
        let first = bed.dropped.first().map(|dropped| u64::from(dropped.skb.packet.number) * 200_000);
        assert!(first.is_some_and(|after| after >= 150 * MS), "{first:?}");
        bed.dropped.clear();
    }
}

#[test]
fn under_lasting_overload_the_delay_settles_near_the_target() {
    let mut bed = Bed::new("pie limit 10000", Some(10_000_000));
    offer(&mut bed, 60 * SECOND, 700_000, Ecn::NotEct); // 0.8 ms a frame: 14 % too much
    let late = &bed.left[bed.left.len() - 5000..];
    let delays: Vec<u64> = late.iter().map(|left| left.at - u64::from(left.frame.number) * 700_000).collect();
    let mean = delays.iter().sum::<u64>() / delays.len() as u64;
    assert!((10 * MS..20 * MS).contains(&mean), "{} us", mean / 1000);
    let share = bed.dropped.len() as f64 / f64::from(60_000_000u32 / 700);
    assert!((0.10..0.15).contains(&share), "{share}");
}

#[test]
fn drops_are_spread_and_not_in_runs() {
    // Derandomization (RFC 8033 section 5.4): none before the sum of the probabilities is 0.85, surely one at 8.5.
    let mut bed = Bed::new("pie limit 10000", Some(10_000_000));
    offer(&mut bed, 60 * SECOND, 700_000, Ecn::NotEct);
    let lost = bed.lost();
    let late = &lost[lost.len() - 200..];
    let gaps: Vec<u32> = late.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps.iter().all(|gap| (3..=80).contains(gap)), "{gaps:?}");
}

#[test]
fn with_ecn_packets_are_marked_up_to_a_tenth() {
    let mut bed = Bed::new("pie limit 10000 ecn", Some(10_000_000));
    offer(&mut bed, 20 * SECOND, 784_000, Ecn::Ect0); // 2 % too much
    let marked = bed.left.iter().filter(|left| left.frame.ecn == Ecn::Ce).count();
    assert!(marked > 100, "{marked}");
    assert!(bed.tc("-s qdisc show").contains("ecn_mark "));
    let mut heavy = Bed::new("pie limit 10000 ecn", Some(10_000_000));
    offer(&mut heavy, 20 * SECOND, 400_000, Ecn::Ect0);
    assert!(!heavy.dropped.is_empty(), "above a tenth they are dropped");
}

#[test]
fn below_the_target_nothing_is_dropped() {
    let mut bed = Bed::new("pie", Some(10_000_000));
    offer(&mut bed, 10 * SECOND, 900_000, Ecn::NotEct);
    assert_eq!(bed.dropped.len(), 0);
}
