//! The cache of paths: cookies, MSS, round-trip times, and verdicts.
//!
//! A path is a pair (local address, peer address): a cookie is bound to the client's address (R11),
//! so a host with several addresses has several cookies. The cache is bounded and evicts the least
//! recently used path. Cookies identify a client to a server across connections;
//! [`PathCache::clear`] starts a new identity.

use super::lru::Lru;
use super::verdict::{SlotKind, VerdictEntry, VerdictKey, Verdicts};
use crate::time::nanos;
use crate::{Instant, Verdict};
use alloc::vec::Vec;
use core::time::Duration;
use wire::{Addr, Cookie, FastOpenKind};

/// State of the fallback from cookie requests of the standard kind 34 to the experimental kind 254.
///
/// As on Linux: kind 34; after one unanswered request once kind 254; then kind 34 forever. A cookie
/// resets the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TryExperimental {
    /// No request was unanswered.
    #[default]
    Untried,
    /// The next request uses the experimental kind.
    Next,
    /// The experimental request was unanswered, too.
    Done,
}

/// The cached values of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathEntry {
    /// The latest cookie.
    pub cookie: Option<Cookie>,
    /// The format in which the cookie is received and sent.
    pub kind: FastOpenKind,
    /// The peer's MSS option, bytes; `None` before its first SYN-ACK.
    pub mss: Option<u16>,
    /// Smoothed round-trip time of earlier connections (RFC 6298), nanoseconds; 0: none. And its variation.
    pub(crate) rtt_nanos: u64,
    pub(crate) rttvar_nanos: u64,
    /// Slow-start threshold, segments.
    pub ssthresh: Option<u32>,
    /// Congestion window, segments. Only for display: no connection starts with it.
    pub cwnd: Option<u32>,
    /// Reordering in segments, if above `tcp_reordering`.
    pub reordering: Option<u32>,
    /// Time at which these three values and the round trip were learned.
    pub metrics_at: Instant,
    /// Path MTU in bytes, if an ICMP error reported a smaller one than the link's.
    pub path_mtu: Option<u16>,
    /// True if the error reported less than is accepted: nothing more can be discovered.
    pub path_mtu_locked: bool,
    /// Time of that error.
    pub path_mtu_at: Instant,
    /// State of the fallback of cookie requests.
    pub try_experimental: TryExperimental,
    /// Consecutive Fast Open SYNs presumed lost (Linux's `fo_syn_drops`).
    pub syn_drops: u32,
    /// Time of the last of them.
    pub last_syn_drop: Option<Instant>,
    /// True if SYN data was acknowledged on this path, so a single lost SYN is no evidence yet
    /// (`PathCache::doubt_is_enough`).
    pub syn_data_passed: bool,
    /// Time of the last [`PathCache::entry`].
    pub last_used: Instant,
}

impl PathEntry {
    pub(crate) fn new(now: Instant) -> PathEntry {
        PathEntry {
            cookie: None,
            kind: FastOpenKind::Standard,
            mss: None,
            rtt_nanos: 0,
            rttvar_nanos: 0,
            ssthresh: None,
            cwnd: None,
            reordering: None,
            metrics_at: now,
            path_mtu: None,
            path_mtu_locked: false,
            path_mtu_at: now,
            try_experimental: TryExperimental::Untried,
            syn_drops: 0,
            last_syn_drop: None,
            syn_data_passed: false,
            last_used: now,
        }
    }

    /// Returns the smoothed round-trip time of earlier connections (RFC 6298).
    pub fn rtt(&self) -> Option<Duration> {
        (self.rtt_nanos != 0).then(|| Duration::from_nanos(self.rtt_nanos))
    }

    /// Returns the variation of the round-trip time.
    pub fn rttvar(&self) -> Duration {
        Duration::from_nanos(self.rttvar_nanos)
    }

    /// Sets the round-trip time; `None` for unknown.
    pub fn set_rtt(&mut self, rtt: Option<Duration>) {
        self.rtt_nanos = rtt.map_or(0, nanos);
    }

