//! One host in virtual time: sockets over a stack, a clock that jumps, the packets that left, and at most one call that waits.

use crate::ast::Direction;
use crate::parse::TIME_MAX;
use crate::print::Seconds;
use crate::run::files::OpenFile;
use bytes::Bytes;
use core::net::SocketAddr;
use core::time::Duration;
use posix::{Errno, Sockets, Stop};
use proto::{Instant, RxPacket};
use std::collections::VecDeque;

/// What a call gives back: its value, and what it told through its arguments.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) value: i64,
    pub(crate) told: Vec<Told>,
    /// Whom `accept` names.
    pub(crate) peer: Option<SocketAddr>,
    /// The stack's descriptor that came to be.
    pub(crate) descriptor: Option<i32>,
    /// The two of a pipe: the one to read from first.
    pub(crate) ends: Option<(i32, i32)>,
    /// The file that was opened.
    pub(crate) file: Option<OpenFile>,
}

impl Answer {
    /// Is its value a number that scripts choose for themselves?
    pub(crate) fn is_descriptor(&self) -> bool {
        self.descriptor.is_some() || self.file.is_some()
    }
}

/// A number a call told, beside the one the script expects.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) what: String,
    pub(crate) expected: i64,
    pub(crate) seen: i64,
}

/// One call, which is tried until it has a result.
pub(crate) type Attempt = Box<dyn FnMut(&mut Sockets, Instant) -> Result<Answer, Stop>>;

/// How a call ended, and when.
pub(crate) struct Ended {
    pub(crate) at: i64,
    pub(crate) result: Result<Answer, Errno>,
}

/// A packet that passed the stack's device while a script ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Microseconds since the script began.
    pub at: i64,
    /// Into the stack, or out of it.
    pub direction: Direction,
    /// The IP packet.
    pub packet: Bytes,
}

pub(crate) struct World {
    pub(crate) sockets: Sockets,
    /// All that has passed, if somebody wants it.
    pub(crate) passed: Option<Vec<Passed>>,
    /// The queue before the device takes packets; otherwise it refuses them.
    pub(crate) admits: bool,
    start: Instant,
    now: Instant,
    sent: VecDeque<(i64, Bytes)>,
    waiting: Option<(Attempt, Option<Instant>)>,
    ended: Option<Ended>,
}

impl World {
    /// The script's time 0 is `start`.
    pub(crate) fn new(sockets: Sockets, start: Instant) -> World {
        World {
            sockets,
            passed: None,
            admits: true,
            start,
            now: start,
            sent: VecDeque::new(),
            waiting: None,
            ended: None,
        }
    }

    /// Microseconds since the beginning.
    pub(crate) fn micros(&self) -> i64 {
        i64::try_from(self.now.since(self.start).as_micros()).unwrap_or(i64::MAX)
    }

    /// So many microseconds from now on, if a script may take so long.
    pub(crate) fn after(&self, micros: i64) -> Result<i64, String> {
        let sum = self.micros().checked_add(micros).filter(|sum| *sum <= TIME_MAX);
        sum.ok_or_else(|| format!("the script's time goes beyond {} s, its end", Seconds(TIME_MAX)))
    }

    /// Begins a call. It may end at once; how, [`take_ended`](Self::take_ended) tells.
    pub(crate) fn begin(&mut self, attempt: Attempt) {
        self.waiting = Some((attempt, Some(self.now)));
        self.settle();
    }

    /// Does a call wait?
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    pub(crate) fn take_ended(&mut self) -> Option<Ended> {
        self.ended.take()
    }

    /// Something that does not wait.
    pub(crate) fn call<R>(&mut self, call: impl FnOnce(&mut Sockets, Instant) -> R) -> R {
        let result = call(&mut self.sockets, self.now);
        self.settle();
        result
    }

    /// A packet comes.
    pub(crate) fn inject(&mut self, packet: Bytes) {
        self.note(Direction::In, &packet);
        self.sockets.stack_mut().handle_packet(self.now, RxPacket::new(packet));
        self.settle();
    }

    fn note(&mut self, direction: Direction, packet: &Bytes) {
        let at = self.micros();
        if let Some(passed) = &mut self.passed {
            passed.push(Passed { at, direction, packet: packet.clone() });
        }
    }

    /// The oldest packet that has left and was not taken, and when it left.
    pub(crate) fn take_sent(&mut self) -> Option<(i64, Bytes)> {
        self.sent.pop_front()
    }

    /// Time passes until so many microseconds after the beginning.
    pub(crate) fn wait_until(&mut self, micros: i64) {
        let until = self.start + Duration::from_micros(u64::try_from(micros).unwrap_or(0));
        while let Some(next) = self.next_deadline().filter(|next| *next <= until) {
            self.advance(next);
        }
        self.advance(until);
    }

    /// Time jumps to the next thing that is due, if that is no later than so many microseconds after the beginning.
    pub(crate) fn step(&mut self, latest: i64) -> bool {
        let latest = self.start + Duration::from_micros(u64::try_from(latest).unwrap_or(0));
        let next = self.next_deadline().filter(|next| *next <= latest);
        if let Some(next) = next {
            self.advance(next);
        }
        next.is_some()
    }

    fn next_deadline(&mut self) -> Option<Instant> {
        let call = self.waiting.as_ref().and_then(|(_, deadline)| *deadline);
        self.sockets.stack_mut().poll_timeout().into_iter().chain(call).min()
    }

    fn advance(&mut self, to: Instant) {
        self.now = self.now.max(to);
        self.sockets.stack_mut().handle_timeout(self.now);
        self.settle();
    }

    /// What follows every change: packets leave, and the call that waits looks again.
    fn settle(&mut self) {
        loop {
            let at = self.micros();
            while let Some(packet) = self.sockets.stack_mut().poll_transmit(self.now) {
                if !self.admits {
                    self.sockets.stack_mut().handle_refusal(self.now, &packet);
                    continue;
                }
                for packet in packet.segments() {
                    self.note(Direction::Out, &packet);
                    self.sent.push_back((at, packet));
                }
            }
            let noticed = self.sockets.notice();
            if !self.try_again(noticed) && !noticed {
                return;
            }
        }
    }

    /// True: the call that waits was tried.
    fn try_again(&mut self, noticed: bool) -> bool {
        let now = self.now;
        let due = |deadline: &Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        let Some((mut attempt, _)) = self.waiting.take_if(|(_, deadline)| noticed || due(deadline)) else {
            return false;
        };
        let result = match attempt(&mut self.sockets, now) {
            Ok(answer) => Ok(answer),
            Err(Stop::Errno(errno)) => Err(errno),
            Err(Stop::Wait(deadline)) => {
                self.waiting = Some((attempt, deadline.filter(|deadline| *deadline > now)));
                return true;
            }
        };
        self.ended = Some(Ended { at: self.micros(), result });
        true
    }
}
