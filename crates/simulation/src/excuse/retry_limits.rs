//! Retry limits (R1, R2): how long an end must have waited before it may give up. It is the least
//! that any of its settings and options asks for over the whole life of the connection, as either
//! may change in the middle.

use super::{Facts, Side};
use crate::scenario::{Opt, Step};
use crate::world::{CLIENT, Fate};
use core::time::Duration;
use proto::{Config, Counters};

/// Linux's `TCP_RTO_MIN`, from which `tcp_retries2` counts.
const BASE: Duration = Duration::from_millis(200);
/// Window probes are counted in a byte; that of its greatest value is not sent.
const MOST_PROBES: u32 = 254;
/// An orphan's retransmissions with `tcp_orphan_retries` 0.
const ORPHAN_RETRIES: u32 = 8;

/// What `retries` retransmissions take whose time-outs double from `base` up to `most` (Linux's
/// `tcp_model_timeout`; RFC 1122 §4.2.3.5 lets R2 be a time or a number).
fn modelled(retries: u32, base: Duration, most: Duration) -> Duration {
    let base = base.max(Duration::from_millis(1)).min(most);
    let mut wait = base;
    let mut all = Duration::ZERO;
    for _ in 0..=retries {
        all += wait;
        wait = (2 * wait).min(most);
    }
    all
}

impl Side<'_> {
    /// Values that an option has had.
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = u64> {
        let named = move |option: &&Opt| option.0 == name;
        let steps = self.steps.iter().filter_map(|step| match step {
            Step::Set(option) => Some(option),
            _ => None,
        });
        self.options.iter().chain(steps).filter(named).map(|option| option.1)
    }

    fn least_of(&self, name: &str, setting: impl Fn(&Config) -> u64) -> u64 {
        let settings = self.configs.iter().map(setting).min();
        settings.into_iter().chain(self.values(name)).min().unwrap_or(0)
    }

    fn rto_max(&self) -> Duration {
        Duration::from_millis(self.least_of("rto_max", |config| config.tcp_rto_max_ms.into()).max(1))
    }

    fn least_setting(&self, setting: impl Fn(&Config) -> u32) -> u32 {
        self.configs.iter().map(setting).min().unwrap_or(0)
    }

    /// RFC 5482's; 0 is none.
    fn user_timeout(&self) -> Option<Duration> {
        self.values("user_timeout").filter(|ms| *ms > 0).min().map(Duration::from_millis)
    }

    /// `TCP_TX_DELAY` is used.
    pub(crate) fn leaves_late(&self) -> bool {
        !self.latest().is_zero()
    }

    /// What leaves late counts from before: so much, at most. A machine may sleep while it waits to
    /// leave.
    pub(crate) fn latest(&self) -> Duration {
        let delay = Duration::from_millis(self.values("tx_delay").max().unwrap_or(0));
        if delay.is_zero() { delay } else { delay + self.slept }
    }
}

/// R2 of data (RFC 9293 §3.8.3): so long it has gone unanswered, or the peer has kept its window
/// closed without a word, or the application's user timeout is over.
pub(super) fn is_data_given_up(facts: &Facts<'_>, side: usize) -> bool {
    let end = &facts.sides[side];
    let Some((at, account)) = &end.over else { return false };
    let late = end.latest();
    let retries = end.least_setting(|config| config.tcp_retries2);
    let borne = end.user_timeout();
    let most = modelled(retries, BASE, end.rto_max()).min(borne.unwrap_or(Duration::MAX));
    // The answer may have come in a segment that is not acceptable, text that was received before:
    // then it counts for nothing (§3.10.7.4).
    let last = account.progress_at.filter(|progress| at.since(*progress) <= facts.round_trip());
    let waited = account.waited(*at).max(last.map_or(Duration::ZERO, |_| account.longest_wait));
    if waited + late >= most {
        return true;
    }
    // Window probes are counted, and those of text that the device refuses, which the peer's
    // SYN-ACK may come between.
    let is_refused = facts.scenario.hosts[side].refusals > 0 && account.sent_since_progress > retries;
    let probed = account.sent_since_heard >= retries.min(MOST_PROBES) || is_refused;
    let oldest = account.oldest_sent().map_or(Duration::ZERO, |sent| at.since(sent)).max(account.stuck(*at));
    let stuck = borne.is_some_and(|borne| oldest + late >= borne);
    let deaf = takes_window_back(end) && account.sent_since_progress >= retries;
    let unheard = end.configs.iter().any(|config| config.peer_window_rules == proto::PeerWindowRules::Kernel)
        && account.silence(*at) + late >= 2 * end.rto_max();
    account.progress_at.is_some() && (probed || stuck || deaf || unheard)
}

/// R2 of a SYN, or of the SYN-ACK of one who has been accepted already.
pub(super) fn is_opening_given_up(facts: &Facts<'_>, side: usize) -> bool {
    let end = &facts.sides[side];
    let Some((at, account)) = &end.over else { return false };
    let retries = match side {
        CLIENT => end.least_of("syn_retries", |config| config.tcp_syn_retries.into()),
        _ => end.least_of("syn_retries", |config| config.tcp_synack_retries.into()),
    } as u32;
    let initial = end.configs.iter().map(|config| config.rto_initial).min().unwrap_or_default();
    let most = modelled(retries, initial, end.rto_max()).min(end.user_timeout().unwrap_or(Duration::MAX));
    // A server hears of it when it accepts the connection: the last answer may have come behind the
    // end.
    account.syns > retries || account.heard_nothing() && account.waited(*at) + end.latest() >= most
}