    /// Returns the path MTU if it was learned less than `life` ago: paths change (RFC 1191 §6.3,
    /// RFC 8201 §4).
    pub fn fresh_path_mtu(&self, now: Instant, life: Duration) -> Option<u16> {
        self.path_mtu.filter(|_| now.since(self.path_mtu_at) < life)
    }

    /// The format of the next cookie request.
    pub(crate) fn request_kind(&self) -> FastOpenKind {
        match self.try_experimental {
            TryExperimental::Next => FastOpenKind::Experimental,
            TryExperimental::Untried | TryExperimental::Done => FastOpenKind::Standard,
        }
    }

    /// A cookie request of this format, not retransmitted, was answered by a SYN-ACK without a cookie.
    pub(crate) fn request_unanswered(&mut self, kind: FastOpenKind) {
        if self.cookie.is_some() {
            return;
        }
        self.try_experimental = match (kind, self.try_experimental) {
            (FastOpenKind::Experimental, _) | (_, TryExperimental::Done) => TryExperimental::Done,
            (FastOpenKind::Standard, _) => TryExperimental::Next,
        };
    }

    /// Stores the cookie of a SYN-ACK that answered a Fast Open option (R22).
    pub fn store_cookie(&mut self, cookie: Cookie, kind: FastOpenKind) {
        self.cookie = Some(cookie);
        self.kind = kind;
        self.try_experimental = TryExperimental::Untried;
    }

    /// A Fast Open SYN was retransmitted, and the SYN-ACK shows that only the plain one arrived (R36).
    pub(crate) fn syn_dropped(&mut self, now: Instant) {
        self.syn_drops = self.syn_drops.saturating_add(1);
        self.last_syn_drop = Some(now);
    }

    /// The SYN-ACK shows that the Fast Open SYN arrived.
    pub(crate) fn syn_arrived(&mut self) {
        self.syn_drops = 0;
    }
}

/// The cache of paths: cookies and other values per (local address, peer), verdicts per
/// [`VerdictKey`].
/// ```
/// use core::net::Ipv4Addr;
/// use firstbyte_proto::{Instant, fast_open::PathCache};
/// let (local, peer) = (Ipv4Addr::new(10, 0, 0, 1).into(), Ipv4Addr::new(10, 0, 0, 2).into());
/// let mut cache = PathCache::new(1024, (1, 2));
/// cache.entry(Instant::ZERO, local, peer).mss = Some(1460);
/// assert_eq!(cache.lookup(local, peer).unwrap().mss, Some(1460));
/// cache.clear();
/// assert!(cache.is_empty());
/// ```
pub struct PathCache {
    paths: Lru<(Addr, Addr), PathEntry>,
    verdicts: Verdicts,
}

impl PathCache {
    /// Creates a cache of at most `capacity` paths and as many keys of verdicts (at least one
    /// each). `hash_key` must be secret, so that no peer can choose colliding addresses.
    pub fn new(capacity: usize, hash_key: (u64, u64)) -> PathCache {
        PathCache { paths: Lru::new(capacity, hash_key), verdicts: Verdicts::new(capacity, hash_key) }
    }

    /// Returns the entry of a path. Does not count as use.
    pub fn lookup(&self, local: Addr, peer: Addr) -> Option<&PathEntry> {
        self.paths.get(&(local, peer))
    }

    /// Returns the path's entry, created if missing. Counts as use. A full cache evicts the least
    /// recently used path.
    pub fn entry(&mut self, now: Instant, local: Addr, peer: Addr) -> &mut PathEntry {
        let entry = self.paths.use_or_insert_with((local, peer), || PathEntry::new(now));
        entry.last_used = now;
        entry
    }

    /// A path's entry, if there is one. Does not count as use.
    pub(crate) fn get_mut(&mut self, local: Addr, peer: Addr) -> Option<&mut PathEntry> {
        self.paths.get_mut(&(local, peer))
    }

    /// Removes one path. Returns false if it was not known.
    pub fn forget(&mut self, local: Addr, peer: Addr) -> bool {
        self.paths.remove(&(local, peer)).is_some()
    }

