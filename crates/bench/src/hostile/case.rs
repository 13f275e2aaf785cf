//! A case: what a hostile peer does, and what it may cost.

use super::arena::Arena;
use crate::report::Failure;

/// Something that a hostile peer does.
#[derive(Clone, Copy)]
pub struct Case {
    /// The name in the table and for `--only`.
    pub name: &'static str,
    /// Plays the case against the victim of the arena.
    pub play: fn(&mut Arena) -> Result<(), Failure>,
    /// The most a packet may cost, in ordinary data packets.
    pub most_cost: f64,
    /// The most memory that may be held in the end, bytes.
    pub most_pinned: usize,
    /// The most bytes that may be sent for each that came.
    pub most_sent_back: f64,
    /// It can be played against the kernel, too.
    pub beside_linux: bool,
    /// The mechanism that bounds the cost, in a sentence.
    pub bounded_by: &'static str,
}
