//! A process in virtual time, with calls that really sleep and a clock that jumps.
//!
//! There are at least two threads. One drives time ([`sleep`](VirtualProcess::sleep),
//! [`next_packet`](VirtualProcess::next_packet)) and makes calls that do not wait. Others may make
//! calls that wait, asleep on a condition variable. Time stands still while a woken call returns to
//! its caller, until that caller has read the clock. A call therefore ends at the exact time of the
//! event that ended it.
//!
//! The clock advances by a microsecond whenever it is read, because callers spin on it for short
//! waits.

use crate::errno::{Errno, Stop};
use crate::process::Process;
use crate::sockets::Sockets;
use bytes::Bytes;
use core::time::Duration;
use proto::{Instant, RxPacket};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// One process, its stack and its clock.
#[derive(Debug)]
pub struct VirtualProcess {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug)]
struct Inner {
    sockets: Sockets,
    now: Instant,
    /// The queue before the device takes packets; otherwise it refuses them.
    admits: bool,
    /// Packets that have left, cut as the wire takes them, when, and how many TCP packets had come by then.
    sent: VecDeque<(Instant, Bytes, u64)>,
    /// The thread that drives time.
    driver: ThreadId,
    /// Until when each sleeping call sleeps.
    sleepers: Vec<(ThreadId, Option<Instant>)>,
    /// Woken calls that have not looked yet.
    woken: Vec<ThreadId>,
    /// Calls that slept and have ended, whose callers have not read the clock.
    owing: Vec<ThreadId>,
    /// Names in /proc of threads that have read it, and go on with what they do.
    returning: Vec<PathBuf>,
    /// Calls of all threads so far.
    calls: u64,
}

/// A thread that has come back from a call is given so many pauses to do what follows.
const LET_RUN_CHECKS: u32 = 1000;
const LET_RUN_PAUSE: Duration = Duration::from_micros(50);
/// What one reading of the clock takes.
const READING: Duration = Duration::from_micros(1);
/// Real time that a woken caller may take to read the clock before time goes on without it.
const WAKE_TIMEOUT: Duration = Duration::from_secs(2);
/// Real time without any call after which a sleeping call itself moves the clock: whoever drives it waits for this very call.
const STALLED: Duration = Duration::from_millis(40);

impl VirtualProcess {
    /// The clock shows `now`; the calling thread drives it.
    pub fn new(mut sockets: Sockets, now: Instant) -> VirtualProcess {
        sockets.stack_mut().tap_has_read(Some(0));
        let inner = Inner {
            sockets,
            now,
            admits: true,
            sent: VecDeque::new(),
            driver: thread::current().id(),
            sleepers: Vec::new(),
            woken: Vec::new(),
            owing: Vec::new(),
            returning: Vec::new(),
            calls: 0,
        };
        VirtualProcess { inner: Mutex::new(inner), changed: Condvar::new() }
    }

    /// Makes a call that does not wait.
    pub fn call<R>(&self, call: impl FnOnce(&mut Sockets, Instant) -> R) -> R {
        let mut inner = self.lock();
        inner.calls += 1;
        let now = inner.now;
        let result = call(&mut inner.sockets, now);
        self.settle(&mut inner);
        result
    }

    /// Makes a call that may wait. Repeats `attempt` after each event, or at its deadline.
    ///
    /// # Errors
    /// Returns the call's own errors, and `EDEADLK` if it waits in the thread that drives time for
    /// an event that no timer causes.
    pub fn wait<R>(
        &self,
        mut attempt: impl FnMut(&mut Sockets, Instant) -> Result<R, Stop>,
    ) -> Result<R, Errno> {
        let thread = thread::current().id();
        let mut inner = self.lock();
        inner.calls += 1;
        let mut slept = false;
        loop {
            let now = inner.now;
            let result = attempt(&mut inner.sockets, now);
            inner.woken.retain(|woken| *woken != thread);
            self.settle(&mut inner);
            let deadline = match result {
                Err(Stop::Wait(deadline)) => deadline,
                Err(Stop::Errno(errno)) => break self.ended(inner, slept, Err(errno)),
                Ok(value) => break self.ended(inner, slept, Ok(value)),
            };
            if inner.driver == thread {
                if !self.advance_to_next(&mut inner, deadline) {
                    break Err(Errno::EDEADLK);
                }
                continue;
            }
            slept = true;
            inner = self.sleep_until_woken(inner, thread, deadline);
        }
    }

