//! Descriptors, names, reading, writing and shutting.

use crate::wire::{BASE, DELAY, Wire, errno, recv, send, send_with, server};
use posix::{Close, Destination, Errno, Receive, Send, Source, Splice, Stop, ioctl};

const STREAM: i32 = libc::SOCK_STREAM;

#[test]
fn descriptors_are_the_lowest_free_ones() {
    let mut wire = Wire::new();
    let host = &mut wire.client;
    assert_eq!(host.socket(libc::AF_INET, STREAM, 0), Ok(BASE));
    assert_eq!(host.socket(libc::AF_INET6, STREAM, libc::IPPROTO_TCP), Ok(BASE + 1));
    assert_eq!(host.close(wire.now, BASE), Ok(()));
    assert_eq!(host.close(wire.now, BASE), Err(Errno::EBADF));
    assert_eq!(host.socket(libc::AF_INET, STREAM, 0), Ok(BASE));
    assert_eq!(host.socket(libc::AF_UNIX, STREAM, 0), Err(Errno::EAFNOSUPPORT));
    assert_eq!(host.socket(libc::AF_INET, libc::SOCK_DGRAM, 0), Err(Errno::ESOCKTNOSUPPORT));
    assert_eq!(host.socket(libc::AF_INET, STREAM, libc::IPPROTO_UDP), Err(Errno::EPROTONOSUPPORT));
    for fd in [-1, 0, BASE + 9, i32::MAX, i32::MIN] {
        assert_eq!(host.flags(fd), Err(Errno::EBADF), "{fd}");
    }
}

#[test]
fn a_name_can_be_given_once_and_only_one_of_ours() {
    let mut wire = Wire::new();
    let (first, second) = (wire.socket(), wire.socket());
    let local = "10.0.0.1:4000".parse().unwrap();
    assert_eq!(wire.client.bind(first, server()), Err(Errno::EADDRNOTAVAIL));
    assert_eq!(wire.client.bind(first, local), Ok(()));
    assert_eq!(wire.client.bind(first, local), Err(Errno::EINVAL));
    assert_eq!(wire.client.bind(second, "0.0.0.0:4000".parse().unwrap()), Err(Errno::EADDRINUSE));
    assert_eq!(wire.client.bind(second, "0.0.0.0:0".parse().unwrap()), Ok(()));
    let chosen = wire.client.local_name(second).unwrap();
    assert!((32_768..61_000).contains(&chosen.port()), "{chosen}");
    assert_eq!(wire.client.accept(wire.now, first, 0), Err(Errno::EINVAL.into()));
}

#[test]
fn bytes_come_as_asked_for() {
    let mut wire = Wire::new();
    let (client, server) = wire.connected();
    assert_eq!(recv(&mut wire.server, wire.now, server, 10, 0), Err(Errno::EAGAIN));
    assert_eq!(send(&mut wire.client, wire.now, client, b"abcdef"), Ok(6));
    wire.run(DELAY);
    assert_eq!(wire.server.ioctl(server, ioctl::SIOCINQ), Ok(6));
    assert_eq!(recv(&mut wire.server, wire.now, server, 3, libc::MSG_PEEK).unwrap(), b"abc");
    assert_eq!(recv(&mut wire.server, wire.now, server, 2, 0).unwrap(), b"ab");
    let all = libc::MSG_WAITALL | libc::MSG_DONTWAIT;
    assert_eq!(recv(&mut wire.server, wire.now, server, 10, all).unwrap(), b"cdef", "what there is");
    assert_eq!(wire.server.ioctl(server, ioctl::SIOCINQ), Ok(0));
    assert_eq!(wire.server.ioctl(server, 0x1234), Err(Errno::ENOTTY));
}

