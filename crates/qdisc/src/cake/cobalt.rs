//! COBALT: CoDel for flows that answer congestion signals, and BLUE for those that do not (Linux's `cobalt_should_drop`,
//! `cobalt_queue_full` and `cobalt_queue_empty`; "Piece of CAKE", arXiv:1804.07617).
//!
//! Differences from CoDel (RFC 8289): `count` falls step by step after a stay in the dropping state, at the times at which it would
//! have risen, and a delay counts as too long only if it is also longer than four full frames take. BLUE drops at random, ECN-capable
//! packets too; its probability rises when memory is full and falls when the queue is found empty.
//!
//! As in Linux, a flow that has never signalled has a `rec_inv_sqrt` of 0: the second packet of its life above the target is signalled
//! at once, and only later stays above it are given an interval first. Linux cuts the interval to 32 bits (4.29 s) in the control
//! law; here it is whole.
use crate::{Nanos, Packet, Rng, Skb};

/// The parameters of one tin (`struct cobalt_params`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct CobaltParams {
    pub(super) interval: Nanos,
    pub(super) target: Nanos,
    /// How long a full frame takes at the tin's rate.
    pub(super) mtu_time: Nanos,
}

/// By how much BLUE's probability rises: 1/256, as a fraction of 2^32.
const BLUE_INCREMENT: u32 = 1 << 24;
/// By how much it falls: 1/4096.
const BLUE_DECREMENT: u32 = 1 << 20;

/// Delays of up to so many full frames are never too long.
const FRAMES_MIN: u64 = 4;

/// 1/√count as a fraction of 2^32, for the counts for which a step of Newton's method is too coarse. 0 and 1 have what is next to 1.
const REC_INV_SQRT: [u32; 16] = {
    let mut table = [u32::MAX; 16];
    let mut count = 2;
    while count < table.len() {
        table[count] = ((1u128 << 64) / count as u128).isqrt() as u32;
        count += 1;
    }
    table
};

/// One step towards 1/√count: x · (3 − count · x²) / 2.
fn newton_step(root: u32, count: u32) -> u32 {
    let root = u64::from(root);
    let squared = (root * root) >> 32;
    let val = (3u64 << 32).wrapping_sub(u64::from(count).wrapping_mul(squared)) >> 2;
    (val.wrapping_mul(root) >> (32 - 2 + 1)) as u32
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// Nothing.
    None,
    /// It was marked.
    Marked,
    /// It is to be dropped. BLUE may want that of one that CoDel has marked.
    Drop {
        /// Was it marked?
        is_marked: bool,
    },
}

/// The state of a flow (`struct cobalt_vars`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cobalt {
    /// CoDel's count of signals.
    count: u32,
    /// 1/√count as a fraction of 2^32.
    rec_inv_sqrt: u32,
    /// When the next signal is due; while there is no count, until when the state is kept.
    drop_next: Nanos,
    /// When BLUE's probability changed last.
    blue_timer: Nanos,
    /// BLUE's probability as a fraction of 2^32.
    p_drop: u32,
    dropping: bool,
}

