//! Checks every memory access of the C library and the preload library.
//!
//! Their C programs and examples run under AddressSanitizer, with the libraries instrumented
//! (which needs a nightly toolchain), and under valgrind's memcheck, with the libraries as
//! shipped.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs that need no privileges.
const PROGRAMS: &[&str] = &["errors", "readiness", "threads"];
/// Programs that need a network namespace of their own with a TUN device.
const IN_NAMESPACE: &[&str] = &["moving", "signed"];
/// Programs that run under valgrind. Debian's valgrind lacks `epoll_pwait2`, which `readiness.c`
/// calls. It runs one thread at a time, which breaks the timing that `threads.c` expects. The
/// signals of the preload library's `habits.c` arrive faster than valgrind proceeds.
const UNDER_VALGRIND: &[&str] = &["errors"];
const EXAMPLES: &[&str] = &["echo_server", "fast_open_client"];

const TARGET: &str = "x86_64-unknown-linux-gnu";
const ASAN: &str = "-fsanitize=address";
/// A started stack is never freed.
const NO_LEAKS: (&str, &str) = ("ASAN_OPTIONS", "detect_leaks=0");

/// memcheck without the leak check: a started stack is never freed, on purpose (`posix::c::life`).
const MEMCHECK: &str = "valgrind --quiet --error-exitcode=99 --leak-check=no";

/// Runs both examples against each other. The server's stack and the client's are hosts behind
/// this machine, which forwards. A signal stops the server, which must exit with 0.
const EXAMPLES_MEET: &str = r#"
set -eu
sysctl -qw net.ipv4.ip_forward=1
$RUN ./echo_server 7 'device tun0; device-address 10.0.0.1/24; address 10.0.0.2/24' > listening &
server=$!
trap 'kill -9 $server 2> /dev/null || true' EXIT
until grep -q listening listening; do kill -0 $server; sleep 0.1; done
$RUN ./fast_open_client 10.0.0.2 7 hello 3 'device tun1; device-address 10.0.1.1/24; address 10.0.1.2/24'
kill -TERM $server
wait $server
"#;

/// Runs both checks.
pub(crate) fn run() -> Result<(), String> {
    let folder = std::path::absolute("target/sanitize").map_err(|error| error.to_string())?;
    under_asan(&folder)?;
    under_valgrind(&folder)
}

fn under_asan(folder: &Path) -> Result<(), String> {
    let mut build = Command::new("cargo");
    // These variables would select the toolchain that runs xtask.
    build.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env("RUSTFLAGS", "-Zsanitizer=address");
    build.args(["+nightly", "build", "--package", "firstbyte-capi", "--package", "firstbyte-preload"]);
    done(build.args(["--target", TARGET, "--target-dir"]).arg(folder))?;
    let built = folder.join(TARGET).join("debug");
    let library = built.join("libfirstbyte.a");
    let own = folder.join("asan");
    for name in PROGRAMS {
        let program = compile("tests/c", name, &library, &own, &[ASAN])?;
        done(Command::new(&program).env(NO_LEAKS.0, NO_LEAKS.1))?;
    }
    if may_make_namespaces() {
        for name in IN_NAMESPACE {
            let program = compile("tests/c", name, &library, &own, &[ASAN])?;
            done(in_namespace("exec \"$PROGRAM\"").env("PROGRAM", program).env(NO_LEAKS.0, NO_LEAKS.1))?;
        }
    }
    examples(&library, &own, &[ASAN], "")?;
    preload(&built.join("libfirstbyte_preload.so"), &own)
}

/// Runs unmodified programs with the preload library: an instrumented C program, and Python.
fn preload(library: &Path, folder: &Path) -> Result<(), String> {
    let habits = folder.join("habits");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-g", ASAN, "crates/preload/tests/c/habits.c", "-lpthread", "-o"]).arg(&habits);
    done(&mut cc)?;
    let runtime = Command::new("cc").arg("-print-file-name=libasan.so").output();
    let runtime = runtime.map_err(|error| format!("cc: {error}"))?;
    // The sanitizer's own library must be loaded first.
    let preloaded = format!("{} {}", String::from_utf8_lossy(&runtime.stdout).trim(), library.display());
    let mut mixed = Command::new("python3");
    mixed.arg("crates/preload/tests/mixed.py");
    for program in [&mut Command::new(&habits), &mut mixed] {
        program.env("FIRSTBYTE", "device loopback; address 10.0.0.2/24").env(NO_LEAKS.0, NO_LEAKS.1);
        done(program.env("LD_PRELOAD", &preloaded))?;
    }
    Ok(())
}

fn under_valgrind(folder: &Path) -> Result<(), String> {
    let mut build = Command::new(env!("CARGO"));
    done(build.args(["build", "--package", "firstbyte-capi", "--target-dir"]).arg(folder))?;
    let library = folder.join("debug/libfirstbyte.a");
    let own = folder.join("valgrind");
    for name in UNDER_VALGRIND {
        let program = compile("tests/c", name, &library, &own, &[])?;
        done(Command::new("valgrind").args(MEMCHECK.split(' ').skip(1)).arg(&program))?;
    }
    examples(&library, &own, &[], MEMCHECK)
}

fn examples(library: &Path, folder: &Path, flags: &[&str], run: &str) -> Result<(), String> {
    for name in EXAMPLES {
        compile("examples", name, library, folder, flags)?;
    }
    if !may_make_namespaces() {
        return Ok(());
    }
    let mut meet = in_namespace(EXAMPLES_MEET);
    done(meet.current_dir(folder).env("RUN", run).env(NO_LEAKS.0, NO_LEAKS.1))
}

/// Runs a script in a network namespace with `lo` up.
fn in_namespace(script: &str) -> Command {
    let mut unshare = Command::new("unshare");
    unshare.args(["--net", "sh", "-c", &format!("ip link set lo up\n{script}")]);
    unshare
}

/// Returns whether the user can make network namespaces, and prints SKIPPED if not.
fn may_make_namespaces() -> bool {
    let may = Command::new("unshare").args(["--net", "true"]).status().is_ok_and(|status| status.success());
    if !may {
        println!("SKIPPED: the programs that need a network namespace and a TUN device; run as root");
    }
    may
}

fn compile(of: &str, name: &str, library: &Path, folder: &Path, flags: &[&str]) -> Result<PathBuf, String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let program = folder.join(name);
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-g", "-Icrates/capi/include", "-Icrates/capi/tests/c"]).args(flags);
    cc.arg(format!("crates/capi/{of}/{name}.c")).arg("-o").arg(&program).arg(library);
    done(cc.args(["-lpthread", "-ldl", "-lm", "-lgcc_s"]))?;
    Ok(program)
}

fn done(command: &mut Command) -> Result<(), String> {
    println!("=== {command:?}");
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}
