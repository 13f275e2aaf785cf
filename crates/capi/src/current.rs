//! The one stack of this process: found without a lock, gone after a fork.
//!
//! What was started is never freed, since a thread may still be in one of its calls when it is stopped; a stopped stack has no sockets,
//! so that little is left of it.

use posix::{Errno, RealProcess, Running};
use std::path::PathBuf;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

/// A stack that was started.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) running: Running,
    /// How long the end of the process waits for peers.
    pub(crate) linger: Duration,
    /// Where what was learnt of paths is kept.
    pub(crate) cache: Option<PathBuf>,
}

static CURRENT: AtomicPtr<Started> = AtomicPtr::new(ptr::null_mut());

/// The stack in use.
pub(crate) fn current() -> Option<&'static Started> {
    // SAFETY: the pointer is null or of a leaked box.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// Makes this the stack in use, unless there is one.
pub(crate) fn install(started: Started) -> Result<(), Started> {
    static AT_END: Once = Once::new();
    let leaked = Box::into_raw(Box::new(started));
    let installed =
        CURRENT.compare_exchange(ptr::null_mut(), leaked, Ordering::AcqRel, Ordering::Acquire).is_ok();
    if !installed {
        // SAFETY: it came from a box just now, and nobody else has seen it.
        return Err(*unsafe { Box::from_raw(leaked) });
    }
    AT_END.call_once(|| {
        // SAFETY: both are functions without arguments that may be called whenever the system does. That there is no memory to
        // remember them would only mean that the end is as abrupt as that of a killed process.
        unsafe {
            libc::atexit(at_exit);
            libc::pthread_atfork(None, None, Some(in_child));
        }
    });
    Ok(())
}

/// The stack in use is one no longer.
pub(crate) fn remove() -> Option<&'static Started> {
    // SAFETY: the pointer is null or of a leaked box.
    unsafe { CURRENT.swap(ptr::null_mut(), Ordering::AcqRel).as_ref() }
}

/// The process ends in order: what was written is still delivered.
extern "C" fn at_exit() {
    if let Some(started) = remove() {
        crate::control::end(started, started.linger);
    }
}

/// A child of fork has neither the thread of the stack nor a right to its device.
extern "C" fn in_child() {
    CURRENT.store(ptr::null_mut(), Ordering::Release);
}

/// What a call does if there is a stack; without one no descriptor is open.
pub(crate) fn with<R>(call: impl FnOnce(&'static RealProcess) -> Result<R, Errno>) -> Result<R, Errno> {
    call(current().ok_or(Errno::EBADF)?.running.process())
}
