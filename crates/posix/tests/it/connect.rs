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

/// It looks open to who writes, and to nobody else: there is no peer yet, and nothing comes before something was written.
#[test]
fn a_deferred_connect_has_no_peer_and_waits_for_its_answer() {
    let mut wire = Wire::new();
    let listener = warm_up(&mut wire);
    let fd = waiting(&mut wire);
    fast_open_connect(&mut wire, fd).unwrap();
    assert_eq!(wire.connect(fd), Ok(()));
    assert_eq!(wire.client.peer_name(fd), Err(Errno::ENOTCONN));
    let mut call = posix::Receive::new(fd, 0);
    let mut buf = [0; 8];
    assert_eq!(call.attempt(&mut wire.client, wire.now, &mut buf), Err(Stop::Wait(None)));
    wire.run(Duration::from_secs(60));
    assert_eq!(call.attempt(&mut wire.client, wire.now, &mut buf), Err(Stop::Wait(None)), "for ever");
    assert_eq!(recv(&mut wire.client, wire.now, fd, 8, libc::MSG_DONTWAIT), Err(Errno::EAGAIN));

    let written = send_with(&mut wire.client, wire.now, fd, b"hello", libc::MSG_DONTWAIT, Destination::None);
    assert_eq!(written, Ok(5), "by another thread");
    wire.run(DELAY);
    let (child, _) = wire.server.accept(wire.now, listener, libc::SOCK_NONBLOCK).unwrap();
    assert_eq!(send(&mut wire.server, wire.now, child, b"answer"), Ok(6));
    wire.run(DELAY);
    assert_eq!(wire.client.peer_name(fd), Ok(server()));
    assert_eq!(call.attempt(&mut wire.client, wire.now, &mut buf), Ok(6));
}

/// Bits 1 and 2 of `TCP_INFO`'s eighth byte (Linux's `enum tcp_fastopen_client_fail`).
fn client_fail(wire: &mut Wire, fd: i32) -> u8 {
    wire.client.option(wire.now, fd, libc::IPPROTO_TCP, libc::TCP_INFO, 8).unwrap()[7] >> 1 & 3
}

