//! What a connection finds in the memory of its path, and what it leaves there.
//!
//! As Linux's `tcp_init_metrics` and `tcp_update_metrics`: a round trip longer than the remembered one replaces it, a shorter one counts an
//! eighth; windows are remembered in segments, and only as far as the connection proved them; after an hour
//! (`firstbyte.path_metrics_life`) nothing of this is believed. Cookies and verdicts have lives of their own.

use crate::fast_open::PathEntry;
use crate::tcp::connection::{Connection, Context};
use crate::tuple::FourTuple;
use crate::{Config, Instant, Metric, RouteMetrics};
use core::time::Duration;

/// What a connection knows of its path when it ends.
#[derive(Clone, Copy, Debug)]
struct Learnt {
    /// Nanoseconds, and its variation.
    srtt: u64,
    rttvar: u64,
    /// Segments.
    cwnd: u32,
    /// Segments; `None` while there is none: the first slow start did not end.
    ssthresh: Option<u32>,
    /// No loss is being repaired.
    open: bool,
    /// Segments; `None` unless the path was seen to reorder more than `tcp_reordering`.
    reordering: Option<u32>,
}

/// What must not be changed: values that a route locks, and the ssthresh by `tcp_no_ssthresh_metrics_save`.
#[derive(Clone, Copy, Debug)]
struct Locks {
    cwnd: bool,
    ssthresh: bool,
}

impl Locks {
    fn of(config: &Config, route: Option<&RouteMetrics>) -> Locks {
        let locked = |metric: Option<Metric>| metric.is_some_and(|metric| metric.locked);
        Locks {
            cwnd: route.is_some_and(|route| locked(route.cwnd)),
            ssthresh: config.tcp_no_ssthresh_metrics_save
                || route.is_some_and(|route| locked(route.ssthresh)),
        }
    }
}

impl Connection {
    /// The handshake is complete: the remembered round trip, if it is longer than the handshake's, or if that gave none, sets the first
    /// time-out; the packets of a handshake are small and quick. And the sample is kept for those who open while this one lasts.
    pub(crate) fn recall_path(&mut self, cx: &mut Context) {
        let life = cx.config.path_metrics_life;
        let known = cx.paths.lookup(self.tuple.local, self.tuple.peer);
        let fresh = known.filter(|path| path.rtt_nanos != 0 && path.is_fresh(cx.now, life));
        if let Some(path) = fresh {
            self.rtt.seed(path.rtt_nanos);
        } else if cx.config.path_rtt_at_once {
            self.remember_rtt(cx);
        }
    }

    /// The first sample, where nothing is remembered.
    pub(crate) fn remember_rtt(&self, cx: &mut Context) {
        if self.rtt.is_sampled() && !cx.config.tcp_no_metrics_save && cx.config.path_rtt_at_once {
            let life = cx.config.path_metrics_life;
            let path = cx.paths.entry(cx.now, self.tuple.local, self.tuple.peer);
            path.forget_if_old(cx.now, life);
            if path.rtt_nanos == 0 {
                (path.rtt_nanos, path.rttvar_nanos) = (self.rtt.srtt_nanos(), self.rtt.rttvar_nanos());
                path.metrics_at = cx.now;
            }
        }
    }

    /// The slow-start threshold that is remembered, segments. A route's own is what the memory begins with.
    pub(crate) fn remembered_ssthresh(&self, cx: &Context) -> Option<u32> {
        if cx.config.tcp_no_ssthresh_metrics_save {
            return None;
        }
        let path = cx.paths.lookup(self.tuple.local, self.tuple.peer)?;
        let kept = path.ssthresh.filter(|_| path.is_fresh(cx.now, cx.config.path_metrics_life));
        kept.or(self.route_metrics().and_then(|route| route.ssthresh).map(|metric| metric.value))
    }

    /// The connection has ended in peace: what it learnt is left to later ones.
    pub(crate) fn save_path(&self, cx: &mut Context) {
        if cx.config.tcp_no_metrics_save {
            return;
        }
        let (local, peer) = (self.tuple.local, self.tuple.peer);
        match self.learnt(&cx.config) {
            Some(learnt) => {
                let route = self.route_metrics();
                let locks = Locks::of(&cx.config, route);
                let life = cx.config.path_metrics_life;
                let path = cx.paths.entry(cx.now, local, peer);
                path.forget_if_old(cx.now, life);
                if let Some(route) = route {
                    path.ssthresh = path.ssthresh.or(route.ssthresh.map(|metric| metric.value));
                    path.cwnd = path.cwnd.or(route.cwnd.map(|metric| metric.value));
                }
                path.learn(cx.now, &learnt, locks);
            }
            // It could not tell how long the path is: perhaps what we believed is wrong.
            None => {
                if let Some(path) = cx.paths.get_mut(local, peer) {
                    path.rtt_nanos = 0;
                }
            }
        }
    }