    /// Removes every path and verdict of a peer. Returns false if there was none.
    pub fn forget_peer(&mut self, peer: Addr) -> bool {
        let paths: Vec<_> = self.paths.iter().map(|(key, _)| *key).filter(|key| key.1 == peer).collect();
        let verdicts: Vec<_> = self.verdicts().map(|(key, _)| *key).filter(|key| key.peer == peer).collect();
        for key in &paths {
            self.paths.remove(key);
        }
        for key in &verdicts {
            self.forget_verdict(key);
        }
        !paths.is_empty() || !verdicts.is_empty()
    }

    /// Removes every path and every verdict.
    pub fn clear(&mut self) {
        self.paths.clear();
        self.verdicts.clear();
    }

    /// Returns every path as (local, peer, entry), most recently used first.
    pub fn iter(&self) -> impl Iterator<Item = (Addr, Addr, &PathEntry)> {
        self.paths.iter().map(|((local, peer), entry)| (*local, *peer, entry))
    }

    /// Returns the number of paths.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Returns whether the cache has no path.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Is anything held against any path?
    pub(crate) fn has_verdicts(&self) -> bool {
        !self.verdicts.is_empty()
    }

    /// Returns the current verdict against Fast Open.
    pub fn verdict_active(&self, now: Instant, key: &VerdictKey) -> Option<Verdict> {
        self.verdicts.active(now, key, SlotKind::FastOpen)
    }

    /// May a connection that wants to use Fast Open do so? `None` = yes.
    ///
    /// After the end of a verdict the first caller gets `None` and is the trial; later ones get the verdict until the
    /// trial has been recorded or cleared, or 10 s are over.
    pub(crate) fn verdict_admit(&mut self, now: Instant, key: &VerdictKey) -> Option<Verdict> {
        self.verdicts.admit(now, key, SlotKind::FastOpen)
    }

    /// Returns whether a verdict currently forbids a FIN on the SYN.
    pub fn syn_fin_verdict_active(&self, now: Instant, key: &VerdictKey) -> bool {
        self.verdicts.active(now, key, SlotKind::SynFin).is_some()
    }

    /// As [`verdict_admit`](Self::verdict_admit), for the FIN on the SYN; true = ruled out.
    pub(crate) fn syn_fin_verdict_admit(&mut self, now: Instant, key: &VerdictKey) -> bool {
        self.verdicts.admit(now, key, SlotKind::SynFin).is_some()
    }

    /// Records a failure; [`Verdict::SynFin`] is separate from the others. Returns the resulting
    /// verdict.
    pub fn record_verdict(&mut self, now: Instant, key: VerdictKey, reason: Verdict) -> VerdictEntry {
        self.verdicts.record(now, key, reason)
    }

    /// Records a failure that may be an accident, such as a lost packet or a full queue. Returns
    /// true for the first failure since Fast Open last worked with this key. A second failure in a
    /// row deserves a verdict.
    pub(crate) fn doubt_is_enough(&mut self, now: Instant, key: VerdictKey, reason: Verdict) -> bool {
        self.verdicts.doubt(now, key, reason)
    }

    /// Takes over a verdict given earlier, where there is none.
    pub(crate) fn restore_verdict(&mut self, key: VerdictKey, entry: VerdictEntry) {
        self.verdicts.restore(key, entry);
    }

    /// The SYN-ACK showed that Fast Open works: removes the verdict, unless it is [`Verdict::Stalled`], which a
    /// handshake does not disprove. True if one was removed.
    pub(crate) fn clear_verdict(&mut self, key: &VerdictKey) -> bool {
        self.verdicts.clear_if(key, SlotKind::FastOpen, |reason| reason != Verdict::Stalled)
    }

    /// Data after the handshake of a Fast Open connection was acknowledged: removes [`Verdict::Stalled`]. True if it was there.
    pub(crate) fn clear_stalled_verdict(&mut self, key: &VerdictKey) -> bool {
        self.verdicts.clear_if(key, SlotKind::FastOpen, |reason| reason == Verdict::Stalled)
    }

    /// SYN+data+FIN worked: removes the verdict against it. True if there was one.
    pub(crate) fn clear_syn_fin_verdict(&mut self, key: &VerdictKey) -> bool {
        self.verdicts.clear_if(key, SlotKind::SynFin, |_| true)
    }

    /// Removes both verdicts of a key. Returns false if there were none.
    pub fn forget_verdict(&mut self, key: &VerdictKey) -> bool {
        self.verdicts.forget(key)
    }

