//! Tests with the real kernel as the peer: each in a network namespace of its own.
//!
//! [`in_namespace`] runs a closure in a new thread that has left the machine's network for an empty
//! one with `lo` up. Tests run in parallel, each may call its interface `tun0`, and nothing of the
//! machine's own network is touched. What the closure opens (TUN devices, sockets), starts
//! ([`command`]) and writes ([`sysctl`]) belongs to its namespace; threads that it spawns inherit
//! it too, so a tokio runtime must be started inside.
//!
//! Its kernel's congestion control is Reno, which every kernel has and every namespace may choose:
//! the machine's own default, which a namespace would inherit, may be CUBIC, or BBR, which paces.
//!
//! Where the machine does not allow it the test is skipped, and says so on stderr: see [`can`].
//!
//! ```
//! testnet::in_namespace(|| {
//!     testnet::sysctl("net.ipv4.tcp_fastopen", "3");
//!     assert_eq!(testnet::read_sysctl("net.ipv4.tcp_fastopen"), "3");
//! });
//! ```
#![forbid(unsafe_code)]
mod built;
mod counters;

pub use built::{built, built_example};
pub use counters::{Counters, counters};

use rustix::thread::UnshareFlags;
use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// Runs `test` in a new thread with a fresh network namespace, `lo` up, and gives its result. A
/// panic goes on in the caller. `None`: skipped, after a line on stderr with the reason.
///
/// # Panics
/// If `test` panics, or if the namespace cannot be made although [`can`] said so.
#[track_caller]
pub fn in_namespace<T: Send>(test: impl FnOnce() -> T + Send) -> Option<T> {
    if let Err(reason) = can() {
        let caller = std::panic::Location::caller();
        // Straight to the descriptor: the harness swallows eprintln! of a test that passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs root and /dev/net/tun ({reason}): {caller}");
        return None;
    }
    let name = std::thread::current().name().unwrap_or("testnet").to_owned();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn_scoped(scope, || {
                enter();
                test()
            })
            .expect("a thread");
        match thread.join() {
            Ok(result) => Some(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Gives this thread and its commands a private /run/netns and /run/firstbyte. Namespaces of the
/// same name elsewhere do not collide with theirs, and running stacks elsewhere are not found. Both
/// folders disappear with the last of these processes.
///
/// # Panics
/// If the thread has no privileges to mount.
pub fn hide_namespace_names() {
    leave(UnshareFlags::NEWNS).expect("a mount namespace of its own");
    let folders = ["/run/netns", "/run/firstbyte"];
    folders.iter().for_each(|folder| std::fs::create_dir_all(folder).expect("a folder"));
    let [names, stacks] = folders.map(|folder| ["-t", "tmpfs", "-o", "mode=755", "none", folder]);
    for arguments in [&["--make-rprivate", "/"][..], &names, &stacks] {
        let status = Command::new("mount").args(arguments).status().expect("mount runs");
        assert!(status.success(), "mount {arguments:?}: {status}");
    }
}

/// Can namespaces with TUN devices be made here? The reason if not.
///
/// # Errors
/// A sentence: not root, or no access to /dev/net/tun.
pub fn can() -> Result<(), String> {
    std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/net/tun")
        .map_err(|error| format!("/dev/net/tun: {error}"))?;
    // In a thread of its own, which then ends: the caller stays where it is.
    std::thread::spawn(|| leave_network().map_err(|error| format!("unshare(CLONE_NEWNET): {error}")))
        .join()
        .unwrap_or_else(|_| Err("the trial thread panicked".to_owned()))
}

/// A command whose process will live in this thread's namespace.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Is there a program of this name in PATH?
pub fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
}

/// Sets a `net.…` setting of this thread's namespace.
///
/// # Panics
/// If there is no such setting in this namespace or the value is refused.
#[track_caller]
pub fn sysctl(name: &str, value: &str) {
    let path = sysctl_path(name);
    if let Err(error) = std::fs::write(&path, value) {
        panic!("{name} = {value}: {}: {error}", path.display());
    }
}

/// Reads a `net.…` setting of this thread's namespace; surrounding space is cut off.
///
/// # Panics
/// If there is no such setting.
#[track_caller]
pub fn read_sysctl(name: &str) -> String {
    let path = sysctl_path(name);
    match std::fs::read_to_string(&path) {
        Ok(value) => value.trim().to_owned(),
        Err(error) => panic!("{name}: {}: {error}", path.display()),
    }
}

fn sysctl_path(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(name.replace('.', "/"))
}

fn enter() {
    leave_network().expect("a network namespace of its own");
    let lo = device::interface::find("lo").expect("lo");
    device::interface::set_up(lo.index).expect("lo up");
    sysctl("net.ipv4.tcp_congestion_control", "reno");
}

fn leave_network() -> std::io::Result<()> {
    leave(UnshareFlags::NEWNET)
}

#[expect(
    deprecated,
    reason = "deprecated because CLONE_FILES would be unsound; these flags share no descriptor table, and this crate stays free of unsafe"
)]
fn leave(what: UnshareFlags) -> std::io::Result<()> {
    Ok(rustix::thread::unshare(what)?)
}
