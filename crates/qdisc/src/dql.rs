//! Dynamic queue limits: the number of bytes that a driver's queue needs to keep the line busy
//! (Linux's `lib/dynamic_queue_limits.c`).
//!
//! The limit is the smallest one with which the queue did not run empty between two completions. It
//! grows if the queue ran empty while more packets waited behind it. It shrinks by the bytes that
//! were left over for a whole hold time. Numbers wrap as in the kernel.

use crate::Nanos;

/// Bounds of a limit (`/sys/class/net/…/byte_queue_limits`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DqlConfig {
    /// Least limit, bytes (`limit_min`).
    pub limit_min: u32,
    /// Largest limit, bytes (`limit_max`).
    pub limit_max: u32,
    /// Time that bytes must be left over before the limit shrinks (`hold_time`).
    pub hold_time: Nanos,
}

impl Default for DqlConfig {
    /// `dql_init` with a hold time of `HZ`; `limit_max` is `DQL_MAX_LIMIT`.
    fn default() -> DqlConfig {
        DqlConfig { limit_min: 0, limit_max: u32::MAX / 2 - u32::MAX / 16, hold_time: 1_000_000_000 }
    }
}

/// A limit that follows its queue.
#[derive(Clone, Debug)]
pub struct Dql {
    config: DqlConfig,
    num_queued: u32,
    num_completed: u32,
    /// What may have been queued in all: the limit behind what is completed.
    adj_limit: u32,
    last_obj_cnt: u32,
    limit: u32,
    prev_ovlimit: u32,
    prev_num_queued: u32,
    prev_last_obj_cnt: u32,
    lowest_slack: u32,
    slack_start_time: Nanos,
}

impl Dql {
    /// A limit that has seen nothing: it begins at `limit_min`, and the first packet exceeds it.
    pub fn new(config: DqlConfig) -> Dql {
        Dql {
            config,
            num_queued: 0,
            num_completed: 0,
            adj_limit: config.limit_min,
            last_obj_cnt: 0,
            limit: config.limit_min,
            prev_ovlimit: 0,
            prev_num_queued: 0,
            prev_last_obj_cnt: 0,
            lowest_slack: u32::MAX,
            slack_start_time: 0,
        }
    }

    /// The limit, bytes.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Bytes queued and not completed.
    pub fn in_flight(&self) -> u32 {
        self.num_queued.wrapping_sub(self.num_completed)
    }

    /// Returns whether more may be queued. The last packet may exceed the limit (`dql_avail() >=
    /// 0`).
    pub fn has_room(&self) -> bool {
        self.adj_limit.wrapping_sub(self.num_queued) as i32 >= 0
    }

    /// A packet went into the driver's queue.
    pub fn queued(&mut self, bytes: u32) {
        self.last_obj_cnt = bytes;
        self.num_queued = self.num_queued.wrapping_add(bytes);
    }

    /// Reports that the driver has sent this many of the queued bytes. Larger numbers count as all.
    pub fn completed(&mut self, now: Nanos, bytes: u32) {
        let bytes = bytes.min(self.in_flight());
        let completed = self.num_completed.wrapping_add(bytes);
        let excess = positive_difference(self.in_flight(), self.limit);
        let in_progress = self.num_queued.wrapping_sub(completed);
        let was_in_progress = self.prev_num_queued.wrapping_sub(self.num_completed);
        let all_of_before = completed.wrapping_sub(self.prev_num_queued) as i32 >= 0;
        let mut limit = self.limit;
        if excess > 0 && in_progress == 0 || self.prev_ovlimit > 0 && all_of_before {
            // It ran empty while more waited, now or between the last completion and what was queued then.
            limit = limit
                .wrapping_add(positive_difference(completed, self.prev_num_queued))
                .wrapping_add(self.prev_ovlimit);
            self.restart(now);
        } else if in_progress > 0 && was_in_progress > 0 && !all_of_before {
            // It was busy all the time: what was not needed may go.
            let needed = bytes.wrapping_mul(2);
            let slack = positive_difference(limit.wrapping_add(self.prev_ovlimit), needed);
            let of_last_packet = match self.prev_ovlimit {
                0 => 0,
                over => positive_difference(self.prev_last_obj_cnt, over),
            };
            self.lowest_slack = self.lowest_slack.min(slack.max(of_last_packet));
            if now > self.slack_start_time.saturating_add(self.config.hold_time) {
                limit = positive_difference(limit, self.lowest_slack);
                self.restart(now);
            }
        }
        // Not `clamp`, which panics where the bounds are the wrong way round.
        let limit = limit.max(self.config.limit_min).min(self.config.limit_max);
        self.prev_ovlimit = if limit == self.limit { excess } else { 0 };
        self.limit = limit;
        self.adj_limit = limit.wrapping_add(completed);
        self.prev_last_obj_cnt = self.last_obj_cnt;
        self.num_completed = completed;
        self.prev_num_queued = self.num_queued;
    }

