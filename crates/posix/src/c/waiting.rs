//! Calls that wait for readiness: `poll`, `select`, `epoll`, and their relatives with a mask of signals.
//!
//! A mask holds for the calling thread while it waits. Setting it and beginning to wait are two steps here, where the kernel has one: a
//! signal that comes between them is handled, and does not end the wait.

use super::{Process, duration, watch};
use crate::epoll::{Control, Interest};
use crate::errno::Errno;
use crate::readiness::{PollFd, Ready};
use crate::real_time::Watch;
use core::time::Duration;
use libc::{c_int, c_short, c_ulong, epoll_event, nfds_t, pollfd, sigset_t, timespec, timeval};
use proto::Instant;

/// Linux's `INR_OPEN_MAX`, the most entries of `poll` without a raised limit.
const POLL_MAX: usize = 1 << 20;
/// Linux's `EP_MAX_EVENTS`.
const EVENTS_MAX: usize = c_int::MAX as usize / size_of::<epoll_event>();

/// Milliseconds: negative is for ever.
fn millis(timeout_ms: c_int) -> Option<Duration> {
    u64::try_from(timeout_ms).ok().map(Duration::from_millis)
}

/// A `timespec`; null is for ever.
unsafe fn time(timeout: *const timespec) -> Result<Option<Duration>, Errno> {
    // SAFETY: the caller says it is null or can be read.
    unsafe { timeout.as_ref() }.map(duration).transpose()
}

/// Makes a call with these signals blocked; null: as they are.
unsafe fn masked<R>(mask: *const sigset_t, call: impl FnOnce() -> R) -> R {
    if mask.is_null() {
        return call();
    }
    // SAFETY: the caller says that the mask can be read; the other set is ours, and any bits are one.
    unsafe {
        let mut before = core::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_SETMASK, mask, &raw mut before);
        let result = call();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, core::ptr::null_mut());
        result
    }
}

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
    unsafe { poll_for(process, fds, count, millis(timeout_ms)) }
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
        let timeout = time(timeout)?;
        masked(mask, || poll_for(process, fds, count, timeout))
    }
}

unsafe fn poll_for(
    process: &impl Process,
    fds: *mut pollfd,
    count: nfds_t,
    timeout: Option<Duration>,
) -> Result<i32, Errno> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let entries: &mut [pollfd] = match count {
        0 => &mut [],
        _ if count > POLL_MAX => return Err(Errno::EINVAL),
        _ if fds.is_null() => return Err(Errno::EFAULT),
        // SAFETY: as the caller says.
        _ => unsafe { core::slice::from_raw_parts_mut(fds, count) },
    };
    let asked = |entry: &pollfd| PollFd {
        fd: entry.fd,
        events: Ready::from_bits_truncate(u32::from(entry.events as u16)),
        found: Ready::empty(),
    };
    let mut values: Vec<PollFd> = entries.iter().map(asked).collect();
    let ready = poll_values(process, &mut values, timeout)?;
    for (entry, value) in entries.iter_mut().zip(&values) {
        entry.revents = value.found.bits() as c_short;
    }
    Ok(ready as i32)
}

fn poll_values(
    process: &impl Process,
    values: &mut [PollFd],
    timeout: Option<Duration>,
) -> Result<usize, Errno> {
    let mut until = None;
    let fds: Vec<c_int> = values.iter().map(|value| value.fd).filter(|fd| *fd >= 0).collect();
    process.wait_for(Watch { fds: &fds, is_poll: true }, |sockets, now| {
        let until = *until.get_or_insert(timeout.map(|timeout| now + timeout));
        sockets.poll(now, values, until)
    })
}

/// `select`. What is left of the time is written back, as Linux does.
///
/// # Safety
/// Each set is null, or as many bits there as `count` rounds up to whole words can be read and written; `timeout` is null, or can be read
/// and written.
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
    let found = unsafe { select_for(process, count, sets, wait) };
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
        let timeout = time(timeout)?;
        masked(mask, || select_for(process, count, sets, timeout))
    }
}

/// Seconds may carry what is too many microseconds (Linux's `kern_select`).
fn of_timeval(time: &timeval) -> Result<Duration, Errno> {
    let secs = u64::try_from(time.tv_sec).map_err(|_| Errno::EINVAL)?;
    let micros = u64::try_from(time.tv_usec).map_err(|_| Errno::EINVAL)?;
    Ok(Duration::from_secs(secs).saturating_add(Duration::from_micros(micros)))
}

const WORD: usize = c_ulong::BITS as usize;
/// To be read, to be written, and exceptions: which readiness puts a descriptor into each set (Linux's `POLLIN_SET` …).
const SETS: [Ready; 3] = [
    Ready::IN.union(Ready::RDNORM).union(Ready::HUP).union(Ready::ERR),
    Ready::OUT.union(Ready::WRNORM).union(Ready::ERR),
    Ready::PRI,
];

