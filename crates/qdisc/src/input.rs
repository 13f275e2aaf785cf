//! The receiving side of a NIC and its processor: a ring of descriptors, interrupts, NAPI, and the
//! input backlog.
//!
//! ```text
//! arrive ─► ring ──interrupt──► NAPI poll ─┬─────────────────────────────► Taken
//!    full: missed      one packet at a time └► backlog ─► second processor ► Taken        full: dropped
//! ```
//!
//! Without a backlog, the processor that polls the ring does all the work. With one (RPS, and
//! devices without their own NAPI), it passes packets to another processor. The names are Linux's:
//! `rx_missed_errors` counts losses of the ring, and `netdev_max_backlog` limits the backlog. The
//! second column of `/proc/net/softnet_stat` counts losses of the backlog.

use crate::{Nanos, earlier};
use alloc::collections::VecDeque;

/// Configuration of the receiving side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputConfig {
    /// Descriptors of the ring (`ethtool -G … rx`).
    pub descriptors: usize,
    /// From the first packet to the interrupt (`ethtool -C … rx-usecs`).
    pub interrupt_after: Nanos,
    /// Processor time for a packet from the ring to TCP; with a backlog: from the ring to there.
    pub cost: Nanos,
    /// Limit of packets that wait for the second processor (`net.core.netdev_max_backlog`), and its
    /// time per packet.
    pub backlog: Option<(usize, Nanos)>,
}

impl Default for InputConfig {
    /// A ring of 256, an interrupt at once, a processor that costs no time.
    fn default() -> InputConfig {
        InputConfig { descriptors: 256, interrupt_after: 0, cost: 0, backlog: None }
    }
}

/// Counters of the receiving side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct InputStats {
    /// Packets received.
    pub packets: u64,
    /// Packets that found no descriptor (`rx_missed_errors`).
    pub missed: u64,
    /// Most packets in the ring.
    pub ring_peak: usize,
    /// Interrupts.
    pub interrupts: u64,
    /// Polls, of at most [`NAPI_WEIGHT`] packets each.
    pub polls: u64,
    /// Packets passed to the backlog or dropped there (first column of `softnet_stat` for its
    /// processor).
    pub processed: u64,
    /// Packets that found the backlog full (`softnet_stat`'s second column).
    pub dropped: u64,
    /// Most packets in the backlog.
    pub backlog_peak: usize,
    /// Number of times that [`NETDEV_BUDGET`] packets were processed and more were left (third
    /// column of `softnet_stat`).
    pub squeezed: u64,
}

/// Packets of one poll (Linux's `NAPI_POLL_WEIGHT`).
pub const NAPI_WEIGHT: u32 = 64;

/// Packets in a row before others have their turn (`net.core.netdev_budget`).
pub const NETDEV_BUDGET: u32 = 300;

/// An event of the receiving side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputEvent<P> {
    /// A packet is TCP's.
    Taken(P),
    /// The end of a poll, which flushes packets being merged (GRO).
    Flush,
}

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputLoss {
    /// The ring was full.
    Missed,
    /// The backlog was full.
    Backlog,
}

/// The receiving side of a card. `now` must not go back.
#[derive(Clone, Debug)]
pub struct Input<P> {
    config: InputConfig,
    ring: VecDeque<P>,
    backlog: VecDeque<P>,
    interrupt_at: Option<Nanos>,
    /// The packet at the head of the ring is through then.
    polled_at: Option<Nanos>,
    of_poll: u32,
    of_budget: u32,
    /// The packet at the head of the backlog is through then.
    handled_at: Option<Nanos>,
    of_handling: u32,
    now: Nanos,
    events: VecDeque<InputEvent<P>>,
    lost: VecDeque<(P, InputLoss)>,
    stats: InputStats,
}

impl<P> Input<P> {
    /// An idle one.
    pub fn new(config: InputConfig) -> Input<P> {
        Input {
            config,
            ring: VecDeque::new(),
            backlog: VecDeque::new(),
            interrupt_at: None,
            polled_at: None,
            of_poll: 0,
            of_budget: 0,
            handled_at: None,
            of_handling: 0,
            now: 0,
            events: VecDeque::new(),
            lost: VecDeque::new(),
            stats: InputStats::default(),
        }
    }

    /// Counters.
    pub fn stats(&self) -> InputStats {
        self.stats
    }

    /// Descriptors of its ring that are in use.
    pub fn in_ring(&self) -> usize {
        self.ring.len()
    }

    /// Packets in its backlog.
    pub fn backlog(&self) -> usize {
        self.backlog.len()
    }

    /// A packet comes off the line.
    pub fn arrive(&mut self, now: Nanos, packet: P) {
        self.advance(now);
        if self.ring.len() >= self.config.descriptors {
            self.stats.missed += 1;
            self.lost.push_back((packet, InputLoss::Missed));
            return;
        }
        self.ring.push_back(packet);
        self.stats.ring_peak = self.stats.ring_peak.max(self.ring.len());
        // While it is being polled the interrupt is off.
        if self.polled_at.is_none() && self.interrupt_at.is_none() {
            self.interrupt_at = Some(self.now.saturating_add(self.config.interrupt_after));
        }
        self.advance(self.now);
    }

    /// Returns the next event until `now`, in order.
    pub fn poll(&mut self, now: Nanos) -> Option<InputEvent<P>> {
        self.advance(now);
        self.events.pop_front()
    }

    /// The next packet that was lost here.
    pub fn take_lost(&mut self) -> Option<(P, InputLoss)> {
        self.lost.pop_front()
    }

