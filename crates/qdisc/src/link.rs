//! One direction of a link.

mod flight;

use crate::loss::LossState;
use crate::transmitter::Transmitter;
use crate::{
    Dequeue, DropReason, Dropped, Fifo, LinkConfig, LinkStats, Nanos, Packet, Qdisc, Rng, Skb, Verdict,
    earlier,
};
use alloc::vec::Vec;
use flight::Flight;

/// A packet that reached the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<P> {
    /// The packet.
    pub packet: P,
    /// Length as passed to `enqueue`, in bytes.
    pub len: usize,
    /// Time at which it was offered.
    pub enqueued_at: Nanos,
    /// Time at which it reached the other end.
    pub delivered_at: Nanos,
    /// The bit that the link flipped, counted from the most significant bit of the first byte. The
    /// caller must flip it.
    pub corrupt_bit: Option<u64>,
    /// A copy made by the link.
    pub is_duplicate: bool,
}

/// One direction of a link: impairments, a queue, a transmitter, the flight.
///
/// `now` should not decrease between calls of `enqueue` and `poll`. An earlier time counts as the
/// latest one seen. Call `poll` until it returns `None`, then again at [`Link::next_event`]. Random
/// loss happens at the entrance, as in netem: a lost packet takes neither queue space nor
/// transmission time.
#[derive(Clone, Debug)]
pub struct Link<P, Q = Fifo<Entry<P>>> {
    config: LinkConfig,
    queue: Q,
    transmitter: Transmitter,
    transmitting: Option<(Entry<P>, usize)>,
    /// When the transmitter is done with its packet; while it is idle, when the discipline lets the next one go.
    acts_at: Option<Nanos>,
    dropped: Vec<Dropped<Entry<P>>>,
    flight: Flight<P>,
    rng: Rng,
    loss: LossState,
    now: Nanos,
    up: bool,
    sequence: u64,
    last_arrival: Nanos,
    since_reorder: u64,
    stats: LinkStats,
}

/// A packet in a link's queue, with its mark. Only a custom [`Qdisc`] sees it.
#[derive(Clone, Debug)]
pub struct Entry<P> {
    /// The packet.
    pub packet: P,
    enqueued_at: Nanos,
    corrupt_bit: Option<u64>,
    is_duplicate: bool,
}

/// Ordered so that the greatest is the next to arrive; ties in the order of transmission.
#[derive(Clone, Debug)]
struct InFlight<P> {
    arrives_at: Nanos,
    sequence: u64,
    entry: Entry<P>,
    len: usize,
}

impl<P: Clone> Link<P> {
    /// A link with a drop-tail queue of `config.limit`.
    pub fn new(config: LinkConfig, seed: u64) -> Link<P> {
        let queue = Fifo::new(config.limit);
        Link::with_qdisc(config, queue, seed)
    }

    /// Changes the configuration. Packets in flight keep their arrival, the one being sent keeps
    /// its rate, and waiting packets stay.
    pub fn set_config(&mut self, config: LinkConfig) {
        self.queue.set_limit(config.limit);
        self.transmitter.set_rate(config.rate);
        self.config = config;
    }
}

impl<P: Clone, Q: Qdisc<Entry<P>>> Link<P, Q> {
    /// A link with a queueing discipline of the caller's (`config.limit` is then unused).
    pub fn with_qdisc(config: LinkConfig, queue: Q, seed: u64) -> Link<P, Q> {
        Link {
            transmitter: Transmitter::new(config.rate),
            config,
            queue,
            transmitting: None,
            acts_at: None,
            dropped: Vec::new(),
            flight: Flight::new(),
            rng: Rng::new(seed),
            loss: LossState::default(),
            now: 0,
            up: true,
            sequence: 0,
            last_arrival: 0,
            since_reorder: 0,
            stats: LinkStats::default(),
        }
    }

    /// The link's description.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// The queue, for its own counters.
    pub fn queue(&self) -> &Q {
        &self.queue
    }

    /// Changes the loss from now on.
    pub fn set_loss(&mut self, loss: crate::Loss) {
        self.config.loss = loss;
    }

    /// Takes the link down or up. While it is down, every offered packet is lost. Packets already
    /// on it arrive.
    pub fn set_up(&mut self, up: bool) {
        self.up = up;
    }

