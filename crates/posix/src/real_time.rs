//! A process in real time, with calls that really sleep in any number of threads.
//!
//! The calls are those of [`VirtualProcess`](crate::VirtualProcess). Only the clock and its driver
//! differ. [`RealProcess`] is the sockets behind a lock that is never held across a system call. A
//! call makes one attempt. If it has to wait, its thread sleeps until one of three events:
//! something happens to a descriptor it waits for (`waiters`), its time-out, or a signal (`parker`;
//! `ready` if it waits for readiness, including the kernel's descriptors). Packets and time come
//! from a separate thread, which [`Running`] starts: [`host::Pump`] between the stack and any
//! [`device::Device`] (`driver`).
//!
//! **Signals.** A handler interrupts a sleeping call as in Linux. Calls with a time-out, `poll`,
//! `select` and `epoll_wait` always return `EINTR`. Other calls do unless the handler was installed
//! with `SA_RESTART`. No handler runs while its thread has the lock. In a call entered by
//! [`life::entered`](crate::c::life::entered), no handler runs before the call sleeps, so a handler
//! that sends or receives does not wait for its own thread. Calls allocate memory, so a handler may
//! make them only if it did not interrupt the same allocator. The preload library has its own
//! allocator.
//!
//! **Cancellation.** A call sleeps in a cancellation point (pthreads(7)). A cancelled thread waits
//! for nothing afterwards.

mod bell;
mod driver;
#[cfg(not(feature = "shuttle"))]
mod event;
#[cfg(feature = "shuttle")]
mod modelled;
mod parker;
mod ready;
mod stay;
mod waiters;

pub use driver::{Ended, Running};

use crate::errno::{Errno, Stop};
use crate::files::open::Open;
use crate::process::{Look, Process, Sides, Waits, Watch};
use crate::sockets::Sockets;
#[cfg(not(feature = "shuttle"))]
use crate::system::{
    masked::{Masked, Unmasked},
    semaphore::{Semaphore, Waited},
};
#[cfg(not(feature = "shuttle"))]
use event::Event;
use host::{Clock, Exchange, Phase, Pumped, RealClock, turn};
use libc::c_int;
#[cfg(feature = "shuttle")]
use modelled::{Event, Semaphore};
use parker::{Parked, Parker};
use proto::{Instant, RxBatch, TxPacket};
use stay::Stay;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::task::Waker;
#[cfg(feature = "shuttle")]
use sync::model::{
    Waited,
    signals::{Masked, Unmasked},
};
use sync::{Mutex, MutexGuard, PoisonError};
use waiters::Waiters;

/// The sockets of one process, and its threads that wait.
pub struct RealProcess<C = RealClock> {
    inner: Mutex<Inner>,
    clock: C,
    /// Tells the driver that there is work.
    notify: Box<dyn Fn() + Send + Sync>,
    /// The library's descriptors begin here: below are the kernel's.
    first_descriptor: i32,
}

/// A call that is tried until it need not wait; see [`RealProcess::waiting`]. A dropped value no
/// longer waits.
///
/// As in the kernel, it continues with the files it started with. Another thread may close its
/// descriptors meanwhile, or reuse their numbers for other files.
#[derive(Debug)]
pub struct Waiting<'a, C: Clock = RealClock> {
    process: &'a RealProcess<C>,
    /// Where it is entered among those that wait.
    place: Option<u64>,
    /// What its descriptors stood for when it began to wait.
    held: Vec<(i32, Open)>,
}

impl<C: Clock> Waiting<'_, C> {
    /// Makes one attempt. If it has to wait, later events of `fds` (or any event, without `fds`)
    /// wake `waker`, which is requested only then. `fds` must be the same each time.
    ///
    /// # Errors
    /// Returns the call's own errors, `ENETDOWN` after the end of the stack, or [`Stop::Wait`].
    pub fn attempt<R>(
        &mut self,
        fds: &[i32],
        waker: impl FnOnce() -> Waker,
        attempt: impl FnOnce(&mut Sockets, Instant) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        let mut locked = self.process.lock();
        let inner = &mut *locked;
        if let Some(place) = self.place.take() {
            inner.waiters.remove(place);
        }
        if inner.phase != Phase::Running {
            return Err(Errno::ENETDOWN.into());
        }
        let now = self.process.clock.now();
        inner.sockets.files.stand_in(&self.held);
        let result = attempt(&mut inner.sockets, now);
        inner.sockets.files.stand_in(&[]);
        if let Err(Stop::Wait(_)) = result {
            if self.held.is_empty() {
                self.held = inner.sockets.hold(fds);
            }
            let files = self.held.iter().map(|(_, open)| *open).collect();
            self.place = Some(inner.waiters.add(files, waker()));
        } else {
            inner.let_go(now, &mut self.held);
        }
        self.process.settle(locked);
        result
    }
}

