//! tbf (tc-tbf(8), Linux's `sch_tbf.c`).
use super::bed::{Bed, Frame, MS};
use qdisc::{DropReason, Segments, Verdict};

#[test]
fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
    // 1 Mbit/s: 1000 bytes take 8 ms.
    let mut bed = Bed::new("tbf rate 1mbit burst 3000 limit 10000", None);
    for number in 0..6 {
        bed.send(number, 0, 1000);
    }
    bed.drain();
    let times: Vec<u64> = bed.left.iter().map(|left| left.at).collect();
    assert_eq!(times, [0, 0, 0, 8 * MS, 16 * MS, 24 * MS]);
}

#[test]
fn after_a_pause_no_more_than_the_burst_has_been_saved_up() {
    let mut bed = Bed::new("tbf rate 1mbit burst 2000 limit 10000", None);
    bed.advance(60_000 * MS);
    for number in 0..3 {
        bed.send(number, 0, 1000);
    }
    bed.drain();
    let times: Vec<u64> = bed.left.iter().map(|left| left.at - 60_000 * MS).collect();
    assert_eq!(times, [0, 0, 8 * MS]);
}

#[test]
fn with_a_peak_rate_even_the_burst_is_spaced() {
    let mut bed = Bed::new("tbf rate 1mbit burst 3000 limit 10000 peakrate 2mbit mtu 1000", None);
    for number in 0..7 {
        bed.send(number, 0, 1000);
    }
    bed.drain();
    let times: Vec<u64> = bed.left.iter().map(|left| left.at / MS).collect();
    // At 2 Mbit/s 4 ms apart, which earns 500 bytes a packet: the burst of 3000 bytes carries five, then 1 Mbit/s.
    assert_eq!(times, [0, 4, 8, 12, 16, 24, 32]);
}

#[test]
fn what_is_longer_than_the_bucket_never_fits() {
    let mut bed = Bed::new("tbf rate 1mbit burst 1000 limit 10000", None);
    assert_eq!(bed.send(1, 0, 1001), Verdict::Dropped(DropReason::TooBig));
    assert_eq!(bed.send(2, 0, 1000), Verdict::Queued);
}

/// Linux's `tbf_segment`; 1 Mbit/s, so that 1000 bytes take 8 ms.
#[test]
fn a_large_segment_is_taken_apart_if_its_frames_fit() {
    let of_frames =
        |len| Frame { segments: Some(Segments { count: 3, len, last_len: 500 }), ..Frame::default() };
    let mut bed = Bed::new("tbf rate 1mbit burst 1000 limit 10000", None);
    assert_eq!(bed.offer(of_frames(1000), 2500), Verdict::Queued);
    assert_eq!(bed.offer(of_frames(1001), 2502), Verdict::Dropped(DropReason::TooBig));
    bed.drain();
    let left: Vec<(u64, usize)> = bed.left.iter().map(|left| (left.at, left.len)).collect();
    assert_eq!(left, [(0, 1000), (8 * MS, 1000), (12 * MS, 500)]);
    assert_eq!((bed.stats().packets, bed.stats().bytes), (3, 2500));
}

#[test]
fn of_a_large_segment_the_frames_that_do_not_fit_into_the_queue_are_lost() {
    let segment =
        Frame { segments: Some(Segments { count: 5, len: 1000, last_len: 1000 }), ..Frame::default() };
    let mut bed = Bed::new("tbf rate 1mbit burst 1000 limit 3000", None);
    assert_eq!(bed.offer(segment, 5000), Verdict::Queued);
    bed.drain();
    assert_eq!((bed.left.len(), bed.dropped.len()), (3, 2));
}

#[test]
fn cells_cost_what_they_cost() {
    // 1500 bytes are 32 cells, 1696 bytes: at 1.696 Mbit/s 8 ms.
    let mut bed = Bed::new("tbf rate 1696kbit burst 1500 limit 100000 linklayer atm", None);
    for number in 0..3 {
        bed.send(number, 0, 1500);
    }
    bed.drain();
    let times: Vec<u64> = bed.left.iter().map(|left| left.at).collect();
    // Each time is rounded down to a nanosecond.
    assert_eq!(times, [0, 8 * MS - 1, 16 * MS - 2]);
}

#[test]
fn in_the_long_run_the_rate_is_exact() {
    let mut bed = Bed::new("tbf rate 3mbit burst 10000 limit 20mb", None);
    for number in 0..10_000 {
        bed.send(number, 0, 60 + (number as usize * 37) % 1400);
    }
    bed.drain();
    let bytes: u64 = bed.left.iter().map(|left| left.len as u64).sum();
    let expected = (bytes - 10_000) * 8 * 1000 / 3; // ns at 3 Mbit/s, without the burst
    let took = bed.left.last().unwrap().at;
    // Each packet's time is rounded down to a nanosecond.
    assert!(took.abs_diff(expected) <= 10_000, "{took} {expected}");
}
