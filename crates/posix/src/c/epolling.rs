//! `epoll`, and its relatives with a mask of signals.
//!
//! An instance is the library's, and from the first descriptor of the kernel's that it watches it has an instance of the kernel's beside it.
//! A wait asks both.

use super::Process;
use super::polling::{millis, signals, time};
use crate::epoll::{Control, Interest};
use crate::errno::Errno;
use crate::process::{Look, Waits};
use crate::sockets::Sockets;
use crate::system::kernel;
use core::slice;
use core::time::Duration;
use libc::{c_int, epoll_event, pollfd, sigset_t, timespec};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// Linux's `EP_MAX_EVENTS`.
const EVENTS_MAX: usize = c_int::MAX as usize / size_of::<epoll_event>();

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
    if let Some(number) = process.sides(fd).kernels {
        let part = kernel_part(process, epoll)?;
        // SAFETY: as the caller says.
        return unsafe { kernel::epoll_ctl(&part, operation, number, event) }.map(|()| 0);
    }
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

/// The kernel's instance beside one of the library's, made if there is none yet.
fn kernel_part(process: &impl Process, epoll: c_int) -> Result<Arc<OwnedFd>, Errno> {
    match process.call(|sockets, _| sockets.kernel_part(epoll))? {
        Some(part) => Ok(part),
        None => {
            let part = kernel::epoll_create()?;
            process.call(|sockets, _| sockets.give_kernel_part(epoll, part))
        }
    }
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
    unsafe { wait_both(process, (epoll, None), (events, most), (millis(timeout_ms), None)) }
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
    unsafe { wait_both(process, (epoll, None), (events, most), (millis(timeout_ms), signals(mask))) }
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
        let until = (time(timeout)?, signals(mask));
        wait_both(process, (epoll, None), (events, most), until)
    }
}

/// `epoll_pwait2` of an instance whose kernel part has its own number, which the application knows
/// (`preload`).
///
/// # Safety
/// See [`epoll_pwait2`].
pub unsafe fn epoll_wait_with(
    process: &impl Process,
    (epoll, kernels): (c_int, c_int),
    events: (*mut epoll_event, c_int),
    timeout: Option<Duration>,
    mask: *const sigset_t,
) -> Result<i32, Errno> {
    // SAFETY: as the caller says.
    unsafe { wait_both(process, (epoll, Some(kernels)), events, (timeout, signals(mask))) }
}

unsafe fn wait_both(
    process: &impl Process,
    (epoll, number): (c_int, Option<c_int>),
    (events, most): (*mut epoll_event, c_int),
    (timeout, mask): (Option<Duration>, Option<sigset_t>),
) -> Result<i32, Errno> {
    let most = usize::try_from(most).ok().filter(|most| (1..=EVENTS_MAX).contains(most));
    let (most, part, turned) = process.call(|sockets, _| {
        sockets.flags(epoll)?;
        let most = most.ok_or(Errno::EINVAL)?;
        Ok((most, sockets.kernel_part(epoll)?, sockets.turn_to_kernel(epoll)?))
    })?;
    let asked: Vec<pollfd> =
        number.map(|fd| pollfd { fd, events: libc::POLLIN, revents: 0 }).into_iter().collect();
    let mut looks = Looks { epoll, number, part, most, ours: Vec::new(), kernels: Vec::new() };
    if turned {
        looks.kernels()?;
    }
    let own = slice::from_ref(&epoll);
    process.wait_ready(
        &Waits { ours: own, read: own, kernels: &asked, timeout, mask, hears_at_once: false },
        &mut looks,
    )?;
    let ours = looks.ours.iter().map(|interest| epoll_event { events: interest.events, u64: interest.data });
    let found: Vec<epoll_event> = ours.chain(looks.kernels).collect();
    if events.is_null() && !found.is_empty() {
        return Err(Errno::EFAULT);
    }
    for (at, event) in found.iter().enumerate() {
        // SAFETY: no more than `most` were found.
        unsafe { events.add(at).write_unaligned(*event) };
    }
    Ok(found.len() as i32)
}

/// What both sides of an instance have.
struct Looks {
    epoll: c_int,
    number: Option<c_int>,
    part: Option<Arc<OwnedFd>>,
    most: usize,
    ours: Vec<Interest>,
    kernels: Vec<epoll_event>,
}

impl Look for Looks {
    fn ours(&mut self, sockets: &mut Sockets) -> Result<bool, Errno> {
        self.part = sockets.kernel_part(self.epoll)?;
        let room = self.most - self.kernels.len();
        if room > 0 {
            self.ours = sockets.epoll_found(self.epoll, room)?;
        }
        Ok(!self.ours.is_empty())
    }

    /// Asked once for each time there is something: what was told is not told again.
    fn kernels(&mut self) -> Result<bool, Errno> {
        let number = self.number.or(self.part.as_ref().map(|part| part.as_raw_fd()));
        let room = self.most - self.ours.len();
        if let Some(number) = number.filter(|_| room > 0 && self.kernels.is_empty()) {
            self.kernels = kernel::epoll_take(number, room)?;
        }
        Ok(!self.kernels.is_empty())
    }
}
