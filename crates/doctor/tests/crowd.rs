//! A host with 200,000 sockets: one sample takes less than 1.5 s and 200 MB, and watching it at most a twentieth of a core:
//! `cargo test --profile simulate -p firstbyte-doctor --test crowd -- --nocapture`.
//!
//! Between two looks at all of them it has to wait for some twenty seconds. So an ordinary run watches a sixth of them, and one with
//! FIRSTBYTE_WINDOWS all, over so many windows.
#![expect(clippy::unwrap_used, reason = "tests")]
extern crate firstbyte_doctor as doctor;

use doctor::{Pace, Report, Window, sources};
use rustix::time::{ClockId, clock_gettime};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A process may have some 20,000 descriptors on many machines, so that several make the crowd. The servers' ends wait to be accepted,
/// which takes none.
const PROCESSES: usize = 6;
const CONNECTIONS: usize = 17_000;
const MEMBER: &str = "
import socket, sys
address, times = (sys.argv[1], 900), int(sys.argv[2])
listener = socket.create_server(address, backlog=65535)
clients = [socket.create_connection(address) for _ in range(times)]
print('ready', flush=True)
sys.stdin.read()
";

/// A process with its connections, ended with this value.
struct Member(Child);

impl Member {
    fn start(number: usize) -> Member {
        let arguments = [MEMBER.to_owned(), format!("127.0.0.{number}"), CONNECTIONS.to_string()];
        let mut command = testnet::command("python3");
        command.arg("-c").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        Member(command.spawn().unwrap())
    }

    fn wait(&mut self) {
        let mut line = String::new();
        BufReader::new(self.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_crowd_of_sockets_is_read_and_judged_in_time_and_memory() {
    if !testnet::has_program("python3") {
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs python3");
        return;
    }
    testnet::in_namespace(|| {
        testnet::sysctl("net.ipv4.ip_local_port_range", "1024 65535");
        testnet::sysctl("net.core.somaxconn", "65535");
        let windows = std::env::var("FIRSTBYTE_WINDOWS").ok().and_then(|number| number.parse().ok());
        let mut first = Member::start(1);
        first.wait();
        if windows.is_none() {
            watched(WINDOWS);
        }
        let mut others: Vec<Member> = (2..=PROCESSES).map(Member::start).collect();
        others.iter_mut().for_each(Member::wait);
        let before = sources::here();
        // The largest size of the process is counted anew from here.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let at_rest = size("VmRSS");
        let begun = processor_time();
        let now = sources::here();
        let sample = processor_time() - begun;
        let grown = size("VmHWM") - at_rest;
        let begun = processor_time();
        let report = Report::of(&Window::between(&before, &now));
        let judged = processor_time() - begun;
        let count = now.sockets.len();
        println!("{count} sockets: a sample in {sample:?} and {grown} kB, judged in {judged:?}");
        assert_eq!(count, PROCESSES * (2 * CONNECTIONS + 1));
        assert!(report.worst() < Some(doctor::Severity::Critical), "{:#?}", report.findings);
        assert!(grown < 200_000, "{grown} kB for one sample");
        assert!(sample.as_millis() < 1500, "{sample:?} for one sample");
        drop((report, before, now));
        if let Some(windows) = windows {
            watched(windows);
        }
    });
}

/// Percent of a core, and looks that are asked for so often that they would take more.
const BUDGET: f64 = 5.0;
const INTERVAL: Duration = Duration::from_secs(1);
/// As many in an ordinary run.
const WINDOWS: usize = 3;

/// As `--watch` does it.
fn watched(windows: usize) {
    let mut pace = Pace::new(INTERVAL, BUDGET);
    let mut before = sources::here();
    pace.rest();
    // The first pause goes by such a look as the others do, of two samples: over so few windows it would tell.
    let now = sources::here();
    let _ = Report::of(&Window::between(&before, &now)).text();
    before = now;
    let mut pause = pace.rest();
    let (begun, used) = (Instant::now(), process_time());
    for _ in 0..windows {
        std::thread::sleep(pause);
        let now = sources::here();
        let mut report = Report::of(&Window::between(&before, &now));
        report.slowed = pace.slowed();
        assert!(report.text().contains("--budget is 5 %"), "{}", report.text());
        before = now;
        pause = pace.rest();
    }
    let (wall, used) = (begun.elapsed(), process_time() - used);
    let share = used.as_secs_f64() / wall.as_secs_f64() * 100.0;
    println!("watched: {windows} windows in {wall:.1?}, {used:.2?} of a processor: {share:.1} % of a core");
    // A look may take somewhat longer than the one before, by which the pause was chosen.
    assert!(share < 1.2 * BUDGET, "{share} %");
}

/// What this thread has taken of a processor: whatever else the machine does.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

/// What the process has.
fn process_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap()
}

/// A size of this process, kilobytes.
fn size(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
