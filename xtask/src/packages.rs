//! The Debian packages whose programs the tests use.

use std::path::Path;
use std::process::Command;

/// Each program with its Debian package.
const PROGRAMS: &[(&str, &str)] = &[
    ("ab", "apache2-utils"),
    ("chromium", "chromium"),
    ("curl", "curl"),
    ("etcd", "etcd-server"),
    ("ethtool", "ethtool"),
    ("g++", "g++"),
    ("httping", "httping"),
    ("ip", "iproute2"),
    ("nginx", "nginx-light"),
    ("ping", "iputils-ping"),
    ("python3", "python3"),
    ("tcpdump", "tcpdump"),
    ("tshark", "tshark"),
    ("valgrind", "valgrind"),
];

/// Installs the missing packages with apt if the user is root. Otherwise lists them and continues:
/// the tests that need them print SKIPPED.
pub(crate) fn install_missing() -> Result<(), String> {
    let missing: Vec<&str> =
        PROGRAMS.iter().filter(|(program, _)| !installed(program)).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !is_root() || !installed("apt-get") {
        println!("=== not installed: {}. The tests that need them print SKIPPED.", missing.join(", "));
        return Ok(());
    }
    println!("=== apt-get install {}", missing.join(" "));
    apt(&["update", "--quiet"])?;
    let mut install = vec!["install", "--yes", "--quiet", "--no-install-recommends"];
    install.extend(missing);
    apt(&install)
}

fn apt(arguments: &[&str]) -> Result<(), String> {
    let status = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status()
        .map_err(|error| format!("cannot run apt-get: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`apt-get {}` failed", arguments.join(" "))) }
}

pub(crate) fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin"].map(Into::into);
    std::env::split_paths(&path).chain(usual).any(|folder: std::path::PathBuf| folder.join(program).is_file())
}

/// Returns whether the effective user is root: the user owns the process's entry in /proc.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(Path::new("/proc/self")).is_ok_and(|entry| entry.uid() == 0)
}
