//! The shared state of one running stack, and its life cycle.
use crate::waiters::{Waiters, Woken};
use crate::{Clock, RealClock};
use proto::{ConnId, Instant, ListenerId, RxBatch, Stack, TxPacket};
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;
use sync::{Mutex, MutexGuard, PoisonError};

/// The stack that a [`Pump`](crate::Pump) moves packets for: one running stack behind its lock.
/// [`Host`] implements it; another interface to the stack (descriptors instead of handles)
/// implements its own.
pub trait Pumped {
    /// Exchanges packets with the outside: takes received packets and the time, returns at most
    /// `tx_max` packets and the wakers to wake. Packets that are not for this stack stay in `rx`.
    fn exchange(
        &self,
        rx: &mut RxBatch,
        tx: &mut VecDeque<TxPacket>,
        tx_max: usize,
        woken: &mut Vec<Waker>,
    ) -> Exchange;

    /// Takes back packets of an exchange that the device rejected. Leaves `refused` empty.
    fn take_back(&self, refused: &mut VecDeque<TxPacket>);
}

/// A stack that many tasks may call at once.
///
/// Every method locks, works in memory and unlocks; none blocks, none makes a system call. Methods
/// named `poll_*` register the caller's waker if they would block; a waker is woken once and then
/// forgotten.
///
/// A panic inside the engine would be a bug. It poisons the lock, and every later call panics too,
/// except those that release handles (`close`, `abort`, …), which then do nothing.
pub struct Host<C = RealClock> {
    shared: Mutex<Shared>,
    clock: C,
    notify: Box<dyn Fn() + Send + Sync>,
}

/// Phase of a host's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Everything works.
    Running,
    /// Listeners and connections are closed; written data is still being delivered.
    Closing,
    /// Nothing moves any more.
    Stopped,
}

/// Error of a method of [`Host`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<E> {
    /// Error of the engine.
    Stack(E),
    /// The host is no longer [`Phase::Running`].
    Stopped,
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Stack(error) => error.fmt(f),
            Error::Stopped => f.write_str("the stack has been shut down"),
        }
    }
}

impl<E: std::error::Error> std::error::Error for Error<E> {}

/// Result of an exchange.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// Time of the next call that the stack needs.
    pub deadline: Option<Instant>,
    /// True if the stack may have more to send.
    pub is_capped: bool,
    /// Phase of the host's life.
    pub phase: Phase,
}

/// Passes packets and the time to the stack, and collects packets to send. Returns true if there
/// may be more than `tx_max`. Leaves events to the caller.
pub fn turn(
    stack: &mut Stack,
    now: Instant,
    rx: &mut RxBatch,
    tx: &mut VecDeque<TxPacket>,
    tx_max: usize,
) -> bool {
    if !rx.is_empty() {
        stack.handle_packets(now, rx);
    }
    stack.handle_timeout(now);
    while tx.len() < tx_max
        && let Some(packet) = stack.poll_transmit(now)
    {
        tx.push_back(packet);
    }
    tx.len() >= tx_max
}

pub(crate) struct Shared {
    pub(crate) stack: Stack,
    pub(crate) waiters: Waiters,
    pub(crate) phase: Phase,
    /// Handles held by the application.
    pub(crate) connections: HashSet<ConnId>,
    pub(crate) listeners: HashSet<ListenerId>,
    /// True if the pump was notified and has not stepped yet.
    notified: bool,
}

impl<C: Clock> Host<C> {
    /// Puts `stack` behind a lock. Calls `notify`, without the lock, when a method may have left
    /// work for the [`Pump`](crate::Pump): at most once until the pump steps.
    pub fn new(stack: Stack, clock: C, notify: impl Fn() + Send + Sync + 'static) -> Host<C> {
        let shared = Shared {
            stack,
            waiters: Waiters::default(),
            phase: Phase::Running,
            connections: HashSet::new(),
            listeners: HashSet::new(),
            notified: false,
        };
        Host { shared: Mutex::new(shared), clock, notify: Box::new(notify) }
    }

    /// Returns the host's clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// Returns the phase of the host's life.
    pub fn phase(&self) -> Phase {
        self.lock().phase
    }

