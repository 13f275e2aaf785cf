//! `cargo xtask scripts`: runs our packetdrill scripts on the kernel, with google/packetdrill.
//!
//! The scripts judge our stack, and this judges the scripts: Linux must pass them too. Each runs
//! in a network namespace of its own, which its sysctl lines change. A script that fails beside
//! another, in real time, is tried again alone.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

/// The folder of the scripts.
const FOLDER: &str = "crates/script/scripts";
/// Scripts that run at once. They mostly wait, with real-time priority: more would disturb each
/// other's clocks.
const AT_ONCE: usize = 2;
/// Attempts, alone, for a script that failed beside another.
const TRIES: u32 = 3;
/// The addresses of IPv4 scripts: Fast Open cookies depend on them. IPv6 scripts name their own.
const ADDRESSES: [&str; 5] = [
    "--ip_version=ipv4",
    "--local_ip=192.168.0.1",
    "--gateway_ip=192.168.0.1",
    "--netmask_ip=255.255.0.0",
    "--remote_ip=192.0.2.1",
];
/// Seconds that a script may take.
const TIMEOUT_S: &str = "120";
/// The setting of the machine that limits the congestion controls of a namespace.
const ALLOWED: &str = "tcp_allowed_congestion_control";

/// Runs `cargo xtask scripts` with its arguments: the program, then files or folders (default: all
/// scripts).
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let [packetdrill, paths @ ..] = arguments else {
        return Err("cannot run scripts: no packetdrill; \
                    usage: cargo xtask scripts PACKETDRILL [FILE|FOLDER…]"
            .to_owned());
    };
    let packetdrill =
        std::fs::canonicalize(packetdrill).map_err(|error| format!("cannot run `{packetdrill}`: {error}"))?;
    let default = setting("tcp_congestion_control");
    if default != "cubic" {
        let wanted = format!(
            "sysctl -w net.ipv4.tcp_congestion_control=cubic net.ipv4.{ALLOWED}='reno cubic {default}'"
        );
        return Err(format!(
            "cannot run scripts: they expect CUBIC, and new namespaces start with {default}; \
             run `{wanted}` first"
        ));
    }
    let mut found = Vec::new();
    for path in if paths.is_empty() { &[FOLDER] } else { paths } {
        collect(Path::new(path), &mut found)?;
    }
    found.sort();
    leave_out(
        &mut found,
        "they need settings that Linux lacks or has only once per machine, or pings or several \
         connections, which packetdrill cannot play",
        is_ours_alone,
    );
    if !takes_accurate_ecn() {
        leave_out(&mut found, "this kernel's net.ipv4.tcp_ecn ends at 2", wants_accurate_ecn);
    }
    let allowed = setting(ALLOWED);
    leave_out(&mut found, "this kernel lacks their congestion control, or does not allow it", |script| {
        algorithms(script).iter().any(|name| !allowed.split_whitespace().any(|known| known == name))
    });
    let all = found.len();
    let mut failed = 0;
    for script in at_once(&packetdrill, found) {
        if let Err(said) = alone(&packetdrill, &script) {
            println!("FAIL  {}\n{said}", script.display());
            failed += 1;
        }
    }
    println!("xtask: {} of {all} scripts pass on this kernel", all - failed);
    if failed == 0 { Ok(()) } else { Err(format!("{failed} scripts failed")) }
}

/// Removes the scripts for which `is_left_out` is true, and prints SKIPPED with their number.
fn leave_out(found: &mut Vec<PathBuf>, reason: &str, is_left_out: impl Fn(&Path) -> bool) {
    let before = found.len();
    found.retain(|script| !is_left_out(script));
    if found.len() < before {
        println!("SKIPPED {} scripts: {reason}", before - found.len());
    }
}

/// Returns whether the sysctl accepts Accurate ECN. Linux 6.18 has it in its code and
/// documentation, but its sysctl refuses it.
fn takes_accurate_ecn() -> bool {
    let sysctl = ["--net", "--fork", "--kill-child", "sysctl", "-q", "net.ipv4.tcp_ecn=5"];
    let output = Command::new("unshare").args(sysctl).env("PATH", path()).output();
    output.is_ok_and(|output| output.status.success())
}

fn wants_accurate_ecn(script: &Path) -> bool {
    let text = std::fs::read_to_string(script).unwrap_or_default();
    ["tcp_ecn=3", "tcp_ecn=4", "tcp_ecn=5"].iter().any(|setting| text.contains(setting))
}

/// Returns the algorithms that a script chooses for the namespace.
fn algorithms(script: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(script).unwrap_or_default();
    let named = text.split("tcp_congestion_control=").skip(1);
    named.map(|rest| rest.chars().take_while(char::is_ascii_alphanumeric).collect()).collect()
}

/// Reads a `net.ipv4` setting.
fn setting(name: &str) -> String {
    std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default().trim().into()
}

fn is_ours_alone(script: &Path) -> bool {
    let words = ["firstbyte.", "icmp echo_", "tcp_mem=", "tcp_max_orphans=", "> 8080 > "];
    std::fs::read_to_string(script).is_ok_and(|text| words.iter().any(|word| text.contains(word)))
}

/// Returns the search path with the folders of system tools.
fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// Runs all scripts and returns those that failed.
fn at_once(packetdrill: &Path, scripts: Vec<PathBuf>) -> Vec<PathBuf> {
    let (waiting, failed) = (Mutex::new(scripts), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(script) = next(&waiting) {
                    if attempt(packetdrill, &script).is_err() {
                        failed.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(script);
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
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

/// Runs a script alone, several times if it fails.
fn alone(packetdrill: &Path, script: &Path) -> Result<(), String> {
    let mut result = attempt(packetdrill, script);
    for _ in 1..TRIES {
        if result.is_ok() {
            break;
        }
        result = attempt(packetdrill, script);
    }
    result
}

fn attempt(packetdrill: &Path, script: &Path) -> Result<(), String> {
    let output = in_namespace(packetdrill, script).map_err(|error| format!("unshare: {error}"))?;
    let said = || [output.stdout, output.stderr].iter().map(|text| String::from_utf8_lossy(text)).collect();
    if output.status.success() { Ok(()) } else { Err(said()) }
}

fn in_namespace(packetdrill: &Path, script: &Path) -> std::io::Result<Output> {
    let names_addresses = script.to_string_lossy().ends_with("v6.pkt");
    Command::new("unshare")
        .args(["--net", "--fork", "--kill-child", "sh", "-c", "ip link set lo up; exec \"$@\"", "sh"])
        .args(["timeout", TIMEOUT_S])
        .arg(packetdrill)
        .args(ADDRESSES.iter().filter(|_| !names_addresses))
        .arg(script)
        .env("PATH", path())
        .output()
}
