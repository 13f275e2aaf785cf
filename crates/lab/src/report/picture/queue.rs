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
    let waits = wires.iter().map(|(wire, seen)| (name(*wire), seen));
    let mut length = Graph::new("Queue", "packets waiting", "");
    let mut waited = Graph::new("Time in the queue", "time until sent", "ms");
    for (n, (name, seen)) in waits.enumerate() {
        length = length.with(Series::new(name.clone(), Style::Step, Tone::nth(n), seen.length.clone()));
        waited = waited.with(Series::new(name, Style::Dots, Tone::nth(n), seen.waited.clone()));
    }
    vec![length, waited]
}

fn name(wire: WireId) -> String {
    match wire.direction() {
        Direction::Forward => "towards the server".into(),
        Direction::Backward => "towards the client".into(),
    }
}
