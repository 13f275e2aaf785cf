//! Losses, sums and recoveries, by the scoreboard alone.

use super::*;
use crate::NewRenoRules;
use crate::tcp::send::send_queue::blocks::SendBlocks;
use proptest::prelude::*;

const MSS: u32 = 100;
const WHOLE: Resend = Resend { most: MSS, together: MSS, until: SeqNum(u32::MAX / 2), all_lost: true };

fn sums(queue: &SendQueue) -> (u32, u32, u32) {
    let sum = |marked: fn(&TxSegment) -> bool| {
        queue.starting(SeqNum(0)).filter(|segment| marked(segment)).map(|segment| segment.len).sum()
    };
    (sum(|s| s.sacked), sum(|s| s.lost), sum(|s| s.retransmitted))
}

fn sent(segments: u32) -> SendQueue {
    let mut queue = SendQueue::new(SeqNum(0));
    queue.write(&vec![0; (segments * MSS) as usize], 10 * MSS, &mut SendBlocks::new(0));
    queue.sent(Instant::from_nanos(1_000_000), SeqNum(0), segments * MSS);
    queue
}

fn arrived(board: &Scoreboard, una: u32, nxt: u32, ms: u64) -> Arrived {
    let now = Instant::from_nanos(ms * 1_000_000);
    board.arrival((now, None, Duration::from_millis(1)), (SeqNum(una), SeqNum(nxt), nxt - una), (MSS, false))
}

/// RFC 2883 §4: the examples' shapes.
#[test]
fn the_first_block_may_be_a_duplicate() {
    let block = |start, end| (SeqNum(start), SeqNum(end));
    assert_eq!(dsack(&[block(3000, 3500)], SeqNum(4000)), Some(block(3000, 3500)));
    assert_eq!(dsack(&[block(5000, 5500), block(4500, 6000)], SeqNum(4000)), Some(block(5000, 5500)));
    assert_eq!(dsack(&[block(5000, 5500), block(6000, 6500)], SeqNum(4000)), None);
    assert_eq!(dsack(&[block(3500, 3000)], SeqNum(4000)), None);
}

/// RFC 6675 §4: pipe counts what is neither selectively acknowledged nor lost, and what was retransmitted.
#[test]
fn the_pipe_is_what_the_rfc_counts() {
    let config = Config { tcp_recovery: 0, ..Config::default() };
    let mut queue = sent(10);
    let mut board = Scoreboard::new(config.tcp_reordering, SeqNum(0), true);
    let mut ack = arrived(&board, 0, 1000, 50);
    board.read(&mut queue, &[(SeqNum(100), SeqNum(400))], SeqNum(1000), &mut ack);
    let how = ReoWindow { min_rtt: Duration::ZERO, srtt: Duration::ZERO, smss: MSS, flags: 0 };
    board.detect(&mut queue, (SeqNum(0), SeqNum(1000)), ack.now, &how);
    assert_eq!((sums(&queue), board.pipe(1000)), ((300, 100, 0), 600));
    assert_eq!(board.next_lost(&queue, (SeqNum(0), SeqNum(1000)), &WHOLE), Some((SeqNum(0), 100)));
    queue.sent(ack.now, SeqNum(0), 100);
    board.on_sent(&mut queue, (SeqNum(0), 100), true, ack.now);
    assert_eq!((board.pipe(1000), board.next_lost(&queue, (SeqNum(0), SeqNum(1000)), &WHOLE)), (700, None));
}

