//! The summary of a capture as text.
use super::account::{Account, Strays, Unseen};
use super::reading;
use crate::values::counted;
use ::lab::ladder::{milliseconds, milliseconds_text};
use ::lab::report::{Align, Page, Table};
use capture::{CaptureFile, Connection, Limit, Opening, Side};
use std::time::Duration;

/// The first retransmission timeout (RFC 6298 section 2): a younger attempt has not failed yet.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Writes the summary: what was read, which connections (`filter`), outcomes of Fast Open, the
/// connections. `command` numbers them in the same way.
pub(super) fn render(
    page: &mut Page,
    name: &str,
    filter: Option<&str>,
    command: &str,
    file: &CaptureFile<'_>,
    account: &Account,
) {
    let compressed = if file.is_compressed() { "compressed " } else { "" };
    page.paragraph(&format!(
        "{name}: {compressed}{}, {} in {} over {}.",
        file.format(),
        counted(account.packets(), "TCP packet", "TCP packets"),
        counted(account.connections(), "connection", "connections"),
        time(account.span())
    ));
    if account.connections() == 0
        && let Some(filter) = filter
    {
        page.paragraph(&format!("No connection of this capture is {filter}."));
    }
    reading::render(page, file, account);
    if account.evicted() > 0 {
        page.paragraph(&format!(
            "{} idle when there were too many at once: later packets of these are counted as \
            others.",
            counted(account.evicted(), "connection was", "connections were")
        ));
    }
    completeness(page, account.unseen());
    strays(page, account.strays());
    if account.connections() > 0 {
        failures(page, account);
        fast_open(page, account);
        connections(page, command, account);
    }
}

/// Writes what is missing in the capture. The reason is unknown: only the program that wrote the
/// capture knows what it dropped.
fn completeness(page: &mut Page, unseen: Unseen) {
    let Unseen { connections: affected, bytes, one_way } = unseen;
    if affected > 0 {
        let affected = counted(affected, "connection", "connections");
        page.paragraph(&format!(
            "The capture is not complete: of {affected}, {bytes} acknowledged bytes are missing. \
            Their bytes, times and waits are those of the rest. Either the capturing program \
            dropped packets, or they took another path. If tcpdump reported packets \"dropped by \
            kernel\", use a larger buffer: tcpdump -B 65536."
        ));
    }
    if one_way > 0 {
        page.paragraph(&format!(
            "Of {} only one direction was captured: the other took another path, or a filter \
            excluded it. Their round trips and waits are unknown.",
            counted(one_way, "connection", "connections")
        ));
    }
}

/// Reports packets that are ignored because their sequence numbers are not those of the handshake.
fn strays(page: &mut Page, strays: Strays) {
    let between = |connections: u64| counted(connections, "connection", "connections");
    let (older, other) = (strays.older, strays.other);
    if older.0 > 0 {
        page.paragraph(&format!(
            "{} between the ports of {} with sequence numbers that do not fit the handshake: of an \
            older connection (a challenge ACK, a reply from TIME-WAIT, a late segment), or forged. \
            Their numbers are ignored.",
            counted(older.0, "packet", "packets"),
            between(older.1)
        ));
    }
    if other.0 > 0 {
        page.paragraph(&format!(
            "{} of another server behind the same address, or of one that answered a retransmitted \
            SYN with other sequence numbers, in {}. Their numbers are ignored.",
            counted(other.0, "packet", "packets"),
            between(other.1)
        ));
    }
}

/// Lists the failed attempts, each with its reason.
fn failures(page: &mut Page, account: &Account) {
    let all: u64 = account.failures().map(|(_, failures)| failures.count).sum();
    if all == 0 {
        return;
    }
    let shown: Vec<&Connection> =
        account.kept().into_iter().filter(|connection| connection.opening().is_failure()).collect();
    page.heading(&match shown.len() as u64 == all {
        true => "Failed attempts".to_owned(),
        false => format!("Failed attempts: {} of {all} (--top N shows more)", shown.len()),
    });
    let kinds = account.failures().map(|(_, failures)| format!("{} × {}", failures.count, failures.title));
    if shown.len() as u64 != all {
        page.paragraph(&format!("{}.", kinds.collect::<Vec<_>>().join(", ")));
    }
    let columns = [
        ("#", Align::Right),
        ("client", Align::Left),
        ("server", Align::Left),
        ("what happened", Align::Left),
    ];
    let mut table = Table::new(columns);
    for connection in &shown {
        table.row([
            connection.number().to_string(),
            connection.client().to_string(),
            connection.server().to_string(),
            what_happened(connection, account),
        ]);
    }
    if !shown.is_empty() {
        page.table(&table);
    }
}

