//! prio and pfifo_fast (Linux's `sch_prio.c` and `sch_generic.c`).
use super::bed::{Bed, Frame};

fn offer(bed: &mut Bed, priorities: &[u32]) {
    for (number, priority) in priorities.iter().enumerate() {
        bed.offer(Frame { number: number as u32, priority: *priority, ..Frame::default() }, 1000);
    }
}

#[test]
fn the_lowest_band_goes_first() {
    for qdisc in ["prio", "pfifo_fast"] {
        let mut bed = Bed::new(qdisc, Some(8000));
        // Bands by priority: 2, 1, 0, 2 and so on; the first is on the wire at once.
        offer(&mut bed, &[2, 1, 0, 6, 3, 7, 4]);
        bed.drain();
        assert_eq!(bed.order(), [0, 3, 5, 2, 6, 1, 4], "{qdisc}");
    }
}

#[test]
fn a_priority_that_names_a_class_is_the_band_and_a_mark_may_name_one() {
    let mut bed = Bed::new("prio", Some(8000));
    bed.tc("filter add dev eth0 parent 1: handle 5 fw classid 1:1");
    offer(&mut bed, &[0, 0x1_0003, 0x1_0001]);
    bed.offer(Frame { number: 9, mark: 5, ..Frame::default() }, 1000);
    bed.drain();
    assert_eq!(bed.order(), [0, 2, 9, 1]);
}

#[test]
fn a_band_may_hold_any_discipline() {
    let mut bed = Bed::new("prio", None);
    bed.tc("qdisc add parent 1:1 handle 10: tbf rate 8kbit burst 1000 limit 10000");
    offer(&mut bed, &[6, 6, 0]);
    assert_eq!(bed.order(), [0, 2], "a band that waits for tokens does not hold up the others");
    bed.advance(2_000_000_000);
    assert_eq!(bed.order(), [0, 2, 1]);
    let classes = bed.tc("class show");
    assert_eq!(classes.lines().next(), Some("class prio 1:1 parent 1: leaf 10: "));
}

#[test]
fn fewer_bands_take_their_packets_along() {
    let mut bed = Bed::new("prio bands 4 priomap 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3", Some(8));
    offer(&mut bed, &[0, 0, 0]);
    bed.tc("qdisc change root handle 1: prio bands 3");
    assert_eq!((bed.dropped.len(), bed.stats().qlen, bed.stats().backlog), (2, 0, 0));
    assert!(bed.tc("qdisc show").contains("bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1"));
}
