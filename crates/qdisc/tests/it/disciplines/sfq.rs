//! sfq (Linux's `sch_sfq.c`).
use super::bed::{Bed, Frame, SECOND};
use qdisc::Verdict;

#[test]
fn it_is_shown_as_tc_does() {
    let mut bed = Bed::new("sfq perturb 10 headdrop", None);
    assert_eq!(
        bed.tc("-d qdisc show"),
        "qdisc sfq 1: root refcnt 2 limit 127p quantum 1514b depth 127 headdrop flows 128 divisor 1024 perturb 10sec \n"
    );
}

#[test]
fn flows_take_turns() {
    let mut bed = Bed::new("sfq quantum 1000", Some(8_000_000));
    for number in 0..9 {
        bed.send(number, number / 3, 1000);
    }
    bed.drain();
    // The first was alone when it left; from then on one packet of each in turn.
    assert_eq!(bed.order(), [0, 1, 3, 6, 2, 4, 7, 5, 8]);
}

#[test]
fn bytes_are_shared_evenly_whatever_the_packets() {
    let mut bed = Bed::new("sfq limit 400 flows 4 depth 127", Some(1_000_000));
    for round in 0..2000 {
        for (flow, len) in [(1, 1500), (2, 250)] {
            bed.send(round, flow, len);
        }
        bed.send(round, 2, 250);
        bed.advance(u64::from(round + 1) * SECOND / 200);
    }
    let bytes = |flow| bed.left.iter().filter(|l| l.frame.flow == flow).map(|l| l.len).sum::<usize>() as f64;
    let share = bytes(1) / (bytes(1) + bytes(2));
    // Flow 2 offers 100 kB/s, more than its half of 125 kB/s.
    assert!((share - 0.5).abs() < 0.01, "{share}");
}

#[test]
fn when_it_is_full_the_longest_flow_loses_its_newest() {
    let mut bed = Bed::new("sfq limit 5", Some(8000));
    for number in 0..6 {
        bed.send(number, 1, 1000); // the first is on the wire
    }
    assert_eq!(bed.send(10, 2, 1000), Verdict::Queued);
    assert_eq!(bed.lost(), [5]);
    let mut head = Bed::new("sfq limit 5 headdrop", Some(8000));
    for number in 0..6 {
        head.send(number, 1, 1000);
    }
    head.send(10, 2, 1000);
    assert_eq!(head.lost(), [1]);
}

#[test]
fn one_flow_has_no_more_than_its_depth() {
    let mut bed = Bed::new("sfq limit 100 depth 3", Some(8000));
    for number in 0..6 {
        bed.send(number, 1, 1000);
    }
    assert_eq!((bed.lost(), bed.stats().qlen), (vec![4, 5], 3));
}

#[test]
fn a_new_hash_keeps_every_packet() {
    let mut bed = Bed::seeded("sfq perturb 1", Some(80_000), 9);
    for number in 0..60 {
        bed.offer(Frame { number, flow: number % 7, ..Frame::default() }, 1000);
    }
    bed.drain();
    assert_eq!(bed.left.len() + bed.dropped.len(), 60);
    assert!(bed.dropped.is_empty());
}
