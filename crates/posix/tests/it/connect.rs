//! `connect`, plain and with Fast Open: the errors of every state (Linux's `__inet_stream_connect`, `tcp_sendmsg_fastopen`).

use crate::wire::{DELAY, Wire, recv, send, send_with, server};
use posix::{Connect, Destination, Errno, Stop};
use std::time::Duration;

const FAST: i32 = libc::MSG_FASTOPEN;

#[test]
fn a_socket_that_does_not_wait_is_told_how_far_it_is() {
    let mut wire = Wire::new();
    wire.listen();
    let fd = wire.socket();
    assert_eq!(wire.connect(fd), Err(Errno::EINPROGRESS));
    assert_eq!(wire.connect(fd), Err(Errno::EALREADY));
    assert_eq!(send(&mut wire.client, wire.now, fd, b"x"), Err(Errno::EAGAIN));
    assert_eq!(recv(&mut wire.client, wire.now, fd, 1, 0), Err(Errno::EAGAIN));
    wire.run(DELAY * 2);
    assert_eq!(wire.connect(fd), Ok(()), "the first call after the handshake tells of it");
    assert_eq!(wire.connect(fd), Err(Errno::EISCONN));
    assert_eq!(wire.client.peer_name(fd), Ok(server()));
}

#[test]
fn a_refusal_is_told_once_and_the_socket_may_try_again() {
    let mut wire = Wire::new();
    let fd = wire.socket();
    assert_eq!(wire.connect(fd), Err(Errno::EINPROGRESS));
    wire.run(DELAY * 2);
    assert_eq!(send(&mut wire.client, wire.now, fd, b"x"), Err(Errno::ECONNREFUSED));
    assert_eq!(send(&mut wire.client, wire.now, fd, b"x"), Err(Errno::EPIPE));
    assert_eq!(recv(&mut wire.client, wire.now, fd, 1, 0), Ok(vec![]));
    assert_eq!(wire.connect(fd), Err(Errno::ECONNABORTED), "the error has been told");
    wire.listen();
    assert_eq!(wire.connect(fd), Err(Errno::EINPROGRESS));
    wire.run(DELAY * 2);
    assert_eq!(wire.connect(fd), Ok(()));
}

#[test]
fn silence_ends_after_the_retransmissions_of_the_syn() {
    let mut wire = Wire::new();
    wire.cut = true;
    let now = wire.now;
    wire.client.stack_mut().set(now, "net.ipv4.tcp_syn_linear_timeouts", "0").unwrap();
    let fd = wire.socket();
    let once = 1_i32.to_ne_bytes();
    wire.client.set_option(wire.now, fd, libc::IPPROTO_TCP, libc::TCP_SYNCNT, &once).unwrap();
    assert_eq!(wire.connect(fd), Err(Errno::EINPROGRESS));
    wire.run(Duration::from_millis(2_999));
    assert_eq!(wire.connect(fd), Err(Errno::EALREADY));
    wire.run(Duration::from_millis(1));
    assert_eq!(wire.connect(fd), Err(Errno::ETIMEDOUT));
    assert_eq!(wire.from_client, 2);
}

#[test]
fn a_socket_that_waits_does_so_until_its_time_is_over() {
    let mut wire = Wire::new();
    wire.cut = true;
    let fd = wire.client.socket(libc::AF_INET, libc::SOCK_STREAM, 0).unwrap();
    let timeout = [1_i64.to_ne_bytes(), 500_000_i64.to_ne_bytes()].concat();
    wire.client.set_option(wire.now, fd, libc::SOL_SOCKET, libc::SO_SNDTIMEO, &timeout).unwrap();
    let until = wire.now + Duration::from_millis(1_500);
    let mut call = Connect::new(fd, Some(server()));
    assert_eq!(call.attempt(&mut wire.client, wire.now), Err(Stop::Wait(Some(until))));
    wire.run(Duration::from_millis(1_500));
    assert_eq!(call.attempt(&mut wire.client, wire.now), Err(Errno::EINPROGRESS.into()));
}

