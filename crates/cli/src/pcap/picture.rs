//! Pictures of a capture's connections: the time-sequence graph of tcptrace, bytes in flight, and
//! the ladder, all at the place of capture.

use super::detail::Detail;
use ::lab::ladder::milliseconds;
use ::lab::report::{Page, PageStyle};
use ::lab::report::{drawing, picture_words};
use capture::{Connection, Event, Events, Packet, Side};
use picture::{BYTES, Block, Document, Graph, Run, Series, Style, Tone};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::{Flags, SeqNum};

/// Most connections on a page.
pub(super) const DRAWN_MAX: usize = 8;
/// Most packets drawn of a connection.
const PACKETS_MAX: usize = 200_000;
/// Packets with sequence numbers of another connection.
const NOT_ITS_OWN: [Event; 2] = [Event::OlderConnection, Event::OtherServer];

/// Collects the pictures of some connections.
pub(super) struct Pictures {
    /// By the connection's number.
    wanted: BTreeMap<u64, Picture>,
}

struct Picture {
    detail: Detail,
    begun_at: Option<Duration>,
    packets: usize,
    directions: [Direction; 2],
}

/// The points of one direction: data of one side, and acknowledgements of the other.
#[derive(Default)]
struct Direction {
    /// Sequence number of the first byte.
    base: Option<SeqNum>,
    highest: u32,
    acked: u32,
    data: Vec<(f64, f64, f64)>,
    again: Vec<(f64, f64, f64)>,
    selective: Vec<(f64, f64, f64)>,
    acks: Vec<(f64, f64)>,
    window: Vec<(f64, f64)>,
    flight: Vec<(f64, f64)>,
}

impl Pictures {
    pub(super) fn of(numbers: impl IntoIterator<Item = u64>) -> Pictures {
        let picture = |number| Picture {
            detail: Detail::of(number),
            begun_at: None,
            packets: 0,
            directions: Default::default(),
        };
        Pictures { wanted: numbers.into_iter().map(|number| (number, picture(number))).collect() }
    }

    /// Adds a packet of `connection`, whose state already includes the packet.
    pub(super) fn note_packet(&mut self, connection: &Connection, packet: &Packet<'_>) {
        if let Some(picture) = self.wanted.get_mut(&connection.number()) {
            picture.detail.note_packet(connection, packet);
            picture.note_packet(connection, packet);
        }
    }

    pub(super) fn note_over(&mut self, connection: Connection) {
        if let Some(picture) = self.wanted.get_mut(&connection.number()) {
            picture.detail.note_over(connection);
        }
    }

    /// Returns the details of a connection.
    pub(super) fn detail(&self, number: u64) -> Option<&Detail> {
        Some(&self.wanted.get(&number)?.detail)
    }

    /// Returns the page, which starts with the summary of the capture.
    pub(super) fn document(&self, title: String, question: String, whole: &Page) -> Document {
        let mut document = Document::new(title, question);
        document.answer = picture_words(whole);
        for (number, picture) in &self.wanted {
            let mut page = Page::new(PageStyle::default());
            if !picture.detail.render_words(&mut page) {
                continue;
            }
            document.answer.push(Block::Heading(format!("Connection {number}")));
            document.answer.extend(picture_words(&page));
            document.runs.push(picture.run(*number));
        }
        document
    }
}

impl Picture {
    fn note_packet(&mut self, connection: &Connection, packet: &Packet<'_>) {
        let begun_at = *self.begun_at.get_or_insert(packet.at);
        self.packets += 1;
        if self.packets > PACKETS_MAX {
            return;
        }
        let at = milliseconds(packet.at.saturating_sub(begun_at));
        let side = if packet.src == connection.client() { Side::Client } else { Side::Server };
        let events = connection.last_events();
        if connection.is_last_copy() || NOT_ITS_OWN.iter().any(|event| events.contains(*event)) {
            return;
        }
        self.directions[side as usize].text(at, packet, events);
        if packet.flags.contains(Flags::ACK) && !packet.flags.contains(Flags::RST) {
            let scale = match packet.flags.contains(Flags::SYN) {
                true => Some(0),
                false => connection.window_scale(side),
            };
            self.directions[side.other() as usize].answer(at, packet, scale.unwrap_or(0));
        }
    }

    fn run(&self, number: u64) -> Run {
        let [up, down] = &self.directions;
        let (sender, receiver, direction) = match up.highest > down.highest {
            true => ("client", "server", up),
            false => ("server", "client", down),
        };
        let left_out = match self.packets.saturating_sub(PACKETS_MAX) {
            0 => String::new(),
            more => format!("; {more} more packets are not drawn"),
        };
        let note = format!("bytes from the {sender} to the {receiver}, at the place of capture{left_out}");
        let graphs = [direction.sequence().with_note(note), direction.in_flight()];
        Run {
            name: format!("connection {number}"),
            graphs: graphs.into_iter().filter(|graph| !graph.is_empty()).collect(),
            ladder: self.detail.ladder().map(|ladder| drawing(&ladder, self.detail.left_out())),
        }
    }
}

impl Direction {
    /// Adds a packet of this side.
    fn text(&mut self, at: f64, packet: &Packet<'_>, events: Events) {
        let is_syn = packet.flags.contains(Flags::SYN);
        let first = packet.seq + u32::from(is_syn);
        if is_syn {
            self.base = Some(first);
        }
        let base = *self.base.get_or_insert(first);
        let from = first.since(base);
        if packet.text_len == 0 || from > u32::MAX / 2 || events.contains(Event::KeepAlive) {
            return;
        }
        let to = from.saturating_add(packet.text_len);
        let bars = if events.is_retransmission() { &mut self.again } else { &mut self.data };
        bars.push((at, f64::from(from), f64::from(to)));
        self.highest = self.highest.max(to);
        self.note_flight(at);
    }

    /// Notes an acknowledgement of the other side.
    fn answer(&mut self, at: f64, packet: &Packet<'_>, scale: u8) {
        let base = *self.base.get_or_insert(packet.ack);
        let acked = packet.ack.since(base);
        if acked > u32::MAX / 2 {
            return;
        }
        self.acked = self.acked.max(acked);
        let (value, window) = (f64::from(acked), u32::from(packet.window) << scale.min(14));
        self.acks.push((at, value));
        self.window.push((at, value + f64::from(window)));
        for block in packet.options.sack.iter() {
            let (from, to) = (block.0.since(base), block.1.since(base));
            if from >= acked && to > from {
                self.selective.push((at, f64::from(from), f64::from(to)));
            }
        }
        self.note_flight(at);
    }

    fn note_flight(&mut self, at: f64) {
        self.flight.push((at, f64::from(self.highest.saturating_sub(self.acked))));
    }

    fn sequence(&self) -> Graph {
        let window =
            Series::new("window's end", Style::Step, Tone::Purple, self.window.clone()).dashed().aside();
        Graph::new("Time and sequence", "sequence number", BYTES)
            .with(Series::new("acknowledged", Style::Step, Tone::Green, self.acks.clone()))
            .with(window)
            .with(Series::bars("data", Tone::Blue, self.data.iter().copied()))
            .with(Series::bars("retransmitted", Tone::Orange, self.again.iter().copied()))
            .with(Series::bars("SACKed", Tone::Teal, self.selective.iter().copied()))
    }

    fn in_flight(&self) -> Graph {
        Graph::new("Bytes in flight", "sent but not acknowledged", BYTES)
            .with_note(
                "as seen at the place of capture: near the sender, these are the bytes it \
                had in flight",
            )
            .with(Series::new("in flight", Style::Step, Tone::Blue, self.flight.clone()))
    }
}
