//! What was seen on the network: every packet that left a host, arrived at one, was injected, or was lost, and when.
//!
//! The capture is the only source of the lab's figures. It knows nothing of connections: `exchange` finds those.

use crate::middlebox::Direction;
use crate::segment::Segment;
use bytes::Bytes;
use proto::{Instant, TraceEvent};
use smallvec::SmallVec;
use std::collections::HashMap;

/// A host of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub(crate) usize);

/// A packet under way. A middlebox that rewrites a packet, or copies it, keeps its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub(crate) u64);

/// Where a packet was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// It left this host.
    Left(HostId),
    /// It was put on the path by somebody who is none of the hosts.
    Injected {
        /// Who, for people.
        by: &'static str,
    },
    /// It arrived at this host.
    Arrived(HostId),
    /// It was lost on the path.
    Lost {
        /// Where, for people: a queue, the line, a middlebox.
        by: String,
    },
}

/// One packet at one place at one time.
#[derive(Clone, Debug)]
pub struct Observation {
    /// When.
    pub at: Instant,
    /// Which packet.
    pub packet: PacketId,
    /// Where.
    pub place: Place,
    /// As it was there, from the IP header on.
    pub bytes: Bytes,
}

/// A sighting of a packet at an end of its path.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// When.
    pub at: Instant,
    /// The host it left or reached; `None` where it was injected.
    pub host: Option<HostId>,
    /// The bytes there.
    pub bytes: Bytes,
}

/// The way of one packet (or of one copy of it) from end to end.
#[derive(Clone, Debug)]
pub struct Journey {
    /// Which packet; copies share the number.
    pub packet: PacketId,
    /// Where it started.
    pub sent: Sighting,
    /// Who injected it, if no host sent it.
    pub injected_by: Option<&'static str>,
    /// Where it arrived; `None` when it was lost, or was still under way when the run ended.
    pub received: Option<Sighting>,
    /// When and where it was lost.
    pub lost: Option<(Instant, String)>,
    /// This is a copy that a middlebox made.
    pub copy: bool,
}

impl Journey {
    /// The segment as it was sent.
    pub fn segment(&self) -> Option<Segment> {
        Segment::parse(&self.sent.bytes)
    }

    /// The segment as it was received.
    pub fn received_segment(&self) -> Option<Segment> {
        Segment::parse(&self.received.as_ref()?.bytes)
    }

    /// Did the path change the packet?
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
    /// Which way packets go on it.
    pub fn direction(self) -> Direction {
        self.direction
    }
}

/// What was seen of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueSample {
    /// From now on so much waits.
    Length {
        /// Where.
        wire: WireId,
        /// Since when.
        at: Instant,
        /// Packets that wait, without the one being sent.
        packets: usize,
        /// Their bytes.
        bytes: u64,
    },
    /// A packet came through: so long it was in the queue and the transmitter (a wire with jitter: and on its way beyond the mean).
    Waited {
        /// Where.
        wire: WireId,
        /// When it came to the queue.
        since: Instant,
        /// How long it took, nanoseconds.
        nanos: u64,
        /// Which packet.
        packet: PacketId,
    },
}

impl QueueSample {
    /// Where.
    pub fn wire(&self) -> WireId {
        match self {
            QueueSample::Length { wire, .. } | QueueSample::Waited { wire, .. } => *wire,
        }
    }
}

/// What a host's card holds from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardSample {
    /// Whose.
    pub host: HostId,
    /// Since when.
    pub at: Instant,
    /// What waits there.
    pub held: CardHeld,
}

/// What a card holds, both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CardHeld {
    /// Packets that wait in its disciplines.
    pub waiting: usize,
    /// Descriptors in use of its rings for sending.
    pub sending: usize,
    /// Of its ring for receiving.
    pub receiving: usize,
    /// Packets in the input backlog behind that.
    pub backlog: usize,
}

/// Everything seen on a network, in the order of time, and what the stacks at its ends told of themselves.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    observations: Vec<Observation>,
    traced: Vec<(HostId, TraceEvent)>,
    queues: Vec<QueueSample>,
    cards: Vec<CardSample>,
    /// Observations of packets that set out.
    packets: u64,
    /// Bytes of all packets where they were seen.
    bytes: u64,
}

impl Capture {
    /// Nothing seen yet.
    pub fn new() -> Capture {
        Capture::default()
    }

    /// Adds an observation; times must not decrease.
    pub fn push(&mut self, at: Instant, packet: PacketId, place: Place, bytes: Bytes) {
        debug_assert!(
            self.observations.last().is_none_or(|last| last.at <= at),
            "observations come in order"
        );
        self.packets += u64::from(place.is_start());
        self.bytes += bytes.len() as u64;
        self.observations.push(Observation { at, packet, place, bytes });
    }

    /// Adds what a host's stack tells.
    pub(crate) fn note(&mut self, host: HostId, event: TraceEvent) {
        self.traced.push((host, event));
    }

    /// Adds what was seen of queues.
    pub(crate) fn note_queues(&mut self, samples: Vec<QueueSample>) {
        self.queues.extend(samples);
    }

    /// Adds what a card holds.
    pub(crate) fn note_card(&mut self, sample: CardSample) {
        self.cards.push(sample);
    }

    /// Packets that set out.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// An upper bound of the bytes that the capture takes. A packet that arrives as it was sent is
    /// stored once and counted twice.
    pub(crate) fn memory(&self) -> u64 {
        let lists = size_of_val(&*self.observations)
            + size_of_val(&*self.traced)
            + size_of_val(&*self.queues)
            + size_of_val(&*self.cards);
        self.bytes + lists as u64
    }

    /// What was seen of cards, whenever that changed.
    pub fn cards(&self) -> &[CardSample] {
        &self.cards
    }

    /// What was seen of the queues of wires that have a rate or a discipline.
    pub fn queues(&self) -> &[QueueSample] {
        &self.queues
    }

    /// What the stacks told: states, windows, round trips, packets and why they went. In the order of time, those of one moment as they
    /// happened.
    pub fn traced(&self) -> &[(HostId, TraceEvent)] {
        &self.traced
    }

    /// Everything, in the order of time.
    pub fn observations(&self) -> &[Observation] {
        &self.observations
    }

    /// How many observations there are: a mark for [`Capture::since`].
    pub fn mark(&self) -> usize {
        self.observations.len()
    }

    /// The packets seen after a mark, as a capture of its own. Those sent before the mark are left out of it.
    pub fn since(&self, mark: usize) -> Capture {
        let tail = &self.observations[mark.min(self.observations.len())..];
        let started: Vec<PacketId> =
            tail.iter().filter(|seen| seen.place.is_start()).map(|seen| seen.packet).collect();
        let belongs = |seen: &&Observation| started.binary_search(&seen.packet).is_ok();
        let observations = tail.iter().filter(belongs).cloned().collect();
        Capture { observations, ..Capture::default() }
    }

    /// The way of every packet, in the order of their start.
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

/// Journeys in the order of sending: of each packet its own, and those of its copies.
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

    /// The journey of this packet that has no end yet. When all have one, a middlebox made a copy: a journey of its own.
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
