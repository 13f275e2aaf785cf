//! Who waits for what: wakers by socket and by the events that make trying again worthwhile.
//!
//! A waiter is registered under the lock that just said "would block", and is taken out when it is woken, so
//! nothing is lost and an idle registry holds only what really waits. Several tasks may wait on one socket
//! (two halves of a split stream, many acceptors); all whose interest matches are woken.
use proto::{Events, SocketId};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::task::Waker;

/// The most waiters of one socket. One more displaces the oldest, which is woken and registers anew if it still
/// cares: wakers of futures that were dropped cannot pile up.
pub(crate) const WAITERS_MAX: usize = 1024;

/// Wakers collected under the lock, to be woken after it is released.
pub(crate) type Woken = SmallVec<[Waker; 4]>;

/// The wakers of one host.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    sockets: HashMap<SocketId, SmallVec<[Waiter; 2]>>,
}

#[derive(Debug)]
struct Waiter {
    interest: Events,
    waker: Waker,
}

impl Waiters {
    /// Wakes `waker` at the next event of `socket` that `interest` contains. Registering twice is once.
    pub(crate) fn register(&mut self, socket: SocketId, interest: Events, waker: &Waker, woken: &mut Woken) {
        let waiters = self.sockets.entry(socket).or_default();
        if waiters.iter().any(|w| w.interest == interest && w.waker.will_wake(waker)) {
            return;
        }
        if waiters.len() >= WAITERS_MAX {
            woken.push(waiters.remove(0).waker);
        }
        waiters.push(Waiter { interest, waker: waker.clone() });
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
