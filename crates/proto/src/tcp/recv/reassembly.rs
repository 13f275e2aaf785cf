//! What arrived beyond a gap: runs of bytes in order, and what of them has not been reported to the peer yet.
//!
//! A run is a [`ReceiveBuffer`], so small payloads are copied together here too. Their number is bounded by the size of the receive
//! buffer: a window in which every other segment is missing fits, one of single bytes does not.

use super::ordered::Ordered;
use super::receive_buffer::{ReceiveBuffer, Spare};
use alloc::collections::{BTreeMap, VecDeque};
use bytes::Bytes;
use core::ops::Bound;
use wire::{SackBlocks, SeqNum};

/// Bytes of receive buffer for which there may be one run more. Every other segment of 536 bytes missing takes one per 1072.
const BYTES_PER_RUN: u32 = 1024;
/// Runs of the smallest buffer.
const RUNS_MIN: u32 = 32;
/// Runs remembered by the order in which they grew (RFC 2018 §4: those reported last are repeated). As many as a batch of packets
/// can begin, so that none is left out of the acknowledgements that follow it.
const RECENT_MAX: usize = 64;

/// Runs beyond `rcv_nxt`, in order, with a gap before each.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    runs: BTreeMap<Ordered, ReceiveBuffer>,
    /// Memory of all of them, bytes.
    memory: u32,
    /// A number in each run that grew lately, the latest first.
    recent: VecDeque<SeqNum>,
    /// How many of the `recent`, from the front, were in no acknowledgement yet.
    unreported: usize,
    /// What arrived twice, until that is reported to the peer (RFC 2883).
    pub(super) duplicate: Option<(SeqNum, SeqNum)>,
    /// Number of a FIN beyond a gap: it counts as a byte behind the run before it, or is a run of its own.
    pub(super) fin: Option<SeqNum>,
    /// It came by itself, and was in no acknowledgement yet.
    fin_unreported: bool,
}

/// Its first number, and that behind it.
type Run = (SeqNum, SeqNum);

fn run((start, bytes): (&Ordered, &ReceiveBuffer)) -> Run {
    (start.0, start.0 + bytes.len() as u32)
}

impl Reassembly {
    pub(crate) fn is_empty(&self) -> bool {
        self.has_no_text() && self.fin.is_none()
    }

    /// A FIN at most.
    pub(crate) fn has_no_text(&self) -> bool {
        self.runs.is_empty() && self.duplicate.is_none()
    }

    /// A FIN has come beyond a gap.
    pub(crate) fn insert_fin(&mut self, seq: SeqNum) {
        self.fin_unreported = self.fin != Some(seq) && self.end() != Some(seq);
        self.fin = Some(seq);
    }

    /// The FIN is in order, or means nothing any more.
    pub(crate) fn forget_fin(&mut self) {
        (self.fin, self.fin_unreported) = (None, false);
    }

    /// The range of a run as it is reported: with the FIN that follows it.
    fn with_fin(&self, (start, end): (SeqNum, SeqNum)) -> (SeqNum, SeqNum) {
        (start, if self.fin == Some(end) { end + 1 } else { end })
    }

    /// Everything but a FIN is forgotten.
    pub(crate) fn drop_text(&mut self) {
        *self = Reassembly { fin: self.fin, ..Reassembly::default() };
    }

    /// What lies from this number on is forgotten.
    pub(crate) fn cut(&mut self, from: SeqNum) {
        while let Some(mut last) = self.runs.last_entry()
            && (last.key().0 + last.get().len() as u32).after(from)
        {
            self.memory = self.memory.saturating_sub(last.get().memory());
            let start = last.key().0;
            if start.before(from) {
                last.get_mut().truncate(from.since(start) as usize);
                self.memory = self.memory.saturating_add(last.get().memory());
            } else {
                last.remove();
            }
        }
        if self.fin.is_some_and(|fin| !fin.before(from)) {
            self.forget_fin();
        }
    }

    /// Bytes of memory the runs take.
    pub(crate) fn memory(&self) -> u32 {
        self.memory
    }

    /// Copies payloads together, run by run. False: there was nothing to gain.
    pub(crate) fn collapse(&mut self) -> bool {
        let gained = self.runs.values_mut().filter_map(|run| run.collapse().then_some(())).count() > 0;
        self.memory = self.runs.values().map(ReceiveBuffer::memory).sum();
        gained
    }

    /// Number behind everything, as it is reported to the peer.
    pub(crate) fn reported_end(&self) -> Option<SeqNum> {
        self.fin.map(|fin| fin + 1).or(self.end())
    }

    /// Number behind the last run.
    fn end(&self) -> Option<SeqNum> {
        self.runs.last_key_value().map(run).map(|last| last.1)
    }

    /// The run that begins at `seq`, or last before it.
    fn run_before(&self, seq: SeqNum) -> Option<Run> {
        self.runs.range(..=Ordered(seq)).next_back().map(run)
    }