    /// Offers a packet of `len` bytes at `now`.
    pub fn enqueue(&mut self, now: Nanos, packet: P, len: usize) -> Verdict {
        self.advance(now);
        self.stats.offered_packets += 1;
        self.stats.offered_bytes += len as u64;
        if let Some(reason) = self.lost_at_entrance() {
            let entry = Entry { packet, enqueued_at: self.now, corrupt_bit: None, is_duplicate: false };
            self.dropped.push(Dropped { skb: Skb::new(entry, len), reason });
            return Verdict::Dropped(reason);
        }
        let corrupt_bit = self.corrupt_bit(len);
        let copy = self.rng.chance(self.config.duplicate).then(|| packet.clone());
        let verdict =
            self.admit(Entry { packet, enqueued_at: self.now, corrupt_bit, is_duplicate: false }, len);
        if let Some(packet) = copy {
            self.stats.duplicated += 1;
            self.admit(Entry { packet, enqueued_at: self.now, corrupt_bit: None, is_duplicate: true }, len);
        }
        self.run(self.now);
        verdict
    }

    /// The next packet that has reached the other end by `now`, in order of arrival.
    pub fn poll(&mut self, now: Nanos) -> Option<Delivery<P>> {
        self.advance(now);
        if self.flight.peek()?.arrives_at > self.now {
            return None;
        }
        let InFlight { arrives_at, entry, len, .. } = self.flight.pop()?;
        self.stats.delivered_packets += 1;
        self.stats.delivered_bytes += len as u64;
        let Entry { packet, enqueued_at, corrupt_bit, is_duplicate } = entry;
        Some(Delivery { packet, len, enqueued_at, delivered_at: arrives_at, corrupt_bit, is_duplicate })
    }

    /// Returns the time of the next event: a packet arrives, the transmitter becomes free, or the
    /// discipline releases a packet. `None` if the link is empty.
    pub fn next_event(&self) -> Option<Nanos> {
        let arrival = self.flight.peek().map(|packet| packet.arrives_at);
        earlier(arrival, self.acts_at)
    }

    /// Returns the counters, and the contents of the link at the last call.
    pub fn stats(&self) -> LinkStats {
        let queue = self.queue.stats();
        LinkStats {
            drops_queue: queue.drops,
            backlog_packets: queue.qlen,
            backlog_bytes: queue.backlog,
            transmitting: usize::from(self.transmitting.is_some()),
            in_flight: self.flight.len(),
            ..self.stats
        }
    }

    /// Returns whether [`drain_dropped`](Link::drain_dropped) would return anything.
    pub fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Drains the packets lost since `now` last moved, at the entrance or in the discipline. Each
    /// is returned once.
    pub fn drain_dropped(&mut self) -> impl Iterator<Item = (P, DropReason)> {
        self.dropped.drain(..).map(|dropped| (dropped.skb.packet.packet, dropped.reason))
    }

    fn lost_at_entrance(&mut self) -> Option<DropReason> {
        let lost = self.loss.is_lost(&self.config.loss, &mut self.rng);
        if !self.up {
            self.stats.drops_down += 1;
            return Some(DropReason::Down);
        }
        if self.config.drop_nth.contains(&self.loss.offered) {
            self.stats.drops_nth += 1;
            return Some(DropReason::Nth);
        }
        lost.then(|| {
            self.stats.drops_loss += 1;
            DropReason::Loss
        })
    }

    fn corrupt_bit(&mut self, len: usize) -> Option<u64> {
        if len == 0 || !self.rng.chance(self.config.corrupt) {
            return None;
        }
        self.stats.corrupted += 1;
        Some(self.rng.below(len as u64 * 8))
    }

    /// Into the transmitter if that is free and the discipline need not see it, else into the queue.
    fn admit(&mut self, entry: Entry<P>, len: usize) -> Verdict {
        self.run(self.now);
        let idle = self.transmitting.is_none();
        if idle && self.queue.can_bypass() && self.queue.qlen() == 0 {
            match self.config.rate {
                Some(_) => self.transmit(self.now, entry, len),
                None => self.launch(self.now, entry, len),
            }
            return Verdict::Queued;
        }
        let verdict = self.queue.enqueue(self.now, Skb::new(entry, len), &mut self.dropped);
        if idle {
            self.pull(self.now);
        }
        verdict
    }

