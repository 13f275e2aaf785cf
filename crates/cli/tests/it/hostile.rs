//! Behaviour of clients of `firstbyte serve` that browsers do not show.
use crate::{Server, firstbyte};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) fn connect() -> TcpStream {
    let stream = TcpStream::connect("10.77.0.2:80").unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

pub(crate) fn ask(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).unwrap();
}

/// Returns everything until the server closes, or resets because it did not read everything.
pub(crate) fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(len @ 1..) = stream.read(&mut piece) {
        bytes.extend_from_slice(&piece[..len]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the status of the reply to a request, on its own connection.
fn status(request: &str) -> String {
    let mut stream = connect();
    // The server may close before it has read all of it.
    let _ = stream.write_all(request.as_bytes());
    rest(&mut stream).split(' ').nth(1).unwrap_or_default().to_owned()
}

const PLAIN: &str = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/// A sparse file that is larger than any pair of buffers.
pub(crate) struct LargeFile(PathBuf);

impl LargeFile {
    const LEN: u64 = 64 << 20;

    pub(crate) fn new(name: &str) -> LargeFile {
        let folder = std::env::temp_dir().join(format!("firstbyte-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        File::create(folder.join("large")).unwrap().set_len(LargeFile::LEN).unwrap();
        LargeFile(folder)
    }

    pub(crate) fn root(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for LargeFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// More readers than tokio has threads for files (512).
#[test]
fn readers_that_stand_still_keep_nobody_from_downloading() {
    testnet::in_namespace(|| {
        let file = LargeFile::new("idle");
        let server = Server::start(&["--root", file.root(), "--quiet"]);
        let ask_for_file = || {
            let mut stream = connect();
            ask(&mut stream, "GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            stream.read_exact(&mut [0; 1]).unwrap();
            stream
        };
        let idle: Vec<TcpStream> = (0..520).map(|_| ask_for_file()).collect();
        let mut stream = ask_for_file();
        let read = std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
        assert!(read > LargeFile::LEN, "{read}");
        drop(idle);
        assert_eq!(server.stop().0, Some(0));
    });
}

/// The client's window stays closed, and its host answers every probe.
#[test]
fn a_reader_that_takes_nothing_is_let_go_of() {
    testnet::in_namespace(|| {
        let file = LargeFile::new("slow");
        let mut server = Server::start(&["--root", file.root(), "--timeout", "1s"]);
        let mut stream = connect();
        ask(&mut stream, "GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let line = server.next_line();
        assert_eq!(line["event"], "broken", "{line}");
        assert!(line["why"].as_str().unwrap().ends_with(": the peer did not answer in time"), "{line}");
        let read = std::io::copy(&mut stream, &mut std::io::sink()).unwrap_err();
        assert_eq!(read.kind(), std::io::ErrorKind::ConnectionReset);
        assert_eq!(server.stop().0, Some(0));
    });
}

/// The server waits neither for half a head nor for half a body forever.
#[test]
fn half_a_request_is_given_up() {
    testnet::in_namespace(|| {
        let mut server = Server::start(&["--timeout", "1s"]);
        let mut head = connect();
        ask(&mut head, "GET / HTTP/1.1\r\nHos");
        assert_eq!(rest(&mut head), "");
        assert_eq!(server.next_line()["event"], "broken");
        let mut body = connect();
        ask(&mut body, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhal");
        let said = rest(&mut body);
        assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
        assert_eq!(server.stop().0, Some(0));
    });
}

#[test]
fn huge_heads_are_refused_and_the_next_client_is_served() {
    testnet::in_namespace(|| {
        let server = Server::start(&[]);
        let long = "x".repeat(100_000);
        assert_eq!(status(&format!("GET / HTTP/1.1\r\nHost: x\r\nA: {long}\r\n\r\n")), "431");
        let many: String = (0..200).map(|number| format!("A{number}: x\r\n")).collect();
        assert_eq!(status(&format!("GET / HTTP/1.1\r\nHost: x\r\n{many}\r\n")), "431");
        let answer = status(&format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert!(["414", "431"].contains(&answer.as_str()), "{answer}");
        assert_eq!(status(PLAIN), "200");
        assert_eq!(server.stop().0, Some(0));
    });
}

/// Rejects requests that are not HTTP or are ambiguous (RFC 9112 §6.3).
#[test]
fn what_is_no_request_is_a_bad_one() {
    testnet::in_namespace(|| {
        let server = Server::start(&[]);
        for request in [
            "\x16\x03\x01\x02\0\x01\0\x01\u{7f}\x03\x03",
            "GET\0/ HTTP/1.1\r\n\r\n",
            "GET / HTTP/9.9\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
            "GET / HTTP/1.1\r\nA : x\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        ] {
            assert_eq!(status(request), "400", "{request:?}");
        }
        assert_eq!(status(PLAIN), "200");
        assert_eq!(status("GET / HTTP/1.0\r\n\r\n"), "200");
        let (code, lines) = server.stop();
        assert_eq!(code, Some(0));
        let refused = lines.iter().filter(|line| line["event"] == "refused");
        assert!(refused.count() >= 6, "{lines:?}");
        assert!(lines.iter().all(|line| line["event"] != "broken"), "{lines:?}");
        assert!(lines[1]["at"].as_str().unwrap().ends_with('Z'), "{lines:?}");
    });
}

/// One byte a segment, and several requests in one: each is answered once, in order.
#[test]
fn requests_may_be_split_and_pipelined() {
    testnet::in_namespace(|| {
        let server = Server::start(&[]);
        let mut stream = connect();
        stream.set_nodelay(true).unwrap();
        for byte in PLAIN.replace("Connection: close\r\n", "").bytes() {
            stream.write_all(&[byte]).unwrap();
        }
        let post = |len: usize| {
            format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {len}\r\n\r\n{}", "x".repeat(len))
        };
        ask(&mut stream, &[post(1), post(22), post(333), PLAIN.to_owned()].concat());
        let said = rest(&mut stream);
        let bodies = ["Hello from", "POST: 1 bytes", "POST: 22 bytes", "POST: 333 bytes", "Hello from"];
        let places: Vec<Option<usize>> =
            bodies[..4].iter().map(|body| said.find(body)).chain([said.rfind(bodies[4])]).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{said}");
        assert_eq!(said.matches("HTTP/1.1 200 OK").count(), 5, "{said}");
        assert_eq!(server.stop().0, Some(0));
    });
}

/// The next one waits in the accept queue until a place is free.
#[test]
fn no_more_connections_are_served_at_once_than_said() {
    testnet::in_namespace(|| {
        let server = Server::start(&["--max-connections", "2"]);
        let mut silent = [connect(), connect()];
        let mut third = connect();
        ask(&mut third, PLAIN);
        third.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        assert_eq!(third.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        third.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        ask(&mut silent[0], PLAIN);
        assert!(rest(&mut silent[0]).starts_with("HTTP/1.1 200 "));
        drop(silent);
        assert!(rest(&mut third).starts_with("HTTP/1.1 200 "));
        assert_eq!(server.stop().0, Some(0));
    });
}

/// A client that has the whole reply and does not close keeps its place only while others do not
/// need it.
#[test]
fn a_client_that_does_not_close_makes_room_for_the_next() {
    testnet::in_namespace(|| {
        let server = Server::start(&["--max-connections", "1"]);
        let mut lingering = connect();
        ask(&mut lingering, PLAIN);
        assert!(rest(&mut lingering).starts_with("HTTP/1.1 200 "));
        let mut second = connect();
        second.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        ask(&mut second, PLAIN);
        assert!(rest(&mut second).starts_with("HTTP/1.1 200 "));
        assert_eq!(server.stop().0, Some(0));
    });
}

/// An idle connection between two requests keeps its place only while others do not need it.
#[test]
fn a_client_between_two_requests_makes_room_for_the_next() {
    testnet::in_namespace(|| {
        let server = Server::start(&["--max-connections", "1"]);
        let mut idle = connect();
        ask(&mut idle, &PLAIN.replace("Connection: close\r\n", ""));
        assert!(rest(&mut idle).starts_with("HTTP/1.1 200 "));
        let mut second = connect();
        second.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        ask(&mut second, PLAIN);
        assert!(rest(&mut second).starts_with("HTTP/1.1 200 "));
        assert_eq!(server.stop().0, Some(0));
    });
}

/// The socket allows changing routes: neither the socket nor its folder is accessible to others.
#[test]
fn only_its_user_reaches_the_control_socket() {
    testnet::in_namespace(|| {
        let runtime = std::env::temp_dir().join(format!("firstbyte-others-{}", std::process::id()));
        std::fs::create_dir_all(&runtime).unwrap();
        std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = firstbyte();
        command.env("XDG_RUNTIME_DIR", &runtime);
        let server = Server::start_by(command, &[]);
        let folder = runtime.join("firstbyte");
        let socket = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
        for (path, mode) in [(&folder, 0o700), (&socket, 0o600)] {
            let found = std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(found, mode, "{}", path.display());
        }
        assert_eq!(server.stop().0, Some(0));
        assert!(!socket.exists());
        std::fs::remove_dir_all(runtime).unwrap();
    });
}

/// Clients that read slowly, but always something: while the server still writes, and once
/// everything is in its send buffer.
#[test]
fn a_reader_that_takes_too_little_is_reset() {
    testnet::in_namespace(|| {
        let file = LargeFile::new("rate");
        std::fs::write(PathBuf::from(file.root()).join("small"), vec![b'x'; 200_000]).unwrap();
        let mut server = Server::start(&["--root", file.root(), "--timeout", "2s", "--min-rate", "50000"]);
        testnet::sysctl("net.ipv4.tcp_rmem", "4096 8192 8192");
        for path in ["/large", "/small"] {
            let mut stream = connect();
            ask(&mut stream, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
            let begun = std::time::Instant::now();
            let mut read = 0;
            while let Ok(len @ 1..) = stream.read(&mut [0; 2000]) {
                read += len;
                assert!(begun.elapsed() < Duration::from_secs(15), "{path}: {read}");
                std::thread::sleep(Duration::from_millis(200));
            }
            assert!(read < 200_000, "{path}: {read}");
            let mut line = server.next_line();
            if line["event"] == "request" {
                line = server.next_line();
            }
            assert!(line["why"].as_str().unwrap().contains("less than the --min-rate of 100000"), "{line}");
        }
        testnet::sysctl("net.ipv4.tcp_rmem", "4096 131072 6291456");
        let mut stream = connect();
        ask(&mut stream, "GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert!(std::io::copy(&mut stream, &mut std::io::sink()).unwrap() > LargeFile::LEN);
        assert_eq!(server.stop().0, Some(0));
    });
}

#[test]
fn one_address_does_not_take_all_places() {
    if crate::skipped_without("curl") {
        return;
    }
    testnet::in_namespace(|| {
        let own =
            ["--address", "10.77.0.2/24", "--host-address", "10.77.0.1/24", "--host-address", "10.77.0.9/24"];
        let mut server = Server::start(&[&own[..], &["--max-per-address", "3"]].concat());
        let kept = [connect(), connect(), connect()];
        for _ in 0..5 {
            // The reset may come before connect() returns.
            let read = TcpStream::connect("10.77.0.2:80").and_then(|mut stream| stream.read(&mut [0]));
            assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
        }
        let curl = |from: &str| {
            let arguments = ["-sS", "--max-time", "5", "--interface", from, "http://10.77.0.2/"];
            testnet::command("curl").args(arguments).output().unwrap()
        };
        assert!(curl("10.77.0.9").status.success());
        assert!(!curl("10.77.0.1").status.success());
        let line = server.next_line();
        assert_eq!((&line["event"], &line["from"]), (&"crowded".into(), &"10.77.0.1".into()));
        assert_eq!(server.next_line()["event"], "request");
        drop(kept);
        let begun = std::time::Instant::now();
        while !curl("10.77.0.1").status.success() {
            assert!(begun.elapsed() < Duration::from_secs(10));
        }
        let (code, lines) = server.stop();
        assert_eq!(code, Some(0));
        assert!(lines.last().unwrap()["turned_away"].as_u64().unwrap() >= 6, "{lines:?}");
    });
}

/// Neither an idle client nor a body that comes byte by byte holds a place indefinitely.
#[test]
fn echo_clients_and_bodies_have_a_time() {
    testnet::in_namespace(|| {
        let mut server = Server::start(&["--echo", "7", "--timeout", "1s", "--body-timeout", "2s"]);
        let mut echo = TcpStream::connect("10.77.0.2:7").unwrap();
        echo.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        ask(&mut echo, "four");
        echo.read_exact(&mut [0; 4]).unwrap();
        assert_eq!(echo.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
        let line = server.next_line();
        assert!(line["why"].as_str().unwrap().contains("the peer was idle for too long"), "{line}");

        let mut body = connect();
        ask(&mut body, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
        body.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let begun = std::time::Instant::now();
        let mut said = [0; 12];
        while body.read_exact(&mut said).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(10), "no answer");
            let _ = body.write_all(b"x");
        }
        assert_eq!(&said, b"HTTP/1.1 408");
        assert_eq!(server.stop().0, Some(0));
    });
}