/// Segment 0 is lost and retransmitted at 60 ms; its recovery ends only with the acknowledgement that also shows 5 to be lost, which
/// had been retransmitted at 90 ms. The next ACK, which echoes 90 ms, is no sign that the second recovery was spurious.
#[test]
fn a_retransmission_of_the_last_recovery_does_not_undo_this_one() {
    let mut queue = sent(10);
    let mut board = Scoreboard::new(3, SeqNum(0), true);
    let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
    for (seq, ms) in [(0, 60), (500, 90)] {
        let mut ack = arrived(&board, 0, 1000, ms);
        board.read(&mut queue, &[(SeqNum(seq + 100), SeqNum(seq + 500))], SeqNum(1000), &mut ack);
        let how = ReoWindow { min_rtt: Duration::ZERO, srtt: Duration::ZERO, smss: MSS, flags: 1 };
        board.detect(&mut queue, (SeqNum(0), SeqNum(1000)), at(ms), &how);
        if board.phase == Phase::Open {
            board.begin_recovery(SeqNum(500), 500, 500, Undo::new(9, 9, SeqNum(0)));
        }
        queue.sent(at(ms), SeqNum(seq), 100);
        board.on_sent(&mut queue, (SeqNum(seq), 100), true, at(ms));
    }
    let mut ack = arrived(&board, 0, 1000, 110);
    queue.acknowledge(SeqNum(500), MSS, &mut SendBlocks::new(0), |segment| {
        board.acknowledged(segment, &mut ack)
    });
    board.on_progress(SeqNum(500), SeqNum(1000));
    assert_eq!((board.phase, board.marks.retransmitted.len), (Phase::Open, 100));
    board.begin_recovery(SeqNum(1000), 500, 500, Undo::new(7, 7, SeqNum(500)));
    let ack = Arrived { echo: Some(90), ..arrived(&board, 500, 1000, 140) };
    assert_eq!(board.spurious(&ack, SeqNum(600)), None);
    let ack = Arrived { echo: Some(59), ..arrived(&board, 500, 1000, 140) };
    assert_eq!(board.spurious(&ack, SeqNum(600)), Some(Spurious::Timestamp));
}

/// Nothing is reported, and no recovery goes on: what was sent before the segment that was acknowledged is lost all the same.
#[test]
fn time_tells_losses_behind_a_retransmission() {
    let mut queue = sent(4);
    let mut board = Scoreboard::new(3, SeqNum(0), true);
    let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
    queue.sent(at(50), SeqNum(0), 100);
    let mut ack = arrived(&board, 0, 400, 100);
    queue.acknowledge(SeqNum(100), MSS, &mut SendBlocks::new(0), |segment| {
        board.acknowledged(segment, &mut ack)
    });
    let how = ReoWindow { min_rtt: Duration::ZERO, srtt: Duration::ZERO, smss: 100, flags: RACK };
    board.detect(&mut queue, (SeqNum(100), SeqNum(400)), at(100), &how);
    assert_eq!((board.phase, board.marks.lost.len), (Phase::Open, 300));
}

#[test]
fn every_segment_is_delivered_once() {
    let mut queue = sent(10);
    let mut board = Scoreboard::new(3, SeqNum(0), true);
    let mut ack = arrived(&board, 0, 1000, 50);
    for (block, delivered) in [((300, 500), 200), ((300, 500), 200), ((200, 600), 400)] {
        board.read(&mut queue, &[(SeqNum(block.0), SeqNum(block.1))], SeqNum(1000), &mut ack);
        assert_eq!(queue.delivery.delivered(), delivered);
    }
    for (una, delivered) in [(400, 600), (1000, 1000)] {
        queue.acknowledge(SeqNum(una), MSS, &mut SendBlocks::new(0), |segment| {
            board.acknowledged(segment, &mut ack)
        });
        assert_eq!(queue.delivery.delivered(), delivered);
    }
}

fn waits(segment: &TxSegment) -> bool {
    segment.lost && !segment.retransmitted
}

/// What `detect` is to find, by a look at every segment: what waits to be retransmitted then, and how long something else may be late.
fn losses_by_walking(
    board: &Scoreboard,
    queue: &SendQueue,
    (snd_una, snd_nxt): (SeqNum, SeqNum),
    now: Instant,
    how: &ReoWindow,
) -> (Vec<SeqNum>, Option<Duration>) {
    let rack = &board.rack;
    let reo_wnd = rack.reo_wnd(queue, snd_una, board.repairs(), how);
    let (mut lost, mut wait) = (Vec::new(), None);
    let mut above: Vec<&TxSegment> = queue.all().filter(|segment| segment.sacked).collect();
    for segment in queue.all().take_while(|segment| segment.seq.before(snd_nxt)) {
        above.retain(|other| other.seq.after(segment.seq));
        let judged = segment.is_thought_in_flight() && segment.losses < 4;
        let is_lost = judged
            && if how.flags & RACK == 0 {
                let weight: u32 = above.iter().map(|other| other.weight).sum();
                let runs = above.iter().enumerate();
                let begins = |(at, other): (usize, &&TxSegment)| at == 0 || above[at - 1].end() != other.seq;
                let runs = runs.filter(|run| begins(*run)).count() as u32;
                let enough = weight > (rack.dup_thresh - 1) * how.smss || runs >= rack.dup_thresh;
                segment.transmissions == 1 && enough
            } else {
                let remaining = rack.remaining((segment.sent_at, segment.end()), reo_wnd, now);
                wait = wait.max(remaining.filter(|remaining| *remaining > Duration::ZERO));
                remaining == Some(Duration::ZERO)
            };
        if is_lost || waits(segment) {
            lost.push(segment.seq);
        }
    }
    (lost, wait)
}

