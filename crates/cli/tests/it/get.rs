//! `firstbyte get` against servers on the kernel's TCP, and against our own.
use crate::{Server, firstbyte, run, stderr, stdout};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Stdio;

/// The kernel's end of the device that `get` makes.
const KERNEL: &str = "10.78.0.1:8080";

/// Binds the server's port. A process that another test starts holds an earlier listener of this
/// test from its fork to its exec.
fn bind_soon() -> TcpListener {
    let begun = std::time::Instant::now();
    loop {
        match TcpListener::bind(("0.0.0.0", 8080)) {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{error}");
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            bound => return bound.unwrap(),
        }
    }
}

/// Answers every request with `body` and closes the connection, as long as the test runs. Listens
/// on every address: the device of `get` does not exist yet.
fn kernel_server(body: &'static str) {
    let listener = bind_soon();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                let mut some = [0; 1024];
                match stream.read(&mut some).unwrap() {
                    0 => break,
                    len => request.extend_from_slice(&some[..len]),
                }
            }
            let reply = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(reply.as_bytes()).unwrap();
        }
    });
}

fn report(arguments: &[&str]) -> Value {
    let output = run(&[&["get", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    serde_json::from_str(stdout(&output)).unwrap()
}

fn outcomes(report: &Value) -> Vec<&str> {
    report["visits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|visit| visit["fast_open"]["outcome"].as_str().unwrap())
        .collect()
}

/// Flags of a ladder's packets, with an arrow for the direction.
fn packets(visit: &Value) -> Vec<String> {
    let rungs = visit["ladder"]["rungs"].as_array().unwrap();
    let shape = |rung: &Value| {
        let arrow = if rung["way"] == "to_server" { '>' } else { '<' };
        format!("{arrow}{} {}", rung["flags"].as_str().unwrap(), rung["len"])
    };
    rungs.iter().map(shape).collect()
}

#[test]
fn repeat_visits_to_the_kernel_send_the_request_on_the_syn() {
    testnet::in_namespace(|| {
        // Bit 0x400: every listener enables Fast Open.
        testnet::sysctl("net.ipv4.tcp_fastopen", "0x403");
        kernel_server("hello");
        let before = testnet::counters();
        let report = report(&[&format!("http://{KERNEL}/"), "-c", "4"]);
        assert_eq!(outcomes(&report), ["cookie granted", "accepted", "accepted", "accepted"]);
        assert_eq!(testnet::counters().of("TCPFastOpenPassive") - before.of("TCPFastOpenPassive"), 3);
        assert_eq!((&report["ok"], &report["connects"]), (&4.into(), &4.into()));
        for visit in report["visits"].as_array().unwrap() {
            assert_eq!(
                (&visit["status"], &visit["bytes"], &visit["retransmissions"]),
                (&200.into(), &5.into(), &0.into())
            );
            let ms = |name: &str| visit[name].as_f64().unwrap();
            assert!(ms("handshake_ms") > 0.0 && ms("handshake_ms") <= ms("first_byte_ms"), "{visit}");
            assert!(ms("first_byte_ms") <= ms("total_ms"), "{visit}");
        }
    });
}

#[test]
fn a_server_without_fast_open_and_a_user_without_it_are_told_apart() {
    testnet::in_namespace(|| {
        testnet::sysctl("net.ipv4.tcp_fastopen", "0x1");
        kernel_server("hello");
        let url = format!("http://{KERNEL}/");
        assert_eq!(outcomes(&report(&[&url])), ["no cookie"]);
        assert_eq!(outcomes(&report(&[&url, "--no-fast-open"])), ["off"]);
        assert_eq!(outcomes(&report(&[&url, "-d", "x"])), ["off"]);
        assert_eq!(outcomes(&report(&[&url, "--set", "net.ipv4.tcp_fastopen=0"])), ["disabled"]);
    });
}

#[test]
fn the_page_goes_to_stdout_and_the_report_to_stderr() {
    testnet::in_namespace(|| {
        kernel_server("hello");
        let url = "http://name.test:8080/";
        let output = run(&["get", url, "--resolve", "name.test:8080:10.78.0.1"]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(0), "hello"));
        assert!(stderr(&output).contains("http://name.test:8080/ at 10.78.0.1:8080 through firstbyte1"));
        assert!(stderr(&output).contains("   1    200 "));
        let output = run(&["get", url, "--resolve", "name.test:8080:10.78.0.1", "-i"]);
        assert_eq!(stdout(&output), "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello");
    });
}

#[test]
fn a_file_holds_the_page_and_nothing_of_what_it_held() {
    testnet::in_namespace(|| {
        let file = std::env::temp_dir().join(format!("firstbyte-page-{}", std::process::id()));
        std::fs::write(&file, "longer than the page").unwrap();
        let get = || run(&["get", &format!("http://{KERNEL}/"), "-o", file.to_str().unwrap()]);
        assert_eq!(get().status.code(), Some(1), "nobody listens");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "longer than the page");
        kernel_server("hello");
        assert_eq!(get().status.code(), Some(0));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "hello");
        std::fs::remove_file(file).unwrap();
    });
}

/// A capture fails if the disk is full, with an error message and exit code.
#[test]
fn a_capture_that_cannot_be_written_is_a_failure() {
    testnet::in_namespace(|| {
        kernel_server("hello");
        let output = run(&["get", "http://10.78.0.1:8080/", "--pcap", "/dev/full"]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stdout(&output).contains("hello"));
        let told = "the capture is incomplete: /dev/full: No space left on device";
        assert_eq!(stderr(&output).matches(told).count(), 1, "{}", stderr(&output));
    });
}

#[test]
fn an_unreachable_peer_is_explained() {
    testnet::in_namespace(|| {
        let refused = run(&["get", &format!("http://{KERNEL}/")]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(
            stderr(&refused)
                .contains("10.78.0.1:8080 refused the connection: nothing listens on port 8080 there")
        );
        let silent = run(&["get", "http://10.78.0.99/", "--timeout", "300ms"]);
        assert_eq!(silent.status.code(), Some(1));
        assert!(stderr(&silent).contains(
            "no reply from 10.78.0.99:80 within 300ms (--timeout); check that it is up and that there is a"
        ));
        let other_family = run(&["get", "http://[fd78::1]/", "--tun", "firstbyte1"]);
        assert_eq!(other_family.status.code(), Some(1));
        assert!(
            stderr(&other_family).contains("add an address, such as --address fd78::2/64"),
            "{}",
            stderr(&other_family)
        );
        let own = run(&["get", "http://10.78.0.2/"]);
        assert_eq!(own.status.code(), Some(1));
        assert!(stderr(&own).contains("10.78.0.2: it is this stack's own address"), "{}", stderr(&own));
        let listening = TcpListener::bind(("0.0.0.0", 8080)).unwrap();
        std::thread::spawn(move || drop(listening.accept()));
        let cut = run(&["get", &format!("http://{KERNEL}/")]);
        assert_eq!(cut.status.code(), Some(1), "{}", stdout(&cut));
    });
}

/// A server or middlebox without window scaling is reported, with the rate that it allows.
#[test]
fn a_window_that_is_not_scaled_is_told() {
    testnet::in_namespace(|| {
        kernel_server("hello");
        let url = format!("http://{KERNEL}/");
        let scaled = run(&["get", &url]);
        assert!(!stdout(&scaled).contains("window scaling"), "{}", stdout(&scaled));
        assert_eq!(report(&[&url])["visits"][0]["window_scaling"], true);
        testnet::sysctl("net.ipv4.tcp_window_scaling", "0");
        let told = run(&["get", &url]);
        let told = stderr(&told).to_owned() + stdout(&told);
        assert!(told.contains("No window scaling: 10.78.0.1:8080 did not answer the option"), "{told}");
        assert!(told.contains("bit/s at this round trip of "), "{told}");
        assert_eq!(report(&[&url])["visits"][0]["window_scaling"], false);
    });
}

/// Both ends are Firstbyte, with the kernel between them: the packets of every kind of visit.
#[test]
fn both_ends_ours_need_three_or_four_packets() {
    testnet::in_namespace(|| {
        testnet::sysctl("net.ipv4.ip_forward", "1");
        let server = Server::start(&[]);
        let url = "http://10.77.0.2/";
        let four = report(&[url, "-c", "2", "--explain"]);
        assert_eq!(outcomes(&four), ["cookie granted", "accepted"]);
        let shape = packets(&four["visits"][1]);
        let flags: Vec<&str> = shape.iter().map(|packet| packet.rsplit_once(' ').unwrap().0).collect();
        assert_eq!(flags, [">SYN", "<SYN FIN PSH ACK", ">FIN ACK", "<ACK"], "{shape:?}");

        let three = report(&[url, "-c", "2", "--explain", "--syn-fin"]);
        let shape = packets(&three["visits"][1]);
        let flags: Vec<&str> = shape.iter().map(|packet| packet.rsplit_once(' ').unwrap().0).collect();
        assert_eq!(flags, [">SYN FIN", "<SYN FIN PSH ACK", ">ACK"], "{shape:?}");

        let plain = report(&[url, "--no-fast-open", "--explain"]);
        assert!(packets(&plain["visits"][0]).len() <= 8, "{:?}", packets(&plain["visits"][0]));

        let early = report(&[url, "-c", "2", "-d", "x", "--force-early", "--backend", "stack"]);
        let statuses: Vec<_> =
            early["visits"].as_array().unwrap().iter().map(|visit| &visit["status"]).collect();
        assert_eq!(statuses, [200, 425, 200]);
        assert_eq!(outcomes(&early), ["cookie granted", "accepted", "off"]);
        assert_eq!((&early["connects"], &early["ok"]), (&2.into(), &2.into()));
        assert_eq!(server.stop().0, Some(0));
    });
}

/// An earlier hop marked the request as early data; it was not on our SYN, so repeating it gains
/// nothing.
#[test]
fn a_too_early_that_is_not_repeated_is_shown() {
    testnet::in_namespace(|| {
        testnet::sysctl("net.ipv4.ip_forward", "1");
        let server = Server::start(&[]);
        let output = run(&["get", "http://10.77.0.2/", "-X", "PUT", "-d", "x", "-H", "Early-Data: 1"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stdout(&output).contains("Send it again after the handshake"), "{}", stderr(&output));
        assert_eq!(server.stop().0, Some(0));
    });
}

/// The peer's kernel drops such a SYN, not the path.
#[test]
fn a_fin_on_the_syn_is_what_linux_drops() {
    testnet::in_namespace(|| {
        testnet::sysctl("net.ipv4.tcp_fastopen", "0x403");
        kernel_server("hello");
        let all = report(&[&format!("http://{KERNEL}/"), "-c", "3", "--syn-fin"]);
        assert_eq!(outcomes(&all), ["cookie granted", "lost", "accepted"]);
        let meaning = all["visits"][1]["fast_open"]["meaning"].as_str().unwrap();
        assert!(meaning.contains("SYN with data and FIN") && meaning.contains("drop such SYNs"), "{meaning}");
    });
}

/// With `--cache` the next process has the cookie: its first visit is a repeat visit.
#[test]
fn a_restart_starts_warm() {
    testnet::in_namespace(|| {
        testnet::sysctl("net.ipv4.tcp_fastopen", "0x403");
        kernel_server("hello");
        let file = std::env::temp_dir().join(format!("firstbyte-warm-{}", std::process::id()));
        let url = format!("http://{KERNEL}/");
        let arguments = [url.as_str(), "--cache", file.to_str().unwrap()];
        assert_eq!(outcomes(&report(&arguments)), ["cookie granted"]);
        assert_eq!(outcomes(&report(&arguments)), ["accepted"]);
        let shown = run(&["metrics", "show", file.to_str().unwrap()]);
        assert!(crate::stdout(&shown).contains(" fo_cookie "), "{}", crate::stdout(&shown));
        std::fs::remove_file(file).unwrap();
    });
}

/// With `--trace`, stderr shows each connection's states and segments, with times from zero.
#[test]
fn a_trace_tells_what_happens_inside() {
    testnet::in_namespace(|| {
        kernel_server("hello");
        let output = run(&["get", &format!("http://{KERNEL}/"), "--trace"]);
        let told = stderr(&output);
        assert!(told.contains("0.000000 10.78.0.2:") && told.contains(" state SynSent"), "{told}");
        for part in [" state SynSent -> Established", " out [S] seq ", " in  [S.] seq ", " srtt "] {
            assert!(told.contains(part), "{part}: {told}");
        }
    });
}

/// An interrupted visit keeps its path metrics: the next one starts with the cookie.
#[test]
fn an_interrupted_visit_leaves_its_cookie() {
    testnet::in_namespace(|| {
        testnet::sysctl("net.ipv4.tcp_fastopen", "0x403");
        let cache = std::env::temp_dir().join(format!("firstbyte-interrupted-{}", std::process::id()));
        let path = cache.to_str().unwrap();
        let listener = TcpListener::bind(("0.0.0.0", 8080)).unwrap();
        let url = format!("http://{KERNEL}/");
        let mut visitor =
            firstbyte().args(["get", &url, "--cache", path]).stderr(Stdio::piped()).spawn().unwrap();
        // The client waits for a reply.
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
        let pid = rustix::process::Pid::from_child(&visitor);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert_eq!(crate::wait(&mut visitor), Some(1));
        let kept = std::fs::read_to_string(&cache).unwrap();
        assert!(kept.contains(" cookie ") && kept.contains(" rtt "), "{kept}");
        drop((stream, listener));
        kernel_server("hello");
        assert_eq!(outcomes(&report(&[&url, "--cache", path])), ["accepted"]);
        std::fs::remove_file(cache).unwrap();
    });
}

/// Fails at once: the stack's own loopback is not this machine's.
#[test]
fn loopback_is_refused_with_the_address_that_works() {
    for (url, way) in
        [("http://127.0.0.1/", "http://10.78.0.1:80/"), ("http://[::1]:8080/x", "http://10.78.0.1:8080/")]
    {
        let output = run(&["get", "--backend", "stack", url]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(way), "{}", stderr(&output));
    }
}
