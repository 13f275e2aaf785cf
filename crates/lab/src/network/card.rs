//! The network card of a host: the path of packets from the stack to the line and back.
//!
//! [`CardPlan`] describes it; its parts are `qdisc`'s [`Nic`] and [`Input`]. This module adds what
//! belongs to neither: TCP small queues, refusals reported to the stack, and merging (GRO).

use super::frames::Frames;
use super::merge::{Merged, Merger};
use super::queue::{Queue, Traveller};
use super::{derived_seed, earlier};
use crate::capture::CardHeld;
use core::time::Duration;
use proto::{ConnId, Instant, Stack};
use qdisc::{
    DqlConfig, DropReason, Input, InputConfig, InputEvent, InputLoss, InputStats, Nic, NicConfig, NicEvent,
    Packet, Parcel, RingStats, Segments, TcError, Verdict,
};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use wire::TxPacket;

/// The plan of a card.
#[derive(Clone, Debug)]
pub struct CardPlan {
    /// The sending side: the line's rate, rings, interrupts.
    pub nic: NicConfig,
    /// True for byte queue limits on each ring.
    pub byte_limits: bool,
    /// Packets that pfifo_fast, and disciplines that use this value, can queue (`ip link set …
    /// txqueuelen`).
    pub txqueuelen: usize,
    /// The discipline before each ring in `tc`'s words; pfifo_fast if `None`.
    pub qdisc: Option<String>,
    /// Bytes of one connection that may wait in the card (`tcp_limit_output_bytes`).
    pub small_queues: Option<u64>,
    /// True if the card cuts large segments into frames (TSO).
    pub cuts: bool,
    /// The receiving side.
    pub input: InputConfig,
    /// True if consecutive frames are merged (GRO).
    pub merges: bool,
}

impl Default for CardPlan {
    fn default() -> CardPlan {
        CardPlan {
            nic: NicConfig::default(),
            byte_limits: true,
            txqueuelen: 1000,
            qdisc: None,
            small_queues: None,
            cuts: false,
            input: InputConfig::default(),
            merges: false,
        }
    }
}

impl CardPlan {
    /// Checks the plan.
    ///
    /// # Errors
    /// The invalid value.
    pub fn check(&self) -> Result<(), String> {
        let NicConfig { queues, descriptors, .. } = self.nic;
        if queues == 0 || descriptors == 0 || self.input.descriptors == 0 {
            return Err("a card has at least one ring with one descriptor, each way".into());
        }
        Ok(())
    }

    /// Checks the queueing discipline.
    pub(crate) fn check_qdisc(&self) -> Result<(), TcError> {
        self.disciplines(0).map(drop)
    }

    fn disciplines(&self, seed: u64) -> Result<Vec<Queue<Outgoing>>, TcError> {
        let ring =
            |n: usize| Queue::of_card(self.qdisc.as_deref(), self.txqueuelen, derived_seed(seed, n as u64));
        (0..self.nic.queues).map(ring).collect()
    }
}

/// A packet of the stack, as the frames it becomes.
#[derive(Clone)]
struct Outgoing {
    owner: Option<ConnId>,
    frames: SmallVec<[Traveller; 1]>,
    len: usize,
    /// Bytes charged to its connection while it is below the stack.
    counted: usize,
}

impl Packet for Outgoing {
    fn flow_hash(&self) -> u32 {
        self.frames.first().map_or(0, Packet::flow_hash)
    }

    fn ecn(&self) -> qdisc::Ecn {
        self.frames.first().map_or(qdisc::Ecn::NotEct, Packet::ecn)
    }

    fn set_ce(&mut self) {
        self.frames.iter_mut().for_each(Packet::set_ce);
    }

    fn dscp(&self) -> u8 {
        self.frames.first().map_or(0, Packet::dscp)
    }

    fn clear_dscp(&mut self) {
        self.frames.iter_mut().for_each(Packet::clear_dscp);
    }

    fn source_hash(&self) -> u32 {
        self.frames.first().map_or(0, Packet::source_hash)
    }

    fn destination_hash(&self) -> u32 {
        self.frames.first().map_or(0, Packet::destination_hash)
    }

    fn tcp(&self) -> Option<qdisc::TcpFields> {
        self.frames.first().and_then(Packet::tcp)
    }

    fn segments(&self) -> Option<Segments> {
        let [first, .., last] = &self.frames[..] else { return None };
        let len = |frame: &Traveller| frame.bytes.len() as u32;
        Some(Segments { count: self.frames.len() as u32, len: len(first), last_len: len(last) })
    }

