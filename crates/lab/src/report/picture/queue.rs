//! Lengths of the queues of links and cards, and waiting times of packets.

use super::ms;
use crate::capture::{Capture, CardHeld, HostId, QueueSample, WireId};
use crate::middlebox::Direction;
use crate::report::Recording;
use ::picture::{Graph, Series, Style, Tone};
use std::collections::BTreeMap;

#[derive(Default)]
struct Seen {
    length: Vec<(f64, f64)>,
    waited: Vec<(f64, f64)>,
}

/// Draws each wire on which anything waited.
pub(super) fn graphs(capture: &Capture) -> Vec<Graph> {
    let mut wires: BTreeMap<WireId, Seen> = BTreeMap::new();
    for sample in capture.queues() {
        match sample {
            QueueSample::Length { wire, at, packets, .. } => {
                let seen = wires.entry(*wire).or_default();
                if seen.length.is_empty() {
                    seen.length.push((0.0, 0.0));
                }
                seen.length.push((ms(*at), *packets as f64));
            }
            QueueSample::Waited { wire, since, nanos, .. } => {
                wires.entry(*wire).or_default().waited.push((ms(*since), *nanos as f64 / 1e6));
            }
        }
    }
    wires.retain(|_, seen| seen.length.len() > 1);
    let names = names(wires.keys().map(|wire| wire.direction()));
    let waits = names.into_iter().zip(wires.values());
    let mut length = Graph::new("Queue", "packets waiting", "");
    let mut waited = Graph::new("Time in the queue", "time until sent", "ms");
    for (n, (name, seen)) in waits.enumerate() {
        length = length.with(Series::new(name.clone(), Style::Step, Tone::nth(n), seen.length.clone()));
        waited = waited.with(Series::new(name, Style::Dots, Tone::nth(n), seen.waited.clone()));
    }
    vec![length, waited]
}

/// A place in a card, and its contents.
type Place = (&'static str, fn(&CardHeld) -> usize);

const SENDING: [Place; 2] =
    [("in its ring", |held| held.sending), ("in the discipline before it", |held| held.waiting)];
const RECEIVING: [Place; 2] =
    [("in its ring", |held| held.receiving), ("in the input backlog", |held| held.backlog)];

/// Draws the cards of the hosts selected by `meant` on which anything waited.
pub(super) fn of_cards(recording: &Recording<'_>, meant: impl Fn(HostId) -> bool) -> Vec<Graph> {
    let mut hosts: Vec<HostId> = recording.capture.cards().iter().map(|sample| sample.host).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts.into_iter().filter(|host| meant(*host)).flat_map(|host| of_card(recording, host)).collect()
}

fn of_card(recording: &Recording<'_>, host: HostId) -> Vec<Graph> {
    let end = if recording.is_client(host) { "client" } else { "server" };
    let samples = || recording.capture.cards().iter().filter(|sample| sample.host == host);
    let line = |count: fn(&CardHeld) -> usize| -> Vec<(f64, f64)> {
        samples().map(|sample| (ms(sample.at), count(&sample.held) as f64)).collect()
    };
    let mut graphs = Vec::new();
    for (what, places) in [("sends", SENDING), ("receives", RECEIVING)] {
        // A single packet waits for nothing.
        if samples().all(|sample| places.iter().map(|(_, count)| count(&sample.held)).sum::<usize>() <= 1) {
            continue;
        }
        let series = places.into_iter().zip([Tone::Orange, Tone::Blue]);
        let graph = Graph::new(format!("Queue of packets that the {end}'s card {what}"), "packets", "");
        graphs.push(series.fold(graph, |graph, ((name, count), tone)| {
            graph.with(Series::new(name, Style::Step, tone, line(count)))
        }));
    }
    graphs
}

/// Several wires of one direction are distinguished by numbers.
fn names(directions: impl Iterator<Item = Direction> + Clone) -> Vec<String> {
    let mut counts = [0; 2];
    let name = |direction: Direction| {
        let n = usize::from(direction == Direction::Backward);
        counts[n] += 1;
        let alike = directions.clone().filter(|other| *other == direction).count();
        let whither = ["towards the server", "towards the client"][n];
        if alike > 1 { format!("{whither}, link {}", counts[n]) } else { whither.to_owned() }
    };
    directions.clone().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_one_direction_are_told_apart() {
        let directions = [Direction::Backward, Direction::Forward, Direction::Backward];
        let told = ["towards the client, link 1", "towards the server", "towards the client, link 2"];
        assert_eq!(names(directions.into_iter()), told);
    }
}
