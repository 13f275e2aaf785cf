//! Middleboxes: they look into packets, and drop, rewrite or copy them.
//!
//! Each box is a value with state. It sees every packet of its path in both directions and returns
//! the packets that continue. Boxes that break Fast Open: [`DropSynData`], [`DropSynDataOf`],
//! [`StripFastOpen`], [`DropNthSynAck`], [`Duplicate`], [`AlternatingNat`]. Boxes that affect data:
//! [`LoseAt`], [`BlackHole`], [`SynProxy`], [`Firewall`], [`AckThinner`].

mod drops;
mod firewall;
mod moments;
mod nat;
mod oversize;
mod rewrites;
mod thinning;

pub use drops::{DropNthSynAck, DropSynData, DropSynDataOf};
pub use firewall::Firewall;
pub use moments::{LoseAt, Share};
pub use nat::AlternatingNat;
pub use oversize::BlackHole;
pub use rewrites::{Duplicate, StripFastOpen, SynProxy};
pub use thinning::AckThinner;

use bytes::Bytes;
use core::any::Any;
use proto::Instant;
use smallvec::SmallVec;

/// Direction of a packet along its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the path's first end to its second.
    Forward,
    /// From the path's second end to its first.
    Backward,
}

impl Direction {
    /// Returns the opposite direction.
    pub fn reverse(self) -> Direction {
        match self {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        }
    }
}

/// Packets that continue in place of one packet, in order. Empty if the packet is lost.
pub type Passed = SmallVec<[Bytes; 1]>;

/// A middlebox on a path.
pub trait Middlebox: Any {
    /// Returns its name, as ladders and captures show it where it loses a packet.
    fn name(&self) -> &str;

    /// Returns the packets that continue in the same direction in place of `packet`.
    fn handle_packet(&mut self, now: Instant, direction: Direction, packet: Bytes) -> Passed;
}

/// Passes the packet unchanged.
fn pass(packet: Bytes) -> Passed {
    SmallVec::from_buf([packet])
}

/// A middlebox that does nothing until it is turned on: the path changes while a client remembers
/// its earlier state.
#[derive(Clone, Debug)]
pub struct Switched<M> {
    middlebox: M,
    is_on: bool,
}

impl<M> Switched<M> {
    /// Creates the box, turned off.
    pub fn off(middlebox: M) -> Switched<M> {
        Switched { middlebox, is_on: false }
    }

    /// Turns the box on.
    pub fn turn_on(&mut self) {
        self.is_on = true;
    }
}

impl<M: Middlebox> Middlebox for Switched<M> {
    fn name(&self) -> &str {
        self.middlebox.name()
    }

    fn handle_packet(&mut self, now: Instant, direction: Direction, packet: Bytes) -> Passed {
        match self.is_on {
            true => self.middlebox.handle_packet(now, direction, packet),
            false => pass(packet),
        }
    }
}

#[cfg(test)]
mod tests;
