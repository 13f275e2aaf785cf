//! `poll` and `select`, and their relatives with a mask of signals.
//!
//! The kernel's descriptors may stand among the library's. A mask holds for the calling thread while it waits, and is set in one step with
//! that: `real_time` has how.

use super::{Process, duration};
use crate::errno::Errno;
use crate::process::{Look, Waits};
use crate::readiness::PollFd;
use crate::ready::Ready;
use crate::sockets::Sockets;
use crate::system::kernel;
use core::time::Duration;
use libc::{c_int, c_short, c_ulong, nfds_t, pollfd, sigset_t, timespec, timeval};
use proto::Instant;

/// Linux's `INR_OPEN_MAX`, the most entries of `poll` without a raised limit.
const POLL_MAX: usize = 1 << 20;

/// Converts milliseconds. A negative number means no limit.
pub fn millis(timeout_ms: c_int) -> Option<Duration> {
    u64::try_from(timeout_ms).ok().map(Duration::from_millis)
}

/// Converts a `timespec`. Null means no limit.
///
/// # Errors
/// Returns `EINVAL` for an invalid value.
///
/// # Safety
/// `timeout` is null or can be read.
pub unsafe fn time(timeout: *const timespec) -> Result<Option<Duration>, Errno> {
    // SAFETY: the caller says it is null or can be read.
    unsafe { timeout.as_ref() }.map(duration).transpose()
}

/// A set of signals; null is none.
pub(super) unsafe fn signals(mask: *const sigset_t) -> Option<sigset_t> {
    // SAFETY: the caller says it is null or can be read.
    unsafe { mask.as_ref() }.copied()
}

/// How long, and which signals are blocked meanwhile.
type Until = (Option<Duration>, Option<sigset_t>);

/// `poll`.
///
/// # Safety
/// `fds` is null, or `count` entries there can be read and written.
pub unsafe fn poll(
    process: &impl Process,
    fds: *mut pollfd,
    count: nfds_t,
    timeout_ms: c_int,
) -> Result<i32, Errno> {
    // SAFETY: as the caller says.
    unsafe { poll_for(process, fds, count, (millis(timeout_ms), None)) }
}

/// `ppoll`.
///
/// # Safety
/// As of [`poll`]; `timeout` and `mask` are null or can be read.
pub unsafe fn ppoll(
    process: &impl Process,
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> Result<i32, Errno> {
    // SAFETY: as the caller says.
    unsafe {
        let until = (time(timeout)?, signals(mask));
        poll_for(process, fds, count, until)
    }
}

unsafe fn poll_for(
    process: &impl Process,
    fds: *mut pollfd,
    count: nfds_t,
    until: Until,
) -> Result<i32, Errno> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let entries: &mut [pollfd] = match count {
        0 => &mut [],
        _ if count > POLL_MAX => return Err(Errno::EINVAL),
        _ if fds.is_null() => return Err(Errno::EFAULT),
        // SAFETY: as the caller says.
        _ => unsafe { core::slice::from_raw_parts_mut(fds, count) },
    };
    poll_entries(process, entries, until)?;
    Ok(entries.iter().filter(|entry| entry.revents != 0).count() as i32)
}

/// Waits, and says in the entries what was found.
fn poll_entries(process: &impl Process, entries: &mut [pollfd], (timeout, mask): Until) -> Result<(), Errno> {
    let mut looks = Looks::default();
    for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.fd >= 0) {
        let sides = process.sides(entry.fd);
        if let Some(fd) = sides.ours {
            let events = Ready::from_bits_truncate(u32::from(entry.events as u16));
            looks.ours.push((at, PollFd { fd, events, found: Ready::empty() }));
        }
        if let Some(fd) = sides.kernels {
            looks.kernels_at.push(at);
            looks.kernels.push(pollfd { fd, events: entry.events, revents: 0 });
        }
    }
    let ours: Vec<c_int> = looks.ours.iter().map(|(_, entry)| entry.fd).collect();
    let reads = |(_, entry): &&(usize, PollFd)| entry.events.intersects(Ready::IN | Ready::RDNORM);
    let read: Vec<c_int> = looks.ours.iter().filter(reads).map(|(_, entry)| entry.fd).collect();
    let kernels = looks.kernels.clone();
    let waits = Waits { ours: &ours, read: &read, kernels: &kernels, timeout, mask, hears_at_once: true };
    process.wait_ready(&waits, &mut looks)?;
    entries.iter_mut().for_each(|entry| entry.revents = 0);
    for (at, entry) in looks.ours {
        entries[at].revents |= entry.found.bits() as c_short;
    }
    for (at, entry) in looks.kernels_at.into_iter().zip(looks.kernels) {
        entries[at].revents |= entry.revents;
    }
    Ok(())
}

/// The entries of both kinds, and which of the application's each is.
#[derive(Default)]
struct Looks {
    ours: Vec<(usize, PollFd)>,
    kernels: Vec<pollfd>,
    kernels_at: Vec<usize>,
}

