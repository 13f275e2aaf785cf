//! Packets beyond a gap, and the blocks reported of them (Linux's `tcp_data_queue_ofo`, `tcp_sack_new_ofo_skb`).

use super::rounds::Growth;
use super::{Packet, PacketSpace};
use crate::tcp::recv::ordered::Ordered;
use alloc::collections::VecDeque;
use wire::{SackBlocks, SeqNum};

/// Blocks remembered (Linux's `TCP_NUM_SACKS`), the last that grew first.
const REMEMBERED: usize = 4;

/// Blocks of a SACK option as they were reported last, and not more of them than are sent to a peer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sacks {
    blocks: VecDeque<(SeqNum, SeqNum)>,
    /// What came twice, until that is reported to the peer (RFC 2883).
    pub(in crate::tcp::recv) duplicate: Option<(SeqNum, SeqNum)>,
}

/// Grows a block by one that it touches.
fn extend(block: &mut (SeqNum, SeqNum), (start, end): (SeqNum, SeqNum)) -> bool {
    let touches = !start.after(block.1) && !block.0.after(end);
    if touches {
        *block = (block.0.earliest(start), block.1.latest(end));
    }
    touches
}

impl Sacks {
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.duplicate.is_none()
    }

    /// Number behind the farthest block.
    pub(crate) fn end(&self) -> Option<SeqNum> {
        self.blocks.iter().map(|block| block.1).reduce(SeqNum::latest)
    }

    /// What the next option reports, in at most `max` blocks.
    pub(crate) fn reported(&self, max: usize) -> SackBlocks {
        self.duplicate.into_iter().chain(self.blocks.iter().copied()).take(max).collect()
    }

    /// Everything is forgotten, what came twice as well (Linux's `tcp_sack_reset`).
    pub(crate) fn reset(&mut self) {
        *self = Sacks::default();
    }

    /// `part` came twice, in the segment that is looked at: true if nothing of it did until now.
    pub(crate) fn add_duplicate(&mut self, part: (SeqNum, SeqNum)) -> bool {
        match &mut self.duplicate {
            Some(duplicate) => {
                extend(duplicate, part);
                false
            }
            None => {
                self.duplicate = Some(part);
                true
            }
        }
    }

    /// A packet came out of order. True: it is not of the first two blocks.
    fn add(&mut self, part: (SeqNum, SeqNum)) {
        let Some(at) = self.blocks.iter_mut().position(|block| extend(block, part)) else {
            self.blocks.truncate(REMEMBERED - 1);
            self.blocks.push_front(part);
            return;
        };
        let Some(mut grown) = self.blocks.remove(at) else { return };
        self.blocks.retain(|block| !extend(&mut grown, *block));
        self.blocks.push_front(grown);
    }

    /// Does a packet begin a third block, or belong to one behind the second? What waits is reported before it then.
    pub(crate) fn is_much_news(&self, part: (SeqNum, SeqNum)) -> bool {
        let at = self.blocks.iter().position(|block| extend(&mut block.clone(), part));
        at.unwrap_or(self.blocks.len()) >= 2
    }

    /// What is in order now is reported no more.
    fn pass(&mut self, rcv_nxt: SeqNum) {
        self.blocks.retain(|block| rcv_nxt.before(block.0));
    }
}

/// What becomes of a packet beyond a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// All of it was there.
    pub(super) merged: bool,
    /// How many others it covers, which go.
    pub(super) covers: u32,
    /// It was copied behind another one's payload, instead of being kept by itself.
    pub(super) copied: bool,
}

impl PacketSpace {
    pub(crate) fn has_holes(&self) -> bool {
        !self.out_of_order.is_empty()
    }

    /// Number behind the last packet.
    pub(crate) fn out_of_order_end(&self) -> Option<SeqNum> {
        self.out_of_order.last_key_value().map(|(_, last)| last.end)
    }

    /// Everything beyond a gap goes.
    pub(crate) fn purge_out_of_order(&mut self) {
        while let Some((_, packet)) = self.out_of_order.pop_last() {
            self.release(packet.truesize);
        }
        self.sacks.reset();
    }

