//! pie: drops randomly, with a probability that a controller derives from the delay (RFC 8033;
//! Linux's `sch_pie.c`).
//!
//! The delay is measured with time stamps, which is Linux's default. The estimator of the departure
//! rate is left out.
use crate::queue::Queue;
use crate::{Dequeue, DropReason, Dropped, Nanos, Packet, Qdisc, Rng, Skb, Stats, Verdict};
use alloc::vec::Vec;

/// Options of a pie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieConfig {
    /// Packets that may wait.
    pub limit: usize,
    /// The delay that is aimed at.
    pub target: Nanos,
    /// Interval of updates of the probability.
    pub tupdate: Nanos,
    /// Weight of the distance from the target, in sixteenths.
    pub alpha: u32,
    /// Weight of the change of the delay, in sixteenths.
    pub beta: u32,
    /// True if ECN-capable packets are marked instead of dropped while the probability is at most
    /// 10 %.
    pub ecn: bool,
    /// True if short packets have a lower probability.
    pub bytemode: bool,
}

impl Default for PieConfig {
    /// Linux's, which are RFC 8033's (section 5: 15 ms, 15 ms, 0.125, 1.25).
    fn default() -> PieConfig {
        PieConfig {
            limit: 1000,
            target: 15_000_000,
            tupdate: 15_000_000,
            alpha: 2,
            beta: 20,
            ecn: false,
            bytemode: false,
        }
    }
}

/// Additional counters (`struct tc_pie_xstats`).
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct PieXstats {
    /// The present probability, 0.0 to 1.0.
    pub prob: f64,
    /// Waiting time of the last packet.
    pub delay: Nanos,
    /// Packets accepted.
    pub packets_in: u32,
    /// Packets that found no room.
    pub overlimit: u32,
    /// Packets dropped.
    pub dropped: u32,
    /// Most packets that ever waited.
    pub maxq: u32,
    /// Packets marked instead of dropped.
    pub ecn_mark: u32,
}

/// Probability 1 (`MAX_PROB`).
const MAX_PROB: u64 = u64::MAX >> 8;
/// Linux counts time here in ticks of 64 ns.
const TICK_SHIFT: u32 = 6;
const TICKS_PER_SECOND: u64 = 1_000_000_000 >> TICK_SHIFT;
/// A burst of so long is let through after a pause (`MAX_BURST`, RFC 8033 section 4.4).
const MAX_BURST: Nanos = 150_000_000;
/// No timer of Linux's is finer than this, at 1000 Hz.
const JIFFY: Nanos = 1_000_000;
/// When the controller begins.
const FIRST_UPDATE: Nanos = 500_000_000;
/// Above this delay the probability goes up faster (RFC 8033 section 4.2).
const HIGH_DELAY: Nanos = 250_000_000;

/// One queue under PIE.
#[derive(Clone, Debug)]
pub struct Pie<P> {
    config: PieConfig,
    mtu: u32,
    rng: Rng,
    queue: Queue<P>,
    vars: Vars,
    update_at: Nanos,
    xstats: PieXstats,
    stats: Stats,
}

/// `struct pie_vars`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Vars {
    prob: u64,
    burst_allowance: Nanos,
    /// Sum of the probabilities since the last drop (RFC 8033 section 5.4: derandomization).
    accu_prob: u128,
    qdelay: Nanos,
    qdelay_old: Nanos,
    dequeued_at: Option<Nanos>,
}

impl Vars {
    const INIT: Vars = Vars {
        prob: 0,
        burst_allowance: MAX_BURST,
        accu_prob: 0,
        qdelay: 0,
        qdelay_old: 0,
        dequeued_at: None,
    };

