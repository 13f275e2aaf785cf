//! The stack of this program: described when the library is loaded, started when it is first
//! needed.

use crate::{heap, real, unattended};
use libc::c_int;
use posix::c::life;
use posix::{Errno, RealProcess};
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};

/// The variable `FIRSTBYTE` when the library was loaded. Programs may change their environment
/// later, as nginx does.
static DESCRIPTION: OnceLock<Option<OsString>> = OnceLock::new();

fn description() -> Option<&'static OsString> {
    DESCRIPTION.get_or_init(|| std::env::var_os(life::ENVIRONMENT)).as_ref()
}

/// The loader calls this function before the program begins.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    heap::survive_forks();
    unattended::watch_forks();
    description();
}

/// Returns whether the program has a stack, started or not.
pub(crate) fn is_wanted() -> bool {
    description().is_some()
}

/// Returns whether the stack serves such a socket.
pub(crate) fn takes(domain: c_int, kind: c_int, protocol: c_int) -> bool {
    let inet = matches!(domain, libc::AF_INET | libc::AF_INET6);
    let stream = kind & 0xf == libc::SOCK_STREAM;
    let tcp = matches!(protocol, 0 | libc::IPPROTO_TCP);
    inet && stream && tcp && is_wanted()
}

/// Runs a call that creates a descriptor, and starts the stack before the first one.
///
/// # Errors
/// The call's own. `ENETDOWN` if the stack could not be started, or in a child of the process that
/// owns it; stderr says why.
pub(crate) fn started<R>(call: impl FnOnce(&'static RealProcess) -> Result<R, Errno>) -> Result<R, Errno> {
    static ONCE: Once = Once::new();
    life::entered(|_| {
        ONCE.call_once(|| {
            let text = description().map(|text| text.to_string_lossy());
            let said = life::start(text.as_deref()).unwrap_or_else(|refused| vec![refused.why]);
            for sentence in said {
                eprintln!("libfirstbyte_preload: {sentence}");
            }
        });
        match life::current() {
            Some(process) => call(process),
            None => {
                say_if_forked();
                Err(Errno::ENETDOWN)
            }
        }
    })
}

/// Runs a call about a descriptor of the stack.
///
/// # Errors
/// The call's own. `EBADF` after the stack has stopped. `ENETDOWN` in a child of the process that
/// owns it; stderr says why.
pub(crate) fn with<R>(call: impl FnOnce(&'static RealProcess) -> Result<R, Errno>) -> Result<R, Errno> {
    life::entered(|process| match process {
        Some(process) => call(process),
        None if say_if_forked() => Err(Errno::ENETDOWN),
        None => Err(Errno::EBADF),
    })
}

/// Explains once why a child has no sockets. Returns false if this process is not a child.
fn say_if_forked() -> bool {
    static SAID: AtomicBool = AtomicBool::new(false);
    let Some(owner) = life::forked_from() else { return false };
    if !SAID.swap(true, Ordering::Relaxed) {
        let why = format!(
            "libfirstbyte_preload: cannot use TCP sockets in process {}: it was forked from {owner}, which owns \
             the stack; run the program as one process (nginx: `master_process off; daemon off;`) or with \
             threads (Python: ThreadingTCPServer)\n",
            std::process::id()
        );
        real::say(&why);
    }
    true
}
