//! The Debian packages whose programs the tests use.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

/// Each program with its Debian package.
const PROGRAMS: &[(&str, &str)] = &[
    ("ab", "apache2-utils"),
    ("chromium", "chromium"),
    ("curl", "curl"),
    ("dpkg-shlibdeps", "dpkg-dev"),
    ("etcd", "etcd-server"),
    ("ethtool", "ethtool"),
    ("fish", "fish"),
    ("g++", "g++"),
    ("httping", "httping"),
    ("ip", "iproute2"),
    ("man", "man-db"),
    ("nginx", "nginx-light"),
    ("ping", "iputils-ping"),
    ("pkg-config", "pkg-config"),
    ("promtool", "prometheus"),
    ("python3", "python3"),
    ("redis-server", "redis-server"),
    ("systemd-analyze", "systemd"),
    ("tcpdump", "tcpdump"),
    ("tshark", "tshark"),
    ("valgrind", "valgrind"),
    ("zsh", "zsh"),
];

/// Installs the missing packages with apt if the user is root. Otherwise lists them and continues:
/// the tests that need them print SKIPPED.
pub(crate) fn install_missing() -> Result<(), String> {
    let mut missing: Vec<&str> =
        PROGRAMS.iter().filter(|(program, _)| !installed(program)).map(|(_, package)| *package).collect();
    if !has_virtual_environments() {
        missing.push("python3-venv");
    }
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
    let _policy = NoServices::begin();
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

/// Returns whether `python3 -m venv` works. Debian has no program in python3-venv.
fn has_virtual_environments() -> bool {
    let found = Command::new("python3").args(["-c", "import ensurepip, venv"]).output();
    found.is_ok_and(|output| output.status.success())
}

/// Keeps packages from starting their services while they are installed (etcd, nginx, Prometheus):
/// the tests start programs of their own, in namespaces.
struct NoServices;

/// The script that Debian's packages ask before they start a service. Absent by default; container
/// images have one that refuses.
const POLICY: &str = "/usr/sbin/policy-rc.d";

impl NoServices {
    /// Returns `None` where the machine has a policy already, or it cannot be written.
    fn begin() -> Option<NoServices> {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o755).open(POLICY).ok()?;
        file.write_all(b"#!/bin/sh\nexit 101\n").ok()?;
        Some(NoServices)
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(POLICY);
    }
}

/// Returns whether a program is in the search path or a folder of system tools.
pub(crate) fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin"].map(Into::into);
    std::env::split_paths(&path).chain(usual).any(|folder: std::path::PathBuf| folder.join(program).is_file())
}

/// Returns whether the effective user is root: the user owns the process's entry in /proc.
pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(Path::new("/proc/self")).is_ok_and(|entry| entry.uid() == 0)
}
