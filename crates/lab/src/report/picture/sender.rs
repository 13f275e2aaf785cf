//! A sender's view of its path and its reasons for waiting, over time, as reported by its stack.

use super::held::Held;
use super::{Offsets, busiest, ms};
use crate::capture::{HostId, Journey};
use crate::exchange::Exchange;
use crate::report::Recording;
use ::picture::{BYTES, Graph, Series, Style, Tone};
use core::net::SocketAddr;
use proto::{Instant, LimitedBy, TraceEvent, Traced};
use std::collections::BTreeSet;

/// Reasons for waiting, from the bottom row: in the words of `ss`, and in plain words.
const WAITS: [(LimitedBy, &str, &str); 7] = [
    (LimitedBy::Idle, "idle", "idle: everything is acknowledged"),
    (LimitedBy::Application, "app", "app: everything written is sent"),
    (LimitedBy::SendBuffer, "sndbuf", "sndbuf: the send buffer is full"),
    (LimitedBy::Receiver, "rwnd", "rwnd: the receiver's window"),
    (LimitedBy::Congestion, "cwnd", "cwnd: the congestion window"),
    (LimitedBy::Handshake, "opening", "opening: the handshake"),
    (LimitedBy::Device, "device", "device: queues of the sender's host"),
];

/// Draws the end that sent more: for all connections if they follow each other, otherwise for the
/// one that transferred most.
pub(super) fn graphs(recording: &Recording<'_>, client: HostId, connections: &[Exchange]) -> Vec<Graph> {
    let Some(number) = busiest(connections) else { return Vec::new() };
    let is_client = sends(&connections[number]);
    let follow = connections.is_sorted_by(|one, next| last_data_at(one) <= next.started_at)
        && connections.iter().all(|one| sends(one) == is_client);
    let (shown, of_which) = match (connections.len(), follow) {
        (1, _) => (connections, String::new()),
        (count, true) => (connections, format!("{count} connections, ")),
        (count, false) => (&connections[number..=number], format!("connection {} of {count}, ", number + 1)),
    };
    let sender = |one| if is_client { at_client(recording, client, one) } else { at_server(recording, one) };
    let senders: Vec<Sender<'_>> = shown.iter().map(sender).collect();
    let end = if is_client { "client" } else { "server" };
    let note = format!("{of_which}at the {end}");
    [windows(&senders), waits(&senders), round_trips(&senders)]
        .map(|graph| graph.with_note(note.clone()))
        .into()
}

/// Returns whether the client sends more than the server.
fn sends(exchange: &Exchange) -> bool {
    let text = |by_client: bool| -> u64 {
        let segments = exchange.journeys.iter().filter_map(|journey| journey.segment());
        let of_end = segments.filter(|segment| (segment.src() == exchange.client) == by_client);
        of_end.map(|segment| u64::from(segment.text_len())).sum()
    };
    text(true) > text(false)
}

/// Returns the time of the last data, or of the start of the connection.
fn last_data_at(exchange: &Exchange) -> Instant {
    let carries = |journey: &&Journey| journey.segment().is_some_and(|segment| segment.text_len() > 0);
    let sent = exchange.journeys.iter().filter(carries).map(|journey| journey.sent.at);
    sent.fold(exchange.started_at, Instant::max)
}

/// Joins the lines of consecutive senders. Each line ends with `pause` where the next begins.
fn joined(lines: impl Iterator<Item = Vec<(f64, f64)>>, pause: f64) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let begun_at = line[0].0;
        points.truncate(points.partition_point(|(at, _)| *at <= begun_at));
        if !points.is_empty() {
            points.push((begun_at, pause));
        }
        points.extend(line);
    }
    points
}

/// Adds all lines, each from its first point on. Connections overlap if one begins before the last
/// bytes of another are acknowledged.
fn summed(lines: impl Iterator<Item = Vec<(f64, f64)>>) -> Vec<(f64, f64)> {
    let mut changes: Vec<(f64, f64)> = Vec::new();
    for line in lines {
        let mut last = 0.0;
        for (at, value) in line {
            changes.push((at, value - last));
            last = value;
        }
    }
    // The sort is stable: the changes of one line stay in order.
    changes.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let mut sum = 0.0;
    let add = |(at, change): (f64, f64)| {
        sum += change;
        (at, sum)
    };
    changes.into_iter().map(add).collect()
}