/// Keepalive (RFC 9293 §3.8.4): the peer was silent, and then left every probe unanswered.
pub(super) fn is_keepalive_over(facts: &Facts<'_>, side: usize) -> bool {
    let end = &facts.sides[side];
    let Some((at, account)) = &end.over else { return false };
    if end.values("keepalive").all(|on| on == 0) {
        return false;
    }
    let (probes, interval) = keepalive_probes(end);
    let ms = |time: Duration| time.as_millis() as u64;
    let time = Duration::from_millis(end.least_of("keepalive_time", |config| ms(config.tcp_keepalive_time)));
    let silence = account.silence(*at) + end.latest();
    // Probes that wait for `TCP_TX_DELAY` may not have left by then.
    let probed = account.sent_since_heard >= probes || end.leaves_late();
    let unanswered = silence >= time + probes * interval && probed;
    unanswered || end.user_timeout().is_some_and(|borne| silence >= borne && account.sent_since_heard > 0)
}

/// How many keepalive probes an end sends at least, and how far apart.
fn keepalive_probes(end: &Side<'_>) -> (u32, Duration) {
    let probes = end.least_of("keepalive_probes", |config| config.tcp_keepalive_probes.into()) as u32;
    let interval = end.least_of("keepalive_intvl", |config| config.tcp_keepalive_intvl.as_millis() as u64);
    (probes, Duration::from_millis(interval))
}

/// Every keepalive probe goes before the first can be answered: the round trip is longer
/// (`TCP_TX_DELAY`).
pub(super) fn is_probed_too_fast(facts: &Facts<'_>, side: usize) -> bool {
    let (probes, interval) = keepalive_probes(&facts.sides[side]);
    probes.max(1) * interval <= facts.round_trip()
}

/// Keepalive probes are invalid segments, and the other end limits what it answers to those
/// (`tcp_invalid_ratelimit`).
pub(super) fn is_probed_in_vain(facts: &Facts<'_>, side: usize) -> bool {
    let rare = |config: &Config| config.tcp_invalid_ratelimit > 500;
    facts.sides[1 - side].configs.iter().any(rare)
}

/// An end that nobody holds any more gives up sooner (`tcp_orphan_retries`): after that time, or so
/// many window probes.
pub(super) fn is_orphan_given_up(facts: &Facts<'_>, side: usize) -> bool {
    let end = &facts.sides[side];
    let Some((at, account)) = &end.over else { return false };
    let retries = end.least_setting(|config| match config.tcp_orphan_retries {
        0 => ORPHAN_RETRIES,
        retries => retries,
    });
    let borne = end.user_timeout().unwrap_or(Duration::MAX);
    // Once its time-out is the greatest, `tcp_orphan_retries` 0 means what it says (Linux's
    // `tcp_orphan_retries`).
    let exhausted = end.configs.iter().any(|config| config.tcp_orphan_retries == 0).then(|| end.rto_max());
    let most = modelled(retries, BASE, end.rto_max()).min(borne).min(exhausted.unwrap_or(Duration::MAX));
    let late = end.latest();
    // The answer that its reset tells of may be one that came too late.
    account.waited(*at).max(account.longest_wait) + late >= most
        || account.stuck(*at) + late >= most.min(borne)
        || account.sent_since_progress >= retries
}

/// Something kept the two from hearing each other in that time, or `TCP_TX_DELAY` keeps back what
/// would be answered, or the peer has told of a closed window (it reads nothing), had no room for
/// what came or let go of what came out of order, or it took its own window back, or the time is
/// too short for a round trip.
pub(super) fn was_hindered(facts: &Facts<'_>, side: usize) -> bool {
    let end = &facts.sides[side];
    let Some((at, account)) = &end.over else { return false };
    if end.leaves_late() && account.waits_since.is_none() {
        // What it waits for has not left yet (`TCP_TX_DELAY`).
        return true;
    }
    let from = [account.waits_since, account.progress_at, account.heard_at, account.oldest_sent()];
    let from = from.into_iter().flatten().min();
    let from = from.unwrap_or(*at);
    let trip = facts.round_trip();
    let harmed =
        facts.sides.iter().filter_map(|end| end.account.harmed_at).any(|harmed| harmed + trip >= from);
    let peer = &facts.sides[1 - side];
    let peer_was_there =
        peer.fate == Some(Fate::Busy) || peer.over.as_ref().is_some_and(|(over, _)| over > at);
    let waited = at.since(account.waits_since.unwrap_or(from));
    harmed
        || has_no_room(peer.counters)
        || peer.counters.ofo_pruned > 0
        || shrinks_window(end)
        || account.told_closed
        || !end.slept.is_zero()
        || !peer_was_there
        || waited <= trip
}

/// A full accept queue leaves the ACK that completes a handshake unanswered, and what comes behind
/// it; a receiver out of memory drops text inside the window it has offered. Either is as good as a
/// loss.
fn has_no_room(counters: &Counters) -> bool {
    counters.listen_overflows + counters.listen_drops + counters.rcv_q_drop > 0
}

/// Out of memory, or with `tcp_shrink_window`, an end takes its window back (Linux's
/// `ICSK_ACK_NOMEM`): what the peer has sent lies beyond it, and with it the numbers of every
/// acknowledgement.
fn takes_window_back(end: &Side<'_>) -> bool {
    has_no_room(end.counters) || shrinks_window(end)
}

fn shrinks_window(end: &Side<'_>) -> bool {
    end.configs.iter().any(|config| config.tcp_shrink_window)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Linux's documentation says of 15 retries: 924.6 s.
    #[test]
    fn the_time_of_fifteen_retries_is_linuxs() {
        let most = Duration::from_secs(120);
        let ms = |retries, base| modelled(retries, Duration::from_millis(base), most).as_millis();
        assert_eq!((ms(15, 200), ms(8, 200), ms(0, 200), ms(6, 1000)), (924_600, 102_200, 200, 127_000));
    }
}
