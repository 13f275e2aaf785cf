//! What a thread sleeps on.

use super::{cancel, signals, time};
use shuttle::sync::{Condvar, Mutex, PoisonError};
use shuttle::thread;
use std::time::Duration;

/// A count that one adds to and another sleeps on: a semaphore, or an event descriptor.
#[derive(Debug, Default)]
pub struct Token {
    count: Mutex<u32>,
    posted: Condvar,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// There was something.
    Posted,
    /// Time was up.
    TimedOut,
    /// A signal handler has run.
    Interrupted,
}

impl Token {
    /// One more.
    pub fn post(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.posted.notify_all();
    }

    /// One less, if there is one. False: there was none.
    pub fn try_take(&self) -> bool {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = *count > 0;
        *count -= u32::from(taken);
        taken
    }

    /// None are left.
    pub fn clear(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) = 0;
    }

    /// Sleeps until there is one, which is taken, or until `most` has passed. `restarts`: it goes on after a handler that was installed so.
    pub fn wait(&self, most: Option<Duration>, restarts: bool) -> Waited {
        cancel::point();
        loop {
            if signals::point() && !(restarts && signals::restart()) {
                return Waited::Interrupted;
            }
            if self.try_take() {
                // It has ended, and the thread has not looked yet.
                let _ = signals::point();
                return Waited::Posted;
            }
            match most {
                Some(most) if time::passes(most) => return Waited::TimedOut,
                None if !signals::are_coming() && !cancel::is_due() => self.sleep(),
                _ => thread::yield_now(),
            }
            cancel::point();
        }
    }

    fn sleep(&self) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count == 0 {
            count = self.posted.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