#[test]
fn a_call_that_waits_for_all_goes_on_where_it_was() {
    let mut wire = Wire::new();
    let (client, server) = wire.connected();
    wire.server.set_flags(server, 0).unwrap();
    let mut call = Receive::new(server, libc::MSG_WAITALL);
    let mut buf = [0; 6];
    for part in [b"abc", b"def"] {
        assert_eq!(call.attempt(&mut wire.server, wire.now, &mut buf), Err(Stop::Wait(None)));
        send(&mut wire.client, wire.now, client, part).unwrap();
        // Nagle's algorithm holds the second back until the first is acknowledged.
        wire.run(DELAY * 8);
    }
    assert_eq!(call.attempt(&mut wire.server, wire.now, &mut buf), Ok(6));
    assert_eq!(&buf, b"abcdef");
}

#[test]
fn a_write_that_waits_takes_everything_in_the_end() {
    let mut wire = Wire::new();
    let (client, server) = wire.connected();
    wire.client.set_flags(client, 0).unwrap();
    let data = vec![5; 1_000_000];
    let mut call = Send::new(client, Source { data: &data, faulty: false }, 0, Destination::None);
    let mut read = 0;
    let mut waits = 0;
    while let Err(stop) = call.attempt(&mut wire.client, wire.now) {
        assert_eq!(stop, Stop::Wait(None));
        waits += 1;
        wire.run(DELAY * 2);
        read += recv(&mut wire.server, wire.now, server, 1_000_000, 0).map_or(0, |got| got.len());
    }
    assert!(waits > 3 && read > 0, "{waits} {read}");
}

#[test]
fn the_end_of_the_stream_is_zero_and_writing_on_breaks_the_pipe() {
    let mut wire = Wire::new();
    let (client, server) = wire.connected();
    assert_eq!(wire.client.shutdown(wire.now, client, 7), Err(Errno::EINVAL));
    assert_eq!(wire.client.shutdown(wire.now, client, libc::SHUT_WR), Ok(()));
    assert_eq!(send(&mut wire.client, wire.now, client, b"x"), Err(Errno::EPIPE));
    wire.run(DELAY);
    assert_eq!(recv(&mut wire.server, wire.now, server, 9, 0), Ok(vec![]));
    assert_eq!(send(&mut wire.server, wire.now, server, b"bye"), Ok(3));
    wire.run(DELAY);
    assert_eq!(recv(&mut wire.client, wire.now, client, 9, 0).unwrap(), b"bye");
    let fresh = wire.socket();
    assert_eq!(wire.client.shutdown(wire.now, fresh, libc::SHUT_WR), Err(Errno::ENOTCONN));
    assert_eq!(recv(&mut wire.client, wire.now, fresh, 9, 0), Err(Errno::ENOTCONN));
    assert_eq!(send(&mut wire.client, wire.now, fresh, b"x"), Err(Errno::EPIPE));
}

#[test]
fn a_reset_is_told_once_and_after_a_fin_it_is_a_broken_pipe() {
    for (finish, told) in [(false, Errno::ECONNRESET), (true, Errno::EPIPE)] {
        let mut wire = Wire::new();
        let (client, server) = wire.connected();
        send(&mut wire.client, wire.now, client, b"unread").unwrap();
        wire.run(DELAY);
        if finish {
            wire.server.shutdown(wire.now, server, libc::SHUT_WR).unwrap();
            wire.run(DELAY);
        }
        wire.server.close(wire.now, server).unwrap();
        wire.run(DELAY);
        assert_eq!(send(&mut wire.client, wire.now, client, b"x"), Err(told));
        assert_eq!(send(&mut wire.client, wire.now, client, b"x"), Err(Errno::EPIPE));
        assert_eq!(recv(&mut wire.client, wire.now, client, 1, 0), Ok(vec![]));
    }
}

#[test]
fn the_urgent_byte_is_not_in_the_stream() {
    let mut wire = Wire::new();
    let (client, server) = wire.connected();
    let urgent = send_with(&mut wire.client, wire.now, client, b"ab!", libc::MSG_OOB, Destination::None);
    assert_eq!(urgent, Ok(3));
    send(&mut wire.client, wire.now, client, b"cd").unwrap();
    wire.run(DELAY * 3);
    assert_eq!(recv(&mut wire.server, wire.now, server, 9, 0).unwrap(), b"ab");
    assert_eq!(wire.server.ioctl(server, ioctl::SIOCATMARK), Ok(1));
    assert_eq!(recv(&mut wire.server, wire.now, server, 1, libc::MSG_OOB).unwrap(), b"!");
    assert_eq!(recv(&mut wire.server, wire.now, server, 1, libc::MSG_OOB), Err(Errno::EINVAL));
    assert_eq!(recv(&mut wire.server, wire.now, server, 9, 0).unwrap(), b"cd");
}

