//! The stack of this program: decided when the library is loaded, started when it is first needed.

use crate::{heap, real, unattended};
use libc::c_int;
use posix::c::life;
use posix::{Errno, RealProcess};
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};

/// What the environment said when the library was loaded: a program may change its environment later (nginx empties it).
static DESCRIPTION: OnceLock<Option<OsString>> = OnceLock::new();

fn description() -> Option<&'static OsString> {
    DESCRIPTION.get_or_init(|| std::env::var_os(life::ENVIRONMENT)).as_ref()
}

/// The loader calls what stands here before the program begins.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    heap::survive_forks();
    unattended::watch_forks();
    description();
}

/// Has the program a stack, which may not have been started yet?
pub(crate) fn is_wanted() -> bool {
    description().is_some()
}

/// Is this socket the stack's business?
pub(crate) fn takes(domain: c_int, kind: c_int, protocol: c_int) -> bool {
    let inet = matches!(domain, libc::AF_INET | libc::AF_INET6);
    let stream = kind & 0xf == libc::SOCK_STREAM;
    let tcp = matches!(protocol, 0 | libc::IPPROTO_TCP);
    inet && stream && tcp && is_wanted()
}

/// What a call that makes a descriptor does: the stack is started if it has not been.
///
/// # Errors
/// The call's own; `ENETDOWN`: the stack could not be started, or this is a child of the process that has it; which was said on stderr.
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

/// What a call about a descriptor of the stack's does.
///
/// # Errors
/// The call's own; `EBADF` after the end of the stack; `ENETDOWN` in a child of the process that has it, which is said on stderr.
pub(crate) fn with<R>(call: impl FnOnce(&'static RealProcess) -> Result<R, Errno>) -> Result<R, Errno> {
    life::entered(|process| match process {
        Some(process) => call(process),
        None if say_if_forked() => Err(Errno::ENETDOWN),
        None => Err(Errno::EBADF),
    })
}

/// Says once why a child has no sockets. False: this is none.
fn say_if_forked() -> bool {
    static SAID: AtomicBool = AtomicBool::new(false);
    let Some(owner) = life::forked_from() else { return false };
    if !SAID.swap(true, Ordering::Relaxed) {
        let why = format!(
            "libfirstbyte_preload: process {} was forked from {owner}, to which the stack and its TCP sockets belong: the child can \
             neither use them nor open others (a child that only executes another program may). Run the program as one process, as by \
             nginx's `master_process off; daemon off;`, or with threads, as Python's ThreadingTCPServer.\n",
            std::process::id()
        );
        real::say(&why);
    }
    true
}