    /// `None` without a round trip, or while time-outs go unanswered.
    fn learnt(&self, config: &Config) -> Option<Learnt> {
        use crate::tcp::congestion::Controller;
        if !self.rtt.is_sampled() || self.rtt.is_backed_off() {
            return None;
        }
        let smss = u32::from(self.smss());
        let ssthresh = self.congestion.ssthresh();
        Some(Learnt {
            srtt: self.rtt.srtt_nanos(),
            rttvar: self.rtt.rttvar_nanos(),
            cwnd: self.congestion.cwnd().min(self.cwnd_clamp()) / smss,
            ssthresh: (ssthresh < u32::MAX).then_some(ssthresh / smss),
            open: !self.recovery.is_recovering(),
            reordering: self.recovery.reordering().filter(|segments| *segments > config.tcp_reordering),
        })
    }
}

impl Context {
    /// Segments delivered beyond a hole that make it a loss: as many as the path was seen to reorder.
    pub(crate) fn first_reordering(&self, tuple: &FourTuple) -> u32 {
        let path = self.paths.lookup(tuple.local, tuple.peer);
        let fresh = path.filter(|path| path.is_fresh(self.now, self.config.path_metrics_life));
        fresh.and_then(|path| path.reordering).unwrap_or(self.config.tcp_reordering)
    }
}

impl PathEntry {
    /// Are round trip, windows and reordering still to be believed?
    pub fn is_fresh(&self, now: Instant, life: Duration) -> bool {
        now < self.metrics_at + life
    }

    /// The remembered round trip, if it is not too old.
    pub fn fresh_rtt(&self, now: Instant, life: Duration) -> Option<Duration> {
        self.rtt().filter(|_| self.is_fresh(now, life))
    }

    fn forget_if_old(&mut self, now: Instant, life: Duration) {
        if !self.is_fresh(now, life) {
            (self.rtt_nanos, self.rttvar_nanos) = (0, 0);
            (self.ssthresh, self.cwnd, self.reordering) = (None, None, None);
        }
    }

    fn learn(&mut self, now: Instant, learnt: &Learnt, locks: Locks) {
        self.metrics_at = now;
        self.learn_rtt(learnt.srtt, learnt.rttvar);
        let cwnd = self.cwnd.unwrap_or(0);
        let in_slow_start = learnt.ssthresh.is_some_and(|ssthresh| learnt.cwnd < ssthresh);
        match learnt.ssthresh {
            // The first slow start did not end: the windows were at least so large.
            None => {
                if !locks.ssthresh && self.ssthresh.is_some_and(|kept| learnt.cwnd / 2 > kept) {
                    self.ssthresh = Some(learnt.cwnd / 2);
                }
                if !locks.cwnd {
                    self.cwnd = Some(cwnd.max(learnt.cwnd));
                }
            }
            // Congestion avoidance, nothing lost: the window is what the path takes.
            Some(ssthresh) if !in_slow_start && learnt.open => {
                if !locks.ssthresh {
                    self.ssthresh = Some(ssthresh.max(learnt.cwnd / 2));
                }
                if !locks.cwnd {
                    self.cwnd = Some(mean(cwnd, learnt.cwnd));
                }
            }
            // After a loss the window says nothing yet, and the threshold may be too low.
            Some(ssthresh) => {
                if !locks.cwnd {
                    self.cwnd = Some(mean(cwnd, ssthresh));
                }
                if !locks.ssthresh && self.ssthresh.is_some_and(|kept| ssthresh > kept) {
                    self.ssthresh = Some(ssthresh);
                }
                self.reordering = self.reordering.max(learnt.reordering);
            }
        }
    }

    /// Too long a time-out costs less than too short a one, so a longer round trip counts in full.
    fn learn_rtt(&mut self, srtt: u64, rttvar: u64) {
        let (kept, known) = (self.rtt_nanos, self.rttvar_nanos);
        let deviation = kept.abs_diff(srtt).max(rttvar);
        self.rtt_nanos = if srtt >= kept { srtt } else { kept - (kept - srtt) / 8 };
        self.rttvar_nanos = if deviation >= known { deviation } else { known - (known - deviation) / 4 };
    }
}

