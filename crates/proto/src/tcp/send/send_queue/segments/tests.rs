//! The segments beside a plain list of them, on which everything is a walk.

use super::super::Held;
use super::*;
use crate::Instant;
use alloc::vec::Vec;
use core::time::Duration;
use proptest::prelude::*;

const KINDS: [Kind; 8] = [
    Kind::Any,
    Kind::Missing,
    Kind::Sacked,
    Kind::Fresh,
    Kind::Waits,
    Kind::Lost,
    Kind::Again,
    Kind::SackedAgain,
];

/// What the naive list knows of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Known {
    seq: u32,
    len: u32,
    transmissions: u8,
    sent_at: Instant,
    sacked: bool,
    lost: bool,
    retransmitted: bool,
    losses: u8,
}

fn known(segment: &TxSegment) -> Known {
    let TxSegment { len, transmissions, sent_at, sacked, lost, retransmitted, losses, .. } = *segment;
    Known { seq: segment.seq.0, len, transmissions, sent_at, sacked, lost, retransmitted, losses }
}

impl Known {
    fn is(&self, kind: Kind) -> bool {
        match kind {
            Kind::Any => true,
            Kind::Missing => !self.sacked,
            Kind::Sacked => self.sacked,
            Kind::Fresh => self.transmissions == 1 && !self.sacked && !self.lost && self.losses < 4,
            Kind::Waits => self.lost && !self.retransmitted,
            Kind::Lost => self.lost,
            Kind::Again => self.transmissions > 1,
            Kind::SackedAgain => self.transmissions > 1 && self.sacked,
        }
    }

    /// Where it is in the order in which they were sent last.
    fn order(&self) -> (Instant, u32) {
        (self.sent_at, self.seq.wrapping_sub(FIRST))
    }

