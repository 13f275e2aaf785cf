//! Readers that do not read, buffers that are too small.
use crate::bed::{bed, fires, transfer, write};
use crate::{assert_healthy, findings, has, ids};
use doctor::sources;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

#[test]
fn a_reader_that_sleeps_is_found_at_both_ends() {
    testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        client.set_nonblocking(true).unwrap();
        assert_healthy(&findings(|| {}));
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
        assert!(has(&found, "WIN-09"), "{:?}", ids(&found));
        assert!(has(&findings(|| {}), "WIN-10"), "the persist timer runs in both samples");
        let mut buffer = vec![0; 1 << 20];
        while written > 0 {
            written -= server.read(&mut buffer).unwrap();
        }
        assert_healthy(&findings(|| {}));
    });
}

/// A rule that must fire comes within so many windows, one that must not stays away for a few.
const MANY: usize = 60;
const FEW: usize = 4;

#[test]
fn a_connection_without_window_scaling_is_found() {
    let Some(bed) = bed(Duration::from_millis(12)) else { return };
    let client = bed.client.host.share();
    bed.server.host.sysctl("net.ipv4.tcp_window_scaling", "0");
    assert!(transfer(bed.connection(80), write, || fires(&client, "WIN-02", MANY)));
    bed.server.host.sysctl("net.ipv4.tcp_window_scaling", "1");
    assert!(!transfer(bed.connection(81), write, || fires(&client, "WIN-02", FEW)));
}

#[test]
fn a_receive_window_that_holds_the_sender_is_found() {
    let Some(bed) = bed(Duration::from_millis(20)) else { return };
    let client = bed.client.host.share();
    bed.server.host.sysctl("net.ipv4.tcp_rmem", "4096 32768 32768");
    assert!(transfer(bed.connection(80), write, || fires(&client, "WIN-03", MANY)));
    bed.server.host.sysctl("net.ipv4.tcp_rmem", "4096 131072 33554432");
    // Now the sender's own buffer is the smaller one.
    bed.client.host.sysctl("net.ipv4.tcp_wmem", "4096 16384 65536");
    assert!(!transfer(bed.connection(81), write, || fires(&client, "WIN-03", 10)));
}

#[test]
fn a_fixed_receive_buffer_is_found() {
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
    assert!(transfer(connection(80, true), write, || fires(&server, "WIN-07", MANY)));
    assert!(!transfer(connection(81, false), write, || fires(&server, "WIN-07", FEW)));
}

#[test]
fn a_fixed_send_buffer_is_found() {
    let Some(bed) = bed(Duration::from_millis(20)) else { return };
    let client = bed.client.host.share();
    // Each write is a buffer of the kernel's own, as many programs have it: a plain write extends the last one past the limit.
    let send = |to: &TcpStream| rustix::net::send(to, &[0; 1448], rustix::net::SendFlags::EOR).is_ok();
    let fixed = bed.connection(80);
    rustix::net::sockopt::set_socket_send_buffer_size(&fixed.0, 16384).unwrap();
    assert!(transfer(fixed, send, || fires(&client, "WIN-06", MANY)));
    assert!(!transfer(bed.connection(81), send, || fires(&client, "WIN-06", FEW)));
}

#[test]
fn a_buffer_cut_by_the_hosts_maximum_is_told() {
    testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        assert_healthy(&findings(|| {}));
        rustix::net::sockopt::set_socket_send_buffer_size(&client, 1 << 29).unwrap();
        assert_eq!(ids(&findings(|| {})), ["WIN-16"]);
        drop((client, server));
        assert!(findings(|| {}).is_empty());
    });
}