    /// When something happens next.
    pub fn next_event(&self) -> Option<Nanos> {
        if !self.events.is_empty() {
            return Some(self.now);
        }
        self.next_work()
    }

    fn next_work(&self) -> Option<Nanos> {
        earlier(self.interrupt_at, earlier(self.polled_at, self.handled_at))
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
        if self.handled_at == Some(at) {
            self.handle_one(at);
        } else if self.polled_at == Some(at) {
            self.poll_one(at);
        } else {
            self.interrupt_at = None;
            self.stats.interrupts += 1;
            (self.of_poll, self.of_budget) = (0, 0);
            self.polled_at = Some(at.saturating_add(self.config.cost));
        }
    }

    /// NAPI is through with a packet.
    fn poll_one(&mut self, at: Nanos) {
        self.polled_at = None;
        let Some(packet) = self.ring.pop_front() else { return };
        self.of_poll += 1;
        self.of_budget += 1;
        match self.config.backlog {
            Some(limit) => self.hand_on(at, packet, limit),
            None => self.take(packet),
        }
        let is_over = self.ring.is_empty();
        if is_over || self.of_poll >= NAPI_WEIGHT {
            self.of_poll = 0;
            self.stats.polls += 1;
            if self.config.backlog.is_none() {
                self.events.push_back(InputEvent::Flush);
            }
        }
        if is_over {
            return;
        }
        if self.of_budget >= NETDEV_BUDGET {
            self.of_budget = 0;
            self.stats.squeezed += 1;
        }
        self.polled_at = Some(at.saturating_add(self.config.cost));
    }

    fn hand_on(&mut self, at: Nanos, packet: P, (limit, cost): (usize, Nanos)) {
        self.stats.processed += 1;
        // `enqueue_to_backlog`: a queue of exactly the limit takes one more.
        if self.backlog.len() > limit {
            self.stats.dropped += 1;
            self.lost.push_back((packet, InputLoss::Backlog));
            return;
        }
        self.backlog.push_back(packet);
        self.stats.backlog_peak = self.stats.backlog_peak.max(self.backlog.len());
        self.handled_at.get_or_insert(at.saturating_add(cost));
    }

    /// The second processor is through with a packet.
    fn handle_one(&mut self, at: Nanos) {
        self.handled_at = None;
        let Some((_, cost)) = self.config.backlog else { return };
        if let Some(packet) = self.backlog.pop_front() {
            self.take(packet);
            self.of_handling += 1;
        }
        if self.backlog.is_empty() || self.of_handling >= NAPI_WEIGHT {
            self.of_handling = 0;
            self.events.push_back(InputEvent::Flush);
        }
        if !self.backlog.is_empty() {
            self.handled_at = Some(at.saturating_add(cost));
        }
    }

    fn take(&mut self, packet: P) {
        self.stats.packets += 1;
        self.events.push_back(InputEvent::Taken(packet));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Nanos = 1000;

    fn taken<P>(input: &mut Input<P>) -> Vec<(Nanos, P)> {
        let mut taken = Vec::new();
        while let Some(at) = input.next_event() {
            while let Some(event) = input.poll(at) {
                if let InputEvent::Taken(packet) = event {
                    taken.push((at, packet));
                }
            }
        }
        taken
    }

    use alloc::vec::Vec;

    #[test]
    fn an_interrupt_waits_for_more_and_a_poll_takes_them_all() {
        let config = InputConfig { interrupt_after: 50 * US, cost: 2 * US, ..InputConfig::default() };
        let mut input = Input::new(config);
        for n in 0..3 {
            input.arrive(n * 10 * US, n);
        }
        assert_eq!(taken(&mut input), [(52 * US, 0), (54 * US, 1), (56 * US, 2)]);
        assert_eq!((input.stats().interrupts, input.stats().polls), (1, 1));
    }

    #[test]
    fn a_full_ring_misses_what_comes() {
        let config = InputConfig { descriptors: 4, cost: 10 * US, ..InputConfig::default() };
        let mut input = Input::new(config);
        for n in 0..10 {
            input.arrive(n, n);
        }
        assert_eq!(taken(&mut input).len(), 4);
        assert_eq!((input.stats().missed, input.stats().ring_peak), (6, 4));
        assert_eq!(input.take_lost(), Some((4, InputLoss::Missed)));
    }

    #[test]
    fn a_full_backlog_drops_what_the_ring_hands_on() {
        let backlog = Some((10, 100 * US));
        let config = InputConfig { cost: US, backlog, ..InputConfig::default() };
        let mut input = Input::new(config);
        for n in 0..30 {
            input.arrive(n, n);
        }
        let taken = taken(&mut input);
        // Eleven wait; the first of them is done only after the last was offered.
        assert_eq!(taken.len(), 11);
        assert_eq!(taken[1].0 - taken[0].0, 100 * US);
        let stats = input.stats();
        assert_eq!((stats.processed, stats.dropped, stats.backlog_peak, stats.missed), (30, 19, 11, 0));
    }

    #[test]
    fn a_long_row_is_told_as_a_squeeze() {
        let config = InputConfig { descriptors: 1000, cost: US, ..InputConfig::default() };
        let mut input = Input::new(config);
        for n in 0..700 {
            input.arrive(0, n);
        }
        assert_eq!(taken(&mut input).len(), 700);
        assert_eq!((input.stats().squeezed, input.stats().polls), (2, 11));
    }
}