impl<C: Clock> Drop for Waiting<'_, C> {
    fn drop(&mut self) {
        if self.place.is_none() && self.held.is_empty() {
            return;
        }
        let mut inner = self.process.lock();
        if let Some(place) = self.place.take() {
            inner.waiters.remove(place);
        }
        inner.let_go(self.process.clock.now(), &mut self.held);
        self.process.settle(inner);
    }
}

struct Inner {
    sockets: Sockets,
    waiters: Waiters<Open>,
    phase: Phase,
    /// The driver has been told, and has not come yet.
    notified: bool,
    /// When the driver comes by itself.
    next_exchange: Option<Instant>,
}

impl<C: Clock> RealProcess<C> {
    /// Creates a process. It calls `notify` without the lock when a call may have left work for its
    /// [`host::Pump`], at most once until the pump has run.
    pub fn new(sockets: Sockets, clock: C, notify: impl Fn() + Send + Sync + 'static) -> RealProcess<C> {
        let first_descriptor = sockets.first_descriptor();
        let inner = Inner {
            sockets,
            waiters: Waiters::default(),
            phase: Phase::Running,
            notified: false,
            next_exchange: None,
        };
        RealProcess { inner: Mutex::new(inner), clock, notify: Box::new(notify), first_descriptor }
    }

    /// The clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// Makes a call that does not wait. After the end of the stack there are no descriptors, and
    /// none can be created.
    pub fn call<R>(&self, call: impl FnOnce(&mut Sockets, Instant) -> R) -> R {
        let mut inner = self.lock();
        let result = call(&mut inner.sockets, self.clock.now());
        self.settle(inner);
        result
    }

    /// Makes a call that may wait. Repeats `attempt` after each event, or at its deadline.
    ///
    /// # Errors
    /// Returns the call's own errors, `EINTR`, or `ENETDOWN` if the stack ends meanwhile.
    pub fn wait<R>(
        &self,
        watch: Watch<'_>,
        mut attempt: impl FnMut(&mut Sockets, Instant) -> Result<R, Stop>,
    ) -> Result<R, Errno> {
        let mut waiting = self.waiting();
        // Only a call that waits needs it: to make one asks libc for memory, which a handler may not.
        let mut stay = None;
        let of_thread = || Stay::begin(Parker::current());
        loop {
            let waker = || stay.get_or_insert_with(of_thread).place().waker();
            let deadline = match waiting.attempt(watch.fds, waker, &mut attempt) {
                Ok(value) => return Ok(value),
                Err(Stop::Errno(errno)) => return Err(errno),
                Err(Stop::Wait(deadline)) => deadline,
            };
            let parker = stay.get_or_insert_with(of_thread).place();
            let left = deadline.map(|deadline| deadline.since(self.clock.now()));
            if parker.park(left) == Parked::Interrupted {
                return Err(Errno::EINTR);
            }
        }
    }

