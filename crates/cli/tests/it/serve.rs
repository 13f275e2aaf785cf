//! `firstbyte serve` with the kernel's TCP, and Debian's curl, as its clients.
use crate::{Server, firstbyte, run, skipped_without, stderr};
use firstbyte::device::tun::Tun;
use std::io::{BufRead, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};
use std::time::Duration;

fn curl(arguments: &[&str]) -> Output {
    let mut curl = testnet::command("curl");
    curl.args(["--silent", "--show-error", "--max-time", "20"]).args(arguments);
    curl.output().expect("curl starts")
}

fn page(arguments: &[&str]) -> String {
    let output = curl(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).expect("text")
}

/// The first visit requests a cookie; from the second on, request and reply are on SYN and SYN-ACK.
#[test]
fn curl_is_answered_on_the_syn_ack() {
    if skipped_without("curl") {
        return;
    }
    testnet::in_namespace(|| {
        let server = Server::start(&["--address", "10.77.0.2/24", "--address", "fd77::2/64"]);
        let before = testnet::counters();
        for url in ["http://10.77.0.2/", "http://[fd77::2]/"] {
            assert!(
                page(&["--tcp-fastopen", url]).contains("Your request arrived after the handshake."),
                "{url}"
            );
            for _ in 0..3 {
                assert_eq!(
                    page(&["--tcp-fastopen", "-H", "Connection: close", url]),
                    "Hello from Firstbyte.\nYour request arrived on the SYN: TCP Fast Open.\n"
                );
            }
        }
        let accepted = testnet::counters().of("TCPFastOpenActive") - before.of("TCPFastOpenActive");
        assert_eq!(accepted, 6);
        let (code, lines) = server.stop();
        assert_eq!(code, Some(0));
        let requests: Vec<_> = lines.iter().filter(|line| line["event"] == "request").collect();
        assert_eq!(requests.len(), 8);
        for (index, line) in requests.iter().enumerate() {
            let is_first = index % 4 == 0;
            assert_eq!(line["early"], !is_first, "{line}");
            let on_syn_ack = line["synack_data_bytes"].as_u64().unwrap_or(0);
            assert_eq!(on_syn_ack > 200, !is_first, "{line}");
        }
        let summary = lines.last().expect("a summary");
        assert_eq!((&summary["event"], &summary["requests"]), (&"summary".into(), &8.into()));
        assert_eq!(summary["counters"]["TCPFastOpenPassive"], 6);
        assert_eq!(summary["counters"]["SynAckData"], 6);
        assert!(firstbyte::device::interface::find("firstbyte0").is_err(), "the device is gone");
    });
}

/// Connections stay open for more requests by default, also after a request on the SYN, whose reply
/// is on the SYN-ACK without a FIN.
#[test]
fn connections_are_kept_alive_unless_either_end_wants_to_close() {
    if skipped_without("curl") {
        return;
    }
    testnet::in_namespace(|| {
        let url = "http://10.77.0.2/";
        let connects = |more: &[&str]| {
            page(
                &[&["-w", "%{num_connects} ", "-o", "/dev/null", "-o", "/dev/null", url, url], more].concat(),
            )
        };
        let server = Server::start(&[]);
        assert_eq!(connects(&[]), "1 0 ");
        assert_eq!(connects(&["-H", "Connection: close"]), "1 1 ");
        for visit in ["after the handshake", "on the SYN"] {
            assert!(page(&["--tcp-fastopen", url]).contains(visit));
        }
        let (code, lines) = server.stop();
        assert_eq!((code, &lines.last().unwrap()["counters"]["SynAckData"]), (Some(0), &1.into()));

        let server = Server::start(&["--no-keep-alive"]);
        assert_eq!(connects(&[]), "1 1 ");
        assert_eq!(server.stop().0, Some(0));
    });
}

