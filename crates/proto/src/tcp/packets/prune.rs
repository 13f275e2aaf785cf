//! Too much memory is taken: the window closes, packets are copied together, then what came early goes from behind (Linux's
//! `tcp_prune_queue`).

use super::window::Sizes;
use super::{Packet, PacketSpace, memory};
use std::collections::VecDeque;
use wire::SeqNum;

/// What was done to make room, to be counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pruned {
    /// Something was to be done.
    pub(crate) called: bool,
    /// Packets copied into others.
    pub(crate) collapsed: u32,
    /// What came early was dropped: all behind this number that lies beyond the gap.
    pub(crate) early_from: Option<SeqNum>,
    /// And it was in vain.
    pub(crate) in_vain: bool,
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
        pruned.collapsed += self.collapse_early();
        let queue = std::mem::take(&mut self.queue);
        self.queue = self.collapse(queue, self.rounds.copied(), rcv_nxt, &mut pruned.collapsed);
        if self.can_ingest() {
            return pruned;
        }
        pruned.early_from = self.prune_early(seq, pressed);
        pruned.in_vain = !self.can_ingest();
        if pruned.in_vain {
            self.predicts = false;
        }
        pruned
    }

    /// Drops packets from behind, an eighth of the buffer at a time, but none before the one that comes.
    fn prune_early(&mut self, seq: SeqNum, pressed: bool) -> Option<SeqNum> {
        let (share, mut from) = (i64::from(self.rcvbuf >> 3), None);
        let mut goal = share;
        while let Some(last) = self.early.back().copied().filter(|last| !seq.after(last.seq)) {
            self.early.pop_back();
            self.release(last.truesize);
            from = Some(self.early_end().map_or(last.seq, |end| end.latest(last.seq)));
            goal -= i64::from(last.truesize);
            if self.early.is_empty() || goal <= 0 {
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

    /// Copies packets beyond a gap together, run by run; tiny ones only as long as they are few.
    fn collapse_early(&mut self) -> u32 {
        let (mut collapsed, mut tiny) = (0, 0);
        let mut rest = std::mem::take(&mut self.early);
        let mut done = VecDeque::with_capacity(rest.len());
        while let Some(head) = rest.front().copied() {
            let (mut count, mut start, mut end, mut size) = (0, head.seq, head.end, 0);
            for packet in &rest {
                if count > 0 && (packet.seq.after(end) || packet.end.before(start)) {
                    break;
                }
                (start, end) = (start.earliest(packet.seq), end.latest(packet.end));
                size += packet.truesize;
                count += 1;
            }
            if size == head.truesize && end.since(start) < memory::WORTH_COLLAPSING {
                tiny += size;
                done.extend(rest.drain(..count));
                if tiny > self.rcvbuf >> 3 {
                    break;
                }
                continue;
            }
            let range: VecDeque<Packet> = rest.drain(..count).collect();
            done.append(&mut self.collapse(range, start, end, &mut collapsed));
        }
        done.append(&mut rest);
        self.early = done;
        collapsed
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
