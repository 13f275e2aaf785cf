//! The deadlines of a connection: a table, not callbacks. The stack keeps only the earliest in its wheel.

use crate::Instant;
use alloc::boxed::Box;

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

/// One deadline per [`Timer`]. Takes memory of its own only while two are set, or were since [`release`](Self::release).
#[derive(Debug, Default)]
pub(crate) enum Timers {
    #[default]
    Idle,
    /// Nearly always: what is owed goes with what is sent.
    One(Timer, Instant),
    Several(Box<Several>),
}

#[derive(Debug)]
pub(crate) struct Several {
    deadlines: [Instant; COUNT],
    earliest: Instant,
}

impl Several {
    #[inline(never)]
    fn change(&mut self, timer: Timer, at: Instant) {
        self.deadlines[timer as usize] = at;
        self.earliest = self.deadlines.iter().copied().fold(NEVER, Instant::min);
    }
}

impl Timers {
    pub(crate) fn set(&mut self, timer: Timer, at: Instant) {
        match self {
            Timers::One(set, _) if *set != timer => self.set_another(timer, at),
            Timers::Several(several) => several.change(timer, at),
            _ => *self = Timers::One(timer, at),
        }
    }

    #[cold]
    fn set_another(&mut self, timer: Timer, at: Instant) {
        let Timers::One(first, first_at) = *self else { return };
        let mut several = Box::new(Several { deadlines: [NEVER; COUNT], earliest: NEVER });
        several.change(first, first_at);
        several.change(timer, at);
        *self = Timers::Several(several);
    }

    pub(crate) fn stop(&mut self, timer: Timer) {
        match self {
            Timers::One(set, _) if *set == timer => *self = Timers::Idle,
            Timers::Several(several) => several.change(timer, NEVER),
            _ => {}
        }
    }

    /// Stops one and sets another, which may have been set.
    pub(crate) fn stop_and_set(&mut self, stopped: Timer, timer: Timer, at: Instant) {
        match self {
            Timers::One(set, _) if *set != stopped && *set != timer => self.set_another(timer, at),
            Timers::Several(several) => {
                several.change(stopped, NEVER);
                several.change(timer, at);
            }
            _ => *self = Timers::One(timer, at),
        }
    }

    pub(crate) fn stop_all(&mut self) {
        *self = Timers::Idle;
    }

    pub(crate) fn is_set(&self, timer: Timer) -> bool {
        self.deadline(timer) != NEVER
    }

    /// When, or the end of time.
    #[inline]
    pub(crate) fn deadline(&self, timer: Timer) -> Instant {
        match self {
            Timers::One(set, at) if *set == timer => *at,
            Timers::Several(several) => several.deadlines[timer as usize],
            _ => NEVER,
        }
    }

    /// The earliest deadline; [`NEVER`] = none is set.
    #[inline]
    pub(crate) fn next(&self) -> Instant {
        match self {
            Timers::Idle => NEVER,
            Timers::One(_, at) => *at,
            Timers::Several(several) => several.earliest,
        }
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
        *self = Timers::Idle;
    }
}
