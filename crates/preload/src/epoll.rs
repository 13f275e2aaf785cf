//! `epoll` for descriptors of the stack and of the kernel.
//!
//! An instance is the kernel's. With the first of the stack's sockets that it watches, it also
//! gets a part in the stack. A wait polls both.

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
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_ctl(
    epoll: c_int,
    operation: c_int,
    number: c_int,
    event: *mut epoll_event,
) -> c_int {
    let Some(fd) = ours(number) else {
        // SAFETY: the caller guarantees it.
        return unsafe { real::epoll_ctl(epoll, operation, number, event) };
    };
    if operation != libc::EPOLL_CTL_DEL {
        unattended::attend(number);
    }
    let result = stack::started(|process| {
        let part = part_of(process, epoll)?;
        // SAFETY: the caller guarantees it.
        unsafe { c::epoll_ctl(process, part, operation, fd, event) }
    });
    returned_int(result)
}

/// Returns the part of an instance in the stack, and creates it if it is missing.
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

/// Returns an instance. Registers one that was created without libc.
fn instance(epoll: c_int) -> Result<&'static Instance, Errno> {
    match instances::known(epoll) {
        Some(instance) => Ok(instance),
        None => {
            ensure_epoll(epoll)?;
            instances::note(epoll)
        }
    }
}

/// Checks that a number is an epoll instance. An epoll call would change the instance.
fn ensure_epoll(number: c_int) -> Result<(), Errno> {
    let link = std::fs::read_link(format!("/proc/self/fd/{number}")).map_err(|_| Errno::EBADF)?;
    if link.as_os_str() == "anon_inode:[eventpoll]" { Ok(()) } else { Err(Errno::EINVAL) }
}

/// `epoll_create`.
#[unsafe(no_mangle)]
pub extern "C" fn epoll_create(size: c_int) -> c_int {
    // SAFETY: only a number is passed.
    noted(unsafe { real::epoll_create(size) })
}

/// `epoll_create1`.
#[unsafe(no_mangle)]
pub extern "C" fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: only flags are passed.
    noted(unsafe { real::epoll_create1(flags) })
}

/// Registers a new instance, so that its duplicates are recognised.
fn noted(epoll: c_int) -> c_int {
    if epoll >= 0 && stack::is_wanted() {
        // An instance beyond the tables can only watch the kernel's descriptors.
        let _ = instances::note(epoll);
    }
    epoll
}

/// Waits for both parts. An instance without a part in the stack waits for the kernel, and for the
/// part to be created.
///
/// # Safety
/// `events` is null, or valid for writing `most` entries. `mask` is null or readable.
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
            // SAFETY: the caller guarantees it.
            return with(|p| unsafe { c::epoll_wait_with(p, (part, epoll), (events, most), left, mask) });
        }
        // SAFETY: the caller guarantees it.
        let found = unsafe { real::epoll_pwait(epoll, events, most, 0, core::ptr::null()) };
        if found < 0 {
            return Err(last_error());
        }
        if found > 0 || left.is_some_and(|left| left.is_zero()) {
            return Ok(found);
        }
        // A thread that creates the part rings the bell only if the bell exists: look again after
        // it.
        let bell = instance.bell()?;
        if instance.part().is_none() {
            // SAFETY: the caller guarantees that the mask is null or readable.
            unsafe { sleep([epoll, bell], left, mask) }?;
        }
    }
}

/// Sleeps until one of the descriptors is readable.
///
/// # Safety
/// `mask` is null or readable.
unsafe fn sleep(numbers: [c_int; 2], most: Option<Duration>, mask: *const sigset_t) -> Result<(), Errno> {
    let mut asked = numbers.map(|fd| pollfd { fd, events: libc::POLLIN, revents: 0 });
    let time = most.map(|most| timespec {
        tv_sec: most.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: most.subsec_nanos().into(),
    });
    let time = time.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: the entries are valid; the time is null or this function's own; the caller guarantees
    // the mask.
    if unsafe { real::ppoll(asked.as_mut_ptr(), asked.len() as nfds_t, time, mask) } < 0 {
        return Err(last_error());
    }
    Ok(())
}

/// Returns the instance if the stack may have a part in it before a wait for it ends.
fn waited_for(epoll: c_int) -> Option<&'static Instance> {
    if !stack::is_wanted() {
        return None;
    }
    instance(epoll).ok()
}

/// `epoll_wait`.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { epoll_pwait(epoll, events, most, timeout, core::ptr::null()) }
}

/// `epoll_pwait`.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller guarantees it.
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
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait2(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe {
        match waited_for(epoll) {
            Some(instance) => {
                returned_int(time(timeout).and_then(|time| wait((epoll, instance), events, most, time, mask)))
            }
            None => real::epoll_pwait2(epoll, events, most, timeout, mask),
        }
    }
}
