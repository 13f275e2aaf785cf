//! What only counters tell: each provoked on this kernel, silent before and after.
use crate::bed::{Bed, bed, found, transfer, until, write};
use crate::{apply, assert_healthy, findings, has, ids};
use interop::Direction;
use interop::ends::{Serve, ServerEnd as _};
use interop::hook::{drop_if, pass};
use interop::netns::Host;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

const RTT: Duration = Duration::from_millis(4);

/// A window in which so many segments go out.
fn while_sending(host: &Host, segments: u64) -> Vec<doctor::Finding> {
    let sent = || host.run(doctor::sources::procfs).counters["TcpOutSegs"];
    let begun = sent();
    found(host, || until("segments", || sent() > begun + segments))
}

#[test]
fn losses_on_the_path_are_found() {
    let Some(bed) = bed(RTT) else { return };
    let client = bed.client.host.share();
    transfer(bed.connection(80), write, || {
        assert!(!has(&while_sending(&client, 1100), "CC-07"));
        let mut number = 0;
        bed.wire.set_hook(drop_if(move |_, segment| {
            number += u32::from(!segment.payload.is_empty());
            number % 40 == 39
        }));
        // What went out before is acknowledged first.
        until("CC-07", || has(&while_sending(&client, 1100), "CC-07"));
        bed.wire.set_hook(pass());
        until("the end of repairs", || !has(&while_sending(&client, 1100), "CC-07"));
    });
}

#[test]
fn connects_that_nobody_answers_are_found() {
    let Some(bed) = bed(RTT) else { return };
    let address = bed.address(80);
    let _listener = bed.server.host.run(|| TcpListener::bind(address).unwrap());
    let connects = || {
        std::thread::scope(|scope| {
            for _ in 0..12 {
                let client = bed.client.host.share();
                scope.spawn(move || {
                    client.run(|| TcpStream::connect_timeout(&address, Duration::from_millis(1500)).is_ok())
                });
            }
        });
    };
    assert_healthy(&bed.at_client(connects));
    bed.wire.set_hook(drop_if(|direction, _| direction == Direction::ToClient));
    let found = bed.at_client(connects);
    assert!(has(&found, "CC-12"), "{:?}", ids(&found));
    bed.wire.set_hook(pass());
    assert_healthy(&bed.at_client(connects));
}

#[test]
fn programs_that_close_with_unread_data_are_found() {
    testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let serve = |reads: bool| {
            for _ in 0..25 {
                let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                let mut server = listener.accept().unwrap().0;
                client.write_all(b"x").unwrap();
                if reads {
                    server.read_exact(&mut [0]).unwrap();
                } else {
                    server.peek(&mut [0]).unwrap();
                }
            }
        };
        assert_healthy(&findings(|| serve(true)));
        let found = findings(|| serve(false));
        assert!(has(&found, "ST-09"), "{:?}", ids(&found));
        assert_healthy(&findings(|| serve(true)));
    });
}

#[test]
fn a_queue_of_our_own_that_drops_is_found() {
    let Some(bed) = bed(RTT) else { return };
    let client = bed.client.host.share();
    let tc = |command: &str| client.run(|| crate::shell(&format!("tc qdisc {command}")));
    transfer(bed.connection(80), write, || {
        assert!(!has(&while_sending(&client, 100), "TX-01"));
        tc("add dev tun0 root tbf rate 1mbit burst 5k limit 4k");
        until("a drop", || has(&found(&client, || std::thread::sleep(Duration::from_millis(100))), "TX-01"));
        tc("del dev tun0 root");
        assert!(!has(&while_sending(&client, 100), "TX-01"));
    });
}

#[test]
fn syns_dropped_without_cookies_are_found() {
    let Some(bed) = bed(RTT) else { return };
    bed.server.host.sysctl("net.ipv4.tcp_syncookies", "0");
    let address = bed.address(80);
    let _listener = bed.server.host.run(|| crate::accept::listener_at(address, 8));
    assert!(!has(&bed.at_server(|| {}), "ACC-08"));
    let flood = |sources| {
        let drops = || {
            bed.server.host.counters().of("TCPReqQFullDrop")
                + bed.server.host.counters().of("TCPReqQFullDoCookies")
        };
        let begun = drops();
        crate::half_open::flood(&bed, 80, sources);
        until("a full queue", || drops() > begun);
    };
    let found = bed.at_server(|| flood(1000..1050));
    assert!(has(&found, "ACC-08"), "{:?}", ids(&found));
    bed.server.host.run(|| apply(&found, "ACC-08"));
    let found = bed.at_server(|| flood(2000..2050));
    assert!(!has(&found, "ACC-08"), "{:?}", ids(&found));
}

