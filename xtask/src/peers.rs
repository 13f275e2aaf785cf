//! `cargo xtask peers`: CPU time of this stack beside smoltcp, gVisor's netstack and lwIP.
//!
//! Each stack runs in a process of its own, with both ends of its connections and its own in-memory
//! link. A round runs each of them once, so a busy machine slows all alike. The programs of the
//! peers are in `peers/`, outside the workspace.

use crate::{cargo, skipped};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const USAGE: &str = "cargo xtask peers [--rounds N]";
/// Rounds without `--rounds`.
const ROUNDS: usize = 9;
/// No round starts later than this.
const LAST_START: Duration = Duration::from_secs(240);
/// Longest time of one process, seconds.
const TIMEOUT_S: &str = "45";
/// The folder of the built programs.
const BUILT: &str = "target/peers";
/// Seconds of a stream.
const SECONDS: &str = "1";
/// Connections in flight, bytes of a request and of a response.
const SHAPE: [&str; 3] = ["16", "100", "500"];

/// A stack that takes part.
struct Peer {
    name: String,
    bulk: Vec<String>,
    exchange: Vec<String>,
}

/// A row of the table.
struct Row {
    title: &'static str,
    unit: &'static str,
    /// Converts the figure of a program into the unit.
    rate: fn(f64) -> f64,
    key: &'static str,
}

const ROWS: [Row; 2] = [
    Row { title: "bulk data", unit: "MB", rate: |seconds| 1e3 / seconds, key: "cpu_s_per_gb" },
    Row { title: "exchanges", unit: "thousand", rate: |micros| 1e3 / micros, key: "cpu_us_per_xchg" },
];
const PACKETS: &str = "pkts_per_xchg";

/// Runs `cargo xtask peers` with its arguments.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let rounds = match arguments {
        [] => ROUNDS,
        ["--rounds", number] => number.parse().ok().filter(|rounds| *rounds > 0).ok_or_else(|| {
            format!("cannot run peers: `--rounds {number}`: not a whole number from 1 on; usage: {USAGE}")
        })?,
        ["--rounds"] => return Err(format!("cannot run peers: --rounds needs a number; usage: {USAGE}")),
        [other, ..] => return Err(crate::unexpected("peers", other, USAGE)),
    };
    std::fs::create_dir_all(BUILT).map_err(|error| format!("cannot make {BUILT}: {error}"))?;
    let mut peers = vec![ours()?, smoltcp()?];
    peers.extend(taken("gVisor netstack", netstack()));
    peers.extend(taken("lwIP", lwip()));
    println!("\nload average at the start: {}", load());
    let begun = Instant::now();
    let mut figures: Vec<Figures> = peers.iter().map(|_| Figures::default()).collect();
    let mut played = 0;
    while played < rounds && begun.elapsed() < LAST_START {
        for (peer, figures) in peers.iter().zip(&mut figures) {
            figures.add(&started(&peer.bulk)?);
            figures.add(&started(&peer.exchange)?);
        }
        played += 1;
    }
    println!("load average at the end: {}, {} s, {played} rounds\n", load(), begun.elapsed().as_secs());
    print!("{}", table(&peers, &figures));
    Ok(())
}

fn taken(name: &str, built: Result<Peer, String>) -> Option<Peer> {
    built.inspect_err(|why| skipped::say(&format!("{name}: {why}"))).ok()
}

/// The engine under the benchmark's own driver.
fn ours() -> Result<Peer, String> {
    let build = [
        "build",
        "--profile",
        "dist",
        "--locked",
        "--package",
        "firstbyte-bench",
        "--bin",
        "firstbyte-bench",
    ];
    cargo(&build, &[])?;
    let program = "target/dist/firstbyte-bench";
    let [at_once, request, response] = SHAPE;
    let bulk = [program, "bulk-mem", "--mtu", "1500", "--secs", SECONDS];
    let exchange = [program, "xchg-mem", "--n", "200000", "--conc", at_once, "--req", request];
    Ok(Peer {
        name: "Firstbyte".to_owned(),
        bulk: bulk.map(str::to_owned).to_vec(),
        exchange: [&exchange[..], &["--resp", response]].concat().into_iter().map(str::to_owned).collect(),
    })
}

