//! One connection of a capture: its packets as a ladder, and what each of its sides sent and waited for.
use super::text::{guess, share, side_name, time};
use crate::values::counted;
use ::lab::ladder::{Ladder, Rung, Way, flags_text, milliseconds, options_text};
use ::lab::report::{Align, Page, Table};
use capture::{Connection, Limit, Packet, Side};
use std::time::Duration;
use wire::{Flags, SeqNum};

/// Packets that are shown: a ladder of more is no picture.
const RUNGS_MAX: usize = 400;

/// Gathers what there is to show.
#[derive(Debug)]
pub(super) struct Detail {
    number: u64,
    rungs: Vec<Rung>,
    left_out: u64,
    begun_at: Duration,
    /// What each side's counters were before the packet.
    before: [Marks; 2],
    copies: u64,
    over: Option<Connection>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    retransmitted: u64,
    out_of_order: u64,
    duplicates: u64,
}

impl Detail {
    pub(super) fn of(number: u64) -> Detail {
        Detail {
            number,
            rungs: Vec::new(),
            left_out: 0,
            begun_at: Duration::ZERO,
            before: Default::default(),
            copies: 0,
            over: None,
        }
    }

    /// A packet of `connection`, as that is afterwards.
    pub(super) fn note_packet(&mut self, connection: &Connection, packet: &Packet<'_>) {
        if connection.number() != self.number {
            return;
        }
        if self.rungs.is_empty() {
            self.begun_at = packet.at;
        }
        let side = if packet.src == connection.client() { Side::Client } else { Side::Server };
        let half = connection.half(side);
        let now = Marks {
            retransmitted: half.retransmitted_segments(),
            out_of_order: half.out_of_order(),
            duplicates: half.duplicates(),
        };
        let before = std::mem::replace(&mut self.before[side as usize], now);
        if connection.copies() > std::mem::replace(&mut self.copies, connection.copies()) {
            return;
        }
        if self.rungs.len() == RUNGS_MAX {
            self.left_out += 1;
            return;
        }
        let is_duplicate = now.duplicates > before.duplicates;
        let is_retransmitted = now.retransmitted > before.retransmitted
            || (is_repeated_syn(connection, packet) && !is_duplicate);
        let remarks = [
            (is_retransmitted, "retransmission"),
            (now.out_of_order > before.out_of_order, "out of order"),
            (is_duplicate, "duplicate"),
            (packet.window == 0 && !packet.flags.intersects(Flags::SYN | Flags::RST), "window closed"),
        ];
        let remarks =
            remarks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, what)| what.to_owned()).collect();
        self.rungs.push(rung(connection, packet, side, self.begun_at, remarks));
    }

    pub(super) fn note_over(&mut self, connection: Connection) {
        if connection.number() == self.number {
            self.over = Some(connection);
        }
    }

    /// Its packets; `None`: there was no connection of this number.
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
            rungs: self.rungs.clone(),
        })
    }

    /// Packets behind those of the ladder.
    pub(super) fn left_out(&self) -> usize {
        usize::try_from(self.left_out).unwrap_or(usize::MAX)
    }

    /// False: there was none of this number.
    pub(super) fn render(&self, page: &mut Page) -> bool {
        let Some(ladder) = self.ladder() else { return false };
        page.ladder(&ladder);
        if self.left_out > 0 {
            page.line(&format!("… and {} more", counted(self.left_out, "packet", "packets")));
        }
        self.render_words(page)
    }

    /// How it opened, and what each side sent and waited for. False: there was none of this number.
    pub(super) fn render_words(&self, page: &mut Page) -> bool {
        let Some(connection) = &self.over else { return false };
        opening(page, connection);
        Side::BOTH.into_iter().for_each(|side| direction(page, connection, side));
        true
    }
}

fn is_repeated_syn(connection: &Connection, packet: &Packet<'_>) -> bool {
    packet.is_syn() && connection.handshake().syns() > 1
        || packet.is_syn_ack() && connection.handshake().syn_acks() > 1
}

fn opening(page: &mut Page, connection: &Connection) {
    page.heading("Opening");
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
        page.line(&format!("first byte of the answer: {} after the first SYN", time(first_byte)));
    }
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

fn rung(
    connection: &Connection,
    packet: &Packet<'_>,
    side: Side,
    begun_at: Duration,
    remarks: Vec<String>,
) -> Rung {
    let isn = |side: Side| connection.half(side).isn().unwrap_or(SeqNum(0));
    let at = Some(milliseconds(packet.at.saturating_sub(begun_at)));
    let (way, sent_ms, received_ms) = match side {
        Side::Client => (Way::ToServer, at, None),
        Side::Server => (Way::ToClient, None, at),
    };
    Rung {
        way,
        sent_ms,
        received_ms,
        flags: flags_text(packet.flags),
        seq: packet.seq.since(isn(side)),
        ack: packet.flags.contains(Flags::ACK).then(|| packet.ack.since(isn(side.other()))),
        len: packet.text_len,
        window: None,
        options: options_text(&packet.options),
        lost_by: None,
        remarks,
    }
}
