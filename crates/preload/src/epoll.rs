//! `epoll` over both kinds of descriptor.
//!
//! An instance is the kernel's; from the first socket of ours that it watches it has a part of the stack's too. A wait asks both.

use crate::numbers::{self, ours};
use crate::real;
use crate::stack::{self, with};
use core::time::Duration;
use libc::{c_int, epoll_event, sigset_t, timespec};
use posix::c::{self, millis, returned_int, time};
use posix::{Errno, RealProcess};

/// `epoll_ctl`.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_ctl(
    epoll: c_int,
    operation: c_int,
    number: c_int,
    event: *mut epoll_event,
) -> c_int {
    let Some(fd) = ours(number) else {
        // SAFETY: as the caller says.
        return unsafe { real::epoll_ctl(epoll, operation, number, event) };
    };
    let result = stack::started(|process| {
        let part = part_of(process, epoll)?;
        // SAFETY: as the caller says.
        unsafe { c::epoll_ctl(process, part, operation, fd, event) }
    });
    returned_int(result)
}

/// The stack's part of an instance, made if there is none yet.
fn part_of(process: &RealProcess, epoll: c_int) -> Result<c_int, Errno> {
    if let Some(part) = numbers::epoll_part(epoll) {
        return Ok(part);
    }
    ensure_epoll(epoll)?;
    let part = c::epoll_create(process, 1)?;
    match numbers::set_epoll_part(epoll, part)? {
        None => Ok(part),
        Some(other) => {
            c::close(process, part)?;
            Ok(other)
        }
    }
}

/// Is it an epoll instance? Asking the kernel by a call of epoll would change something.
fn ensure_epoll(number: c_int) -> Result<(), Errno> {
    let link = std::fs::read_link(format!("/proc/self/fd/{number}")).map_err(|_| Errno::EBADF)?;
    if link.as_os_str() == "anon_inode:[eventpoll]" { Ok(()) } else { Err(Errno::EINVAL) }
}

/// # Safety
/// `events` is null, or `most` entries there can be written; `mask` is null or can be read.
unsafe fn wait(
    (epoll, part): (c_int, c_int),
    events: *mut epoll_event,
    most: c_int,
    timeout: Option<Duration>,
    mask: *const sigset_t,
) -> Result<c_int, Errno> {
    // SAFETY: as the caller says.
    with(|p| unsafe { c::epoll_wait_with(p, (part, epoll), (events, most), timeout, mask) })
}

/// `epoll_wait`.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe { epoll_pwait(epoll, events, most, timeout, core::ptr::null()) }
}

/// `epoll_pwait`.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        match numbers::epoll_part(epoll) {
            Some(part) => returned_int(wait((epoll, part), events, most, millis(timeout), mask)),
            None => real::epoll_pwait(epoll, events, most, timeout, mask),
        }
    }
}

/// `epoll_pwait2`.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait2(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        match numbers::epoll_part(epoll) {
            Some(part) => {
                returned_int(time(timeout).and_then(|time| wait((epoll, part), events, most, time, mask)))
            }
            None => real::epoll_pwait2(epoll, events, most, timeout, mask),
        }
    }
}
