//! Things on a path that look into packets: they drop, rewrite and copy.
//!
//! Each box is a value with state; it sees every packet of its path in both directions and says what goes on.
//! Boxes for Fast Open's troubles: [`DropSynData`], [`DropSynDataOf`], [`StripFastOpen`], [`DropNthSynAck`], [`Duplicate`], [`AlternatingNat`]; for
//! those of data: [`LoseAt`], [`BlackHole`], [`SynProxy`], [`Firewall`], [`AckThinner`].

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

/// Which way along its path a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the path's first end to its second.
    Forward,
    /// From the second to the first.
    Backward,
}

impl Direction {
    /// The other way.
    pub fn reverse(self) -> Direction {
        match self {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        }
    }
}

/// What goes on in place of a packet, in order; empty = the packet is lost here.
pub type Passed = SmallVec<[Bytes; 1]>;

/// A box on a path.
pub trait Middlebox: Any {
    /// Its name, as ladders and captures show it where it loses a packet.
    fn name(&self) -> &str;

    /// What goes on in the same direction in place of `packet`.
    fn handle_packet(&mut self, now: Instant, direction: Direction, packet: Bytes) -> Passed;
}

/// The packet itself goes on.
fn pass(packet: Bytes) -> Passed {
    SmallVec::from_buf([packet])
}

/// A box that does nothing until it is turned on: the path changes while a client remembers what it was like.
#[derive(Clone, Debug)]
pub struct Switched<M> {
    middlebox: M,
    is_on: bool,
}

impl<M> Switched<M> {
    /// The box, off.
    pub fn off(middlebox: M) -> Switched<M> {
        Switched { middlebox, is_on: false }
    }

    /// From now on the box works.
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
