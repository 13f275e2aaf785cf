//! CoDel's decision for one queue (RFC 8289 section 5; Linux's `codel_impl.h`).
//!
//! Differences of Linux from the RFC's pseudo-code, kept here: 1/√count by Newton's method in 16 bits, `count` carried over as
//! the drops of the last stay if that ended less than 16 intervals ago, and no drop from a backlog of one packet.
use super::{CodelParams, CodelXstats};
use crate::{Dropped, Nanos, Packet, Skb};
use alloc::vec::Vec;

/// A queue that CoDel takes packets from.
pub(crate) trait Source<P> {
    fn pop(&mut self) -> Option<Skb<P>>;
    /// Bytes that still wait.
    fn backlog(&self) -> u64;
    fn drop(&mut self, skb: Skb<P>, dropped: &mut Vec<Dropped<P>>);
}

/// The state of a queue (`struct codel_vars`) and its counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    count: u32,
    lastcount: u32,
    dropping: bool,
    /// 1/√count as a fraction of 2^16.
    rec_inv_sqrt: u16,
    /// When the delay will have stood above the target for an interval.
    first_above_time: Option<Nanos>,
    drop_next: Nanos,
    ldelay: Nanos,
    maxpacket: u32,
    ecn_mark: u32,
    ce_mark: u32,
}

/// A stay in the dropping state that begins within so many intervals after the last starts from its count.
const CARRY_OVER_INTERVALS: u64 = 16;

impl Control {
    pub(crate) fn xstats(&self) -> CodelXstats {
        CodelXstats {
            maxpacket: self.maxpacket,
            count: self.count,
            lastcount: self.lastcount,
            ldelay: self.ldelay,
            drop_next: self.drop_next,
            dropping: self.dropping,
            drop_overlimit: 0,
            ecn_mark: self.ecn_mark,
            ce_mark: self.ce_mark,
        }
    }

    /// Packets were dropped from this queue for want of room: signal harder.
    pub(crate) fn add_count(&mut self, dropped: u32) {
        self.count = self.count.wrapping_add(dropped);
    }

    /// The next packet that is not dropped.
    pub(crate) fn dequeue<P: Packet>(
        &mut self,
        now: Nanos,
        params: &CodelParams,
        mtu: u32,
        source: &mut impl Source<P>,
        dropped: &mut Vec<Dropped<P>>,
    ) -> Option<Skb<P>> {
        let Some(mut skb) = source.pop() else {
            self.dropping = false;
            self.first_above_time = None;
            return None;
        };
        let ok_to_drop = self.ok_to_drop(now, params, mtu, Some(&skb), source.backlog());
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.wrapping_add(1);
                self.newton_step();
                if params.ecn && skb.set_ce() {
                    self.ecn_mark += 1;
                    self.drop_next = self.control_law(self.drop_next, params);
                    break;
                }
                source.drop(skb, dropped);
                let next = source.pop();
                self.dropping = self.ok_to_drop(now, params, mtu, next.as_ref(), source.backlog());
                skb = next?;
                if self.dropping {
                    self.drop_next = self.control_law(self.drop_next, params);
                }
            }
        } else if ok_to_drop {
            let next = if params.ecn && skb.set_ce() {
                self.ecn_mark += 1;
                Some(skb)
            } else {
                source.drop(skb, dropped);
                let next = source.pop();
                self.ok_to_drop(now, params, mtu, next.as_ref(), source.backlog());
                next
            };
            self.begin_dropping(now, params);
            skb = next?;
        }
        if params.ce_threshold.is_some_and(|threshold| self.ldelay > threshold) && skb.set_ce() {
            self.ce_mark += 1;
        }
        Some(skb)
    }

    /// Has the delay stood above the target for an interval? (`codel_should_drop`.)
    fn ok_to_drop<P>(
        &mut self,
        now: Nanos,
        params: &CodelParams,
        mtu: u32,
        skb: Option<&Skb<P>>,
        backlog: u64,
    ) -> bool {
        let Some(skb) = skb else {
            self.first_above_time = None;
            return false;
        };
        self.ldelay = now.saturating_sub(skb.time);
        self.maxpacket = self.maxpacket.max(skb.len);
        if self.ldelay < params.target || backlog <= mtu.into() {
            self.first_above_time = None;
            return false;
        }
        match self.first_above_time {
            None => {
                self.first_above_time = Some(now.saturating_add(params.interval));
                false
            }
            Some(at) => now > at,
        }
    }

    fn begin_dropping(&mut self, now: Nanos, params: &CodelParams) {
        self.dropping = true;
        let delta = self.count.wrapping_sub(self.lastcount);
        let recent =
            now < self.drop_next.saturating_add(params.interval.saturating_mul(CARRY_OVER_INTERVALS));
        if delta > 1 && recent {
            self.count = delta;
            self.newton_step();
        } else {
            self.count = 1;
            self.rec_inv_sqrt = u16::MAX;
        }
        self.lastcount = self.count;
        self.drop_next = self.control_law(now, params);
    }

    /// `t + interval / √count`.
    fn control_law(&self, t: Nanos, params: &CodelParams) -> Nanos {
        let span = (u128::from(params.interval) * u128::from(self.rec_inv_sqrt)) >> 16;
        t.saturating_add(u64::try_from(span).unwrap_or(u64::MAX))
    }

    /// One step towards 1/√count: x · (3 − count · x²) / 2.
    fn newton_step(&mut self) {
        let inv_sqrt = u64::from(self.rec_inv_sqrt) << 16;
        let inv_sqrt_squared = (inv_sqrt * inv_sqrt) >> 32;
        let three = 3u64 << 32;
        // Far from the root the step overshoots; Linux's arithmetic wraps the same way.
        let val = three.wrapping_sub(u64::from(self.count).wrapping_mul(inv_sqrt_squared)) >> 2;
        self.rec_inv_sqrt = (val.wrapping_mul(inv_sqrt) >> (32 - 2 + 1) >> 16) as u16;
    }
}
