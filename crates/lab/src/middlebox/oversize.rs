//! A box that passes packets up to a size, and says nothing about the others: a path MTU black hole.

use super::{Direction, Middlebox, Passed, pass};
use bytes::Bytes;
use proto::Instant;

/// Loses longer packets without an ICMP message.
#[derive(Clone, Debug)]
pub struct BlackHole {
    mtu: usize,
}

impl BlackHole {
    /// Up to so many bytes pass.
    pub fn new(mtu: usize) -> BlackHole {
        BlackHole { mtu }
    }
}

impl Middlebox for BlackHole {
    fn name(&self) -> &str {
        "black hole"
    }

    fn handle_packet(&mut self, _now: Instant, _direction: Direction, packet: Bytes) -> Passed {
        if packet.len() > self.mtu { Passed::new() } else { pass(packet) }
    }
}
