//! One direction of a wire: the link, its queue, and the samples of the queue.

use super::queue::{Queue, Traveller};
use crate::capture::{QueueSample, WireId};
use proto::Instant;
use qdisc::{DropReason, Entry, Fifo, Link, LinkConfig, LinkStats, Packet, TcError};

/// The plan of one direction of a wire.
#[derive(Clone, Default)]
pub(super) struct WirePlan {
    pub(super) link: LinkConfig,
    /// The queueing discipline in `tc`'s words; `None` for the link's own drop-tail queue.
    pub(super) qdisc: Option<String>,
}

/// A lost packet and the reason.
pub(super) type Loss = (Traveller, DropReason);

pub(super) struct Wire {
    id: WireId,
    link: Link<Traveller, Queue<Entry<Traveller>>>,
    /// Time of the link's next event, as of the last call.
    next: Option<u64>,
    /// False for a queue that cannot grow; it needs no samples.
    watched: bool,
    last: (usize, u64),
    samples: Vec<QueueSample>,
}

impl Wire {
    /// Creates the wire. `watched` is true if its queue is sampled.
    pub(super) fn new(id: WireId, plan: WirePlan, watched: bool, seed: u64) -> Result<Wire, TcError> {
        let queue = match &plan.qdisc {
            Some(words) => Queue::of_tc(words, seed)?,
            None => Queue::Fifo(Fifo::new(plan.link.limit)),
        };
        let watched = watched && (plan.link.rate.is_some() || plan.qdisc.is_some());
        let link = Link::with_qdisc(plan.link, queue, seed);
        Ok(Wire { id, link, next: None, watched, last: (0, 0), samples: Vec::new() })
    }

    pub(super) fn stats(&self) -> LinkStats {
        self.link.stats()
    }

    pub(super) fn set_up(&mut self, up: bool) {
        self.link.set_up(up);
    }

    pub(super) fn set_loss(&mut self, loss: qdisc::Loss) {
        self.link.set_loss(loss);
    }

    pub(super) fn next_event(&self) -> Option<u64> {
        self.next
    }

    /// Returns whether an event is due.
    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next_event().is_some_and(|at| at <= now.as_nanos())
    }

    /// Offers a packet.
    pub(super) fn send(&mut self, now: Instant, traveller: Traveller) {
        let len = traveller.bytes.len();
        self.link.enqueue(now.as_nanos(), traveller, len);
        self.next = self.link.next_event();
        self.look(now);
    }

    /// Returns whether [`take_lost`](Wire::take_lost) would return anything.
    pub(super) fn has_lost(&self) -> bool {
        self.link.has_dropped()
    }

    /// Takes the losses of the last call.
    pub(super) fn take_lost(&mut self) -> impl Iterator<Item = Loss> {
        self.link.drain_dropped()
    }

    /// Returns the next packet that reached the other end.
    pub(super) fn receive(&mut self, now: Instant) -> Option<Traveller> {
        let delivery = self.link.poll(now.as_nanos());
        self.next = self.link.next_event();
        let Some(delivery) = delivery else {
            self.look(now);
            return None;
        };
        if self.watched {
            let waited = delivery.delivered_at - delivery.enqueued_at;
            let waited = waited.saturating_sub(self.link.config().delay);
            self.samples.push(QueueSample::Waited {
                wire: self.id,
                since: Instant::from_nanos(delivery.enqueued_at),
                nanos: waited,
                packet: delivery.packet.packet,
            });
        }
        let mut traveller = delivery.packet;
        if let Some(bit) = delivery.corrupt_bit {
            traveller.flip_bit(bit);
        }
        if !self.is_due(now) {
            self.look(now);
        }
        Some(traveller)
    }

    /// Takes the queue's samples since the last call.
    pub(super) fn take_samples(&mut self) -> impl Iterator<Item = QueueSample> {
        self.samples.drain(..)
    }

    fn look(&mut self, at: Instant) {
        if !self.watched {
            return;
        }
        let stats = self.link.stats();
        let now = (stats.backlog_packets, stats.backlog_bytes);
        if now != self.last {
            self.last = now;
            self.samples.push(QueueSample::Length { wire: self.id, at, packets: now.0, bytes: now.1 });
        }
    }
}

/// Returns the reason in words.
pub(super) fn words(reason: DropReason) -> &'static str {
    match reason {
        DropReason::QueueFull => "full queue",
        DropReason::Loss | DropReason::Nth => "loss on the line",
        DropReason::Down => "line down",
        DropReason::Congested => "early drop",
        DropReason::FlowLimit => "flow queue full",
        DropReason::Horizon => "departure time too far ahead",
        DropReason::TooBig => "larger than the bucket",
        DropReason::NoClass => "no class",
        DropReason::NeedlessAck => "a later acknowledgment is queued",
        DropReason::Purged => "queue removed",
        _ => "another reason",
    }
}
