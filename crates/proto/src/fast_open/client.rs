//! What an active open puts on its SYN: the decision, the room for data, and when to fall back.

use super::PathEntry;
use crate::fastopen::{CLIENT, CLIENT_NO_COOKIE};
use crate::{FastOpen, Skipped, SynDataRoom, Verdict};
use core::time::Duration;
use wire::{Cookie, FastOpenKind};

/// What the decision depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientInputs<'a> {
    /// `net.ipv4.tcp_fastopen`; 0x1 and 0x4 matter.
    pub(crate) bits: u32,
    /// The caller's wish.
    pub(crate) mode: FastOpen,
    /// There are first bytes.
    pub(crate) has_data: bool,
    /// Show the cookie even without data, because the server speaks first.
    pub(crate) data_less: bool,
    /// A FIN follows the first bytes and may ride on the SYN.
    pub(crate) syn_fin: bool,
    /// What is known about the path.
    pub(crate) entry: Option<&'a PathEntry>,
    /// [`PathCache::verdict_admit`](super::PathCache::verdict_admit), or `None` where verdicts are off.
    pub(crate) verdict: Option<Verdict>,
    /// [`PathCache::syn_fin_verdict_admit`](super::PathCache::syn_fin_verdict_admit), or false where verdicts are off.
    pub(crate) syn_fin_verdict: bool,
    /// [`Blackhole::paused`](super::Blackhole::paused).
    pub(crate) paused: bool,
}

/// What the first SYN shall be. Its retransmissions are always plain (R27).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientPlan {
    /// Plain: no option, no data.
    Plain(Skipped),
    /// A cookie request in this format, without data.
    Request(FastOpenKind),
    /// First bytes, as far as they fit (none when data-less).
    Data {
        /// The option; `None` = no option at all (cookie-less mode).
        cookie: Option<(Cookie, FastOpenKind)>,
        /// The FIN too, provided that all of the first bytes fit.
        fin: bool,
    },
}

/// Decides what the first SYN shall be.
pub(crate) fn decide(inputs: &ClientInputs<'_>) -> ClientPlan {
    match skipped(inputs) {
        Some(why) => ClientPlan::Plain(why),
        None => plan(inputs),
    }
}

fn skipped(inputs: &ClientInputs<'_>) -> Option<Skipped> {
    let verdict = inputs.verdict.filter(|_| inputs.mode != FastOpen::Force);
    match () {
        () if inputs.mode == FastOpen::Off => Some(Skipped::NotAsked),
        () if inputs.bits & CLIENT == 0 => Some(Skipped::Disabled),
        () if inputs.paused => Some(Skipped::Paused),
        () => verdict.map(Skipped::Verdict),
    }
}

/// Without a cookie one is asked for, even if there is nothing to send: the next connection may want it.
fn plan(inputs: &ClientInputs<'_>) -> ClientPlan {
    let cookie_less = inputs.mode == FastOpen::NoCookie || inputs.bits & CLIENT_NO_COOKIE != 0;
    let cached = inputs.entry.and_then(|entry| Some((entry.cookie?, entry.kind)));
    let cookie = if cookie_less { None } else { cached };
    if !cookie_less && cookie.is_none() {
        return ClientPlan::Request(inputs.entry.map_or(FastOpenKind::Standard, PathEntry::request_kind));
    }
    // Without data only a cookie can be shown, and only to a server that speaks first.
    match cookie {
        None if !inputs.has_data => return ClientPlan::Plain(Skipped::NothingToSend),
        Some(_) if !inputs.has_data && !inputs.data_less => return ClientPlan::Plain(Skipped::NotAsked),
        _ => {}
    }
    let fin_ruled_out = inputs.syn_fin_verdict && inputs.mode != FastOpen::Force;
    ClientPlan::Data { cookie, fin: inputs.has_data && inputs.syn_fin && !fin_ruled_out }
}

