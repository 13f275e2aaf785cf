//! The capture: every packet that left a host, arrived at one, was injected or was lost, with
//! times.
//!
//! The capture is the only source of the lab's measurements. It does not know connections;
//! [`exchange`](crate::exchange) finds them.

use crate::middlebox::Direction;
use crate::segment::Segment;
use bytes::Bytes;
use proto::{Instant, TraceEvent};
use smallvec::SmallVec;
use std::collections::HashMap;

/// A host of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub(crate) usize);

/// A packet in flight. A middlebox that rewrites or copies a packet keeps its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub(crate) u64);

/// The place of an observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The packet left this host.
    Left(HostId),
    /// A third party put the packet on the path.
    Injected {
        /// Name of the third party, for people.
        by: &'static str,
    },
    /// The packet arrived at this host.
    Arrived(HostId),
    /// The path lost the packet.
    Lost {
        /// Name of the place, for people: a queue, the line, a middlebox.
        by: String,
    },
}

/// One packet at one place at one time.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Time of the observation.
    pub at: Instant,
    /// The packet.
    pub packet: PacketId,
    /// Place of the observation.
    pub place: Place,
    /// The bytes at that place, from the IP header on.
    pub bytes: Bytes,
}

/// A sighting of a packet at an end of its path.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// Time of the sighting.
    pub at: Instant,
    /// The host; `None` where the packet was injected.
    pub host: Option<HostId>,
    /// The bytes there, from the IP header on.
    pub bytes: Bytes,
}

/// The journey of one packet, or of one copy of it, from end to end.
#[derive(Clone, Debug)]
pub struct Journey {
    /// The packet; copies share the number.
    pub packet: PacketId,
    /// The start.
    pub sent: Sighting,
    /// Name of the third party that injected it, if no host sent it.
    pub injected_by: Option<&'static str>,
    /// The arrival; `None` if it was lost or still in flight at the end of the run.
    pub received: Option<Sighting>,
    /// Time and place of its loss.
    pub lost: Option<(Instant, String)>,
    /// True for a copy made by a middlebox.
    pub copy: bool,
}

impl Journey {
    /// Returns the segment as sent.
    pub fn segment(&self) -> Option<Segment> {
        Segment::parse(&self.sent.bytes)
    }

    /// Returns the segment as received.
    pub fn received_segment(&self) -> Option<Segment> {
        Segment::parse(&self.received.as_ref()?.bytes)
    }

    /// Returns whether the path changed the packet.
    pub fn is_rewritten(&self) -> bool {
        self.received.as_ref().is_some_and(|received| received.bytes != self.sent.bytes)
    }
}

/// One direction of one wire of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WireId {
    pub(crate) path: usize,
    pub(crate) hop: usize,
    pub(crate) direction: Direction,
}

impl WireId {
    /// Returns the direction of packets on this wire.
    pub fn direction(self) -> Direction {
        self.direction
    }
}

/// An observation of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueSample {
    /// The length of the queue changed.
    Length {
        /// The wire.
        wire: WireId,
        /// Time of the change.
        at: Instant,
        /// Waiting packets, without the one in transmission.
        packets: usize,
        /// Bytes of the waiting packets.
        bytes: u64,
    },
    /// A packet left the queue. The time includes its transmission and, on a wire with jitter, the
    /// delay beyond the mean.
    Waited {
        /// The wire.
        wire: WireId,
        /// Time of arrival at the queue.
        since: Instant,
        /// Time in the queue, in nanoseconds.
        nanos: u64,
        /// The packet.
        packet: PacketId,
    },
}

impl QueueSample {
    /// Returns the wire.
    pub fn wire(&self) -> WireId {
        match self {
            QueueSample::Length { wire, .. } | QueueSample::Waited { wire, .. } => *wire,
        }
    }
}

/// The contents of a host's card from a given time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardSample {
    /// The host.
    pub host: HostId,
    /// Time of the change.
    pub at: Instant,
    /// The contents.
    pub held: CardHeld,
}

/// Contents of a card, in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CardHeld {
    /// Packets that wait in its queueing disciplines.
    pub waiting: usize,
    /// Used descriptors of its transmit rings.
    pub sending: usize,
    /// Used descriptors of its receive ring.
    pub receiving: usize,
    /// Packets in the input backlog.
    pub backlog: usize,
}

/// All observations of a network in order of time, and the events its stacks reported.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    observations: Vec<Observation>,
    traced: Vec<(HostId, TraceEvent)>,
    queues: Vec<QueueSample>,
    cards: Vec<CardSample>,
    /// Number of packets that started.
    packets: u64,
    /// Bytes of all observed packets.
    bytes: u64,
}

impl Capture {
    /// Creates an empty capture.
    pub fn new() -> Capture {
        Capture::default()
    }

    /// Adds an observation. Times must not decrease.
    pub fn push(&mut self, at: Instant, packet: PacketId, place: Place, bytes: Bytes) {
        debug_assert!(
            self.observations.last().is_none_or(|last| last.at <= at),
            "observations must be in order"
        );
        self.packets += u64::from(place.is_start());
        self.bytes += bytes.len() as u64;
        self.observations.push(Observation { at, packet, place, bytes });
    }

    /// Adds an event of a host's stack.
    pub(crate) fn note(&mut self, host: HostId, event: TraceEvent) {
        self.traced.push((host, event));
    }

    /// Adds observations of queues.
    pub(crate) fn note_queues(&mut self, samples: Vec<QueueSample>) {
        self.queues.extend(samples);
    }

    /// Adds a sample of a card.
    pub(crate) fn note_card(&mut self, sample: CardSample) {
        self.cards.push(sample);
    }

