//! A middlebox that thins out acknowledgments, as modems and radio links with a slow uplink do.

use super::{Direction, Middlebox, Passed, pass};
use crate::segment::Segment;
use bytes::Bytes;
use core::net::SocketAddr;
use proto::Instant;
use std::collections::BTreeMap;
use wire::{Flags, SeqNum};

/// Passes one pure acknowledgment of a flow per `segments` segments of data. Acknowledgments with
/// other news always pass: duplicates, SACK blocks, ECN echoes, and the acknowledgment of
/// everything.
#[derive(Clone, Debug)]
pub struct AckThinner {
    segments: u32,
    flows: BTreeMap<(SocketAddr, SocketAddr), Flow>,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    /// End of the data in the opposite direction, and its longest segment.
    end: SeqNum,
    longest: u32,
    /// The last acknowledgment that passed.
    acked: SeqNum,
}

impl AckThinner {
    /// Creates a box that passes one acknowledgment per this many segments.
    pub fn new(segments: u32) -> AckThinner {
        AckThinner { segments, flows: BTreeMap::new() }
    }

    fn note_data(&mut self, segment: &Segment) {
        let begin = segment.tcp.seq;
        let end = begin + segment.payload.len() as u32;
        // The acknowledgments of this flow travel in the opposite direction.
        let fresh = Flow { end, longest: 1, acked: begin };
        let flow = self.flows.entry((segment.dst(), segment.src())).or_insert(fresh);
        flow.longest = flow.longest.max(segment.payload.len() as u32);
        if end.after(flow.end) {
            flow.end = end;
        }
    }
}

impl Middlebox for AckThinner {
    fn name(&self) -> &str {
        "ACK thinner"
    }

    fn handle_packet(&mut self, _now: Instant, _direction: Direction, packet: Bytes) -> Passed {
        let Some(segment) = Segment::parse(&packet) else { return pass(packet) };
        let is_pure = segment.tcp.flags == Flags::ACK && segment.payload.is_empty();
        if !is_pure {
            self.note_data(&segment);
            return pass(packet);
        }
        let Some(flow) = self.flows.get_mut(&(segment.src(), segment.dst())) else { return pass(packet) };
        let ack = segment.tcp.ack;
        let tells_more = ack == flow.acked || ack == flow.end || !segment.tcp.options.sack.is_empty();
        if tells_more || ack.since(flow.acked) >= self.segments.saturating_mul(flow.longest) {
            flow.acked = ack;
            return pass(packet);
        }
        Passed::new()
    }
}
