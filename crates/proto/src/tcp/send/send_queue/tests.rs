use super::*;

const T: Instant = Instant::from_nanos(5);

fn none() -> SendBlocks {
    SendBlocks::new(0)
}

fn bytes(slices: &Slices) -> Vec<u8> {
    slices.concat()
}

#[test]
fn writes_fill_the_unsent_tail_up_to_the_goal() {
    let mut queue = SendQueue::new(SeqNum(100));
    queue.write(b"abc", 4, &mut none());
    queue.write(b"defgh", 4, &mut none());
    assert_eq!(queue.shape(), [(100, 4, 0), (104, 4, 0)]);
    let (slices, len, push) = queue.sent(T, SeqNum(100), 6);
    assert_eq!((bytes(&slices).as_slice(), len, push), (b"abcdef".as_slice(), 6, false));
    assert_eq!(queue.shape(), [(100, 4, 1), (104, 2, 1), (106, 2, 0)]);
    queue.write(b"ij", 4, &mut none());
    queue.mark_push();
    assert_eq!(queue.shape(), [(100, 4, 1), (104, 2, 1), (106, 4, 0)]);
    let (slices, len, push) = queue.sent(T, SeqNum(106), 100);
    assert_eq!((bytes(&slices).as_slice(), len, push), (b"ghij".as_slice(), 4, true));
}

#[test]
fn nothing_is_appended_to_what_was_sent() {
    let mut queue = SendQueue::new(SeqNum(0));
    queue.write(b"ab", 10, &mut none());
    queue.sent(T, SeqNum(0), 10);
    queue.write(b"cd", 10, &mut none());
    assert_eq!(queue.shape(), [(0, 2, 1), (2, 2, 0)]);
}

#[test]
fn acknowledgements_cut_segments_and_respect_karn() {
    let mut queue = SendQueue::new(SeqNum(u32::MAX - 1));
    queue.write_bytes(Bytes::from_static(b"abcdef"), 3, &mut none());
    queue.sent(T, SeqNum(u32::MAX - 1), 6);
    assert_eq!(queue.acknowledge(SeqNum(0), 1000, &mut none(), |_| ()), Some((T, T)));
    assert_eq!(queue.shape(), [(0, 1, 1), (1, 3, 1)]);
    queue.sent(Instant::from_nanos(9), SeqNum(0), 1);
    assert_eq!(
        queue.acknowledge(SeqNum(2), 1000, &mut none(), |_| ()),
        None,
        "a retransmitted byte gives no sample"
    );
    assert_eq!((queue.len(), queue.end()), (2, SeqNum(4)));
    assert_eq!(queue.acknowledge(SeqNum(4), 1000, &mut none(), |_| ()), Some((T, T)));
    assert!(queue.is_empty());
}

#[test]
fn retransmission_may_begin_inside_a_segment() {
    let mut queue = SendQueue::new(SeqNum(0));
    queue.write(b"abcdef", 100, &mut none());
    queue.sent(T, SeqNum(0), 6);
    let (slices, len, _) = queue.sent(T, SeqNum(2), 3);
    assert_eq!((bytes(&slices).as_slice(), len), (b"cde".as_slice(), 3));
}

/// Linux's `forced_push`: a long write is pushed whenever more than half of the largest window is behind the last push.
#[test]
fn a_long_write_is_pushed_in_between() {
    let mut queue = SendQueue::new(SeqNum(0));
    queue.write(&[7; 33], Goal { segment: 4, push_span: 10 }, &mut none());
    queue.mark_push();
    let pushes: Vec<u32> =
        queue.segments.iter().filter(|segment| segment.push).map(|segment| segment.end().0).collect();
    assert_eq!(pushes, [12, 24, 33]);
}

#[test]
fn records_are_never_sent_together() {
    let mut queue = SendQueue::new(SeqNum(0));
    queue.write(b"abc", 10, &mut none());
    queue.end_record();
    queue.write(b"defg", 10, &mut none());
    queue.end_record();
    queue.write(b"h", 10, &mut none());
    assert_eq!(queue.shape(), [(0, 3, 0), (3, 4, 0), (7, 1, 0)]);
    assert_eq!([0, 1, 3, 7].map(|seq| queue.record_len(SeqNum(seq))), [Some(3), Some(2), Some(4), None]);
    assert_eq!(queue.sent(T, SeqNum(0), 10).1, 3);
    assert_eq!(queue.sent(T, SeqNum(3), 2).1, 2);
    assert_eq!(queue.shape(), [(0, 3, 1), (3, 2, 1), (5, 2, 0), (7, 1, 0)]);
    assert_eq!(queue.sent(T, SeqNum(1), 10).1, 2, "nor again");
    assert_eq!(queue.sent(T, SeqNum(3), 10).1, 4);
}

#[test]
fn a_segment_about_to_leave_takes_of_the_next() {
    let mut queue = SendQueue::new(SeqNum(0));
    queue.write(b"abcdefgh", 3, &mut none());
    queue.mark_push();
    queue.join_next(SeqNum(0), 4);
    assert_eq!(queue.shape(), [(0, 4, 0), (4, 2, 0), (6, 2, 0)]);
    queue.join_next(SeqNum(0), 4);
    assert_eq!(queue.shape(), [(0, 4, 0), (4, 2, 0), (6, 2, 0)], "it is full");
    queue.join_next(SeqNum(0), 100);
    queue.join_next(SeqNum(0), 100);
    assert_eq!(queue.shape(), [(0, 8, 0)]);
    queue.write(b"ij", 10, &mut none());
    let (slices, len, push) = queue.sent(T, SeqNum(0), 9);
    assert_eq!((bytes(&slices).as_slice(), len, push), (b"abcdefghi".as_slice(), 9, false));
    queue.write(b"k", 1, &mut none());
    queue.join_next(SeqNum(0), 100);
    assert_eq!(queue.shape(), [(0, 9, 1), (9, 1, 0), (10, 1, 0)], "what was sent stays as it is");
    queue.end_record();
    queue.write(b"l", 1, &mut none());
    queue.join_next(SeqNum(9), 100);
    queue.join_next(SeqNum(9), 100);
    assert_eq!(queue.shape(), [(0, 9, 1), (9, 2, 0), (11, 1, 0)], "a record ends");
}
