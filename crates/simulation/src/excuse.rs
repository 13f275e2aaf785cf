//! Ends of connections that a scenario rightly brings about.
//!
//! An end that did not hear everything needs one of these. Each says in the standard's words why TCP may, or must, give up there; an end
//! without an excuse is a failure. What the streams carry is never excused.

use crate::scenario::{Opt, Scenario, Step};
use crate::world::{CLIENT, Fate, SERVER};
use core::time::Duration;
use proto::{CloseReason, Config, Counters, Drops};

/// What is known of one connection when its world is quiet.
pub struct Facts<'a> {
    /// The world.
    pub scenario: &'a Scenario,
    /// The longest pause of a reader, ms.
    pub longest_pause: u64,
    /// Client and server.
    pub sides: [Side<'a>; 2],
}

/// What is known of one end.
pub struct Side<'a> {
    /// `None`: the server has never accepted it.
    pub fate: Option<Fate>,
    /// The settings at the end.
    pub config: &'a Config,
    /// Counters of its whole stack.
    pub counters: &'a Counters,
    /// Packets its stack has dropped.
    pub drops: &'a Drops,
    /// Options its socket began with.
    pub options: &'a [Opt],
    /// What its application does.
    pub steps: &'a [Step],
}

/// A reason, and the words that allow it.
pub struct Excuse {
    /// What happened.
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
        applies: |facts, side| facts.sides[1 - side].fate == Some(Fate::Left),
    },
    Excuse {
        name: "somebody would read no more",
        words: "RFC 1122 §4.2.2.13: text for a host that has closed and reads no more SHOULD be answered by a RST, to show that data was lost",
        applies: |facts, _| facts.sides.iter().any(|side| side.steps.contains(&Step::ReadNoMore)),
    },
    Excuse {
        name: "the application said to give up",
        words: "RFC 9293 §3.9.1.1 and RFC 5482: the user timeout; RFC 1122 §4.2.3.5: R2, configurable",
        applies: |facts, side| gave_up(facts, side) && is_impatient(facts, side),
    },
    Excuse {
        name: "the peer gave up, as it was told to",
        words: "RFC 9293 §3.8.3: whoever reaches R2 closes the connection; the other end learns of it by a reset, or not at all",
        applies: |facts, side| is_impatient(facts, 1 - side) && !is_content(facts, 1 - side),
    },
    Excuse {
        name: "ICMP said that the peer cannot be reached",
        words: "RFC 5461 §4.1 and RFC 1122 §4.2.3.9: a soft error may end an attempt to open, and is the reason told when one gives up",
        applies: |facts, side| facts.scenario.wire.icmp > 0 && is_unreachable(facts, side),
    },
    Excuse {
        name: "the peer was told by ICMP that we cannot be reached",
        words: "as before, at the other end",
        applies: |facts, side| facts.scenario.wire.icmp > 0 && is_unreachable(facts, 1 - side),
    },
    Excuse {
        name: "there was no room for the connection",
        words: "RFC 9293 §3.10.7.2 leaves a listener's queue to the implementation; listen(2): a backlog that is full refuses or ignores",
        applies: |facts, _| {
            let server = &facts.sides[SERVER];
            let overflowed = server.counters.listen_drops > 0 || server.counters.listen_overflows > 0;
            server.fate.is_none() && overflowed
                || server.fate.is_none() && facts.scenario.listener.backlog < 8
        },
    },
    Excuse {
        name: "nobody held the connection any more, and its peer was silent for long",
        words: "tcp_orphan_retries: a connection that was closed is given up after eight unanswered time-outs or window probes; RFC 1122 \
                §4.2.2.17 lets a window stay closed only as long as the receiver answers",
        applies: |facts, side| {
            let peer = &facts.sides[1 - side];
            let reads_late = facts.longest_pause > 60_000 || slept_long(facts.scenario);
            let gave_up = peer.counters.abort_on_timeout > 0;
            peer.fate == Some(Fate::Complete) && gave_up && (reads_late || is_impatient(facts, 1 - side))
        },
    },
    Excuse {
        name: "the server gave up the opening, as it was told to",
        words: "tcp_synack_retries, rto_initial: a half-open request ends when its SYN-ACKs have gone unanswered for so long",
        applies: |facts, _| facts.sides[SERVER].fate.is_none() && is_impatient(facts, SERVER),
    },
    Excuse {
        name: "the peer's TIME-WAIT was too short",
        words: "RFC 9293 §3.6.1: TIME-WAIT lasts 2 MSL, so that the last ACK can be sent again; firstbyte.time_wait and tcp_max_tw_buckets end \
                it before",
        applies: |facts, side| {
            let peer = &facts.sides[1 - side];
            let short =
                peer.config.time_wait < Duration::from_secs(60) || peer.config.tcp_max_tw_buckets < 100;
            peer.fate == Some(Fate::Complete) && short
        },
    },
    Excuse {
        name: "nothing carried the opening",
        words: "RFC 9293 §3.8.3: R2 for a SYN; the wire, or the device, took none while it was tried",
        applies: |facts, side| {
            let wire = &facts.scenario.wire;
            let fails = wire.loss > 0 || wire.corrupt > 0 || !wire.outages.is_empty();
            let refuses = facts.scenario.hosts.iter().any(|host| host.refusals > 0);
            side == CLIENT && gave_up(facts, side) && facts.sides[SERVER].fate.is_none() && (fails || refuses)
                || side == SERVER && facts.sides[SERVER].fate.is_none() && gave_up(facts, CLIENT)
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
        applies: |facts, _| facts.sides.iter().any(|side| has(side, "min_hops")),
    },
    Excuse {
        name: "lingering ended",
        words: "SO_LINGER: close discards what is not delivered in time, by a reset",
        applies: |facts, side| {
            [side, 1 - side].into_iter().any(|side| has(&facts.sides[side], "linger"))
                || has(&facts.sides[1 - side], "linger2")
        },
    },
    Excuse {
        name: "the peer did not wait for the end",
        words: "tcp_fin_timeout, RFC 9293 §3.6 note: FIN-WAIT-2 of a connection nobody holds ends after a while; what comes later is reset",
        applies: |facts, side| {
            facts.sides[1 - side].fate == Some(Fate::Complete)
                && facts.sides[1 - side].config.tcp_fin_timeout < Duration::from_secs(60)
        },
    },
];

