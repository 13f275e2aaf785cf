//! Waiting for ours and the kernel's at once: the thread sleeps in the kernel's `ppoll`, where a bell stands for ours.
//!
//! So signals, and the mask that `ppoll`, `pselect` and `epoll_pwait` set while they sleep, are the kernel's business alone.

use crate::numbers::last_error;
use crate::real;
use core::ptr;
use core::time::Duration;
use libc::{c_int, pollfd, sigset_t, timespec};
use posix::{Errno, RealProcess, Sockets, Stop};
use rustix::event::{EventfdFlags, eventfd};
use std::cell::OnceCell;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Instant;

/// One thread's bell.
#[derive(Debug)]
struct Bell(OwnedFd);

impl Wake for Bell {
    fn wake(self: Arc<Bell>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Bell>) {
        // Full: it rings.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

impl Bell {
    fn silence(&self) {
        let mut count = [0; 8];
        // Nothing there: it does not ring.
        let _ = rustix::io::read(&self.0, &mut count);
    }

    /// The calling thread's own.
    fn own() -> Result<Arc<Bell>, Errno> {
        thread_local! {
            static OWN: OnceCell<Arc<Bell>> = const { OnceCell::new() };
        }
        let new = || {
            let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
            eventfd(0, flags).map(|fd| Arc::new(Bell(fd))).map_err(|errno| Errno(errno.raw_os_error()))
        };
        let kept = OWN.try_with(|own| match own.get() {
            Some(bell) => Ok(Arc::clone(bell)),
            None => new().map(|bell| Arc::clone(own.get_or_init(|| bell))),
        });
        // A thread that is ending has given its own back.
        kept.unwrap_or_else(|_| new())
    }
}

/// Until `ours` or `kernel` finds something (how many), or `timeout` has passed (0).
///
/// `ours` is one attempt that says [`Stop::Wait`] when there is nothing, about the stack's descriptors `watched`. `kernel` looks without
/// sleeping at what `sleep_on`'s entries stand for, given how many were found already.
pub(crate) fn wait(
    process: &RealProcess,
    watched: &[c_int],
    mut ours: impl FnMut(&mut Sockets, proto::Instant) -> Result<usize, Stop>,
    mut kernel: impl FnMut(usize) -> Result<usize, Errno>,
    sleep_on: &[pollfd],
    timeout: Option<Duration>,
    mask: *const sigset_t,
) -> Result<usize, Errno> {
    let bell = Bell::own()?;
    let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut sleepers = sleep_on.to_vec();
    sleepers.push(pollfd { fd: bell.0.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let mut waiting = process.waiting(Waker::from(Arc::clone(&bell)));
    loop {
        bell.silence();
        let found = match waiting.attempt(watched, &mut ours) {
            Ok(found) => found,
            Err(Stop::Wait(_)) => 0,
            Err(Stop::Errno(errno)) => return Err(errno),
        };
        let found = found + kernel(found)?;
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if found > 0 || left.is_some_and(|left| left.is_zero()) {
            return Ok(found);
        }
        sleep(&mut sleepers, left, mask)?;
    }
}

fn sleep(fds: &mut [pollfd], most: Option<Duration>, mask: *const sigset_t) -> Result<(), Errno> {
    let time = most.map(|most| timespec {
        tv_sec: libc::time_t::try_from(most.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: most.subsec_nanos().into(),
    });
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the entries are this slice, the time is null or valid, the mask null or the application's.
    let found = unsafe { real::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, time, mask) };
    if found < 0 { Err(last_error()) } else { Ok(()) }
}

/// A time-out in milliseconds; negative is for ever.
pub(crate) fn milliseconds(timeout: c_int) -> Option<Duration> {
    u64::try_from(timeout).ok().map(Duration::from_millis)
}

/// A time-out of C; null is for ever.
///
/// # Errors
/// `EINVAL`.
///
/// # Safety
/// `timeout` is null or can be read.
pub(crate) unsafe fn time(timeout: *const timespec) -> Result<Option<Duration>, Errno> {
    // SAFETY: as the caller says.
    let Some(time) = (unsafe { timeout.as_ref() }) else { return Ok(None) };
    let seconds = u64::try_from(time.tv_sec).map_err(|_| Errno::EINVAL)?;
    let nanos =
        u32::try_from(time.tv_nsec).ok().filter(|nanos| *nanos < 1_000_000_000).ok_or(Errno::EINVAL)?;
    Ok(Some(Duration::new(seconds, nanos)))
}
