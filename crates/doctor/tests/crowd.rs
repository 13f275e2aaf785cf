//! A host with 200,000 sockets: one sample takes less than 1.5 s and 200 MB, and watching it takes
//! at most 5 % of a core: `cargo test --profile simulate -p firstbyte-doctor --test crowd --
//! --nocapture`.
//!
//! Between two samples of all sockets the watch waits about twenty seconds. An ordinary run
//! therefore watches a sixth of them. FIRSTBYTE_WINDOWS watches all, for that many windows.
#![expect(clippy::unwrap_used, reason = "tests")]
extern crate firstbyte_doctor as doctor;

use doctor::{Pace, Report, Window, sources};
use rustix::time::{ClockId, clock_gettime};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Number of processes. On many machines a process may have only 20,000 descriptors. The servers'
/// ends stay in the accept queue, which takes no descriptor.
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

/// A process with its connections. It ends when the value is dropped.
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
        // Resets the peak size of the process.
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

/// Budget in percent of a core. The requested interval would exceed it.
const BUDGET: f64 = 5.0;
const INTERVAL: Duration = Duration::from_secs(1);
/// Windows of an ordinary run.
const WINDOWS: usize = 3;

/// Watches like `--watch`.
fn watched(windows: usize) {
    let mut pace = Pace::new(INTERVAL, BUDGET);
    let mut before = sources::here();
    pace.rest();
    // The first pause follows a sample like the others. Over so few windows a cheaper one would
    // matter.
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
    // A sample may cost a little more than the one before it, which set the pause.
    assert!(share < 1.2 * BUDGET, "{share} %");
}

/// Returns the processor time of this thread, which the load of the machine does not change.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

/// Returns the processor time of the process.
fn process_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap()
}

/// Returns a size of this process in kilobytes.
fn size(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