    /// Reads the stack: counters, snapshots, caches. Other callers wait. A panic of `look` affects
    /// only its caller.
    pub fn inspect<R>(&self, look: impl FnOnce(&Stack) -> R) -> R {
        let shared = self.lock();
        // `look` cannot have changed the stack.
        let looked = catch_unwind(AssertUnwindSafe(|| look(&shared.stack)));
        drop(shared);
        looked.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Changes the stack (settings, addresses, keys, caches), and notifies the pump.
    pub fn configure<R>(&self, change: impl FnOnce(&mut Stack, Instant) -> R) -> R {
        self.mutate(|shared, now, _| change(&mut shared.stack, now))
    }

    /// Returns the number of sockets that tasks wait on.
    pub fn waiting_count(&self) -> usize {
        self.lock().waiters.len()
    }

    /// Closes every listener and every connection, like the end of a process: written data is still
    /// delivered, unread data resets. From here on, methods fail with [`Error::Stopped`].
    pub fn begin_shutdown(&self) {
        self.let_go(Shared::close_everything);
    }

    /// True if the peers have acknowledged everything, after
    /// [`begin_shutdown`](Self::begin_shutdown).
    pub fn is_delivered(&self) -> bool {
        self.lock().stack.undelivered() == 0
    }

    /// Ends everything, with a reset if a peer has not acknowledged everything. The pump's next
    /// step sends the last packets.
    pub fn stop(&self) {
        match self.shared.lock() {
            Ok(shared) => self.run(shared, |_| true, Shared::stop),
            // Wakes waiting tasks, so that they panic instead of waiting forever.
            Err(poisoned) => {
                let mut woken = Woken::new();
                poisoned.into_inner().waiters.remove_all(&mut woken);
                woken.into_iter().for_each(Waker::wake);
            }
        }
    }

    /// Runs a method under the lock, then wakes the collected wakers and notifies the pump.
    pub(crate) fn mutate<R>(&self, verb: impl FnOnce(&mut Shared, Instant, &mut Woken) -> R) -> R {
        self.run(self.lock(), |_| true, verb)
    }

    /// Runs a method like [`mutate`](Self::mutate) that rarely leaves work for the pump and never
    /// moves a deadline: notifies the pump only if there is something to send.
    pub(crate) fn consult<R>(&self, verb: impl FnOnce(&mut Shared, Instant, &mut Woken) -> R) -> R {
        self.run(self.lock(), Stack::is_transmit_pending, verb)
    }

    /// Runs a method like [`mutate`](Self::mutate) that is called during a drop: does nothing after
    /// a panic.
    pub(crate) fn let_go(&self, verb: impl FnOnce(&mut Shared, Instant, &mut Woken)) {
        if let Ok(shared) = self.shared.lock() {
            self.run(shared, |_| true, verb);
        }
    }

    fn run<R>(
        &self,
        mut shared: MutexGuard<'_, Shared>,
        is_work: impl FnOnce(&Stack) -> bool,
        verb: impl FnOnce(&mut Shared, Instant, &mut Woken) -> R,
    ) -> R {
        let mut woken = Woken::new();
        let result = verb(&mut shared, self.clock.now(), &mut woken);
        let tell = is_work(&shared.stack) && !core::mem::replace(&mut shared.notified, true);
        drop(shared);
        woken.into_iter().for_each(Waker::wake);
        if tell {
            (self.notify)();
        }
        result
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(|poisoned: PoisonError<_>| {
            drop(poisoned);
            panic!("the stack panicked in another task")
        })
    }
}

impl<C: Clock> Pumped for Host<C> {
    fn exchange(
        &self,
        rx: &mut RxBatch,
        tx: &mut VecDeque<TxPacket>,
        tx_max: usize,
        woken: &mut Vec<Waker>,
    ) -> Exchange {
        let mut shared = self.lock();
        let now = self.clock.now();
        let Shared { stack, waiters, notified, phase, .. } = &mut *shared;
        *notified = false;
        let is_capped = turn(stack, now, rx, tx, tx_max);
        while let Some((socket, events)) = stack.poll_event() {
            waiters.notify(socket, events, woken);
        }
        Exchange { deadline: stack.poll_timeout(), is_capped, phase: *phase }
    }

    fn take_back(&self, refused: &mut VecDeque<TxPacket>) {
        let mut shared = self.lock();
        let now = self.clock.now();
        refused.drain(..).rev().for_each(|packet| shared.stack.handle_refusal(now, &packet));
    }
}

impl Shared {
    fn close_everything(&mut self, now: Instant, woken: &mut Woken) {
        if self.phase != Phase::Running {
            return;
        }
        self.phase = Phase::Closing;
        for id in sorted(&mut self.listeners) {
            self.stack.close_listener(now, id);
        }
        for id in sorted(&mut self.connections) {
            self.stack.close(now, id);
        }
        self.waiters.remove_all(woken);
    }

    fn stop(&mut self, now: Instant, woken: &mut Woken) {
        self.close_everything(now, woken);
        self.phase = Phase::Stopped;
        self.stack.abort_undelivered(now);
    }

    pub(crate) fn ensure_running<E>(&self) -> Result<(), Error<E>> {
        if self.phase == Phase::Running { Ok(()) } else { Err(Error::Stopped) }
    }
}

/// Empties the set in an order that does not depend on hashing.
fn sorted<T: Ord>(ids: &mut HashSet<T>) -> Vec<T> {
    let mut ids: Vec<T> = ids.drain().collect();
    ids.sort_unstable();
    ids
}

impl<C> fmt::Debug for Host<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}
