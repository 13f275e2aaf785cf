//! Ends of connections that a scenario rightly brings about.
//!
//! An end that did not hear everything needs one of these. Each says in the standard's words why
//! TCP may, or must, give up there; an end without an excuse is a failure. What the streams carry
//! is never excused.

mod retry_limits;

use crate::scenario::{Forgery, Opt, Scenario, Step, mtu_discovery};
use crate::world::{Account, CLIENT, Fate, SERVER};
use core::time::Duration;
use proto::{CloseReason, Config, Counters, DropReason, Drops, Instant, PathMtuDiscovery};

/// Facts about one connection when its world is quiet.
pub struct Facts<'a> {
    /// The world.
    pub scenario: &'a Scenario,
    /// Client and server.
    pub sides: [Side<'a>; 2],
}

/// Facts about one end.
pub struct Side<'a> {
    /// `None`: the server has never accepted it.
    pub fate: Option<Fate>,
    /// The end of its connection, and the packets on the wire until then. If its application has
    /// closed it: the time of a reset, or the end of the world.
    pub over: Option<(Instant, Account)>,
    /// Packets on the wire from this end until the end of the world.
    pub account: &'a Account,
    /// All that the settings have been; the last are those at the end.
    pub configs: &'a [Config],
    /// Counters of its whole stack.
    pub counters: &'a Counters,
    /// Packets its stack has dropped.
    pub drops: &'a Drops,
    /// When its application opened, or accepted, it.
    pub begun_at: Option<Instant>,
    /// The time when its application, which has written and read everything, closed it.
    pub closed_at: Option<Instant>,
    /// Options its socket began with.
    pub options: &'a [Opt],
    /// Steps of its application.
    pub steps: &'a [Step],
    /// For so long the machine has slept.
    pub slept: Duration,
    /// The application has said that it reads no more, and has ended its own direction.
    pub reads_no_more: bool,
    /// Some written data is not acknowledged, and the connection is open.
    pub undelivered: bool,
    /// Its application waits, although the connection is over.
    pub misses_end: bool,
    /// Its application waits, although there is something to read.
    pub misses_text: bool,
}

