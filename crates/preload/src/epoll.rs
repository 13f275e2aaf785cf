//! `epoll` over both kinds of descriptor.
//!
//! An instance is the kernel's; from the first socket of ours that it watches it has a part of the stack's too. A wait asks both.

use crate::instances::{self, Instance};
use crate::numbers::ours;
use crate::real::{self, last_error};
use crate::stack::{self, with};
use crate::unattended;
use core::time::Duration;
use libc::{c_int, epoll_event, nfds_t, pollfd, sigset_t, timespec};
use posix::c::{self, millis, returned_int, time};
use posix::{Errno, RealProcess};
use std::time::Instant;

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
    if operation != libc::EPOLL_CTL_DEL {
        unattended::attend(number);
    }
    let result = stack::started(|process| {
        let part = part_of(process, epoll)?;
        // SAFETY: as the caller says.
        unsafe { c::epoll_ctl(process, part, operation, fd, event) }
    });
    returned_int(result)
}

/// The stack's part of an instance, made if there is none yet.
fn part_of(process: &RealProcess, epoll: c_int) -> Result<c_int, Errno> {
    let instance = instance(epoll)?;
    if let Some(part) = instance.part() {
        return Ok(part);
    }
    let part = c::epoll_create(process, 1)?;
    match instance.set_part(part) {
        None => Ok(part),
        Some(other) => {
            c::close(process, part)?;
            Ok(other)
        }
    }
}

/// An instance; one that was made behind libc's back is known from here on.
fn instance(epoll: c_int) -> Result<&'static Instance, Errno> {
    match instances::known(epoll) {
        Some(instance) => Ok(instance),
        None => {
            ensure_epoll(epoll)?;
            instances::note(epoll)
        }
    }
}

/// Is it an epoll instance? Asking the kernel by a call of epoll would change something.
fn ensure_epoll(number: c_int) -> Result<(), Errno> {
    let link = std::fs::read_link(format!("/proc/self/fd/{number}")).map_err(|_| Errno::EBADF)?;
    if link.as_os_str() == "anon_inode:[eventpoll]" { Ok(()) } else { Err(Errno::EINVAL) }
}

/// `epoll_create`.
#[unsafe(no_mangle)]
pub extern "C" fn epoll_create(size: c_int) -> c_int {
    // SAFETY: nothing is passed but a number.
    noted(unsafe { real::epoll_create(size) })
}

/// `epoll_create1`.
#[unsafe(no_mangle)]
pub extern "C" fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: nothing is passed but flags.
    noted(unsafe { real::epoll_create1(flags) })
}

/// From its beginning an instance is known, so that its duplicates are.
fn noted(epoll: c_int) -> c_int {
    if epoll >= 0 && stack::is_wanted() {
        // Beyond the tables it is the kernel's alone.
        let _ = instances::note(epoll);
    }
    epoll
}

/// Waits for both, and until there is a part of the stack's for the kernel and for that.
///
/// # Safety
/// `events` is null, or `most` entries there can be written; `mask` is null or can be read.
unsafe fn wait(
    (epoll, instance): (c_int, &Instance),
    events: *mut epoll_event,
    most: c_int,
    timeout: Option<Duration>,
    mask: *const sigset_t,
) -> Result<c_int, Errno> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if let Some(part) = instance.part() {
            // SAFETY: as the caller says.
            return with(|p| unsafe { c::epoll_wait_with(p, (part, epoll), (events, most), left, mask) });
        }
        // SAFETY: as the caller says.
        let found = unsafe { real::epoll_pwait(epoll, events, most, 0, core::ptr::null()) };
        if found < 0 {
            return Err(last_error());
        }
        if found > 0 || left.is_some_and(|left| left.is_zero()) {
            return Ok(found);
        }
        // Not before the bell is known is it certain that who gives it a part rings.
        let bell = instance.bell()?;
        if instance.part().is_none() {
            // SAFETY: as the caller says of the mask.
            unsafe { sleep([epoll, bell], left, mask) }?;
        }
    }
}

/// Sleeps until one of these can be read.
///
/// # Safety
/// `mask` is null or can be read.
unsafe fn sleep(numbers: [c_int; 2], most: Option<Duration>, mask: *const sigset_t) -> Result<(), Errno> {
    let mut asked = numbers.map(|fd| pollfd { fd, events: libc::POLLIN, revents: 0 });
    let time = most.map(|most| timespec {
        tv_sec: most.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: most.subsec_nanos().into(),
    });
    let time = time.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: so many entries are there; the time is null or this function's own; the mask as the caller says.
    if unsafe { real::ppoll(asked.as_mut_ptr(), asked.len() as nfds_t, time, mask) } < 0 {
        return Err(last_error());
    }
    Ok(())
}

/// The instance if the stack has to do with it, or may have before a wait for it is over.
fn waited_for(epoll: c_int) -> Option<&'static Instance> {
    if !stack::is_wanted() {
        return None;
    }
    instance(epoll).ok()
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
        match waited_for(epoll) {
            Some(instance) => returned_int(wait((epoll, instance), events, most, millis(timeout), mask)),
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
        match waited_for(epoll) {
            Some(instance) => {
                returned_int(time(timeout).and_then(|time| wait((epoll, instance), events, most, time, mask)))
            }
            None => real::epoll_pwait2(epoll, events, most, timeout, mask),
        }
    }
}