    /// The first run that begins behind `seq`.
    fn run_behind(&self, seq: SeqNum) -> Option<Run> {
        self.runs.range((Bound::Excluded(Ordered(seq)), Bound::Unbounded)).next().map(run)
    }

    /// The first part of this range that is here already.
    pub(crate) fn overlap(&self, seq: SeqNum, end: SeqNum) -> Option<(SeqNum, SeqNum)> {
        let before = self.run_before(seq).filter(|run| run.1.after(seq));
        let run = before.or_else(|| self.run_behind(seq)).filter(|run| run.0.before(end))?;
        Some((run.0.latest(seq), run.1.earliest(end)))
    }

    /// Keeps what is new of a payload that pins `truesize` bytes; `limit` is the size of the receive buffer. False: there are too
    /// many runs, and it was dropped (the peer sends it again).
    pub(crate) fn insert(&mut self, seq: SeqNum, payload: Bytes, truesize: usize, limit: u32) -> bool {
        let start = match self.run_before(seq).filter(|run| run.1.after_or_eq(seq)) {
            Some(run) => run.0,
            None if self.runs.len() >= (limit / BYTES_PER_RUN).max(RUNS_MIN) as usize => return false,
            None => seq,
        };
        let end = self.fill(start, seq, payload, truesize);
        self.note((start, end));
        true
    }

    /// Puts a payload that begins in the run from `start` on, or right behind it, where it belongs; runs that come to touch become one.
    /// Returns the number behind it.
    fn fill(&mut self, start: SeqNum, mut seq: SeqNum, mut rest: Bytes, truesize: usize) -> SeqNum {
        let mut joined = self.runs.remove(&Ordered(start)).unwrap_or_default();
        self.memory = self.memory.saturating_sub(joined.memory());
        let mut next = self.run_behind(start);
        loop {
            let end = start + joined.len() as u32;
            let known = end.since(seq).min(rest.len() as u32);
            let _ = rest.split_to(known as usize);
            seq += known;
            if !rest.is_empty() {
                let most = rest.len() as u32;
                let gap = next.map_or(most, |next| next.0.since(seq).min(most));
                joined.push(rest.split_to(gap as usize), truesize, &mut Spare::default());
                seq += gap;
            }
            let end = start + joined.len() as u32;
            if next.is_none_or(|next| next.0 != end) {
                break;
            }
            let Some(touched) = self.runs.remove(&Ordered(end)) else { break };
            self.memory = self.memory.saturating_sub(touched.memory());
            joined.append(touched);
            next = self.run_behind(end);
        }
        let end = start + joined.len() as u32;
        self.memory = self.memory.saturating_add(joined.memory());
        self.runs.insert(Ordered(start), joined);
        end
    }

    /// That run has grown.
    fn note(&mut self, (start, end): Run) {
        let (mut at, mut forgotten) = (0, 0);
        let unreported = self.unreported;
        self.recent.retain(|seq| {
            let same = start.before_or_eq(*seq) && seq.before(end);
            forgotten += usize::from(same && at < unreported);
            at += 1;
            !same
        });
        self.recent.push_front(start);
        self.recent.truncate(RECENT_MAX);
        self.unreported = (unreported - forgotten + 1).min(RECENT_MAX);
    }

    /// Takes the run that continues at `rcv_nxt`, without what comes before it.
    pub(crate) fn take(&mut self, rcv_nxt: SeqNum) -> Option<ReceiveBuffer> {
        while let Some(first) = self.runs.first_entry()
            && first.key().0.before_or_eq(rcv_nxt)
        {
            let (start, mut bytes) = first.remove_entry();
            self.memory = self.memory.saturating_sub(bytes.memory());
            if (start.0 + bytes.len() as u32).after(rcv_nxt) {
                let mut old = rcv_nxt.since(start.0) as usize;
                while old > 0 {
                    old -= bytes.pop(old)?.len();
                }
                return Some(bytes);
            }
        }
        None
    }

    /// Up to `max` blocks for the SACK option (RFC 2018 §4): the run that grew last comes first, the others in the order in which
    /// they grew, then any. While more wait to be reported than fit, those that have waited longest go: as if every
    /// segment had been acknowledged by itself.
    pub(crate) fn sack_blocks(&self, max: usize) -> SackBlocks {
        let mut blocks: SackBlocks = self.duplicate.into_iter().collect();
        let first = blocks.len();
        let skipped = self.unreported.saturating_sub(max.saturating_sub(first));
        let fin = self.fin.filter(|fin| self.end() != Some(*fin)).map(|fin| (fin, fin + 1));
        let recent = self.recent.iter().skip(skipped).filter_map(|seq| self.run_of(*seq));
        let runs = recent.chain(self.runs.iter().take(max).map(run)).map(|run| self.with_fin(run));
        for block in fin.filter(|_| self.fin_unreported).into_iter().chain(runs).chain(fin) {
            if blocks.len() >= max {
                break;
            }
            if !blocks[first..].contains(&block) {
                blocks.push(block);
            }
        }
        blocks
    }

