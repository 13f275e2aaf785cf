//! `poll` and `select` for descriptors of the stack and of the kernel.

use crate::numbers::{Both, is_watched};
use crate::real;
use crate::stack::with;
use crate::unattended;
use libc::{c_int, c_ulong, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};
use posix::c::{self, returned_int};

/// Returns whether an entry concerns the stack. Notes that the program attends the listeners among
/// them.
unsafe fn concern(fds: *const pollfd, count: nfds_t) -> bool {
    if fds.is_null() || count > 1 << 20 {
        return false;
    }
    // SAFETY: the caller of `poll` guarantees it.
    let entries = unsafe { core::slice::from_raw_parts(fds, count as usize) };
    entries.iter().for_each(|entry| unattended::attend(entry.fd));
    entries.iter().any(|entry| is_watched(entry.fd))
}

/// `poll`.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe {
        if concern(fds, count) {
            returned_int(with(|p| c::poll(&Both(p), fds, count, timeout)))
        } else {
            real::poll(fds, count, timeout)
        }
    }
}

/// `ppoll`.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe {
        if concern(fds, count) {
            returned_int(with(|p| c::ppoll(&Both(p), fds, count, timeout, mask)))
        } else {
            real::ppoll(fds, count, timeout, mask)
        }
    }
}

/// `poll` of a program built with `_FORTIFY_SOURCE`; `room` is the size of the array.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __poll_chk(fds: *mut pollfd, count: nfds_t, timeout: c_int, room: usize) -> c_int {
    let most = (room / size_of::<pollfd>()) as nfds_t;
    // SAFETY: the caller guarantees it; `len` is at most `room`.
    unsafe { poll(fds, count.min(most), timeout) }
}

/// `ppoll` of a program built with `_FORTIFY_SOURCE`.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __ppoll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    room: usize,
) -> c_int {
    let most = (room / size_of::<pollfd>()) as nfds_t;
    // SAFETY: the caller guarantees it; `len` is at most `room`.
    unsafe { ppoll(fds, count.min(most), timeout, mask) }
}

/// The three sets; null if the program gave none.
type Sets = [*mut fd_set; 3];

/// Returns whether a number in the sets concerns the stack. Notes that the program attends the
/// listeners among them.
unsafe fn concern_sets(count: c_int, sets: Sets) -> bool {
    let count = count.clamp(0, libc::FD_SETSIZE as c_int);
    let given = sets.iter().filter(|set| !set.is_null());
    let mut any = false;
    for set in given {
        // SAFETY: the sets are the application's, the numbers below `FD_SETSIZE`.
        for fd in (0..count).filter(|fd| is_watched(*fd) && unsafe { libc::FD_ISSET(*fd, *set) }) {
            unattended::attend(fd);
            any = true;
        }
    }
    any
}

fn words(sets: Sets) -> [*mut c_ulong; 3] {
    sets.map(|set| set.cast())
}

/// `select`. Writes the remaining time-out, as Linux does.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    let sets = [read, write, except];
    // SAFETY: the caller guarantees it.
    unsafe {
        if concern_sets(count, sets) {
            returned_int(with(|p| c::select(&Both(p), count, words(sets), timeout)))
        } else {
            real::select(count, read, write, except, timeout)
        }
    }
}

/// `pselect`.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let sets = [read, write, except];
    // SAFETY: the caller guarantees it.
    unsafe {
        if concern_sets(count, sets) {
            returned_int(with(|p| c::pselect(&Both(p), count, words(sets), timeout, mask)))
        } else {
            real::pselect(count, read, write, except, timeout, mask)
        }
    }
}
