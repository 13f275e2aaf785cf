//! cake: a shaper with tins by DSCP, fairness between hosts and flows, and COBALT for each flow
//! (Linux's `sch_cake.c`; "Piece of CAKE", arXiv:1804.07617).
//!
//! ```text
//!             diffserv          hash             ack_filter                         cobalt    shaper
//! enqueue ──► tin by DSCP ──► flow's queue ──► redundant ACKs ──► rounds (tin) ──► marks ──► clock ──► dequeue
//!                                              overflow: drops from the longest queue if memory is full
//! ```
//!
//! - `config`: the options of tc. `xstats`: the counters.
//! - `diffserv`: the tin of a codepoint, and the tins' shares.
//! - `hash`: queues in sets of eight, and the number of bulk flows of each host.
//! - `tin`, `rounds`, `flow`: rounds of new, old and decaying flows, by deficits.
//! - `ack_filter`, `overflow`: early drops.
//! - `cobalt`: decides whether a packet is marked or dropped.
//! - `shaper`, `overhead`: when the next packet may leave, given its size on the wire.
//!
//! Left out are `nat` (there is no address translation), `autorate-ingress` (nothing is received),
//! filters, and classes, which in Linux only show flows. A large segment is split if its packet can
//! be ([`Packet::into_segments`]). Otherwise it stays whole, as with `no-split-gso`, and each of
//! its frames counts with its own overhead. Random numbers come from a seeded generator, not from
//! Linux's. The implementation follows the source of Linux, and was not compared with a running
//! kernel.

mod ack_filter;
mod cobalt;
mod config;
mod diffserv;
mod flow;
mod hash;
mod overflow;
mod overhead;
mod rounds;
mod shaper;
mod tin;
mod xstats;

pub use config::{CakeAckFilter, CakeCoding, CakeConfig, CakeFraming, CakeIsolation, CakeTins};
pub use xstats::{CakeTinXstats, CakeXstats};

use crate::{Dequeue, DropReason, Dropped, Handle, Nanos, Packet, Qdisc, Rng, Skb, Stats, Verdict};
use alloc::vec::Vec;
use cobalt::Signal;
use flow::Waiting;
use overflow::{Overflow, Place};
use overhead::Lengths;
use shaper::{ByteTime, Shaper};
use tin::Tin;

/// Common Applications Kept Enhanced.
#[derive(Clone, Debug)]
pub struct Cake<P> {
    handle: Handle,
    config: CakeConfig,
    mtu: u32,
    tins: Vec<Tin<P>>,
    /// Whose turn it is while there is no shaper.
    turn: usize,
    shaper: Shaper,
    lengths: Lengths,
    overflow: Overflow,
    memory_used: u64,
    memory_peak: u64,
    memory_limit: u32,
    capacity_estimate: u64,
    rng: Rng,
    stats: Stats,
}

impl<P: Packet> Cake<P> {
    /// Creates empty queues for a device with frames of up to `mtu` bytes. The seed determines the
    /// hashes and all random decisions.
    pub fn new(handle: Handle, config: CakeConfig, mtu: u32, seed: u64) -> Cake<P> {
        let mut cake = Cake {
            handle,
            config,
            mtu,
            tins: Vec::new(),
            turn: 0,
            shaper: Shaper::default(),
            lengths: Lengths::NONE,
            overflow: Overflow::default(),
            memory_used: 0,
            memory_peak: 0,
            memory_limit: 0,
            capacity_estimate: config.bandwidth,
            rng: Rng::new(seed),
            stats: Stats::default(),
        };
        cake.apply(&mut Vec::new());
        cake
    }

    /// Returns the configuration.
    pub fn config(&self) -> CakeConfig {
        self.config
    }

    /// Changes the configuration. Packets of tins that no longer exist are dropped.
    pub fn set_config(&mut self, config: CakeConfig, dropped: &mut Vec<Dropped<P>>) {
        if config.framing != self.config.framing {
            self.lengths.forget();
        }
        self.config = config;
        self.apply(dropped);
    }

    /// Linux's `cake_reconfigure`.
    fn apply(&mut self, dropped: &mut Vec<Dropped<P>>) {
        let config = self.config;
        let count = config.tins.count();
        while self.tins.len() > count {
            let Some(mut tin) = self.tins.pop() else { break };
            let known = dropped.len();
            tin.flows.iter_mut().for_each(|flow| flow.purge(dropped));
            for lost in dropped.iter().skip(known) {
                self.memory_used -= lost.skb.memory();
                self.stats.removed(&lost.skb);
            }
        }
        while self.tins.len() < count {
            self.tins.push(Tin::new(self.rng.next_u64()));
        }
        for (number, tin) in self.tins.iter_mut().enumerate() {
            tin.set_share(config.tins.share(number, config.bandwidth), &config, self.mtu);
        }
        self.turn = self.turn.min(count.saturating_sub(1));
        self.overflow.forget();
        self.shaper.byte_time = ByteTime::of_rate(config.bandwidth);
        self.memory_limit = self.limit_of_memory();
    }

