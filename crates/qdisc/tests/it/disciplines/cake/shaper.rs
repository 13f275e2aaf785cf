//! When packets leave.
use crate::disciplines::bed::{Bed, Frame, MS, SECOND};
use qdisc::{Dequeue, Qdisc, Segments};

const MICRO: u64 = 1000;

/// The times at which frames of these lengths leave that come at once, link headers of 14 bytes included.
fn times(words: &str, lengths: &[usize]) -> Vec<u64> {
    let mut bed = Bed::new(&format!("cake {words}"), None);
    for length in lengths {
        bed.offer(Frame { offset: 14, ..Frame::default() }, *length);
    }
    bed.drain();
    bed.left.iter().map(|left| left.at).collect()
}

#[test]
fn packets_leave_at_the_rate_from_the_first_on() {
    // 8 Mbit/s: a microsecond a byte.
    assert_eq!(
        times("bandwidth 8mbit", &[1000, 500, 100, 60]),
        [0, 1000 * MICRO, 1500 * MICRO, 1600 * MICRO]
    );
}

#[test]
fn what_was_not_sent_in_a_pause_is_no_credit() {
    let mut bed = Bed::new("cake bandwidth 8mbit", None);
    bed.send(0, 0, 1000);
    bed.advance(60 * SECOND);
    for number in 1..4 {
        bed.send(number, 0, 1000);
    }
    bed.drain();
    let times: Vec<u64> = bed.left.iter().skip(1).map(|left| left.at - 60 * SECOND).collect();
    assert_eq!(times, [0, MS, 2 * MS]);
}

#[test]
fn the_pause_after_a_packet_holds_for_the_next_flow_too() {
    let mut bed = Bed::new("cake bandwidth 8mbit", None);
    bed.send(0, 0, 1000);
    bed.advance(MS / 4);
    bed.send(1, 7, 1000);
    bed.drain();
    assert_eq!(bed.left[1].at, MS);
}

#[test]
fn who_asks_late_gets_what_was_missed_and_no_more() {
    let mut bed = Bed::new("cake bandwidth 8mbit", None);
    for number in 0..12 {
        bed.send(number, 0, 1000);
    }
    // One has left at once; the other eleven may leave at 1, 2, 3, … ms.
    let at = 5 * MS + MS / 2;
    let mut missed = 0;
    let until = loop {
        match bed.device.dequeue(at, &mut bed.dropped) {
            Dequeue::Packet(_) => missed += 1,
            other => break other,
        }
    };
    assert_eq!((missed, until), (5, Dequeue::Throttled(6 * MS)));
}

#[test]
fn the_basis_is_the_length_of_the_ip_packet_unless_it_is_raw() {
    assert_eq!(times("bandwidth 8mbit overhead 0", &[1014, 60]), [0, 1000 * MICRO]);
    assert_eq!(times("bandwidth 8mbit raw", &[1014, 60]), [0, 1014 * MICRO]);
    assert_eq!(times("bandwidth 8mbit overhead -14 raw", &[1014, 60]), [0, 1014 * MICRO], "raw forgets it");
    assert_eq!(times("bandwidth 8mbit raw overhead -14", &[1014, 60]), [0, 1000 * MICRO]);
}

#[test]
fn preamble_gap_and_least_size_of_ethernet_count() {
    // 1000 + 38 bytes, and 84 for a frame of 60, which has 46 bytes of IP.
    let expected = [0, 1038 * MICRO, (1038 + 84) * MICRO, (1038 + 84 + 84) * MICRO];
    assert_eq!(times("bandwidth 8mbit ethernet", &[1014, 60, 60, 60]), expected);
}

#[test]
fn cells_of_adsl_count() {
    // 1500 + 32 bytes take 32 cells, 40 + 32 two: 1696 and 106 bytes.
    assert_eq!(times("bandwidth 8mbit pppoe-vcmux", &[1514, 54, 54]), [0, 1696 * MICRO, 1802 * MICRO]);
}

#[test]
fn code_blocks_of_vdsl2_count() {
    // 1500 + 30 bytes and one for each 64 of them or part.
    assert_eq!(times("bandwidth 8mbit pppoe-ptm", &[1514, 54, 54]), [0, 1554 * MICRO, 1626 * MICRO]);
}

#[test]
fn unlimited_holds_nothing_back() {
    assert_eq!(times("unlimited", &[1514; 5]), [0; 5]);
    assert_eq!(times("bandwidth 8mbit unlimited", &[1514; 5]), [0; 5]);
}

#[test]
fn in_the_long_run_the_rate_is_exact() {
    let mut bed = Bed::new("cake bandwidth 3mbit besteffort rtt 1000s memlimit 100mb", None);
    for number in 0..10_000 {
        bed.send(number, number % 5, 60 + (number as usize * 37) % 1400);
    }
    bed.drain();
    let last = bed.left.last().unwrap();
    let bytes: u64 = bed.left.iter().map(|left| left.len as u64).sum();
    let expected = (bytes - last.len as u64) * 8 * 1000 / 3; // ns at 3 Mbit/s
    // The time of a byte is cut to 34 bits, that of a packet to a nanosecond.
    assert!(last.at.abs_diff(expected) <= 10_010, "{} {expected}", last.at);
}

const LARGE: Segments = Segments { count: 3, len: 1014, last_len: 514 };

fn large(number: u32) -> Frame {
    Frame { number, offset: 14, segments: Some(LARGE), ..Frame::default() }
}

#[test]
fn a_large_segment_is_taken_apart_so_that_others_come_between() {
    let mut bed = Bed::new("cake bandwidth 8mbit overhead 0 besteffort", None);
    bed.advance(SECOND);
    bed.offer(large(1), 2434);
    bed.offer(Frame { number: 2, flow: 2, offset: 14, ..Frame::default() }, 114);
    bed.drain();
    let time = |at: u64| (at - SECOND) / MICRO;
    let left: Vec<_> = bed.left.iter().map(|left| (left.frame.number, left.len, time(left.at))).collect();
    assert_eq!(left, [(1, 1014, 0), (2, 114, 1000), (1, 1014, 1100), (1, 514, 2100)]);
    assert_eq!((bed.stats().packets, bed.stats().bytes), (4, 2656));
    // Of 0, 1, 1.1 and 2.1 ms each counts for a quarter.
    assert_eq!(super::row(&mut bed, "pk_delay"), ["871us"]);
}

#[test]
fn left_whole_it_counts_as_its_frames_do() {
    let mut bed = Bed::new("cake bandwidth 8mbit overhead 10 besteffort no-split-gso", None);
    bed.offer(large(1), 2434);
    bed.offer(Frame { number: 2, flow: 2, ..Frame::default() }, 114);
    bed.drain();
    let left: Vec<_> = bed.left.iter().map(|left| (left.frame.number, left.len, left.at / MICRO)).collect();
    // 1000 + 1000 + 500 bytes of IP, and 10 with each frame.
    assert_eq!(left, [(1, 2434, 0), (2, 114, 2530)]);
}
