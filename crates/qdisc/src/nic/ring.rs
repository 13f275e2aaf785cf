//! One ring of a card, with the discipline before it.

use super::{NicConfig, Parcel};
use crate::dql::Dql;
use crate::{Dequeue, Dropped, Nanos, Qdisc, Skb, Verdict, earlier};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Counters of a ring and its discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RingStats {
    /// Packets sent.
    pub packets: u64,
    /// Frames sent: more than packets where the card cuts.
    pub frames: u64,
    /// Bytes of the packets sent.
    pub bytes: u64,
    /// Packets that the discipline has dropped.
    pub dropped: u64,
    /// Most packets that waited in the discipline.
    pub backlog_peak: usize,
    /// Most descriptors in use.
    pub used_peak: usize,
    /// Most bytes in the ring.
    pub bytes_peak: u64,
    /// Longest time from the ring to the line's end, nanoseconds.
    pub wait_max: Nanos,
    /// Sum of those times.
    pub wait_sum: Nanos,
    /// Number of times that the last descriptor was used.
    pub stopped_by_ring: u64,
    /// Number of times that the byte limit was reached.
    pub stopped_by_limit: u64,
    /// Interrupts that cleaned up.
    pub interrupts: u64,
    /// Time that the line was idle while packets waited in this ring's discipline, in nanoseconds.
    pub starved: Nanos,
    /// The byte limit now; 0 without one.
    pub limit: u32,
}

/// A packet in the ring.
#[derive(Clone, Debug)]
struct Slot<P> {
    packet: P,
    len: u32,
    since: Nanos,
    /// Frames of it that are on the line.
    sent: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Ring<P, Q> {
    qdisc: Q,
    dql: Option<Dql>,
    descriptors: usize,
    /// Not yet on the line.
    waiting: VecDeque<Slot<P>>,
    /// On the line, and not cleaned up.
    done: Vec<Slot<P>>,
    bytes: u64,
    interrupt_at: Option<Nanos>,
    wakes_at: Option<Nanos>,
    idle_since: Option<Nanos>,
    stats: RingStats,
}

impl<P, Q> Ring<P, Q> {
    /// When it must be looked at next.
    pub(super) fn next_event(&self) -> Option<Nanos> {
        earlier(self.interrupt_at, self.wakes_at)
    }

    pub(super) fn has_frame(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn used(&self) -> usize {
        self.waiting.len() + self.done.len()
    }

    fn is_stopped(&self) -> bool {
        self.used() >= self.descriptors || self.dql.as_ref().is_some_and(|dql| !dql.has_room())
    }
}

impl<P: Parcel, Q: Qdisc<P>> Ring<P, Q> {
    pub(super) fn new(config: &NicConfig, qdisc: Q) -> Ring<P, Q> {
        Ring {
            qdisc,
            dql: config.bql.map(Dql::new),
            descriptors: config.descriptors,
            waiting: VecDeque::new(),
            done: Vec::new(),
            bytes: 0,
            interrupt_at: None,
            wakes_at: None,
            idle_since: None,
            stats: RingStats::default(),
        }
    }

    pub(super) fn stats(&self) -> RingStats {
        RingStats {
            dropped: self.qdisc.stats().drops,
            limit: self.dql.as_ref().map_or(0, Dql::limit),
            ..self.stats
        }
    }

    pub(super) fn backlog(&self) -> usize {
        self.qdisc.qlen()
    }

    /// Into the discipline, or past it where that is empty and lets packets pass.
    pub(super) fn offer(&mut self, now: Nanos, packet: P, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        let len = packet.len();
        let skb = Skb::new(packet, len);
        if self.qdisc.can_bypass() && self.qdisc.qlen() == 0 && !self.is_stopped() {
            self.put(now, skb);
            return Verdict::Queued;
        }
        let verdict = self.qdisc.enqueue(now, skb, dropped);
        self.stats.backlog_peak = self.stats.backlog_peak.max(self.qdisc.qlen());
        verdict
    }

    /// Takes what the discipline gives while there is room.
    pub(super) fn fill(&mut self, at: Nanos, dropped: &mut Vec<Dropped<P>>) {
        self.wakes_at = self.wakes_at.filter(|wakes_at| *wakes_at > at);
        while !self.is_stopped() {
            match self.qdisc.dequeue(at, dropped) {
                Dequeue::Packet(skb) => self.put(at, skb),
                Dequeue::Throttled(until) => {
                    self.wakes_at = Some(until.max(at.saturating_add(1)));
                    return;
                }
                Dequeue::Empty => return,
            }
        }
    }

    fn put(&mut self, at: Nanos, skb: Skb<P>) {
        let len = skb.wire_len() as u32;
        self.waiting.push_back(Slot { packet: skb.packet, len, since: at, sent: 0 });
        self.bytes += u64::from(len);
        self.stats.used_peak = self.stats.used_peak.max(self.used());
        self.stats.bytes_peak = self.stats.bytes_peak.max(self.bytes);
        self.stats.stopped_by_ring += u64::from(self.used() >= self.descriptors);
        if let Some(dql) = &mut self.dql {
            dql.queued(len);
            self.stats.stopped_by_limit += u64::from(!dql.has_room());
        }
    }

    /// Length of the frame that goes now, and whether it is its packet's last.
    pub(super) fn next_frame(&mut self, at: Nanos) -> (usize, bool) {
        if let Some(since) = self.idle_since.take() {
            self.stats.starved += at - since;
        }
        let Some(slot) = self.waiting.front() else { return (0, true) };
        (slot.packet.frame_len(slot.sent), slot.sent + 1 >= slot.packet.frame_count())
    }

    /// Its frame is on the line. An interrupt follows the last of a packet.
    pub(super) fn frame_sent(&mut self, at: Nanos, interrupt_after: Nanos) -> Option<P::Frame> {
        let slot = self.waiting.front_mut()?;
        let frame = slot.packet.take_frame(slot.sent);
        slot.sent += 1;
        self.stats.frames += 1;
        if slot.sent >= slot.packet.frame_count()
            && let Some(slot) = self.waiting.pop_front()
        {
            let waited = at - slot.since;
            self.stats.packets += 1;
            self.stats.bytes += u64::from(slot.len);
            self.stats.wait_max = self.stats.wait_max.max(waited);
            self.stats.wait_sum += waited;
            self.interrupt_at.get_or_insert(at.saturating_add(interrupt_after));
            self.done.push(slot);
        }
        Some(frame)
    }

    /// The interrupt, if it is due: gives the packets that are done with.
    pub(super) fn clean(&mut self, at: Nanos) -> impl Iterator<Item = P> {
        let mut done = 0;
        if self.interrupt_at.take_if(|due| *due <= at).is_some() {
            self.stats.interrupts += 1;
            let bytes = self.done.iter().fold(0u32, |sum, slot| sum.saturating_add(slot.len));
            self.bytes -= u64::from(bytes);
            if let Some(dql) = &mut self.dql {
                dql.completed(at, bytes);
            }
            done = self.done.len();
        }
        self.done.drain(..done).map(|slot| slot.packet)
    }

    /// The line has nothing to send: it starves this ring if packets wait that could not come.
    pub(super) fn line_idles(&mut self, at: Nanos) {
        if self.is_stopped() && self.qdisc.qlen() > 0 {
            self.idle_since.get_or_insert(at);
        }
    }
}