    /// Four times what is in flight at the rate, at least 4 MB and at most what 10,240 full frames take; or as configured.
    fn limit_of_memory(&self) -> u32 {
        let CakeConfig { bandwidth, interval, memory_limit: configured, .. } = self.config;
        let wanted = match (configured, bandwidth) {
            (0, 0) => u32::MAX,
            (0, _) => {
                let bytes = 4 * u128::from(bandwidth) * u128::from(interval) / NANOS_PER_SECOND;
                u32::try_from(bytes).unwrap_or(u32::MAX).max(MEMORY_LIMIT_MIN)
            }
            (configured, _) => configured,
        };
        wanted.min(self.mtu.saturating_mul(FRAMES_MAX).max(configured))
    }

    /// Returns the additional counters.
    pub fn xstats(&self) -> CakeXstats {
        let by_rank = |rank| self.tins.get(self.config.tins.by_rank(rank)).map(Tin::xstats);
        CakeXstats {
            memory_used: self.memory_peak,
            memory_limit: self.memory_limit,
            capacity_estimate: self.capacity_estimate,
            min_netlen: self.lengths.min_netlen,
            max_netlen: self.lengths.max_netlen,
            min_adjlen: self.lengths.min_adjlen,
            max_adjlen: self.lengths.max_adjlen,
            average_network_offset: self.lengths.network_offset(),
            tins: (0..self.tins.len()).filter_map(by_rank).collect(),
        }
    }

    /// The tin of a packet: by its mark, by a priority that names one, or by its DSCP (`cake_select_tin`).
    fn tin_of(&self, packet: &mut P) -> usize {
        let tins = self.config.tins;
        let dscp = packet.dscp();
        if self.config.wash && dscp != 0 {
            packet.clear_dscp();
        }
        if self.tins.len() == 1 {
            return 0;
        }
        let named = |rank: u32| (rank as usize).checked_sub(1).filter(|rank| *rank < self.tins.len());
        if let Some(mask) = core::num::NonZeroU32::new(self.config.fwmark) {
            let mark = (packet.mark() & mask.get()) >> mask.trailing_zeros();
            if let Some(rank) = named(mark) {
                return tins.by_rank(rank);
            }
        }
        let class = Handle::from(packet.priority());
        if class.major() == self.handle.major()
            && let Some(rank) = named(class.minor().into())
        {
            return tins.by_rank(rank);
        }
        tins.of_codepoint(dscp)
    }

    /// Clocks that stood still while nothing waited go on from now.
    fn wake(&mut self, now: Nanos, tin: usize) {
        let Some(tin) = self.tins.get_mut(tin).filter(|tin| tin.backlog == 0) else { return };
        tin.clock.wake(now);
        if self.stats.qlen == 0 {
            self.shaper.wake(now);
            // Linux sets its watchdog here.
            self.stats.overlimits += u64::from(self.shaper.held_until(now).is_some());
        }
    }

    fn is_shaped(&self) -> bool {
        !self.shaper.byte_time.is_unlimited()
    }

    /// Puts a packet, or the frames that it is taken apart into, at the end of its flow's queue.
    fn push(&mut self, now: Nanos, place: Place, mut skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) {
        skb.time = now;
        let frames = match self.config.split_gso && skb.packet.segments().is_some() {
            true => skb.into_segments(),
            false => Err(skb),
        };
        match frames {
            Ok(frames) => frames.into_iter().for_each(|frame| self.push_one(place, frame)),
            Err(skb) => {
                self.push_one(place, skb);
                self.filter_acks(now, place, dropped);
            }
        }
        self.overflow.grew(place, &self.tins);
    }

    fn push_one(&mut self, place: Place, skb: Skb<P>) {
        let wire_len = self.lengths.on_wire(&self.config.framing, &skb);
        let Some(tin) = self.tins.get_mut(usize::from(place.tin)) else { return };
        tin.counters.packets += 1;
        tin.counters.bytes += u64::from(skb.len);
        tin.backlog += u64::from(skb.len);
        self.memory_used += skb.memory();
        self.stats.entered(&skb);
        if let Some(flow) = tin.flows.get_mut(usize::from(place.queue)) {
            flow.push(Waiting { skb, wire_len });
        }
    }

