//! Who waits for what: wakers by socket and by the events that make trying again worthwhile.
//!
//! A waiter is registered under the lock that just said "would block", and is taken out when one of its events comes, so nothing is lost and
//! an idle registry holds only what really waits. Several tasks may wait on one socket (two halves of a split stream, many acceptors); all
//! whose interest matches are woken.
use core::time::Duration;
use proto::{Events, Instant, SocketId};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::task::Waker;

/// From so many waiters of one socket on, all are asked: woken, to register anew if they still care. Who was asked and did not is
/// forgotten the next time, so that wakers of futures that were dropped cannot pile up.
const ASKED_FROM: usize = 1024;

/// The least time between two rounds of asking. Without it more than [`ASKED_FROM`] waiters that do care, and come back as slowly as
/// a runtime with much to do polls them, would ask one another for ever.
const ASKED_EVERY: Duration = Duration::from_secs(1);

/// Wakers collected under the lock, to be woken after it is released.
pub(crate) type Woken = SmallVec<[Waker; 4]>;

/// The wakers of one host.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    sockets: HashMap<SocketId, SmallVec<[Waiter; 2]>>,
    /// When waiters of any socket were asked last.
    asked_at: Option<Instant>,
}

#[derive(Debug)]
struct Waiter {
    interest: Events,
    waker: Waker,
    /// It was woken, and has not come back.
    asked: bool,
}

impl Waiters {
    /// Wakes `waker` at the next event of `socket` that `interest` contains. Registering twice is once.
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

    /// Takes out everyone who waits for one of `events`.
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

    /// Takes out everyone who waits for `socket`, which is going away.
    pub(crate) fn remove(&mut self, socket: SocketId, woken: &mut impl Extend<Waker>) {
        if let Some(waiters) = self.sockets.remove(&socket) {
            woken.extend(waiters.into_iter().map(|w| w.waker));
        }
    }

    /// Takes out everyone.
    pub(crate) fn remove_all(&mut self, woken: &mut impl Extend<Waker>) {
        woken.extend(self.sockets.drain().flat_map(|(_, waiters)| waiters).map(|w| w.waker));
    }

    /// Sockets somebody waits for.
    pub(crate) fn len(&self) -> usize {
        self.sockets.len()
    }
}
