//! Memory of `firstbyte serve` with thousands of idle clients.
use crate::hostile::ask;
use crate::{Server, firstbyte};
use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Most clients, limited by the descriptors of this process.
const CLIENTS: u64 = 6000;
/// Most memory per idle connection, bytes: of the engine, the library, and the server.
const EACH_MAX: u64 = 6 * 1024;

/// Idle clients take no buffers, before a request and between requests; memory is returned when
/// they close.
#[test]
fn idle_connections_are_small_and_their_memory_is_given_back() {
    testnet::in_namespace(|| {
        let clients = CLIENTS.min(raise_descriptor_limit() - 200);
        for asks in [false, true] {
            let more = clients + 100;
            let more = more.to_string();
            let arguments =
                ["--quiet", "--timeout", "300s", "--max-connections", &more, "--max-per-address", &more];
            let server = Server::start_by(firstbyte(), &arguments);
            // Excludes memory that only the first connections need.
            drop((0..50).map(|_| client(asks)).collect::<Vec<_>>());
            let before = resident(&server);
            let all: Vec<TcpStream> = (0..clients).map(|_| client(asks)).collect();
            let peak = resident(&server);
            let each = peak.saturating_sub(before) / clients;
            assert!(each <= EACH_MAX, "{each} bytes each, asks: {asks}");
            drop(all);
            let begun = Instant::now();
            while resident(&server) > before + (peak - before) * 4 / 5 {
                assert!(begun.elapsed() < Duration::from_secs(60), "{before}, {peak}, {}", resident(&server));
                std::thread::sleep(Duration::from_millis(100));
                // An idle server does not return memory by itself.
                drop(client(asks));
            }
            assert_eq!(server.stop().0, Some(0));
        }
    });
}

fn client(asks: bool) -> TcpStream {
    let mut stream = crate::hostile::connect();
    if asks {
        ask(&mut stream, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(stream.read(&mut [0; 4096]).unwrap() > 100);
    }
    stream
}

/// Resident memory, bytes.
fn resident(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

/// Raises the limit of descriptors. Returns the new limit.
fn raise_descriptor_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    limit.maximum.unwrap_or(u64::MAX)
}
