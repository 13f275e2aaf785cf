//! The time-sequence graph: bytes sent, acknowledgments, and the right edge of the window.
//!
//! After tcptrace by S. Ostermann: a vertical bar for each segment, a staircase of acknowledgments
//! below them, and one of the window above.

use super::{Offsets, ms};
use crate::capture::Journey;
use crate::exchange::Exchange;
use crate::segment::Segment;
use ::picture::{BYTES, Graph, Series, Style, Tone};
use wire::Flags;

/// Draws the direction that carried more data, at the sender's end. Connections follow each other
/// along the time axis.
pub(super) fn graph(connections: &[Exchange]) -> Graph {
    let downward: u64 = connections.iter().map(|one| text_of(one, false)).sum();
    let upward: u64 = connections.iter().map(|one| text_of(one, true)).sum();
    let from_client = upward > downward;
    let mut drawn = Drawn::default();
    connections.iter().for_each(|one| drawn.connection(one, from_client));
    // Without data there is nothing to draw.
    if drawn.data.is_empty() {
        return Graph::new("Time-sequence graph", "sequence number", BYTES);
    }
    let (from, to) = if from_client { ("client", "server") } else { ("server", "client") };
    let note = format!("bytes from the {from} to the {to}, as the {from} saw them");
    let window = drawn.windows_end();
    Graph::new("Time-sequence graph", "sequence number", BYTES)
        .with_note(note)
        .with(Series::new("acknowledged", Style::Step, Tone::Green, drawn.acked))
        .with(window)
        .with(Series::new("lost", Style::Crosses, Tone::Red, drawn.lost))
        .with(Series::bars("data", Tone::Blue, drawn.data))
        .with(Series::bars("retransmitted", Tone::Orange, drawn.again))
        .with(Series::bars("SACKed", Tone::Teal, drawn.selective))
}

fn text_of(exchange: &Exchange, from_client: bool) -> u64 {
    let segments = exchange.journeys.iter().filter(|journey| !journey.copy).filter_map(Journey::segment);
    segments
        .filter(|segment| (segment.src() == exchange.client) == from_client)
        .map(|segment| u64::from(segment.text_len()))
        .sum()
}

#[derive(Default)]
struct Drawn {
    data: Vec<(f64, f64, f64)>,
    again: Vec<(f64, f64, f64)>,
    selective: Vec<(f64, f64, f64)>,
    lost: Vec<(f64, f64)>,
    acked: Vec<(f64, f64)>,
    window: Vec<(f64, f64)>,
}

/// A window that reaches this many times beyond the data would reduce the data to a line at the
/// bottom.
const FAR: f64 = 1.6;

impl Drawn {
    fn windows_end(&mut self) -> Series {
        let points = core::mem::take(&mut self.window);
        let series = Series::new("window's end", Style::Step, Tone::Purple, points).dashed();
        let sent = self.data.iter().map(|(_, _, to)| *to).fold(0.0, f64::max);
        if series.greatest() > FAR * sent { series.aside() } else { series }
    }

    fn connection(&mut self, exchange: &Exchange, from_client: bool) {
        let offsets = Offsets::new(exchange, from_client);
        let is_forward = |segment: &Segment| (segment.src() == exchange.client) == from_client;
        let (mut highest, mut scale) = (0, None);
        let mut answers: Vec<(&Journey, Segment)> = Vec::new();
        for journey in exchange.journeys.iter().filter(|journey| !journey.copy) {
            let Some(segment) = journey.segment() else { continue };
            if is_forward(&segment) {
                highest = self.segment(journey, &segment, &offsets, highest);
            } else if let Some(segment) = journey.received_segment() {
                answers.push((journey, segment));
            }
        }
        answers.sort_by_key(|(journey, _)| journey.received.as_ref().map(|seen| seen.at));
        // The staircases start again and do not continue those of the previous connection.
        if let Some((journey, _)) = answers.first().filter(|_| !self.acked.is_empty()) {
            let pause = (ms(journey.sent.at), f64::NAN);
            self.acked.push(pause);
            self.window.push(pause);
        }
        // A SYN acknowledges nothing but offers a window: both staircases start here, even if only
        // one acknowledgment follows.
        if let Some((journey, syn)) = answers.first().filter(|(_, first)| first.is_syn())
            && let Some(seen) = &journey.received
        {
            self.acked.push((ms(seen.at), 0.0));
            self.window.push((ms(seen.at), f64::from(syn.tcp.window)));
        }
        for (journey, segment) in answers {
            if segment.tcp.flags.contains(Flags::SYN) {
                scale = segment.tcp.options.window_scale;
            }
            self.answer(journey, &segment, &offsets, scale.unwrap_or(0));
        }
    }

    /// Draws a segment with data. Updates the highest sequence number sent.
    fn segment(&mut self, journey: &Journey, segment: &Segment, offsets: &Offsets, highest: u32) -> u32 {
        let from = offsets.of(segment.text_seq()).filter(|_| segment.text_len() > 0);
        let Some(from) = from else { return highest };
        let to = from.saturating_add(segment.text_len());
        let at = ms(journey.sent.at);
        let bars = if from < highest { &mut self.again } else { &mut self.data };
        bars.push((at, f64::from(from), f64::from(to)));
        if journey.lost.is_some() {
            self.lost.push((at, f64::from(to)));
        }
        highest.max(to)
    }

    fn answer(&mut self, journey: &Journey, segment: &Segment, offsets: &Offsets, scale: u8) {
        let Some(seen) = journey.received.as_ref().filter(|_| segment.tcp.flags.contains(Flags::ACK)) else {
            return;
        };
        let at = ms(seen.at);
        let Some(acked) = offsets.of(segment.tcp.ack) else { return };
        // An acknowledgment of the FIN alone is one beyond the data.
        let value = f64::from(acked);
        let scale = if segment.tcp.flags.contains(Flags::SYN) { 0 } else { scale };
        let window = u32::from(segment.tcp.window) << scale.min(14);
        self.acked.push((at, value));
        self.window.push((at, value + f64::from(window)));
        for block in segment.tcp.options.sack.iter() {
            if let (Some(from), Some(to)) = (offsets.of(block.0), offsets.of(block.1))
                && from >= acked
                && to > from
            {
                self.selective.push((at, f64::from(from), f64::from(to)));
            }
        }
    }
}