    /// Lets everything happen that happens up to `now`.
    fn advance(&mut self, now: Nanos) {
        if now > self.now {
            self.dropped.clear();
        }
        self.now = self.now.max(now);
        self.run(self.now);
    }

    #[inline]
    fn run(&mut self, until: Nanos) {
        while let Some(at) = self.acts_at.filter(|at| *at <= until) {
            self.act(at);
        }
    }

    /// Not inlined: mostly nothing is due.
    #[inline(never)]
    fn act(&mut self, at: Nanos) {
        if let Some((entry, len)) = self.transmitting.take() {
            self.launch(at, entry, len);
        }
        self.pull(at);
    }

    /// The transmitter is idle: asks the discipline for a packet.
    fn pull(&mut self, at: Nanos) {
        self.acts_at = None;
        match self.queue.dequeue(at, &mut self.dropped) {
            Dequeue::Packet(skb) => {
                let len = skb.wire_len();
                self.transmit(at, skb.packet, len);
            }
            Dequeue::Throttled(until) => self.acts_at = Some(until.max(at.saturating_add(1))),
            Dequeue::Empty => {}
        }
    }

    fn transmit(&mut self, at: Nanos, entry: Entry<P>, len: usize) {
        self.acts_at = Some(self.transmitter.start(at, len.saturating_add(self.config.overhead)));
        self.transmitting = Some((entry, len));
    }

    /// The last bit left the transmitter at `at`.
    fn launch(&mut self, at: Nanos, entry: Entry<P>, len: usize) {
        let skips = self.skips_delay();
        let mut arrives_at = if skips { at } else { at.saturating_add(self.draw_delay()) };
        if !skips && !self.config.jitter_reorders {
            arrives_at = arrives_at.max(self.last_arrival);
            self.last_arrival = arrives_at;
        }
        self.sequence += 1;
        self.flight.push(InFlight { arrives_at, sequence: self.sequence, entry, len });
    }

    fn skips_delay(&mut self) -> bool {
        let Some(reorder) = self.config.reorder else { return false };
        self.since_reorder += 1;
        let skips = self.since_reorder >= reorder.gap && self.rng.chance(reorder.probability);
        if skips {
            self.since_reorder = 0;
            self.stats.reordered += 1;
        }
        skips
    }

    fn draw_delay(&mut self) -> Nanos {
        let jitter = self.config.jitter;
        if jitter == 0 {
            return self.config.delay;
        }
        let drawn = self.rng.below(jitter.saturating_mul(2).saturating_add(1));
        self.config.delay.saturating_add(drawn).saturating_sub(jitter)
    }
}

impl<P: Packet> Packet for Entry<P> {
    fn flow_hash(&self) -> u32 {
        self.packet.flow_hash()
    }

    fn priority(&self) -> u32 {
        self.packet.priority()
    }

    fn mark(&self) -> u32 {
        self.packet.mark()
    }

    fn ecn(&self) -> crate::Ecn {
        self.packet.ecn()
    }

    fn set_ce(&mut self) {
        self.packet.set_ce();
    }

    fn dscp(&self) -> u8 {
        self.packet.dscp()
    }

    fn clear_dscp(&mut self) {
        self.packet.clear_dscp();
    }

    fn source_hash(&self) -> u32 {
        self.packet.source_hash()
    }

    fn destination_hash(&self) -> u32 {
        self.packet.destination_hash()
    }

    fn network_offset(&self) -> u32 {
        self.packet.network_offset()
    }

    fn tcp(&self) -> Option<crate::TcpFields> {
        self.packet.tcp()
    }

    // A link counts what it was offered, so that a packet stays one; what a card would make of it is known all the same.
    fn segments(&self) -> Option<crate::Segments> {
        self.packet.segments()
    }

    fn departs_at(&self) -> Option<Nanos> {
        self.packet.departs_at()
    }

    fn flip_bit(&mut self, bit: u64) {
        self.packet.flip_bit(bit);
    }
}

impl<P> Ord for InFlight<P> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (other.arrives_at, other.sequence).cmp(&(self.arrives_at, self.sequence))
    }
}

impl<P> PartialOrd for InFlight<P> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for InFlight<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<P> Eq for InFlight<P> {}
