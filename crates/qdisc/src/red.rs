//! red: random early detection on the average queue (Floyd and Jacobson 1993; Linux's `sch_red.c`
//! and `red.h`).
use crate::node::{Node, through};
use crate::{Dequeue, DropReason, Dropped, Handle, Limit, Nanos, Packet, Qdisc, Rng, Skb, Stats, Verdict};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Options of a red, computed like tc does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// Bytes that may wait.
    pub limit: u32,
    /// Average below which nothing is marked, bytes.
    pub min: u32,
    /// Average above which everything is marked, bytes.
    pub max: u32,
    /// The average's weight is 2^-wlog.
    pub wlog: u8,
    /// An idle time of 2^scell_log µs is a row of `idle_damping`.
    pub scell_log: u8,
    /// Bits by which the average is shifted after an idle time, per number of cells.
    pub idle_damping: [u8; 256],
    /// The probability of marking at `max`, as a multiple of 2^-32.
    pub max_p: u32,
    /// True if ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// True if they are dropped nevertheless while the average is above `max`.
    pub harddrop: bool,
    /// True if packets that cannot be marked are not dropped.
    pub nodrop: bool,
    /// True if the probability adapts to keep the average in the middle (Floyd, Gummadi, Shenker
    /// 2001).
    pub adaptive: bool,
}

/// Additional counters (`struct tc_red_xstats`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RedXstats {
    /// Dropped early: at random, or because the average was above `max`.
    pub early: u32,
    /// Dropped because the queue was full.
    pub pdrop: u32,
    /// Marked instead of dropped.
    pub marked: u32,
}

/// Random early detection before one discipline.
#[derive(Clone, Debug)]
pub struct Red<P> {
    config: RedConfig,
    rng: Rng,
    /// The average queue, bytes · 2^wlog.
    qavg: u64,
    /// Packets since the last mark; below 0: the average is not between the thresholds.
    qcount: i64,
    /// The random number that the packets since then are compared to.
    qr: u64,
    idle_since: Option<Nanos>,
    max_p: u32,
    adapt_at: Nanos,
    child: Box<Node<P>>,
    xstats: RedXstats,
    stats: Stats,
}

/// How often the probability adapts.
const ADAPT: Nanos = 500_000_000;
/// The least and the most probability that it adapts to: 1 % and 50 % (`MAX_P_MIN`, `MAX_P_MAX`).
const MAX_P_MIN: u32 = u32::MAX / 100;
const MAX_P_MAX: u32 = u32::MAX / 2;

enum Action {
    Pass,
    Random,
    Hard,
}

impl<P: Packet> Red<P> {
    /// Before a bfifo of `config.limit` bytes.
    pub fn new(handle: Handle, config: RedConfig, now: Nanos, seed: u64) -> Red<P> {
        Red {
            config,
            rng: Rng::new(seed),
            qavg: 0,
            qcount: -1,
            qr: 0,
            idle_since: Some(now),
            max_p: config.max_p,
            adapt_at: now.saturating_add(ADAPT),
            child: Box::new(Node::fifo(handle.class(1), Limit::bytes(config.limit.into()))),
            xstats: RedXstats::default(),
            stats: Stats::default(),
        }
    }

    /// Returns the configuration with the adapted probability.
    pub fn config(&self) -> RedConfig {
        RedConfig { max_p: self.max_p, ..self.config }
    }

    /// Changes the configuration and resets the average.
    pub fn set_config(&mut self, config: RedConfig, now: Nanos) {
        self.config = config;
        self.max_p = config.max_p;
        self.qavg = 0;
        self.qcount = -1;
        self.idle_since = (self.stats.qlen == 0).then_some(now);
        self.adapt_at = now.saturating_add(ADAPT);
        self.child.set_fifo_limit(config.limit);
    }

    /// Returns the additional counters.
    pub fn xstats(&self) -> RedXstats {
        self.xstats
    }

    /// The average queue, bytes.
    pub fn average(&self) -> u64 {
        self.qavg >> self.config.wlog
    }

    pub(crate) fn child(&self) -> &Node<P> {
        &self.child
    }

    pub(crate) fn child_mut(&mut self) -> &mut Node<P> {
        &mut self.child
    }

    pub(crate) fn stats_mut(&mut self) -> &mut Stats {
        &mut self.stats
    }

    /// Swaps the discipline below; what waited in the old one is dropped.
    pub(crate) fn graft(&mut self, new: Node<P>, dropped: &mut Vec<Dropped<P>>) {
        through(&mut self.stats, &mut self.child, dropped, |old, dropped| old.reset(dropped));
        *self.child = new;
    }

    fn delta(&self) -> u64 {
        u64::from(self.config.max.saturating_sub(self.config.min)).max(1)
    }

