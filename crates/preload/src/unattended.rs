//! Listeners from which only forked children would accept.
//!
//! A child of `fork` has none of the stack's sockets. If the parent leaves it to its children to accept, as nginx's master does, nobody
//! accepts: the stack would let clients in, and they would wait for nothing. A child that waits for connections therefore reports the
//! listener, in memory that it shares with its parent. The parent stops listening, unless it has waited for connections itself.

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

/// Time the parent has to wait for connections itself, after a child has.
const GRACE: Duration = Duration::from_millis(250);

/// The serial number of a listener at which the program itself waits for connections.
const ATTENDED: c_int = 0;

/// By number: the listener's serial number. A child has those of the time when it was forked.
static LISTENERS: Table = Table::new();

/// Reports of children to the process that has the stack. Empty until the first listener; `None` inside: the system has no such memory.
static REPORTS: OnceLock<Option<&'static Reports>> = OnceLock::new();

/// The shared memory; all zeros at first.
struct Reports {
    /// Counts reports. The process that has the stack sleeps until it changes.
    count: AtomicU32,
    /// Serial numbers of listeners; 0: the place is free.
    serials: [AtomicI32; 64],
}

/// Memory that children of `fork` share with this process.
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
    // SAFETY: the mapping is large enough, begins at a page, is never unmapped, and its zeros are valid atomics.
    (memory != libc::MAP_FAILED).then(|| unsafe { &*memory.cast::<Reports>() })
}

fn reports() -> Option<&'static Reports> {
    REPORTS.get().copied().flatten()
}

/// Notes that the socket behind this number listens. A second `listen` changes nothing.
pub(crate) fn listens(number: c_int) {
    static LAST: AtomicI32 = AtomicI32::new(ATTENDED);
    if REPORTS.get_or_init(shared_memory).is_some() {
        // Beyond the table the listener is not watched.
        let _ = LISTENERS.set(number, LAST.fetch_add(1, Ordering::Relaxed).saturating_add(1));
    }
}

/// Notes that `new` is a duplicate of `number`.
pub(crate) fn duplicate(number: c_int, new: c_int) {
    if let Some(serial) = LISTENERS.get(number) {
        let _ = LISTENERS.put(new, serial);
    }
}

/// Forgets a number that stands for something else from now on.
pub(crate) fn forget(number: c_int) {
    LISTENERS.take(number);
}

/// Notes that this process waits for connections, if a listener is behind the number: by `accept`, `poll`, `select` or `epoll_ctl`.
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

/// Tells the process that has the stack that a child waits for this listener's connections, which it cannot have.
fn report(serial: c_int) {
    let Some(reports) = reports() else { return };
    let takes = |place: &AtomicI32| {
        let before = place.compare_exchange(0, serial, Ordering::AcqRel, Ordering::Acquire);
        before.is_ok() || before == Err(serial)
    };
    // Without a free place 64 other listeners are about to be closed, and another child will report this one.
    if reports.serials.iter().any(takes) {
        reports.count.fetch_add(1, Ordering::AcqRel);
        let count = reports.count.as_ptr();
        // SAFETY: the word is in memory that is never unmapped. Not `FUTEX_PRIVATE_FLAG`: another process sleeps there.
        unsafe { libc::syscall(libc::SYS_futex, count, libc::FUTEX_WAKE, c_int::MAX) };
    }
}

/// Has this process watch its listeners as soon as it forks with one that it does not attend.
pub(crate) fn watch_forks() {
    // SAFETY: the handler has no arguments and may be called whenever the program forks. Without memory for it, nothing is watched.
    unsafe { libc::pthread_atfork(None, Some(in_parent), None) };
}

extern "C" fn in_parent() {
    static WATCHES: AtomicBool = AtomicBool::new(false);
    let Some(reports) = reports() else { return };
    if WATCHES.load(Ordering::Relaxed) || LISTENERS.all().all(|(_, serial)| serial == ATTENDED) {
        return;
    }
    // No signal of the program's is handled by the new thread: it begins with the mask of this one.
    life::entered(|process| {
        if process.is_some() && !WATCHES.swap(true, Ordering::Relaxed) {
            let thread = thread::Builder::new().name("firstbyte-forks".to_owned());
            if thread.spawn(|| watch(reports)).is_err() {
                WATCHES.store(false, Ordering::Relaxed);
            }
        }
    });
}

/// Stops listening wherever children report that they wait for connections and this process does not.
fn watch(reports: &'static Reports) {
    loop {
        let seen = reports.count.load(Ordering::Acquire);
        let serials = reports.serials.each_ref().map(|place| place.swap(0, Ordering::AcqRel));
        if serials.iter().all(|serial| *serial == 0) {
            let count = reports.count.as_ptr();
            let forever: *const libc::timespec = ptr::null();
            // SAFETY: the word is in memory that is never unmapped; no time is given.
            unsafe { libc::syscall(libc::SYS_futex, count, libc::FUTEX_WAIT, seen, forever) };
            continue;
        }
        thread::sleep(GRACE);
        serials.into_iter().filter(|serial| *serial != 0).for_each(stop_listening);
    }
}

/// Ends a listener, unless this process attends it by now: clients in its queue are reset, later ones are refused.
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
            "libfirstbyte_preload: process {} stopped listening at {name}: only processes forked from it wait for connections, which they \
             cannot have; clients are refused now. Run the program as one process, as by nginx's `master_process off; daemon off;`.\n",
            std::process::id()
        ));
    }
}