/// A call that has sent something tells of that, and the next one of the error (Linux's `tcp_sendmsg_locked`).
#[test]
fn an_error_in_the_middle_of_a_write_is_left_for_the_next_call() {
    let mut wire = Wire::new();
    let (client, server) = wire.connected();
    wire.client.set_flags(client, 0).unwrap();
    let data = vec![5; 10_000_000];
    let mut call = Send::new(client, Source { data: &data, faulty: false }, 0, Destination::None);
    assert_eq!(call.attempt(&mut wire.client, wire.now), Err(Stop::Wait(None)));
    wire.run(DELAY * 2);
    wire.server.close(wire.now, server).unwrap();
    wire.run(DELAY * 2);
    let sent = call.attempt(&mut wire.client, wire.now).unwrap();
    assert!((1..data.len()).contains(&sent), "{sent}");
    assert_eq!(recv(&mut wire.client, wire.now, client, 1, 0), Err(Errno::ECONNRESET));
    assert_eq!(recv(&mut wire.client, wire.now, client, 1, 0), Ok(vec![]));
}

/// Whoever gets its place among the files has nothing to do with what becomes of it.
#[test]
fn the_end_of_a_socket_that_lingers_concerns_nobody_else() {
    let mut wire = Wire::new();
    let (client, server) = wire.connected();
    wire.client.shutdown(wire.now, client, libc::SHUT_WR).unwrap();
    wire.run(DELAY);
    wire.server.set_option(wire.now, server, libc::SOL_SOCKET, libc::SO_LINGER, &linger(1, 5)).unwrap();
    let other = wire.socket();
    wire.connect(other).unwrap_err();
    wire.run(DELAY * 2);
    let mut close = Close::new(server);
    assert!(matches!(close.attempt(&mut wire.server, wire.now), Err(Stop::Wait(Some(_)))));
    wire.run(DELAY);
    // Its FIN has not been acknowledged when the next one is accepted.
    let (second, _) = wire.server.accept(wire.now, BASE, libc::SOCK_NONBLOCK).unwrap();
    wire.run(DELAY);
    assert_eq!(close.attempt(&mut wire.server, wire.now), Ok(()));
    assert_eq!(recv(&mut wire.server, wire.now, second, 9, 0), Err(Errno::EAGAIN), "it is open");
    assert_eq!(send(&mut wire.server, wire.now, second, b"hello"), Ok(5));
}

fn linger(on: i32, seconds: i32) -> [u8; 8] {
    let [on, seconds] = [on, seconds].map(i32::to_ne_bytes);
    [on, seconds].concat().try_into().unwrap()
}

fn splice(wire: &mut Wire, from: i32, to: i32, len: usize) -> Result<usize, Stop> {
    Splice::new(from, to, len, 0).attempt(&mut wire.server, wire.now)
}

#[test]
fn a_pipe_takes_what_a_socket_has() {
    let mut wire = Wire::new();
    let (client, server) = wire.connected();
    let (read, write) = wire.server.pipe().unwrap();
    send(&mut wire.client, wire.now, client, b"through").unwrap();
    wire.run(DELAY);
    assert_eq!(splice(&mut wire, server, write, 4), Ok(4));
    assert_eq!(splice(&mut wire, server, write, 99), Ok(3));
    let mut buf = [0; 7];
    assert_eq!(errno(wire.server.read_pipe(wire.now, read, &mut buf)), Ok(7));
    assert_eq!(&buf, b"through");
    assert_eq!(errno(wire.server.write_pipe(wire.now, write, b"back")), Ok(4));
    assert_eq!(splice(&mut wire, read, server, 99), Ok(4));
    wire.run(DELAY);
    assert_eq!(recv(&mut wire.client, wire.now, client, 9, 0).unwrap(), b"back");
    assert_eq!(splice(&mut wire, server, server, 1), Err(Errno::EINVAL.into()));
    wire.server.close(wire.now, read).unwrap();
    assert_eq!(wire.server.write_pipe(wire.now, write, b"x"), Err(Errno::EPIPE.into()));
}

