//! A discipline in its place: with a handle, a size table, and one packet that was looked at.
use crate::{
    Cake, Codel, Dequeue, DropReason, Dropped, Fifo, Fq, FqCodel, Handle, Htb, Limit, Nanos, Netem, Packet,
    PfifoFast, Pie, Prio, Qdisc, Red, Sfq, SizeTable, Skb, Stats, Tbf, Verdict,
};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Every discipline there is.
#[derive(Clone, Debug)]
pub(crate) enum Kind<P> {
    Fifo(Fifo<P>),
    PfifoFast(PfifoFast<P>),
    Prio(Prio<P>),
    Tbf(Tbf<P>),
    Htb(Box<Htb<P>>),
    Codel(Codel<P>),
    FqCodel(FqCodel<P>),
    Sfq(Sfq<P>),
    Red(Box<Red<P>>),
    Pie(Pie<P>),
    Fq(Box<Fq<P>>),
    Cake(Box<Cake<P>>),
    Netem(Box<Netem<P>>),
}

/// Calls the same method of whichever discipline it is.
macro_rules! each {
    ($kind:expr, $q:ident => $call:expr) => {
        match $kind {
            Kind::Fifo($q) => $call,
            Kind::PfifoFast($q) => $call,
            Kind::Prio($q) => $call,
            Kind::Tbf($q) => $call,
            Kind::Htb($q) => $call,
            Kind::Codel($q) => $call,
            Kind::FqCodel($q) => $call,
            Kind::Sfq($q) => $call,
            Kind::Red($q) => $call,
            Kind::Pie($q) => $call,
            Kind::Fq($q) => $call,
            Kind::Cake($q) => $call,
            Kind::Netem($q) => $call,
        }
    };
}

/// A discipline with its handle.
#[derive(Clone, Debug)]
pub(crate) struct Node<P> {
    pub(crate) handle: Handle,
    pub(crate) parent: Handle,
    pub(crate) kind: Kind<P>,
    pub(crate) stab: Option<SizeTable>,
    /// Counts disciplines as they are made by command.
    pub(crate) serial: u64,
    /// Taken out to be looked at; it goes first and still counts as waiting (Linux's `gso_skb`).
    peeked: Option<Skb<P>>,
}

/// What would be dequeued next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peek {
    /// A packet that counts as so many bytes.
    Len(u32),
    Throttled(Nanos),
    Empty,
}

impl<P: Packet> Node<P> {
    pub(crate) fn new(handle: Handle, parent: Handle, kind: Kind<P>) -> Node<P> {
        Node { handle, parent, kind, stab: None, serial: 0, peeked: None }
    }

    /// A fifo without a handle, as Linux gives to a class when it is made.
    pub(crate) fn fifo(parent: Handle, limit: Limit) -> Node<P> {
        Node::new(Handle::NONE, parent, Kind::Fifo(Fifo::new(limit)))
    }

    pub(crate) fn pfifo(parent: Handle, limit: usize) -> Node<P> {
        Node::fifo(parent, Limit::packets(limit))
    }

    pub(crate) fn enqueue(&mut self, now: Nanos, mut skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        if let Some(stab) = &self.stab {
            skb.len = stab.len_of(skb.wire_len() as u32);
        }
        each!(&mut self.kind, q => q.enqueue(now, skb, dropped))
    }