    fn is_resent(&self) -> bool {
        self.transmissions > 1 && !self.sacked && (!self.lost || self.retransmitted) && self.losses < 4
    }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// The numbers wrap in the middle.
const FIRST: u32 = u32::MAX - 3000;

/// One step on both, by three numbers.
fn step(
    segments: &mut Segments,
    naive: &mut Vec<Known>,
    (what, a, b): (u8, usize, usize),
    now: Instant,
    end: &mut u32,
) {
    let index = a % naive.len().max(1);
    let place = naive.get(index).map(|segment| segments.find(SeqNum(segment.seq)));
    match (what, place) {
        (0..3, _) => {
            let (seq, len) = (*end, 1 + (b % 40) as u32);
            *end = end.wrapping_add(len);
            let mut segment = TxSegment::new(SeqNum(seq));
            (segment.len, segment.transmissions, segment.sent_at) = (len, 1, now);
            naive.push(known(&segment));
            segments.push_back(segment);
        }
        (3, _) => {
            for _ in 0..b % 4 {
                let gone = segments.pop_front().map(|segment| known(&segment));
                assert_eq!(gone, (!naive.is_empty()).then(|| naive.remove(0)));
            }
        }
        (4, Some(place)) if naive[index].len > 1 => {
            let cut = 1 + b as u32 % (naive[index].len - 1);
            let place = if b % 3 == 0 { segments.marked_place(place) } else { place };
            let mut behind = None;
            let place = segments.split(place, |segment| {
                let mut rest = TxSegment::new(segment.seq + cut);
                rest.len = segment.len - cut;
                (rest.transmissions, rest.sent_at, rest.losses) =
                    (segment.transmissions, segment.sent_at, segment.losses);
                (rest.sacked, rest.lost, rest.retransmitted) =
                    (segment.sacked, segment.lost, segment.retransmitted);
                segment.len = cut;
                behind = Some(known(&rest));
                rest
            });
            naive[index].len = cut;
            naive.insert(index + 1, behind.expect("a segment"));
            assert_eq!(segments.get(place).map(known), Some(naive[index]));
        }
        (11, Some(place)) => {
            let kind = KINDS[b % KINDS.len()];
            let until = naive[(index + b / 8 % 9).min(naive.len() - 1)].seq;
            let within = |seq: u32| SeqNum(seq).before(SeqNum(until));
            let run = naive[index..].iter_mut().filter(|segment| segment.is(kind));
            let sack = |segment: &mut TxSegment| {
                (segment.sacked, segment.lost, segment.retransmitted) = (true, false, false);
            };
            run.take_while(|segment| within(segment.seq)).for_each(|segment| {
                (segment.sacked, segment.lost, segment.retransmitted) = (true, false, false);
            });
            segments.mark_run(kind, place, |segment| within(segment.seq.0), sack);
        }
        (10, _) => {
            let within = |sent_at| sent_at <= at(b as u64 % 900);
            let first =
                naive.iter_mut().filter(|segment| segment.is_resent()).min_by_key(|first| first.order());
            let first = first.filter(|first| within(first.sent_at));
            let lose = |segment: &mut TxSegment| {
                (segment.lost, segment.retransmitted) = (true, false);
                segment.losses += 1;
            };
            let place = segments.mark_first_resent(place, |(sent_at, _)| within(sent_at), lose);
            let found = place.and_then(|place| segments.get(place)).map(|segment| segment.seq.0);
            assert_eq!(found, first.as_ref().map(|first| first.seq));
            if let Some(first) = first {
                (first.lost, first.retransmitted, first.losses) = (true, false, first.losses + 1);
            }
        }
        (_, Some(place)) => {
            let change = |segment: &mut TxSegment| match what {
                5 => (segment.sacked, segment.lost, segment.retransmitted) = (true, false, false),
                6 if !segment.sacked => {
                    (segment.lost, segment.retransmitted) = (true, false);
                    segment.losses += 1;
                }
                7 => {
                    segment.retransmitted = segment.lost;
                    segment.transmissions = segment.transmissions.saturating_add(1);
                    (segment.sent_at, segment.losses) = (now, 0);
                }
                8 => (segment.lost, segment.retransmitted) = (false, segment.retransmitted),
                _ => segment.sacked = false,
            };
            segments.mark(place, change);
            let place = segments.find(SeqNum(naive[index].seq));
            naive[index] = known(segments.get(place).expect("a segment"));
        }
        _ => {}
    }
}

/// Everything that may be asked, of both.
fn compare(segments: &Segments, naive: &[Known], ask: usize) {
    let all: Vec<Known> = segments.iter().map(known).collect();
    assert_eq!(all, naive);
    assert_eq!(segments.len(), naive.len());
    assert_eq!(segments.back().map(known), naive.last().copied());
    assert_eq!(segments.second().map(known), naive.get(1).copied());
    let index = ask % (naive.len() + 1);
    let from = naive.get(index).map_or_else(
        || naive.last().map_or(SeqNum(0), |last| SeqNum(last.seq) + last.len),
        |segment| SeqNum(segment.seq) + (ask as u32 / 7 % segment.len),
    );
    let place = segments.find(from);
    let found = |place: Option<Place>| place.and_then(|place| segments.get(place)).map(known);
    assert_eq!(found(Some(place)), naive.get(index).copied());
    if let Some(before) = naive.get(index.saturating_sub(ask / 11 % 3)) {
        assert_eq!(segments.find_near(segments.find(SeqNum(before.seq)), from), place);
    }
    assert_eq!(found(Some(segments.behind(place))), naive.get(index + 1).copied());
    assert_eq!(segments.is_last(place), index + 1 == naive.len());
    assert!(segments.iter_from(place).map(known).eq(naive[index..].iter().copied()));
    for kind in KINDS {
        let first = naive[index..].iter().find(|segment| segment.is(kind)).copied();
        assert_eq!(found(segments.next(kind, place)), first, "{kind:?} from {index}");
    }
    let last = naive.iter().rfind(|segment| segment.is(Kind::Sacked)).copied();
    assert_eq!(found(segments.last_sacked(None)), last);
    let last = naive[..index].iter().rfind(|segment| segment.is(Kind::Sacked)).copied();
    assert_eq!(found(segments.last_sacked(Some(place))), last);
    let limit = at(ask as u64 % 900);
    let fresh = naive.iter().filter(|segment| segment.is(Kind::Fresh));
    let overtaken = fresh.take_while(|segment| segment.sent_at < limit).last().copied();
    assert_eq!(segments.last_overtaken(|segment| segment.sent_at < limit).map(known), overtaken);
    let before = Transmission::new(limit, from);
    let earlier = naive.iter().filter(|segment| segment.is_resent()).filter(|segment| {
        let behind = segment.seq.wrapping_add(segment.len).wrapping_sub(FIRST);
        (segment.sent_at, behind) < (limit, from.0.wrapping_sub(FIRST))
    });
    let value = |segment: &Known| (segment.sent_at, SeqNum(segment.seq) + segment.len);
    let last = earlier.max_by_key(|segment| segment.order()).map(value);
    assert_eq!(segments.last_resent_before(before).map(Transmission::value), last);
}

proptest! {
    /// Whatever is done in whatever order (proptest prints the steps that fail, and keeps their seed).
    #[test]
    fn they_are_as_a_plain_list(
        steps in proptest::collection::vec((0u8..12, any::<usize>(), any::<usize>()), 1..900),
    ) {
        let (mut segments, mut naive, mut end) = (Held::default().segments, Vec::new(), FIRST);
        for (ms, chosen) in steps.into_iter().enumerate() {
            step(&mut segments, &mut naive, chosen, at(ms as u64), &mut end);
            compare(&segments, &naive, chosen.1 ^ chosen.2);
        }
    }
}
