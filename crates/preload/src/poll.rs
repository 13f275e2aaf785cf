//! `poll` and `select` over both kinds of descriptor.

use crate::numbers::{last_error, ours};
use crate::{mixed, real};
use core::time::Duration;
use libc::{c_int, c_short, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};
use posix::c::life::with;
use posix::c::returned_int;
use posix::{Errno, PollFd, Ready};

/// Waits for entries of which at least one is ours.
fn wait(entries: &mut [pollfd], timeout: Option<Duration>, mask: *const sigset_t) -> Result<c_int, Errno> {
    let mut places = Vec::new();
    let mut values = Vec::new();
    let mut kernels = Vec::new();
    for (at, entry) in entries.iter_mut().enumerate() {
        entry.revents = 0;
        match ours(entry.fd) {
            Some(fd) => {
                let events = Ready::from_bits_truncate(u32::from(entry.events as u16));
                places.push(at);
                values.push(PollFd { fd, events, found: Ready::empty() });
            }
            None => kernels.push((at, *entry)),
        }
    }
    let watched: Vec<c_int> = values.iter().map(|value| value.fd).collect();
    let sleep_on: Vec<pollfd> = kernels.iter().map(|(_, entry)| *entry).collect();
    let mut looked = sleep_on.clone();
    let found = with(|process| {
        mixed::wait(
            process,
            &watched,
            |sockets, now| sockets.poll(now, &mut values, None),
            |_| {
                // SAFETY: the entries are this vector.
                let found = unsafe { real::poll(looked.as_mut_ptr(), looked.len() as nfds_t, 0) };
                usize::try_from(found).map_err(|_| last_error())
            },
            &sleep_on,
            timeout,
            mask,
        )
    })?;
    for (at, value) in places.into_iter().zip(&values) {
        entries[at].revents = value.found.bits() as c_short;
    }
    for ((at, _), entry) in kernels.into_iter().zip(&looked) {
        entries[at].revents = entry.revents;
    }
    Ok(found as c_int)
}

/// The entries, if one of them is ours.
unsafe fn mixed_entries<'a>(fds: *mut pollfd, count: nfds_t) -> Option<&'a mut [pollfd]> {
    if fds.is_null() || count > 1 << 20 {
        return None;
    }
    // SAFETY: as the caller of `poll` says.
    let entries = unsafe { core::slice::from_raw_parts_mut(fds, count as usize) };
    entries.iter().any(|entry| ours(entry.fd).is_some()).then_some(entries)
}

/// `poll`.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: as the caller says.
    match unsafe { mixed_entries(fds, count) } {
        Some(entries) => returned_int(wait(entries, mixed::milliseconds(timeout), core::ptr::null())),
        // SAFETY: as the caller says.
        None => unsafe { real::poll(fds, count, timeout) },
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
        match mixed_entries(fds, count) {
            Some(entries) => {
                returned_int(mixed::time(timeout).and_then(|timeout| wait(entries, timeout, mask)))
            }
            None => real::ppoll(fds, count, timeout, mask),
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

/// What makes a descriptor of `select` ready, of each of its three sets (Linux's `POLLIN_SET`, `POLLOUT_SET`, `POLLEX_SET`).
const MEANING: [(c_short, c_short); 3] = [
    (libc::POLLIN, libc::POLLIN | libc::POLLRDNORM | libc::POLLRDBAND | libc::POLLHUP | libc::POLLERR),
    (libc::POLLOUT, libc::POLLOUT | libc::POLLWRNORM | libc::POLLWRBAND | libc::POLLERR),
    (libc::POLLPRI, libc::POLLPRI),
];

/// The three sets, as far as they are given.
type Sets = [*mut fd_set; 3];

/// What `select` asks, as entries of `poll`; `None` if none of them is ours.
unsafe fn asked(count: c_int, sets: Sets) -> Option<Vec<pollfd>> {
    let count = usize::try_from(count).ok().filter(|count| *count <= libc::FD_SETSIZE)?;
    let mut entries = Vec::new();
    for fd in 0..count as c_int {
        let mut events = 0;
        for (set, (event, _)) in sets.iter().zip(MEANING) {
            // SAFETY: the set is the application's, the number below `FD_SETSIZE`.
            if !set.is_null() && unsafe { libc::FD_ISSET(fd, *set) } {
                events |= event;
            }
        }
        if events != 0 {
            entries.push(pollfd { fd, events, revents: 0 });
        }
    }
    entries.iter().any(|entry| ours(entry.fd).is_some()).then_some(entries)
}

/// What was found, in the sets; how many bits.
unsafe fn tell(entries: &[pollfd], sets: Sets) -> Result<c_int, Errno> {
    if entries.iter().any(|entry| entry.revents & libc::POLLNVAL != 0) {
        return Err(Errno::EBADF);
    }
    let mut bits = 0;
    for (set, (event, ready)) in sets.into_iter().zip(MEANING) {
        if set.is_null() {
            continue;
        }
        for entry in entries.iter().filter(|entry| entry.events & event != 0) {
            // SAFETY: the set is the application's, the number came from it.
            unsafe {
                if entry.revents & ready != 0 {
                    bits += 1;
                } else {
                    libc::FD_CLR(entry.fd, set);
                }
            }
        }
    }
    Ok(bits)
}

/// # Safety
/// The sets are null or the application's.
unsafe fn select_mixed(
    mut entries: Vec<pollfd>,
    sets: Sets,
    timeout: Option<Duration>,
    mask: *const sigset_t,
) -> Result<c_int, Errno> {
    wait(&mut entries, timeout, mask)?;
    // SAFETY: as the caller says.
    unsafe { tell(&entries, sets) }
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
        let Some(entries) = asked(count, sets) else {
            return real::select(count, read, write, except, timeout);
        };
        let most = timeout.as_ref().map(|time| {
            let micros = u64::try_from(time.tv_usec).map(Duration::from_micros);
            Some(Duration::from_secs(u64::try_from(time.tv_sec).ok()?) + micros.ok()?)
        });
        if most == Some(None) {
            return returned_int(Err(Errno::EINVAL));
        }
        let (begun, most) = (std::time::Instant::now(), most.flatten());
        let result = select_mixed(entries, sets, most, core::ptr::null());
        if let (Some(time), Some(most)) = (timeout.as_mut(), most) {
            let left = most.saturating_sub(begun.elapsed());
            time.tv_sec = left.as_secs() as libc::time_t;
            time.tv_usec = left.subsec_micros().into();
        }
        returned_int(result)
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
        match asked(count, sets) {
            Some(entries) => {
                let time = mixed::time(timeout);
                returned_int(time.and_then(|time| select_mixed(entries, sets, time, mask)))
            }
            None => real::pselect(count, read, write, except, timeout, mask),
        }
    }
}
