//! `cargo xtask scripts`: our packetdrill scripts over the kernel, by the real packetdrill.
//!
//! What our own runner shows of our stack is worth as much as the scripts are right: this asks Linux. Each runs in a network namespace of
//! its own, which its sysctl lines change. Real time, so a script that fails on a busy machine is tried again.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

/// Where they are.
const FOLDER: &str = "crates/script/scripts";
/// Scripts that run at once: they mostly wait.
const AT_ONCE: usize = 4;
/// Runs of a script that fails.
const TRIES: u32 = 3;
/// Seconds that a script may take.
const PATIENCE: &str = "120";

/// Runs `paths` (files or folders; none: all scripts) with the program `packetdrill`.
pub(crate) fn run(packetdrill: &str, paths: &[&str]) -> Result<(), String> {
    let packetdrill =
        std::fs::canonicalize(packetdrill).map_err(|error| format!("{packetdrill}: {error}"))?;
    let mut found = Vec::new();
    for path in if paths.is_empty() { &[FOLDER] } else { paths } {
        collect(Path::new(path), &mut found)?;
    }
    found.sort();
    let (all, waiting) = (found.len(), Mutex::new(found));
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(script) = next(&waiting) {
                    if let Err(said) = try_script(&packetdrill, &script) {
                        println!("FAIL  {}\n{said}", script.display());
                        failed.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(script);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).len();
    println!("xtask: {} of {all} scripts hold on this kernel", all - failed);
    if failed == 0 { Ok(()) } else { Err(format!("{failed} scripts do not hold")) }
}

fn next(waiting: &Mutex<Vec<PathBuf>>) -> Option<PathBuf> {
    waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop()
}

fn collect(path: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let refused = |error| format!("{}: {error}", path.display());
    if path.is_file() {
        found.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(refused)? {
        let path = entry.map_err(refused)?.path();
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "pkt") {
            collect(&path, found)?;
        }
    }
    Ok(())
}

fn try_script(packetdrill: &Path, script: &Path) -> Result<(), String> {
    let mut said = String::new();
    for _ in 0..TRIES {
        let output = in_namespace(packetdrill, script).map_err(|error| format!("unshare: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        said = [output.stdout, output.stderr].iter().map(|text| String::from_utf8_lossy(text)).collect();
    }
    Err(said)
}

fn in_namespace(packetdrill: &Path, script: &Path) -> std::io::Result<Output> {
    let path = std::env::var("PATH").unwrap_or_default();
    Command::new("unshare")
        .args(["--net", "--fork", "--kill-child", "sh", "-c", "ip link set lo up; exec \"$@\"", "sh"])
        .args(["timeout", PATIENCE])
        .args([packetdrill, script])
        .env("PATH", format!("/usr/sbin:/sbin:{path}"))
        .output()
}