    /// An acknowledgement with as many blocks as [`sack_blocks`](Self::sack_blocks) gave for `max` has gone. True when another
    /// must follow it at once, because it had no room for all that is new.
    pub(crate) fn reported(&mut self, max: usize) -> bool {
        let room = max.saturating_sub(usize::from(self.duplicate.take().is_some()));
        let room = room.saturating_sub(usize::from(core::mem::take(&mut self.fin_unreported)));
        self.unreported = self.unreported.saturating_sub(room.max(1));
        self.unreported > 0
    }

    fn run_of(&self, seq: SeqNum) -> Option<Run> {
        self.run_before(seq).filter(|run| run.1.after(seq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const LIMIT: u32 = 1 << 20;

    fn starts(queue: &Reassembly, max: usize) -> Vec<u32> {
        queue.sack_blocks(max).iter().map(|(start, _)| start.0).collect()
    }

    fn with_runs(starts: impl IntoIterator<Item = u32>) -> Reassembly {
        let mut queue = Reassembly::default();
        for start in starts {
            assert!(queue.insert(SeqNum(start), Bytes::from_static(b"12345"), 5, LIMIT));
        }
        queue
    }

    #[test]
    fn pieces_fill_gaps_and_overlaps_are_cut() {
        let mut queue = Reassembly::default();
        assert!(queue.insert(SeqNum(10), Bytes::from_static(b"klmno"), 5, LIMIT));
        assert!(queue.insert(SeqNum(20), Bytes::from_static(b"uv"), 2, LIMIT));
        assert!(queue.insert(SeqNum(8), Bytes::from_static(b"ijKLMNOpqrstUVw"), 15, LIMIT));
        assert_eq!(queue.sack_blocks(4)[..], [(SeqNum(8), SeqNum(23))]);
        let mut run = queue.take(SeqNum(9)).expect("a run");
        let mut all = [0; 20];
        let len = run.read(&mut all, &mut Default::default());
        assert_eq!(&all[..len], b"jklmnopqrstuvw");
        assert!(queue.is_empty() && queue.take(SeqNum(23)).is_none());
    }

    #[test]
    fn neighbours_become_one_run() {
        let mut queue = with_runs([10, 20]);
        assert!(queue.insert(SeqNum(15), Bytes::from_static(b"67890"), 5, LIMIT));
        assert_eq!(queue.sack_blocks(4)[..], [(SeqNum(10), SeqNum(25))]);
        assert_eq!(queue.take(SeqNum(10)).map(|run| run.len()), Some(15));
    }

    #[test]
    fn the_run_that_grew_last_is_reported_first_and_the_others_in_that_order() {
        let mut queue = with_runs([10, 30, 50, 70]);
        assert!(queue.insert(SeqNum(35), Bytes::from_static(b"x"), 1, LIMIT));
        queue.reported(4);
        assert_eq!(starts(&queue, 3), [30, 70, 50]);
        assert_eq!(starts(&queue, 4), [30, 70, 50, 10]);
    }

    /// Seven runs of one batch need three acknowledgements of three blocks, and the last one begins with the last run.
    #[test]
    fn a_batch_of_runs_is_reported_whole() {
        let mut queue = with_runs((1..=7).map(|n| 10 * n));
        assert_eq!(starts(&queue, 3), [30, 20, 10]);
        assert!(queue.reported(3));
        assert_eq!(starts(&queue, 3), [60, 50, 40]);
        assert!(queue.reported(3));
        assert_eq!(starts(&queue, 3), [70, 60, 50]);
        assert!(!queue.reported(3));
        assert_eq!(starts(&queue, 3), [70, 60, 50]);
    }

    #[test]
    fn a_duplicate_takes_a_block() {
        let mut queue = with_runs([10, 20, 30]);
        queue.duplicate = Some((SeqNum(20), SeqNum(22)));
        assert_eq!(starts(&queue, 3), [20, 20, 10]);
        assert!(queue.reported(3));
        assert_eq!(starts(&queue, 3), [30, 20, 10]);
        assert!(!queue.reported(3));
    }

    /// A window of full segments of which every other is missing fits; single bytes are refused long before their bookkeeping
    /// outgrows the buffer.
    #[test]
    fn runs_are_bounded_by_the_buffer() {
        let kept = |len: u32, step: u32, limit: u32| {
            let mut queue = Reassembly::default();
            let payload = Bytes::from(vec![0; len as usize]);
            let inserted = (0..limit / step)
                .filter(|n| queue.insert(SeqNum(n * step), payload.clone(), len as usize, limit))
                .count();
            (inserted as u32, limit / step)
        };
        assert_eq!(kept(1460, 2920, 6 << 20), (2154, 2154));
        assert_eq!(kept(536, 1072, 6 << 20), (5868, 5868));
        assert_eq!(kept(1, 2, 6 << 20), (6144, 3 << 20));
        assert_eq!(kept(1, 2, 4096), (32, 2048));
    }
}