fn smoltcp() -> Result<Peer, String> {
    let build = ["build", "--release", "--locked", "--manifest-path", "peers/smoltcp/Cargo.toml"];
    cargo(&[&build[..], &["--target-dir", BUILT]].concat(), &[])?;
    let version = locked_version(&read("peers/smoltcp/Cargo.lock")?, "smoltcp");
    Ok(peer(&format!("smoltcp {version}"), "release/peer-smoltcp", "200000"))
}

fn netstack() -> Result<Peer, String> {
    let program = std::env::current_dir().unwrap_or_default().join(BUILT).join("peer-netstack");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&program).arg(".").current_dir("peers/netstack");
    built("go", &mut build)?;
    let modules = read("peers/netstack/go.mod")?;
    let version = modules.split("gvisor.dev/gvisor v0.0.0-").nth(1).and_then(|rest| rest.get(..8));
    Ok(peer(&format!("gVisor {}", version.unwrap_or("?")), "peer-netstack", "8000"))
}

fn lwip() -> Result<Peer, String> {
    let header = Path::new("/usr/include/lwip/lwip/init.h");
    let Ok(text) = std::fs::read_to_string(header) else {
        return Err("its headers are missing; install the Debian package liblwip-dev".to_owned());
    };
    let program = Path::new(BUILT).join("peer-lwip");
    let mut build = Command::new("cc");
    build.args(["-O2", "-Wall", "-Wextra", "-I/usr/include/lwip", "peers/lwip/peer.c", "-o"]);
    built("cc", build.arg(program).args(["-llwip", "-lpthread"]))?;
    let part = |name: &str| {
        let line = text.lines().find(|line| line.contains(&format!("define LWIP_VERSION_{name} ")));
        line.and_then(|line| line.split_whitespace().nth(2)).unwrap_or("?").to_owned()
    };
    let version = ["MAJOR", "MINOR", "REVISION"].map(part).join(".");
    Ok(peer(&format!("lwIP {version}"), "peer-lwip", "100000"))
}

/// A program of `peers/`: all of them have the same arguments.
fn peer(name: &str, program: &str, count: &str) -> Peer {
    let program = format!("{BUILT}/{program}");
    let [at_once, request, response] = SHAPE;
    let exchange = [&program, "exchange", count, at_once, request, response];
    Peer {
        name: name.to_owned(),
        bulk: [&program, "bulk", SECONDS].map(str::to_owned).to_vec(),
        exchange: exchange.map(str::to_owned).to_vec(),
    }
}

fn built(program: &str, command: &mut Command) -> Result<(), String> {
    println!("\n=== {command:?}");
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("its program does not build ({status})")),
        Err(error) => Err(format!("cannot run {program}: {error}")),
    }
}