/// How much data a SYN takes: the choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SynDataPolicy {
    /// What the options take off.
    pub(crate) room: SynDataRoom,
    /// Without a cached MSS, take the least one every host must accept: 536 or 1220 (R12). Linux does not.
    pub(crate) limit_uncached: bool,
    /// Take a cached MSS for 1460 or 1440 at most: a larger SYN meets middleboxes that know only Ethernet (R13). Linux does not.
    pub(crate) clamp_cached: bool,
}

/// How much data a SYN takes: the facts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SynDataLimits {
    /// The MSS we advertise, bytes.
    pub(crate) advmss: u16,
    /// The peer's MSS from the cache, bytes.
    pub(crate) cached_mss: Option<u16>,
    /// Path MTU, bytes.
    pub(crate) path_mtu: usize,
    /// IP header, bytes: 20 or 40.
    pub(crate) ip_header_len: usize,
    /// TCP options of this SYN with padding, bytes: 0..=40.
    pub(crate) option_bytes: usize,
    /// `TCP_MAXSEG`, bytes.
    pub(crate) user_mss: Option<u16>,
    /// The choices.
    pub(crate) policy: SynDataPolicy,
}

/// TCP header without options, bytes.
const TCP_HEADER: usize = 20;
/// All of the option space, bytes.
const MAX_OPTIONS: usize = 40;

/// The peer's MSS, as far as it is known before it tells it, and the path carries it, bytes.
#[inline]
pub(crate) fn syn_data_mss(limits: &SynDataLimits) -> usize {
    let v6 = limits.ip_header_len == 40;
    let policy = limits.policy;
    let peer_mss = match limits.cached_mss {
        Some(mss) if policy.clamp_cached => mss.min(if v6 { 1440 } else { 1460 }),
        Some(mss) => mss,
        None if policy.limit_uncached => limits.advmss.min(if v6 { 1220 } else { 536 }),
        None => limits.advmss,
    };
    let mss = peer_mss.min(limits.user_mss.unwrap_or(u16::MAX));
    let path_mss = limits.path_mtu.saturating_sub(limits.ip_header_len + TCP_HEADER);
    path_mss.min(usize::from(mss))
}

impl SynDataLimits {
    /// Bytes that are not there for data. An MSS counts data and options (RFC 6691), so options come off it.
    pub(crate) fn reserved_for_options(&self) -> usize {
        match self.policy.room {
            SynDataRoom::Reserve40 => MAX_OPTIONS,
            SynDataRoom::Exact => self.option_bytes,
        }
    }
}

/// The most data the SYN takes, bytes.
#[inline]
pub(crate) fn syn_data_max(limits: &SynDataLimits) -> usize {
    syn_data_mss(limits).saturating_sub(limits.reserved_for_options())
}

/// The fallback is no sooner than this: a server's scheduling and a SYN-ACK hold must not look like loss.
const MIN_FALLBACK: Duration = Duration::from_millis(100);
/// The fallback when nothing is known about the path: the initial RTO (RFC 6298 §2.1).
const UNKNOWN_FALLBACK: Duration = Duration::from_secs(1);

/// How long to wait for the answer to a Fast Open SYN before the plain one: max(100 ms, 2.5 SRTT), or 1 s without an SRTT.
#[inline]
pub(crate) fn fallback_after(srtt: Option<Duration>) -> Duration {
    match srtt {
        Some(srtt) if srtt < MIN_FALLBACK / 5 * 2 => MIN_FALLBACK,
        Some(srtt) => srtt.saturating_mul(5) / 2,
        None => UNKNOWN_FALLBACK,
    }
}

#[cfg(test)]
mod tests {
    use super::super::PathCache;
    use super::*;
    use crate::Instant;
    use core::net::Ipv4Addr;

    const PLAIN: fn(Skipped) -> ClientPlan = ClientPlan::Plain;

