//! Listeners whose connections only forked children would accept.
//!
//! A child of `fork` has none of the stack's sockets. If the parent leaves accepting to its
//! children, as nginx's master does, no process accepts: clients would connect and wait
//! indefinitely. Therefore a child that waits for connections reports the listener, in memory that
//! it shares with its parent. The parent then stops listening, unless it waits for connections
//! itself.

use crate::numbers::ours;
use crate::real;
use crate::table::Table;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use libc::c_int;
use posix::c::life;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

/// The time within which the parent must wait for connections itself, after a child has.
const GRACE: Duration = Duration::from_millis(250);

/// The serial number of a listener at which the program itself waits for connections.
const ATTENDED: c_int = 0;

/// By number: the listener's serial number. A child has the entries of the time of the fork.
static LISTENERS: Table = Table::new();

/// Reports of children to the process that owns the stack. Unset before the first listener; `None`
/// if the system gave no shared memory.
static REPORTS: OnceLock<Option<&'static Reports>> = OnceLock::new();

/// The shared memory; all zeros at first.
struct Reports {
    /// Counts reports. The process that owns the stack sleeps until it changes.
    count: AtomicU32,
    /// Serial numbers of listeners; 0 is a free entry.
    serials: [AtomicI32; 64],
}

/// Returns memory that children of `fork` share with this process.
fn shared_memory() -> Option<&'static Reports> {
    // SAFETY: a new mapping touches nothing that exists.
    let memory = unsafe {
        libc::mmap(
            ptr::null_mut(),
            size_of::<Reports>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    // SAFETY: the mapping is large enough and aligned to a page, it is never unmapped, and zeros
    // are valid atomics.
    (memory != libc::MAP_FAILED).then(|| unsafe { &*memory.cast::<Reports>() })
}

fn reports() -> Option<&'static Reports> {
    REPORTS.get().copied().flatten()
}

/// Notes that the socket behind this number listens. A second `listen` changes nothing.
pub(crate) fn listens(number: c_int) {
    static LAST: AtomicI32 = AtomicI32::new(ATTENDED);
    if REPORTS.get_or_init(shared_memory).is_some() {
        // A listener beyond the table is not watched.
        let _ = LISTENERS.set(number, LAST.fetch_add(1, Ordering::Relaxed).saturating_add(1));
    }
}

/// Notes that `new` is a duplicate of `number`.
pub(crate) fn duplicate(number: c_int, new: c_int) {
    if let Some(serial) = LISTENERS.get(number) {
        let _ = LISTENERS.put(new, serial);
    }
}

/// Forgets a number that is closed or reused.
pub(crate) fn forget(number: c_int) {
    LISTENERS.take(number);
}

/// Notes that this process waits for connections of a listener, by `accept`, `poll`, `select` or
/// `epoll_ctl`. Ignores other numbers.
pub(crate) fn attend(number: c_int) {
    let Some(serial) = LISTENERS.get(number).filter(|serial| *serial != ATTENDED) else { return };
    for number in numbers_of(serial) {
        let _ = LISTENERS.put(number, ATTENDED);
    }
    if life::forked_from().is_some() {
        report(serial);
    }
}

fn numbers_of(serial: c_int) -> impl Iterator<Item = c_int> {
    LISTENERS.all().filter(move |(_, other)| *other == serial).map(|(number, _)| number)
}

/// Reports to the process that owns the stack that a child waits for this listener's connections.
fn report(serial: c_int) {
    let Some(reports) = reports() else { return };
    let takes = |place: &AtomicI32| {
        let before = place.compare_exchange(0, serial, Ordering::AcqRel, Ordering::Acquire);
        before.is_ok() || before == Err(serial)
    };
    // Without a free entry 64 other listeners are being closed; the next child reports this one.
    if reports.serials.iter().any(takes) {
        reports.count.fetch_add(1, Ordering::AcqRel);
        let count = reports.count.as_ptr();
        // SAFETY: the word is in memory that is never unmapped. Another process sleeps there, hence
        // no `FUTEX_PRIVATE_FLAG`.
        unsafe { libc::syscall(libc::SYS_futex, count, libc::FUTEX_WAKE, c_int::MAX) };
    }
}

/// Makes this process watch its listeners once it forks while it does not attend one of them.
pub(crate) fn watch_forks() {
    // SAFETY: the handler has no arguments and may run at every fork. If there is no memory for the
    // handler, no listener is watched.
    unsafe { libc::pthread_atfork(None, Some(in_parent), None) };
}

extern "C" fn in_parent() {
    static WATCHES: AtomicBool = AtomicBool::new(false);
    let Some(reports) = reports() else { return };
    if WATCHES.load(Ordering::Relaxed) || LISTENERS.all().all(|(_, serial)| serial == ATTENDED) {
        return;
    }
    // The new thread inherits the signal mask of this one, so that it handles none of the program's
    // signals.
    life::entered(|process| {
        if process.is_some() && !WATCHES.swap(true, Ordering::Relaxed) {
            let thread = thread::Builder::new().name("firstbyte-forks".to_owned());
            if thread.spawn(|| watch(reports)).is_err() {
                WATCHES.store(false, Ordering::Relaxed);
            }
        }
    });
}

/// Stops the listeners that children report and this process does not attend.
fn watch(reports: &'static Reports) {
    loop {
        let seen = reports.count.load(Ordering::Acquire);
        let serials = reports.serials.each_ref().map(|place| place.swap(0, Ordering::AcqRel));
        if serials.iter().all(|serial| *serial == 0) {
            let count = reports.count.as_ptr();
            let forever: *const libc::timespec = ptr::null();
            // SAFETY: the word is in memory that is never unmapped; the time-out is null.
            unsafe { libc::syscall(libc::SYS_futex, count, libc::FUTEX_WAIT, seen, forever) };
            continue;
        }
        thread::sleep(GRACE);
        serials.into_iter().filter(|serial| *serial != 0).for_each(stop_listening);
    }
}

/// Stops a listener that this process does not attend. Resets the clients in its queue; later
/// clients are refused.
fn stop_listening(serial: c_int) {
    let numbers: Vec<c_int> = numbers_of(serial).collect();
    let Some(fd) = numbers.iter().find_map(|number| ours(*number)) else { return };
    numbers.into_iter().for_each(forget);
    let stopped = life::with(|process| {
        process.call(|sockets, now| {
            let name = sockets.local_name(fd)?;
            sockets.shutdown(now, fd, libc::SHUT_RDWR)?;
            Ok(name)
        })
    });
    if let Ok(name) = stopped {
        real::say(&format!(
            "libfirstbyte_preload: process {} stopped listening at {name}: only forked processes wait for \
             connections there, and the stack cannot give them any; clients are refused now; run the program as \
             one process (nginx: `master_process off; daemon off;`)\n",
            std::process::id()
        ));
    }
}