    pub(crate) fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Dropped<P>>) -> Dequeue<P> {
        match self.peeked.take() {
            Some(skb) => Dequeue::Packet(skb),
            None => each!(&mut self.kind, q => q.dequeue(now, dropped)),
        }
    }

    /// Looks at the next packet. A fifo is only read; any other discipline gives it up, as in Linux's `qdisc_peek_dequeued`.
    pub(crate) fn peek(&mut self, now: Nanos, dropped: &mut Vec<Dropped<P>>) -> Peek {
        let in_place = match &self.kind {
            _ if self.peeked.is_some() => None,
            Kind::Fifo(q) => Some(q.front_len()),
            Kind::PfifoFast(q) => Some(q.front_len()),
            _ => None,
        };
        if let Some(front) = in_place {
            return front.map_or(Peek::Empty, Peek::Len);
        }
        if self.peeked.is_none() {
            match self.dequeue(now, dropped) {
                Dequeue::Packet(skb) => self.peeked = Some(skb),
                Dequeue::Throttled(until) => return Peek::Throttled(until),
                Dequeue::Empty => return Peek::Empty,
            }
        }
        self.peeked.as_ref().map_or(Peek::Empty, |skb| Peek::Len(skb.len))
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut stats = each!(&self.kind, q => q.stats());
        if let Some(skb) = &self.peeked {
            stats.entered(skb);
        }
        stats
    }

    pub(crate) fn qlen(&self) -> usize {
        each!(&self.kind, q => q.qlen()) + usize::from(self.peeked.is_some())
    }

    /// Packets and bytes that wait.
    pub(crate) fn load(&self) -> (usize, u64) {
        let stats = self.stats();
        (stats.qlen, stats.backlog)
    }

    pub(crate) fn can_bypass(&self) -> bool {
        each!(&self.kind, q => q.can_bypass())
    }

    pub(crate) fn reset(&mut self, dropped: &mut Vec<Dropped<P>>) {
        if let Some(skb) = self.peeked.take() {
            dropped.push(Dropped { skb, reason: DropReason::Purged });
        }
        each!(&mut self.kind, q => q.reset(dropped));
    }

    /// Linux's `fifo_set_limit`: in bytes or packets, whichever the fifo counts; other disciplines do not care.
    pub(crate) fn set_fifo_limit(&mut self, limit: u32) {
        if let Kind::Fifo(fifo) = &mut self.kind {
            let by_bytes = fifo.limit().bytes.is_some();
            fifo.set_limit(if by_bytes {
                Limit::bytes(limit.into())
            } else {
                Limit::packets(limit as usize)
            });
        }
    }
}

/// Tells everything above a discipline what happened in it by a command.
pub(crate) fn account<P: Packet>(node: &mut Node<P>, below: Handle, before: &Stats, after: &Stats) -> bool {
    if node.handle == below {
        return true;
    }
    let found = match &mut node.kind {
        Kind::Prio(q) => q.bands_mut().iter_mut().any(|child| account(child, below, before, after)),
        Kind::Tbf(q) => account(q.child_mut(), below, before, after),
        Kind::Red(q) => account(q.child_mut(), below, before, after),
        Kind::Netem(q) => q.child_mut().is_some_and(|child| account(child, below, before, after)),
        Kind::Htb(q) => q.leaves_mut().any(|child| account(child, below, before, after)),
        _ => false,
    };
    let stats = match &mut node.kind {
        Kind::Prio(q) => q.stats_mut(),
        Kind::Tbf(q) => q.stats_mut(),
        Kind::Red(q) => q.stats_mut(),
        Kind::Netem(q) => q.stats_mut(),
        Kind::Htb(q) => q.stats_mut(),
        _ => return found,
    };
    if found {
        stats.qlen = (stats.qlen + after.qlen).saturating_sub(before.qlen);
        stats.backlog = (stats.backlog + after.backlog).saturating_sub(before.backlog);
        stats.drops += after.drops - before.drops;
    }
    found
}

/// Does something with the discipline below and keeps the counters above it true: what waits, and what was lost
/// (Linux's `qdisc_tree_reduce_backlog`).
pub(crate) fn through<P: Packet, T>(
    stats: &mut Stats,
    child: &mut Node<P>,
    dropped: &mut Vec<Dropped<P>>,
    action: impl FnOnce(&mut Node<P>, &mut Vec<Dropped<P>>) -> T,
) -> T {
    let ((qlen, backlog), known) = (child.load(), dropped.len());
    let result = action(child, dropped);
    let after = child.load();
    stats.qlen = (stats.qlen + after.0).saturating_sub(qlen);
    stats.backlog = (stats.backlog + after.1).saturating_sub(backlog);
    stats.drops += (dropped.len() - known) as u64;
    result
}