    fn into_segments(self) -> Result<Vec<(Outgoing, usize)>, Outgoing> {
        let Outgoing { owner, frames, counted, .. } = self;
        let lens: usize = frames.iter().map(|frame| frame.bytes.len()).sum();
        // The headers repeated in all but the first frame were counted once.
        let repeated = lens.saturating_sub(counted) / frames.len().saturating_sub(1).max(1);
        let single = |(n, frame): (usize, Traveller)| {
            let len = frame.bytes.len();
            let counted = if n == 0 { len } else { len.saturating_sub(repeated) };
            (Outgoing { owner, frames: SmallVec::from_iter([frame]), len, counted }, len)
        };
        Ok(frames.into_iter().enumerate().map(single).collect())
    }
}

impl Parcel for Outgoing {
    type Frame = Traveller;

    fn len(&self) -> usize {
        self.len
    }

    fn frame_count(&self) -> usize {
        self.frames.len()
    }

    fn frame_len(&self, n: usize) -> usize {
        self.frames[n].bytes.len()
    }

    fn take_frame(&mut self, n: usize) -> Traveller {
        let frame = &mut self.frames[n];
        Traveller { bytes: core::mem::take(&mut frame.bytes), ..*frame }
    }
}

/// Statistics of a card.
#[derive(Clone, Debug, Default)]
pub struct CardStats {
    /// Each ring of the sending side.
    pub rings: Vec<RingStats>,
    /// The receiving side.
    pub input: InputStats,
    /// Frames merged into an earlier one.
    pub merged: u64,
    /// Number of times a connection had to wait because too much of it was in the card.
    pub held_back: u64,
    /// Maximum bytes of one connection in the card.
    pub below_peak: u64,
}

/// An event of a card, or of a host without one, for the network.
pub(super) enum CardEvent {
    /// The stack sent it and there is no card.
    Sent(Traveller),
    /// The stack sent it to the card.
    Left(Traveller),
    /// It is on the line.
    OnLine(Traveller),
    /// It reached the stack.
    Arrived(Traveller),
    /// It was lost, for this reason.
    Lost(Traveller, &'static str),
    /// The contents of the card changed.
    Holds(CardHeld),
}

pub(super) struct Card {
    nic: Nic<Outgoing, Queue<Outgoing>>,
    input: Input<Traveller>,
    small_queues: Option<u64>,
    below: BTreeMap<ConnId, (u64, bool)>,
    merger: Option<Merger>,
    /// True if events of frames that are neither lost nor on the line are recorded.
    records: bool,
    /// The contents at the last report.
    held: CardHeld,
    stats: CardStats,
}

impl Card {
    /// # Panics
    /// If [`CardPlan::check`] refuses the plan.
    pub(super) fn new(plan: &CardPlan, frames: &Frames, records: bool, seed: u64) -> Card {
        let disciplines = plan.disciplines(seed).expect("the plan was checked");
        let bql: Option<DqlConfig> = plan.byte_limits.then(|| plan.nic.bql.unwrap_or_default());
        Card {
            nic: Nic::new(NicConfig { bql, ..plan.nic }, disciplines),
            input: Input::new(plan.input),
            small_queues: plan.small_queues,
            below: BTreeMap::new(),
            merger: plan.merges.then(|| Merger::new(frames.clone())),
            records,
            held: CardHeld::default(),
            stats: CardStats::default(),
        }
    }

    pub(super) fn stats(&self) -> CardStats {
        CardStats { rings: self.nic.stats().collect(), input: self.input.stats(), ..self.stats.clone() }
    }

    /// Returns whether completed packets are reported to the stack.
    pub(super) fn holds_back(&self) -> bool {
        self.small_queues.is_some()
    }

    pub(super) fn next_event(&self) -> Option<Instant> {
        earlier(self.nic.next_event(), self.input.next_event()).map(Instant::from_nanos)
    }

    /// Accepts a packet from the stack. If there is no room, the stack learns at once, as Linux's
    /// does.
    pub(super) fn send(
        &mut self,
        stack: &mut Stack,
        now: Instant,
        packet: &TxPacket,
        made: &Frames,
        events: &mut Vec<CardEvent>,
    ) {
        let is_counted = self.small_queues.is_some() && packet.payload_len() > 0;
        let owner = is_counted.then(|| stack.sender_of(packet)).flatten();
        let mut frames = SmallVec::with_capacity(Frames::count(packet));
        made.cut(packet, |frame| frames.push(frame));
        if self.records {
            events.extend(frames.iter().cloned().map(CardEvent::Left));
        }
        let len = packet.len();
        self.count_below(stack, now, owner, len);
        let verdict = self.nic.enqueue(now.as_nanos(), Outgoing { owner, frames, len, counted: len });
        self.note_dropped(stack, now, events);
        self.note_held(events);
        if matches!(verdict, Verdict::Dropped(_)) {
            stack.handle_refusal(now, packet);
        }
    }

    /// Accepts a frame from the line. Returns whether it needs handling now; usually it waits for
    /// an interrupt shared with others.
    pub(super) fn receive(&mut self, now: Instant, frame: Traveller) -> bool {
        let before = self.input.next_event();
        self.input.arrive(now.as_nanos(), frame);
        let next = self.input.next_event();
        self.records || next != before || next.is_some_and(|at| at <= now.as_nanos())
    }