/// Linux's `tcp_splice_read` knows no low-water mark.
#[test]
fn a_pipe_takes_less_than_the_low_water_mark() {
    let mut wire = Wire::new();
    let (client, server) = wire.connected();
    let (read, write) = wire.server.pipe().unwrap();
    wire.server
        .set_option(wire.now, server, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &1000_i32.to_ne_bytes())
        .unwrap();
    wire.server.set_flags(server, 0).unwrap();
    send(&mut wire.client, wire.now, client, b"through").unwrap();
    wire.run(DELAY);
    assert_eq!(splice(&mut wire, server, write, 99), Ok(7));
    let mut buf = [0; 9];
    assert_eq!(errno(wire.server.read_pipe(wire.now, read, &mut buf)), Ok(7));
    assert_eq!(&buf[..7], b"through");
}

/// Only a socket that does not wait answers `EAGAIN`.
#[test]
fn what_is_spliced_into_a_socket_waits_for_room() {
    for (flags, stop) in [(0, Stop::Wait(None)), (libc::O_NONBLOCK, Errno::EAGAIN.into())] {
        let mut wire = Wire::new();
        let (_, server) = wire.connected();
        let (read, write) = wire.server.pipe().unwrap();
        while send(&mut wire.server, wire.now, server, &[0; 60_000]).is_ok() {}
        wire.server.set_flags(server, flags).unwrap();
        assert_eq!(errno(wire.server.write_pipe(wire.now, write, b"more")), Ok(4));
        assert_eq!(splice(&mut wire, read, server, 4), Err(stop));
    }
}

/// POSIX's `PIPE_BUF`: so much is written at once, or not at all.
#[test]
fn a_page_is_written_to_a_pipe_whole() {
    let mut wire = Wire::new();
    let (read, write) = wire.server.pipe().unwrap();
    assert_eq!(errno(wire.server.write_pipe(wire.now, write, &[1; 65_000])), Ok(65_000));
    assert_eq!(wire.server.write_pipe(wire.now, write, &[2; 537]), Err(Stop::Wait(None)));
    assert_eq!(errno(wire.server.write_pipe(wire.now, write, &[2; 536])), Ok(536));
    let mut buf = [0; 70_000];
    assert_eq!(errno(wire.server.read_pipe(wire.now, read, &mut buf)), Ok(65_536));
    assert_eq!(errno(wire.server.write_pipe(wire.now, write, &buf)), Ok(65_536));
}

#[test]
fn six_speaks_four_by_mapped_addresses() {
    let mut wire = Wire::new();
    let listener = wire.server.socket(libc::AF_INET6, STREAM | libc::SOCK_NONBLOCK, 0).unwrap();
    wire.server.bind(listener, "[::]:80".parse().unwrap()).unwrap();
    wire.server.listen(wire.now, listener, 1).unwrap();
    let fd = wire.client.socket(libc::AF_INET6, STREAM | libc::SOCK_NONBLOCK, 0).unwrap();
    let mapped = "[::ffff:10.0.0.2]:80".parse().unwrap();
    let connect = posix::Connect::new(fd, Some(mapped)).attempt(&mut wire.client, wire.now);
    assert_eq!(connect, Err(Errno::EINPROGRESS.into()));
    wire.run(DELAY * 3);
    let (_, peer) = wire.server.accept(wire.now, listener, 0).unwrap();
    assert_eq!(peer.ip().to_string(), "::ffff:10.0.0.1");
    assert_eq!(wire.client.peer_name(fd), Ok(mapped));
}
