//! The error queue: time stamps of what is sent and received, ends of sends without a copy.

use crate::wire::{DELAY, Wire, recv, send, send_with};
use posix::error_queue::{origin, stamping};
use posix::{Ancillary, Destination, Errno, QueuedError, Ready};
use proto::Instant;
use std::time::Duration;

const EVERY_STAMP: u32 = stamping::TX_SCHED
    | stamping::TX_SOFTWARE
    | stamping::TX_ACK
    | stamping::SOFTWARE
    | stamping::OPT_ID
    | stamping::OPT_TSONLY;

fn stamp(wire: &mut Wire, fd: i32, flags: u32) {
    let now = wire.now;
    wire.client.set_option(now, fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &flags.to_ne_bytes()).unwrap();
}

/// Which stamp (`SCM_TSTAMP_…`), of which byte, and how long after `begun`.
fn next_stamp(wire: &mut Wire, fd: i32, begun: Instant) -> Result<(u32, u32, Duration), Errno> {
    let (entry, told) = wire.client.receive_error(fd)?;
    assert_eq!((entry.errno, entry.origin), (libc::ENOMSG, origin::TIMESTAMPING));
    let at = entry.at.unwrap();
    assert_eq!(told, [Ancillary::Timestamping { at, wide: false }, Ancillary::Error4(entry.clone())]);
    Ok((entry.info, entry.data, at - begun.since(Instant::ZERO)))
}

#[test]
fn the_last_byte_of_each_write_is_stamped() {
    let mut wire = Wire::new();
    let (client, _server) = wire.connected();
    stamp(&mut wire, client, EVERY_STAMP);
    assert_eq!(next_stamp(&mut wire, client, Instant::ZERO), Err(Errno::EAGAIN));
    let on = 1_i32.to_ne_bytes();
    wire.client.set_option(wire.now, client, libc::IPPROTO_TCP, libc::TCP_NODELAY, &on).unwrap();
    let begun = wire.now;
    for _ in 0..2 {
        assert_eq!(send(&mut wire.client, wire.now, client, &[0; 2000]), Ok(2000));
        wire.run(Duration::ZERO);
    }
    assert!(wire.client.readiness(client).unwrap().contains(Ready::ERR));
    wire.run(DELAY * 2);
    let at_once = Duration::ZERO;
    let told: Vec<_> = std::iter::from_fn(|| next_stamp(&mut wire, client, begun).ok()).collect();
    let expected = [
        (1, 1999, at_once),
        (0, 1999, at_once),
        (1, 3999, at_once),
        (0, 3999, at_once),
        (2, 1999, DELAY * 2),
        (2, 3999, DELAY * 2),
    ];
    assert_eq!(told, expected);
    assert!(!wire.client.readiness(client).unwrap().contains(Ready::ERR));
}

#[test]
fn of_writes_that_share_a_segment_only_the_last_is() {
    let mut wire = Wire::new();
    let (client, _server) = wire.connected();
    stamp(&mut wire, client, EVERY_STAMP);
    let begun = wire.now;
    let more = libc::MSG_MORE;
    for flags in [more, more, 0] {
        send_with(&mut wire.client, wire.now, client, b"abc", flags, Destination::None).unwrap();
        wire.run(Duration::ZERO);
    }
    wire.run(DELAY * 2);
    let told: Vec<_> = std::iter::from_fn(|| next_stamp(&mut wire, client, begun).ok()).collect();
    assert_eq!(told, [(1, 8, Duration::ZERO), (0, 8, Duration::ZERO), (2, 8, DELAY * 2)]);
}

/// Without `OPT_TSONLY` the packet is looped back; the room it needs in the queue is limited.
#[test]
fn a_stamp_brings_its_packet_unless_it_is_asked_not_to() {
    let mut wire = Wire::new();
    let (client, _server) = wire.connected();
    stamp(&mut wire, client, stamping::TX_SOFTWARE | stamping::TX_ACK | stamping::SOFTWARE);
    send(&mut wire.client, wire.now, client, b"hello").unwrap();
    wire.run(DELAY * 2);
    let (sent, _) = wire.client.receive_error(client).unwrap();
    assert!(sent.payload.ends_with(b"hello") && sent.payload.len() > 40, "the IP packet");
    let (acknowledged, _) = wire.client.receive_error(client).unwrap();
    assert_eq!(&acknowledged.payload[..], b"hello", "the segment");
    assert_eq!((sent.data, acknowledged.data), (0, 0), "not numbered");
}

#[test]
fn numbers_begin_where_the_stream_is_when_they_are_asked_for() {
    for (flag, expected) in [(0, 9), (stamping::OPT_ID_TCP, 4)] {
        let mut wire = Wire::new();
        let (client, _server) = wire.connected();
        send(&mut wire.client, wire.now, client, b"abcde").unwrap();
        stamp(&mut wire, client, EVERY_STAMP | flag);
        send(&mut wire.client, wire.now, client, b"fghij").unwrap();
        wire.run(DELAY * 2);
        let (entry, _) = wire.client.receive_error(client).unwrap();
        assert_eq!(entry.data, expected, "from the first unacknowledged, or the next written");
    }
}