    /// A call that waits in a place of its own.
    pub fn waiting(&self) -> Waiting<'_, C> {
        Waiting { process: self, place: None, held: Vec::new() }
    }

    /// Closes every descriptor, like the end of a process: written data is still delivered, and
    /// unread data causes a reset. Waiting calls fail with `ENETDOWN`.
    pub fn begin_shutdown(&self) {
        let mut inner = self.lock();
        if inner.phase == Phase::Running {
            inner.phase = Phase::Closing;
            let now = self.clock.now();
            inner.sockets.end(now);
        }
        inner.release_everybody();
        inner.notified = true;
        drop(inner);
        (self.notify)();
    }

    /// Ends everything, with a reset where a peer has not acknowledged all of it.
    fn stop(&self) {
        let mut inner = self.lock();
        let now = self.clock.now();
        if inner.phase == Phase::Running {
            inner.sockets.end(now);
        }
        inner.phase = Phase::Stopped;
        inner.sockets.stack_mut().abort_undelivered(now);
        inner.release_everybody();
    }

    /// Calls that wait.
    pub fn waiting_count(&self) -> usize {
        self.lock().waiters.len()
    }

    /// The driver goes to sleep until `planned`: what there is to do it knows, or is about to be told.
    #[cfg(feature = "shuttle")]
    fn assert_nothing_is_untold(&self, planned: Option<Instant>) {
        let mut inner = self.lock_by_driver();
        let stack = inner.sockets.stack_mut();
        let due = stack.poll_timeout();
        let rests = !stack.is_transmit_pending()
            && due.is_none_or(|due| planned.is_some_and(|planned| planned <= due));
        assert!(inner.notified || rests, "the driver sleeps, and nobody tells it what there is to do");
    }

    /// Has every peer acknowledged everything? Meaningful after [`begin_shutdown`](Self::begin_shutdown).
    fn is_delivered(&self) -> bool {
        self.lock().sockets.stack().undelivered() == 0
    }

    /// What follows every call: whom it concerns is woken, and the driver is told what there is to do.
    fn settle(&self, mut inner: Locked<'_>) {
        let mut woken = Vec::new();
        inner.notice(&mut woken);
        let tell = inner.has_work() && !std::mem::replace(&mut inner.notified, true);
        drop(inner);
        woken.into_iter().for_each(Waker::wake);
        if tell {
            (self.notify)();
        }
    }

    fn lock(&self) -> Locked<'_> {
        let masked = Masked::new();
        Locked { inner: self.lock_by_driver(), _masked: masked }
    }

    /// In the driver's thread no handler runs.
    fn lock_by_driver(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lock, given back before handlers run again.
struct Locked<'a> {
    inner: MutexGuard<'a, Inner>,
    _masked: Masked,
}

impl Deref for Locked<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

impl Inner {
    fn notice(&mut self, woken: &mut Vec<Waker>) {
        self.sockets.notice();
        let Inner { sockets, waiters, .. } = self;
        sockets.take_stirred(|open| waiters.stir(open, woken));
    }

    /// Is there something to send, or a deadline before the driver comes?
    fn has_work(&mut self) -> bool {
        let stack = self.sockets.stack_mut();
        stack.is_transmit_pending()
            || stack
                .poll_timeout()
                .is_some_and(|deadline| self.next_exchange.is_none_or(|planned| deadline < planned))
    }

    /// A call holds its files no more. The end of the stack has let go of all of them.
    fn let_go(&mut self, now: Instant, held: &mut Vec<(i32, Open)>) {
        for (_, open) in held.drain(..) {
            if self.phase == Phase::Running {
                self.sockets.let_go(now, open);
            }
        }
    }

    fn release_everybody(&mut self) {
        let mut woken = Vec::new();
        self.waiters.stir_all(&mut woken);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl<C: Clock> Pumped for RealProcess<C> {
    fn exchange(
        &self,
        rx: &mut RxBatch,
        tx: &mut VecDeque<TxPacket>,
        tx_max: usize,
        woken: &mut Vec<Waker>,
    ) -> Exchange {
        let mut inner = self.lock_by_driver();
        let now = self.clock.now();
        inner.notified = false;
        let is_capped = turn(inner.sockets.stack_mut(), now, rx, tx, tx_max);
        inner.notice(woken);
        let deadline = inner.sockets.stack_mut().poll_timeout();
        inner.next_exchange = deadline;
        Exchange { deadline, is_capped, phase: inner.phase }
    }

    fn take_back(&self, refused: &mut VecDeque<TxPacket>) {
        let mut inner = self.lock_by_driver();
        let now = self.clock.now();
        refused.drain(..).rev().for_each(|packet| inner.sockets.stack_mut().handle_refusal(now, &packet));
    }
}

impl<C: Clock> Process for RealProcess<C> {
    fn call<R>(&self, call: impl FnOnce(&mut Sockets, Instant) -> R) -> R {
        RealProcess::call(self, call)
    }

    fn wait<R>(&self, attempt: impl FnMut(&mut Sockets, Instant) -> Result<R, Stop>) -> Result<R, Errno> {
        RealProcess::wait(self, Watch::default(), attempt)
    }

    fn wait_for<R>(
        &self,
        watch: Watch<'_>,
        attempt: impl FnMut(&mut Sockets, Instant) -> Result<R, Stop>,
    ) -> Result<R, Errno> {
        RealProcess::wait(self, watch, attempt)
    }

    fn sides(&self, fd: c_int) -> Sides {
        if fd >= self.first_descriptor { Sides::ours(fd) } else { Sides::kernels(fd) }
    }

    fn wait_ready(&self, waits: &Waits<'_>, look: &mut impl Look) -> Result<(), Errno> {
        RealProcess::wait_ready(self, waits, look)
    }
}

impl<C> std::fmt::Debug for RealProcess<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RealProcess").finish_non_exhaustive()
    }
}