/// The kernel's sockets need neither root nor a device; both ends of every visit are ours.
#[test]
fn it_serves_on_the_kernels_sockets() {
    testnet::in_namespace(|| {
        testnet::sysctl("net.ipv4.tcp_fastopen", "0x3");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("small.txt"), "small").unwrap();
        let root = folder.path().to_str().unwrap();
        let server =
            Server::start_by(without_rights(), &["--backend", "kernel", "--root", root, "--echo", "8007"]);
        let get = |more: &[&str]| {
            let mut get = without_rights();
            get.args(["get", "http://127.0.0.1:8080/small.txt"]).args(more).output().unwrap()
        };
        let first = get(&[]);
        assert_eq!((first.status.code(), crate::stdout(&first)), (Some(0), "small"), "{}", stderr(&first));
        assert!(stderr(&first).contains("at 127.0.0.1:8080 through the kernel\n"), "{}", stderr(&first));
        let report: serde_json::Value = serde_json::from_slice(&get(&["--json"]).stdout).unwrap();
        let visit = &report["visits"][0];
        assert_eq!(
            (&report["backend"], &visit["fast_open"]["outcome"]),
            (&"kernel".into(), &"accepted".into())
        );
        let ms = |name: &str| visit[name].as_f64().unwrap();
        assert!(ms("handshake_ms") > 0.0 && ms("first_byte_ms") <= ms("total_ms"), "{visit}");
        assert!((ms("first_byte_ms") + ms("rest_ms") - ms("total_ms")).abs() < 0.001, "{visit}");
        // The handshake may be complete when the server accepts: then nothing is too early.
        let output = get(&["--json", "-X", "DELETE", "--force-early"]);
        let early: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(early["visits"].as_array().unwrap().last().unwrap()["status"], 405, "{early}");

        let mut echo = TcpStream::connect("127.0.0.1:8007").unwrap();
        echo.write_all(b"four").unwrap();
        echo.shutdown(Shutdown::Write).unwrap();
        let mut echoed = String::new();
        echo.read_to_string(&mut echoed).unwrap();
        assert_eq!(echoed, "four");
        let (code, lines) = server.stop();
        assert_eq!(code, Some(0));
        let summary = lines.last().unwrap();
        assert!(summary["requests"].as_u64().unwrap() >= 3);
        assert_eq!(summary["echoes"], 1);
        assert!(summary["counters"].is_null());
    });
}

/// Returns the command as a user who is not root, if the test is run by root.
fn without_rights() -> std::process::Command {
    let mut command = firstbyte();
    if rustix::process::geteuid().is_root() && testnet::has_program("setpriv") {
        let binary = env!("CARGO_BIN_EXE_firstbyte");
        command = testnet::command("setpriv");
        command.args(["--bounding-set=-all", "--inh-caps=-all", binary]).env("NO_COLOR", "1");
    }
    command
}

/// A client that stops reading is disconnected, on the kernel's sockets as on ours.
#[test]
fn slow_clients_of_the_kernel_are_disconnected() {
    testnet::in_namespace(|| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::File::create(folder.path().join("large")).unwrap().set_len(64 << 20).unwrap();
        let root = folder.path().to_str().unwrap();
        let mut server = Server::start(&["--backend", "kernel", "--root", root, "--timeout", "1s"]);
        let mut stream = TcpStream::connect("127.0.0.1:8080").unwrap();
        stream.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let line = server.next_line();
        assert_eq!(line["event"], "broken", "{line}");
        let read = std::io::copy(&mut stream, &mut std::io::sink()).unwrap_err();
        assert_eq!(read.kind(), std::io::ErrorKind::ConnectionReset);
        assert_eq!(server.stop().0, Some(0));
    });
}

/// True if a child process would inherit an ignored SIGHUP.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells it");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask");
    u64::from_str_radix(mask.trim(), 16).expect("hexadecimal") & 1 == 1
}

/// A service manager sends SIGTERM, and a terminal that is closed SIGHUP.
#[test]
fn every_signal_to_end_writes_the_cache() {
    use rustix::process::Signal;
    testnet::in_namespace(|| {
        let mut signals = vec![Signal::INT, Signal::TERM];
        match is_hangup_ignored() {
            true => {
                drop(writeln!(std::io::stderr(), "SKIPPED for SIGHUP: it is ignored here, as under nohup"))
            }
            false => signals.push(Signal::HUP),
        }
        for signal in signals {
            let cache = std::env::temp_dir().join(format!("firstbyte-ends-{}", std::process::id()));
            let mut server = Server::start(&["--cache", cache.to_str().expect("text")]);
            server.send(signal);
            assert_eq!(server.wait(), Some(0), "{signal:?}");
            std::fs::remove_file(&cache).unwrap_or_else(|error| panic!("{signal:?}: {error}"));
        }
    });
}

