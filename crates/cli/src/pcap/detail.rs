//! One connection of a capture: its packets as a ladder, and the traffic and waits of each side.
use super::text::{guess, share, side_name, time};
use crate::values::counted;
use ::lab::ladder::{Ladder, Rung, Way, flags_text, milliseconds, options_text};
use ::lab::report::{Align, Page, Table};
use capture::{Connection, Event, Limit, Opening, Packet, Side};
use std::time::Duration;
use wire::{Flags, SeqNum};

/// Most packets shown: a longer ladder is unreadable.
const RUNGS_MAX: usize = 400;

/// Collects the packets and the state of the connection.
#[derive(Debug)]
pub(super) struct Detail {
    number: u64,
    seen: Vec<Seen>,
    left_out: u64,
    begun_at: Duration,
    over: Option<Connection>,
}

/// A packet whose numbers are made relative once the connection's first ones are known.
#[derive(Debug)]
struct Seen {
    side: Side,
    seq: SeqNum,
    ack: Option<SeqNum>,
    rung: Rung,
}

impl Detail {
    pub(super) fn of(number: u64) -> Detail {
        Detail { number, seen: Vec::new(), left_out: 0, begun_at: Duration::ZERO, over: None }
    }

    /// Adds a packet of `connection`, whose state already includes the packet.
    pub(super) fn note_packet(&mut self, connection: &Connection, packet: &Packet<'_>) {
        if connection.number() != self.number {
            return;
        }
        if self.seen.is_empty() {
            self.begun_at = packet.at;
        }
        let side = if packet.src == connection.client() { Side::Client } else { Side::Server };
        if connection.is_last_copy() {
            return;
        }
        if self.seen.len() == RUNGS_MAX {
            self.left_out += 1;
            return;
        }
        let events = connection.last_events();
        let remark = |event: Event| match (event, events.duplicate_acks()) {
            (Event::DuplicateAck, nth) => format!("{event} {nth}"),
            _ => event.to_string(),
        };
        let remarks = events.iter().map(remark).collect();
        self.seen.push(Seen {
            side,
            seq: packet.seq,
            ack: packet.flags.contains(Flags::ACK).then_some(packet.ack),
            rung: rung(connection, packet, side, self.begun_at, remarks),
        });
    }

    pub(super) fn note_over(&mut self, connection: Connection) {
        if connection.number() == self.number {
            self.over = Some(connection);
        }
    }

    /// Returns the ladder; `None` if there was no connection of this number.
    pub(super) fn ladder(&self) -> Option<Ladder> {
        let connection = self.over.as_ref()?;
        Some(Ladder {
            title: format!(
                "Connection {}: {} to {}, at the place of capture",
                self.number,
                connection.client(),
                connection.server()
            ),
            left: "client".to_owned(),
            right: "server".to_owned(),
            rungs: self.rungs(connection),
        })
    }

    /// Returns the packets, with relative sequence numbers. If the SYN was not captured, the first
    /// number seen becomes 1, as in Wireshark.
    fn rungs(&self, connection: &Connection) -> Vec<Rung> {
        let first_of = |side: Side| {
            let numbers =
                self.seen.iter().find_map(|seen| if seen.side == side { Some(seen.seq) } else { seen.ack });
            connection.half(side).isn().or(numbers.map(|first| first - 1)).unwrap_or(SeqNum(0))
        };
        let first = Side::BOTH.map(first_of);
        let relative = |seen: &Seen| Rung {
            seq: seen.seq.since(first[seen.side as usize]),
            ack: seen.ack.map(|ack| ack.since(first[seen.side.other() as usize])),
            ..seen.rung.clone()
        };
        self.seen.iter().map(relative).collect()
    }

    /// Returns the number of packets after those of the ladder.
    pub(super) fn left_out(&self) -> usize {
        usize::try_from(self.left_out).unwrap_or(usize::MAX)
    }

    /// Writes everything. Returns false if no connection has this number.
    pub(super) fn render(&self, page: &mut Page) -> bool {
        let Some(ladder) = self.ladder() else { return false };
        page.ladder(&ladder);
        if self.left_out > 0 {
            page.line(&format!("… and {} more", counted(self.left_out, "packet", "packets")));
        }
        if let Some(connection) = &self.over {
            scales(page, connection);
        }
        self.render_words(page)
    }

    /// Writes how the connection opened, and the traffic and waits of each side. Returns false if
    /// no connection has this number.
    pub(super) fn render_words(&self, page: &mut Page) -> bool {
        let Some(connection) = &self.over else { return false };
        opening(page, connection);
        Side::BOTH.into_iter().for_each(|side| direction(page, connection, side));
        true
    }
}

fn opening(page: &mut Page, connection: &Connection) {
    page.heading("Opening");
    opened(page, connection);
    let fast_open = connection.fast_open();
    page.line(&format!("Fast Open: {fast_open}"));
    if let Some(advice) = fast_open.advice() {
        page.paragraph(&format!("{advice}."));
    }
    let path = |side: Side| connection.path(side).map_or("not seen".to_owned(), time);
    page.line(&format!(
        "round trip: {} ({} to the client and {} to the server from the place of capture)",
        connection.rtt().map_or("not known".to_owned(), time),
        path(Side::Client),
        path(Side::Server)
    ));
    if let Some(first_byte) = connection.time_to_first_byte() {
        page.line(&format!("first byte of the reply: {} after the first SYN", time(first_byte)));
    }
}