/// A recovery may be taken for spurious, and what it held to be lost is held to be lost again: not without end.
#[test]
fn time_tells_only_so_many_losses_of_one_transmission() {
    let mut queue = sent(3);
    let mut board = Scoreboard::new(3, SeqNum(0), true);
    let span = (SeqNum(0), SeqNum(300));
    let mut ack = arrived(&board, 0, 300, 100);
    board.read(&mut queue, &[(SeqNum(200), SeqNum(300))], SeqNum(300), &mut ack);
    board.saw_reordering();
    let how = ReoWindow { min_rtt: Duration::ZERO, srtt: Duration::ZERO, smss: MSS, flags: RACK };
    let found = [(); 6].map(|()| {
        board.detect(&mut queue, span, ack.now, &how);
        let lost = board.marks.lost.len;
        board.reopen(&mut queue, span.0);
        lost
    });
    assert_eq!(found, [200, 200, 200, 200, 0, 0]);
}

proptest! {
    /// Whatever comes, the losses are those that a look at every segment finds, the sums are those of the marks, and the
    /// queue is cut only so often.
    #[test]
    fn the_sums_are_those_of_the_marks(steps in proptest::collection::vec((0u8..6, 0u32..4000, 1u32..600), 1..120)) {
        let mut queue = sent(40);
        let mut board = Scoreboard::new(3, SeqNum(0), true);
        let (mut una, nxt) = (0, 4000);
        for (ms, (step, at, len)) in steps.into_iter().enumerate() {
            let mut ack = arrived(&board, una, nxt, 20 + ms as u64);
            let span = (SeqNum(una), SeqNum(nxt));
            match step {
                0 if at < 400 => {
                    una = (una + at).min(nxt);
                    queue.acknowledge(SeqNum(una), MSS, &mut SendBlocks::new(0), |segment| board.acknowledged(segment, &mut ack));
                    board.on_progress(SeqNum(una), SeqNum(nxt));
                }
                1 | 2 => {
                    let blocks = [(SeqNum(at), SeqNum(at + len)), (SeqNum(at / 2), SeqNum(at / 2 + len))];
                    board.read(&mut queue, &blocks, SeqNum(nxt), &mut ack);
                }
                3 => {
                    let how = ReoWindow { min_rtt: Duration::from_millis(4), srtt: Duration::from_millis(8), smss: MSS, flags: len % 2 };
                    let expected = losses_by_walking(&board, &queue, span, ack.now, &how);
                    let wait = board.detect(&mut queue, span, ack.now, &how);
                    let lost: Vec<SeqNum> =
                        queue.all().filter(|segment| waits(segment)).map(|segment| segment.seq).collect();
                    prop_assert_eq!((lost, wait), expected);
                }
                4 => {
                    if let Some((seq, len)) = board.next_lost(&queue, span, &WHOLE) {
                        prop_assert!(len > 0 && seq.after_or_eq(span.0));
                        queue.sent(ack.now, seq, len);
                        board.on_sent(&mut queue, (seq, len), true, ack.now);
                    }
                }
                _ if at < 100 => { board.on_timeout(&mut queue, span, None); }
                _ if at < 200 => board.reopen(&mut queue, span.0),
                _ => {}
            }
            let marks = &board.marks;
            prop_assert_eq!(sums(&queue), (marks.sacked.len, marks.lost.len, marks.retransmitted.len));
            prop_assert!(queue.count() <= 3 * 40 + 8, "{} segments", queue.count());
        }
    }
}

/// RFC 6582 §3.2, step 3: the first few partial ACKs give more time, and those of the next recovery again.
#[test]
fn a_recovery_that_creeps_is_left_to_the_time_out() {
    let mut board = Scoreboard::new(3, SeqNum(0), false);
    board.begin_recovery(SeqNum(5000), 5000, 2500, Undo::of_congestion(SeqNum(0)));
    let mut restarts = |una| {
        board.count_partial(SeqNum(una));
        [NewRenoRules::Rfc, NewRenoRules::Kernel].map(|rules| board.restarts_timer(rules))
    };
    assert_eq!([100, 200, 300, 400].map(&mut restarts), [[true; 2]; 4]);
    assert_eq!([500, 600, 4900].map(&mut restarts), [[false, true]; 3]);
    assert_eq!(restarts(5000), [true; 2], "it is over");
}
