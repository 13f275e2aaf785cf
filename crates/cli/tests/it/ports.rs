//! Local ports of our stack: the doctor's finding when they are nearly used up, and its fix.
use crate::{firstbyte, run, stderr, stdout};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Few of ten local ports.
const FEW: usize = 3;
const MANY: usize = 8;
/// More than ten: without the fix, the last would find no port.
const REQUESTS: usize = 14;

/// Replies to each client and waits until it closes, so that the client keeps its port for
/// TIME-WAIT. Reports when it holds the replies to number [`FEW`] and [`MANY`], and waits for a
/// word.
fn serve(listener: TcpListener, waits: Sender<usize>, word: Receiver<()>) {
    for (at, mut stream) in listener.incoming().flatten().enumerate() {
        let number = at + 1;
        let _ = stream.read(&mut [0; 2000]);
        if number == FEW || number == MANY {
            let _ = waits.send(number);
            let _ = word.recv();
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

/// Killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn ports_that_run_out_are_found_over_our_own_stack_and_the_fix_mends_it() {
    testnet::in_namespace(|| {
        let file = |kind: &str| {
            let path = std::env::temp_dir().join(format!("firstbyte-ports-{}-{kind}", std::process::id()));
            path.to_str().unwrap().to_owned()
        };
        let (path, settings, script_file) = (file("control"), file("settings"), file("script"));
        // Ports in TIME-WAIT are not reused, like on Linux for other hosts.
        std::fs::write(&settings, "net.ipv4.ip_local_port_range = 40000 40009\nnet.ipv4.tcp_tw_reuse = 2\n")
            .unwrap();
        let listener = TcpListener::bind("0.0.0.0:80").unwrap();
        let ((waits, waiting), (word, words)) = (channel(), channel());
        std::thread::spawn(move || serve(listener, waits, words));
        let mut get = firstbyte();
        get.args(["get", "-c", &REQUESTS.to_string(), "--no-fast-open", "--timeout", "60s"]);
        get.args(["--control", &path, "--settings", &settings, "http://10.78.0.1/"]);
        let mut get = Running(get.stdout(Stdio::null()).spawn().unwrap());
        let ids = || {
            let output = run(&["doctor", "--control", &path, "--since-boot", "--json"]);
            let report: serde_json::Value = serde_json::from_str(stdout(&output))
                .unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
            let findings = report["findings"].as_array().unwrap();
            let ids = findings.iter().map(|finding| finding["id"].as_str().unwrap().to_owned());
            ids.filter(|id| id.starts_with("ST-")).collect::<Vec<_>>()
        };
        let limit = Duration::from_secs(60);

        assert_eq!(waiting.recv_timeout(limit), Ok(FEW));
        assert_eq!(ids(), [""; 0], "three of ten are in use");
        word.send(()).unwrap();

        assert_eq!(waiting.recv_timeout(limit), Ok(MANY));
        assert_eq!(ids(), ["ST-07", "ST-08"]);
        let said = run(&["doctor", "--control", &path, "--since-boot"]);
        assert!(stdout(&said).contains("10.78.0.1:80 from 10.78.0.2"), "{}", stdout(&said));
        assert!(stdout(&said).contains("8 of 10 ports = 80 % > 70 %"), "{}", stdout(&said));
        assert!(stdout(&said).contains("7 of 10 ports = 70 % > 50 %"), "{}", stdout(&said));

        let script = run(&["doctor", "--control", &path, "--since-boot", "--fix"]);
        std::fs::write(&script_file, &script.stdout).unwrap();
        let folder = std::path::Path::new(env!("CARGO_BIN_EXE_firstbyte")).parent().unwrap();
        let mut shell = testnet::command("sh");
        let fixed = shell.arg(&script_file).env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
        let fixed = fixed.output().unwrap();
        assert!(fixed.status.success(), "{}{}", stdout(&script), stderr(&fixed));
        assert_eq!(ids(), [""; 0], "{}", stdout(&script));

        word.send(()).unwrap();
        let begun = Instant::now();
        let status = loop {
            match get.0.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(begun.elapsed() < limit, "it does not end"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(status.code(), Some(0), "more connections than there were ports");
        [settings, script_file].iter().for_each(|file| std::fs::remove_file(file).unwrap());
    });
}
