//! The deadlines of a connection: a table, not callbacks. The stack keeps only the earliest in its wheel.

use crate::Instant;

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// SYN, SYN-ACK, data or FIN unanswered; or, with nothing in flight and a closed window, the next probe.
    Retransmit = 0,
    /// An acknowledgement is owed.
    DelayedAck = 1,
    /// A SYN-ACK waits for the application's answer.
    SynAckHold = 2,
    /// While the application holds the connection: keepalive. Once it has let go: its lingering ends here.
    Life = 3,
    /// The pacer's gate opens.
    Pace = 4,
}

/// Kinds of [`Timer`].
const COUNT: usize = 5;
/// Unset.
pub(crate) const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// One deadline per [`Timer`]. Takes memory of its own only while one is set, or was since [`release`](Self::release).
#[derive(Debug, Default)]
pub(crate) struct Timers {
    deadlines: Option<Box<[Instant; COUNT]>>,
}

impl Timers {
    pub(crate) fn set(&mut self, timer: Timer, at: Instant) {
        self.deadlines.get_or_insert_with(|| Box::new([NEVER; COUNT]))[timer as usize] = at;
    }

    pub(crate) fn stop(&mut self, timer: Timer) {
        if let Some(deadlines) = &mut self.deadlines {
            deadlines[timer as usize] = NEVER;
        }
    }

    pub(crate) fn stop_all(&mut self) {
        self.deadlines = None;
    }

    pub(crate) fn is_set(&self, timer: Timer) -> bool {
        self.deadline(timer) != NEVER
    }

    /// When, or the end of time.
    pub(crate) fn deadline(&self, timer: Timer) -> Instant {
        self.deadlines.as_ref().map_or(NEVER, |deadlines| deadlines[timer as usize])
    }

    /// The earliest deadline; [`NEVER`] = none is set.
    pub(crate) fn next(&self) -> Instant {
        self.deadlines.as_ref().map_or(NEVER, |deadlines| deadlines.iter().copied().fold(NEVER, Instant::min))
    }

    /// Has it expired? It is stopped if so.
    pub(crate) fn expired(&mut self, timer: Timer, now: Instant) -> bool {
        let expired = self.deadline(timer) <= now;
        if expired {
            self.stop(timer);
        }
        expired
    }

    /// No deadline is set: the memory is given back.
    pub(crate) fn release(&mut self) {
        debug_assert_eq!(self.next(), NEVER);
        self.deadlines = None;
    }
}
