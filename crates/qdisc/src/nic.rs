//! The sending side of a NIC: disciplines, rings of descriptors, byte queue limits, the line, and
//! the completion interrupts.
//!
//! ```text
//! enqueue ─► discipline ─► ring 0 ─┐               ┌► Sent: a frame is on the line
//!        └─► discipline ─► ring 1 ─┴─► transmitter ┴► Completed: after an interrupt, memory is free
//! ```
//!
//! A ring takes packets from its discipline until it has no descriptor left (the driver's
//! `netif_tx_stop_queue`) or holds more bytes than its limit ([`Dql`]). Packets of one flow use one
//! ring (`skb_tx_hash`). Rings take turns on the line. A packet takes one descriptor, whatever its
//! length, because drivers differ in the number for fragments.

mod ring;

use crate::dql::DqlConfig;
use crate::transmitter::Transmitter;
use crate::{DropReason, Dropped, Nanos, Packet, Qdisc, Verdict, earlier};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::num::NonZeroU64;
use ring::Ring;
pub use ring::RingStats;

/// A packet that the card may cut into frames (TSO).
pub trait Parcel: Packet {
    /// The frame on the line.
    type Frame;

    /// Bytes that wait (`skb->len`).
    fn len(&self) -> usize;

    /// Nothing to send?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of frames, at least one.
    fn frame_count(&self) -> usize;

    /// Length of the n-th frame, from 0.
    fn frame_len(&self, n: usize) -> usize;

    /// The n-th frame; each is asked for once, when it is on the line.
    fn take_frame(&mut self, n: usize) -> Self::Frame;
}

/// Configuration of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicConfig {
    /// Rate of the line, bit/s; `None`: infinitely fast.
    pub rate: Option<NonZeroU64>,
    /// Bytes that each frame costs on the line beyond its length.
    pub overhead: usize,
    /// Rings (`ethtool -L`).
    pub queues: usize,
    /// Descriptors of each (`ethtool -G … tx`).
    pub descriptors: usize,
    /// From the first packet sent to the interrupt that cleans up (`ethtool -C … tx-usecs`).
    pub interrupt_after: Nanos,
    /// Byte queue limits; `None`: the driver has none.
    pub bql: Option<DqlConfig>,
}

impl Default for NicConfig {
    fn default() -> NicConfig {
        NicConfig {
            rate: None,
            overhead: 0,
            queues: 1,
            descriptors: 256,
            interrupt_after: 0,
            bql: Some(DqlConfig::default()),
        }
    }
}

/// An event of the NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NicEvent<P: Parcel> {
    /// The last bit of a frame is on the line.
    Sent {
        /// The frame.
        frame: P::Frame,
        /// When.
        at: Nanos,
    },
    /// The card is done with the packet.
    Completed {
        /// The packet.
        packet: P,
        /// When.
        at: Nanos,
    },
}

/// The sending side of a card. `now` must not go back.
pub struct Nic<P: Parcel, Q> {
    config: NicConfig,
    rings: Vec<Ring<P, Q>>,
    transmitter: Transmitter,
    /// The frame on the line: when it ends, and of which ring.
    sending: Option<(Nanos, usize)>,
    turn: usize,
    now: Nanos,
    dropped: Vec<Dropped<P>>,
    events: VecDeque<NicEvent<P>>,
}

impl<P: Parcel, Q: Qdisc<P>> Nic<P, Q> {
    /// Creates a NIC with one ring per discipline.
    ///
    /// # Panics
    /// Panics without a discipline, or without a descriptor.
    pub fn new(config: NicConfig, disciplines: impl IntoIterator<Item = Q>) -> Nic<P, Q> {
        assert!(config.descriptors > 0, "a ring has descriptors");
        let rings: Vec<Ring<P, Q>> = disciplines.into_iter().map(|qdisc| Ring::new(&config, qdisc)).collect();
        assert!(!rings.is_empty(), "a card has a ring");
        Nic {
            transmitter: Transmitter::new(config.rate),
            config: NicConfig { queues: rings.len(), ..config },
            rings,
            sending: None,
            turn: 0,
            now: 0,
            dropped: Vec::new(),
            events: VecDeque::new(),
        }
    }