const HELLO: &[u8] = b"hello?";

/// A visit by hand: what cookie there is, and data. Did a reply come in time?
fn visit(bed: &Bed, timeout: Duration) -> bool {
    let address = bed.address(80);
    bed.client.host.run(|| {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::TCP)).unwrap();
        for side in [Timeout::Send, Timeout::Recv] {
            set_socket_timeout(&socket, side, Some(timeout)).unwrap();
        }
        // MSG_FASTOPEN (include/linux/socket.h).
        let sent = sendto(&socket, HELLO, SendFlags::from_bits_retain(0x2000_0000), &address);
        sent.is_ok() && TcpStream::from(socket).read(&mut [0; 9]).is_ok()
    })
}

/// A server of Fast Open whose client holds a cookie.
fn served(qlen: u32) -> Option<Bed> {
    let mut bed = bed(RTT)?;
    bed.server.host.sysctl("net.ipv4.tcp_fastopen_key", "1-2-3-4");
    bed.server.serve(&Serve { qlen, expect: HELLO.len(), ..Serve::new() });
    assert!(visit(&bed, Duration::from_secs(5)));
    Some(bed)
}

#[test]
fn a_rotation_of_keys_is_told_until_clients_have_the_new_one() {
    let Some(bed) = served(16) else { return };
    let visited = || bed.at_server(|| assert!(visit(&bed, Duration::from_secs(5))));
    assert!(!has(&visited(), "TFO-09"));
    bed.server.host.sysctl("net.ipv4.tcp_fastopen_key", "5-6-7-8,1-2-3-4");
    let found = visited();
    assert!(has(&found, "TFO-09"), "{:?}", ids(&found));
    assert!(!has(&visited(), "TFO-09"));
}

#[test]
fn a_fast_open_queue_that_is_too_short_is_found() {
    let Some(bed) = served(1) else { return };
    assert!(!has(&bed.at_server(|| assert!(visit(&bed, Duration::from_secs(5)))), "TFO-06"));
    // Children whose client hears nothing stay in the queue.
    bed.wire.set_hook(drop_if(|direction, _| direction == Direction::ToClient));
    let found = bed.at_server(|| {
        for _ in 0..3 {
            assert!(!visit(&bed, Duration::from_millis(100)));
        }
    });
    assert!(has(&found, "TFO-06"), "{:?}", ids(&found));
    bed.wire.set_hook(pass());
    assert!(!has(&bed.at_server(|| {}), "TFO-06"));
}

#[test]
fn a_pause_of_fast_open_is_found_and_switched_off() {
    let Some(bed) = served(16) else { return };
    let client = &bed.client.host;
    client.sysctl("net.ipv4.tcp_fastopen_blackhole_timeout_sec", "60");
    client.sysctl("net.ipv4.tcp_syn_retries", "1");
    assert!(!has(&bed.at_client(|| {}), "TFO-13"));
    bed.wire.set_hook(drop_if(|direction, _| direction == Direction::ToServer));
    let lost = || assert!(!visit(&bed, Duration::from_secs(10)));
    let found = bed.at_client(lost);
    assert!(has(&found, "TFO-13"), "{:?}", ids(&found));
    client.run(|| apply(&found, "TFO-13"));
    assert!(!has(&bed.at_client(lost), "TFO-13"));
}

#[test]
fn receive_queues_that_overflow_in_memory_are_found() {
    let Some(bed) = bed(RTT) else { return };
    let address = bed.address(80);
    let listener = bed.server.host.run(|| TcpListener::bind(address).unwrap());
    rustix::net::sockopt::set_socket_recv_buffer_size(&listener, 16384).unwrap();
    let client = bed.client.host.run(|| TcpStream::connect(address).unwrap());
    let mut server = listener.accept().unwrap().0;
    assert!(!has(&bed.at_server(|| {}), "WIN-11"));
    // Many short segments take more memory than the window says, as long as nobody reads.
    client.set_nodelay(true).unwrap();
    client.set_nonblocking(true).unwrap();
    let send = || while rustix::net::send(&client, &[0; 100], SendFlags::EOR).is_ok() {};
    until("WIN-11", || {
        send();
        has(&bed.at_server(|| std::thread::sleep(Duration::from_millis(100))), "WIN-11")
    });
    client.shutdown(std::net::Shutdown::Write).unwrap();
    std::io::copy(&mut server, &mut std::io::sink()).unwrap();
    assert!(!has(&bed.at_server(|| {}), "WIN-11"));
}
