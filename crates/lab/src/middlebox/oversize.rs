//! A middlebox that silently drops packets over a size: a path MTU black hole.

use super::{Direction, Middlebox, Passed, pass};
use bytes::Bytes;
use proto::Instant;

/// Loses larger packets without an ICMP message.
#[derive(Clone, Debug)]
pub struct BlackHole {
    mtu: usize,
}

impl BlackHole {
    /// Creates a box that passes packets up to `mtu` bytes.
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