/// An unsafe method is not executed while it may be a replay; after the handshake it is.
#[test]
fn early_posts_are_too_early() {
    if skipped_without("curl") {
        return;
    }
    testnet::in_namespace(|| {
        let server = Server::start(&[]);
        let code =
            |arguments: &[&str]| page(&[&["-o", "/dev/null", "-w", "%{http_code}"], arguments].concat());
        let early =
            |arguments: &[&str]| code(&[&["--tcp-fastopen", "http://10.77.0.2/"], arguments].concat());
        let late = |arguments: &[&str]| code(&[&["http://10.77.0.2/"], arguments].concat());
        assert_eq!(early(&["-d", "x"]), "200", "without a cookie it follows the handshake");
        assert_eq!(early(&["-d", "x"]), "425");
        assert_eq!(early(&["-X", "DELETE"]), "425");
        assert_eq!(late(&["-H", "Early-Data: 1", "-d", "x"]), "425");
        assert_eq!(late(&["-d", "x"]), "200");
        assert_eq!(late(&["-X", "DELETE"]), "405");
        assert_eq!(server.stop().0, Some(0));

        let server = Server::start(&["--allow-early-unsafe"]);
        for _ in 0..3 {
            assert_eq!(
                page(&["--tcp-fastopen", "-d", "four", "http://10.77.0.2/"]),
                "POST: 4 bytes received.\n"
            );
        }
        assert_eq!(server.stop().0, Some(0));
    });
}