    /// Drops an acknowledgment that the last packet of a queue makes needless.
    fn filter_acks(&mut self, now: Nanos, place: Place, dropped: &mut Vec<Dropped<P>>) {
        let Some(tin) = self.tins.get_mut(usize::from(place.tin)) else { return };
        let Some(flow) = tin.flows.get_mut(usize::from(place.queue)) else { return };
        let needless = ack_filter::needless(&flow.queue, self.config.ack_filter);
        let Some(Waiting { skb, wire_len }) = needless.and_then(|place| flow.take(place)) else { return };
        tin.counters.ack_drops += 1;
        tin.backlog -= u64::from(skb.len);
        self.memory_used -= skb.memory();
        self.stats.removed(&skb);
        self.stats.drop(skb, DropReason::NeedlessAck, dropped);
        if self.config.ingress {
            self.advance(now, place.tin, wire_len, true);
        }
        self.overflow.shrank(place, &self.tins);
    }

    /// Takes the first packet of a queue.
    fn pop(&mut self, place: Place) -> Option<Waiting<P>> {
        let tin = self.tins.get_mut(usize::from(place.tin))?;
        let waiting = tin.flows.get_mut(usize::from(place.queue))?.pop()?;
        tin.backlog -= u64::from(waiting.skb.len);
        self.memory_used -= waiting.skb.memory();
        self.stats.removed(&waiting.skb);
        self.overflow.shrank(place, &self.tins);
        Some(waiting)
    }

    /// Counts bytes on the wire against the shaper and their tin's share.
    fn advance(&mut self, now: Nanos, tin: u16, wire_len: u32, is_dropped: bool) {
        if !self.is_shaped() {
            return;
        }
        if let Some(tin) = self.tins.get_mut(usize::from(tin)) {
            tin.clock.advance(now, wire_len);
        }
        self.shaper.advance(wire_len, is_dropped);
    }

    /// Drops the first packet of the longest queue; which was it? (`cake_drop`.)
    fn drop_from_longest(&mut self, now: Nanos, dropped: &mut Vec<Dropped<P>>) -> Option<Place> {
        let place = self.overflow.longest(&self.tins)?;
        let Waiting { skb, wire_len } = self.pop(place)?;
        let tin = self.tins.get_mut(usize::from(place.tin))?;
        tin.counters.drops += 1;
        if let Some(flow) = tin.flows.get_mut(usize::from(place.queue)) {
            tin.unresponsive_flows += u32::from(flow.cobalt.queue_is_full(now, &tin.params));
        }
        self.stats.drop(skb, DropReason::QueueFull, dropped);
        if self.config.ingress {
            self.advance(now, place.tin, wire_len, true);
        }
        Some(place)
    }

    /// Makes room in memory. Was a packet of this queue dropped?
    fn make_room(&mut self, now: Nanos, place: Place, dropped: &mut Vec<Dropped<P>>) -> bool {
        self.memory_peak = self.memory_peak.max(self.memory_used);
        let mut is_own = false;
        while self.memory_used > self.memory_limit.into() {
            let Some(longest) = self.drop_from_longest(now, dropped) else { break };
            is_own |= longest == place;
        }
        is_own
    }

    /// The tin that sends next.
    fn choose_tin(&mut self, now: Nanos) -> Option<u16> {
        let tin = if self.is_shaped() { self.by_clock(now) } else { self.by_weight() };
        tin.map(|tin| tin as u16)
    }

    /// Of those that are below their share the one with the highest priority, else the one that is so first.
    fn by_clock(&self, now: Nanos) -> Option<usize> {
        let mut best: Option<(usize, i128)> = None;
        for (number, tin) in self.tins.iter().enumerate().filter(|(_, tin)| tin.rounds.has_work()) {
            let wait = tin.clock.until_next(now);
            if wait <= 0 || best.is_none_or(|(_, least)| wait <= least) {
                best = Some((number, wait));
            }
        }
        best.map(|(number, _)| number)
    }

    /// By deficits, tin by tin.
    fn by_weight(&mut self) -> Option<usize> {
        if !self.tins.iter().any(|tin| tin.rounds.has_work()) {
            return None;
        }
        loop {
            let tin = self.tins.get_mut(self.turn)?;
            if tin.deficit >= 0 && tin.rounds.has_work() {
                return Some(self.turn);
            }
            if tin.deficit <= 0 {
                tin.deficit += tin.quantum.max(1);
            }
            self.turn = (self.turn + 1) % self.tins.len();
        }
    }

