//! What a sender knew of its path and what it waited for, over time: as its stack told it.

use super::{busiest, ms, of_clients};
use crate::exchange::Exchange;
use crate::report::Recording;
use ::picture::{Graph, Series, Style, Tone};
use core::net::SocketAddr;
use proto::{LimitedBy, TraceEvent, Traced};

const KILO: f64 = 1000.0;

/// What keeps a sender waiting, from the bottom row.
const WAITS: [(LimitedBy, &str); 6] = [
    (LimitedBy::Idle, "idle"),
    (LimitedBy::Application, "app"),
    (LimitedBy::SendBuffer, "sndbuf"),
    (LimitedBy::Receiver, "rwnd"),
    (LimitedBy::Congestion, "cwnd"),
    (LimitedBy::Handshake, "opening"),
];

/// Of the connection that moved most, and there of the end that sent more.
pub(super) fn graphs(recording: &Recording<'_>, connections: &[Exchange]) -> Vec<Graph> {
    let Some(number) = busiest(connections) else { return Vec::new() };
    let exchange = &connections[number];
    let sender = sender(recording, exchange);
    let of_which = match connections.len() {
        1 => String::new(),
        count => format!("connection {} of {count}, ", number + 1),
    };
    let end = if sender.is_client { "client" } else { "server" };
    let note = format!("{}{of_which}at the {end}", of_clients(recording));
    vec![
        sender.windows().with_note(note.clone()),
        sender.waits(ms(exchange.ended_at)).with_note(note.clone()),
        sender.round_trips().with_note(note),
    ]
}

struct Sender<'a> {
    is_client: bool,
    events: Vec<&'a TraceEvent>,
    exchange: &'a Exchange,
}

fn sender<'a>(recording: &'a Recording<'_>, exchange: &'a Exchange) -> Sender<'a> {
    let text = |by_client: bool| -> u64 {
        let segments = exchange.journeys.iter().filter_map(|journey| journey.segment());
        let of_end = segments.filter(|segment| (segment.src() == exchange.client) == by_client);
        of_end.map(|segment| u64::from(segment.text_len())).sum()
    };
    let is_client = text(true) > text(false);
    let local = if is_client { exchange.client } else { exchange.server };
    let belongs = |event: &&TraceEvent| {
        let ours = |(from, to): (SocketAddr, SocketAddr)| {
            from == local && (is_client || to.port() == exchange.client.port())
        };
        event.ends.is_some_and(ours) && event.at >= exchange.started_at && event.at <= exchange.ended_at
    };
    let traced = recording.capture.traced().iter();
    let of_end = traced.filter(|(host, _)| recording.is_client(*host) == is_client);
    let events = of_end.map(|(_, event)| event).filter(belongs).collect();
    Sender { is_client, events, exchange }
}

impl Sender<'_> {
    fn windows(&self) -> Graph {
        let (mut cwnd, mut ssthresh) = (Vec::new(), Vec::new());
        for event in &self.events {
            let at = ms(event.at);
            match event.what {
                Traced::Cwnd { from, to } => {
                    if cwnd.is_empty() {
                        cwnd.push((ms(self.exchange.started_at), f64::from(from) / KILO));
                    }
                    cwnd.push((at, f64::from(to) / KILO));
                }
                Traced::Ssthresh { to, .. } if to != u32::MAX => ssthresh.push((at, f64::from(to) / KILO)),
                _ => {}
            }
        }
        self.hold([&mut cwnd, &mut ssthresh]);
        Graph::new("Windows", "bytes", "kB")
            .with(Series::new("in flight", Style::Step, Tone::Grey, self.in_flight()))
            .with(Series::new("cwnd", Style::Step, Tone::Blue, cwnd))
            .with(Series::new("ssthresh", Style::Step, Tone::Orange, ssthresh).dashed())
    }

    /// The last values are good until the end.
    fn hold(&self, lines: [&mut Vec<(f64, f64)>; 2]) {
        for line in lines {
            if let Some((_, last)) = line.last().copied() {
                line.push((ms(self.exchange.ended_at), last));
            }
        }
    }

    /// Bytes sent and not yet known to have come, from its packets.
    fn in_flight(&self) -> Vec<(f64, f64)> {
        let local = if self.is_client { self.exchange.client } else { self.exchange.server };
        let mut moments = Vec::new();
        for journey in self.exchange.journeys.iter().filter(|journey| !journey.copy) {
            let Some(segment) = journey.segment() else { continue };
            if segment.src() == local {
                if segment.text_len() > 0 {
                    moments.push((journey.sent.at, true, segment.text_seq() + segment.text_len()));
                }
            } else if let (Some(seen), Some(segment)) = (&journey.received, journey.received_segment())
                && segment.tcp.flags.contains(wire::Flags::ACK)
            {
                moments.push((seen.at, false, segment.tcp.ack));
            }
        }
        // Stable: at one moment an acknowledgement that came is before what it let out.
        moments.sort_by_key(|(at, is_sent, _)| (*at, *is_sent));
        let isn = if self.is_client { Some(self.exchange.client_isn) } else { self.exchange.server_isn };
        let Some(isn) = isn else { return Vec::new() };
        let (mut sent, mut acked) = (0u32, 0u32);
        let mut points = Vec::new();
        for (at, is_sent, number) in moments {
            let number = number.since(isn + 1);
            if number > u32::MAX / 2 {
                continue;
            }
            if is_sent {
                sent = sent.max(number);
            } else {
                acked = acked.max(number);
            }
            points.push((ms(at), f64::from(sent.saturating_sub(acked)) / KILO));
        }
        points
    }

    fn waits(&self, end: f64) -> Graph {
        let changes: Vec<(f64, LimitedBy)> = self
            .events
            .iter()
            .filter_map(|event| match event.what {
                Traced::Limited { to, .. } => Some((ms(event.at), to)),
                _ => None,
            })
            .collect();
        // One series for each reason, so that each has a colour and a name in the legend.
        let mut graph = Graph::of_names("What the sender waited for", WAITS.map(|(_, name)| name.to_owned()));
        for (row, (reason, name)) in WAITS.into_iter().enumerate() {
            if !changes.iter().any(|(_, by)| *by == reason) {
                continue;
            }
            let value = |by: LimitedBy| if by == reason { row as f64 } else { -1.0 };
            let mut points: Vec<(f64, f64)> = changes.iter().map(|(at, by)| (*at, value(*by))).collect();
            points.dedup_by_key(|(_, value)| *value);
            points.push((end, -1.0));
            graph = graph.with(Series::new(name, Style::Spans, Tone::nth(row), points));
        }
        graph
    }

    fn round_trips(&self) -> Graph {
        let mut times = (Vec::new(), Vec::new());
        for event in &self.events {
            if let Traced::Rtt { srtt, rto, .. } = event.what {
                let at = ms(event.at);
                times.0.push((at, crate::ladder::milliseconds(srtt)));
                times.1.push((at, crate::ladder::milliseconds(rto)));
            }
        }
        self.hold([&mut times.0, &mut times.1]);
        Graph::new("Round trip, as the sender measures it", "time", "ms")
            .with(Series::new("smoothed round trip", Style::Step, Tone::Blue, times.0))
            .with(Series::new("time-out", Style::Step, Tone::Orange, times.1).dashed())
    }
}