    /// The average as it would be after an idle time (`red_calc_qavg_from_idle_time`).
    fn damped(&self, idle: Nanos) -> u64 {
        let micros = idle / 1000;
        let cell = (micros >> self.config.scell_log).min(255);
        let shift = self.config.idle_damping[cell as usize];
        if shift > 0 {
            return self.qavg.checked_shr(shift.into()).unwrap_or(0);
        }
        // Less than a bit: linearly.
        let less = (u128::from(self.qavg) * u128::from(micros)) >> self.config.scell_log;
        let less = u64::try_from(less).unwrap_or(u64::MAX);
        self.qavg - less.min(self.qavg / 2)
    }

    fn update_average(&mut self, now: Nanos) {
        match self.idle_since.take() {
            Some(since) => self.qavg = self.damped(now.saturating_sub(since)),
            None => {
                self.qavg = (self.qavg + self.child.stats().backlog) - (self.qavg >> self.config.wlog);
            }
        }
    }

    /// `random / (max_P / delta)`.
    fn draw(&mut self) -> u64 {
        let step = (u64::from(self.max_p) + self.delta() / 2) / self.delta();
        u64::from(self.rng.next_u32()) / step.max(1)
    }

    fn action(&mut self) -> Action {
        let wlog = self.config.wlog;
        let (min, max) = (u64::from(self.config.min) << wlog, u64::from(self.config.max) << wlog);
        if self.qavg < min {
            self.qcount = -1;
            return Action::Pass;
        }
        if self.qavg >= max {
            self.qcount = -1;
            return Action::Hard;
        }
        self.qcount += 1;
        if self.qcount == 0 {
            self.qr = self.draw();
            return Action::Pass;
        }
        let excess = (self.qavg - min) >> wlog;
        if excess.saturating_mul(self.qcount.unsigned_abs()) < self.qr {
            return Action::Pass;
        }
        self.qcount = 0;
        self.qr = self.draw();
        Action::Random
    }

    /// Every half second since it was made: the probability goes up or down (`red_adaptative_algo`).
    fn adapt(&mut self, now: Nanos) {
        while self.config.adaptive && self.adapt_at <= now {
            let at = self.adapt_at;
            let average = match self.idle_since {
                Some(since) => self.damped(at.saturating_sub(since)),
                None => self.qavg,
            } >> self.config.wlog;
            let fifth = self.delta() / 5;
            let low = u64::from(self.config.min) + 2 * fifth;
            let before = self.max_p;
            if average > low + fifth && self.max_p <= MAX_P_MAX {
                self.max_p = self.max_p.saturating_add(MAX_P_MIN.min(self.max_p / 4));
            } else if average < low && self.max_p >= MAX_P_MIN {
                self.max_p = self.max_p / 10 * 9;
            }
            self.adapt_at = at.saturating_add(ADAPT);
            if self.max_p == before {
                // Nothing changes until a packet comes: the rest of a pause is skipped.
                let skipped = now.saturating_sub(self.adapt_at) / ADAPT;
                self.adapt_at = self.adapt_at.saturating_add(skipped * ADAPT);
            }
        }
    }

    fn drop_early(&mut self, skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        self.xstats.early += 1;
        self.stats.drop(skb, DropReason::Congested, dropped)
    }
}

impl<P: Packet> Qdisc<P> for Red<P> {
    fn enqueue(&mut self, now: Nanos, mut skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        self.adapt(now);
        self.update_average(now);
        let config = self.config;
        let action = self.action();
        let hard = matches!(action, Action::Hard);
        let mut marked = false;
        if !matches!(action, Action::Pass) {
            self.stats.overlimits += 1;
            if !config.ecn || (hard && config.harddrop) {
                return self.drop_early(skb, dropped);
            }
            marked = skb.set_ce();
            if marked {
                self.xstats.marked += 1;
            } else if !config.nodrop {
                return self.drop_early(skb, dropped);
            }
        }
        let verdict = through(&mut self.stats, &mut self.child, dropped, |child, dropped| {
            child.enqueue(now, skb, dropped)
        });
        match verdict {
            Verdict::Dropped(_) => self.xstats.pdrop += 1,
            Verdict::Queued if marked => return Verdict::Marked,
            _ => {}
        }
        verdict
    }

    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Dropped<P>>) -> Dequeue<P> {
        self.adapt(now);
        let next =
            through(&mut self.stats, &mut self.child, dropped, |child, dropped| child.dequeue(now, dropped));
        match &next {
            Dequeue::Packet(skb) => self.stats.sent(skb),
            Dequeue::Throttled(_) | Dequeue::Empty => {
                self.idle_since.get_or_insert(now);
            }
        }
        next
    }

    fn reset(&mut self, dropped: &mut Vec<Dropped<P>>) {
        self.child.reset(dropped);
        self.stats.emptied();
        self.qavg = 0;
        self.qcount = -1;
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}
