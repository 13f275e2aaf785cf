//! Problems that only counters show. Each is provoked on this kernel, and is silent before and
//! after.
use crate::bed::{Bed, bed, found, once_found, once_gone, transfer, until, write};
use crate::shown::Show;
use crate::{assert_healthy, findings};
use interop::Direction;
use interop::ends::{Serve, ServerEnd as _};
use interop::hook::{drop_if, pass};
use interop::netns::Host;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with};
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

const RTT: Duration = Duration::from_millis(4);

/// Returns the findings of a window in which this many segments are sent.
fn while_sending(host: &Host, segments: u64) -> Vec<doctor::Finding> {
    let sent = || host.run(doctor::sources::procfs).counters["TcpOutSegs"];
    let begun = sent();
    found(host, || until("segments", || sent() > begun + segments))
}

pub(crate) fn losses_on_the_path_are_found(show: &Show) {
    let Some(bed) = bed(RTT) else { return };
    let client = bed.client.host.share();
    // No more may be in flight than the device's queue holds.
    client.sysctl("net.ipv4.tcp_wmem", "4096 16384 131072");
    transfer(bed.connection(80), write, || {
        // On a loaded machine a path that rarely runs loses packets without a fault.
        show.silent(&["CC-07"], &once_gone(&["CC-07"], || while_sending(&client, 1100)));
        let mut number = 0;
        bed.wire.set_hook(drop_if(move |_, segment| {
            number += u32::from(!segment.payload.is_empty());
            number % 40 == 39
        }));
        // Segments sent earlier are acknowledged first.
        show.fires(&["CC-07"], &once_found("CC-07", || while_sending(&client, 1100)));
        bed.wire.set_hook(pass());
        show.by_hand(&["CC-07"]);
        // After the last retransmissions.
        show.gone(&["CC-07"], &once_gone(&["CC-07"], || while_sending(&client, 1100)));
    });
}

pub(crate) fn connects_that_nobody_answers_are_found(show: &Show) {
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
    let found = bed.at_client(connects);
    assert_healthy(&found);
    show.silent(&["CC-12"], &found);
    bed.wire.set_hook(drop_if(|direction, _| direction == Direction::ToClient));
    show.fires(&["CC-12"], &bed.at_client(connects));
    bed.wire.set_hook(pass());
    show.by_hand(&["CC-12"]);
    show.gone(&["CC-12"], &bed.at_client(connects));
}

pub(crate) fn programs_that_close_with_unread_data_are_found(show: &Show) {
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
        let found = findings(|| serve(true));
        assert_healthy(&found);
        show.silent(&["ST-09"], &found);
        show.fires(&["ST-09"], &findings(|| serve(false)));
        show.by_hand(&["ST-09"]);
        show.gone(&["ST-09"], &findings(|| serve(true)));
    });
}

pub(crate) fn a_queue_of_our_own_that_drops_is_found(show: &Show) {
    let Some(bed) = bed(RTT) else { return };
    let client = bed.client.host.share();
    let tc = |command: &str| client.run(|| crate::shell(&format!("tc qdisc {command}")));
    transfer(bed.connection(80), write, || {
        show.silent(&["TX-01"], &while_sending(&client, 100));
        tc("add dev tun0 root tbf rate 1mbit burst 5k limit 4k");
        let look = || found(&client, || std::thread::sleep(Duration::from_millis(100)));
        show.fires(&["TX-01"], &once_found("TX-01", look));
        tc("change dev tun0 root tbf rate 10gbit burst 1m limit 16m");
        show.by_hand(&["TX-01"]);
        show.gone(&["TX-01"], &while_sending(&client, 100));
    });
}

