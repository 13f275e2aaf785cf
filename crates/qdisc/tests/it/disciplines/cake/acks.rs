//! Which acknowledgments a later one makes needless.
use super::row;
use crate::disciplines::bed::{Bed, Frame};
use qdisc::{DropReason, TcpFields};

const ACK: u16 = 0x10;
const PSH: u16 = 0x08;
const ECE: u16 = 0x40;

fn pure(ack: u32) -> TcpFields {
    TcpFields { flags: ACK, ack, ..TcpFields::default() }
}

/// Offers these behind a packet that keeps the line busy; the numbers of those that are dropped, from 1.
fn dropped(words: &str, segments: &[TcpFields]) -> Vec<u32> {
    let mut bed = Bed::new(&format!("cake bandwidth 8kbit besteffort {words}"), None);
    bed.send(0, 9, 1000);
    for (number, tcp) in (1..).zip(segments) {
        bed.offer(Frame { number, flow: 1, tcp: Some(*tcp), ..Frame::default() }, 60);
    }
    let needless = bed.dropped.iter().all(|dropped| dropped.reason == DropReason::NeedlessAck);
    let lost = bed.lost();
    assert!(needless, "{:?}", bed.dropped);
    assert_eq!(row(&mut bed, "ack_drop"), [lost.len().to_string()]);
    assert_eq!((row(&mut bed, "drops"), bed.stats().drops), (vec!["0".to_owned()], lost.len() as u64));
    lost
}

#[test]
fn one_that_could_be_spared_stays_beside_the_last() {
    let acks: Vec<TcpFields> = (1..7).map(|n| pure(n * 1000)).collect();
    assert_eq!(dropped("ack-filter", &acks), [1, 2, 3, 4]);
    assert_eq!(dropped("ack-filter-aggressive", &acks), [1, 2, 3, 4, 5]);
    assert_eq!(dropped("no-ack-filter", &acks), []);
    assert_eq!(dropped("", &acks), []);
}

#[test]
fn behind_the_bottleneck_what_is_spared_counts_as_sent() {
    let next = |words: &str| {
        let words = format!("cake bandwidth 8mbit besteffort ack-filter-aggressive {words}");
        let mut bed = Bed::new(&words, None);
        bed.send(0, 9, 1000);
        for number in 1..4 {
            bed.offer(Frame { number, flow: 1, tcp: Some(pure(number * 1000)), ..Frame::default() }, 60);
        }
        bed.drain();
        (bed.left[1].frame.number, bed.left[1].at / 1000)
    };
    // A frame of 1000 bytes and, behind the bottleneck, two of 60.
    assert_eq!((next("egress"), next("ingress")), ((3, 1000), (3, 1120)));
}

#[test]
fn duplicates_are_counted_by_who_receives_them() {
    assert_eq!(dropped("ack-filter-aggressive", &[pure(1000), pure(1000), pure(1000), pure(1000)]), []);
}

#[test]
fn an_older_one_that_comes_late_makes_nothing_needless() {
    assert_eq!(dropped("ack-filter-aggressive", &[pure(3000), pure(2000), pure(1000)]), []);
    // Sequence numbers go round.
    assert_eq!(dropped("ack-filter-aggressive", &[pure(u32::MAX - 10), pure(20)]), [1]);
}

#[test]
fn what_carries_more_than_an_acknowledgment_stays() {
    let next = pure(2000);
    for (what, first) in [
        ("data", TcpFields { payload_len: 1, ..pure(1000) }),
        ("PSH", TcpFields { flags: ACK | PSH, ..pure(1000) }),
        ("a reserved bit", TcpFields { flags: ACK | 0x200, ..pure(1000) }),
        ("an option of another kind", TcpFields { other_options: true, ..pure(1000) }),
        ("SACK", TcpFields { sack: [Some((5000, 6000)), None, None, None], ..pure(1000) }),
        ("a later timestamp", TcpFields { timestamps: Some((8, 1)), ..pure(1000) }),
        ("ECE", TcpFields { flags: ACK | ECE, ..pure(1000) }),
    ] {
        assert_eq!(dropped("ack-filter-aggressive", &[first, next]), [], "{what}");
    }
    assert_eq!(dropped("ack-filter-aggressive", &[pure(1000), next]), [1], "nothing else");
}

#[test]
fn data_behind_an_acknowledgment_says_as_much() {
    let data = TcpFields { payload_len: 500, ..pure(2000) };
    assert_eq!(dropped("ack-filter-aggressive", &[pure(1000), data]), [1]);
}

#[test]
fn sack_blocks_that_are_all_told_again_are_no_loss() {
    let sack = |ack, blocks: [Option<(u32, u32)>; 2]| TcpFields {
        sack: [blocks[0], blocks[1], None, None],
        ..pure(ack)
    };
    let small = sack(1000, [Some((3000, 4000)), None]);
    let large = sack(1000, [Some((3000, 5000)), None]);
    assert_eq!(dropped("ack-filter-aggressive", &[small, large]), [1], "more, of the same acknowledgment");
    assert_eq!(dropped("ack-filter-aggressive", &[large, small]), []);
    assert_eq!(dropped("ack-filter-aggressive", &[small, small]), [], "a duplicate");
    // A block below the acknowledgment tells of a segment that came twice (RFC 2883).
    let duplicate = sack(1000, [Some((500, 900)), Some((3000, 4000))]);
    assert_eq!(
        dropped("ack-filter-aggressive", &[duplicate, sack(2000, [Some((500, 900)), Some((3000, 4000))])]),
        []
    );
}

#[test]
fn timestamps_that_do_not_go_back_are_no_loss() {
    let at = |ack, tsval, tsecr| TcpFields { timestamps: Some((tsval, tsecr)), ..pure(ack) };
    assert_eq!(dropped("ack-filter-aggressive", &[at(1000, 5, 50), at(2000, 6, 50)]), [1]);
    assert_eq!(dropped("ack-filter-aggressive", &[at(1000, 5, 51), at(2000, 6, 50)]), []);
}

#[test]
fn the_first_that_tells_a_change_of_ecn_stays() {
    let ece = |ack| TcpFields { flags: ACK | ECE, ..pure(ack) };
    let acks = [pure(1000), pure(2000), ece(3000), ece(4000), ece(5000)];
    // 3 finds 1 and 2; 4 does not go past the change at 3, nor does 5 before 3 and 4 are both there.
    assert_eq!(dropped("ack-filter", &acks), [1, 3]);
}

#[test]
fn connections_are_told_apart_even_in_one_queue() {
    let mut bed = Bed::new("cake bandwidth 8kbit besteffort flowblind ack-filter-aggressive", None);
    bed.send(0, 9, 1000);
    for (number, flow) in [(1, 1), (2, 2), (3, 2), (4, 1)] {
        let frame = Frame { number, flow, tcp: Some(pure(number * 1000)), ..Frame::default() };
        bed.offer(frame, 60);
    }
    assert_eq!(bed.lost(), [2]);
}