/// Files small and large, whole; a key makes cookies survive a restart.
#[test]
fn files_are_served_and_a_key_outlives_the_server() {
    if skipped_without("curl") {
        return;
    }
    testnet::in_namespace(|| {
        let folder = std::env::temp_dir().join(format!("firstbyte-serve-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let key = folder.join("key");
        std::fs::write(&key, "00010203-04050607-08090a0b-0c0d0e0f\n").unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        let large: String = (0..400_000).map(|number| format!("{number}\n")).collect();
        std::fs::write(folder.join("large.txt"), &large).unwrap();
        std::fs::write(folder.join("small.txt"), "small").unwrap();
        let arguments = ["--root", folder.to_str().unwrap(), "--key-file", key.to_str().unwrap()];
        for visit in 0..2 {
            let server = Server::start(&arguments);
            assert_eq!(page(&["--tcp-fastopen", "http://10.77.0.2/small.txt"]), "small");
            assert!(page(&["--tcp-fastopen", "http://10.77.0.2/large.txt"]) == large);
            // Two requests on one connection.
            assert_eq!(page(&["http://10.77.0.2/small.txt", "http://10.77.0.2/small.txt"]), "smallsmall");
            let (code, lines) = server.stop();
            assert_eq!(code, Some(0));
            let summary = lines.last().unwrap();
            assert_eq!(summary["requests"], 4);
            assert_eq!(summary["counters"]["PassiveOpens"], 3);
            assert_eq!(summary["counters"]["TCPFastOpenPassive"], 1 + visit);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    });
}

#[test]
fn echo_gives_back_every_byte_and_a_stop_waits_for_nobody_idle() {
    testnet::in_namespace(|| {
        let server = Server::start(&["--echo", "7"]);
        let mut idle = TcpStream::connect("10.77.0.2:7").unwrap();
        let mut stream = TcpStream::connect("10.77.0.2:7").unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        idle.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
        let mut writer = stream.try_clone().unwrap();
        let echoed = std::thread::scope(|scope| {
            scope.spawn(|| {
                writer.write_all(&bytes).unwrap();
                writer.shutdown(Shutdown::Write).unwrap();
            });
            let mut echoed = Vec::new();
            stream.read_to_end(&mut echoed).unwrap();
            echoed
        });
        assert!(echoed == bytes);
        let begun = std::time::Instant::now();
        let (code, lines) = server.stop();
        assert_eq!(code, Some(0));
        assert!(begun.elapsed() < Duration::from_secs(8));
        let echo = lines.iter().find(|line| line["event"] == "echo").unwrap();
        assert_eq!(echo["bytes"], 1_000_000);
        assert_eq!(idle.read(&mut [0; 1]).map_err(|error| error.kind()), Ok(0));
    });
}

/// `ss` and `route` query the running server: its listeners, a connection of the kernel, and a
/// changed initial window.
#[test]
fn a_running_server_is_asked_and_steered() {
    testnet::in_namespace(|| {
        let path = std::env::temp_dir().join(format!("firstbyte-asked-{}", std::process::id()));
        let control = ["--control", path.to_str().unwrap()];
        let ask = |arguments: &[&str]| {
            let output = run(&[arguments, &control].concat());
            assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
            crate::stdout(&output).to_owned()
        };
        let settings = path.with_extension("conf");
        std::fs::write(&settings, "# ours\nnet.ipv4.tcp_fin_timeout = 29\n").unwrap();
        let given = ["--echo", "7", "--backlog", "33", "--settings", settings.to_str().unwrap()];
        let server = Server::start(&[&given, &control[..]].concat());
        let listening = ask(&["ss", "-l"]);
        let words: Vec<Vec<&str>> =
            listening.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        for local in ["10.77.0.2:7", "10.77.0.2:80"] {
            assert!(words.contains(&vec!["LISTEN", "0", "33", local, "0.0.0.0:*"]), "{listening}");
        }
        ask(&["route", "set", "10.77.0.0/24", "initcwnd", "33"]);
        assert_eq!(ask(&["route", "show"]), "10.77.0.0/24 initcwnd 33\n");
        let mut stream = TcpStream::connect("10.77.0.2:7").unwrap();
        stream.write_all(b"here").unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        let local = stream.local_addr().unwrap().to_string();
        let info = ask(&["ss", "-i"]);
        let line = info.lines().find(|line| line.starts_with("ESTAB")).unwrap();
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["ESTAB", "0", "0", "10.77.0.2:7", &local]);
        assert!(info.contains(" cwnd:33 ") && info.contains(" bytes_received:4 "), "{info}");
        assert!(ask(&["ss", "-m"]).contains("\t skmem:(rb"), "{}", ask(&["ss", "-m"]));
        let json: serde_json::Value = serde_json::from_str(&ask(&["ss", "-i", "--json"])).unwrap();
        assert_eq!(json["sockets"][0]["info"]["cwnd"], 33);
        drop(stream);
        assert!(ask(&["ss", "--summary"]).contains("\nLISTEN     2\n"));
        assert_eq!(
            ask(&["nstat", "passiveopens"]).split_whitespace().collect::<Vec<_>>()[..2],
            ["TcpPassiveOpens", "1"]
        );
        let added: serde_json::Value =
            serde_json::from_str(&ask(&["nstat", "-z", "--json", "--interval", "1ms", "passiveopens"]))
                .unwrap();
        assert_eq!(added["counters"]["TcpPassiveOpens"], 0);
        assert_eq!(ask(&["sysctl", "tcp_fin_timeout"]), "net.ipv4.tcp_fin_timeout = 29\n");
        ask(&["sysctl", "-w", "net.ipv4.tcp_fin_timeout=30"]);
        assert_eq!(ask(&["sysctl", "-w", "tcp_fin_timeout=31"]), "net.ipv4.tcp_fin_timeout = 31\n");
        assert_eq!(ask(&["sysctl", "net.ipv4.tcp_fin_timeout"]), "net.ipv4.tcp_fin_timeout = 31\n");
        let wrong = run(&[&["sysctl", "-w", "net.ipv4.tcp_nothing=1"], &control[..]].concat());
        assert!(stderr(&wrong).contains("there is no setting `net.ipv4.tcp_nothing`"), "{}", stderr(&wrong));
        std::fs::write(&settings, "00010203-04050607-08090a0b-0c0d0e0f\n").unwrap();
        let key_file = ["sysctl", "--key-file", settings.to_str().unwrap()];
        assert_eq!(ask(&key_file), "net.ipv4.tcp_fastopen_key is set\n");
        let mut command = firstbyte();
        command.args(["sysctl", "--key-file", "-"]).args(control);
        let mut from_stdin =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        from_stdin.stdin.take().unwrap().write_all(b"my secret\n").unwrap();
        let refused = from_stdin.wait_with_output().unwrap();
        assert_eq!(refused.status.code(), Some(1));
        assert!(stderr(&refused).starts_with("error: standard input: "), "{}", stderr(&refused));
        assert!(!stderr(&refused).contains("secret"));
        let peer = "10.77.0.1";
        assert!(ask(&["metrics", "show"]).starts_with(&format!("{peer} age ")));
        ask(&["metrics", "delete", peer]);
        assert_eq!(ask(&["metrics", "show"]), "");
        let gone = run(&[&["metrics", "delete", peer], &control[..]].concat());
        assert_eq!(stderr(&gone), format!("error: nothing is cached for {peer}\n"));
        ask(&["metrics", "flush"]);
        ask(&["route", "del", "10.77.0.0/24"]);
        assert_eq!(ask(&["route", "show", "--json"]), "[]\n");
        assert_eq!(server.stop().0, Some(0));
        assert!(!path.exists(), "the socket went with the server");
        std::fs::remove_file(settings).unwrap();
    });
}

/// The key of a settings file, then another one by `sysctl --key-file`: cookies use them, and
/// neither is ever shown.
#[test]
fn a_key_of_the_settings_file_and_another_later_make_the_cookies() {
    testnet::in_namespace(|| {
        let file =
            |kind: &str| std::env::temp_dir().join(format!("firstbyte-keys-{}-{kind}", std::process::id()));
        let [control, settings, first, second] =
            ["control", "settings", "first", "second"].map(|kind| file(kind).to_str().unwrap().to_owned());
        let keys = ["5ec5e700-00000000-00000000-00000001", "5ec5e700-00000000-00000000-00000002"];
        let write = |path: &str, text: &str| {
            std::fs::write(path, text).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
        };
        write(&first, keys[0]);
        write(&second, keys[1]);
        write(
            &settings,
            &format!("net.ipv4.ip_local_port_range = 40000 40999\nnet.ipv4.tcp_fastopen_key = {}\n", keys[0]),
        );
        let server = Server::start(&["--control", &control, "--settings", &settings]);
        let said = |arguments: &[&str]| {
            let output = run(arguments);
            let both = format!("{}{}", crate::stdout(&output), stderr(&output));
            assert!(!both.contains("5ec5e700"), "{arguments:?}: {both}");
            both
        };
        let sysctl = |arguments: &[&str]| said(&[&["sysctl", "--control", &control], arguments].concat());
        assert_eq!(sysctl(&["ip_local_port_range"]), "net.ipv4.ip_local_port_range = 40000 40999\n");
        assert_eq!(sysctl(&["tcp_fastopen_key"]), "net.ipv4.tcp_fastopen_key = set alone\n");
        assert!(sysctl(&[]).contains("net.ipv4.tcp_fastopen_key = set alone\n"));
        let made_with = |keys: &str| said(&["fleet", "10.77.0.2", "--key-file", keys]);
        assert!(made_with(&first).contains("made with the primary key"), "{}", made_with(&first));
        assert_eq!(sysctl(&["--key-file", &second]), "net.ipv4.tcp_fastopen_key is set\n");
        let after = made_with(&second);
        assert!(after.contains("Fast Open works.") && after.contains("made with the primary key"), "{after}");
        for name in ["tcp_fastopen_key", "net.ipv4.tcp_fastopen_key", "net/ipv4/tcp_fastopen_key"] {
            let refused = said(&["sysctl", "--control", &control, "-w", &format!("{name}={}", keys[0])]);
            assert!(refused.contains("would show the key to every user"), "{refused}");
        }
        assert_eq!(server.stop().0, Some(0));
        [settings, first, second].iter().for_each(|file| std::fs::remove_file(file).unwrap());
    });
}

/// The error has file, line and reason, without a possible key.
#[test]
fn a_wrong_settings_file_is_named_by_its_line() {
    let path = std::env::temp_dir().join(format!("firstbyte-wrong-{}", std::process::id()));
    let key = "5ec5e700-00000000-00000000-00000001";
    for (line, why) in [
        ("net.ipv4.ip_local_port_range = 50000 40000", "is more than"),
        ("net.ipv4.ip_local_port_range = 40000-50000", "is not two ports"),
        ("net.ipv4.tcp_nothing = 1", "there is no setting `net.ipv4.tcp_nothing`"),
        ("net.ipv4.tcp_fastopen_key = 5ec5e700", "four hexadecimal words"),
        (&format!("tcp_fastopen_key = {key}"), "did you mean net.ipv4.tcp_fastopen_key?"),
        (&format!("net.ipv4.tcp_fastopen_key {key}"), "expected NAME = VALUE"),
        (key, "expected NAME = VALUE"),
    ] {
        std::fs::write(&path, format!("# ours\n{line}\n")).unwrap();
        let output = run(&["serve", "--settings", path.to_str().unwrap()]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("{}, line 2: ", path.display())) && said.contains(why), "{said}");
        assert!(!said.contains("5ec5e700"), "{said}");
    }
    std::fs::remove_file(path).unwrap();
}

/// Like the kernel: a client whose handshake finds the queue full is not reset.
#[test]
fn more_clients_at_once_than_the_accept_queue_holds_are_served() {
    if skipped_without("ab") {
        return;
    }
    testnet::in_namespace(|| {
        let server = Server::start(&["--backlog", "5", "--quiet"]);
        let output =
            testnet::command("ab").args(["-n", "2000", "-c", "20", "http://10.77.0.2/"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", stderr(&output));
        for (what, count) in [("Complete requests:", "2000"), ("Failed requests:", "0")] {
            let line = said.lines().find_map(|line| line.strip_prefix(what));
            assert_eq!(line.map(str::trim), Some(count), "{said}");
        }
        assert_eq!(server.stop().0, Some(0));
    });
}

/// The device has room for 5,000 clients at once; without root, a warning says what to do.
#[test]
fn the_device_has_room_for_many_clients_at_once() {
    testnet::in_namespace(|| {
        let room = |name| firstbyte::device::interface::find(name).unwrap().queue_len;
        let server = Server::start(&[]);
        assert_eq!(room("firstbyte0"), 20_000);
        assert_eq!(server.stop().0, Some(0));

        if skipped_without("setpriv") {
            return;
        }
        let kernel: std::net::IpAddr = "10.78.0.1".parse().unwrap();
        drop(Tun::builder().name("kept").address(kernel, 24).persistent(true).open().unwrap());
        let mut serve = testnet::command("setpriv");
        serve.args(["--bounding-set=-net_admin", "--inh-caps=-net_admin"]);
        serve.args([env!("CARGO_BIN_EXE_firstbyte"), "serve", "--tun", "kept", "--address", "10.78.0.2/24"]);
        let mut serve =
            serve.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the server starts");
        let mut said = String::new();
        std::io::BufReader::new(serve.stderr.take().unwrap()).read_line(&mut said).unwrap();
        serve.kill().unwrap();
        serve.wait().unwrap();
        assert!(said.contains("run as root: ip link set dev kept txqueuelen 20000"), "{said}");
        assert_eq!(room("kept"), 500);
    });
}

#[test]
fn a_device_or_an_address_in_use_is_named() {
    testnet::in_namespace(|| {
        let server = Server::start(&[]);
        let cases: [(&[&str], &str); 3] = [
            (&[], "another process uses firstbyte0; stop it, or choose another name with --tun"),
            (&["--tun", "other"], "another interface already has the address 10.77.0.1"),
            (
                &["--tun", "other", "--address", "10.77.0.1/24", "--host-address", "10.99.0.1/24"],
                "10.77.0.1 is already an address of this machine",
            ),
        ];
        for (arguments, part) in cases {
            let output = run(&[&["serve"], arguments].concat());
            assert_eq!(output.status.code(), Some(1), "{arguments:?}");
            assert!(stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
        }
        assert_eq!(server.stop().0, Some(0));
    });
}

#[test]
fn a_device_that_is_deleted_ends_the_server_with_its_name() {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    testnet::in_namespace(|| {
        let mut server = Server::start(&[]);
        let deleted = testnet::command("ip").env("PATH", path).args(["link", "del", "firstbyte0"]).status();
        if !deleted.is_ok_and(|status| status.success()) {
            let _ = writeln!(std::io::stderr(), "SKIPPED: needs ip (iproute2)");
            return;
        }
        assert_eq!(server.wait(), Some(1));
    });
}

/// An error that would occur at the end is reported at the start.
#[test]
fn a_cache_that_cannot_be_written_ends_it_at_once() {
    testnet::in_namespace(|| {
        let output = run(&["serve", "--cache", "/no/such/folder/paths"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("cannot write /no/such/folder/paths: "), "{}", stderr(&output));
    });
}

/// hyper accepts U+009B, the one-character form of `ESC [`, in a path; the log must not print it to
/// a terminal.
#[test]
fn a_path_with_controls_is_logged_without_them() {
    testnet::in_namespace(|| {
        let mut server = Server::start(&[]);
        let mut stream = TcpStream::connect("10.77.0.2:80").unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
            .write_all("GET /\u{9b}2J\u{202e} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".as_bytes())
            .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
        drop(stream);
        let mut line = String::new();
        server.stdout.read_line(&mut line).unwrap();
        assert!(line.contains(r"/\u009b2J\u202e"), "{line:?}");
        assert_eq!(server.stop().0, Some(0));
    });
}

#[test]
fn a_running_server_is_traced_until_the_one_who_asked_ends() {
    if skipped_without("curl") {
        return;
    }
    testnet::in_namespace(|| {
        let socket = std::env::temp_dir().join(format!("firstbyte-trace-{}.sock", std::process::id()));
        let socket = socket.to_str().unwrap();
        let _server = Server::start(&["--control", socket]);
        let mut trace = crate::firstbyte();
        trace.args(["ss", "--trace", "--control", socket]).stdout(std::process::Stdio::piped());
        let mut trace = trace.spawn().unwrap();
        let mut said = std::io::BufReader::new(trace.stdout.take().unwrap());
        let is_seen = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Connections before the start of tracing are not traced.
            scope.spawn(|| {
                while !is_seen.load(std::sync::atomic::Ordering::Relaxed) {
                    drop(page(&["http://10.77.0.2/"]));
                }
            });
            let mut lines = said.by_ref().lines().map(|line| line.unwrap());
            assert!(lines.any(|line| line.contains("state Established")));
            is_seen.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let pid = rustix::process::Pid::from_child(&trace);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        std::io::copy(&mut said, &mut std::io::sink()).unwrap();
        assert!(trace.wait().unwrap().success());
    });
}

/// The reader closes the pipe (`| head`), or a service manager ends the command.
#[test]
fn a_trace_ends_without_its_reader_and_by_a_signal_to_end() {
    testnet::in_namespace(|| {
        let socket = std::env::temp_dir().join(format!("firstbyte-traced-{}.sock", std::process::id()));
        let socket = socket.to_str().unwrap();
        let _server = Server::start(&["--control", socket]);
        let start = || {
            let mut trace = firstbyte();
            trace.args(["ss", "--trace", "--control", socket]).stdout(Stdio::piped());
            trace.spawn().unwrap()
        };
        let mut unread = start();
        drop(unread.stdout.take());
        assert_eq!(crate::wait(&mut unread), Some(0));

        let mut told = start();
        let mut said = std::io::BufReader::new(told.stdout.take().unwrap());
        let first_line = std::thread::spawn(move || {
            said.read_line(&mut String::new()).unwrap();
            said
        });
        while !first_line.is_finished() {
            drop(TcpStream::connect("10.77.0.2:80").unwrap());
        }
        let mut said = first_line.join().unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_child(&told), rustix::process::Signal::TERM)
            .unwrap();
        std::io::copy(&mut said, &mut std::io::sink()).unwrap();
        assert_eq!(crate::wait(&mut told), Some(0));
    });
}