pub(crate) fn syns_dropped_without_cookies_are_found(show: &Show) {
    let Some(bed) = bed(RTT) else { return };
    bed.server.host.sysctl("net.ipv4.tcp_syncookies", "0");
    let address = bed.address(80);
    let _listener = bed.server.host.run(|| crate::accept::listener_at(address, 8));
    show.silent(&["ACC-08"], &bed.at_server(|| {}));
    let flood = |sources| {
        let drops = || {
            bed.server.host.counters().of("TCPReqQFullDrop")
                + bed.server.host.counters().of("TCPReqQFullDoCookies")
        };
        let begun = drops();
        crate::half_open::flood(&bed, 80, sources);
        until("a full queue", || drops() > begun);
    };
    show.fires(&["ACC-08"], &bed.at_server(|| flood(1000..1050)));
    bed.server.host.run(|| show.run(&["ACC-08"]));
    show.gone(&["ACC-08"], &bed.at_server(|| flood(2000..2050)));
}

/// The acknowledgements of an established connection are lost. Only the sender can see this.
pub(crate) fn a_path_that_loses_everything_one_way_is_found(show: &Show) {
    let Some(bed) = bed(RTT) else { return };
    let (client, server) = bed.connection(80);
    let send = |bytes: &[u8]| (&client).write_all(bytes).unwrap();
    send(&[0; 20_000]);
    (&server).read_exact(&mut [0; 20_000]).unwrap();
    show.silent(&["CC-14"], &bed.at_client(|| {}));
    bed.wire.set_hook(drop_if(|direction, _| direction == Direction::ToClient));
    send(&[0; 100]);
    let found = once_found("CC-14", || bed.at_client(|| std::thread::sleep(Duration::from_millis(50))));
    show.fires(&["CC-14"], &found);
    assert_eq!((found[0].id.as_str(), found[0].scope.to_string()), ("CC-14", "peer 10.77.0.2".to_owned()));
    bed.wire.set_hook(pass());
    show.by_hand(&["CC-14"]);
    show.gone(&["CC-14"], &once_gone(&["CC-14"], || bed.at_client(|| {})));
}

/// No counter of a queue changes while nothing leaves it.
pub(crate) fn a_device_that_sends_nothing_is_found(show: &Show) {
    let Some(bed) = bed(RTT) else { return };
    let (mut from, _to) = bed.connection(80);
    let look = || bed.at_client(|| std::thread::sleep(Duration::from_millis(100)));
    show.silent(&["TX-02"], &look());
    let tc = |command: &str| bed.client.host.run(|| crate::shell(&format!("tc qdisc {command}")));
    // One byte per second, after the first packet.
    tc("add dev tun0 root tbf rate 8bit burst 2k limit 1m");
    from.write_all(&[0; 4000]).unwrap();
    let found = once_found("TX-02", look);
    show.fires(&["TX-02"], &found);
    let found = found.iter().find(|finding| finding.id == "TX-02").unwrap();
    assert!(found.formula.contains("nothing was sent in"), "{found:#?}");
    tc("del dev tun0 root");
    show.run_or(&["TX-02"], || {});
    tc("replace dev tun0 root pfifo");
    show.gone(&["TX-02"], &once_gone(&["TX-02"], look));
}

const HELLO: &[u8] = b"hello?";

/// Connects once with the cached cookie, if any, and data. Returns whether a reply came in time.
fn visit(bed: &Bed, port: u16, timeout: Duration) -> bool {
    let address = bed.address(port);
    bed.client.host.run(|| {
        let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, Some(ipproto::TCP)).unwrap();
        for side in [Timeout::Send, Timeout::Recv] {
            set_socket_timeout(&socket, side, Some(timeout)).unwrap();
        }
        // MSG_FASTOPEN (include/linux/socket.h).
        let sent = sendto(&socket, HELLO, SendFlags::from_bits_retain(0x2000_0000), &address);
        sent.is_ok() && TcpStream::from(socket).read(&mut [0; 9]).is_ok()
    })
}

/// Returns a server with Fast Open whose client holds a cookie.
fn served(qlen: u32) -> Option<Bed> {
    let mut bed = bed(RTT)?;
    bed.server.host.sysctl("net.ipv4.tcp_fastopen_key", "1-2-3-4");
    bed.server.serve(&Serve { qlen, expect: HELLO.len(), ..Serve::new() });
    assert!(visit(&bed, 80, Duration::from_secs(5)));
    Some(bed)
}