/// The first excuse that applies to this end.
pub fn find(facts: &Facts<'_>, side: usize) -> Option<&'static str> {
    EXCUSES.iter().find(|excuse| (excuse.applies)(facts, side)).map(|excuse| excuse.name)
}

fn has(side: &Side<'_>, name: &str) -> bool {
    let begun = side.options.iter().any(|option| option.0 == name && (option.1 > 0 || name == "linger"));
    begun || side.steps.iter().any(|step| matches!(step, Step::Set(option) if option.0 == name))
}

/// Has heard all there was, or has left by itself.
fn is_content(facts: &Facts<'_>, side: usize) -> bool {
    matches!(facts.sides[side].fate, Some(Fate::Complete | Fate::Left))
}

fn gave_up(facts: &Facts<'_>, side: usize) -> bool {
    let reasons = [
        CloseReason::TimedOut,
        CloseReason::HostUnreachable,
        CloseReason::Prohibited,
        CloseReason::PortUnreachable,
    ];
    reasons.into_iter().any(|reason| facts.sides[side].fate == Some(Fate::Ended(reason)))
}

fn is_unreachable(facts: &Facts<'_>, side: usize) -> bool {
    let reasons = [CloseReason::HostUnreachable, CloseReason::Prohibited, CloseReason::PortUnreachable];
    reasons.into_iter().any(|reason| facts.sides[side].fate == Some(Fate::Ended(reason)))
}

/// A setting, or an option, makes this end give up earlier than it would by default.
fn is_impatient(facts: &Facts<'_>, side: usize) -> bool {
    let end = &facts.sides[side];
    let config = end.config;
    let usual = Config::default();
    let settings = config.tcp_retries2 < usual.tcp_retries2
        || config.tcp_syn_retries < usual.tcp_syn_retries
        || side == SERVER && config.tcp_synack_retries < usual.tcp_synack_retries
        || config.tcp_orphan_retries != usual.tcp_orphan_retries
        || config.tcp_rto_max_ms < usual.tcp_rto_max_ms
        || config.rto_initial != usual.rto_initial
        // A longer time-out leaves room for fewer of them: R2 is counted in time.
        || config.tcp_rto_min_us != usual.tcp_rto_min_us;
    let options = ["user_timeout", "syn_retries", "rto_max", "rto_min", "thin_linear_timeouts", "keepalive"];
    let changed = facts.scenario.changes.iter().any(|change| {
        change.side == side && ["retries", "rto_", "keepalive"].iter().any(|part| change.name.contains(part))
    });
    settings || changed || options.iter().any(|name| has(end, name)) || slept_long(facts.scenario)
}

/// A locked route, or `IPV6_PMTUDISC_INTERFACE`, keeps an end from hearing what ICMP tells of the path.
fn is_deaf_to_mtu(facts: &Facts<'_>) -> bool {
    let locked =
        facts.scenario.hosts.iter().flat_map(|host| &host.route).any(|word| word.starts_with("mtu lock"));
    locked || facts.sides.iter().any(|side| has(side, "path_mtu_discovery"))
}

/// A machine that sleeps does not hear its peer: what goes unanswered meanwhile counts.
fn slept_long(scenario: &Scenario) -> bool {
    scenario.sleeps.iter().map(|(_, ms)| ms).sum::<u64>() > 60_000
}

const _: () = assert!(CLIENT == 0 && SERVER == 1);
