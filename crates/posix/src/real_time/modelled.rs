//! What the checker has in the place of an event descriptor and a semaphore.

use crate::errno::Errno;
use core::time::Duration;
use libc::{pollfd, sigset_t};
use sync::model::signals::Unmasked;
use sync::model::{Token, Waited};

#[derive(Debug)]
pub(super) struct Event(Token);

impl Event {
    pub(super) fn new() -> Result<Event, Errno> {
        Ok(Event(Token::default()))
    }

    pub(super) fn set(&self) {
        self.0.post();
    }

    /// There are no other descriptors here, and no mask of the caller's; handlers run meanwhile.
    pub(super) fn sleep(
        &self,
        others: &mut [pollfd],
        most: Option<Duration>,
        mask: Option<&sigset_t>,
    ) -> Result<(), Errno> {
        assert!(others.is_empty() && mask.is_none(), "the kernel's descriptors are not in the model");
        let _handlers_run = Unmasked::new();
        match self.0.wait(most, false) {
            Waited::Interrupted => return Err(Errno::EINTR),
            Waited::Posted => self.0.clear(),
            Waited::TimedOut => {}
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct Semaphore(Token);

impl Semaphore {
    pub(super) fn new() -> Semaphore {
        Semaphore(Token::default())
    }

    pub(super) fn post(&self) {
        self.0.post();
    }

    pub(super) fn try_take(&self) -> bool {
        self.0.try_take()
    }

    /// signal(7): a wait with a time-out is never restarted.
    pub(super) fn wait(&self, most: Option<Duration>) -> Waited {
        self.0.wait(most, most.is_none())
    }
}