    fn ended<R>(
        &self,
        mut inner: MutexGuard<'_, Inner>,
        slept: bool,
        result: Result<R, Errno>,
    ) -> Result<R, Errno> {
        if slept {
            inner.owing.push(thread::current().id());
        }
        self.changed.notify_all();
        result
    }

    fn sleep_until_woken<'a>(
        &self,
        mut inner: MutexGuard<'a, Inner>,
        thread: ThreadId,
        deadline: Option<Instant>,
    ) -> MutexGuard<'a, Inner> {
        inner.sleepers.push((thread, deadline));
        self.changed.notify_all();
        loop {
            let calls = inner.calls;
            let (again, result) = match self.changed.wait_timeout(inner, STALLED) {
                Ok(woken) => woken,
                Err(poisoned) => poisoned.into_inner(),
            };
            inner = again;
            if inner.woken.contains(&thread) {
                return inner;
            }
            if result.timed_out() && inner.calls == calls && inner.is_driver_stalled() {
                self.advance_to_next(&mut inner, None);
            }
        }
    }

    /// Time passes: `by`, and everything due until then happens.
    pub fn sleep(&self, by: Duration) {
        let mut inner = self.quiesce(self.lock());
        let returning = std::mem::take(&mut inner.returning);
        drop(inner);
        returning.iter().for_each(|thread| let_run(thread));
        let mut inner = self.quiesce(self.lock());
        inner.calls += 1;
        let until = inner.now + by;
        while let Some(next) = inner.next_deadline().filter(|next| *next <= until) {
            self.advance(&mut inner, next);
            inner = self.quiesce(inner);
        }
        self.advance(&mut inner, until);
        drop(self.quiesce(inner));
    }

    /// The time; it has moved a little since it was last asked for.
    pub fn time(&self) -> Instant {
        let thread = thread::current().id();
        let mut inner = self.lock();
        inner.calls += 1;
        if inner.owing.contains(&thread) {
            inner.owing.retain(|owing| *owing != thread);
            inner.returning.extend(std::fs::read_link("/proc/thread-self"));
        }
        let next = inner.now + READING;
        self.advance(&mut inner, next);
        self.changed.notify_all();
        next
    }

    /// Lets the queue before the device accept packets (the default), or reject all of them.
    /// Rejected packets do not leave, and the stack learns of it.
    pub fn set_admission(&self, admits: bool) {
        let mut inner = self.lock();
        inner.admits = admits;
    }

    /// A packet comes from the network.
    pub fn inject(&self, packet: Bytes) {
        let mut inner = self.quiesce(self.lock());
        inner.calls += 1;
        let now = inner.now;
        inner.sockets.stack_mut().handle_packet(now, RxPacket::new(packet));
        self.settle(&mut inner);
    }

    /// Returns the next packet that left, and its time. If there is none, lets time pass until
    /// there is one, at most `most`. Returns `None` if none came.
    pub fn next_packet(&self, most: Duration) -> Option<(Instant, Bytes)> {
        let mut inner = self.quiesce(self.lock());
        inner.calls += 1;
        let until = inner.now + most;
        while inner.sent.is_empty() {
            let next = inner.next_deadline().filter(|next| *next <= until)?;
            self.advance(&mut inner, next);
            inner = self.quiesce(inner);
        }
        let (at, packet, came) = inner.sent.pop_front()?;
        inner.sockets.stack_mut().tap_has_read(Some(came));
        Some((at, packet))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every call that was woken has gone to sleep again, or its caller has read the clock.
    fn quiesce<'a>(&self, mut inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        while !inner.woken.is_empty() || !inner.owing.is_empty() {
            let (again, result) = match self.changed.wait_timeout(inner, WAKE_TIMEOUT) {
                Ok(woken) => woken,
                Err(poisoned) => poisoned.into_inner(),
            };
            inner = again;
            if result.timed_out() {
                inner.owing.clear();
                inner.woken.clear();
            }
        }
        inner
    }

    /// Lets time jump to the next deadline of the stack, of a sleeping call, or to `own`. False: there is none.
    fn advance_to_next(&self, inner: &mut MutexGuard<'_, Inner>, own: Option<Instant>) -> bool {
        let next = inner.next_deadline().into_iter().chain(own).min();
        if let Some(next) = next {
            self.advance(inner, next);
        }
        next.is_some()
    }

    fn advance(&self, inner: &mut MutexGuard<'_, Inner>, to: Instant) {
        inner.now = inner.now.max(to);
        let now = inner.now;
        inner.sockets.stack_mut().handle_timeout(now);
        self.settle(inner);
    }

    /// What follows every change: packets leave, and whom it concerns looks again.
    fn settle(&self, inner: &mut MutexGuard<'_, Inner>) {
        let now = inner.now;
        let mut any = false;
        loop {
            while let Some(packet) = inner.sockets.stack_mut().poll_transmit(now) {
                if !inner.admits {
                    inner.sockets.stack_mut().handle_refusal(now, &packet);
                    continue;
                }
                let came = inner.sockets.stack_mut().counters().in_segs;
                inner.sent.extend(packet.segments().into_iter().map(|packet| (now, packet, came)));
            }
            if !inner.sockets.notice() {
                break;
            }
            any = true;
        }
        let due = |deadline: &Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        let woken = inner.sleepers.extract_if(.., |(_, deadline)| any || due(deadline));
        let woken: Vec<ThreadId> = woken.map(|(thread, _)| thread).collect();
        if !woken.is_empty() {
            inner.woken.extend(woken);
            self.changed.notify_all();
        }
    }
}