/// Runs a program once. One processor suffices: Go would otherwise spend time to use more of them.
fn started(words: &[String]) -> Result<Value, String> {
    let mut command = Command::new("timeout");
    let output = command.arg(TIMEOUT_S).args(words).env("GOMAXPROCS", "1").stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{}` failed ({})", words.join(" "), output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("`{}`: {error}", words.join(" ")))
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(PathBuf::from(path)).map_err(|error| format!("cannot read {path}: {error}"))
}

/// Returns the version of a package in a `Cargo.lock`.
fn locked_version(lock: &str, package: &str) -> String {
    let entry = lock.split(&format!("name = \"{package}\"\nversion = \"")).nth(1);
    entry.and_then(|rest| rest.split('"').next()).unwrap_or("?").to_owned()
}

/// The figures of a stack over all rounds, sorted.
#[derive(Default)]
struct Figures {
    rows: [Vec<f64>; ROWS.len()],
    packets: Option<f64>,
}

impl Figures {
    /// Adds what a program printed: a figure at the top, or in `m` as the benchmark has it.
    fn add(&mut self, line: &Value) {
        let figures = line.get("m").unwrap_or(line);
        for (row, list) in ROWS.iter().zip(&mut self.rows) {
            list.extend(figures[row.key].as_f64().map(row.rate));
            list.sort_by(f64::total_cmp);
        }
        self.packets = figures[PACKETS].as_f64().or(self.packets);
    }

    fn median(&self, row: usize) -> f64 {
        let list = &self.rows[row];
        let (low, high) = ((list.len().max(1) - 1) / 2, list.len() / 2);
        match (list.get(low), list.get(high)) {
            (Some(low), Some(high)) => (low + high) / 2.0,
            _ => f64::NAN,
        }
    }
}

/// Formats the figures as a Markdown table.
fn table(peers: &[Peer], figures: &[Figures]) -> String {
    let line = |title: &str, cell: &dyn Fn(usize) -> String| {
        let cells: Vec<String> = (0..peers.len()).map(cell).collect();
        format!("| {title} | {} |\n", cells.join(" | "))
    };
    let mut text = line("per second of CPU time", &|peer| peers[peer].name.clone());
    text += &format!("|---|{}\n", "---|".repeat(peers.len()));
    for (row, Row { title, unit, .. }) in ROWS.iter().enumerate() {
        text += &line(&format!("{title}, {unit}"), &|peer| {
            let list = &figures[peer].rows[row];
            let [lowest, highest] = [list.first(), list.last()].map(|end| end.copied().unwrap_or(f64::NAN));
            format!("{:.0} ({lowest:.0} to {highest:.0})", figures[peer].median(row))
        });
        text += &line(&format!("{title}, Firstbyte = 1"), &|peer| {
            format!("{:.2}", figures[peer].median(row) / figures[0].median(row))
        });
    }
    text + &line("packets per exchange", &|peer| {
        figures[peer].packets.map_or("–".to_owned(), |packets| format!("{packets:.1}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(lines: &[&str]) -> Figures {
        let mut figures = Figures::default();
        lines.iter().for_each(|line| figures.add(&serde_json::from_str(line).expect("JSON")));
        figures
    }

    #[test]
    fn the_table_has_medians_and_their_ratios() {
        let ours = figures(&[
            r#"{"m":{"cpu_s_per_gb":0.1}}"#,
            r#"{"m":{"cpu_us_per_xchg":2.0,"pkts_per_xchg":7}}"#,
            r#"{"m":{"cpu_s_per_gb":0.2}}"#,
            r#"{"m":{"cpu_s_per_gb":0.5}}"#,
        ]);
        let theirs = figures(&[r#"{"cpu_s_per_gb":1}"#, r#"{"cpu_us_per_xchg":1.0}"#]);
        let peers = ["Firstbyte", "other 1"].map(|name| peer(name, name, "1"));
        assert_eq!(
            table(&peers, &[ours, theirs]),
            "| per second of CPU time | Firstbyte | other 1 |\n\
             |---|---|---|\n\
             | bulk data, MB | 5000 (2000 to 10000) | 1000 (1000 to 1000) |\n\
             | bulk data, Firstbyte = 1 | 1.00 | 0.20 |\n\
             | exchanges, thousand | 500 (500 to 500) | 1000 (1000 to 1000) |\n\
             | exchanges, Firstbyte = 1 | 1.00 | 2.00 |\n\
             | packets per exchange | 7.0 | – |\n"
        );
    }

    #[test]
    fn the_version_of_a_locked_package_is_found() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.2.3\"\nsource = \"x\"\n";
        assert_eq!((locked_version(lock, "a").as_str(), locked_version(lock, "b").as_str()), ("1.2.3", "?"));
    }
}