    /// One round of the controller (`pie_calculate_probability`; RFC 8033 section 4.2).
    fn update(&mut self, config: &PieConfig, backlog: u64) {
        let (qdelay, old) = (self.qdelay, self.qdelay_old);
        // A delay of 0 with packets waiting means that there are very few.
        let mut decays = qdelay != 0 || backlog == 0;
        let weight = |sixteenths: u32| (u64::from(sixteenths) * (MAX_PROB / TICKS_PER_SECOND)) >> 4;
        let (mut alpha, mut beta) = (weight(config.alpha), weight(config.beta));
        if self.prob < MAX_PROB / 10 {
            alpha >>= 1;
            beta >>= 1;
            let mut power = 100;
            while self.prob < MAX_PROB / power && power <= 1_000_000 {
                alpha >>= 2;
                beta >>= 2;
                power *= 10;
            }
        }
        let ticks = |nanos: Nanos| i128::from(nanos >> TICK_SHIFT);
        let mut delta = i128::from(alpha) * (ticks(qdelay) - ticks(config.target));
        delta += i128::from(beta) * (ticks(qdelay) - ticks(old));
        let step = i128::from(MAX_PROB / 50);
        if delta > step && self.prob >= MAX_PROB / 10 {
            delta = i128::from(MAX_PROB / 100) * 2;
        }
        if qdelay > HIGH_DELAY {
            delta += step;
        }
        let prob = i128::from(self.prob) + delta;
        if prob > i128::from(MAX_PROB) {
            decays = false;
        }
        self.prob = prob.clamp(0, i128::from(MAX_PROB)) as u64;
        if qdelay == 0 && old == 0 && decays {
            self.prob -= self.prob / 64;
        }
        let low = config.target / 2;
        if qdelay < low && old < low && self.prob == 0 {
            *self = Vars { qdelay, ..Vars::INIT };
        }
        self.qdelay_old = qdelay;
    }
}

impl<P: Packet> Pie<P> {
    /// Empty, for a device with frames of up to `mtu` bytes.
    pub fn new(config: PieConfig, mtu: u32, now: Nanos, seed: u64) -> Pie<P> {
        Pie {
            config,
            mtu,
            rng: Rng::new(seed),
            queue: Queue::new(),
            vars: Vars::INIT,
            update_at: now.saturating_add(FIRST_UPDATE),
            xstats: PieXstats::default(),
            stats: Stats::default(),
        }
    }

    /// Returns the configuration.
    pub fn config(&self) -> PieConfig {
        self.config
    }

    /// Changes the configuration. Packets that no longer fit are dropped, oldest first.
    pub fn set_config(&mut self, config: PieConfig, dropped: &mut Vec<Dropped<P>>) {
        self.config = config;
        while self.queue.len() > config.limit {
            let Some(skb) = self.queue.pop() else { return };
            self.stats.removed(&skb);
            self.stats.drop(skb, DropReason::QueueFull, dropped);
        }
    }

    /// Returns the additional counters.
    pub fn xstats(&self) -> PieXstats {
        PieXstats { prob: self.vars.prob as f64 / MAX_PROB as f64, delay: self.vars.qdelay, ..self.xstats }
    }

    /// Lets the controller have its rounds up to now.
    fn run_controller(&mut self, now: Nanos) {
        let period = self.config.tupdate.max(JIFFY);
        while self.update_at <= now {
            let before = self.vars;
            self.vars.update(&self.config, self.stats.backlog);
            self.update_at = self.update_at.saturating_add(period);
            if self.vars == before {
                // Nothing changes any more until a packet comes or goes.
                let skipped = now.saturating_sub(self.update_at) / period;
                self.update_at = self.update_at.saturating_add(skipped.saturating_mul(period));
            }
            if self.update_at == Nanos::MAX {
                return;
            }
        }
    }

    /// RFC 8033 section 4.1 (`pie_drop_early`).
    fn drops_early(&mut self, len: u32) -> bool {
        let vars = &mut self.vars;
        let calm = vars.qdelay < self.config.target / 2 && vars.prob < MAX_PROB / 5;
        if vars.burst_allowance > 0 || calm || self.stats.backlog < 2 * u64::from(self.mtu) {
            return false;
        }
        let prob = if self.config.bytemode && len <= self.mtu {
            u64::from(len) * (vars.prob / u64::from(self.mtu.max(1)))
        } else {
            vars.prob
        };
        vars.accu_prob = if prob == 0 { 0 } else { vars.accu_prob + u128::from(prob) };
        if vars.accu_prob < u128::from(MAX_PROB / 100 * 85) {
            return false;
        }
        if vars.accu_prob >= u128::from(MAX_PROB / 2) * 17 {
            return true;
        }
        let drops = self.rng.next_u64() >> 8 < prob;
        if drops {
            vars.accu_prob = 0;
        }
        drops
    }
}

