//! What is marked and what is dropped.
use super::row;
use crate::disciplines::bed::{Bed, Frame, MS};
use qdisc::{DropReason, Ecn, Verdict};

/// One flow's 300 frames of 1000 bytes at 8 Mbit/s: the n-th waits for n ms, unless some before it are dropped.
fn flood(words: &str, ecn: Ecn) -> Bed {
    let mut bed = Bed::new(&format!("cake bandwidth 8mbit besteffort {words}"), None);
    for number in 0..300 {
        bed.offer(Frame { number, ecn, ..Frame::default() }, 1000);
    }
    bed
}

#[test]
fn drops_come_at_the_interval_over_the_root_of_their_count() {
    let mut bed = flood("", Ecn::NotEct);
    bed.advance(190 * MS);
    // At 7 ms the delay is above the target and four full frames, at 8 ms a flow's first signal comes. The others follow after
    // 100/√2, 100/√3 and 100/√4 ms: at 77.7, 135.4 and 185.4 ms from the 7th on; by so many as were dropped the numbers are higher.
    assert_eq!(bed.lost(), [8, 79, 138, 189]);
    assert!(bed.dropped.iter().all(|dropped| dropped.reason == DropReason::Congested));
    assert_eq!(row(&mut bed, "drops"), ["4"]);
}

#[test]
fn ecn_capable_packets_are_marked_instead() {
    let mut bed = flood("", Ecn::Ect0);
    bed.advance(190 * MS);
    let marked: Vec<_> = bed.left.iter().filter(|l| l.frame.ecn == Ecn::Ce).map(|l| l.frame.number).collect();
    assert_eq!(marked, [8, 78, 136, 186]);
    assert!(bed.dropped.is_empty());
    assert_eq!((row(&mut bed, "marks"), row(&mut bed, "drops")), (vec!["4".into()], vec!["0".into()]));
}

#[test]
fn another_round_trip_is_another_pace() {
    let mut bed = flood("metro", Ecn::NotEct);
    bed.advance(30 * MS);
    // The target is one and a half full frames, 2.27 ms, but nothing is dropped below four; the interval is 10 ms and what the target
    // was raised by, 11.77 ms: after 8.32, 6.80 and 5.89 ms.
    assert_eq!(bed.lost(), [8, 17, 25, 32]);
}

#[test]
fn the_last_packet_of_a_flow_is_not_dropped() {
    for (count, lost) in [(9, vec![]), (10, vec![8])] {
        let mut bed = Bed::new("cake bandwidth 8mbit besteffort", None);
        for number in 0..count {
            bed.send(number, 1, 1000);
        }
        bed.drain();
        assert_eq!(bed.lost(), lost, "of {count}");
    }
}

#[test]
fn one_flow_pays_for_its_own_queue_only() {
    let mut bed = flood("", Ecn::NotEct);
    for tick in 0..190u32 {
        bed.advance(u64::from(tick) * MS);
        if tick % 10 == 0 {
            bed.offer(Frame { number: 1000 + tick, flow: 5, ..Frame::default() }, 100);
        }
    }
    assert!(!bed.lost().is_empty() && bed.lost().iter().all(|number| *number < 300));
}

#[test]
fn behind_the_bottleneck_what_is_dropped_counts_as_sent() {
    let at = |words: &str| {
        let mut bed = flood(words, Ecn::NotEct);
        bed.advance(11 * MS);
        bed.left.iter().skip(7).map(|left| (left.frame.number, left.at / MS)).collect::<Vec<_>>()
    };
    assert_eq!(at("egress"), [(7, 7), (9, 8), (10, 9), (11, 10), (12, 11)]);
    assert_eq!(at("ingress"), [(7, 7), (9, 8), (10, 10), (11, 11)]);
}

