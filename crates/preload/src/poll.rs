//! `poll` and `select` over both kinds of descriptor.

use crate::numbers::{Both, is_watched};
use crate::real;
use crate::stack::with;
use crate::unattended;
use libc::{c_int, c_ulong, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};
use posix::c::{self, returned_int};

/// Is one of the entries the stack's business? Connections of listeners among them are waited for.
unsafe fn concern(fds: *const pollfd, count: nfds_t) -> bool {
    if fds.is_null() || count > 1 << 20 {
        return false;
    }
    // SAFETY: as the caller of `poll` says.
    let entries = unsafe { core::slice::from_raw_parts(fds, count as usize) };
    entries.iter().for_each(|entry| unattended::attend(entry.fd));
    entries.iter().any(|entry| is_watched(entry.fd))
}

/// `poll`.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: as the caller says.
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
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        if concern(fds, count) {
            returned_int(with(|p| c::ppoll(&Both(p), fds, count, timeout, mask)))
        } else {
            real::ppoll(fds, count, timeout, mask)
        }
    }
}

/// `poll` of a program compiled with checks; the compiler knew the array's size.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __poll_chk(fds: *mut pollfd, count: nfds_t, timeout: c_int, room: usize) -> c_int {
    let most = (room / size_of::<pollfd>()) as nfds_t;
    // SAFETY: as the caller says; no more than there is room.
    unsafe { poll(fds, count.min(most), timeout) }
}

/// `ppoll` of such a program.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __ppoll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    room: usize,
) -> c_int {
    let most = (room / size_of::<pollfd>()) as nfds_t;
    // SAFETY: as the caller says; no more than there is room.
    unsafe { ppoll(fds, count.min(most), timeout, mask) }
}

/// The three sets, as far as they are given.
type Sets = [*mut fd_set; 3];

/// Is one of those in the sets the stack's business? Connections of listeners among them are waited for.
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

/// `select`; what is left of the time-out is told, as Linux does.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    let sets = [read, write, except];
    // SAFETY: as the caller says.
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
/// As libc's.
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
    // SAFETY: as the caller says.
    unsafe {
        if concern_sets(count, sets) {
            returned_int(with(|p| c::pselect(&Both(p), count, words(sets), timeout, mask)))
        } else {
            real::pselect(count, read, write, except, timeout, mask)
        }
    }
}