pub(crate) fn a_rotation_of_keys_is_told_until_clients_have_the_new_one(show: &Show) {
    let Some(bed) = served(16) else { return };
    let visited = || bed.at_server(|| assert!(visit(&bed, 80, Duration::from_secs(5))));
    show.silent(&["TFO-09"], &visited());
    bed.server.host.sysctl("net.ipv4.tcp_fastopen_key", "5-6-7-8,1-2-3-4");
    show.fires(&["TFO-09"], &visited());
    // The backup key stays, and the client has a new cookie.
    show.by_hand(&["TFO-09"]);
    show.gone(&["TFO-09"], &visited());
}

pub(crate) fn a_fast_open_queue_that_is_too_short_is_found(show: &Show) {
    let Some(mut bed) = served(1) else { return };
    bed.server.serve(&Serve { qlen: 16, port: 81, expect: HELLO.len(), ..Serve::new() });
    show.silent(&["TFO-06"], &bed.at_server(|| assert!(visit(&bed, 80, Duration::from_secs(5)))));
    // Connections whose client gets no packets stay in the queue.
    bed.wire.set_hook(drop_if(|direction, _| direction == Direction::ToClient));
    let visits = |port| {
        for _ in 0..3 {
            assert!(!visit(&bed, port, Duration::from_millis(100)));
        }
    };
    show.fires(&["TFO-06"], &bed.at_server(|| visits(80)));
    // The same on a port with a longer queue.
    show.by_hand(&["TFO-06"]);
    show.gone(&["TFO-06"], &bed.at_server(|| visits(81)));
}

pub(crate) fn a_pause_of_fast_open_is_found_and_switched_off(show: &Show) {
    let Some(bed) = served(16) else { return };
    let client = &bed.client.host;
    client.sysctl("net.ipv4.tcp_fastopen_blackhole_timeout_sec", "60");
    client.sysctl("net.ipv4.tcp_syn_retries", "1");
    show.silent(&["TFO-13"], &bed.at_client(|| assert!(visit(&bed, 80, Duration::from_secs(5)))));
    bed.wire.set_hook(drop_if(|direction, _| direction == Direction::ToServer));
    let lost = || assert!(!visit(&bed, 80, Duration::from_secs(10)));
    show.fires(&["TFO-13"], &bed.at_client(lost));
    client.run(|| show.run(&["TFO-13"]));
    show.gone(&["TFO-13"], &bed.at_client(lost));
}

pub(crate) fn receive_queues_that_overflow_in_memory_are_found(show: &Show) {
    let Some(bed) = bed(RTT) else { return };
    let address = bed.address(80);
    let listener = bed.server.host.run(|| TcpListener::bind(address).unwrap());
    rustix::net::sockopt::set_socket_recv_buffer_size(&listener, 16384).unwrap();
    let client = bed.client.host.run(|| TcpStream::connect(address).unwrap());
    let server = listener.accept().unwrap().0;
    let read_at_once = || {
        for _ in 0..100 {
            (&client).write_all(&[0; 100]).unwrap();
            (&server).read_exact(&mut [0; 100]).unwrap();
        }
    };
    show.silent(&["WIN-11"], &bed.at_server(read_at_once));
    // Unread, many short segments take more memory than the window allows for.
    client.set_nodelay(true).unwrap();
    client.set_nonblocking(true).unwrap();
    let sent = Cell::new(0);
    let send = || {
        while let Ok(bytes) = rustix::net::send(&client, &[0; 100], SendFlags::EOR) {
            sent.set(sent.get() + bytes as u64);
        }
    };
    let found = once_found("WIN-11", || {
        send();
        bed.at_server(|| std::thread::sleep(Duration::from_millis(100)))
    });
    show.fires(&["WIN-11"], &found);
    client.set_nonblocking(false).unwrap();
    std::io::copy(&mut (&server).take(sent.get()), &mut std::io::sink()).unwrap();
    show.by_hand(&["WIN-11"]);
    show.gone(&["WIN-11"], &bed.at_server(read_at_once));
}