impl Look for Looks {
    fn ours(&mut self, sockets: &mut Sockets) -> Result<bool, Errno> {
        self.ours.iter_mut().for_each(|(_, entry)| entry.found = sockets.found(entry));
        Ok(self.ours.iter().any(|(_, entry)| !entry.found.is_empty()))
    }

    fn kernels(&mut self) -> Result<bool, Errno> {
        Ok(kernel::look(&mut self.kernels)? > 0)
    }
}

/// `select`. Writes the remaining time back, like Linux.
///
/// # Safety
/// Each set is null, or as many bits there as `count` rounds up to whole words can be read and
/// written; `timeout` is null, or can be read and written.
pub unsafe fn select(
    process: &impl Process,
    count: c_int,
    sets: [*mut c_ulong; 3],
    timeout: *mut timeval,
) -> Result<i32, Errno> {
    // SAFETY: as the caller says.
    let timeout = unsafe { timeout.as_mut() };
    let wait = timeout.as_ref().map(|time| of_timeval(time)).transpose()?;
    let begun: Instant = process.call(|_, now| now);
    // SAFETY: as the caller says.
    let found = unsafe { select_for(process, count, sets, (wait, None)) };
    if let (Some(timeout), Some(wait)) = (timeout, wait) {
        let left = wait.saturating_sub(process.call(|_, now| now.since(begun)));
        timeout.tv_sec = left.as_secs() as libc::time_t;
        timeout.tv_usec = left.subsec_micros().into();
    }
    found
}

/// `pselect`.
///
/// # Safety
/// As of [`select`]; `timeout` and `mask` are null or can be read.
pub unsafe fn pselect(
    process: &impl Process,
    count: c_int,
    sets: [*mut c_ulong; 3],
    timeout: *const timespec,
    mask: *const sigset_t,
) -> Result<i32, Errno> {
    // SAFETY: as the caller says.
    unsafe {
        let until = (time(timeout)?, signals(mask));
        select_for(process, count, sets, until)
    }
}

/// Seconds may carry what is too many microseconds (Linux's `kern_select`).
fn of_timeval(time: &timeval) -> Result<Duration, Errno> {
    let secs = u64::try_from(time.tv_sec).map_err(|_| Errno::EINVAL)?;
    let micros = u64::try_from(time.tv_usec).map_err(|_| Errno::EINVAL)?;
    Ok(Duration::from_secs(secs).saturating_add(Duration::from_micros(micros)))
}

const WORD: usize = c_ulong::BITS as usize;
/// To be read, to be written, and exceptions: what is asked for, and what puts a descriptor into each set (Linux's `POLLIN_SET` …).
const SETS: [(c_short, c_short); 3] = [
    (libc::POLLIN, libc::POLLIN | libc::POLLRDNORM | libc::POLLRDBAND | libc::POLLHUP | libc::POLLERR),
    (libc::POLLOUT, libc::POLLOUT | libc::POLLWRNORM | libc::POLLWRBAND | libc::POLLERR),
    (libc::POLLPRI, libc::POLLPRI),
];

unsafe fn select_for(
    process: &impl Process,
    count: c_int,
    sets: [*mut c_ulong; 3],
    until: Until,
) -> Result<i32, Errno> {
    let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?.min(POLL_MAX);
    let mut sets: [&mut [c_ulong]; 3] = sets.map(|set| {
        let words = if set.is_null() { 0 } else { count.div_ceil(WORD) };
        // SAFETY: the caller says that so many words are there; with none the pointer is not looked at.
        if words == 0 { &mut [] } else { unsafe { core::slice::from_raw_parts_mut(set, words) } }
    });
    let has =
        |set: &[c_ulong], fd: usize| set.get(fd / WORD).is_some_and(|word| word >> (fd % WORD) & 1 != 0);
    let mut entries = Vec::new();
    for fd in 0..count {
        let asked = sets.iter().zip(SETS).filter(|(set, _)| has(set, fd));
        let events = asked.fold(0, |events, (_, (event, _))| events | event);
        if events != 0 {
            entries.push(pollfd { fd: fd as c_int, events, revents: 0 });
        }
    }
    poll_entries(process, &mut entries, until)?;
    if entries.iter().any(|entry| entry.revents & libc::POLLNVAL != 0) {
        return Err(Errno::EBADF);
    }
    let mut bits = 0;
    for (set, (_, ready)) in sets.iter_mut().zip(SETS) {
        for entry in &entries {
            let (word, bit) = (entry.fd as usize / WORD, 1 << (entry.fd as usize % WORD));
            let Some(word) = set.get_mut(word).filter(|word| **word & bit != 0) else { continue };
            if entry.revents & ready != 0 {
                bits += 1;
            } else {
                *word &= !bit;
            }
        }
    }
    Ok(bits)
}
