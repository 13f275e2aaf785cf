//! The examples with the kernel's TCP as peer, over a TUN device in a network namespace.

use crate::compile::{Link, program, succeed};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::thread;
use testnet::{command, counters, in_namespace, sysctl};

const STACK: &str = "device tun0; device-address 10.0.0.1/24; device-address fd00::1/64\n\
                     address 10.0.0.2/24; address fd00::2/64";

struct Server(Child);

impl Server {
    /// Starts the example, which listens on port 7.
    fn start(stack: &str) -> Server {
        let mut child = command(program("examples/echo_server.c", Link::Shared))
            .args(["7", stack])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "listening on port 7\n");
        Server(child)
    }

    /// Ends it with SIGTERM, and checks its exit status.
    fn stop(mut self) {
        succeed(command("kill").arg(self.0.id().to_string()));
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn echoed(to: IpAddr, bytes: &[u8]) {
    let mut stream = TcpStream::connect(SocketAddr::new(to, 7)).unwrap();
    let mut writer = stream.try_clone().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            writer.write_all(bytes).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        assert!(back == bytes, "{} of {} bytes came back", back.len(), bytes.len());
    });
}

#[test]
fn a_hundred_connections_of_the_kernel_at_once_are_echoed() {
    in_namespace(|| {
        let server = Server::start(STACK);
        let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at * 7 % 251) as u8).collect();
        thread::scope(|scope| {
            for at in 0..100 {
                let to = if at % 2 == 0 { "10.0.0.2" } else { "fd00::2" };
                let bytes = &bytes[at * 100..];
                scope.spawn(move || echoed(to.parse().unwrap(), bytes));
            }
        });
        server.stop();
    });
}

#[test]
fn a_kernel_client_has_its_data_taken_off_the_syn() {
    if !testnet::has_program("python3") {
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs python3: Fast Open from the kernel's client");
        return;
    }
    const CLIENT: &str = "import socket\n\
        for visit in range(2):\n    \
            s = socket.socket()\n    \
            s.sendto(b'hello', socket.MSG_FASTOPEN, ('10.0.0.2', 7))\n    \
            s.shutdown(socket.SHUT_WR)\n    \
            assert s.recv(100) == b'hello' and s.recv(100) == b''\n";
    in_namespace(|| {
        sysctl("net.ipv4.tcp_fastopen", "1");
        let server = Server::start(STACK);
        let before = counters();
        succeed(command("python3").args(["-c", CLIENT]));
        assert_eq!(counters().of("TCPFastOpenActive") - before.of("TCPFastOpenActive"), 1);
        server.stop();
    });
}

#[test]
fn the_client_says_whether_the_kernel_took_its_request_off_the_syn() {
    in_namespace(|| {
        // 0x400: every listener has a Fast Open queue.
        sysctl("net.ipv4.tcp_fastopen", "0x403");
        let listener = TcpListener::bind("0.0.0.0:7").unwrap();
        let before = counters();
        let server = thread::spawn(move || {
            for _ in 0..3 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = Vec::new();
                // The end of the stream: the client is done, or its process ended normally.
                stream.read_to_end(&mut request).unwrap();
                stream.write_all(&request).unwrap();
            }
        });
        let cache = std::env::temp_dir().join(format!("firstbyte-capi-{}", std::process::id()));
        let client = program("examples/fast_open_client.c", Link::Shared);
        let stack = format!("{STACK}; cache {}", cache.display());
        let visit = |times: &str| succeed(command(&client).args(["10.0.0.1", "7", "hello", times, &stack]));
        let seen = visit("2");
        assert_eq!(seen, "1: not on the SYN, 5 bytes of reply\n2: accepted on the SYN, 5 bytes of reply\n");
        assert_eq!(
            visit("1"),
            "1: accepted on the SYN, 5 bytes of reply\n",
            "the cookie outlived the process"
        );
        server.join().unwrap();
        std::fs::remove_file(cache).unwrap();
        assert_eq!(counters().of("TCPFastOpenPassive") - before.of("TCPFastOpenPassive"), 2);
    });
}

#[test]
fn a_live_connection_goes_from_the_library_to_the_kernel_and_back() {
    in_namespace(|| {
        // For a while the same machine has both addresses.
        succeed(&mut command(program("tests/c/moving.c", Link::Shared)));
    });
}

#[test]
fn signed_connections_are_understood_by_the_kernel() {
    in_namespace(|| {
        succeed(&mut command(program("tests/c/signed.c", Link::Shared)));
    });
}

#[test]
fn a_device_outlives_neither_a_fork_nor_its_own_end() {
    in_namespace(|| {
        succeed(&mut command(program("tests/c/device.c", Link::Shared)));
    });
}