/// A reason, and the words that allow it.
pub struct Excuse {
    /// The event.
    pub name: &'static str,
    /// Where the standard, or the setting's meaning, says so.
    pub words: &'static str,
    applies: fn(&Facts<'_>, usize) -> bool,
}

/// Every excuse there is; the first that applies counts.
pub const EXCUSES: &[Excuse] = &[
    Excuse {
        name: "the peer left",
        words: "RFC 9293 §3.10.5, ABORT: all queued SENDs and RECEIVEs should be given connection reset notification; a reset may be lost, \
                and nobody repeats it",
        applies: |facts, side| facts.sides[1 - side].fate == Some(Fate::Left) && may_be_reset(facts, side),
    },
    Excuse {
        name: "somebody would read no more",
        words: "RFC 1122 §4.2.2.13: text for a host that has closed and reads no more SHOULD be answered by a RST, to show that data was lost",
        applies: |facts, side| facts.sides.iter().any(|side| side.reads_no_more) && may_be_reset(facts, side),
    },
    Excuse {
        name: "gave up on what went unanswered, as it was told to",
        words: "RFC 9293 §3.8.3: R2 (tcp_retries2, tcp_rto_max_ms), RFC 5482: the user timeout; so long, or so often, nothing was answered",
        applies: |facts, side| {
            gave_up(facts, side)
                && retry_limits::was_hindered(facts, side)
                && retry_limits::is_data_given_up(facts, side)
        },
    },
    Excuse {
        name: "gave up opening, as it was told to",
        words: "RFC 9293 §3.8.3: R2 of a SYN (tcp_syn_retries, tcp_synack_retries, rto_initial); so long, or so often, it went unanswered",
        applies: |facts, side| {
            gave_up(facts, side)
                && retry_limits::was_hindered(facts, side)
                && retry_limits::is_opening_given_up(facts, side)
        },
    },
    Excuse {
        name: "keepalive found nobody",
        words: "RFC 9293 §3.8.4: a connection that the peer no longer answers for may be ended; every probe went unanswered, \
                perhaps since the other end answers segments below its window no more often than tcp_invalid_ratelimit lets it, or the answer takes \
                longer than all the probes",
        applies: |facts, side| {
            gave_up(facts, side)
                && (retry_limits::was_hindered(facts, side)
                    || retry_limits::is_probed_in_vain(facts, side)
                    || retry_limits::is_probed_too_fast(facts, side))
                && retry_limits::is_keepalive_over(facts, side)
        },
    },
    Excuse {
        name: "the peer gave up",
        words: "RFC 9293 §3.8.3: whoever reaches R2 closes the connection; the other end learns of it by a reset, or not at all. That the peer \
                rightly did is judged at its own end",
        applies: |facts, side| gave_up(facts, 1 - side),
    },
    Excuse {
        name: "ICMP said that the peer cannot be reached",
        words: "RFC 5461 §4.1 and RFC 1122 §4.2.3.9: a soft error may end an attempt to open, but no connection",
        applies: |facts, side| {
            let end = &facts.sides[side];
            // A Fast Open child may be over before it is accepted, and nobody has been told by
            // then.
            let accepted_at = end.begun_at.filter(|_| side == SERVER);
            let was_opening = end.over.as_ref().is_some_and(|(over_at, _)| {
                accepted_at == Some(*over_at) || end.account.answered_at.is_none_or(|at| at >= *over_at)
            });
            facts.scenario.has_icmp() && is_unreachable(facts, side) && was_opening
        },
    },
    Excuse {
        name: "there was no room for the connection",
        words: "RFC 9293 §3.10.7.2 leaves a listener's queue to the implementation; listen(2): a backlog that is full refuses or ignores",
        applies: |facts, _| {
            let server = &facts.sides[SERVER];
            server.fate.is_none() && server.counters.listen_drops > 0
        },
    },
    Excuse {
        name: "nobody held the connection any more, and its peer was silent for long",
        words: "tcp_orphan_retries: a connection that was closed is given up after eight unanswered time-outs or window probes, and a \
                SYN-ACK as tcp_synack_retries says; RFC 1122 §4.2.2.17 lets a window stay closed only as long as the receiver answers",
        applies: |facts, side| {
            let peer = &facts.sides[1 - side];
            peer.fate == Some(Fate::Complete)
                && (peer.counters.abort_on_timeout > 0 && retry_limits::is_orphan_given_up(facts, 1 - side)
                    || retry_limits::is_opening_given_up(facts, 1 - side))
        },
    },
    Excuse {
        name: "the server gave up the opening, as it was told to",
        words: "tcp_synack_retries: a half-open request ends when so many SYN-ACKs have gone unanswered; a SYN that was sent again, or copied, \
                and comes late opens another",
        applies: |facts, _| {
            let server = &facts.sides[SERVER];
            let least = server.configs.iter().map(|config| config.tcp_synack_retries).min().unwrap_or(0);
            (server.fate.is_none() || syn_comes_again(facts))
                && server.account.syns > least.min(server.values("syn_retries").min().unwrap_or(255) as u32)
        },
    },
    Excuse {
        name: "ICMP ended the opening at the server",
        words: "RFC 5461 §4.1: a soft error may end an attempt to open, as that of a half-open request does in Linux (tcp_req_err); a SYN that was \
                sent again, or copied, and comes late opens another",
        applies: |facts, _| {
            facts.scenario.has_icmp()
                && facts.sides[SERVER].counters.listen_drops > 0
                && syn_comes_again(facts)
        },
    },
    Excuse {
        name: "the listener waited for data, and the client sent none",
        words: "tcp(7), TCP_DEFER_ACCEPT: a listener wakes when data arrives in time, and gives up as any half-open request does; the client, which took \
                the connection for open, is told by a reset (firstbyte.accept_overflow) or not at all",
        applies: |facts, _| {
            let (client, server) = (&facts.sides[CLIENT], &facts.sides[SERVER]);
            let sent_none = match &client.over {
                // What it sent at last was answered at once: by the reset.
                Some((at, account)) => account.waited(*at) <= facts.round_trip(),
                None => client.account.waits_since.is_none(),
            };
            facts.scenario.listener.defer_accept_ms > 0 && server.fate.is_none() && sent_none
        },
    },
    Excuse {
        name: "the peer's TIME-WAIT was too short",
        words: "RFC 9293 §3.6.1: TIME-WAIT lasts 2 MSL, so that the last ACK can be sent again; firstbyte.time_wait and tcp_max_tw_buckets end \
                it before, and a machine may sleep for longer",
        applies: |facts, side| {
            let peer = &facts.sides[1 - side];
            let short = |config: &Config| {
                config.time_wait < Duration::from_secs(60) || config.tcp_max_tw_buckets < 100
            };
            let overslept = facts.sides.iter().any(|side| side.slept >= Duration::from_secs(60));
            peer.fate == Some(Fate::Complete) && (overslept || peer.configs.iter().any(short))
        },
    },
    Excuse {
        name: "the client was to answer no challenges",
        words: "RFC 5961 §7 and tcp_invalid_ratelimit limit challenge ACKs, which are what answers a SYN-ACK that is sent again: a listener that \
                waits for data (TCP_DEFER_ACCEPT) takes the client for gone",
        applies: |facts, _| {
            let rare =
                |config: &Config| config.tcp_challenge_ack_limit < 100 || config.tcp_invalid_ratelimit > 500;
            facts.scenario.listener.defer_accept_ms > 0
                && facts.sides[SERVER].fate.is_none()
                && facts.sides[CLIENT].configs.iter().any(rare)
        },
    },
    Excuse {
        name: "a SYN that came late opened another connection than its copy",
        words: "RFC 4987 §3.6: the server forgets the SYN that it answers by a SYN cookie; RFC 7413 §4.2: a SYN with the option and a good \
                cookie, or where none is asked for, opens at once. Of one client that repeats its SYN without the option, both in this order",
        applies: |facts, _| {
            let server = &facts.sides[SERVER];
            let every = |config: &Config| config.tcp_fastopen & proto::fastopen::ALL_LISTENERS != 0;
            (facts.scenario.listener.fast_open.is_some() || server.configs.iter().any(every))
                && server.counters.syncookies_sent > 0
                && syn_comes_again(facts)
        },
    },
    Excuse {
        name: "a SYN cookie was not understood",
        words: "RFC 4987 §3.6: the SYN-ACK is not sent again, and what follows a lost ACK is no cookie: it meets a listener, which resets",
        applies: |facts, _| {
            let server = &facts.sides[SERVER];
            server.counters.syncookies_failed > 0
                || server.fate.is_none() && server.counters.syncookies_sent > 0
        },
    },
    Excuse {
        name: "a SYN cookie met a full queue, and was taken when it came again",
        words: "tcp_abort_on_overflow resets a client for which there is no room; RFC 4987 §3.6: behind a SYN cookie nothing is remembered, so \
                that what the client sent before the reset came opens the connection once there is room",
        applies: |facts, _| {
            let server = &facts.sides[SERVER];
            server.configs.iter().any(|config| config.tcp_abort_on_overflow)
                && server.counters.syncookies_sent > 0
                && server.counters.listen_overflows > 0
        },
    },
    Excuse {
        name: "nobody listens to the path's MTU",
        words: "ip-route(8), mtu lock: path MTU discovery is not tried; RFC 8201 §4: a node that does not do it sends no more than 1280 bytes",
        applies: |facts, _| {
            facts.scenario.v6 && !facts.scenario.wire.mtus.is_empty() && is_deaf_to_mtu(facts)
        },
    },
    Excuse {
        name: "the stack had no memory",
        words: "tcp_mem and tcp_max_orphans: above them connections that nobody holds are reset, and new ones are not taken",
        applies: |facts, side| {
            facts.sides[1 - side].counters.abort_on_memory > 0
                || facts.sides[side].counters.abort_on_memory > 0
        },
    },
    Excuse {
        name: "packets had too few hops left",
        words: "RFC 5082: a receiver that asks for a least TTL drops what has less",
        applies: |facts, _| facts.sides.iter().any(|side| side.drops.get(DropReason::HopLimit) > 0),
    },
    Excuse {
        name: "lingering ended",
        words: "SO_LINGER: close discards what is not delivered in time, by a reset",
        applies: |facts, side| {
            let peer = &facts.sides[1 - side];
            let (Some(closed_at), Some((over_at, _))) = (peer.closed_at, &peer.over) else { return false };
            let has_ended = |ms| match ms {
                0 => peer.counters.abort_on_data > 0,
                ms => *over_at >= closed_at + Duration::from_millis(ms),
            };
            peer.values("linger").any(has_ended) && may_be_reset(facts, side)
        },
    },
];

/// The first excuse that applies to this end.
pub fn find(facts: &Facts<'_>, side: usize) -> Option<&'static str> {
    let end = &facts.sides[side];
    let misses_text = end.misses_text && end.values("recv_lowat").next().is_none();
    if end.undelivered || end.misses_end || misses_text {
        // Nothing lets an end wait for ever for an answer, which is given, or the end gives up; nor
        // for what has come.
        return None;
    }
    EXCUSES.iter().find(|excuse| (excuse.applies)(facts, side)).map(|excuse| excuse.name)
}

impl Facts<'_> {
    /// The longest that an answer may take with nothing lost.
    fn round_trip(&self) -> Duration {
        let wire = &self.scenario.wire;
        let one_way = 4 * Duration::from_micros(wire.delay_us) + Duration::from_millis(wire.jitter_ms);
        let held = self.sides.iter().map(|side| {
            let settings = side.configs.iter().map(|config| config.delayed_ack_max.max(config.delayed_ack));
            let ms = side.values("tx_delay").chain(side.values("delack_max")).sum::<u64>();
            settings.max().unwrap_or_default() + Duration::from_millis(ms) + self.synack_held(side)
        });
        2 * one_way + held.sum::<Duration>()
    }

    /// A listener may wait for its first bytes before it answers a SYN (`firstbyte.synack_hold`).
    fn synack_held(&self, side: &Side<'_>) -> Duration {
        let settings = side.configs.iter().map(|config| config.synack_hold).max().unwrap_or_default();
        let listener = self.scenario.listener.synack_hold_us.map(Duration::from_micros);
        settings.max(listener.unwrap_or_default())
    }
}

/// Reasons that a stack gives an application when it gives up a connection.
pub const GIVEN_UP: [CloseReason; 4] = [
    CloseReason::TimedOut,
    CloseReason::HostUnreachable,
    CloseReason::Prohibited,
    CloseReason::PortUnreachable,
];

fn gave_up(facts: &Facts<'_>, side: usize) -> bool {
    GIVEN_UP.into_iter().any(|reason| facts.sides[side].fate == Some(Fate::Ended(reason)))
}

/// An end that waits as if the connection were open has missed the reset, which nobody repeats; or
/// it came before its turn, and the challenge (RFC 5961 §3.2) was lost; or there was one too many
/// to be sent.
fn may_be_reset(facts: &Facts<'_>, side: usize) -> bool {
    let is_missed = facts.sides.iter().any(|side| side.account.harmed_at.is_some());
    let is_dropped = |drops: &Drops| {
        let reasons = [DropReason::RateLimited, DropReason::HopLimit, DropReason::Signature];
        reasons.into_iter().any(|reason| drops.get(reason) > 0)
    };
    facts.sides[side].fate != Some(Fate::Busy)
        || is_missed
        || facts.sides.iter().any(|side| is_dropped(side.drops))
}

/// The client's SYN has gone more than once, or may have been copied on its way, or an attacker
/// repeats it.
fn syn_comes_again(facts: &Facts<'_>) -> bool {
    let is_replayed = facts.scenario.attacks.iter().any(|attack| attack.kind == Forgery::Replay);
    facts.sides[CLIENT].account.syns > 1 || facts.scenario.wire.duplicate > 0 || is_replayed
}

fn is_unreachable(facts: &Facts<'_>, side: usize) -> bool {
    let reasons = [CloseReason::HostUnreachable, CloseReason::Prohibited, CloseReason::PortUnreachable];
    reasons.into_iter().any(|reason| facts.sides[side].fate == Some(Fate::Ended(reason)))
}

/// A locked route, or `IPV6_PMTUDISC_INTERFACE`, keeps an end from hearing what ICMP tells of the
/// path.
fn is_deaf_to_mtu(facts: &Facts<'_>) -> bool {
    let locked =
        facts.scenario.hosts.iter().flat_map(|host| &host.route).any(|word| word.starts_with("mtu lock"));
    let is_deaf =
        |value| matches!(mtu_discovery(value), PathMtuDiscovery::Interface | PathMtuDiscovery::Omit);
    locked || facts.sides.iter().any(|side| side.values("path_mtu_discovery").any(is_deaf))
}

const _: () = assert!(CLIENT == 0 && SERVER == 1);
