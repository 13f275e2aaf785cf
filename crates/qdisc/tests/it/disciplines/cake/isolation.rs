//! Who gets how much.
use super::{bytes, row};
use crate::disciplines::bed::{Bed, Frame, MS, SECOND};

/// Eight flows of one host and one of another wait, for two seconds' worth at 8 Mbit/s each; the share of the one after two seconds, in
/// thousandths. `ends` gives a flow's hosts by whether it is one of the eight.
fn share_of_one(isolation: &str, ends: impl Fn(bool, u32) -> (u32, u32)) -> usize {
    let mut bed =
        Bed::new(&format!("cake bandwidth 8mbit besteffort {isolation} interplanetary memlimit 1gb"), None);
    for number in 0..2000 {
        for flow in 0..9 {
            let (source, destination) = ends(flow < 8, flow);
            bed.offer(Frame { number, flow, source, destination, ..Frame::default() }, 1000);
        }
    }
    bed.advance(2 * SECOND);
    assert!(bed.dropped.is_empty());
    bytes(&bed, |frame| frame.flow == 8) * 1000 / bytes(&bed, |_| true)
}

/// Each of the two hosts sends; all flows go to different ones.
fn senders(of_many: bool, flow: u32) -> (u32, u32) {
    (if of_many { 1 } else { 2 }, 100 + flow)
}

/// Each of the two hosts receives; all flows come from one.
fn receivers(of_many: bool, _: u32) -> (u32, u32) {
    (50, if of_many { 1 } else { 2 })
}

const HALF: core::ops::RangeInclusive<usize> = 495..=505;
const NINTH: core::ops::RangeInclusive<usize> = 106..=116;

#[test]
fn a_sender_gets_no_more_for_having_eight_flows() {
    for isolation in ["triple-isolate", "dual-srchost", "srchost", "hosts"] {
        let expected = if isolation == "hosts" { NINTH } else { HALF };
        let share = share_of_one(isolation, senders);
        assert!(expected.contains(&share), "{isolation}: {share} of 1000");
    }
}

#[test]
fn a_receiver_gets_no_more_for_having_eight_flows() {
    for isolation in ["dual-dsthost", "dsthost", "hosts"] {
        let share = share_of_one(isolation, receivers);
        assert!(HALF.contains(&share), "{isolation}: {share} of 1000");
    }
}

#[test]
fn where_hosts_do_not_count_each_flow_gets_a_ninth() {
    for (isolation, ends) in [
        ("flows", senders as fn(bool, u32) -> (u32, u32)),
        ("dual-dsthost", senders),
        ("dual-srchost", receivers),
        // All have the one sender's nine flows for the larger number.
        ("triple-isolate", receivers),
    ] {
        let share = share_of_one(isolation, ends);
        assert!(NINTH.contains(&share), "{isolation}: {share} of 1000");
    }
}

#[test]
fn flowblind_keeps_the_order_of_all() {
    let mut bed = Bed::new("cake bandwidth 8mbit flowblind", None);
    for number in 0..20 {
        bed.send(number, number % 4, 1000);
    }
    bed.drain();
    assert!(bed.order().is_sorted());
}

#[test]
fn a_sparse_flow_goes_ahead_of_full_ones() {
    let mut bed = Bed::new("cake bandwidth 8mbit besteffort", None);
    for number in 0..40 {
        bed.send(number, number % 2, 1000);
    }
    bed.advance(10 * MS + MS / 2);
    bed.send(100, 7, 100);
    bed.advance(12 * MS);
    assert_eq!(bed.left.iter().position(|left| left.frame.number == 100), Some(11), "{:?}", bed.order());
    assert_eq!((row(&mut bed, "sp_flows"), row(&mut bed, "bk_flows")), (vec!["1".into()], vec!["2".into()]));
}

#[test]
fn a_flow_that_is_sparse_no_more_takes_turns_with_the_others() {
    // A quantum at 8 Mbit/s is 300 bytes, so that a frame of 600 uses up two turns.
    let mut bed = Bed::new("cake bandwidth 8mbit besteffort", None);
    for number in 0..12 {
        bed.send(number, number / 6, 600);
    }
    bed.drain();
    let flows: Vec<u32> = bed.left.iter().map(|left| left.frame.flow).collect();
    assert_eq!(flows, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
}

#[test]
fn flows_of_different_packets_get_the_same_bytes() {
    let mut bed = Bed::new("cake bandwidth 8mbit besteffort interplanetary memlimit 1gb", None);
    for number in 0..15_000 {
        bed.send(number, number % 3, [1500, 300, 800][number as usize % 3]);
    }
    bed.advance(3 * SECOND);
    let got = [0, 1, 2].map(|flow| bytes(&bed, |frame| frame.flow == flow));
    let (most, least) = (got.iter().max().unwrap(), got.iter().min().unwrap());
    assert!(most - least <= 2 * (1514 + 1500), "{got:?}");
}

#[test]
fn flows_that_are_over_do_not_count_against_their_host() {
    let mut bed = Bed::new("cake bandwidth 8mbit besteffort interplanetary memlimit 1gb", None);
    let offer = |bed: &mut Bed, flow, count| {
        for number in 0..count {
            let source = if flow == 9 { 2 } else { 1 };
            bed.offer(Frame { number, flow, source, destination: flow, ..Frame::default() }, 1000);
        }
    };
    for flow in 0..8 {
        offer(&mut bed, flow, 20);
    }
    offer(&mut bed, 9, 3000);
    bed.advance(SECOND);
    let before = bed.left.len();
    offer(&mut bed, 8, 1000);
    bed.advance(2 * SECOND);
    let of = |flow| bed.left.iter().skip(before).filter(|left| left.frame.flow == flow).count();
    assert!(of(8).abs_diff(of(9)) <= 10, "{} and {}", of(8), of(9));
}

#[test]
fn a_flow_that_only_pays_what_it_owes_is_no_bulk_flow() {
    // A quantum of 300 bytes: a packet of 1000 leaves a deficit.
    let mut bed = Bed::new("cake bandwidth 8mbit besteffort", None);
    bed.send(0, 1, 1000);
    bed.advance(MS / 2);
    for number in 1..10 {
        bed.send(number, 2, 1000);
    }
    let counts = |bed: &mut Bed| (row(bed, "sp_flows").concat(), row(bed, "bk_flows").concat());
    bed.advance(MS + MS / 2);
    assert_eq!(
        counts(&mut bed),
        ("2".into(), "0".into()),
        "the first is empty, the second had its first turn"
    );
    bed.send(10, 1, 1000);
    assert_eq!(counts(&mut bed), ("1".into(), "1".into()), "now the first has more than its share");
    bed.advance(2 * MS + MS / 2);
    assert_eq!(counts(&mut bed), ("0".into(), "2".into()));
}

#[test]
fn idle_flows_are_forgotten() {
    let mut bed = Bed::new("cake bandwidth 8mbit besteffort", None);
    bed.send(1, 1, 100);
    bed.advance(SECOND);
    assert_eq!(row(&mut bed, "sp_flows"), ["1"], "until somebody else is served");
    // COBALT keeps what it knows of a flow for an interval.
    for number in 2..4 {
        bed.send(number, 2, 100);
        bed.advance(SECOND + u64::from(number) * SECOND);
    }
    assert_eq!((row(&mut bed, "sp_flows"), row(&mut bed, "way_miss")), (vec!["1".into()], vec!["2".into()]));
}
