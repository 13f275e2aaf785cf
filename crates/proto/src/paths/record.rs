//! The cache of paths as plain values, with ages instead of times, so that they are meaningful
//! after a restart.

use crate::fast_open::{Network, PathCache, PathEntry, TryExperimental, VerdictEntry, VerdictKey};
use crate::time::nanos;
use crate::{Instant, Stack, Verdict};
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;
use wire::{Cookie, FastOpenKind};

/// The cached values of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRecord {
    /// Local address; a cookie is bound to it.
    pub local: IpAddr,
    /// The peer's.
    pub peer: IpAddr,
    /// Age of the last use.
    pub used: Duration,
    /// The latest Fast Open cookie.
    pub cookie: Option<Cookie>,
    /// Format of the cookie.
    pub kind: FastOpenKind,
    /// The peer's MSS option, bytes.
    pub mss: Option<u16>,
    /// State of the fallback of cookie requests.
    pub try_experimental: TryExperimental,
    /// Consecutive Fast Open SYNs presumed lost.
    pub syn_drops: u32,
    /// Age of the last of them.
    pub last_syn_drop: Option<Duration>,
    /// True if SYN data was acknowledged on this path.
    pub syn_data_passed: bool,
    /// Smoothed round-trip time.
    pub rtt: Option<Duration>,
    /// Variation of the round-trip time.
    pub rttvar: Duration,
    /// Slow-start threshold, segments.
    pub ssthresh: Option<u32>,
    /// Congestion window, segments.
    pub cwnd: Option<u32>,
    /// Reordering, segments.
    pub reordering: Option<u32>,
    /// Age of these five values.
    pub age: Duration,
    /// Path MTU in bytes, and the age of the ICMP report.
    pub path_mtu: Option<(u16, Duration)>,
    /// True if the report was below the accepted minimum.
    pub path_mtu_locked: bool,
}

/// A verdict against Fast Open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerdictRecord {
    /// Local network.
    pub network: Network,
    /// The peer's address.
    pub peer: IpAddr,
    /// The peer's port.
    pub port: u16,
    /// Reason.
    pub reason: Verdict,
    /// Consecutive failures.
    pub count: u32,
    /// Age of the verdict.
    pub age: Duration,
    /// Duration of the verdict.
    pub length: Duration,
}

/// The memory of paths of one stack. As text (`Display`, `FromStr`) it is what a file holds:
///
/// ```
/// let text = "firstbyte paths 1 saved 1763770000\n\
///             path 10.0.0.1 10.0.0.2 used 3 cookie 0102030405060708 mss 1460 rtt 40ms rttvar 20ms age 3\n\
///             verdict 10.0.0.0/24 10.0.0.9 80 dropped count 1 age 10 length 300\n";
/// let paths: firstbyte_proto::Paths = text.parse().unwrap();
/// assert_eq!(paths.to_string(), text);
/// let error = "firstbyte paths 1\npath 10.0.0.1 10.0.0.2 mss many\n".parse::<firstbyte_proto::Paths>().unwrap_err();
/// assert_eq!(error.to_string(), "line 2: mss: `many` is not a number from 0 to 4294967295");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Time since the Unix epoch at which the ages were true; unknown to the engine.
    pub saved: Option<Duration>,
    /// Paths, most recently used first.
    pub paths: Vec<PathRecord>,
    /// Verdicts, most recently touched first.
    pub verdicts: Vec<VerdictRecord>,
}

impl Stack {
    /// Returns the cache of paths as it is now, to list it or to carry it over a restart.
    pub fn export_paths(&self, now: Instant) -> Paths {
        let cache = self.path_cache();
        Paths {
            saved: None,
            paths: cache
                .iter()
                .map(|(local, peer, entry)| PathRecord::of(now, local.to_ip(), peer.to_ip(), entry))
                .collect(),
            verdicts: cache.verdicts().map(|(key, entry)| VerdictRecord::of(now, key, entry)).collect(),
        }
    }

    /// Imports the cache of an earlier stack, `elapsed` after its ages were true. Values learned by
    /// this stack have priority. Beyond the capacity (`firstbyte.path_cache_entries`), the least
    /// recently used paths are omitted. Ages are limited to the epoch of `now`.
    pub fn import_paths(&mut self, now: Instant, paths: &Paths, elapsed: Duration) {
        let then = now - elapsed;
        let most = self.config().path_cache_entries as usize;
        let cache = self.path_cache_mut();
        let room = most.saturating_sub(cache.len());
        for record in paths.paths.iter().take(room).rev() {
            let (local, peer) = (record.local.into(), record.peer.into());
            if cache.lookup(local, peer).is_none() {
                record.restore(then, cache.entry(now, local, peer));
            }
        }
        let room = most.saturating_sub(cache.verdicts().count());
        for record in paths.verdicts.iter().take(room).rev() {
            record.restore(then, cache);
        }
    }
}

impl PathRecord {
    pub(super) fn of(now: Instant, local: IpAddr, peer: IpAddr, entry: &PathEntry) -> PathRecord {
        PathRecord {
            local,
            peer,
            used: now.since(entry.last_used),
            cookie: entry.cookie,
            kind: entry.kind,
            mss: entry.mss,
            try_experimental: entry.try_experimental,
            syn_drops: entry.syn_drops,
            last_syn_drop: entry.last_syn_drop.map(|at| now.since(at)),
            syn_data_passed: entry.syn_data_passed,
            rtt: entry.rtt(),
            rttvar: entry.rttvar(),
            ssthresh: entry.ssthresh,
            cwnd: entry.cwnd,
            reordering: entry.reordering,
            age: now.since(entry.metrics_at),
            path_mtu: entry.path_mtu.map(|mtu| (mtu, now.since(entry.path_mtu_at))),
            path_mtu_locked: entry.path_mtu_locked,
        }
    }

    fn restore(&self, then: Instant, entry: &mut PathEntry) {
        *entry = PathEntry {
            cookie: self.cookie,
            kind: self.kind,
            mss: self.mss,
            rtt_nanos: self.rtt.map_or(0, nanos),
            rttvar_nanos: nanos(self.rttvar),
            ssthresh: self.ssthresh,
            cwnd: self.cwnd,
            reordering: self.reordering,
            metrics_at: then - self.age,
            path_mtu: self.path_mtu.map(|(mtu, _)| mtu),
            path_mtu_locked: self.path_mtu_locked,
            path_mtu_at: then - self.path_mtu.map_or(Duration::ZERO, |(_, age)| age),
            try_experimental: self.try_experimental,
            syn_drops: self.syn_drops,
            last_syn_drop: self.last_syn_drop.map(|age| then - age),
            syn_data_passed: self.syn_data_passed,
            last_used: then - self.used,
        };
    }
}

impl VerdictRecord {
    fn of(now: Instant, key: &VerdictKey, entry: &VerdictEntry) -> VerdictRecord {
        VerdictRecord {
            network: key.network,
            peer: key.peer.to_ip(),
            port: key.port,
            reason: entry.reason,
            count: entry.count,
            age: now.since(entry.since),
            length: entry.until.since(entry.since),
        }
    }

    fn restore(&self, then: Instant, cache: &mut PathCache) {
        let key = VerdictKey { network: self.network, peer: self.peer.into(), port: self.port };
        let since = then - self.age;
        let entry =
            VerdictEntry { reason: self.reason, count: self.count, since, until: since + self.length };
        cache.restore_verdict(key, entry);
    }
}