    fn restart(&mut self, now: Nanos) {
        self.slack_start_time = now;
        self.lowest_slack = u32::MAX;
    }
}

/// `a − b`, or nothing where that is negative (`POSDIFF`).
fn positive_difference(a: u32, b: u32) -> u32 {
    let difference = a.wrapping_sub(b);
    if difference as i32 > 0 { difference } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    /// Queues packets of 1500 bytes until there is no room.
    fn fill(dql: &mut Dql) -> u32 {
        let mut packets = 0;
        while dql.has_room() {
            dql.queued(1500);
            packets += 1;
        }
        packets
    }

    #[test]
    fn a_queue_that_ran_empty_over_its_limit_gets_a_larger_one() {
        let mut dql = Dql::new(DqlConfig::default());
        assert_eq!(fill(&mut dql), 1, "the first packet exceeds a limit of 0");
        dql.completed(0, 1500);
        assert_eq!(dql.limit(), 1500);
        // Over the limit by the last packet, and all gone at the next completion: the limit grows by what was completed.
        assert_eq!(fill(&mut dql), 2);
        dql.completed(1, 3000);
        assert_eq!(dql.limit(), 4500);
    }

    #[test]
    fn what_is_left_over_for_the_hold_time_is_taken_away() {
        let mut dql = Dql::new(DqlConfig { limit_min: 15_000, ..DqlConfig::default() });
        // It has grown to that, say.
        dql.config.limit_min = 0;
        fill(&mut dql);
        // Two packets are sent between completions, eight always lie behind.
        for n in 1..=4 {
            dql.completed(n * SECOND / 4, 3000);
            fill(&mut dql);
            assert_eq!(dql.limit(), 15_000, "the hold time is not over");
        }
        dql.completed(SECOND + 1, 3000);
        // Slack: 15 000, and over that one packet, less twice what was completed.
        assert_eq!(dql.limit(), 15_000 - (15_000 + 1500 - 2 * 3000));
    }

    #[test]
    fn a_busy_queue_without_slack_keeps_its_limit() {
        let mut dql = Dql::new(DqlConfig { limit_min: 3000, ..DqlConfig::default() });
        fill(&mut dql);
        for n in 1..20 {
            dql.completed(n * SECOND, 1500);
            fill(&mut dql);
        }
        assert_eq!(dql.limit(), 3000);
    }

    #[test]
    fn bounds_hold_and_too_much_completed_is_all() {
        let mut dql = Dql::new(DqlConfig { limit_max: 2000, ..DqlConfig::default() });
        for n in 0..5 {
            fill(&mut dql);
            dql.completed(n, u32::MAX);
            assert!(dql.limit() <= 2000 && dql.in_flight() == 0);
        }
        assert_eq!(dql.limit(), 2000);
    }

    #[test]
    fn numbers_wrap() {
        let mut dql = Dql::new(DqlConfig::default());
        dql.num_queued = u32::MAX - 100;
        dql.num_completed = dql.num_queued;
        dql.prev_num_queued = dql.num_queued;
        dql.adj_limit = dql.num_queued;
        for n in 0..4 {
            assert!(fill(&mut dql) > 0);
            dql.completed(n, dql.in_flight());
        }
        assert_eq!(dql.in_flight(), 0);
    }
}
