//! Deadlines of a connection: a table without callbacks. The stack has only the earliest in its
//! wheel.

use crate::Instant;
use alloc::boxed::Box;

/// Purpose of a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// An unanswered SYN, SYN-ACK, data or FIN. With nothing in flight and a closed window: the
    /// next probe.
    Retransmit = 0,
    /// A delayed acknowledgment.
    DelayedAck = 1,
    /// The hold of a SYN-ACK that waits for the application's answer.
    SynAckHold = 2,
    /// Keepalive, while the application has the connection. Afterwards: the end of its lingering.
    Life = 3,
    /// The pacer allows the next segment.
    Pace = 4,
}

/// Number of [`Timer`]s.
const COUNT: usize = 5;
/// A deadline that is not set.
pub(crate) const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// One deadline per [`Timer`]. Needs memory of its own only while two are set, or were since
/// [`release`](Self::release).
#[derive(Debug, Default)]
pub(crate) enum Timers {
    #[default]
    Idle,
    /// The common case: one timer, because segments carry the acknowledgments.
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

    /// Stops one timer and sets another.
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

    /// Returns the deadline, or the end of time.
    #[inline]
    pub(crate) fn deadline(&self, timer: Timer) -> Instant {
        match self {
            Timers::One(set, at) if *set == timer => *at,
            Timers::Several(several) => several.deadlines[timer as usize],
            _ => NEVER,
        }
    }

    /// Returns the earliest deadline, or [`NEVER`].
    #[inline]
    pub(crate) fn next(&self) -> Instant {
        match self {
            Timers::Idle => NEVER,
            Timers::One(_, at) => *at,
            Timers::Several(several) => several.earliest,
        }
    }

    /// Returns whether the timer has expired, and stops it if so.
    pub(crate) fn expired(&mut self, timer: Timer, now: Instant) -> bool {
        let expired = self.deadline(timer) <= now;
        if expired {
            self.stop(timer);
        }
        expired
    }

    /// Returns the memory if no deadline is set.
    pub(crate) fn release(&mut self) {
        debug_assert_eq!(self.next(), NEVER);
        *self = Timers::Idle;
    }
}
