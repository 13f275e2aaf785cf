//! Which numbers are ours.
//!
//! A program may use the lowest number that is free, pass it to `select`, compare it with others: so each descriptor of the stack has a
//! number of the kernel's, held by a placeholder, a socket of the kernel's that is not connected. The table is read without a lock, since
//! every `read` and `close` of the program asks it, also those that the library itself makes.

use crate::real;
use libc::c_int;
use posix::c::{Process, Sides};
use posix::{Errno, Look, RealProcess, Sockets, Stop, Waits};
use proto::Instant;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

/// Numbers that may be ours; what `RLIMIT_NOFILE` rarely exceeds.
const NUMBERS_MAX: usize = 1 << 16;

/// By number: one more than the stack's own descriptor, or 0.
struct Table([AtomicI32; NUMBERS_MAX]);

static SOCKETS: Table = Table([const { AtomicI32::new(0) }; NUMBERS_MAX]);
static EPOLLS: Table = Table([const { AtomicI32::new(0) }; NUMBERS_MAX]);
/// Numbers held by a TCP socket of the kernel's, which may take over.
static TCP: [AtomicBool; NUMBERS_MAX] = [const { AtomicBool::new(false) }; NUMBERS_MAX];
/// One more than the highest number that was ever in one of the tables.
static END: AtomicUsize = AtomicUsize::new(0);

impl Table {
    fn at(&self, number: c_int) -> Option<&AtomicI32> {
        self.0.get(usize::try_from(number).ok()?)
    }

    fn get(&self, number: c_int) -> Option<c_int> {
        self.at(number)?.load(Ordering::Acquire).checked_sub(1).filter(|fd| *fd >= 0)
    }

    /// Numbers and what is behind them.
    fn all(&self) -> impl Iterator<Item = (c_int, c_int)> {
        (0..END.load(Ordering::Acquire) as c_int).filter_map(|number| Some((number, self.get(number)?)))
    }

    fn take(&self, number: c_int) -> Option<c_int> {
        self.at(number)?.swap(0, Ordering::AcqRel).checked_sub(1).filter(|fd| *fd >= 0)
    }
}

/// The stack's descriptor behind a number.
pub(crate) fn ours(number: c_int) -> Option<c_int> {
    SOCKETS.get(number)
}

/// Sockets of the stack's: number, and descriptor.
pub(crate) fn all_sockets() -> impl Iterator<Item = (c_int, c_int)> {
    SOCKETS.all()
}

/// Epoll instances with a part of the stack's: number, and part.
pub(crate) fn all_epolls() -> impl Iterator<Item = (c_int, c_int)> {
    EPOLLS.all()
}

/// Is this number held by a TCP socket of the kernel's?
pub(crate) fn holds_tcp(number: c_int) -> bool {
    usize::try_from(number)
        .ok()
        .and_then(|number| TCP.get(number))
        .is_some_and(|tcp| tcp.load(Ordering::Acquire))
}

/// A number for a descriptor of the stack's that may turn out to be the kernel's: its placeholder is such a socket too.
///
/// # Errors
/// As [`publish`].
pub(crate) fn publish_fresh(fd: c_int, domain: c_int) -> Result<c_int, Errno> {
    // SAFETY: nothing is passed but numbers.
    let number = unsafe { real::socket(domain, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, libc::IPPROTO_TCP) };
    if number < 0 {
        // A kernel without this family.
        return publish(fd);
    }
    enter(number, fd, true)
}

/// As `number`, of which `new` is a duplicate.
///
/// # Errors
/// As [`publish`].
pub(crate) fn publish_again(new: c_int, number: c_int, fd: c_int) -> Result<c_int, Errno> {
    enter(new, fd, holds_tcp(number))
}

/// A number for a descriptor of the stack's.
///
/// # Errors
/// `EMFILE`, `ENFILE`, as the kernel says, or `EMFILE` where the table ends.
pub(crate) fn publish(fd: c_int) -> Result<c_int, Errno> {
    // SAFETY: nothing is passed but numbers.
    let number = unsafe { real::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    if number < 0 {
        return Err(last_error());
    }
    enter(number, fd, false)
}

/// This number, held already, is for a descriptor of the stack's. `EMFILE`: the table ends before it, and it is the kernel's again.
fn enter(number: c_int, fd: c_int, is_tcp: bool) -> Result<c_int, Errno> {
    let (Some(entry), Some(tcp)) = (SOCKETS.at(number), TCP.get(number as usize)) else {
        // SAFETY: nobody else knows this number.
        unsafe { real::close(number) };
        return Err(Errno::EMFILE);
    };
    END.fetch_max(number as usize + 1, Ordering::AcqRel);
    tcp.store(is_tcp, Ordering::Release);
    entry.store(fd + 1, Ordering::Release);
    Ok(number)
}

/// The number is ours no longer; its placeholder is still there.
pub(crate) fn withdraw(number: c_int) -> Option<c_int> {
    SOCKETS.take(number)
}

/// The stack's part of an epoll instance: it has one from the first socket of ours that it watches.
pub(crate) fn epoll_part(number: c_int) -> Option<c_int> {
    EPOLLS.get(number)
}

/// Gives it one, unless another thread has: that one then.
pub(crate) fn set_epoll_part(number: c_int, fd: c_int) -> Result<Option<c_int>, Errno> {
    let entry = EPOLLS.at(number).ok_or(Errno::EBADF)?;
    END.fetch_max(number as usize + 1, Ordering::AcqRel);
    let set = entry.compare_exchange(0, fd + 1, Ordering::AcqRel, Ordering::Acquire);
    Ok(set.err().map(|other| other - 1))
}

pub(crate) fn take_epoll_part(number: c_int) -> Option<c_int> {
    EPOLLS.take(number)
}

/// Is the stack asked too when this number is waited for?
pub(crate) fn is_watched(number: c_int) -> bool {
    ours(number).or(epoll_part(number)).is_some()
}

/// The sockets of the stack, by the numbers that the application knows.
pub(crate) struct Both(pub(crate) &'static RealProcess);

impl Process for Both {
    fn call<R>(&self, call: impl FnOnce(&mut Sockets, Instant) -> R) -> R {
        self.0.call(call)
    }

    fn wait<R>(&self, attempt: impl FnMut(&mut Sockets, Instant) -> Result<R, Stop>) -> Result<R, Errno> {
        Process::wait(self.0, attempt)
    }

    fn sides(&self, number: c_int) -> Sides {
        match (ours(number), epoll_part(number)) {
            (Some(fd), _) => Sides::ours(fd),
            (None, ours) => Sides { ours, kernels: Some(number) },
        }
    }

    fn wait_ready(&self, waits: &Waits<'_>, look: &mut impl Look) -> Result<(), Errno> {
        self.0.wait_ready(waits, look)
    }
}

/// What libc has just said.
pub(crate) fn last_error() -> Errno {
    Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}
