//! The one stack of a process: from its start to the end of the process, found without a lock, gone after a fork.
//!
//! What was started is never freed, since a thread may still be in one of its calls when it is stopped; a stopped stack has no sockets,
//! so that little is left of it.

use crate::description::{Description, Refused};
use crate::errno::Errno;
use crate::real_time::{Ended, RealProcess, Running};
use crate::system::inherited;
use crate::system::masked::Masked;
use host::paths;
use std::path::PathBuf;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::Duration;

/// A stack that was started.
#[derive(Debug)]
pub struct Started {
    running: Running,
    linger: Duration,
    cache: Option<PathBuf>,
}

static CURRENT: AtomicPtr<Started> = AtomicPtr::new(ptr::null_mut());
/// The process that started it; 0: none did.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// Of a child of `fork`: the process whose stack was in use.
static FORKED_FROM: AtomicU32 = AtomicU32::new(0);

/// The environment variable that [`start`] reads if it gets no text.
pub const ENVIRONMENT: &str = "FIRSTBYTE";

/// The sockets of the stack in use.
pub fn current() -> Option<&'static RealProcess> {
    // SAFETY: the pointer is null or of a leaked box.
    let started = unsafe { CURRENT.load(Ordering::Acquire).as_ref() };
    started.map(|started| started.running.process())
}

/// Runs a call with the current stack. No signal handler runs in this thread meanwhile, except
/// while the call sleeps.
pub fn entered<R>(call: impl FnOnce(Option<&'static RealProcess>) -> R) -> R {
    let _masked = Masked::new();
    call(current())
}

/// Runs a call if there is a stack. Without one, no descriptor is open. Signal handlers are treated
/// as in [`entered`].
///
/// # Errors
/// Returns the call's own errors, and `EBADF` without a stack.
pub fn with<R>(call: impl FnOnce(&'static RealProcess) -> Result<R, Errno>) -> Result<R, Errno> {
    entered(|process| call(process.ok_or(Errno::EBADF)?))
}

/// Returns the process that owns the stack, in a child of `fork` that has lost it.
pub fn forked_from() -> Option<u32> {
    Some(FORKED_FROM.load(Ordering::Relaxed)).filter(|owner| *owner != 0)
}

/// Returns whether this is a child that shares its parent's memory until it executes another
/// program (`vfork`). It must not change anything of the parent.
pub fn is_borrowed() -> bool {
    current().is_some() && OWNER.load(Ordering::Relaxed) != std::process::id()
}

/// Starts the stack of this process. Without a text, uses the environment (`FIRSTBYTE`). When the
/// process exits normally, the stack ends too.
///
/// Returns warnings for the user ([`Description::warnings`]).
///
/// # Errors
/// Returns `EALREADY` if there is a stack already, or the error in the text or of its device.
pub fn start(text: Option<&str>) -> Result<Vec<String>, Refused> {
    let runs = || Refused { errno: Errno::EALREADY, why: "this process has a stack already".into() };
    let from_environment = text.is_none().then(|| std::env::var(ENVIRONMENT).ok()).flatten();
    let text = text.or(from_environment.as_deref()).ok_or_else(|| Refused {
        errno: Errno::EINVAL,
        why: format!("no description of a stack, and none in the environment ({ENVIRONMENT})"),
    })?;
    let description: Description = text.parse()?;
    if current().is_some() {
        return Err(runs());
    }
    let running = description.start()?;
    let warnings = description.warnings().to_vec();
    let started = Started { running, linger: description.linger, cache: description.cache };
    install(started).map(|()| warnings).map_err(|other| {
        // Two threads at once: the device is given back before the second one is told.
        other.running.stop(Duration::ZERO);
        runs()
    })
}

/// Stops the stack of this process, like [`Running::stop`]. Without `timeout`, its description sets
/// the time. Saves remembered paths.
///
/// # Errors
/// Returns `ENETDOWN` if there is no stack, `ETIMEDOUT` if connections had to be reset, the error
/// of its device if that failed, or the error of the file for remembered paths.
pub fn stop(timeout: Option<Duration>) -> Result<(), Refused> {
    let started = take().ok_or(Refused { errno: Errno::ENETDOWN, why: "no stack runs".into() })?;
    let ended = started.running.stop(timeout.unwrap_or(started.linger));
    let kept = started.keep_paths();
    match ended {
        None | Some(Ended::Delivered) => kept,
        Some(Ended::TimedOut) => Err(Refused {
            errno: Errno::ETIMEDOUT,
            why: "not everything was delivered in time; what was left has been reset".into(),
        }),
        Some(Ended::Failed(error)) => Err(Refused::of("the device under the stack failed: ", &error)),
    }
}

/// The stack in use, which is so no longer.
fn take() -> Option<&'static Started> {
    // SAFETY: the pointer is null or of a leaked box.
    unsafe { CURRENT.swap(ptr::null_mut(), Ordering::AcqRel).as_ref() }
}

impl Started {
    fn keep_paths(&self) -> Result<(), Refused> {
        let Some(file) = &self.cache else { return Ok(()) };
        let paths = self.running.process().call(|sockets, now| sockets.stack().export_paths(now));
        paths::save(file, &paths).map_err(|error| Refused::of_cache(file, &error))
    }
}

/// Makes this the stack in use, unless there is one.
fn install(started: Started) -> Result<(), Started> {
    static AT_END: Once = Once::new();
    let leaked = Box::into_raw(Box::new(started));
    let installed =
        CURRENT.compare_exchange(ptr::null_mut(), leaked, Ordering::AcqRel, Ordering::Acquire).is_ok();
    if !installed {
        // SAFETY: it came from a box just now, and nobody else has seen it.
        return Err(*unsafe { Box::from_raw(leaked) });
    }
    OWNER.store(std::process::id(), Ordering::Relaxed);
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

/// The process ends in order: what was written is still delivered.
extern "C" fn at_exit() {
    let Some(started) = take() else { return };
    // Nobody is left to be told what had to be reset.
    let _ = started.running.stop(started.linger);
    if let Err(refused) = started.keep_paths() {
        eprintln!("libfirstbyte: {}", refused.why);
    }
}

/// A child of fork has neither the thread of the stack nor a right to its device, which the parent could not open again otherwise.
extern "C" fn in_child() {
    inherited::close();
    if !CURRENT.swap(ptr::null_mut(), Ordering::AcqRel).is_null() {
        FORKED_FROM.store(OWNER.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}