/// Writes what is unusual about the handshake.
fn opened(page: &mut Page, connection: &Connection) {
    let opening = connection.opening();
    if opening != Opening::Open {
        page.line(&format!("attempt: {opening}"));
    }
    if connection.handshake().is_simultaneous() {
        page.line("simultaneous open: each end sent a SYN (RFC 9293 section 3.5)");
    }
    if connection.older_packets() > 0 {
        page.paragraph(&format!(
            "{} with sequence numbers that do not fit the handshake: of an older connection between \
            the same ports (a challenge ACK, a reply from TIME-WAIT, a late segment), or forged. \
            Their numbers are ignored.",
            counted(connection.older_packets(), "packet", "packets")
        ));
    }
    if connection.other_answers() > 0 {
        page.paragraph(&format!(
            "{} of another server behind the same address, or of one that answered a retransmitted \
            SYN with other sequence numbers. Their numbers are ignored.",
            counted(connection.other_answers(), "packet", "packets")
        ));
    }
    if connection.captured_only().is_some() && !matches!(opening, Opening::OneWay(_)) {
        page.line(&format!(
            "only the {}'s packets were captured",
            connection.captured_only().map_or("", side_name)
        ));
    }
}

/// Writes how the windows in the ladder are scaled.
fn scales(page: &mut Page, connection: &Connection) {
    let scale = |side: Side| match connection.window_scale(side) {
        Some(0) => format!("{} not scaled", side_name(side)),
        Some(bits) => format!("{} scaled by {}", side_name(side), 1_u32 << bits),
        None => {
            format!("{} as in the header, because its scale is unknown (no SYN captured)", side_name(side))
        }
    };
    page.line(&format!(
        "win: the receive window in bytes; {}, {}.",
        scale(Side::Client),
        scale(Side::Server)
    ));
}

fn direction(page: &mut Page, connection: &Connection, side: Side) {
    let half = connection.half(side);
    page.heading(&format!("From the {}", side_name(side)));
    let mut facts = vec![
        format!(
            "{} in {}",
            counted(half.text_bytes(), "byte", "bytes"),
            counted(half.segments(), "segment", "segments")
        ),
        format!("{} retransmitted", half.retransmitted_segments()),
    ];
    let mut also = |count: u64, one: &str, many: &str| {
        if count > 0 {
            facts.push(counted(count, one, many));
        }
    };
    also(half.out_of_order(), "out of order", "out of order");
    also(half.duplicates(), "that the network delivered twice", "that the network delivered twice");
    also(half.probes(), "probe of the other side", "probes of the other side");
    also(half.duplicate_acks(), "duplicate ACK", "duplicate ACKs");
    also(half.zero_windows(), "that closed its own receive window", "that closed its own receive window");
    let sender = half.sender();
    also(sender.delayed_acks(), "wait for a delayed acknowledgement", "waits for a delayed acknowledgement");
    also(
        sender.restarts(),
        "restart of the congestion window after a pause",
        "restarts of the congestion window after a pause",
    );
    also(sender.flight_max().into(), "byte in flight at most", "bytes in flight at most");
    let lacks = "acknowledged and not in the capture";
    also(half.unseen_bytes(), &format!("byte more {lacks}"), &format!("bytes more {lacks}"));
    page.paragraph(&format!("{}.", facts.join(", ")));
    let mut table = Table::new([("waited", Align::Right), ("of all", Align::Right), ("for", Align::Left)]);
    let mut waits: Vec<Limit> =
        Limit::ALL.into_iter().filter(|limit| half.sender().waited(*limit) > Duration::ZERO).collect();
    waits.sort_by_key(|limit| std::cmp::Reverse(half.sender().waited(*limit)));
    if waits.is_empty() {
        return;
    }
    for limit in waits {
        let waited = half.sender().waited(limit);
        let what = format!("{limit}{}", guess(limit, connection, side));
        table.row([time(waited), share(waited, connection.duration()), what]);
    }
    page.table(&table);
}

/// Returns the receive window in bytes; `None` if its scale is unknown. The window of a SYN is
/// never scaled (RFC 7323 section 2.2).
fn window(connection: &Connection, packet: &Packet<'_>, side: Side) -> Option<u32> {
    let scale = if packet.flags.contains(Flags::SYN) { Some(0) } else { connection.window_scale(side) };
    scale.map(|scale| u32::from(packet.window) << scale)
}

fn rung(
    connection: &Connection,
    packet: &Packet<'_>,
    side: Side,
    begun_at: Duration,
    remarks: Vec<String>,
) -> Rung {
    let at = Some(milliseconds(packet.at.saturating_sub(begun_at)));
    let (way, sent_ms, received_ms) = match side {
        Side::Client => (Way::ToServer, at, None),
        Side::Server => (Way::ToClient, None, at),
    };
    let window = window(connection, packet, side);
    let told = window.map_or_else(|| format!("win {}?", packet.window), |bytes| format!("win {bytes}"));
    let scale = packet.options.window_scale.map(|bits| format!("wscale {bits}"));
    let options = [told].into_iter().chain(options_text(&packet.options)).chain(scale).collect();
    Rung {
        way,
        sent_ms,
        received_ms,
        flags: flags_text(packet.flags),
        seq: packet.seq.0,
        ack: None,
        len: packet.text_len,
        window,
        options,
        lost_by: None,
        remarks,
    }
}
