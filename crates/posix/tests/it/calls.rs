//! Descriptors, names, reading, writing and shutting.

use crate::wire::{BASE, DELAY, Wire, errno, recv, send, send_with, server};
use posix::{Destination, Errno, Receive, Send, Source, Splice, Stop, ioctl};

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
