//! What is asked of the kernel about its own descriptors, when they are waited for beside the library's.
//!
//! By system call: under libc's names a program may have this very library (`preload`). Only to sleep libc is asked, by the function behind
//! ours, since a thread can be cancelled there.

use crate::errno::Errno;
use core::ptr;
use core::time::Duration;
use libc::{c_int, c_long, epoll_event, nfds_t, pollfd, sigset_t, timespec};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;

fn of_system(returned: c_long) -> Result<usize, Errno> {
    usize::try_from(returned)
        .map_err(|_| Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)))
}

/// Bytes of the kernel's own `sigset_t`.
const SIGSET_LEN: usize = 8;

/// Sleeps until one of the descriptors has something, for `most` at most. The mask is set and the sleep begun in one step (`ppoll`).
///
/// # Errors
/// `EINTR`.
pub(crate) fn sleep(
    fds: &mut [pollfd],
    most: Option<Duration>,
    mask: Option<&sigset_t>,
) -> Result<usize, Errno> {
    let mut time = most.map(|most| timespec {
        tv_sec: most.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: most.subsec_nanos().into(),
    });
    let time = time.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
    let mask = mask.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the entries are this slice; the time and the mask are null or valid, and longer than the kernel's.
    of_system(unsafe {
        match ppoll_of_libc() {
            Some(ppoll) => ppoll(fds.as_mut_ptr(), fds.len() as nfds_t, time, mask).into(),
            None => libc::syscall(libc::SYS_ppoll, fds.as_mut_ptr(), fds.len(), time, mask, SIGSET_LEN),
        }
    })
}

/// A thread that is cancelled unwinds from here.
type Ppoll = unsafe extern "C-unwind" fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t) -> c_int;

/// libc's own; `None` in a program without dynamic libraries.
fn ppoll_of_libc() -> Option<Ppoll> {
    static FOUND: OnceLock<Option<Ppoll>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: the name is a C string; libc's function of this name has this type, and null is `None`.
        unsafe { core::mem::transmute(libc::dlsym(libc::RTLD_NEXT, c"ppoll".as_ptr())) }
    })
}

/// What the descriptors have now; how many have something.
pub(crate) fn look(fds: &mut [pollfd]) -> Result<usize, Errno> {
    if fds.is_empty() { Ok(0) } else { sleep(fds, Some(Duration::ZERO), None) }
}

/// A new epoll instance.
pub(crate) fn epoll_create() -> Result<OwnedFd, Errno> {
    // SAFETY: no memory is passed.
    let made = of_system(unsafe { libc::syscall(libc::SYS_epoll_create1, libc::EPOLL_CLOEXEC) })?;
    // SAFETY: the number is new, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(made as c_int) })
}

/// Changes what an instance watches.
///
/// # Safety
/// `event` is null or can be read.
pub(crate) unsafe fn epoll_ctl(
    epoll: &OwnedFd,
    operation: c_int,
    fd: c_int,
    event: *const epoll_event,
) -> Result<(), Errno> {
    // SAFETY: as the caller says.
    let done = unsafe { libc::syscall(libc::SYS_epoll_ctl, epoll.as_raw_fd(), operation, fd, event) };
    of_system(done).map(|_| ())
}

/// Takes what an instance has, without sleeping; no more than there is room.
pub(crate) fn epoll_take(epoll: c_int, most: usize) -> Result<Vec<epoll_event>, Errno> {
    let mut events = vec![epoll_event { events: 0, u64: 0 }; most.min(EVENTS_AT_ONCE)];
    let mask: *const sigset_t = ptr::null();
    let (place, room) = (events.as_mut_ptr(), events.len());
    // SAFETY: so many entries are there.
    let found =
        of_system(unsafe { libc::syscall(libc::SYS_epoll_pwait, epoll, place, room, 0, mask, SIGSET_LEN) })?;
    events.truncate(found);
    Ok(events)
}

/// More come with the next call.
const EVENTS_AT_ONCE: usize = 1024;
