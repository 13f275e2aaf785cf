//! `firstbyte explain` by the kernel's sockets behind middleboxes, to a server in each state that Fast Open knows.
use crate::{firstbyte, stderr, stdout};
use firstbyte::device::Device as _;
use firstbyte::device::tun::Tun;
use interop::direction::Direction;
use interop::hook::{self, Hook, drop_if};
use interop::netns::{Addresses, Host};
use interop::path::Wire;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

struct Bed {
    client: Host,
    server: Host,
    wire: Wire,
    listener: TcpListener,
}

/// `None`: skipped, and said.
fn bed() -> Option<Bed> {
    bed_with(|_| {})
}

/// As [`bed`], with a server that is prepared before it listens.
fn bed_with(prepare: impl FnOnce(&Host)) -> Option<Bed> {
    if let Err(reason) = testnet::can() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs root and /dev/net/tun ({reason})");
        return None;
    }
    let ((client, client_side), (server, server_side)) =
        (Host::new(Addresses::nth(1)), Host::new(Addresses::nth(2)));
    server.sysctl("net.ipv4.tcp_fastopen", "1027");
    prepare(&server);
    let wire = Wire::new(client_side, server_side, Duration::from_millis(5));
    let address = SocketAddr::new(server.addresses.v4.into(), 80);
    let listener = server.run(|| TcpListener::bind(address).unwrap());
    let serving = listener.try_clone().unwrap();
    std::thread::spawn(move || {
        for mut stream in serving.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 2000]).and_then(|_| stream.write_all(b"hello"));
            });
        }
    });
    Some(Bed { client, server, wire, listener })
}

impl Bed {
    fn run(&self, arguments: &[&str]) -> std::process::Output {
        self.client.output(firstbyte().args([&["explain", "10.77.0.2:80"], arguments].concat()))
    }

    /// What the verdict is, by its JSON; and the visits.
    #[track_caller]
    fn cause(&self) -> (String, Value) {
        let output = self.run(&["--json"]);
        let report: Value = serde_json::from_str(stdout(&output))
            .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
        (report["verdict"]["cause"].as_str().unwrap().to_owned(), report)
    }

    /// One with the cookie, by hand; from the client's namespace.
    fn visit(&self, timeout: Duration) -> std::io::Result<usize> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::TCP))?;
        for side in [Timeout::Send, Timeout::Recv] {
            set_socket_timeout(&socket, side, Some(timeout))?;
        }
        let server = SocketAddr::new(self.server.addresses.v4.into(), 80);
        // MSG_FASTOPEN (include/linux/socket.h).
        sendto(&socket, b"hello?", SendFlags::from_bits_retain(0x2000_0000), &server)?;
        TcpStream::from(socket).read(&mut [0; 9])
    }

    #[track_caller]
    fn fetch_cookie(&self) {
        let (cause, report) = self.cause();
        assert_eq!(cause, "works", "{report:#}");
    }
}

/// What a path does to the kernel's SYNs, before and after it has a cookie.
#[test]
fn the_kernels_sockets_name_each_middlebox() {
    let option_dropped = || drop_if(|_, segment| segment.is_syn() && segment.fast_open.is_some());
    let deaf = || drop_if(|direction, _| direction == Direction::ToClient);
    let cases: [(&str, Hook); 4] = [
        ("data_dropped", hook::drop_syn_data()),
        ("option_dropped", option_dropped()),
        ("not_offered", hook::strip_fast_open()),
        ("unreachable", deaf()),
    ];
    std::thread::scope(|scope| {
        for (expected, hook) in cases {
            scope.spawn(move || {
                let Some(bed) = bed() else { return };
                bed.wire.set_hook(hook);
                let (cause, report) = bed.cause();
                assert_eq!(cause, expected, "{report:#}");
            });
        }
    });
}

