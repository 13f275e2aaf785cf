//! One direction of a wire: the link, its queue, and what was seen of the queue.

use super::queue::{Queue, Traveller};
use crate::capture::{QueueSample, WireId};
use bytes::Bytes;
use proto::Instant;
use qdisc::{DropReason, Entry, Fifo, Link, LinkConfig, LinkStats, TcError, Verdict};

/// What a direction of a wire is to be.
#[derive(Clone, Default)]
pub(super) struct WirePlan {
    pub(super) link: LinkConfig,
    /// The queue in `tc`'s words, where it is not the link's own drop-tail.
    pub(super) qdisc: Option<String>,
}

/// A packet that got no further, and why.
pub(super) type Loss = (Traveller, DropReason);

pub(super) struct Wire {
    id: WireId,
    link: Link<Traveller, Queue<Entry<Traveller>>>,
    /// Nobody looks at a queue that cannot grow.
    watched: bool,
    last: (usize, u64),
    samples: Vec<QueueSample>,
}

impl Wire {
    pub(super) fn new(id: WireId, plan: WirePlan, seed: u64) -> Result<Wire, TcError> {
        let queue = match &plan.qdisc {
            Some(words) => Queue::of_tc(words, seed)?,
            None => Queue::Fifo(Fifo::new(plan.link.limit)),
        };
        let watched = plan.link.rate.is_some() || plan.qdisc.is_some();
        let link = Link::with_qdisc(plan.link, queue, seed);
        Ok(Wire { id, link, watched, last: (0, 0), samples: Vec::new() })
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
        self.link.next_event()
    }

    /// Offers a packet; gives what was lost by that.
    pub(super) fn send(&mut self, now: Instant, traveller: Traveller) -> Vec<Loss> {
        let copy = traveller.clone();
        let len = traveller.bytes.len();
        let verdict = self.link.enqueue(now.as_nanos(), traveller, len);
        let mut lost: Vec<Loss> = self.link.drain_dropped().collect();
        // What a discipline refuses is among what it dropped; what the line loses never came to it.
        if let Verdict::Dropped(reason @ (DropReason::Loss | DropReason::Nth | DropReason::Down)) = verdict {
            lost.push((copy, reason));
        }
        self.look(now);
        lost
    }

    /// The next packet that has come to the other end.
    pub(super) fn receive(&mut self, now: Instant, lost: &mut Vec<Loss>) -> Option<Traveller> {
        let delivery = self.link.poll(now.as_nanos());
        lost.extend(self.link.drain_dropped());
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
        let Traveller { packet, bytes } = delivery.packet;
        let bytes: Bytes = match delivery.corrupt_bit {
            Some(bit) => super::queue::flipped(&bytes, bit),
            None => bytes,
        };
        Some(Traveller { packet, bytes })
    }

    /// What was seen of the queue since the last time.
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

/// Why, in words.
pub(super) fn words(reason: DropReason) -> &'static str {
    match reason {
        DropReason::QueueFull => "full queue",
        DropReason::Loss | DropReason::Nth => "loss on the line",
        DropReason::Down => "line down",
        DropReason::Congested => "early drop",
        DropReason::FlowLimit => "too many of its flow waiting",
        DropReason::Horizon => "departs too late",
        DropReason::TooBig => "longer than the bucket",
        DropReason::NoClass => "no class",
        DropReason::Purged => "queue taken away",
        _ => "another reason",
    }
}