#[test]
fn behind_the_bottleneck_a_flow_pays_for_what_it_loses() {
    // Both flows are signalled as often; one loses packets, the other is marked.
    let both = |words: &str| {
        let mut bed =
            Bed::new(&format!("cake bandwidth 8mbit besteffort metro memlimit 100mb {words}"), None);
        for number in 0..2000 {
            for (flow, ecn) in [(1, Ecn::NotEct), (2, Ecn::Ect0)] {
                bed.offer(Frame { number, flow, ecn, ..Frame::default() }, 1000);
            }
        }
        bed.advance(400 * MS);
        let left = |flow| bed.left.iter().filter(|left| left.frame.flow == flow).count();
        (left(1), left(2), bed.dropped.len())
    };
    let (loses, marked, dropped) = both("ingress");
    assert!(dropped > 100 && marked.abs_diff(loses + dropped) <= 2, "{loses} and {dropped} beside {marked}");
    let (loses, marked, dropped) = both("egress");
    assert!(dropped > 100 && marked.abs_diff(loses) <= 2, "{loses} and {dropped} beside {marked}");
}

#[test]
fn behind_the_bottleneck_each_bulk_flow_may_have_two_frames_waiting() {
    // Ten flows of three frames of 1000 bytes: nothing waits for longer than 30 ms, which is below twice ten full frames.
    let lost = |words: &str| {
        let mut bed = Bed::new(&format!("cake bandwidth 8mbit besteffort {words}"), None);
        for number in 0..30 {
            bed.send(number, number % 10, 1000);
        }
        bed.drain();
        bed.dropped.len()
    };
    // Else the last three, which are late with their first frames already, lose their second; the third is the last.
    assert_eq!((lost("ingress"), lost("egress")), (0, 3));
}

/// A frame of 1000 bytes takes 1768 in memory.
const TEN_FRAMES: usize = 17_680;

#[test]
fn when_memory_is_full_the_longest_queue_gives_up_its_oldest() {
    let mut bed = Bed::new(&format!("cake bandwidth 8kbit besteffort memlimit {TEN_FRAMES}"), None);
    for number in 0..9 {
        assert_eq!(bed.send(number, 1, 1000), Verdict::Queued); // the first leaves at once
    }
    assert_eq!(bed.send(20, 2, 1000), Verdict::Queued);
    assert_eq!(bed.send(21, 2, 1000), Verdict::Queued);
    assert_eq!((bed.lost(), bed.stats().qlen), (vec![], 10));
    assert_eq!(bed.send(22, 2, 1000), Verdict::Queued, "the room is made by another flow");
    assert_eq!(bed.lost(), [1]);
    assert_eq!(bed.send(9, 1, 1000), Verdict::Congestion, "it is made by its own");
    assert_eq!((bed.lost(), bed.stats().qlen), (vec![1, 2], 10));
    assert_eq!(bed.send(23, 3, 60), Verdict::Queued);
    assert_eq!((bed.lost(), bed.stats().qlen), (vec![1, 2, 3], 10));
    assert!(bed.tc("-s qdisc show").contains(" memory used: 19Kb of 17680b\n"), "19,448 bytes at most");
}

#[test]
fn behind_the_bottleneck_what_finds_no_memory_counts_as_sent_too() {
    let second = |words: &str| {
        let mut bed =
            Bed::new(&format!("cake bandwidth 8mbit besteffort memlimit {TEN_FRAMES} {words}"), None);
        for number in 0..12 {
            bed.send(number, 1, 1000); // one leaves, ten wait, one is too many
        }
        bed.drain();
        bed.left[1].at
    };
    assert_eq!(second("egress"), MS);
    // 2 ms by what was counted, but never more than one and a half times what left.
    assert_eq!(second("ingress"), MS * 3 / 2);
}