/// A server that changes while the client holds its cookie.
#[test]
fn an_old_cookie_meets_each_state_of_the_server() {
    type Change = fn(&Bed);
    let cases: [(&str, &str, Change); 5] = [
        ("works", "a new key, and the old one is its second", |bed| {
            let key =
                bed.server.run(|| std::fs::read_to_string("/proc/sys/net/ipv4/tcp_fastopen_key").unwrap());
            let keys = format!("00000000-00000000-00000000-00000007,{}", key.trim());
            bed.server.sysctl("net.ipv4.tcp_fastopen_key", &keys);
        }),
        ("ignored", "a path that takes the option away", |bed| bed.wire.set_hook(hook::strip_fast_open())),
        ("ignored", "tcp_syncookies 2", |bed| bed.server.sysctl("net.ipv4.tcp_syncookies", "2")),
        ("ignored", "Fast Open was taken out", |bed| bed.server.sysctl("net.ipv4.tcp_fastopen", "1")),
        ("key_changed", "a key of its own", |bed| {
            bed.server.sysctl("net.ipv4.tcp_fastopen_key", "00000000-00000000-00000000-00000007");
        }),
    ];
    std::thread::scope(|scope| {
        for (expected, state, change) in cases {
            scope.spawn(move || {
                let Some(bed) = bed() else { return };
                bed.fetch_cookie();
                change(&bed);
                let (cause, report) = bed.cause();
                assert_eq!(cause, expected, "{state}: {report:#}");
            });
        }
    });
}

/// Nobody listens any more; the cookie makes no difference.
#[test]
fn an_old_cookie_at_a_port_where_nobody_listens_is_refused() {
    let Some(bed) = bed() else { return };
    bed.fetch_cookie();
    rustix::net::shutdown(&bed.listener, rustix::net::Shutdown::Both).unwrap();
    assert_eq!(bed.cause().0, "refused");
}

/// Linux counts a connection that was reset by its peer for a minute more (RFC 7413 §5.1).
#[test]
fn a_full_queue_ignores_the_cookie() {
    // The queue of Fast Open is as long as the other (bit 0x400 of tcp_fastopen).
    let Some(bed) = bed_with(|server| server.sysctl("net.core.somaxconn", "1")) else { return };
    bed.fetch_cookie();
    bed.wire.set_hook(drop_if(|direction, _| direction == Direction::ToClient));
    bed.client.run(|| assert!(bed.visit(Duration::from_millis(300)).is_err(), "it hears nothing"));
    bed.wire.set_hook(hook::pass());
    let before = bed.server.counters();
    let (cause, report) = bed.cause();
    let name = "TCPFastOpenListenOverflow";
    assert!(bed.server.counters().of(name) > before.of(name), "{report:#}");
    assert_eq!(cause, "ignored", "{report:#}");
}

/// Half of the servers behind an address have another key.
#[test]
fn keys_that_differ_behind_a_balancer_are_told_from_a_key_that_changed() {
    let Some(bed) = bed() else { return };
    let server = bed.server.share();
    let keys = ["00000000-00000000-00000000-00000001", "00000000-00000000-00000000-00000002"];
    server.sysctl("net.ipv4.tcp_fastopen_key", keys[0]);
    let mut with_data = 0;
    bed.wire.set_hook(Box::new(move |direction, segment, _| {
        if direction == Direction::ToServer && segment.is_syn() && !segment.payload.is_empty() {
            server.sysctl("net.ipv4.tcp_fastopen_key", keys[with_data % 2]);
            with_data += 1;
        }
        hook::Verdict::Pass
    }));
    let (cause, report) = bed.cause();
    assert_eq!(cause, "keys_differ", "{report:#}");
}

#[test]
fn a_lost_syn_ack_is_no_middlebox() {
    let Some(bed) = bed() else { return };
    bed.fetch_cookie();
    let mut with_data = false;
    bed.wire.set_hook(drop_if(move |direction, segment| {
        with_data |= direction == Direction::ToServer && segment.is_syn() && !segment.payload.is_empty();
        // Once, for the first that takes data.
        direction == Direction::ToClient && segment.is_syn_ack() && std::mem::take(&mut with_data)
    }));
    let (cause, report) = bed.cause();
    assert_eq!((cause.as_str(), &report["visits"][1]["syns"]), ("works", &2.into()), "{report:#}");
}

/// A connect with data whose SYNs get no answer makes Linux doubt Fast Open, for as long as `tcp_fastopen_blackhole_timeout_sec` says.
#[test]
fn the_kernels_own_pause_is_not_taken_for_the_servers_doing() {
    let Some(bed) = bed() else { return };
    bed.client.sysctl("net.ipv4.tcp_fastopen_blackhole_timeout_sec", "60");
    bed.client.sysctl("net.ipv4.tcp_syn_retries", "1");
    bed.fetch_cookie();
    bed.wire.set_hook(drop_if(|direction, _| direction == Direction::ToServer));
    bed.client.run(|| assert!(bed.visit(Duration::from_secs(10)).is_err(), "nothing answers"));
    bed.wire.set_hook(hook::pass());
    assert_eq!(bed.client.counters().of("TCPFastOpenBlackhole"), 1);
    let (cause, report) = bed.cause();
    assert_eq!(cause, "paused", "{report:#}");
}