fn fast_open(page: &mut Page, account: &Account) {
    page.heading("Fast Open");
    let mut table = Table::new([
        ("connections", Align::Right),
        ("what the handshake says", Align::Left),
        ("round trip", Align::Right),
        ("in all", Align::Left),
    ]);
    for (kind, handshakes) in account.handshakes() {
        let rtt = handshakes.rtt.map(|(least, most)| match least == most {
            true => time(least),
            false => format!("{}–{}", time(least), time(most)),
        });
        let effect = match (handshakes.saved, handshakes.wasted) {
            (Duration::ZERO, Duration::ZERO) => String::new(),
            (saved, Duration::ZERO) => format!("{} saved", time(saved)),
            (_, wasted) => format!("{} lost", time(wasted)),
        };
        table.row([handshakes.count.to_string(), kind.to_string(), rtt.unwrap_or_default(), effect]);
    }
    page.table(&table);
    for (kind, advice) in account.handshakes().filter_map(|(kind, _)| Some((kind, kind.advice()?))) {
        page.gap();
        page.paragraph(&format!("{kind}: {advice}."));
    }
}

fn connections(page: &mut Page, command: &str, account: &Account) {
    let kept: Vec<&Connection> =
        account.kept().into_iter().filter(|connection| !connection.opening().is_failure()).collect();
    let failed: u64 = account.failures().map(|(_, failures)| failures.count).sum();
    let (shown, all) = (kept.len(), account.connections() - failed);
    if shown > 0 {
        page.heading(&match shown as u64 == all {
            true => "Connections".to_owned(),
            false => format!(
                "Connections: the {shown} of {all} that the network slowed down most (--top N shows more)"
            ),
        });
        listed(page, &kept);
    }
    if account.kept().is_empty() {
        return;
    }
    page.gap();
    page.paragraph(&format!(
        "{command} --connection N shows the packets of one connection, and all waits of its two \
        sides."
    ));
}

fn listed(page: &mut Page, kept: &[&Connection]) {
    let mut table = Table::new([
        ("#", Align::Right),
        ("client", Align::Left),
        ("server", Align::Left),
        ("Fast Open", Align::Left),
        ("RTT", Align::Right),
        ("first byte", Align::Right),
        ("lasted", Align::Right),
        ("bytes up", Align::Right),
        ("down", Align::Right),
        ("resent", Align::Right),
        ("waited longest for", Align::Left),
    ]);
    for connection in kept {
        let [up, down] = Side::BOTH.map(|side| connection.half(side));
        table.row([
            connection.number().to_string(),
            connection.client().to_string(),
            connection.server().to_string(),
            connection.fast_open().name().to_owned(),
            connection.rtt().map(time).unwrap_or_default(),
            connection.time_to_first_byte().map(time).unwrap_or_default(),
            time(connection.duration()),
            up.text_bytes().to_string(),
            down.text_bytes().to_string(),
            (up.retransmitted_segments() + down.retransmitted_segments()).to_string(),
            longest(connection),
        ]);
    }
    page.table(&table);
}

/// Describes how the attempt failed, and says if the capture ends too early to be sure.
fn what_happened(connection: &Connection, account: &Account) -> String {
    let opening = connection.opening();
    let after = account
        .ended_at()
        .map(|end| end.saturating_sub(connection.first_at().saturating_add(connection.duration())));
    match after.filter(|after| *after < ANSWER_WITHIN && may_go_on(opening)) {
        Some(after) => format!("{opening}; the capture ends {} later", time(after)),
        None => opening.to_string(),
    }
}

/// True if the answer may only be too late for the capture.
fn may_go_on(opening: Opening) -> bool {
    matches!(
        opening,
        Opening::NoAnswer { syns: 1, .. }
            | Opening::NotAcknowledged { syn_acks: 1 }
            | Opening::OlderConnection { syns: 1 }
    )
}

/// Names the longest wait of either side, and marks it if it is only likely. Names a wait for the
/// other side's data only if there is no other wait: the other side has the reason.
fn longest(connection: &Connection) -> String {
    let waits = Side::BOTH.into_iter().flat_map(|side| Limit::ALL.map(|limit| (side, limit)));
    let waited = |(side, limit): (Side, Limit)| connection.half(side).sender().waited(limit);
    let longest = waits
        .filter(|wait| waited(*wait) > Duration::ZERO)
        .max_by_key(|wait| (wait.1 != Limit::Peer, waited(*wait)));
    let Some((side, limit)) = longest else { return String::new() };
    let share = share(waited((side, limit)), connection.duration());
    format!("{}: {} {share}{}", side_name(side), short(limit), guess(limit, connection, side))
}

/// Returns a short name of a limit, for a column.
fn short(limit: Limit) -> &'static str {
    match limit {
        Limit::Application => "application",
        Limit::Peer => "other side's data",
        Limit::ReceiveWindow => "receive window",
        Limit::Congestion => "congestion window or send buffer",
        Limit::Nagle => "Nagle",
        Limit::Loss => "loss",
    }
}

/// Returns `, likely` if the limit is inferred.
pub(super) fn guess(limit: Limit, connection: &Connection, side: Side) -> &'static str {
    if limit.is_certain(connection, side) { "" } else { ", likely" }
}

pub(super) fn share(part: Duration, whole: Duration) -> String {
    match whole.as_nanos() {
        0 => "0 %".to_owned(),
        nanos => format!("{} %", (part.as_nanos() * 100 + nanos / 2) / nanos),
    }
}

pub(super) fn side_name(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

/// Formats a time for people.
pub(super) fn time(duration: Duration) -> String {
    match duration.as_secs() {
        0 => milliseconds_text(milliseconds(duration)),
        _ => format!("{:.2} s", duration.as_secs_f64()),
    }
}
