//! A path without hosts: the caller puts packets on either end, at times of its own clock.

use super::path::{Outcome, Outcomes, Path, Route};
use super::queue::Traveller;
use crate::capture::{HostId, PacketId, Place};
use crate::middlebox::Direction;
use bytes::Bytes;
use proto::Instant;
use qdisc::LinkStats;
use std::collections::BTreeMap;

/// Placeholders for the hosts of the two ends.
const ENDS: [HostId; 2] = [HostId(0), HostId(1)];

/// A path between two ends that the caller drives. A packet sent forward enters at the first end
/// and leaves at the second.
///
/// ```
/// use firstbyte_lab::middlebox::Direction;
/// use firstbyte_lab::network::{Passage, Route};
/// use proto::Instant;
/// use std::time::Duration;
///
/// let mut passage = Passage::new(Route::with_rtt(Duration::from_millis(20)), 1);
/// let out = passage.send(Instant::ZERO, Direction::Forward, vec![0x45; 100].into());
/// assert!(out.is_empty(), "it takes its time");
/// let at = passage.next_event().unwrap();
/// assert_eq!(at, Instant::ZERO + Duration::from_millis(10));
/// assert_eq!(passage.poll(at)[0].0, Direction::Forward);
/// ```
pub struct Passage {
    path: Path,
    packets: u64,
    lost: BTreeMap<String, u64>,
}

impl Passage {
    /// Creates a path. All randomness comes from `seed`.
    pub fn new(route: Route, seed: u64) -> Passage {
        Passage { path: Path::new(0, ENDS, [0, 0], route, false, seed), packets: 0, lost: BTreeMap::new() }
    }

    /// Puts a packet on the path and returns the packets that leave at once.
    pub fn send(&mut self, now: Instant, direction: Direction, packet: Bytes) -> Vec<(Direction, Bytes)> {
        let from = if direction == Direction::Forward { ENDS[0] } else { ENDS[1] };
        self.packets += 1;
        let traveller = Traveller::new(PacketId(self.packets), packet);
        let outcomes = self.path.send(now, from, traveller);
        self.sorted(outcomes)
    }

    /// Returns the packets that have left by now, with their directions.
    pub fn poll(&mut self, now: Instant) -> Vec<(Direction, Bytes)> {
        let outcomes = self.path.poll(now);
        self.sorted(outcomes)
    }

    /// Returns the time of the next event.
    pub fn next_event(&self) -> Option<Instant> {
        self.path.next_event()
    }

    /// Returns the counters of its wires in one direction, from its first end.
    pub fn stats(&self, direction: Direction) -> Vec<LinkStats> {
        self.path.stats(direction)
    }

    /// Returns the number of lost packets, by cause.
    pub fn lost(&self) -> &BTreeMap<String, u64> {
        &self.lost
    }

    fn sorted(&mut self, outcomes: Outcomes) -> Vec<(Direction, Bytes)> {
        let mut out = Vec::new();
        for Outcome { traveller: Traveller { bytes, .. }, place } in outcomes {
            match place {
                Place::Arrived(end) if end == ENDS[1] => out.push((Direction::Forward, bytes)),
                Place::Arrived(_) => out.push((Direction::Backward, bytes)),
                Place::Lost { by } => *self.lost.entry(by).or_default() += 1,
                _ => {}
            }
        }
        out
    }
}
