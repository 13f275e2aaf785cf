//! How long queues were, and how long packets waited in them.

use super::ms;
use crate::capture::{Capture, QueueSample, WireId};
use crate::middlebox::Direction;
use ::picture::{Graph, Series, Style, Tone};
use std::collections::BTreeMap;

#[derive(Default)]
struct Seen {
    length: Vec<(f64, f64)>,
    waited: Vec<(f64, f64)>,
}

/// Of each wire on which anything waited.
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

/// Several wires of one direction are told apart by numbers.
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
