//! fq_codel (RFC 8290).
use super::bed::{Bed, Frame, MS, SECOND};
use qdisc::{Ecn, Verdict};

#[test]
fn it_is_shown_as_tc_does() {
    let mut bed = Bed::new("fq_codel target 5ms interval 100ms limit 1000 ecn", None);
    let expected = "qdisc fq_codel 1: root refcnt 2 limit 1000p flows 1024 quantum 1514 target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64 
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) 
 backlog 0b 0p requeues 0
  maxpacket 0 drop_overlimit 0 new_flow_count 0 ecn_mark 0
  new_flows_len 0 old_flows_len 0\n";
    assert_eq!(bed.tc("-s qdisc show"), expected);
}

#[test]
fn a_sparse_flow_goes_ahead_of_a_full_one() {
    // RFC 8290 section 4.1: a queue that becomes active goes to the new queues, which are served first.
    let mut bed = Bed::new("fq_codel", Some(1_500_000)); // 8 ms a frame of 1500 bytes
    for number in 0..20 {
        bed.send(number, 1, 1500);
    }
    bed.advance(20 * MS);
    bed.send(100, 2, 100);
    bed.advance(32 * MS);
    assert_eq!(bed.order(), [0, 1, 2, 100, 3]);
}

#[test]
fn flows_of_different_packets_get_the_same_bytes() {
    let mut bed = Bed::new("fq_codel limit 100000 memory_limit 1gb target 100s", Some(10_000_000));
    for number in 0..20_000 {
        bed.send(number, number % 3, [1500, 300, 800][number as usize % 3]);
    }
    bed.advance(4 * SECOND);
    let bytes = |flow| bed.left.iter().filter(|l| l.frame.flow == flow).map(|l| l.len).sum::<usize>();
    let got = [bytes(0), bytes(1), bytes(2)];
    // Deficits differ by at most a quantum and a packet.
    let (most, least) = (got.iter().max().unwrap(), got.iter().min().unwrap());
    assert!(most - least <= 2 * (1514 + 1500), "{got:?}");
}

#[test]
fn when_it_is_full_the_fattest_flow_pays_half_of_its_queue() {
    let mut bed = Bed::new("fq_codel limit 100", Some(8000));
    for number in 0..91 {
        bed.send(number, 1, 1000); // the first is on the wire, 90 wait
    }
    for number in 200..210 {
        assert_eq!(bed.send(number, 2, 100), Verdict::Queued);
    }
    assert_eq!((bed.stats().qlen, bed.dropped.len()), (100, 0));
    assert_eq!(bed.send(300, 2, 100), Verdict::Queued, "the room is made by another flow");
    assert_eq!(bed.lost(), (1..46).collect::<Vec<_>>(), "45 kB of 90 kB, oldest first");
    for number in 400..500 {
        bed.send(number, 1, 1000);
    }
    let own = bed.dropped.iter().skip(45).all(|dropped| dropped.skb.packet.flow == 1);
    assert!(own && bed.stats().qlen <= 100);
    assert!(bed.tc("-s qdisc show").contains(&format!("drop_overlimit {}", bed.dropped.len())));
}

#[test]
fn at_most_a_batch_is_dropped_at_once() {
    let mut bed = Bed::new("fq_codel limit 1000 drop_batch 5", Some(8000));
    for number in 0..1002 {
        bed.send(number, 1, 1000);
    }
    assert_eq!(bed.lost(), [1, 2, 3, 4, 5]);
}

#[test]
fn each_flow_has_a_codel_of_its_own() {
    // One flow sends far too much, another a tenth of its share: only the first is marked.
    let mut bed = Bed::new("fq_codel", Some(10_000_000));
    for tick in 0..3000u32 {
        for n in 0..3 {
            bed.offer(Frame { number: 4 * tick + n, flow: 1, ecn: Ecn::Ect0, ..Frame::default() }, 1000);
        }
        if tick % 10 == 0 {
            bed.offer(Frame { number: 4 * tick + 3, flow: 2, ecn: Ecn::Ect1, ..Frame::default() }, 500);
        }
        bed.advance(u64::from(tick + 1) * MS);
    }
    let marked = |flow| bed.left.iter().filter(|l| l.frame.flow == flow && l.frame.ecn == Ecn::Ce).count();
    assert!(marked(1) > 10 && marked(2) == 0, "{} {}", marked(1), marked(2));
}

#[test]
fn a_priority_that_names_a_class_is_the_queue() {
    let mut bed = Bed::new("fq_codel", Some(8000));
    for (number, class) in [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)] {
        let frame = Frame { number, priority: 0x1_0000 | class, ..Frame::default() };
        bed.offer(frame, 1000);
    }
    bed.drain();
    // 1 and 2 use up a quantum of 1514 bytes, then it is the turn of 4 and 5.
    assert_eq!(bed.order(), [1, 2, 4, 5, 3]);
}
