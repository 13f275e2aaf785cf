//! Readers that do not read, buffers that are too small.
use crate::bed::{bed, once_gone, transfer, within, write};
use crate::shown::Show;
use crate::{assert_healthy, findings, ids};
use doctor::sources;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

pub(crate) fn a_reader_that_sleeps_is_found_at_both_ends(show: &Show) {
    testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        client.set_nonblocking(true).unwrap();
        let found = findings(|| {});
        assert_healthy(&found);
        show.silent(&["WIN-09", "WIN-10"], &found);
        let mut written = 0;
        let found = findings(|| {
            // Until the window is closed and the writer probes it: the kernel's own time.
            let begun = Instant::now();
            while !sources::here().sockets.iter().any(|socket| socket.probing) {
                assert!(begun.elapsed() < Duration::from_secs(20), "no probe of a closed window");
                match client.write(&[0; 65536]) {
                    Ok(taken) => written += taken,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
                    Err(error) => panic!("{error}"),
                }
            }
        });
        show.fires(&["WIN-09"], &found);
        // The persist timer runs in both samples.
        show.fires(&["WIN-10"], &findings(|| {}));
        let mut buffer = vec![0; 1 << 20];
        while written > 0 {
            written -= server.read(&mut buffer).unwrap();
        }
        show.by_hand(&["WIN-09", "WIN-10"]);
        show.gone(&["WIN-09", "WIN-10"], &findings(|| {}));
    });
}

/// A rule that must fire comes within so many windows, one that must not stays away for a few.
const MANY: usize = 60;
const FEW: usize = 2;

pub(crate) fn a_connection_without_window_scaling_is_found(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(12)) else { return };
    let client = bed.client.host.share();
    let look = |port, windows| transfer(bed.connection(port), write, || within(&client, windows, "WIN-02"));
    show.silent(&["WIN-02"], &look(79, FEW));
    bed.server.host.sysctl("net.ipv4.tcp_window_scaling", "0");
    show.fires(&["WIN-02"], &look(80, MANY));
    bed.server.host.sysctl("net.ipv4.tcp_window_scaling", "1");
    show.by_hand(&["WIN-02"]);
    show.gone(&["WIN-02"], &look(81, FEW));
}

pub(crate) fn a_receive_window_that_holds_the_sender_is_found(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(20)) else { return };
    let client = bed.client.host.share();
    let look =
        |port, windows| transfer(bed.connection(port), send_apart, || within(&client, windows, "WIN-03"));
    // With this maximum the sender's own buffer is by far the smaller one, also of a receiver that seldom runs.
    bed.client.host.sysctl("net.ipv4.tcp_wmem", "4096 16384 16384");
    // A connection has to be busy for a second.
    show.silent(&["WIN-03"], &look(79, 10));
    bed.client.host.sysctl("net.ipv4.tcp_wmem", "4096 16384 4194304");
    bed.server.host.sysctl("net.ipv4.tcp_rmem", "4096 32768 32768");
    show.fires(&["WIN-03"], &look(80, MANY));
    bed.client.host.sysctl("net.ipv4.tcp_wmem", "4096 16384 16384");
    bed.server.host.sysctl("net.ipv4.tcp_rmem", "4096 131072 33554432");
    show.by_hand(&["WIN-03"]);
    show.gone(&["WIN-03"], &look(81, 10));
}

pub(crate) fn a_fixed_receive_buffer_is_found(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(20)) else { return };
    let server = bed.server.host.share();
    let connection = |port, fixed| {
        let address = bed.address(port);
        let listener = server.run(|| TcpListener::bind(address).unwrap());
        if fixed {
            rustix::net::sockopt::set_socket_recv_buffer_size(&listener, 16384).unwrap();
        }
        let client = bed.client.host.run(|| TcpStream::connect(address).unwrap());
        (client, listener.accept().unwrap().0)
    };
    let look = |port, fixed, windows| {
        transfer(connection(port, fixed), write, || within(&server, windows, "WIN-07"))
    };
    show.silent(&["WIN-07"], &look(79, false, FEW));
    show.fires(&["WIN-07"], &look(80, true, MANY));
    show.by_hand(&["WIN-07"]);
    show.gone(&["WIN-07"], &look(81, false, FEW));
}

pub(crate) fn a_fixed_send_buffer_is_found(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(20)) else { return };
    let client = bed.client.host.share();
    let look = |ends, windows| transfer(ends, send_apart, || within(&client, windows, "WIN-06"));
    show.silent(&["WIN-06"], &look(bed.connection(79), FEW));
    let fixed = bed.connection(80);
    rustix::net::sockopt::set_socket_send_buffer_size(&fixed.0, 16384).unwrap();
    show.fires(&["WIN-06"], &look(fixed, MANY));
    show.by_hand(&["WIN-06"]);
    show.gone(&["WIN-06"], &look(bed.connection(81), FEW));
}

/// Each write is a buffer of the kernel's own, as many programs have it: a plain write extends the last one past the limit.
fn send_apart(to: &TcpStream) -> bool {
    rustix::net::send(to, &[0; 1448], rustix::net::SendFlags::EOR).is_ok()
}

/// A link between the client and the path: what a round trip of 20 ms holds of it is 20 kB.
const SLOW: &str = "tc qdisc add dev tun0 root tbf rate 8mbit burst 15k limit 30k";

pub(crate) fn a_maximum_that_holds_the_receiver_is_found(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(20)) else { return };
    let server = bed.server.host.share();
    bed.client.host.run(|| crate::shell(SLOW));
    let look = |port, windows| transfer(bed.connection(port), write, || within(&server, windows, "WIN-04"));
    show.silent(&["WIN-04"], &look(79, FEW));
    server.sysctl("net.ipv4.tcp_rmem", "4096 32768 32768");
    show.fires(&["WIN-04"], &look(80, MANY));
    server.run(|| show.run(&["WIN-04"]));
    show.gone(&["WIN-04"], &look(81, 6));
}

pub(crate) fn a_maximum_that_holds_the_sender_is_found(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(20)) else { return };
    let client = bed.client.host.share();
    // What the receiver's window holds is more than the smallest buffer of the sender and less than the larger ones.
    bed.server.host.sysctl("net.ipv4.tcp_rmem", "4096 32768 32768");
    let look =
        |port, windows| transfer(bed.connection(port), send_apart, || within(&client, windows, "WIN-05"));
    show.silent(&["WIN-05"], &look(79, FEW));
    client.sysctl("net.ipv4.tcp_wmem", "4096 16384 16384");
    show.fires(&["WIN-05"], &look(80, MANY));
    client.run(|| show.run(&["WIN-05"]));
    show.gone(&["WIN-05"], &look(81, 6));
}

pub(crate) fn a_buffer_cut_by_the_hosts_maximum_is_told(show: &Show) {
    testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        let found = findings(|| {});
        assert_healthy(&found);
        show.silent(&["WIN-16"], &found);
        rustix::net::sockopt::set_socket_send_buffer_size(&client, 1 << 29).unwrap();
        let found = findings(|| {});
        assert_eq!(ids(&found), ["WIN-16"]);
        show.fires(&["WIN-16"], &found);
        // Without the option.
        drop((client, server));
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        show.by_hand(&["WIN-16"]);
        show.gone(&["WIN-16"], &once_gone(&["WIN-16"], || findings(|| {})));
    });
}