    /// Returns the packets that passed the receiving side so far, as consecutive batches for the
    /// stack.
    pub(super) fn take_arrived(&mut self, now: Instant, events: &mut Vec<CardEvent>) -> Merged {
        let mut packets = Merged::new();
        while let Some(event) = self.input.poll(now.as_nanos()) {
            match (event, &mut self.merger) {
                (InputEvent::Taken(frame), merger) => {
                    if self.records {
                        events.push(CardEvent::Arrived(frame.clone()));
                    }
                    match merger {
                        None => packets.push(frame.into_received()),
                        Some(merger) => merger.take(frame, &mut packets),
                    }
                }
                (InputEvent::Flush, Some(merger)) => merger.flush(&mut packets),
                (InputEvent::Flush, None) => {}
            }
        }
        self.stats.merged = self.merger.as_ref().map_or(0, Merger::merged);
        while let Some((frame, loss)) = self.input.take_lost() {
            let by = match loss {
                InputLoss::Missed => "full receive ring",
                InputLoss::Backlog => "full input backlog",
            };
            events.push(CardEvent::Lost(frame, by));
        }
        self.note_held(events);
        packets
    }

    /// Advances the sending side to `now`.
    pub(super) fn run(&mut self, stack: &mut Stack, now: Instant, events: &mut Vec<CardEvent>) {
        while let Some(event) = self.nic.poll(now.as_nanos()) {
            match event {
                NicEvent::Sent { frame, .. } => events.push(CardEvent::OnLine(frame)),
                NicEvent::Completed { packet, .. } => self.is_gone(stack, now, packet.owner, packet.counted),
            }
        }
        self.note_dropped(stack, now, events);
        self.note_held(events);
    }

    fn note_held(&mut self, events: &mut Vec<CardEvent>) {
        if !self.records {
            return;
        }
        let held = CardHeld {
            waiting: self.nic.backlog(),
            sending: self.nic.in_rings(),
            receiving: self.input.in_ring(),
            backlog: self.input.backlog(),
        };
        if held != self.held {
            self.held = held;
            events.push(CardEvent::Holds(held));
        }
    }

    fn note_dropped(&mut self, stack: &mut Stack, now: Instant, events: &mut Vec<CardEvent>) {
        if !self.nic.has_dropped() {
            return;
        }
        let dropped: Vec<(Outgoing, DropReason)> = self.nic.drain_dropped().collect();
        for (packet, reason) in dropped {
            self.is_gone(stack, now, packet.owner, packet.counted);
            let by = super::link::words(reason);
            events.extend(packet.frames.into_iter().map(|frame| CardEvent::Lost(frame, by)));
        }
    }

    /// Charges `len` more bytes to a connection, and holds it back above the limit.
    fn count_below(&mut self, stack: &mut Stack, now: Instant, owner: Option<ConnId>, len: usize) {
        let (Some(owner), Some(most)) = (owner, self.small_queues) else { return };
        let (below, held) = self.below.entry(owner).or_default();
        *below += len as u64;
        self.stats.below_peak = self.stats.below_peak.max(*below);
        if *below > most && !*held {
            *held = true;
            self.stats.held_back += 1;
            stack.hold_back(now, owner, true);
        }
    }

    fn is_gone(&mut self, stack: &mut Stack, now: Instant, owner: Option<ConnId>, len: usize) {
        let (Some(owner), Some(most)) = (owner, self.small_queues) else { return };
        let Some((below, held)) = self.below.get_mut(&owner) else { return };
        *below = below.saturating_sub(len as u64);
        if *held && *below <= most {
            *held = false;
            stack.hold_back(now, owner, false);
        }
        if *below == 0 {
            self.below.remove(&owner);
        }
    }
}

/// Converts a duration to `qdisc`'s nanoseconds.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::PacketId;

    #[test]
    fn what_is_taken_apart_counts_as_much_below_the_stack_as_before() {
        let frame = |len| Traveller::new(PacketId(1), vec![0x45; len].into());
        // The stack sent 2500 bytes of data and one header of 40; each frame has a header.
        let frames = SmallVec::from_iter([frame(1040), frame(1040), frame(540)]);
        let large = Outgoing { owner: None, frames, len: 2540, counted: 2540 };
        assert_eq!(large.segments(), Some(Segments { count: 3, len: 1040, last_len: 540 }));
        let frames = large.into_segments().ok().unwrap();
        let counted: Vec<(usize, usize)> = frames.iter().map(|(frame, len)| (*len, frame.counted)).collect();
        assert_eq!(counted, [(1040, 1040), (1040, 1000), (540, 500)]);
        assert!(frames.iter().all(|(frame, len)| frame.segments().is_none() && frame.len() == *len));
    }
}