#[test]
fn whatever_came_and_went_it_is_the_longest_queue_that_gives_way() {
    let mut bed = Bed::new("cake bandwidth 3mbit diffserv4 interplanetary memlimit 60kb", None);
    let mut rng = qdisc::Rng::new(5);
    let (mut backlog, mut left, mut dropped) = ([0i64; 12], 0, 0);
    for number in 0..6000 {
        // Flows come and go: some hundred frames are of a few of them only.
        let flow = (rng.below(4) as u32 + number / 300) % 12;
        let len = 100 + rng.below(1400) as usize;
        let dscp = [0, 8, 34, 46][flow as usize % 4];
        backlog[flow as usize] += len as i64;
        bed.offer(Frame { number, flow, dscp, ..Frame::default() }, len);
        for lost in &bed.dropped[dropped..] {
            let flow = lost.skb.packet.flow as usize;
            assert_eq!(Some(&backlog[flow]), backlog.iter().max(), "at frame {number}");
            backlog[flow] -= lost.skb.len() as i64;
        }
        dropped = bed.dropped.len();
        bed.advance(u64::from(number + 1) * MS + rng.below(MS));
        for sent in &bed.left[left..] {
            backlog[sent.frame.flow as usize] -= sent.len as i64;
        }
        left = bed.left.len();
    }
    assert!(dropped > 1000, "{dropped}");
}

#[test]
fn the_longest_queue_is_found_in_every_tin() {
    let mut bed = Bed::new(&format!("cake bandwidth 8kbit diffserv4 memlimit {TEN_FRAMES}"), None);
    let offer = |bed: &mut Bed, number, dscp| {
        bed.offer(Frame { number, dscp, flow: dscp.into(), ..Frame::default() }, 1000);
    };
    offer(&mut bed, 0, 0);
    for number in 1..20 {
        offer(&mut bed, number, [0, 46, 46, 46][number as usize % 4]);
    }
    // Of the other ten of nineteen three or four are of best effort: the voice tin's queue is longer until they are as long.
    let lost = bed.lost();
    assert_eq!((lost.len(), bed.stats().qlen), (9, 10));
    assert!(lost.iter().all(|number| number % 4 != 0), "{lost:?}");
}

#[test]
fn by_default_memory_is_for_four_times_what_is_in_flight() {
    let limit = |words: &str| {
        let text = Bed::new(&format!("cake {words}"), None).tc("-s qdisc show");
        let (_, limit) = text.split_once("memory used: 0b of ").unwrap();
        limit.lines().next().unwrap().to_owned()
    };
    assert_eq!(limit("bandwidth 20mbit"), "4Mb", "at least");
    assert_eq!(limit("bandwidth 160mbit"), "8000000b", "20 MB/s for 100 ms, four times");
    assert_eq!(limit("unlimited"), "15140Kb", "10,240 frames of 1514 bytes");
    assert_eq!(limit("bandwidth 10gbit"), "15140Kb");
    assert_eq!(limit("unlimited memlimit 64mb"), "64Mb");
}

#[test]
fn blue_drops_from_a_flow_that_does_not_answer() {
    // 16 Mbit/s into 8, with ECN, which CoDel only marks: without BLUE all would be left to the memory limit.
    let flood = |memlimit: &str| {
        let mut bed = Bed::new(&format!("cake bandwidth 8mbit besteffort {memlimit}"), None);
        for number in 0..6000 {
            bed.advance(u64::from(number) * MS / 2);
            bed.offer(Frame { number, ecn: Ecn::Ect0, ..Frame::default() }, 1000);
        }
        bed
    };
    let mut bed = flood("memlimit 100kb");
    let by = |bed: &Bed, reason| bed.dropped.iter().filter(|dropped| dropped.reason == reason).count();
    let (blue, full) = (by(&bed, DropReason::Congested), by(&bed, DropReason::QueueFull));
    assert!(blue > 500 && full > 100, "BLUE dropped {blue}, memory {full}");
    assert_eq!(row(&mut bed, "un_flows"), ["1"]);
    // Where memory is never full, BLUE does not begin.
    let mut bed = flood("memlimit 100mb");
    assert!(bed.dropped.is_empty());
    assert_eq!(row(&mut bed, "un_flows"), ["0"]);
}