fn mean(kept: u32, learnt: u32) -> u32 {
    ((u64::from(kept) + u64::from(learnt)) / 2) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast_open::PathCache;
    use alloc::vec::Vec;
    use core::net::Ipv4Addr;

    const MS: u64 = 1_000_000;
    const HOUR: Duration = Duration::from_secs(3600);
    const FREE: Locks = Locks { cwnd: false, ssthresh: false };

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn entry() -> PathEntry {
        let addr = Ipv4Addr::LOCALHOST.into();
        PathCache::new(1, (0, 0)).entry(Instant::ZERO, addr, addr).clone()
    }

    fn learnt(cwnd: u32, ssthresh: Option<u32>, open: bool) -> Learnt {
        Learnt { srtt: 100 * MS, rttvar: 10 * MS, cwnd, ssthresh, open, reordering: Some(7) }
    }

    /// The windows, in segments, after each of these connections.
    fn windows(
        path: &mut PathEntry,
        connections: &[(u32, Option<u32>, bool)],
    ) -> Vec<(Option<u32>, Option<u32>)> {
        connections
            .iter()
            .map(|&(cwnd, ssthresh, open)| {
                path.learn(Instant::ZERO, &learnt(cwnd, ssthresh, open), FREE);
                (path.cwnd, path.ssthresh)
            })
            .collect()
    }

    #[test]
    fn a_longer_round_trip_counts_in_full_and_a_shorter_one_an_eighth() {
        let mut path = entry();
        let mut seen = Vec::new();
        for (srtt, rttvar) in [(100, 10), (180, 10), (100, 10), (170, 5)] {
            path.learn_rtt(srtt * MS, rttvar * MS);
            seen.push((path.rtt().unwrap().as_micros(), path.rttvar().as_micros()));
        }
        assert_eq!(seen, [(100_000, 100_000), (180_000, 95_000), (170_000, 91_250), (170_000, 69_687)]);
    }

    #[test]
    fn windows_are_kept_as_far_as_they_are_proved() {
        // Slow start only: the largest cwnd; an ssthresh is not made up.
        assert_eq!(
            windows(&mut entry(), &[(40, None, true), (20, None, true)]),
            [(Some(40), None), (Some(40), None)]
        );
        // Congestion avoidance: half of cwnd or ssthresh, and the mean of cwnd.
        assert_eq!(
            windows(&mut entry(), &[(40, Some(12), true), (60, Some(44), true)]),
            [(Some(20), Some(20)), (Some(40), Some(44))]
        );
        // While recovering, or in slow start after a loss: ssthresh only rises.
        assert_eq!(
            windows(&mut entry(), &[(8, Some(4), true), (3, Some(2), false), (3, Some(9), true)]),
            [(Some(4), Some(4)), (Some(3), Some(4)), (Some(6), Some(9))]
        );
        // A slow start that went beyond the threshold proves it too low.
        assert_eq!(windows(&mut entry(), &[(8, Some(4), true), (40, None, true)])[1], (Some(40), Some(20)));
    }

    #[test]
    fn reordering_is_kept_of_a_path_that_lost() {
        let mut path = entry();
        path.learn(Instant::ZERO, &learnt(10, Some(5), true), FREE);
        assert_eq!(path.reordering, None);
        path.learn(Instant::ZERO, &learnt(3, Some(5), false), FREE);
        assert_eq!(path.reordering, Some(7));
    }

    #[test]
    fn what_is_locked_stays() {
        let mut path = entry();
        (path.cwnd, path.ssthresh) = (Some(5), Some(6));
        for connection in [learnt(40, None, true), learnt(40, Some(20), true), learnt(3, Some(20), false)] {
            path.learn(Instant::ZERO, &connection, Locks { cwnd: true, ssthresh: true });
            assert_eq!((path.cwnd, path.ssthresh), (Some(5), Some(6)));
        }
    }

    #[test]
    fn after_its_life_nothing_is_believed_but_the_cookie_stays() {
        let mut path = entry();
        path.learn(Instant::ZERO, &learnt(40, Some(12), true), FREE);
        path.mss = Some(1460);
        let last = Instant::ZERO + HOUR - Duration::from_nanos(1);
        assert_eq!(
            (path.fresh_rtt(last, HOUR), path.fresh_rtt(Instant::ZERO + HOUR, HOUR)),
            (Some(ms(100)), None)
        );
        path.forget_if_old(last, HOUR);
        assert_eq!(path.ssthresh, Some(20));
        path.forget_if_old(Instant::ZERO + HOUR, HOUR);
        assert_eq!((path.rtt(), path.cwnd, path.ssthresh, path.mss), (None, None, None, Some(1460)));
    }
}