    fn inputs(entry: Option<&PathEntry>) -> ClientInputs<'_> {
        ClientInputs {
            bits: 0x3,
            mode: FastOpen::Auto,
            has_data: true,
            data_less: false,
            syn_fin: false,
            entry,
            verdict: None,
            syn_fin_verdict: false,
            paused: false,
        }
    }

    fn entry(cookie: Option<&[u8]>) -> PathEntry {
        let local = Ipv4Addr::LOCALHOST.into();
        let mut cache = PathCache::new(1, (0, 0));
        let entry = cache.entry(Instant::ZERO, local, local);
        entry.cookie = cookie.and_then(Cookie::new);
        entry.clone()
    }

    fn with_cookie() -> (PathEntry, Option<(Cookie, FastOpenKind)>) {
        let entry = entry(Some(&[1; 8]));
        let option = entry.cookie.map(|cookie| (cookie, FastOpenKind::Standard));
        (entry, option)
    }

    #[test]
    fn every_reason_to_stay_plain_in_order() {
        let (known, cookie) = with_cookie();
        let all = ClientInputs {
            bits: 0x2,
            mode: FastOpen::Off,
            verdict: Some(Verdict::Reset),
            paused: true,
            ..inputs(Some(&known))
        };
        assert_eq!(decide(&all), PLAIN(Skipped::NotAsked));
        let asked = ClientInputs { mode: FastOpen::Auto, ..all };
        assert_eq!(decide(&asked), PLAIN(Skipped::Disabled));
        let enabled = ClientInputs { bits: 0x1, ..asked };
        assert_eq!(decide(&enabled), PLAIN(Skipped::Paused));
        let running = ClientInputs { paused: false, ..enabled };
        assert_eq!(decide(&running), PLAIN(Skipped::Verdict(Verdict::Reset)));
        let forced = ClientInputs { mode: FastOpen::Force, ..running };
        assert_eq!(decide(&forced), ClientPlan::Data { cookie, fin: false });
    }

    #[test]
    fn without_a_cookie_one_is_asked_for() {
        assert_eq!(decide(&inputs(None)), ClientPlan::Request(FastOpenKind::Standard));
        let mut known = entry(None);
        known.request_unanswered(FastOpenKind::Standard);
        assert_eq!(decide(&inputs(Some(&known))), ClientPlan::Request(FastOpenKind::Experimental));
        known.request_unanswered(FastOpenKind::Experimental);
        assert_eq!(decide(&inputs(Some(&known))), ClientPlan::Request(FastOpenKind::Standard));
        let nothing_to_send = ClientInputs { has_data: false, ..inputs(None) };
        assert_eq!(decide(&nothing_to_send), ClientPlan::Request(FastOpenKind::Standard));
    }

    #[test]
    fn a_cookie_goes_out_in_the_format_it_came_in() {
        let mut known = entry(None);
        let cookie = Cookie::new(&[2; 6]).unwrap();
        known.store_cookie(cookie, FastOpenKind::Experimental);
        let plan = ClientPlan::Data { cookie: Some((cookie, FastOpenKind::Experimental)), fin: false };
        assert_eq!(decide(&inputs(Some(&known))), plan);
    }

    #[test]
    fn a_cookie_without_data_goes_out_only_on_request() {
        let (known, cookie) = with_cookie();
        let silent = ClientInputs { has_data: false, ..inputs(Some(&known)) };
        assert_eq!(decide(&silent), PLAIN(Skipped::NotAsked));
        let listening = ClientInputs { data_less: true, syn_fin: true, ..silent };
        assert_eq!(decide(&listening), ClientPlan::Data { cookie, fin: false });
    }

    #[test]
    fn cookie_less_modes_send_no_option() {
        let (known, _) = with_cookie();
        let bit = ClientInputs { bits: 0x5, ..inputs(Some(&known)) };
        assert_eq!(decide(&bit), ClientPlan::Data { cookie: None, fin: false });
        let mode = ClientInputs { mode: FastOpen::NoCookie, ..inputs(None) };
        assert_eq!(decide(&mode), ClientPlan::Data { cookie: None, fin: false });
        let silent = ClientInputs { has_data: false, ..mode };
        assert_eq!(decide(&silent), PLAIN(Skipped::NothingToSend));
    }

    #[test]
    fn the_fin_has_its_own_verdict() {
        let (known, cookie) = with_cookie();
        let fin = ClientInputs { syn_fin: true, ..inputs(Some(&known)) };
        assert_eq!(decide(&fin), ClientPlan::Data { cookie, fin: true });
        let ruled_out = ClientInputs { syn_fin_verdict: true, ..fin };
        assert_eq!(decide(&ruled_out), ClientPlan::Data { cookie, fin: false });
        let forced = ClientInputs { mode: FastOpen::Force, ..ruled_out };
        assert_eq!(decide(&forced), ClientPlan::Data { cookie, fin: true });
    }

    const LINUX: SynDataPolicy =
        SynDataPolicy { room: SynDataRoom::Reserve40, limit_uncached: false, clamp_cached: false };
    const OURS: SynDataPolicy =
        SynDataPolicy { room: SynDataRoom::Exact, limit_uncached: true, clamp_cached: true };

    fn limits(v6: bool, cached_mss: Option<u16>, policy: SynDataPolicy) -> SynDataLimits {
        let ip_header_len = if v6 { 40 } else { 20 };
        let advmss = if v6 { 1440 } else { 1460 };
        // MSS, SACK permitted and timestamps, window scale, cookie of eight bytes.
        SynDataLimits {
            advmss,
            cached_mss,
            path_mtu: 1500,
            ip_header_len,
            option_bytes: 32,
            user_mss: None,
            policy,
        }
    }

    /// Measured on Linux 6.18: 1420, 1400 at MTU 1500; cached MSS 600 gives 560; no limit without a cached MSS.
    #[test]
    fn linux_reserves_all_of_the_option_space() {
        assert_eq!(syn_data_max(&limits(false, Some(1460), LINUX)), 1420);
        assert_eq!(syn_data_max(&limits(true, Some(1440), LINUX)), 1400);
        assert_eq!(syn_data_max(&limits(false, Some(600), LINUX)), 560);
        assert_eq!(syn_data_max(&limits(false, None, LINUX)), 1420);
        let jumbo = SynDataLimits { path_mtu: 9000, advmss: 8960, ..limits(false, Some(8960), LINUX) };
        assert_eq!(syn_data_max(&jumbo), 8920);
    }

    #[test]
    fn ours_takes_off_what_is_sent_and_heeds_the_rfc() {
        assert_eq!(syn_data_max(&limits(false, Some(1460), OURS)), 1428);
        assert_eq!(syn_data_max(&limits(false, None, OURS)), 504);
        assert_eq!(syn_data_max(&limits(true, None, OURS)), 1188);
        let jumbo = SynDataLimits { path_mtu: 9000, advmss: 8960, ..limits(false, Some(8960), OURS) };
        assert_eq!(syn_data_max(&jumbo), 1428);
    }

    #[test]
    fn path_and_user_bound_it() {
        let narrow = SynDataLimits { path_mtu: 1280, ..limits(true, Some(1440), OURS) };
        assert_eq!(syn_data_max(&narrow), 1280 - 60 - 32);
        let user = SynDataLimits { user_mss: Some(500), ..limits(false, Some(1460), LINUX) };
        assert_eq!(syn_data_max(&user), 460);
        let nothing = SynDataLimits { path_mtu: 68, ..limits(false, Some(1460), LINUX) };
        assert_eq!(syn_data_max(&nothing), 0);
    }

    #[test]
    fn the_fallback_waits_two_and_a_half_round_trips() {
        let after = |ms| fallback_after(Some(Duration::from_millis(ms))).as_micros();
        assert_eq!([after(0), after(40), after(41), after(170)], [100_000, 100_000, 102_500, 425_000]);
        assert_eq!(after(800), 2_000_000);
        assert_eq!(fallback_after(None), Duration::from_secs(1));
    }
}
