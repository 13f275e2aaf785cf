//! Too much memory is taken: the window closes, packets are copied together, then data out of order goes from behind (Linux's
//! `tcp_prune_queue`).

use super::window::Sizes;
use super::{Packet, PacketSpace, memory};
use crate::tcp::recv::ordered::Ordered;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use wire::SeqNum;

/// Packets that copying together may look at for each that comes.
pub(super) const LOOKS_PER_PACKET: u32 = 8;
/// Packets that copying together looks at whenever there is no room.
const FEW: u32 = 256;

/// What was done to make room, to be counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pruned {
    /// Something was to be done.
    pub(super) called: bool,
    /// Packets copied into others.
    pub(super) collapsed: u32,
    /// The number behind which all data out of order was dropped, if any was.
    pub(super) out_of_order_from: Option<SeqNum>,
    /// Pruning has not made room enough.
    pub(super) in_vain: bool,
}

impl PacketSpace {
    /// Makes room for a packet that begins at `seq`, as far as can be. `pressed`: the stack's memory is short, `copied`: what the
    /// application reads next.
    pub(crate) fn prune(&mut self, seq: SeqNum, rcv_nxt: SeqNum, sizes: &Sizes, pressed: bool) -> Pruned {
        let mut pruned = Pruned::default();
        if self.allocated == 0 {
            pruned.in_vain = true;
            return pruned;
        }
        pruned.called = true;
        if !self.can_ingest() {
            self.clamp_window(sizes, pressed);
        } else if pressed {
            self.shrink_under_pressure(sizes.advmss);
        }
        if self.can_ingest() {
            return pruned;
        }
        if self.may_collapse() {
            pruned.collapsed += self.collapse_out_of_order();
            let queue = core::mem::take(&mut self.queue);
            self.queue = self.collapse(queue, self.rounds.copied(), rcv_nxt, &mut pruned.collapsed);
            if self.can_ingest() {
                return pruned;
            }
        }
        pruned.out_of_order_from = self.prune_out_of_order(seq, pressed);
        pruned.in_vain = !self.can_ingest();
        if pruned.in_vain {
            self.predicts = false;
        }
        pruned
    }

    /// Drops packets from behind, an eighth of the buffer at a time, but none before the one that comes.
    fn prune_out_of_order(&mut self, seq: SeqNum, pressed: bool) -> Option<SeqNum> {
        let (share, mut from) = (i64::from(self.rcvbuf >> 3), None);
        let mut goal = share;
        while let Some(last) = self.out_of_order.last_entry().filter(|last| !seq.after(last.get().seq)) {
            let last = last.remove();
            self.release(last.truesize);
            from = Some(self.out_of_order_end().map_or(last.seq, |end| end.latest(last.seq)));
            goal -= i64::from(last.truesize);
            if self.out_of_order.is_empty() || goal <= 0 {
                if self.can_ingest() && !pressed {
                    break;
                }
                goal = share;
            }
        }
        if from.is_some() {
            self.sacks.reset();
        }
        from
    }

    /// Does copying together cost no more than what has come since it was tried last has paid for? A peer that keeps the buffer full would have
    /// us look at all of it for every packet.
    fn may_collapse(&mut self) -> bool {
        let looked_at = (self.queue.len() + self.out_of_order.len()) as u32;
        let Some(rest) = self.collapsible.checked_sub(looked_at) else { return looked_at <= FEW };
        self.collapsible = rest;
        true
    }

    /// Copies packets beyond a gap together, run by run; tiny ones only as long as they are few.
    fn collapse_out_of_order(&mut self) -> u32 {
        let mut collapsed = 0;
        for (first, start, end) in self.runs_to_collapse() {
            let mut run = VecDeque::new();
            while let Some(packet) = self.out_of_order.range(first..).next().map(|(_, packet)| *packet)
                && packet.seq.before_or_eq(end)
            {
                self.out_of_order.remove(&Ordered(packet.seq));
                run.push_back(packet);
            }
            for packet in self.collapse(run, start, end, &mut collapsed) {
                if let Some(covered) = self.out_of_order.insert(Ordered(packet.seq), packet) {
                    self.release(covered.truesize);
                }
            }
        }
        collapsed
    }

    /// Runs of packets without a gap, by the key of the first: where they begin and end.
    fn runs_to_collapse(&self) -> Vec<(Ordered, SeqNum, SeqNum)> {
        let (mut runs, mut tiny) = (Vec::new(), 0);
        let mut packets = self.out_of_order.iter().peekable();
        while let Some((first, head)) = packets.next() {
            let (mut start, mut end, mut size) = (head.seq, head.end, head.truesize);
            while let Some((_, packet)) =
                packets.next_if(|(_, packet)| !packet.seq.after(end) && !packet.end.before(start))
            {
                (start, end) = (start.earliest(packet.seq), end.latest(packet.end));
                size += packet.truesize;
            }
            if size != head.truesize || end.since(start) >= memory::WORTH_COLLAPSING {
                runs.push((*first, start, end));
                continue;
            }
            tiny += size;
            if tiny > self.rcvbuf >> 3 {
                break;
            }
        }
        runs
    }

    /// Copies a run of packets together, from `start` to `end`, where they are bloated, overlap or begin before `start`; not those with
    /// a FIN (`tcp_collapse`).
    fn collapse(
        &mut self,
        mut packets: VecDeque<Packet>,
        mut start: SeqNum,
        end: SeqNum,
        collapsed: &mut u32,
    ) -> VecDeque<Packet> {
        let mut done = VecDeque::with_capacity(packets.len());
        let worth = loop {
            let Some(first) = packets.front().copied() else { break false };
            if !start.before(first.end) {
                packets.pop_front();
                self.release(first.truesize);
                *collapsed += 1;
                continue;
            }
            let bloated = self.payload_of(first.truesize.into()) > first.len().into();
            if !first.fin && (bloated || first.seq.before(start)) {
                break true;
            }
            if packets.get(1).is_some_and(|next| next.seq != first.end) {
                break !first.fin;
            }
            start = first.end;
            packets.pop_front();
            done.push_back(first);
        };
        if worth {
            self.copy_together(&mut packets, start, end, &mut done, collapsed);
        }
        done.append(&mut packets);
        done
    }

    fn copy_together(
        &mut self,
        packets: &mut VecDeque<Packet>,
        mut start: SeqNum,
        end: SeqNum,
        done: &mut VecDeque<Packet>,
        collapsed: &mut u32,
    ) {
        while start.before(end) {
            let most = end.since(start).min(memory::COLLAPSED);
            let (mut left, begun) = (most, start);
            // Before the old ones are released, and without setting memory aside.
            let allocation = memory::of_copy(most);
            self.charge(allocation.truesize);
            let mut stop = false;
            while left > 0 {
                let Some(first) = packets.front().copied() else { break };
                let size = if first.end.after(start) { first.end.since(start).min(left) } else { 0 };
                start += size;
                left -= size;
                if !start.before(first.end) {
                    packets.pop_front();
                    self.release(first.truesize);
                    *collapsed += 1;
                    if packets.front().is_none_or(|next| next.fin) {
                        stop = true;
                        break;
                    }
                }
            }
            let room = allocation.room + left as u16;
            done.push_back(Packet {
                seq: begun,
                end: start,
                truesize: allocation.truesize,
                room,
                fin: false,
                number: 0,
            });
            if stop || packets.is_empty() {
                break;
            }
        }
    }
}