/// Leaves a cookie in the client's cache.
fn warm_up(wire: &mut Wire) -> i32 {
    let listener = wire.listen();
    wire.server
        .set_option(wire.now, listener, libc::IPPROTO_TCP, libc::TCP_FASTOPEN, &5_i32.to_ne_bytes())
        .unwrap();
    let fd = wire.socket();
    let to = Destination::Address(server());
    let sent = send_with(&mut wire.client, wire.now, fd, b"hello", FAST, to);
    assert_eq!(sent, Err(Errno::EINPROGRESS), "no cookie: nothing was taken");
    wire.run(DELAY * 3);
    wire.client.close(wire.now, fd).unwrap();
    wire.run(DELAY * 4);
    let (first, _) = wire.server.accept(wire.now, listener, 0).unwrap();
    wire.server.close(wire.now, first).unwrap();
    wire.run(DELAY * 4);
    listener
}

#[test]
fn with_a_cookie_the_syn_takes_what_fits() {
    let mut wire = Wire::new();
    let listener = warm_up(&mut wire);
    let fd = wire.socket();
    let to = Destination::Address(server());
    // 1460 less the 40 bytes that Linux reserves for options.
    assert_eq!(send_with(&mut wire.client, wire.now, fd, &[7; 2000], FAST, to), Ok(1420));
    assert_eq!(send_with(&mut wire.client, wire.now, fd, b"x", FAST, to), Err(Errno::EALREADY));
    assert_eq!(send(&mut wire.client, wire.now, fd, b"x"), Err(Errno::EAGAIN));
    wire.run(DELAY);
    let (child, _) = wire.server.accept(wire.now, listener, libc::SOCK_NONBLOCK).unwrap();
    assert_eq!(
        recv(&mut wire.server, wire.now, child, 4096, 0).unwrap().len(),
        1420,
        "before the handshake is over"
    );
    wire.run(DELAY);
    assert_eq!(
        send_with(&mut wire.client, wire.now, fd, b"x", FAST, to),
        Ok(1),
        "tells that it is connected"
    );
    assert_eq!(send_with(&mut wire.client, wire.now, fd, b"x", FAST, to), Err(Errno::EISCONN));
}

#[test]
fn a_deferred_connect_waits_for_the_first_data() {
    let mut wire = Wire::new();
    warm_up(&mut wire);
    let fd = wire.socket();
    let on = 1_i32.to_ne_bytes();
    wire.client.set_option(wire.now, fd, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, &on).unwrap();
    let before = wire.from_client;
    assert_eq!(wire.connect(fd), Ok(()));
    assert_eq!(wire.connect(fd), Err(Errno::EISCONN));
    wire.run(DELAY);
    assert_eq!(wire.from_client, before, "nothing has left");
    assert_eq!(send(&mut wire.client, wire.now, fd, b"hello"), Ok(5));
    wire.run(DELAY);
    assert_eq!(wire.from_client, before + 1);
}

#[test]
fn without_a_cookie_a_deferred_connect_asks_for_one() {
    let mut wire = Wire::new();
    wire.listen();
    let fd = wire.socket();
    let on = 1_i32.to_ne_bytes();
    wire.client.set_option(wire.now, fd, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, &on).unwrap();
    assert_eq!(wire.connect(fd), Err(Errno::EINPROGRESS));
}

#[test]
fn fast_open_that_is_off_or_leads_nowhere_is_not_supported() {
    let mut wire = Wire::new();
    let fd = wire.socket();
    let sent = send_with(&mut wire.client, wire.now, fd, b"x", FAST, Destination::Unspecified);
    assert_eq!(sent, Err(Errno::EOPNOTSUPP));
    let sent = send_with(&mut wire.client, wire.now, fd, b"x", FAST, Destination::None);
    assert_eq!(sent, Err(Errno::EINVAL));
    let now = wire.now;
    wire.client.stack_mut().set(now, "net.ipv4.tcp_fastopen", "2").unwrap();
    let sent = send_with(&mut wire.client, wire.now, fd, b"x", FAST, Destination::Address(server()));
    assert_eq!(sent, Err(Errno::EOPNOTSUPP));
    let on = 1_i32.to_ne_bytes();
    let set = wire.client.set_option(wire.now, fd, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, &on);
    assert_eq!(set, Err(Errno::EOPNOTSUPP));
}