    /// Returns the configuration.
    pub fn config(&self) -> &NicConfig {
        &self.config
    }

    /// Counters of each ring.
    pub fn stats(&self) -> impl Iterator<Item = RingStats> {
        self.rings.iter().map(Ring::stats)
    }

    /// Packets that wait in its disciplines.
    pub fn backlog(&self) -> usize {
        self.rings.iter().map(Ring::backlog).sum()
    }

    /// Descriptors of its rings that are in use.
    pub fn in_rings(&self) -> usize {
        self.rings.iter().map(Ring::used).sum()
    }

    /// Offers a packet to the discipline of its flow's ring.
    pub fn enqueue(&mut self, now: Nanos, packet: P) -> Verdict {
        self.advance(now);
        let index = match self.rings.len() {
            1 => 0,
            // Linux's `reciprocal_scale` of the flow's hash.
            count => ((u64::from(packet.flow_hash()) * count as u64) >> 32) as usize,
        };
        let verdict = self.rings[index].offer(self.now, packet, &mut self.dropped);
        self.fill(index, self.now);
        self.advance(self.now);
        verdict
    }

    /// Returns the next event until `now`, in order.
    pub fn poll(&mut self, now: Nanos) -> Option<NicEvent<P>> {
        if self.events.is_empty() {
            self.advance(now);
        }
        self.events.pop_front()
    }

    /// When something happens next.
    pub fn next_event(&self) -> Option<Nanos> {
        if !self.events.is_empty() {
            return Some(self.now);
        }
        self.next_work()
    }

    fn next_work(&self) -> Option<Nanos> {
        earlier(self.sending.map(|(at, _)| at), self.next_of_rings())
    }

    fn next_of_rings(&self) -> Option<Nanos> {
        self.rings.iter().map(Ring::next_event).fold(None, earlier)
    }

    /// Returns whether disciplines have dropped packets that were not drained yet.
    pub fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Drains the packets that disciplines have dropped. Each is returned once.
    pub fn drain_dropped(&mut self) -> impl Iterator<Item = (P, DropReason)> {
        self.dropped.drain(..).map(|dropped| (dropped.skb.packet, dropped.reason))
    }

    #[inline]
    fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        while let Some(at) = self.next_work().filter(|at| *at <= self.now) {
            self.work(at);
        }
    }

    /// Not inlined: mostly nothing is due.
    #[inline(never)]
    fn work(&mut self, at: Nanos) {
        match self.sending.take_if(|(ends, _)| *ends == at) {
            Some((_, index)) => self.frame_ends(at, index),
            None => self.interrupts(at),
        }
    }

    fn frame_ends(&mut self, at: Nanos, index: usize) {
        if let Some(frame) = self.rings[index].frame_sent(at, self.config.interrupt_after) {
            self.events.push_back(NicEvent::Sent { frame, at });
        }
        self.send(at);
    }

    /// Rings whose interrupt is due are cleaned, and take more; so do those whose discipline was waiting.
    fn interrupts(&mut self, at: Nanos) {
        for index in 0..self.rings.len() {
            let done = self.rings[index].clean(at);
            self.events.extend(done.map(|packet| NicEvent::Completed { packet, at }));
            self.fill(index, at);
        }
    }

    fn fill(&mut self, index: usize, at: Nanos) {
        self.rings[index].fill(at, &mut self.dropped);
        self.send(at);
    }

    /// The next frame goes on an idle line; rings take turns packet by packet.
    fn send(&mut self, at: Nanos) {
        if self.sending.is_some() {
            return;
        }
        let count = self.rings.len();
        let Some(index) = (0..count).map(|n| (self.turn + n) % count).find(|&n| self.rings[n].has_frame())
        else {
            return self.rings.iter_mut().for_each(|ring| ring.line_idles(at));
        };
        let (len, is_last) = self.rings[index].next_frame(at);
        self.turn = if is_last { (index + 1) % count } else { index };
        let ends = self.transmitter.start(at, len.saturating_add(self.config.overhead));
        self.sending = Some((ends, index));
    }
}