impl Inner {
    fn next_deadline(&mut self) -> Option<Instant> {
        let calls = self.sleepers.iter().filter_map(|(_, deadline)| *deadline).min();
        self.sockets.stack_mut().poll_timeout().into_iter().chain(calls).min()
    }

    /// Is the thread that drives time itself waiting, on a lock that only the end of a call will open?
    fn is_driver_stalled(&self) -> bool {
        self.woken.is_empty() && self.owing.is_empty() && driver_waits_for_lock()
    }
}

/// Waits in real time until another thread waits for something.
fn let_run(thread: &Path) {
    for _ in 0..LET_RUN_CHECKS {
        let stat = std::fs::read_to_string(Path::new("/proc").join(thread).join("stat"));
        let state = stat.ok().and_then(|stat| stat.rsplit_once(')').map(|(_, rest)| rest.starts_with(" S")));
        if state != Some(false) {
            return;
        }
        thread::sleep(LET_RUN_PAUSE);
    }
}

/// Is the process's first thread inside `futex`?
fn driver_waits_for_lock() -> bool {
    let path = format!("/proc/self/task/{}/syscall", std::process::id());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().next() == Some(FUTEX)
}

/// Number of the system call.
#[cfg(target_arch = "x86_64")]
const FUTEX: &str = "202";
/// Number of the system call.
#[cfg(not(target_arch = "x86_64"))]
const FUTEX: &str = "98";

impl Process for VirtualProcess {
    fn call<R>(&self, call: impl FnOnce(&mut Sockets, Instant) -> R) -> R {
        VirtualProcess::call(self, call)
    }

    fn wait<R>(&self, attempt: impl FnMut(&mut Sockets, Instant) -> Result<R, Stop>) -> Result<R, Errno> {
        VirtualProcess::wait(self, attempt)
    }
}