    /// Puts a packet that begins beyond `rcv_nxt` where it belongs. What of it was there already is reported by `twice`, part by part: the
    /// first of a call starts anew, unless it is to go on. `sack`: blocks are reported to the peer.
    pub(crate) fn place_out_of_order(
        &mut self,
        packet: Packet,
        sack: bool,
        twice: &mut impl FnMut((SeqNum, SeqNum), bool),
    ) -> Placed {
        let mut placed = Placed { merged: false, covers: 0, copied: false };
        let part = (packet.seq, packet.end);
        if self.out_of_order.is_empty() {
            self.sacks.blocks.clear();
        }
        self.insert_out_of_order(packet, &mut placed, twice);
        if sack {
            self.sacks.add(part);
        }
        placed
    }

    fn insert_out_of_order(
        &mut self,
        packet: Packet,
        placed: &mut Placed,
        twice: &mut impl FnMut((SeqNum, SeqNum), bool),
    ) {
        let read = self.tap_read;
        if self.out_of_order.last_entry().is_some_and(|mut last| last.get_mut().takes(&packet, read)) {
            placed.copied = true;
            return;
        }
        // The packet before it, if any; its end may lie in it.
        if let Some((_, before)) = self.out_of_order.range_mut(..=Ordered(packet.seq)).next_back() {
            if packet.seq.before(before.end) {
                if packet.end.before_or_eq(before.end) {
                    twice((packet.seq, packet.end), false);
                    placed.merged = true;
                    return;
                }
                if packet.seq.after(before.seq) {
                    twice((packet.seq, before.end), false);
                } else {
                    twice((before.seq, before.end), true);
                    placed.covers += 1;
                    let gone = before.truesize;
                    self.out_of_order.remove(&Ordered(packet.seq));
                    self.release(gone);
                }
            } else if before.takes(&packet, read) {
                placed.copied = true;
                return;
            }
        }
        while let Some(next) = self.out_of_order_from(packet.seq).filter(|next| packet.end.after(next.seq)) {
            if packet.end.before(next.end) {
                twice((next.seq, packet.end), true);
                break;
            }
            twice((next.seq, next.end), true);
            placed.covers += 1;
            self.out_of_order.remove(&Ordered(next.seq));
            self.release(next.truesize);
        }
        self.out_of_order.insert(Ordered(packet.seq), packet);
    }

    /// The first that begins at `seq` or behind it.
    fn out_of_order_from(&self, seq: SeqNum) -> Option<Packet> {
        self.out_of_order.range(Ordered(seq)..).next().map(|(_, packet)| *packet)
    }

    /// It is kept by itself: what it takes counts once the window has grown with it.
    pub(crate) fn charge_out_of_order(&mut self, packet: &Packet) {
        self.charge(packet.truesize);
    }

    /// What is in order at `rcv_nxt` now joins what waits to be read, up to a FIN: the number behind it, and whether the FIN is reached.
    /// What of it had come before is reported by `twice`.
    pub(crate) fn join(
        &mut self,
        mut rcv_nxt: SeqNum,
        twice: &mut impl FnMut((SeqNum, SeqNum)),
    ) -> (SeqNum, bool) {
        let known = rcv_nxt;
        while let Some(first) =
            self.out_of_order.first_entry().filter(|first| !first.get().seq.after(rcv_nxt))
        {
            let packet = first.remove();
            if packet.seq.before(known) {
                twice((packet.seq, packet.end.earliest(known)));
            }
            if !packet.end.after(rcv_nxt) {
                self.release(packet.truesize);
                continue;
            }
            // Its memory has been charged.
            let read = self.tap_read;
            if self.queue.back_mut().is_some_and(|last| last.takes(&packet, read)) {
                self.release(packet.truesize);
            } else {
                self.queue.push_back(packet);
            }
            rcv_nxt = packet.end;
            if packet.fin {
                return (rcv_nxt, true);
            }
        }
        (rcv_nxt, false)
    }

    /// What is reported no longer lies beyond `rcv_nxt`.
    pub(crate) fn pass_blocks(&mut self, rcv_nxt: SeqNum) {
        if self.out_of_order.is_empty() {
            self.sacks.blocks.clear();
        }
        self.sacks.pass(rcv_nxt);
    }

    /// Behind a gap the buffer must hold what came after it, too.
    pub(crate) fn fit_gap(&mut self, growth: &Growth) {
        self.fit(self.rounds.space(), growth);
    }
}