fn windows(senders: &[Sender<'_>]) -> Graph {
    let lines: Vec<[Vec<(f64, f64)>; 2]> = senders.iter().map(Sender::windows).collect();
    let of = |n: usize| joined(lines.iter().map(|line| line[n].clone()), f64::NAN);
    Graph::new("Windows", "data", BYTES)
        .with(Series::new(
            "in flight",
            Style::Step,
            Tone::Grey,
            summed(senders.iter().map(Sender::in_flight)),
        ))
        .with(Series::new("cwnd", Style::Step, Tone::Blue, of(0)))
        .with(Series::new("ssthresh", Style::Step, Tone::Orange, of(1)).dashed())
}

fn round_trips(senders: &[Sender<'_>]) -> Graph {
    let lines: Vec<[Vec<(f64, f64)>; 2]> = senders.iter().map(Sender::round_trips).collect();
    let of = |n: usize| joined(lines.iter().map(|line| line[n].clone()), f64::NAN);
    Graph::new("Round-trip time measured by the sender", "time", "ms")
        .with(Series::new("smoothed round-trip time", Style::Step, Tone::Blue, of(0)))
        .with(Series::new("time-out", Style::Step, Tone::Orange, of(1)).dashed())
}

fn waits(senders: &[Sender<'_>]) -> Graph {
    let is_held = senders.iter().any(|sender| !sender.waits(LimitedBy::Device, 0.0).is_empty());
    // Few hosts have a card.
    let rows = if is_held { &WAITS[..] } else { &WAITS[..WAITS.len() - 1] };
    let names = rows.iter().map(|(_, name, _)| (*name).to_owned());
    let mut graph = Graph::of_names("Limits of the sender", names);
    // One series per reason, so that each has a color and a name in the legend.
    for (row, (reason, _, words)) in rows.iter().enumerate().rev() {
        let points = joined(senders.iter().map(|sender| sender.waits(*reason, row as f64)), -1.0);
        graph = graph.with(Series::new(*words, Style::Spans, Tone::nth(row), points));
    }
    graph
}

/// The information of a packet about data in flight: offsets from the first byte.
enum Told {
    Sent { end: u32 },
    Came { ack: u32, held: Vec<(u32, u32)> },
}

struct Sender<'a> {
    is_client: bool,
    events: Vec<&'a TraceEvent>,
    exchange: &'a Exchange,
}

fn at_client<'a>(recording: &'a Recording<'_>, client: HostId, exchange: &'a Exchange) -> Sender<'a> {
    let belongs = |host: HostId, from, to| host == client && (from, to) == (exchange.client, exchange.server);
    Sender { is_client: true, events: events(recording, exchange, belongs), exchange }
}

fn at_server<'a>(recording: &'a Recording<'_>, exchange: &'a Exchange) -> Sender<'a> {
    // Behind a NAT the server knows its client by another address.
    let seen = exchange.journeys.iter().filter_map(Journey::received_segment);
    let clients: BTreeSet<SocketAddr> =
        seen.filter(|segment| segment.dst() == exchange.server).map(|segment| segment.src()).collect();
    let belongs =
        |host, from, to| !recording.is_client(host) && from == exchange.server && clients.contains(&to);
    Sender { is_client: false, events: events(recording, exchange, belongs), exchange }
}

/// Returns the events that stacks reported of a connection. `belongs` decides by the host of an
/// event, and by its own and its peer's address.
fn events<'a>(
    recording: &'a Recording<'_>,
    exchange: &Exchange,
    belongs: impl Fn(HostId, SocketAddr, SocketAddr) -> bool,
) -> Vec<&'a TraceEvent> {
    let span = exchange.started_at..=exchange.ended_at;
    let traced = recording.capture.traced().iter().filter(|(_, event)| span.contains(&event.at));
    let own = traced.filter(|(host, event)| event.ends.is_some_and(|(from, to)| belongs(*host, from, to)));
    own.map(|(_, event)| event).collect()
}

