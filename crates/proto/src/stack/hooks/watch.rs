//! What must hold of every connection whenever the stack has been drained; in builds with debug assertions only.
//!
//! Simulations ask after each drain, so that a connection that will stall is found when it begins to, not when nothing happens any more.

use crate::stack::Stack;
use crate::tcp::connection::Context;
use crate::tcp::timers::NEVER;
use crate::{ConnId, Instant};
use alloc::string::String;

/// A rule that a connection breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Whose connection.
    pub connection: ConnId,
    /// The rule, in words.
    pub rule: &'static str,
    /// What was seen.
    pub seen: String,
}

impl Stack {
    /// The first rule that a connection breaks, once [`poll_transmit`](Stack::poll_transmit) has nothing more at `now`.
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
