//! The packets of a run as a drawn ladder.

use crate::capture::Journey;
use crate::exchange::Exchange;
use crate::ladder::{Ladder, Rung, Way};
use ::picture::Kind;
use proto::Instant;

/// Maximum packets on a ladder.
const RUNGS_MAX: usize = 240;

/// Builds the ladder of the first packets of all connections, in order of sending. Time zero is the
/// start of the run. `left` names the clients.
pub(super) fn ladder(left: &str, connections: &[Exchange]) -> Option<::picture::Ladder> {
    let mut packets: Vec<(Instant, ::picture::Rung)> = Vec::new();
    for (n, exchange) in connections.iter().enumerate() {
        packets.extend(rungs(exchange).into_iter().map(|(at, mut rung)| {
            // Several connections on one ladder are distinguished by numbers.
            if connections.len() > 1 {
                let which = format!("connection {}", n + 1);
                rung.detail = format!("{which}: {}", rung.detail);
                rung.said = if rung.said.is_empty() { which } else { format!("{which} · {}", rung.said) };
            }
            (at, rung)
        }));
    }
    // The sort is stable: packets of one instant stay in the order of their connection.
    packets.sort_by_key(|(at, _)| *at);
    let all = connections.iter().flat_map(|exchange| &exchange.journeys);
    let left_out = all.filter(|journey| journey.segment().is_some()).count().saturating_sub(RUNGS_MAX);
    packets.truncate(RUNGS_MAX);
    let rungs: Vec<::picture::Rung> = packets.into_iter().map(|(_, rung)| rung).collect();
    (!rungs.is_empty()).then(|| ::picture::Ladder {
        title: "Packets".into(),
        left: left.into(),
        right: "server".into(),
        rungs,
        left_out,
    })
}

/// Converts a ladder after which `left_out` packets are omitted.
pub fn drawing(ladder: &Ladder, left_out: usize) -> ::picture::Ladder {
    let mut seen = Seen::default();
    let shown = ladder.rungs.len().min(RUNGS_MAX);
    ::picture::Ladder {
        title: "Packets".into(),
        left: ladder.left.clone(),
        right: ladder.right.clone(),
        rungs: ladder.rungs[..shown].iter().map(|rung| seen.rung(rung)).collect(),
        left_out: left_out + ladder.rungs.len() - shown,
    }
}

fn rungs(exchange: &Exchange) -> Vec<(Instant, ::picture::Rung)> {
    let journeys: Vec<Journey> = exchange.journeys.iter().take(RUNGS_MAX).cloned().collect();
    let ladder = Ladder::of_journeys("", exchange, Instant::ZERO, &journeys);
    let mut seen = Seen::default();
    let times = journeys.iter().filter(|journey| journey.segment().is_some()).map(|journey| journey.sent.at);
    times.zip(&ladder.rungs).map(|(at, rung)| (at, seen.rung(rung))).collect()
}

/// Earlier packets: they identify retransmissions, and where the window closes or opens.
#[derive(Default)]
struct Seen {
    highest: [u32; 2],
    acked: [Option<u32>; 2],
    closed: [bool; 2],
}

impl Seen {
    fn rung(&mut self, rung: &Rung) -> ::picture::Rung {
        let kind = self.kind(rung);
        let (left_ms, right_ms) = match rung.way {
            Way::ToServer => (rung.sent_ms, rung.received_ms),
            Way::ToClient => (rung.received_ms, rung.sent_ms),
        };
        ::picture::Rung {
            way: match rung.way {
                Way::ToServer => ::picture::Way::Right,
                Way::ToClient => ::picture::Way::Left,
            },
            kind,
            left_ms,
            right_ms,
            label: label(rung),
            numbers: numbers(rung),
            said: rung.remarks.join(" · "),
            detail: detail(rung),
            lost_by: rung.lost_by.clone(),
        }
    }

    fn kind(&mut self, rung: &Rung) -> Kind {
        let side = usize::from(rung.way == Way::ToClient);
        let is_syn = rung.flags.contains("SYN");
        let end = rung.seq + rung.len + u32::from(is_syn);
        let is_said = |words: &[&str]| rung.remarks.iter().any(|remark| words.contains(&remark.as_str()));
        let is_sent_once = is_said(&["copy", "keep-alive", "zero window probe", "out-of-order", "duplicate"]);
        let again = rung.len > 0 && rung.seq < self.highest[side] && !is_sent_once;
        self.highest[side] = self.highest[side].max(end);
        let is_closed = rung.window == Some(0);
        let window = is_closed != self.closed[side] && !rung.flags.contains("RST");
        self.closed[side] = is_closed;
        self.acked[side] = rung.ack;
        match () {
            () if rung.flags.contains("RST") => Kind::Reset,
            () if is_syn
                && (rung.len > 0 || rung.options.iter().any(|option| option.starts_with("cookie"))) =>
            {
                Kind::Cookie
            }
            () if again => Kind::Again,
            () if window => Kind::Window,
            () if is_syn || rung.flags.contains("FIN") && rung.len == 0 => Kind::Control,
            () if rung.len > 0 => Kind::Data,
            () => Kind::Ack,
        }
    }
}

fn label(rung: &Rung) -> String {
    let flags = match rung.flags.as_str() {
        "PSH ACK" if rung.len > 0 => "data",
        "ACK" if rung.len > 0 => "data",
        flags => flags,
    };
    let mut label = flags.replace(" PSH", "");
    if rung.len > 0 {
        label.push_str(&format!(" {} B", rung.len));
    }
    for option in cookies(rung) {
        label.push_str(if is_request(option) { " cookie request" } else { " cookie" });
    }
    if let Some(by) = &rung.lost_by {
        label.push_str(&format!(", lost: {by}"));
    }
    label
}

fn cookies(rung: &Rung) -> impl Iterator<Item = &String> {
    rung.options.iter().filter(|option| option.starts_with("cookie"))
}

fn is_request(option: &str) -> bool {
    option.starts_with("cookie request")
}

fn numbers(rung: &Rung) -> String {
    let mut numbers = format!("seq {}", rung.seq);
    if let Some(ack) = rung.ack {
        numbers.push_str(&format!(" · ack {ack}"));
    }
    for cookie in cookies(rung).filter(|option| !is_request(option)) {
        let short: String = cookie.chars().take(15).collect();
        let dots = if short.len() < cookie.len() { "…" } else { "" };
        numbers.push_str(&format!(" · {short}{dots}"));
    }
    numbers
}

fn detail(rung: &Rung) -> String {
    let from = if rung.way == Way::ToServer { "client to server" } else { "server to client" };
    let mut parts = vec![format!("{} from {from}", rung.flags), format!("seq {}", rung.seq)];
    parts.extend(rung.ack.map(|ack| format!("ack {ack}")));
    parts.push(format!("{} bytes of data", rung.len));
    parts.extend(rung.window.map(|window| format!("window {window} bytes")));
    let is_said = |option: &&String| rung.window.is_some() && option.starts_with("win ");
    parts.extend(rung.options.iter().filter(|option| !is_said(option)).cloned());
    parts.extend(rung.sent_ms.map(|at| format!("sent at {at} ms")));
    parts.extend(rung.received_ms.map(|at| format!("arrived at {at} ms")));
    parts.extend(rung.lost_by.as_ref().map(|by| format!("lost: {by}")));
    parts.extend(rung.remarks.iter().cloned());
    parts.join(", ")
}