    /// Lets the flow whose turn it is in this tin send.
    fn serve(
        &mut self,
        now: Nanos,
        number: u16,
        is_first: &mut bool,
        dropped: &mut Vec<Dropped<P>>,
    ) -> Served<P> {
        let isolation = self.config.isolation;
        loop {
            let Some(tin) = self.tins.get_mut(usize::from(number)) else { return Served::Nothing };
            let Some(queue) = tin.rounds.pop(core::mem::take(is_first)) else { return Served::Nothing };
            if !tin.may_send(queue) {
                tin.end_turn(queue, isolation, &mut self.rng);
                continue;
            }
            let served = self.take_from(now, Place { tin: number, queue }, dropped);
            let Some(tin) = self.tins.get_mut(usize::from(number)) else { return Served::Nothing };
            match served {
                Served::Nothing => {
                    tin.run_dry(now, queue, isolation);
                    return Served::Again;
                }
                Served::Again => tin.keep_turn(queue),
                Served::Packet(skb) => {
                    tin.keep_turn(queue);
                    return Served::Packet(skb);
                }
            }
        }
    }

    /// The next packet of a queue that COBALT lets through. Where drops count as sent, each ends the turn's search.
    fn take_from(&mut self, now: Nanos, place: Place, dropped: &mut Vec<Dropped<P>>) -> Served<P> {
        let is_ingress = self.config.ingress;
        loop {
            let Some(Waiting { mut skb, wire_len }) = self.pop(place) else { return Served::Nothing };
            let Some(tin) = self.tins.get_mut(usize::from(place.tin)) else { return Served::Nothing };
            let Some(flow) = tin.flows.get_mut(usize::from(place.queue)) else { return Served::Nothing };
            let bulk_flows = if is_ingress { tin.rounds.bulk_flows().into() } else { 0 };
            let signal = flow.cobalt.signal(now, &tin.params, &mut skb, bulk_flows, &mut self.rng);
            // The last packet of a queue is never dropped.
            let is_lost = matches!(signal, Signal::Drop { .. }) && !flow.queue.is_empty();
            if !is_lost || is_ingress {
                flow.deficit -= i64::from(wire_len);
                tin.deficit -= i64::from(wire_len);
            }
            if is_lost {
                tin.counters.drops += 1;
                self.stats.drop(skb, DropReason::Congested, dropped);
                if is_ingress {
                    self.advance(now, place.tin, wire_len, true);
                    return Served::Again;
                }
                continue;
            }
            let is_marked = matches!(signal, Signal::Marked | Signal::Drop { is_marked: true });
            tin.counters.ecn_marks += u32::from(is_marked);
            tin.note_delay(now.saturating_sub(skb.time));
            self.advance(now, place.tin, wire_len, false);
            self.overflow.packet_left();
            self.stats.sent(&skb);
            return Served::Packet(skb);
        }
    }
}

/// What a tin or a queue had.
enum Served<P> {
    /// This packet.
    Packet(Skb<P>),
    /// Nothing yet: ask again.
    Again,
    /// Nothing.
    Nothing,
}

const NANOS_PER_SECOND: u128 = 1_000_000_000;
/// Less memory is never the limit unless it is configured.
const MEMORY_LIMIT_MIN: u32 = 4 << 20;
/// Full frames whose bytes are the most that the limit of memory is without being configured.
const FRAMES_MAX: u32 = 10_240;

// Not inlined where one of several disciplines is called: every other one would pay for the stack that this one needs.
impl<P: Packet> Qdisc<P> for Cake<P> {
    #[inline(never)]
    fn enqueue(&mut self, now: Nanos, mut skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        let isolation = self.config.isolation;
        let number = self.tin_of(&mut skb.packet);
        let Some(tin) = self.tins.get_mut(number) else {
            return self.stats.drop(skb, DropReason::NoClass, dropped);
        };
        let queue = tin.table.queue_of(&skb.packet, isolation, &mut tin.flows);
        tin.counters.max_len = tin.counters.max_len.max(skb.len);
        let place = Place { tin: number as u16, queue: queue as u16 };
        self.wake(now, number);
        self.push(now, place, skb, dropped);
        if let Some(tin) = self.tins.get_mut(number) {
            tin.join(place.queue, isolation, &mut self.rng);
        }
        if self.make_room(now, place, dropped) { Verdict::Congestion } else { Verdict::Queued }
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Dropped<P>>) -> Dequeue<P> {
        let mut is_first = true;
        while self.stats.qlen > 0 {
            if let Some(until) = self.shaper.held_until(now) {
                self.stats.overlimits += 1;
                return Dequeue::Throttled(until);
            }
            let Some(tin) = self.choose_tin(now) else { break };
            match self.serve(now, tin, &mut is_first, dropped) {
                Served::Packet(skb) => return Dequeue::Packet(skb),
                Served::Again => {}
                Served::Nothing => break,
            }
        }
        Dequeue::Empty
    }

    fn reset(&mut self, dropped: &mut Vec<Dropped<P>>) {
        for tin in &mut self.tins {
            tin.flows.iter_mut().for_each(|flow| flow.purge(dropped));
            tin.backlog = 0;
        }
        self.overflow.forget();
        self.memory_used = 0;
        self.stats.emptied();
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}
