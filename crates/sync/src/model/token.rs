//! The object that a thread sleeps on.

use super::{cancel, signals, time};
use shuttle::sync::{Condvar, Mutex, PoisonError};
use shuttle::thread;
use std::time::Duration;

/// A counter that one thread increments and another sleeps on: a semaphore, or an event descriptor.
#[derive(Debug, Default)]
pub struct Token {
    count: Mutex<u32>,
    posted: Condvar,
}

/// Result of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The counter was above zero.
    Posted,
    /// The timeout expired.
    TimedOut,
    /// A signal handler ran.
    Interrupted,
}

impl Token {
    /// Increments the counter.
    pub fn post(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.posted.notify_all();
    }

    /// Decrements the counter if it is above zero. Returns false if it was zero.
    pub fn try_take(&self) -> bool {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = *count > 0;
        *count -= u32::from(taken);
        taken
    }

    /// Sets the counter to zero.
    pub fn clear(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) = 0;
    }

    /// Sleeps until the counter is above zero, then decrements it, or until `most` has passed.
    /// `restarts`: continues after a handler that was installed with `SA_RESTART`.
    pub fn wait(&self, most: Option<Duration>, restarts: bool) -> Waited {
        cancel::point();
        loop {
            if signals::point() && !(restarts && signals::restart()) {
                return Waited::Interrupted;
            }
            if self.try_take() {
                // The sleep has ended, but the thread has not checked yet.
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