fn zerocopy(wire: &mut Wire, fd: i32) {
    let on = 1_i32.to_ne_bytes();
    wire.client.set_option(wire.now, fd, libc::SOL_SOCKET, libc::SO_ZEROCOPY, &on).unwrap();
}

fn send_zerocopy(wire: &mut Wire, fd: i32, data: &[u8]) -> Result<usize, Errno> {
    let sent = send_with(&mut wire.client, wire.now, fd, data, libc::MSG_ZEROCOPY, Destination::None);
    wire.run(Duration::ZERO);
    sent
}

/// First and last call, and whether the data was copied.
fn ended(entry: &QueuedError) -> (u8, u32, u32, u8) {
    (entry.origin, entry.info, entry.data, entry.code)
}

#[test]
fn sends_without_a_copy_end_when_all_is_acknowledged_and_say_that_they_copied() {
    let mut wire = Wire::new();
    let (client, _server) = wire.connected();
    send_zerocopy(&mut wire, client, b"not asked for").unwrap();
    zerocopy(&mut wire, client);
    for _ in 0..3 {
        assert_eq!(send_zerocopy(&mut wire, client, &[0; 3000]), Ok(3000));
    }
    wire.run(DELAY);
    assert_eq!(wire.client.receive_error(client), Err(Errno::EAGAIN));
    wire.run(DELAY * 10);
    let (entry, _) = wire.client.receive_error(client).unwrap();
    assert_eq!(ended(&entry), (origin::ZEROCOPY, 0, 2, 1), "one range, copied");
    assert_eq!(send_zerocopy(&mut wire, client, b"x"), Ok(1));
    wire.run(DELAY * 10);
    let (entry, _) = wire.client.receive_error(client).unwrap();
    assert_eq!(ended(&entry), (origin::ZEROCOPY, 3, 3, 1));
}

#[test]
fn a_send_that_fails_has_no_number_and_the_end_of_the_connection_ends_all() {
    let mut wire = Wire::new();
    let fresh = wire.socket();
    zerocopy(&mut wire, fresh);
    assert_eq!(send_zerocopy(&mut wire, fresh, b"x"), Err(Errno::EPIPE));
    let (client, server) = wire.connected();
    zerocopy(&mut wire, client);
    wire.cut = true;
    send_zerocopy(&mut wire, client, b"never acknowledged").unwrap();
    wire.cut = false;
    let linger = [1_i32, 0].map(i32::to_ne_bytes).concat();
    wire.server.set_option(wire.now, server, libc::SOL_SOCKET, libc::SO_LINGER, &linger).unwrap();
    wire.server.close(wire.now, server).unwrap();
    wire.run(DELAY);
    let (entry, _) = wire.client.receive_error(client).unwrap();
    assert_eq!(ended(&entry), (origin::ZEROCOPY, 0, 0, 1));
}

#[test]
fn what_may_wait_to_end_is_bounded() {
    let mut wire = Wire::new();
    let (client, _server) = wire.connected();
    zerocopy(&mut wire, client);
    wire.cut = true;
    let failed = (0..1000).map(|_| send_zerocopy(&mut wire, client, &[0; 1448])).find_map(Result::err);
    assert!(matches!(failed, Some(Errno::ENOBUFS | Errno::EAGAIN)), "{failed:?}");
}

#[test]
fn who_reads_is_told_when_the_last_byte_had_come() {
    let mut wire = Wire::new();
    let (client, server) = wire.connected();
    let on = 1_i32.to_ne_bytes();
    wire.server.set_option(wire.now, server, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on).unwrap();
    wire.server.set_epoch(Duration::from_secs(1_700_000_000));
    let begun = wire.now.since(Instant::ZERO) + Duration::from_secs(1_700_000_000);
    for _ in 0..2 {
        send(&mut wire.client, wire.now, client, b"abc").unwrap();
        wire.run(DELAY * 2);
    }
    let at = |after| Ancillary::TimestampNs { at: begun + after, wide: false };
    let peek = libc::MSG_PEEK;
    assert_eq!(recv(&mut wire.server, wire.now, server, 3, peek).unwrap(), b"abc");
    assert_eq!(wire.server.ancillary(server, 3, true), Ok(vec![at(DELAY)]));
    assert_eq!(recv(&mut wire.server, wire.now, server, 2, 0).unwrap(), b"ab");
    assert_eq!(wire.server.ancillary(server, 2, false), Ok(vec![at(DELAY)]));
    assert_eq!(recv(&mut wire.server, wire.now, server, 9, 0).unwrap(), b"cabc");
    assert_eq!(wire.server.ancillary(server, 4, false), Ok(vec![at(DELAY * 3)]));
    assert_eq!(wire.server.ancillary(server, 0, false), Ok(vec![]), "nothing was read");
}
