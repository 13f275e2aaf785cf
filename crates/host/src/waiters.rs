//! Waiting tasks: wakers by socket, and by the events after which an attempt may succeed.
//!
//! A waiter is registered under the lock of the call that would block, and removed when one of its
//! events comes. So no event is lost, and an idle registry only holds tasks that wait. Several
//! tasks may wait on one socket (two halves of a split stream, many acceptors); every one with a
//! matching interest is woken.
use core::time::Duration;
use proto::{Events, Instant, SocketId};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::task::Waker;

/// Number of waiters of a socket from which all are checked: woken, to register again if they still
/// wait. A waiter that did not return by the next check is removed, so that wakers of dropped
/// futures cannot pile up.
const ASKED_FROM: usize = 1024;

/// Least time between two checks. Without it, more than [`ASKED_FROM`] waiters that return slowly,
/// from the queue of a busy runtime, would trigger one check after another.
const ASKED_EVERY: Duration = Duration::from_secs(1);

/// Wakers collected under the lock, woken after it is released.
pub(crate) type Woken = SmallVec<[Waker; 4]>;

/// The wakers of one host.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    sockets: HashMap<SocketId, SmallVec<[Waiter; 2]>>,
    /// Time of the last check of any socket.
    asked_at: Option<Instant>,
}

#[derive(Debug)]
struct Waiter {
    interest: Events,
    waker: Waker,
    /// True if it was woken for a check and has not returned.
    asked: bool,
}

impl Waiters {
    /// Wakes `waker` at the next event of `socket` in `interest`. Repeated registration has no
    /// effect.
    pub(crate) fn register(
        &mut self,
        now: Instant,
        socket: SocketId,
        interest: Events,
        waker: &Waker,
        woken: &mut Woken,
    ) {
        let waiters = self.sockets.entry(socket).or_default();
        let is_same = |w: &&mut Waiter| w.interest == interest && w.waker.will_wake(waker);
        if let Some(waiter) = waiters.iter_mut().find(is_same) {
            waiter.asked = false;
            return;
        }
        if waiters.len() >= ASKED_FROM && self.asked_at.is_none_or(|at| now.since(at) >= ASKED_EVERY) {
            self.asked_at = Some(now);
            waiters.retain(|waiter| !waiter.asked);
            for waiter in waiters.iter_mut() {
                waiter.asked = true;
                woken.push(waiter.waker.clone());
            }
        }
        waiters.push(Waiter { interest, waker: waker.clone(), asked: false });
    }

    /// Removes every waiter of `socket` for one of `events`.
    pub(crate) fn notify(&mut self, socket: SocketId, events: Events, woken: &mut impl Extend<Waker>) {
        let Some(waiters) = self.sockets.get_mut(&socket) else { return };
        waiters.retain(|waiter| {
            let stays = !waiter.interest.intersects(events);
            if !stays {
                woken.extend([waiter.waker.clone()]);
            }
            stays
        });
        if waiters.is_empty() {
            self.sockets.remove(&socket);
        }
    }

    /// Removes every waiter of `socket`, which is going away.
    pub(crate) fn remove(&mut self, socket: SocketId, woken: &mut impl Extend<Waker>) {
        if let Some(waiters) = self.sockets.remove(&socket) {
            woken.extend(waiters.into_iter().map(|w| w.waker));
        }
    }

    /// Removes every waiter.
    pub(crate) fn remove_all(&mut self, woken: &mut impl Extend<Waker>) {
        woken.extend(self.sockets.drain().flat_map(|(_, waiters)| waiters).map(|w| w.waker));
    }

    /// Returns the number of sockets with waiters.
    pub(crate) fn len(&self) -> usize {
        self.sockets.len()
    }
}