    /// Returns the number of packets that started.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns an upper bound of the capture's memory in bytes. A packet that arrives unchanged is
    /// stored once and counted twice.
    pub(crate) fn memory(&self) -> u64 {
        let lists = size_of_val(&*self.observations)
            + size_of_val(&*self.traced)
            + size_of_val(&*self.queues)
            + size_of_val(&*self.cards);
        self.bytes + lists as u64
    }

    /// Returns the samples of cards, one per change.
    pub fn cards(&self) -> &[CardSample] {
        &self.cards
    }

    /// Returns the observations of queues, for wires with a rate or a discipline.
    pub fn queues(&self) -> &[QueueSample] {
        &self.queues
    }

    /// Returns the events of the stacks: states, windows, round trips, packets and the reasons for
    /// sending them. They are in order of time; events of one instant are in order of occurrence.
    pub fn traced(&self) -> &[(HostId, TraceEvent)] {
        &self.traced
    }

    /// Returns all observations in order of time.
    pub fn observations(&self) -> &[Observation] {
        &self.observations
    }

    /// Returns the number of observations: a mark for [`Capture::since`].
    pub fn mark(&self) -> usize {
        self.observations.len()
    }

    /// Returns the packets seen after a mark as a new capture, without packets sent before it.
    pub fn since(&self, mark: usize) -> Capture {
        let tail = &self.observations[mark.min(self.observations.len())..];
        let started: Vec<PacketId> =
            tail.iter().filter(|seen| seen.place.is_start()).map(|seen| seen.packet).collect();
        let belongs = |seen: &&Observation| started.binary_search(&seen.packet).is_ok();
        let observations = tail.iter().filter(belongs).cloned().collect();
        Capture { observations, ..Capture::default() }
    }

    /// Returns the journey of every packet, in order of their start.
    pub fn journeys(&self) -> Vec<Journey> {
        let mut journeys = Journeys::default();
        for seen in &self.observations {
            match &seen.place {
                Place::Left(host) => journeys.begin(Journey::start(seen, Some(*host), None)),
                Place::Injected { by } => journeys.begin(Journey::start(seen, None, Some(by))),
                Place::Arrived(host) => {
                    let arrival = Sighting { at: seen.at, host: Some(*host), bytes: seen.bytes.clone() };
                    if let Some(journey) = journeys.unfinished(seen.packet) {
                        journey.received = Some(arrival);
                    }
                }
                Place::Lost { by } => {
                    if let Some(journey) = journeys.unfinished(seen.packet) {
                        journey.lost = Some((seen.at, by.clone()));
                    }
                }
            }
        }
        journeys.of_packets.into_iter().flatten().collect()
    }
}

/// Journeys in order of sending; the journeys of copies follow their packet's own.
#[derive(Default)]
struct Journeys {
    of_packets: Vec<SmallVec<[Journey; 1]>>,
    places: HashMap<PacketId, usize>,
}

impl Journeys {
    fn begin(&mut self, journey: Journey) {
        self.places.insert(journey.packet, self.of_packets.len());
        self.of_packets.push(SmallVec::from_buf([journey]));
    }

    /// Returns the journey of this packet that has not ended. If all have ended, a middlebox made a
    /// copy and a new journey starts.
    fn unfinished(&mut self, packet: PacketId) -> Option<&mut Journey> {
        let of_packet = self.of_packets.get_mut(*self.places.get(&packet)?)?;
        let last = of_packet.last()?;
        if last.is_over() {
            let copy = Journey { received: None, lost: None, copy: true, ..last.clone() };
            of_packet.push(copy);
        }
        of_packet.last_mut()
    }
}

impl Place {
    fn is_start(&self) -> bool {
        matches!(self, Place::Left(_) | Place::Injected { .. })
    }
}

impl Journey {
    fn start(seen: &Observation, host: Option<HostId>, injected_by: Option<&'static str>) -> Journey {
        Journey {
            packet: seen.packet,
            sent: Sighting { at: seen.at, host, bytes: seen.bytes.clone() },
            injected_by,
            received: None,
            lost: None,
            copy: false,
        }
    }

    fn is_over(&self) -> bool {
        self.received.is_some() || self.lost.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(places: &[(u64, u64, Place)]) -> Capture {
        let mut capture = Capture::new();
        for (at, packet, place) in places {
            capture.push(
                Instant::from_nanos(*at),
                PacketId(*packet),
                place.clone(),
                Bytes::from_static(b"x"),
            );
        }
        capture
    }

    #[test]
    fn a_copy_is_a_journey_of_its_own() {
        let (client, server) = (HostId(0), HostId(1));
        let lost = Place::Lost { by: "queue".into() };
        let seen = capture(&[
            (0, 1, Place::Left(client)),
            (1, 2, Place::Left(client)),
            (5, 1, Place::Arrived(server)),
            (6, 1, lost),
            (7, 2, Place::Arrived(server)),
        ]);
        let journeys = seen.journeys();
        let shape: Vec<_> =
            journeys.iter().map(|j| (j.packet.0, j.copy, j.received.is_some(), j.lost.is_some())).collect();
        assert_eq!(shape, [(1, false, true, false), (1, true, false, true), (2, false, true, false)]);
    }

    #[test]
    fn what_was_sent_before_the_mark_is_left_out() {
        let (client, server) = (HostId(0), HostId(1));
        let mut seen = capture(&[(0, 1, Place::Left(client))]);
        let mark = seen.mark();
        seen.push(Instant::from_nanos(3), PacketId(2), Place::Left(client), Bytes::new());
        seen.push(Instant::from_nanos(5), PacketId(1), Place::Arrived(server), Bytes::new());
        let packets: Vec<_> = seen.since(mark).observations().iter().map(|seen| seen.packet.0).collect();
        assert_eq!(packets, [2]);
    }
}
