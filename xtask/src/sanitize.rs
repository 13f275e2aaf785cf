//! The C library's programs where every access of memory is checked: under AddressSanitizer, the library instrumented too (a nightly
//! toolchain), and under valgrind's memcheck, as it is shipped.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs that need no rights.
const PROGRAMS: &[&str] = &["errors", "readiness", "threads"];
/// Debian's valgrind does not know `epoll_pwait2`, which `readiness.c` calls, and runs one thread at a time, so that what `threads.c` expects
/// of time does not hold.
const UNDER_VALGRIND: &[&str] = &["errors"];

const TARGET: &str = "x86_64-unknown-linux-gnu";
const ASAN: &str = "-fsanitize=address";

/// Leaks are not looked for: a stack that was started is never freed, on purpose (`posix::c::life`).
const MEMCHECK: &[&str] = &["--quiet", "--error-exitcode=99", "--leak-check=no"];

pub(crate) fn run() -> Result<(), String> {
    let folder = Path::new("target/sanitize");
    under_asan(folder)?;
    under_valgrind(folder)
}

fn under_asan(folder: &Path) -> Result<(), String> {
    let mut build = Command::new("cargo");
    // The toolchain that runs this would be asked for else.
    build.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env("RUSTFLAGS", "-Zsanitizer=address");
    build.args(["+nightly", "build", "--package", "firstbyte-capi", "--target", TARGET, "--target-dir"]);
    done(build.arg(folder))?;
    let library = folder.join(TARGET).join("debug/libfirstbyte.a");
    for name in PROGRAMS {
        let program = compile(name, &library, &folder.join(format!("{name}-asan")), &[ASAN])?;
        // The stack is never freed.
        done(Command::new(&program).env("ASAN_OPTIONS", "detect_leaks=0"))?;
    }
    Ok(())
}

fn under_valgrind(folder: &Path) -> Result<(), String> {
    let mut build = Command::new(env!("CARGO"));
    done(build.args(["build", "--package", "firstbyte-capi", "--target-dir"]).arg(folder))?;
    let library = folder.join("debug/libfirstbyte.a");
    for name in UNDER_VALGRIND {
        let program = compile(name, &library, &folder.join(format!("{name}-valgrind")), &[])?;
        done(Command::new("valgrind").args(MEMCHECK).arg(&program))?;
    }
    Ok(())
}

fn compile(name: &str, library: &Path, program: &Path, flags: &[&str]) -> Result<PathBuf, String> {
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-g", "-Icrates/capi/include", "-Icrates/capi/tests/c"]).args(flags);
    cc.arg(format!("crates/capi/tests/c/{name}.c")).arg("-o").arg(program).arg(library);
    done(cc.args(["-lpthread", "-ldl", "-lm", "-lgcc_s"]))?;
    std::path::absolute(program).map_err(|error| error.to_string())
}

fn done(command: &mut Command) -> Result<(), String> {
    println!("=== {command:?}");
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}