#[test]
fn tcp_info_tells_why_the_syns_data_was_not_taken() {
    let mut wire = Wire::new();
    let listener = warm_up(&mut wire);
    let to = Destination::Address(server());
    let open = |wire: &mut Wire| {
        let fd = wire.socket();
        (fd, send_with(&mut wire.client, wire.now, fd, b"hello", FAST, to))
    };
    let (fd, sent) = open(&mut wire);
    assert_eq!(sent, Ok(5));
    wire.run(DELAY * 3);
    assert_eq!(client_fail(&mut wire, fd), 0, "it was");

    wire.client.stack_mut().path_cache_mut().clear();
    let (fd, sent) = open(&mut wire);
    assert_eq!(sent, Err(Errno::EINPROGRESS));
    wire.run(DELAY * 3);
    assert_eq!(client_fail(&mut wire, fd), 1, "there was no cookie: TFO_COOKIE_UNAVAILABLE");

    let none = 0_i32.to_ne_bytes();
    wire.server.set_option(wire.now, listener, libc::IPPROTO_TCP, libc::TCP_FASTOPEN, &none).unwrap();
    let (fd, sent) = open(&mut wire);
    assert_eq!(sent, Ok(5));
    wire.run(DELAY * 3);
    assert_eq!(client_fail(&mut wire, fd), 2, "the SYN was acknowledged alone: TFO_DATA_NOT_ACKED");

    wire.cut = true;
    let (fd, sent) = open(&mut wire);
    assert_eq!(sent, Ok(5));
    wire.run(DELAY);
    wire.cut = false;
    wire.run(Duration::from_secs(2));
    assert_eq!(client_fail(&mut wire, fd), 3, "the SYN was lost: TFO_SYN_RETRANSMITTED");
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

/// A socket that waits in its calls.
fn waiting(wire: &mut Wire) -> i32 {
    wire.client.socket(libc::AF_INET, libc::SOCK_STREAM, 0).unwrap()
}

fn error_of(wire: &mut Wire, fd: i32) -> Errno {
    let told = wire.client.option(wire.now, fd, libc::SOL_SOCKET, libc::SO_ERROR, 4).unwrap();
    Errno(i32::from_ne_bytes(told.try_into().unwrap()))
}

fn fast_open_connect(wire: &mut Wire, fd: i32) -> Result<(), Errno> {
    let on = 1_i32.to_ne_bytes();
    wire.client.set_option(wire.now, fd, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, &on)
}

/// Even with a cookie, and although all of it is on the SYN.
#[test]
fn a_call_that_waits_sends_with_the_syn_and_returns_with_the_handshake() {
    let mut wire = Wire::new();
    let listener = warm_up(&mut wire);
    for (cookie, len) in [(true, 100), (true, 3000), (false, 100)] {
        if !cookie {
            wire.client.stack_mut().path_cache_mut().clear();
        }
        let fd = waiting(&mut wire);
        let data = vec![7; len];
        let to = Destination::Address(server());
        let mut call = posix::Send::new(fd, posix::Source { data: &data, faulty: false }, FAST, to);
        assert_eq!(call.attempt(&mut wire.client, wire.now), Err(Stop::Wait(None)));
        wire.run(DELAY * 2 - Duration::from_nanos(1));
        assert_eq!(
            call.attempt(&mut wire.client, wire.now),
            Err(Stop::Wait(None)),
            "not before a round trip"
        );
        wire.run(Duration::from_nanos(1));
        assert_eq!(call.attempt(&mut wire.client, wire.now), Ok(len));
        wire.run(DELAY * 3);
        let (child, _) = wire.server.accept(wire.now, listener, libc::SOCK_NONBLOCK).unwrap();
        assert_eq!(recv(&mut wire.server, wire.now, child, 4096, 0).unwrap().len(), len);
    }
}

/// The error of a handshake is the call's where it waits, and else the next one's: of whoever sends, receives or asks.
#[test]
fn a_port_where_nobody_listens_any_more_refuses_the_syn_with_data() {
    let mut wire = Wire::new();
    let listener = warm_up(&mut wire);
    wire.server.close(wire.now, listener).unwrap();
    let to = Destination::Address(server());
    let fd = waiting(&mut wire);
    let mut call = posix::Send::new(fd, posix::Source { data: b"hello", faulty: false }, FAST, to);
    assert_eq!(call.attempt(&mut wire.client, wire.now), Err(Stop::Wait(None)));
    wire.run(DELAY * 2);
    assert_eq!(
        call.attempt(&mut wire.client, wire.now),
        Err(Errno::ECONNREFUSED.into()),
        "though five were on the SYN"
    );
    let fd = wire.socket();
    assert_eq!(send_with(&mut wire.client, wire.now, fd, b"hello", FAST, to), Ok(5), "on the SYN");
    wire.run(DELAY * 2);
    assert_eq!(error_of(&mut wire, fd), Errno::ECONNREFUSED);
    assert_eq!(error_of(&mut wire, fd), Errno(0), "once");
}

#[test]
fn errors_of_a_deferred_connect_come_with_the_calls_after_it() {
    let mut wire = Wire::new();
    let listener = warm_up(&mut wire);
    wire.server.close(wire.now, listener).unwrap();
    // Told to whoever comes first: by SO_ERROR, by sending, by receiving.
    for asks in 0..3 {
        let fd = wire.socket();
        fast_open_connect(&mut wire, fd).unwrap();
        assert_eq!(wire.connect(fd), Ok(()));
        assert_eq!(recv(&mut wire.client, wire.now, fd, 1, 0), Err(Errno::EAGAIN));
        assert_eq!(send(&mut wire.client, wire.now, fd, b"hello"), Ok(5));
        wire.run(DELAY * 2);
        let told = match asks {
            0 => error_of(&mut wire, fd),
            1 => send(&mut wire.client, wire.now, fd, b"more").unwrap_err(),
            _ => recv(&mut wire.client, wire.now, fd, 1, 0).unwrap_err(),
        };
        assert_eq!(told, Errno::ECONNREFUSED);
        assert_eq!(error_of(&mut wire, fd), Errno(0));
    }
}

#[test]
fn a_syn_with_data_that_nobody_answers_times_out() {
    let mut wire = Wire::new();
    warm_up(&mut wire);
    wire.cut = true;
    let now = wire.now;
    wire.client.stack_mut().set(now, "net.ipv4.tcp_syn_linear_timeouts", "0").unwrap();
    let once = 1_i32.to_ne_bytes();
    let to = Destination::Address(server());
    let fd = waiting(&mut wire);
    wire.client.set_option(wire.now, fd, libc::IPPROTO_TCP, libc::TCP_SYNCNT, &once).unwrap();
    let mut call = posix::Send::new(fd, posix::Source { data: b"hello", faulty: false }, FAST, to);
    assert_eq!(call.attempt(&mut wire.client, wire.now), Err(Stop::Wait(None)));
    wire.run(Duration::from_secs(3));
    assert_eq!(call.attempt(&mut wire.client, wire.now), Err(Errno::ETIMEDOUT.into()));
    // Patience of its own ends sooner; what is on the SYN goes on its way.
    let fd = waiting(&mut wire);
    let second = [1_i64.to_ne_bytes(), 0_i64.to_ne_bytes()].concat();
    wire.client.set_option(wire.now, fd, libc::SOL_SOCKET, libc::SO_SNDTIMEO, &second).unwrap();
    let until = wire.now + Duration::from_secs(1);
    let mut call = posix::Send::new(fd, posix::Source { data: b"hello", faulty: false }, FAST, to);
    assert_eq!(call.attempt(&mut wire.client, wire.now), Err(Stop::Wait(Some(until))));
    wire.run(Duration::from_secs(1));
    assert_eq!(call.attempt(&mut wire.client, wire.now).map_err(|_| ()), Ok(5));
    assert_eq!(
        send_with(&mut wire.client, wire.now, fd, b"x", FAST | libc::MSG_DONTWAIT, to),
        Err(Errno::EALREADY)
    );
}

#[test]
fn where_no_way_leads_is_told_before_anything_is_sent() {
    let mut wire = Wire::new();
    let fd = wire.client.socket(libc::AF_INET6, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0).unwrap();
    let only = 1_i32.to_ne_bytes();
    wire.client.set_option(wire.now, fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, &only).unwrap();
    let to = Destination::Address("[::ffff:10.0.0.2]:80".parse().unwrap());
    assert_eq!(send_with(&mut wire.client, wire.now, fd, b"x", FAST, to), Err(Errno::ENETUNREACH));
    let before = wire.from_client;
    let fd = wire.socket();
    let everybody = Destination::Address("224.0.0.1:80".parse().unwrap());
    assert_eq!(send_with(&mut wire.client, wire.now, fd, b"x", FAST, everybody), Err(Errno::ENETUNREACH));
    wire.run(DELAY);
    assert_eq!(wire.from_client, before);
}

#[test]
fn an_open_connection_takes_no_fast_open_any_more() {
    let mut wire = Wire::new();
    let (client, _) = wire.connected();
    assert_eq!(wire.connect(client), Ok(()), "tells that it is connected");
    let to = Destination::Address(server());
    assert_eq!(send_with(&mut wire.client, wire.now, client, b"x", FAST, to), Err(Errno::EISCONN));
    assert_eq!(fast_open_connect(&mut wire, client), Err(Errno::EINVAL));
    for option in [libc::TCP_FASTOPEN, libc::TCP_FASTOPEN_NO_COOKIE] {
        let on = 1_i32.to_ne_bytes();
        let set = wire.client.set_option(wire.now, client, libc::IPPROTO_TCP, option, &on);
        assert_eq!(set, Err(Errno::EINVAL));
    }
}