impl Cobalt {
    /// A packet of this flow was dropped for want of memory. Did BLUE begin?
    pub(super) fn queue_is_full(&mut self, now: Nanos, params: &CobaltParams) -> bool {
        let mut begins = false;
        if now.saturating_sub(self.blue_timer) > params.target {
            begins = self.p_drop == 0;
            self.p_drop = self.p_drop.saturating_add(BLUE_INCREMENT);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
        begins
    }

    /// The flow had its turn, and nothing was there. Did BLUE end?
    pub(super) fn queue_is_empty(&mut self, now: Nanos, params: &CobaltParams) -> bool {
        let mut ends = false;
        if self.p_drop != 0 && now.saturating_sub(self.blue_timer) > params.target {
            self.p_drop = self.p_drop.saturating_sub(BLUE_DECREMENT);
            self.blue_timer = now;
            ends = self.p_drop == 0;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.step(self.count - 1, params);
        }
        ends
    }

    /// Is there anything to remember of it?
    pub(super) fn is_at_rest(&self, now: Nanos) -> bool {
        self.p_drop == 0 && self.count == 0 && now >= self.drop_next
    }

    /// Looks at the packet that leaves next; marks it if it is to be marked.
    pub(super) fn signal<P: Packet>(
        &mut self,
        now: Nanos,
        params: &CobaltParams,
        skb: &mut Skb<P>,
        bulk_flows: u64,
        rng: &mut Rng,
    ) -> Signal {
        let sojourn = now.saturating_sub(skb.time);
        let is_over = sojourn > params.target
            && sojourn > params.mtu_time.saturating_mul(bulk_flows).saturating_mul(2)
            && sojourn > params.mtu_time.saturating_mul(FRAMES_MIN);
        let mut is_late = now > self.drop_next;
        let mut is_due = self.count > 0 && now >= self.drop_next;
        if is_over {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = self.control_law(now, params);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let (mut drops, mut is_marked) = (false, false);
        if is_due && self.dropping {
            is_marked = skb.set_ce();
            drops = !is_marked;
            self.step(self.count.saturating_add(1), params);
            is_late = now > self.drop_next;
        } else {
            while is_due {
                self.step(self.count - 1, params);
                is_late = now > self.drop_next;
                is_due = self.count > 0 && now >= self.drop_next;
            }
        }
        if self.p_drop != 0 {
            drops |= rng.next_u32() < self.p_drop;
        }
        if self.count == 0 {
            self.drop_next = now.saturating_add(params.interval);
        } else if is_late && !drops {
            self.drop_next = now;
        }
        match (drops, is_marked) {
            (true, _) => Signal::Drop { is_marked },
            (false, true) => Signal::Marked,
            (false, false) => Signal::None,
        }
    }

    /// Another count, and the time of its signal.
    fn step(&mut self, count: u32, params: &CobaltParams) {
        self.count = count;
        self.rec_inv_sqrt = match REC_INV_SQRT.get(count as usize) {
            Some(root) => *root,
            None => newton_step(self.rec_inv_sqrt, count),
        };
        self.drop_next = self.control_law(self.drop_next, params);
    }

    /// `t + interval / √count`.
    fn control_law(&self, t: Nanos, params: &CobaltParams) -> Nanos {
        let span = (u128::from(params.interval) * u128::from(self.rec_inv_sqrt)) >> 32;
        t.saturating_add(span as Nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;
    const PARAMS: CobaltParams = CobaltParams { interval: 100 * MS, target: 5 * MS, mtu_time: 0 };

    #[derive(Clone)]
    struct Plain;
    impl Packet for Plain {}

    /// A packet that has waited so long.
    fn signal_of(cobalt: &mut Cobalt, now: Nanos, sojourn: Nanos) -> Signal {
        let mut skb = Skb::new(Plain, 1500);
        skb.time = now - sojourn;
        cobalt.signal(now, &PARAMS, &mut skb, 0, &mut Rng::new(1))
    }

    /// The times, in milliseconds, at which packets are dropped that come every millisecond and wait so long.
    fn drops(cobalt: &mut Cobalt, from: Nanos, until: Nanos, sojourn: Nanos) -> std::vec::Vec<Nanos> {
        (from..until).filter(|ms| signal_of(cobalt, ms * MS, sojourn) != Signal::None).collect()
    }

    #[test]
    fn a_step_of_newton_is_enough_beyond_the_table() {
        let mut root = REC_INV_SQRT[15];
        for count in 16..1000u32 {
            root = newton_step(root, count);
            let exact = 4_294_967_296.0 / libm::sqrt(count.into());
            assert!((f64::from(root) / exact - 1.0).abs() < 0.003, "{count}: {root}, not {exact}");
        }
    }

    #[test]
    fn signals_come_at_the_interval_over_the_root_of_their_count() {
        let mut cobalt = Cobalt::default();
        // 100/√2, /√3, /√4, … ms apart, each rounded up to the next packet: 70.7, 57.7, 50.0, 44.7.
        assert_eq!(drops(&mut cobalt, 1000, 1240, 6 * MS), [1001, 1071, 1129, 1179, 1224]);
    }

    #[test]
    fn a_delay_of_the_target_is_not_too_long() {
        assert_eq!(drops(&mut Cobalt::default(), 1000, 3000, 5 * MS), []);
    }

    #[test]
    fn a_second_stay_above_the_target_is_given_an_interval() {
        let mut cobalt = Cobalt::default();
        drops(&mut cobalt, 1000, 1240, 6 * MS);
        // The count of 6 falls to 0 in (1/√5 + 1/√4 + … + 1/√1 + 1) intervals, about 420 ms.
        assert_eq!(drops(&mut cobalt, 1240, 2000, MS), []);
        assert!(cobalt.count == 0 && !cobalt.dropping);
        let again = drops(&mut cobalt, 2000, 2180, 6 * MS);
        assert_eq!(again, [2100, 2171]);
    }

    #[test]
    fn a_stay_soon_after_another_goes_on_from_a_lower_count() {
        let mut cobalt = Cobalt::default();
        drops(&mut cobalt, 1000, 1240, 6 * MS);
        let before = cobalt.count;
        drops(&mut cobalt, 1240, 1340, MS);
        assert!(0 < cobalt.count && cobalt.count < before, "{} after {before}", cobalt.count);
    }

    #[test]
    fn marks_that_are_late_are_not_made_up_for() {
        let mut cobalt = Cobalt { dropping: true, drop_next: 1000 * MS, ..Cobalt::default() };
        cobalt.step(4, &CobaltParams { interval: 0, ..PARAMS });
        let mut skb = Skb::new(Capable, 1500);
        skb.time = 1000 * MS;
        // 200 ms late: one mark, one for which the clock is put right, and then an interval over √6.
        let mut marks = |now: Nanos| {
            let mut mark = || cobalt.signal(now, &PARAMS, &mut skb, 0, &mut Rng::new(1));
            (0..10).filter(|_| mark() == Signal::Marked).count()
        };
        assert_eq!((marks(1200 * MS), marks(1240 * MS), marks(1241 * MS)), (2, 0, 1));
    }

    #[derive(Clone)]
    struct Capable;
    impl Packet for Capable {
        fn ecn(&self) -> crate::Ecn {
            crate::Ecn::Ect0
        }
    }

    #[test]
    fn blue_rises_by_a_256th_when_full_and_falls_by_a_4096th_when_empty_at_most_once_a_target() {
        let mut cobalt = Cobalt::default();
        assert!(cobalt.queue_is_full(10 * MS, &PARAMS), "it begins");
        assert!(!cobalt.queue_is_full(15 * MS, &PARAMS));
        assert_eq!(cobalt.p_drop, 1 << 24, "5 ms are not more than the target");
        assert!(!cobalt.queue_is_full(16 * MS, &PARAMS));
        assert_eq!(cobalt.p_drop, 2 << 24);
        let mut now = 16 * MS;
        let ends = (1..).find(|_| {
            now += 6 * MS;
            cobalt.queue_is_empty(now, &PARAMS)
        });
        assert_eq!(ends, Some(32), "two 256ths are 32 4096ths");
    }

    #[test]
    fn blue_drops_by_its_probability_even_what_waits_for_no_time() {
        let mut cobalt = Cobalt { p_drop: 1 << 30, ..Cobalt::default() };
        let mut rng = Rng::new(7);
        let mut skb = Skb::new(Plain, 100);
        let dropped = (0..4000u32)
            .filter(|_| {
                let signal = cobalt.signal(MS, &PARAMS, &mut skb, 0, &mut rng);
                signal == Signal::Drop { is_marked: false }
            })
            .count();
        assert!((900..1100).contains(&dropped), "{dropped} of 4000, not a quarter");
    }

    #[test]
    fn delays_of_a_few_frames_are_no_congestion_at_a_low_rate() {
        let slow = CobaltParams { mtu_time: 12 * MS, ..PARAMS };
        let over = |sojourn: Nanos, bulk_flows| {
            let mut cobalt = Cobalt::default();
            let mut skb = Skb::new(Plain, 1500);
            cobalt.signal(sojourn, &slow, &mut skb, bulk_flows, &mut Rng::new(1));
            cobalt.dropping
        };
        assert_eq!([over(48 * MS, 0), over(49 * MS, 0)], [false, true], "four frames");
        assert_eq!([over(72 * MS, 3), over(73 * MS, 3)], [false, true], "two of each bulk flow");
    }
}