impl<P: Packet> Qdisc<P> for Pie<P> {
    fn enqueue(&mut self, now: Nanos, mut skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        self.run_controller(now);
        let mut verdict = Verdict::Queued;
        let mut refused = None;
        if self.queue.len() >= self.config.limit {
            self.xstats.overlimit += 1;
            refused = Some(DropReason::QueueFull);
        } else if self.drops_early(skb.wire_len() as u32) {
            if self.config.ecn && self.vars.prob <= MAX_PROB / 10 && skb.set_ce() {
                self.xstats.ecn_mark += 1;
                verdict = Verdict::Marked;
            } else {
                refused = Some(DropReason::Congested);
            }
        }
        if let Some(reason) = refused {
            self.xstats.dropped += 1;
            self.vars.accu_prob = 0;
            return self.stats.drop(skb, reason, dropped);
        }
        self.xstats.packets_in += 1;
        self.xstats.maxq = self.xstats.maxq.max(self.queue.len() as u32);
        skb.time = now;
        self.stats.entered(&skb);
        self.queue.push(skb);
        verdict
    }

    fn dequeue(&mut self, now: Nanos, _: &mut Vec<Dropped<P>>) -> Dequeue<P> {
        self.run_controller(now);
        let Some(skb) = self.queue.pop() else { return Dequeue::Empty };
        self.stats.left(&skb);
        let vars = &mut self.vars;
        vars.qdelay = if self.stats.backlog == 0 { 0 } else { now.saturating_sub(skb.time) };
        if let Some(last) = vars.dequeued_at.replace(now) {
            vars.burst_allowance = vars.burst_allowance.saturating_sub(now.saturating_sub(last));
        }
        Dequeue::Packet(skb)
    }

    fn reset(&mut self, dropped: &mut Vec<Dropped<P>>) {
        self.queue.purge(dropped);
        self.vars = Vars::INIT;
        self.stats.emptied();
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8033 section 4.2 in floating point: `p += alpha * (delay - target) + beta * (delay - old)`, scaled by how small p is.
    fn by_the_rfc(p: f64, delay: f64, old: f64) -> f64 {
        let scale = match p {
            _ if p < 0.000_001 => 2048.0,
            _ if p < 0.000_01 => 512.0,
            _ if p < 0.000_1 => 128.0,
            _ if p < 0.001 => 32.0,
            _ if p < 0.01 => 8.0,
            _ if p < 0.1 => 2.0,
            _ => 1.0,
        };
        let mut delta = (0.125 * (delay - 0.015) + 1.25 * (delay - old)) / scale;
        if p >= 0.1 {
            delta = delta.min(0.02);
        }
        let mut p = p + delta;
        if delay > 0.25 {
            p += 0.02;
        }
        if delay == 0.0 && old == 0.0 {
            p *= 1.0 - 1.0 / 64.0;
        }
        p.clamp(0.0, 1.0)
    }

    #[test]
    fn the_controller_is_the_rfcs() {
        let config = PieConfig::default();
        for prob in [0.0, 5e-7, 5e-6, 5e-5, 5e-4, 5e-3, 0.05, 0.2, 0.7, 0.999] {
            for delay in [0.0, 0.001, 0.014, 0.015, 0.02, 0.1, 0.249, 0.4] {
                for old in [0.0, 0.002, 0.015, 0.03, 0.3] {
                    let nanos = |seconds: f64| (seconds * 1e9) as Nanos;
                    let mut vars = Vars {
                        prob: (prob * MAX_PROB as f64) as u64,
                        qdelay: nanos(delay),
                        qdelay_old: nanos(old),
                        ..Vars::INIT
                    };
                    vars.update(&config, 0);
                    let got = vars.prob as f64 / MAX_PROB as f64;
                    let expected = by_the_rfc(prob, delay, old);
                    assert!(
                        (got - expected).abs() < 1e-6,
                        "{prob} {delay} {old}: {got}, by the RFC {expected}"
                    );
                }
            }
        }
    }
}
