//! `firstbyte doctor` on the command line.
use crate::{Server, firstbyte, run, stderr, stdout};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A file with this content, removed when dropped.
struct File(std::path::PathBuf);

impl File {
    fn new(name: &str, text: &str) -> File {
        let path = std::env::temp_dir().join(format!("doctor-{name}-{}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        File(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A host without window scaling.
fn record(name: &str) -> File {
    let sample = r#"{"kernel":"6.18.0","settings":{"net.ipv4.tcp_window_scaling":"0"}}"#;
    File::new(name, &format!(r#"{{"version":2,"before":null,"now":{sample}}}"#))
}

#[test]
fn wrong_arguments_are_no_verdict() {
    for (arguments, part) in [
        (&["doctor", "--interval", "5"][..], "expected a time with a unit"),
        (&["doctor", "--nosuch"], "unexpected argument '--nosuch'"),
        (&["doctor", "--budget", "0"], "expected a percentage"),
        (&["doctor", "--listen", "127.0.0.1:99999"], "expected an address and a port up to 65535"),
    ] {
        let output = run(arguments);
        assert_eq!((output.status.code(), stdout(&output)), (Some(3), ""), "{arguments:?}");
        assert!(stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn a_record_is_judged_and_its_severity_is_the_exit_code() {
    let record = record("judged");
    let output = run(&["doctor", record.path()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stdout(&output).starts_with("critical: window scaling off (namespace, WIN-01)\n"),
        "{}",
        stdout(&output)
    );
    assert!(stdout(&output).contains("sysctl -w net.ipv4.tcp_window_scaling=\"1\""));
    let metrics = run(&["doctor", record.path(), "--prometheus"]);
    let line = "firstbyte_doctor_finding{rule=\"WIN-01\",scope=\"namespace\",severity=\"critical\"} 3\n";
    assert!(stdout(&metrics).contains(line) && stdout(&metrics).ends_with("# EOF\n"), "{}", stdout(&metrics));
}

#[test]
fn a_page_is_written_and_its_verdict_said() {
    let (record, page) = (record("page"), File::new("page.html", ""));
    let output = run(&["doctor", record.path(), "--html", page.path()]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stdout(&output).starts_with("critical: window scaling off (namespace, WIN-01)\n"),
        "{}",
        stdout(&output)
    );
    let html = std::fs::read_to_string(page.path()).unwrap();
    assert!(
        html.starts_with("<!doctype html>") && html.contains("WIN-01") && html.contains("Listeners"),
        "{html}"
    );
    let output = run(&["doctor", record.path(), "--html", "/nonexistent/page.html"]);
    assert_eq!(output.status.code(), Some(3));
    let wrong = File::new("wrong.jsonl", "{}");
    let output = run(&["doctor", wrong.path(), "--html", page.path()]);
    assert!(stderr(&output).contains("not a record of `doctor --record`"), "{}", stderr(&output));
}

/// Measures a report without its interval: two samples and every rule. The best of ten excludes
/// other work of the machine.
#[test]
fn a_report_of_an_idle_host_is_quick() {
    testnet::in_namespace(|| {
        let look = || {
            let begun = std::time::Instant::now();
            let (before, now) = (doctor::sources::here(), doctor::sources::here());
            let report = doctor::Report::of(&doctor::Window::between(&before, &now));
            (begun.elapsed(), report)
        };
        let (time, report) = (0..10).map(|_| look()).min_by_key(|(time, _)| *time).unwrap();
        assert!(time < std::time::Duration::from_millis(150), "{time:?}");
        assert!(report.exit_code() == 0, "{:?}", report.findings);
    });
}

#[test]
fn a_policy_silences_with_its_reason_and_is_checked() {
    let record = record("policy");
    let policy = File::new("policy.toml", "[WIN-01]\nsilent = 'a museum'\n");
    let output = run(&["doctor", record.path(), "--policy", policy.path()]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("silenced: WIN-01 (1 finding): a museum"), "{}", stdout(&output));
    let wrong = File::new("wrong.toml", "[WIN-99]\nsilent = 'x'\n");
    let output = run(&["doctor", record.path(), "--policy", wrong.path()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("[WIN-99]: unknown rule"), "{}", stderr(&output));
}

#[test]
fn a_watch_says_what_comes_and_ends_after_its_windows() {
    testnet::in_namespace(|| {
        testnet::sysctl("net.ipv4.tcp_sack", "0");
        let output = run(&["doctor", "--watch", "--times", "2", "--interval", "50ms"]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let lines: Vec<&str> = stdout(&output).lines().filter(|line| line.contains("WIN-12")).collect();
        assert_eq!(lines.len(), 1, "{}", stdout(&output));
        assert!(lines[0].contains(" + warning WIN-12  SACK or timestamps off"));
        let output = run(&["doctor", "--watch", "--times", "2", "--interval", "50ms", "--json"]);
        assert_eq!(stdout(&output).lines().count(), 2);
    });
}

#[test]
fn a_watch_ends_when_nobody_reads_on() {
    let mut watch = firstbyte();
    watch.args(["doctor", "--watch", "--interval", "50ms"]).stdout(Stdio::piped());
    let mut watch = watch.spawn().unwrap();
    drop(watch.stdout.take());
    assert_ne!(crate::wait(&mut watch), None);
}

#[test]
fn a_watch_masks_addresses_in_every_window() {
    testnet::in_namespace(|| {
        let output = testnet::command("sh")
            .args(["-c", "ip link set lo up; ip addr add 10.9.9.9/32 dev lo; ip route add default via 10.9.9.9 dev lo src 10.9.9.9 initcwnd 5"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let watch = ["doctor", "--watch", "--times", "2", "--interval", "50ms", "--json"];
        let said = run(&watch);
        assert!(stdout(&said).contains("via 10.9.9.9 dev lo src 10.9.9.9"), "{}", stdout(&said));
        let masked = run(&[&watch[..], &["--mask"]].concat());
        assert!(!stdout(&masked).contains("10.9.9.9"), "{}", stdout(&masked));
        for line in stdout(&masked).lines() {
            assert!(line.contains("via 198.18.0.1 dev lo src 198.18.0.1"), "{line}");
        }
    });
}

/// A running `doctor --listen`; killed when dropped.
pub(crate) struct Exporter {
    child: Child,
    address: String,
}

impl Exporter {
    /// Starts `command`, and waits until it listens.
    pub(crate) fn start(mut command: Command) -> Exporter {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("metrics at http://").unwrap();
        let address = address.strip_suffix("/metrics").unwrap().to_owned();
        Exporter { child, address }
    }

    /// Starts the exporter in a namespace with a fault, so that a rule fires.
    pub(crate) fn start_with_a_fault() -> Exporter {
        testnet::sysctl("net.ipv4.tcp_sack", "0");
        let mut command = firstbyte();
        command.args(["doctor", "--listen", "127.0.0.1:0", "--interval", "100ms"]);
        Exporter::start(command)
    }

    /// Returns the whole reply to a request for `path`.
    pub(crate) fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn metrics_are_served() {
    testnet::in_namespace(|| {
        let exporter = Exporter::start_with_a_fault();
        let answer = exporter.get("/metrics");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("# EOF\n"), "{answer}");
        assert!(
            answer.contains("application/openmetrics-text") && answer.contains("rule=\"WIN-12\""),
            "{answer}"
        );
        assert!(exporter.get("/").starts_with("HTTP/1.1 404"));
    });
}

/// Clock ticks of processor time used by a process (proc_pid_stat(5): utime and stime).
fn ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

#[test]
fn an_endpoint_without_descriptors_waits_and_takes_no_processor() {
    let mut command = testnet::command("sh");
    command
        .args(["-c", "ulimit -n 24; exec \"$0\" doctor --listen 127.0.0.1:0 --interval 60s"])
        .arg(env!("CARGO_BIN_EXE_firstbyte"));
    let exporter = Exporter::start(command);
    let _idle: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(&exporter.address).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(200));
    let before = ticks(exporter.child.id());
    std::thread::sleep(Duration::from_secs(1));
    let taken = ticks(exporter.child.id()) - before;
    // A hundred ticks per second are a whole core.
    assert!(taken < 20, "{taken} ticks");
}

/// Flags as users type them.
#[test]
fn ss_takes_the_flags_of_ss_and_names_processes() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let output = run(&["ss", "-tlnp", "--port", &port]);
    let mine = format!("pid={},fd=", std::process::id());
    assert!(stdout(&output).starts_with("State ") && stdout(&output).contains(&mine), "{}", stdout(&output));
    let output = run(&["ss", "-tlnH", "--port", &port]);
    assert!(
        stdout(&output).starts_with("LISTEN ") && stdout(&output).lines().count() == 1,
        "{}",
        stdout(&output)
    );
}

/// Judges a running `serve` through its control socket: no finding, then a setting that its own fix
/// corrects, then a listener that drops, named by its port.
#[test]
fn a_stack_of_ours_is_judged_and_mended() {
    testnet::in_namespace(|| {
        let path = std::env::temp_dir().join(format!("firstbyte-judged-{}", std::process::id()));
        let path = path.to_str().unwrap();
        let server =
            Server::start(&["--control", path, "--echo", "7", "--backlog", "2", "--max-connections", "1"]);
        let judge = |more: &[&str]| run(&[&["doctor", "--control", path], more].concat());
        let healthy = judge(&["--since-boot"]);
        assert_eq!(healthy.status.code(), Some(0), "{}", stdout(&healthy));
        assert!(stdout(&healthy).contains("\nfirstbyte "), "{}", stdout(&healthy));

        let set = run(&["sysctl", "--control", path, "-w", "net.ipv4.tcp_window_scaling=0"]);
        assert_eq!(set.status.code(), Some(0), "{}", stderr(&set));
        let fix = format!("firstbyte sysctl --control {path} -w net.ipv4.tcp_window_scaling=\"1\"");
        let script = judge(&["--since-boot", "--fix"]);
        assert!(stdout(&script).contains(&fix), "{}", stdout(&script));
        let mended = run(&["sysctl", "--control", path, "-w", "net.ipv4.tcp_window_scaling=1"]);
        assert_eq!(mended.status.code(), Some(0), "{}", stderr(&mended));
        assert_eq!(judge(&["--since-boot"]).status.code(), Some(0));

        // The settings that rules read and fixes change.
        let listed = stdout(&run(&["sysctl", "--control", path])).to_owned();
        let here = ::doctor::RULES.iter().filter(|rule| rule.elsewhere().is_none());
        for (name, _) in here.flat_map(|rule| rule.settings) {
            assert!(listed.contains(&format!("{name} = ")), "{name}");
        }

        // One is served, one accepted, two wait: the others are dropped.
        let address = std::net::SocketAddr::from(([10, 77, 0, 2], 7));
        let clients: Vec<_> = (0..6)
            .map(|_| {
                let kind = rustix::net::SocketFlags::NONBLOCK;
                let client = rustix::net::socket_with(
                    rustix::net::AddressFamily::INET,
                    rustix::net::SocketType::STREAM,
                    kind,
                    None,
                );
                let client = client.unwrap();
                let _ = rustix::net::connect(&client, &address);
                client
            })
            .collect();
        let full = (0..100).find_map(|_| {
            let said = judge(&["--interval", "50ms"]);
            stdout(&said).contains("[port 7]").then_some(said)
        });
        let full = full.expect("the listener's port");
        assert_ne!(full.status.code(), Some(0));
        let listed = run(&["ss", "--control", path, "--explain", "-l"]);
        assert!(stdout(&listed).contains("ACC-01 (fires now)"), "{}", stdout(&listed));
        let timers = run(&["ss", "--control", path, "-o", "--state", "established", "--port", "7"]);
        assert!(stdout(&timers).contains("\t timer:(keepalive,"), "{}", stdout(&timers));
        drop(clients);
        assert_eq!(server.stop().0, Some(0));
    });
}

/// Lists devices without findings; an unknown name is rejected with the list of devices.
#[test]
fn nic_shows_devices_and_what_is_between_them_and_tcp() {
    testnet::in_namespace(|| {
        let shown = run(&["nic"]);
        assert!(stdout(&shown).starts_with("lo: up, mtu 65536, txqueuelen 1000\n"), "{}", stdout(&shown));
        assert!(stdout(&shown).contains("\nCPU 0: "), "{}", stdout(&shown));
        let json: serde_json::Value = serde_json::from_str(stdout(&run(&["nic", "lo", "--json"]))).unwrap();
        assert_eq!((&json["devices"][0]["name"], &json["devices"][0]["mtu"]), (&"lo".into(), &65536.into()));
        let none = run(&["nic", "eth9"]);
        assert!(
            stderr(&none).contains("cannot show device `eth9`: it does not exist; the devices are lo"),
            "{}",
            stderr(&none)
        );
    });
}