impl Sender<'_> {
    /// Returns the congestion window and the threshold.
    fn windows(&self) -> [Vec<(f64, f64)>; 2] {
        let (mut cwnd, mut ssthresh) = (Vec::new(), Vec::new());
        for event in &self.events {
            let at = ms(event.at);
            match event.what {
                Traced::Cwnd { from, to } => {
                    if cwnd.is_empty() {
                        cwnd.push((ms(self.exchange.started_at), f64::from(from)));
                    }
                    cwnd.push((at, f64::from(to)));
                }
                Traced::Ssthresh { to, .. } if to != u32::MAX => ssthresh.push((at, f64::from(to))),
                _ => {}
            }
        }
        self.hold([&mut cwnd, &mut ssthresh]);
        [cwnd, ssthresh]
    }

    /// Extends the lines to the end with their last values.
    fn hold(&self, lines: [&mut Vec<(f64, f64)>; 2]) {
        for line in lines {
            if let Some((_, last)) = line.last().copied() {
                line.push((ms(self.exchange.ended_at), last));
            }
        }
    }

    /// Returns the bytes sent and not yet acknowledged, also not by SACK, according to the packets.
    fn in_flight(&self) -> Vec<(f64, f64)> {
        let local = if self.is_client { self.exchange.client } else { self.exchange.server };
        let offsets = Offsets::new(self.exchange, self.is_client);
        let offset = |number| offsets.of(number);
        let mut moments = Vec::new();
        for journey in self.exchange.journeys.iter().filter(|journey| !journey.copy) {
            let Some(segment) = journey.segment() else { continue };
            if segment.src() == local {
                if segment.text_len() > 0 {
                    let end = offset(segment.text_seq() + segment.text_len());
                    moments.extend(end.map(|end| (journey.sent.at, Told::Sent { end })));
                }
            } else if let (Some(seen), Some(segment)) = (&journey.received, journey.received_segment())
                && segment.tcp.flags.contains(wire::Flags::ACK)
            {
                let blocks = segment.tcp.options.sack.iter();
                let held = blocks.filter_map(|block| Some((offset(block.0)?, offset(block.1)?))).collect();
                moments.extend(offset(segment.tcp.ack).map(|ack| (seen.at, Told::Came { ack, held })));
            }
        }
        // The sort is stable: at equal times an acknowledgment comes before the data it released.
        moments.sort_by_key(|(at, told)| (*at, matches!(told, Told::Sent { .. })));
        if moments.is_empty() {
            return Vec::new();
        }
        let (mut sent, mut acked, mut beyond) = (0u32, 0u32, Held::default());
        let mut points = vec![(ms(self.exchange.started_at), 0.0)];
        for (at, told) in moments {
            match told {
                Told::Sent { end } => sent = sent.max(end),
                Told::Came { ack, held } => {
                    acked = acked.max(ack);
                    beyond.take(held, acked);
                }
            }
            points.push((ms(at), f64::from(sent.saturating_sub(acked).saturating_sub(beyond.bytes()))));
        }
        points
    }

    /// Returns the line of one reason: at the height of its row while it applied, below zero
    /// otherwise.
    fn waits(&self, reason: LimitedBy, row: f64) -> Vec<(f64, f64)> {
        let changes = self.events.iter().filter_map(|event| match event.what {
            Traced::Limited { to, .. } => Some((ms(event.at), to)),
            _ => None,
        });
        let mut points: Vec<(f64, f64)> =
            changes.map(|(at, by)| (at, if by == reason { row } else { -1.0 })).collect();
        points.dedup_by_key(|(_, row)| *row);
        points.push((ms(self.exchange.ended_at), -1.0));
        // It may have applied for no time at all.
        let waits = points.windows(2).any(|pair| pair[0].1 >= 0.0 && pair[0].0 < pair[1].0);
        if waits { points } else { Vec::new() }
    }

    /// Returns the smoothed round-trip time and the retransmission timeout.
    fn round_trips(&self) -> [Vec<(f64, f64)>; 2] {
        let mut times = [Vec::new(), Vec::new()];
        for event in &self.events {
            if let Traced::Rtt { srtt, rto, .. } = event.what {
                let at = ms(event.at);
                times[0].push((at, crate::ladder::milliseconds(srtt)));
                times[1].push((at, crate::ladder::milliseconds(rto)));
            }
        }
        self.hold(times.each_mut());
        times
    }
}
