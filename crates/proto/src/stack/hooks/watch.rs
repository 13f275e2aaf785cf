//! Invariants of every connection after the stack was drained, only with debug assertions.
//!
//! Simulations check them after each drain, so that a stalling connection is found when the stall
//! begins.

use crate::stack::Stack;
use crate::tcp::connection::Context;
use crate::tcp::timers::NEVER;
use crate::{ConnId, Instant};
use alloc::string::String;

/// A rule that a connection breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The connection.
    pub connection: ConnId,
    /// The rule, in words.
    pub rule: &'static str,
    /// The observed values.
    pub seen: String,
}

impl Stack {
    /// Returns the first rule that a connection breaks, once
    /// [`poll_transmit`](Stack::poll_transmit) returns nothing more at `now`.
    pub fn complaint(&mut self, now: Instant) -> Option<Complaint> {
        let next = self.poll_timeout().unwrap_or(NEVER);
        let cx: &Context = self.shared.context(now);
        self.connections.iter().find_map(|(index, connection)| {
            let late = connection.next_deadline() < next;
            let (rule, seen) = match late {
                true => (
                    "the stack knows every deadline of its connections",
                    format!("{:?}", connection.next_deadline()),
                ),
                false => connection.broken_rule(cx)?,
            };
            let generation = self.connections.generation(index).unwrap_or_default();
            Some(Complaint { connection: ConnId { index, generation }, rule, seen })
        })
    }
}