    /// Removes all verdicts.
    pub fn clear_verdicts(&mut self) {
        self.verdicts.clear();
    }

    /// Returns every verdict, most recently touched first, including expired ones that await a
    /// trial.
    pub fn verdicts(&self) -> impl Iterator<Item = (&VerdictKey, &VerdictEntry)> {
        self.verdicts.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::Network;
    use super::*;
    use alloc::string::ToString;
    use core::net::{IpAddr, Ipv4Addr};

    const MINUTE: Duration = Duration::from_secs(60);
    const T0: Instant = Instant::from_nanos(1_000_000_000);

    fn addr(last: u8) -> Addr {
        Ipv4Addr::new(10, 0, 0, last).into()
    }

    fn cookie(byte: u8) -> Cookie {
        Cookie::new(&[byte; 8]).unwrap()
    }

    fn cache() -> PathCache {
        PathCache::new(3, (7, 8))
    }

    fn key(port: u16) -> VerdictKey {
        VerdictKey { network: Network::new(addr(1), 24), peer: addr(9), port }
    }

    #[test]
    fn the_path_used_least_recently_is_forgotten() {
        let mut cache = cache();
        for peer in [2, 3, 4] {
            cache.entry(T0, addr(1), addr(peer));
        }
        cache.entry(T0 + MINUTE, addr(1), addr(2));
        assert!(cache.lookup(addr(1), addr(3)).is_some());
        cache.entry(T0 + MINUTE, addr(1), addr(5));
        let peers: Vec<_> = cache.iter().map(|(_, peer, _)| peer).collect();
        assert_eq!(peers, [addr(5), addr(2), addr(4)]);
        assert_eq!(cache.lookup(addr(1), addr(2)).unwrap().last_used, T0 + MINUTE);
    }

    #[test]
    fn a_cookie_belongs_to_both_addresses() {
        let mut cache = cache();
        cache.entry(T0, addr(1), addr(2)).store_cookie(cookie(1), FastOpenKind::Experimental);
        assert_eq!(cache.lookup(addr(3), addr(2)), None);
        assert_eq!(cache.lookup(addr(2), addr(1)), None);
        let entry = cache.lookup(addr(1), addr(2)).unwrap();
        assert_eq!((entry.cookie, entry.kind), (Some(cookie(1)), FastOpenKind::Experimental));
        assert!(cache.forget(addr(1), addr(2)) && !cache.forget(addr(1), addr(2)));
    }

    /// Linux: kind 34, then 254 once, then 34 for ever.
    #[test]
    fn unanswered_requests_try_the_experimental_kind_once() {
        let mut entry = PathEntry::new(T0);
        let mut kinds = Vec::new();
        for _ in 0..5 {
            kinds.push(entry.request_kind() == FastOpenKind::Experimental);
            entry.request_unanswered(entry.request_kind());
        }
        assert_eq!(kinds, [false, true, false, false, false]);
        entry.store_cookie(cookie(1), FastOpenKind::Standard);
        entry.request_unanswered(FastOpenKind::Standard);
        assert_eq!(entry.try_experimental, TryExperimental::Untried);
    }

    #[test]
    fn lost_syns_in_a_row_are_counted() {
        let mut entry = PathEntry::new(T0);
        entry.syn_dropped(T0);
        entry.syn_dropped(T0 + MINUTE);
        assert_eq!((entry.syn_drops, entry.last_syn_drop), (2, Some(T0 + MINUTE)));
        entry.syn_arrived();
        assert_eq!((entry.syn_drops, entry.last_syn_drop), (0, Some(T0 + MINUTE)));
    }

    #[test]
    fn networks_are_masked_in_their_own_width() {
        let network = |text: &str, len| {
            let network = Network::new(text.parse::<IpAddr>().unwrap().into(), len);
            (network.prefix().to_ip().to_string(), network.prefix_len())
        };
        assert_eq!(network("10.1.2.255", 23), ("10.1.2.0".into(), 23));
        assert_eq!(network("10.1.3.7", 0), ("0.0.0.0".into(), 0));
        assert_eq!(network("10.1.3.7", 99), ("10.1.3.7".into(), 32));
        assert_eq!(network("fd77:1:2:3:4::5", 64), ("fd77:1:2:3::".into(), 64));
        assert_eq!(network("fd77::5", 0), ("::".into(), 0));
        assert_eq!(network("fd77::5", 128), ("fd77::5".into(), 128));
    }

    #[test]
    fn a_verdict_holds_five_minutes_and_doubles() {
        let mut cache = cache();
        let mut now = T0;
        let mut lengths = Vec::new();
        for count in 1..=16 {
            let entry = cache.record_verdict(now, key(80), Verdict::Dropped);
            assert_eq!((entry.count, entry.since), (count, now));
            assert_eq!(
                cache.verdict_active(entry.until - Duration::from_nanos(1), &key(80)),
                Some(Verdict::Dropped)
            );
            assert_eq!(cache.verdict_active(entry.until, &key(80)), None);
            lengths.push(entry.until.since(now).as_secs() / 60);
            now = entry.until;
        }
        assert_eq!(lengths[..5], [5, 10, 20, 40, 80]);
        assert_eq!(lengths[12..], [20_480, 40_960, 65_536, 65_536]);
    }

    #[test]
    fn failures_while_a_verdict_holds_do_not_count() {
        let mut cache = cache();
        let first = cache.record_verdict(T0, key(80), Verdict::Dropped);
        let again = cache.record_verdict(T0 + MINUTE, key(80), Verdict::Reset);
        assert_eq!(again, first);
    }

    #[test]
    fn one_trial_is_let_through_after_the_end() {
        let mut cache = cache();
        let until = cache.record_verdict(T0, key(80), Verdict::Reset).until;
        assert_eq!(cache.verdict_admit(T0, &key(80)), Some(Verdict::Reset));
        assert_eq!(cache.verdict_admit(until, &key(80)), None);
        assert_eq!(cache.verdict_admit(until, &key(80)), Some(Verdict::Reset));
        assert_eq!(
            cache.verdict_active(until + Duration::from_millis(9_999), &key(80)),
            Some(Verdict::Reset)
        );
        assert_eq!(cache.verdict_admit(until + Duration::from_secs(10), &key(80)), None);

        let failed_at = until + Duration::from_secs(11);
        let entry = cache.record_verdict(failed_at, key(80), Verdict::Dropped);
        assert_eq!((entry.count, entry.until), (2, failed_at + 10 * MINUTE));
        assert_eq!(cache.verdict_admit(entry.until, &key(80)), None);
        assert!(cache.clear_verdict(&key(80)));
        assert_eq!(cache.verdict_admit(entry.until, &key(80)), None);
        assert_eq!(cache.verdict_admit(entry.until, &key(80)), None);
        assert_eq!(cache.verdicts().count(), 0);
    }

    #[test]
    fn quiet_halves_the_count() {
        let third = |quiet: Duration| {
            let mut cache = cache();
            let mut at = T0;
            for _ in 0..3 {
                at = cache.record_verdict(at, key(80), Verdict::Dropped).until;
            }
            cache.record_verdict(at + quiet, key(80), Verdict::Dropped).count
        };
        assert_eq!(third(Duration::ZERO), 4);
        assert_eq!(third(19 * MINUTE), 4);
        assert_eq!(third(20 * MINUTE), 2);
        assert_eq!(third(40 * MINUTE), 1);
        assert_eq!(third(4000 * MINUTE), 1);
    }

    #[test]
    fn a_forgotten_failure_needs_no_trial() {
        let mut cache = cache();
        let until = cache.record_verdict(T0, key(80), Verdict::Dropped).until;
        assert_eq!(cache.verdict_admit(until + 5 * MINUTE, &key(80)), None);
        assert_eq!(cache.verdict_admit(until + 5 * MINUTE, &key(80)), None);
    }

    #[test]
    fn a_doubt_rules_nothing_out_and_is_given_once() {
        let mut cache = cache();
        assert!(cache.doubt_is_enough(T0, key(80), Verdict::Dropped));
        assert_eq!(cache.verdict_admit(T0, &key(80)), None);
        assert_eq!(cache.verdict_admit(T0, &key(80)), None, "there is no trial to wait for");
        assert!(cache.doubt_is_enough(T0, key(443), Verdict::Dropped), "each port has its own");
        assert!(!cache.doubt_is_enough(T0 + MINUTE, key(80), Verdict::Dropped));
        let entry = cache.record_verdict(T0 + MINUTE, key(80), Verdict::Dropped);
        assert_eq!((entry.count, entry.until), (1, T0 + 6 * MINUTE));
        assert!(!cache.doubt_is_enough(entry.until, key(80), Verdict::Dropped), "not after a verdict");
        assert!(cache.clear_verdict(&key(443)));
        assert!(cache.doubt_is_enough(T0, key(443), Verdict::Dropped), "success gives it back");
    }

    #[test]
    fn a_verdict_is_about_one_port_and_one_network() {
        let mut cache = cache();
        cache.record_verdict(T0, key(80), Verdict::NotAcknowledged);
        assert_eq!(cache.verdict_active(T0, &key(443)), None);
        let elsewhere =
            VerdictKey { network: Network::new(Ipv4Addr::new(10, 0, 1, 1).into(), 24), ..key(80) };
        assert_eq!(cache.verdict_active(T0, &elsewhere), None);
        let neighbour = VerdictKey { network: Network::new(addr(200), 24), ..key(80) };
        assert_eq!(cache.verdict_active(T0, &neighbour), Some(Verdict::NotAcknowledged));
    }

    #[test]
    fn syn_fin_has_a_slot_of_its_own() {
        let mut cache = cache();
        cache.record_verdict(T0, key(80), Verdict::SynFin);
        assert_eq!(cache.verdict_active(T0, &key(80)), None);
        assert!(cache.syn_fin_verdict_active(T0, &key(80)) && cache.syn_fin_verdict_admit(T0, &key(80)));
        assert!(!cache.clear_verdict(&key(80)));
        assert!(cache.clear_syn_fin_verdict(&key(80)));
        assert!(!cache.syn_fin_verdict_active(T0, &key(80)));

        cache.record_verdict(T0, key(80), Verdict::Dropped);
        cache.record_verdict(T0, key(80), Verdict::SynFin);
        assert_eq!(
            cache.verdicts().map(|(_, v)| v.reason).collect::<Vec<_>>(),
            [Verdict::Dropped, Verdict::SynFin]
        );
        assert!(cache.forget_verdict(&key(80)) && !cache.forget_verdict(&key(80)));
    }

    #[test]
    fn a_handshake_does_not_disprove_a_stall() {
        let mut cache = cache();
        cache.record_verdict(T0, key(80), Verdict::Stalled);
        assert!(!cache.clear_verdict(&key(80)));
        assert_eq!(cache.verdict_active(T0, &key(80)), Some(Verdict::Stalled));
        assert!(cache.clear_stalled_verdict(&key(80)));
        assert_eq!(cache.verdict_active(T0, &key(80)), None);
        cache.record_verdict(T0, key(80), Verdict::Dropped);
        assert!(!cache.clear_stalled_verdict(&key(80)));
    }

    #[test]
    fn one_peer_can_be_forgotten() {
        let mut cache = cache();
        cache.entry(T0, addr(1), addr(9));
        cache.entry(T0, addr(1), addr(8));
        cache.record_verdict(T0, key(80), Verdict::Dropped);
        assert!(cache.forget_peer(addr(9)) && !cache.forget_peer(addr(9)));
        assert_eq!((cache.len(), cache.verdicts().count()), (1, 0));
    }

    #[test]
    fn verdicts_are_bounded_and_clearable() {
        let mut cache = cache();
        for port in 1..=4 {
            cache.record_verdict(T0, key(port), Verdict::Dropped);
        }
        assert_eq!(cache.verdicts().map(|(key, _)| key.port).collect::<Vec<_>>(), [4, 3, 2]);
        cache.entry(T0, addr(1), addr(2));
        cache.clear_verdicts();
        assert_eq!((cache.verdicts().count(), cache.len()), (0, 1));
        cache.record_verdict(T0, key(1), Verdict::Dropped);
        cache.clear();
        assert_eq!((cache.verdicts().count(), cache.len()), (0, 0));
    }
}