unsafe fn select_for(
    process: &impl Process,
    count: c_int,
    sets: [*mut c_ulong; 3],
    timeout: Option<Duration>,
) -> Result<i32, Errno> {
    let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?.min(POLL_MAX);
    let mut sets: [&mut [c_ulong]; 3] = sets.map(|set| {
        let words = if set.is_null() { 0 } else { count.div_ceil(WORD) };
        // SAFETY: the caller says that so many words are there; with none the pointer is not looked at.
        if words == 0 { &mut [] } else { unsafe { core::slice::from_raw_parts_mut(set, words) } }
    });
    let has =
        |set: &[c_ulong], fd: usize| set.get(fd / WORD).is_some_and(|word| word >> (fd % WORD) & 1 != 0);
    let mut values = Vec::new();
    for fd in 0..count {
        let mut events = Ready::empty();
        for (set, ready) in sets.iter().zip(SETS) {
            events.set(ready, has(set, fd));
        }
        if !events.is_empty() {
            values.push(PollFd { fd: fd as i32, events, found: Ready::empty() });
        }
    }
    process.call(|sockets, _| values.iter().try_for_each(|value| sockets.readiness(value.fd).map(|_| ())))?;
    poll_values(process, &mut values, timeout)?;
    let mut bits = 0;
    for (set, ready) in sets.iter_mut().zip(SETS) {
        for value in &values {
            let (word, bit) = (value.fd as usize / WORD, 1 << (value.fd as usize % WORD));
            let Some(word) = set.get_mut(word).filter(|word| **word & bit != 0) else { continue };
            if value.found.intersects(ready) {
                bits += 1;
            } else {
                *word &= !bit;
            }
        }
    }
    Ok(bits)
}

/// `epoll_create`, whose size means nothing any more.
pub fn epoll_create(process: &impl Process, size: c_int) -> Result<i32, Errno> {
    if size <= 0 {
        return Err(Errno::EINVAL);
    }
    epoll_create1(process, 0)
}

/// `epoll_create1`.
pub fn epoll_create1(process: &impl Process, flags: c_int) -> Result<i32, Errno> {
    if flags & !libc::EPOLL_CLOEXEC != 0 {
        return Err(Errno::EINVAL);
    }
    process.call(|sockets, _| sockets.epoll_create(flags & libc::EPOLL_CLOEXEC != 0))
}

/// `epoll_ctl`.
///
/// # Safety
/// `event` is null or can be read.
pub unsafe fn epoll_ctl(
    process: &impl Process,
    epoll: c_int,
    operation: c_int,
    fd: c_int,
    event: *const epoll_event,
) -> Result<i32, Errno> {
    let interest = if operation == libc::EPOLL_CTL_DEL {
        Interest { events: 0, data: 0 }
    } else if event.is_null() {
        return Err(Errno::EFAULT);
    } else {
        // SAFETY: as the caller says.
        let event = unsafe { event.read_unaligned() };
        Interest { events: event.events, data: event.u64 }
    };
    let control = match operation {
        libc::EPOLL_CTL_ADD => Control::Add(interest),
        libc::EPOLL_CTL_MOD => Control::Modify(interest),
        libc::EPOLL_CTL_DEL => Control::Delete,
        _ => {
            let open = |sockets: &crate::Sockets, fd| sockets.flags(fd).map(|_| ());
            process.call(|sockets, _| open(sockets, epoll).and_then(|()| open(sockets, fd)))?;
            return Err(Errno::EINVAL);
        }
    };
    process.call(|sockets, _| sockets.epoll_ctl(epoll, fd, control)).map(|()| 0)
}

/// `epoll_wait`.
///
/// # Safety
/// `events` is null, or `most` entries there can be written.
pub unsafe fn epoll_wait(
    process: &impl Process,
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout_ms: c_int,
) -> Result<i32, Errno> {
    // SAFETY: as the caller says.
    unsafe { epoll_wait_for(process, epoll, events, most, millis(timeout_ms)) }
}

/// `epoll_pwait`.
///
/// # Safety
/// As of [`epoll_wait`]; `mask` is null or can be read.
pub unsafe fn epoll_pwait(
    process: &impl Process,
    epoll: c_int,
    (events, most): (*mut epoll_event, c_int),
    timeout_ms: c_int,
    mask: *const sigset_t,
) -> Result<i32, Errno> {
    // SAFETY: as the caller says.
    unsafe { masked(mask, || epoll_wait_for(process, epoll, events, most, millis(timeout_ms))) }
}

/// `epoll_pwait2`.
///
/// # Safety
/// As of [`epoll_wait`]; `timeout` and `mask` are null or can be read.
pub unsafe fn epoll_pwait2(
    process: &impl Process,
    epoll: c_int,
    (events, most): (*mut epoll_event, c_int),
    timeout: *const timespec,
    mask: *const sigset_t,
) -> Result<i32, Errno> {
    // SAFETY: as the caller says.
    unsafe {
        let timeout = time(timeout)?;
        masked(mask, || epoll_wait_for(process, epoll, events, most, timeout))
    }
}

unsafe fn epoll_wait_for(
    process: &impl Process,
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: Option<Duration>,
) -> Result<i32, Errno> {
    process.call(|sockets, _| sockets.flags(epoll))?;
    let most = usize::try_from(most).ok().filter(|most| (1..=EVENTS_MAX).contains(most));
    let most = most.ok_or(Errno::EINVAL)?;
    let mut until = None;
    let found = process.wait_for(Watch { is_poll: true, ..watch(&epoll) }, |sockets, now| {
        let until = *until.get_or_insert(timeout.map(|timeout| now + timeout));
        sockets.epoll_wait(now, epoll, most, until)
    })?;
    if events.is_null() && !found.is_empty() {
        return Err(Errno::EFAULT);
    }
    for (at, interest) in found.iter().enumerate() {
        let event = epoll_event { events: interest.events, u64: interest.data };
        // SAFETY: no more than `most` were found.
        unsafe { events.add(at).write_unaligned(event) };
    }
    Ok(found.len() as i32)
}
