//! A stateful firewall: it passes only packets of connections opened from inside, and forgets idle
//! connections.

use super::{Direction, Middlebox, Passed, pass};
use crate::segment::Segment;
use bytes::Bytes;
use core::net::SocketAddr;
use core::time::Duration;
use proto::Instant;
use std::collections::BTreeMap;
use wire::Flags;

/// A firewall whose inside is the path's first end. It drops packets of unknown connections
/// silently.
#[derive(Clone, Debug)]
pub struct Firewall {
    idle: Duration,
    /// Connections by inner and outer end, with the time of their last packet.
    flows: BTreeMap<(SocketAddr, SocketAddr), Instant>,
}

impl Firewall {
    /// Creates a firewall that forgets connections after this idle time.
    pub fn new(idle: Duration) -> Firewall {
        Firewall { idle, flows: BTreeMap::new() }
    }

    /// Returns the number of known connections.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Returns whether no connection is known.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }
}

impl Middlebox for Firewall {
    fn name(&self) -> &str {
        "firewall"
    }

    fn handle_packet(&mut self, now: Instant, direction: Direction, packet: Bytes) -> Passed {
        let Some(segment) = Segment::parse(&packet) else { return pass(packet) };
        let (inner, outer) = match direction {
            Direction::Forward => (segment.src(), segment.dst()),
            Direction::Backward => (segment.dst(), segment.src()),
        };
        let begins = direction == Direction::Forward && segment.is_syn();
        let known = self.flows.get(&(inner, outer)).is_some_and(|last| now.since(*last) <= self.idle);
        if !known && !begins {
            self.flows.remove(&(inner, outer));
            return Passed::new();
        }
        match segment.tcp.flags.contains(Flags::RST) {
            true => self.flows.remove(&(inner, outer)),
            false => self.flows.insert((inner, outer), now),
        };
        pass(packet)
    }
}
