//! fq (Linux's `sch_fq.c`).
use super::bed::{Bed, Frame, MS, SECOND};
use qdisc::{DropReason, Ecn, Verdict};

fn at(number: u32, flow: u32, departs_at: u64) -> Frame {
    Frame { number, flow, departs_at: Some(departs_at), ..Frame::default() }
}

#[test]
fn it_is_shown_as_tc_does() {
    let mut bed = Bed::new("fq maxrate 1mbit ce_threshold 5ms", None);
    assert_eq!(
        bed.tc("-s qdisc show"),
        "qdisc fq 1: root refcnt 2 limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 quantum 3028b initial_quantum 15140b maxrate 1Mbit low_rate_threshold 550Kbit refill_delay 40ms ce_threshold 5ms timer_slack 10us horizon 10s horizon_drop 
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) 
 backlog 0b 0p requeues 0
  flows 0 (inactive 0 throttled 0)
  gc 0 highprio 0 throttled 0\n"
    );
    bed.tc("qdisc change root handle 1: fq nopacing horizon_cap");
    assert!(bed.tc("qdisc show").contains("orphan_mask 1023 nopacing quantum"));
}

#[test]
fn no_packet_leaves_before_its_time() {
    let mut bed = Bed::new("fq", None);
    bed.offer(at(1, 1, 5 * MS), 1000);
    bed.offer(at(2, 2, 3 * MS), 1000);
    bed.offer(at(3, 1, 7 * MS), 1000);
    bed.offer(Frame { number: 4, flow: 3, ..Frame::default() }, 1000);
    let shown = bed.tc("-s qdisc show");
    assert!(shown.contains("flows 3 (inactive 1 throttled 2) next_packet_delay 3ms"), "{shown}");
    bed.drain();
    let left: Vec<(u32, u64)> = bed.left.iter().map(|left| (left.frame.number, left.at / MS)).collect();
    assert_eq!(left, [(4, 0), (2, 3), (1, 5), (3, 7)]);
}

#[test]
fn within_a_flow_the_earliest_goes_first() {
    let mut bed = Bed::new("fq", None);
    bed.offer(at(1, 1, 5 * MS), 1000);
    bed.offer(at(2, 1, 3 * MS), 1000);
    bed.offer(at(3, 1, 5 * MS), 1000);
    bed.drain();
    // A flow that waits is looked at again when its first packet was due, as in Linux.
    assert_eq!(bed.order(), [2, 1, 3]);
}

#[test]
fn a_greatest_rate_paces_each_flow() {
    let mut bed = Bed::new("fq maxrate 8mbit initial_quantum 1000 quantum 1000", None);
    for number in 0..6 {
        bed.send(number, number % 2, 1000);
    }
    bed.drain();
    let times: Vec<u64> = bed.left.iter().map(|left| left.at / MS).collect();
    assert_eq!(times, [0, 0, 1, 1, 2, 2]);
}

#[test]
fn beyond_the_horizon_packets_are_dropped_or_made_earlier() {
    let mut bed = Bed::new("fq horizon 1s", None);
    assert_eq!(bed.offer(at(1, 1, 2 * SECOND), 100), Verdict::Dropped(DropReason::Horizon));
    assert!(bed.tc("-s qdisc show").contains(" horizon_drops 1"));
    bed.tc("qdisc change root handle 1: fq horizon_cap");
    bed.offer(at(2, 1, 5 * SECOND), 100);
    bed.drain();
    assert_eq!(bed.left[0].at, SECOND);
}

#[test]
fn a_flow_has_a_limit_of_its_own() {
    let mut bed = Bed::new("fq flow_limit 2", None);
    let verdicts: Vec<Verdict> = (0..4).map(|number| bed.offer(at(number, 1, SECOND), 100)).collect();
    assert_eq!(verdicts[2], Verdict::Dropped(DropReason::FlowLimit));
    assert_eq!(bed.offer(at(9, 2, SECOND), 100), Verdict::Queued);
    assert!(bed.tc("-s qdisc show").contains("flows_plimit 2"));
}

#[test]
fn turns_are_a_quantum_long() {
    let mut bed = Bed::new("fq quantum 1000 initial_quantum 1000", Some(8_000_000));
    for number in 0..9 {
        bed.send(number, number / 3, 1000);
    }
    bed.drain();
    assert_eq!(bed.order(), [0, 3, 6, 1, 4, 7, 2, 5, 8]);
}

#[test]
fn control_packets_go_past_all_flows() {
    let mut bed = Bed::new("fq", Some(8_000_000));
    for number in 0..3 {
        bed.send(number, 1, 1000);
    }
    bed.offer(Frame { number: 9, flow: 2, priority: 7, ..Frame::default() }, 100);
    bed.drain();
    assert_eq!(bed.order(), [0, 9, 1, 2]);
    assert!(bed.tc("-s qdisc show").contains("highprio 1"));
}

#[test]
fn bands_share_by_their_weights() {
    // Priorities 6, 0 and 2: weights 9, 3 and 1.
    let mut bed = Bed::new("fq limit 100000 flow_limit 100000", Some(100_000_000));
    for number in 0..12_000 {
        let priority = [6, 0, 2][number as usize % 3];
        bed.offer(Frame { number, flow: priority, priority, ..Frame::default() }, 1250);
    }
    bed.advance(430 * MS);
    let sent = |priority| bed.left.iter().filter(|l| l.frame.priority == priority).count() as f64;
    let total = sent(6) + sent(0) + sent(2);
    for (priority, weight) in [(6, 9.0), (0, 3.0), (2, 1.0)] {
        let share = sent(priority) / total;
        assert!((share - weight / 13.0).abs() < 0.08, "{priority}: {share}");
    }
}

#[test]
fn late_packets_are_marked() {
    let mut bed = Bed::new("fq ce_threshold 2ms", Some(8_000_000));
    for number in 0..6 {
        bed.offer(Frame { number, flow: 1, ecn: Ecn::Ect1, ..Frame::default() }, 1000);
    }
    bed.drain();
    let marked: Vec<u32> =
        bed.left.iter().filter(|l| l.frame.ecn == Ecn::Ce).map(|l| l.frame.number).collect();
    assert_eq!(marked, [3, 4, 5]);
}

#[test]
fn old_flows_are_forgotten() {
    let mut bed = Bed::new("fq buckets 4", None);
    for flow in 0..8 {
        bed.send(flow, flow, 100);
    }
    bed.advance(10 * SECOND);
    bed.send(9, 9, 100);
    assert!(bed.tc("-s qdisc show").contains("gc 8 highprio"));
}