/// A router before the middlebox: it sees SYNs with data, and nobody behind it does.
#[test]
fn syns_with_a_small_hop_limit_find_the_last_router_that_sees_them() {
    let Some(bed) = bed() else { return };
    bed.client.sysctl("net.ipv4.ip_forward", "1");
    let mut route = testnet::command("ip");
    let back =
        bed.server.output(route.args(["route", "add", "10.79.0.0/24", "via", "10.77.0.1", "dev", "tun0"]));
    assert!(back.status.success(), "{}", stderr(&back));
    bed.wire.set_hook(hook::drop_syn_data());
    let page = std::env::temp_dir().join(format!("firstbyte-explain-{}.html", std::process::id()));
    let arguments = ["--tun", "probe0", "--address", "10.79.0.2/24", "--timeout", "300ms", "--html"];
    let output = bed.run(&[&arguments[..], &[page.to_str().unwrap()]].concat());
    let said = stdout(&output);
    assert!(said.contains("drops SYNs that carry data."), "{said}{}", stderr(&output));
    assert!(
        said.contains(
            "hop limit:\n  1: 10.79.0.1 has seen it\n  2: lost before, or at a router that says nothing\n"
        ),
        "{said}"
    );
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("drops SYNs that carry data.") && html.contains("SYN with the cookie"), "{html}");
    assert!(html.contains("10.79.0.1 has seen it") && html.matches("<svg").count() >= 4);
    std::fs::remove_file(page).unwrap();
}

/// A device of this address in a host, and its other side, for a wire.
fn device(host: &Host, name: &str, address: [u8; 4]) -> OwnedFd {
    let opened =
        host.run(|| Tun::builder().name(name).offload(false).address(address.into(), 24).open().unwrap());
    // The device goes with its last descriptor.
    opened.as_fd().unwrap().try_clone_to_owned().unwrap()
}

fn route(host: &Host, to: &str, via: &str) {
    let added = host.output(testnet::command("ip").args(["route", "add", to, "via", via]));
    assert!(added.status.success(), "{to} via {via}: {}", stderr(&added));
}

/// Client, three routers and server in a row, each pair joined by a wire; a middlebox between the second router and the third.
#[test]
fn a_middlebox_between_routers_is_found_by_the_last_that_sees_the_syn() {
    if let Err(reason) = testnet::can() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs root and /dev/net/tun ({reason})");
        return;
    }
    let hosts: Vec<Host> = (1..=5).map(|number| Host::bare(Addresses::nth(number))).collect();
    let wires: Vec<Wire> = (0..4_u8)
        .map(|number| {
            let left = device(&hosts[usize::from(number)], "right", [10, 80, number, 1]);
            let right = device(&hosts[usize::from(number) + 1], "left", [10, 80, number, 2]);
            Wire::new(left, right, Duration::from_millis(1))
        })
        .collect();
    for (at, host) in hosts.iter().enumerate() {
        host.sysctl("net.ipv4.ip_forward", "1");
        if at < 3 {
            route(host, "10.80.3.0/24", &format!("10.80.{at}.2"));
        }
        if at > 0 {
            route(host, "10.79.0.0/24", &format!("10.80.{}.1", at - 1));
        }
    }
    let server = &hosts[4];
    server.sysctl("net.ipv4.tcp_fastopen", "1027");
    let _listener = server.run(|| TcpListener::bind("10.80.3.2:80").unwrap());
    wires[2].set_hook(hook::drop_syn_data());
    let mut explain = firstbyte();
    explain.args(["explain", "10.80.3.2:80", "--tun", "probe0", "--address", "10.79.0.2/24"]);
    let output = hosts[0].output(explain.args(["--timeout", "300ms"]));
    let said = stdout(&output);
    let hops = "hop limit:\n  1: 10.79.0.1 has seen it\n  2: 10.80.0.2 has seen it\n  3: 10.80.1.2 has seen it\n  \
                4: lost before, or at a router that says nothing\n";
    assert!(said.contains("drops SYNs that carry data."), "{said}{}", stderr(&output));
    assert!(said.contains(hops), "{said}");
}
