//! SYN queues under load from addresses that never answer.
use crate::accept::listener_at;
use crate::bed::{Bed, bed, once_found, once_gone, until};
use crate::shown::Show;
use crate::{assert_healthy, of};
use doctor::sources;
use interop::Direction;
use interop::hook::{drop_if, pass};
use interop::segment::refresh_checksum;
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// Sends SYNs from the client's address and these ports. Replies are lost.
pub(crate) fn flood(bed: &Bed, port: u16, sources: std::ops::Range<u16>) {
    bed.wire.set_hook(drop_if(|direction, _| direction == Direction::ToClient));
    let (from, to) = (bed.client.host.addresses.v4, bed.server.host.addresses.v4);
    sources.for_each(|source| bed.wire.inject(Direction::ToServer, syn(from, to, source, port)));
}

pub(crate) fn syn(from: Ipv4Addr, to: Ipv4Addr, source: u16, port: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0];
    packet.extend(from.octets().into_iter().chain(to.octets()));
    checksum(&mut packet);
    packet.extend(source.to_be_bytes().into_iter().chain(port.to_be_bytes()));
    packet.extend([0, 0, 0, 1, 0, 0, 0, 0, 5 << 4, 2, 0xff, 0xff, 0, 0, 0, 0]);
    refresh_checksum(&mut packet);
    packet
}

/// Sets the checksum of an IPv4 header in the first 20 bytes.
pub(crate) fn checksum(packet: &mut [u8]) {
    let pairs = packet[..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum = pairs.sum::<u32>();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !(((folded & 0xffff) + (folded >> 16)) as u16);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

pub(crate) fn half_open(bed: &Bed) -> usize {
    bed.server.host.run(|| sources::here().in_state(doctor::sample::state::SYN_RECEIVED).count())
}

pub(crate) fn a_syn_queue_that_overflows_into_cookies_is_found(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(2)) else { return };
    let address = bed.address(80);
    let small = bed.server.host.run(|| listener_at(address, 8));
    let found = bed.at_server(|| {
        flood(&bed, 80, 900..904);
        until("a SYN queue", || half_open(&bed) == 4);
    });
    show.silent(&["ACC-14"], &found);
    let found = bed.at_server(|| {
        flood(&bed, 80, 1000..1050);
        until("a full SYN queue", || half_open(&bed) >= 9);
        until("cookies", || bed.server.host.counters().of("SyncookiesSent") >= 41);
    });
    show.fires(&["ACC-14"], &found);
    drop(small);
    let large = bed.address(81);
    let _large = bed.server.host.run(|| listener_at(large, 4096));
    show.by_hand(&["ACC-14"]);
    let found = bed.at_server(|| {
        flood(&bed, 81, 2000..2050);
        until("a longer SYN queue", || half_open(&bed) >= 50);
    });
    show.gone(&["ACC-14"], &found);
}

pub(crate) fn half_open_connections_that_nobody_finishes_are_found(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(2)) else { return };
    let address = bed.address(80);
    let _listener = bed.server.host.run(|| listener_at(address, 10));
    let found = bed.at_server(|| {});
    show.silent(&["ACC-12"], &found);
    assert_healthy(&found);
    flood(&bed, 80, 1000..1009);
    // After the second SYN-ACK.
    let found = once_found("ACC-12", || bed.at_server(|| {}));
    show.fires(&["ACC-12"], &found);
    assert_eq!(of(&found, "ACC-12")[0].scope, doctor::Scope::Port(80));
    bed.server.host.run(|| show.run(&["ACC-12"]));
    bed.wire.set_hook(pass());
    // The client resets connections that it did not open.
    show.gone(&["ACC-12"], &once_gone(&["ACC-12"], || bed.at_server(|| {})));
}

pub(crate) fn clients_connected_by_cookie_into_a_full_queue_are_found(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(40)) else { return };
    bed.server.host.sysctl("net.ipv4.tcp_syncookies", "2");
    let address = bed.address(80);
    let small = bed.server.host.run(|| listener_at(address, 2));
    let client = bed.client.host.share();
    let mut first = None;
    let found = bed.at_server(|| {
        first = client.run(|| TcpStream::connect(address).ok());
        until("a cookie", || bed.server.host.counters().of("SyncookiesRecv") > 0);
    });
    show.silent(&["ACC-13"], &found);
    let found = bed.at_server(|| {
        let connect = || client.run(|| TcpStream::connect_timeout(&address, Duration::from_millis(500)).ok());
        let clients: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(connect)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(clients.iter().flatten().count() > 3, "more than the server knows");
        until("an overflow", || bed.server.host.counters().of("ListenOverflows") > 0);
    });
    show.fires(&["ACC-13"], &found);
    drop(small);
    let large = bed.address(81);
    let _listener = bed.server.host.run(|| listener_at(large, 64));
    show.by_hand(&["ACC-13"]);
    let mut clients = Vec::new();
    let found =
        bed.at_server(|| clients.extend((0..8).map(|_| client.run(|| TcpStream::connect(large).unwrap()))));
    assert!(bed.server.host.counters().of("SyncookiesRecv") >= 8);
    show.gone(&["ACC-13"], &found);
}
