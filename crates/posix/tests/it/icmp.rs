//! What each ICMP error means to a socket (Linux's `tcp_v4_err`, `tcp_v6_err`): all end an attempt to connect, none a connection.

use posix::error_queue::origin;
use posix::{Connect, Errno, Sockets, Stop};
use proto::{Capabilities, Config, Instant, RxPacket, Stack};
use std::net::SocketAddr;

const NOW: Instant = Instant::ZERO;
/// Type and code of ICMP, and what the call fails with.
const V4: [(u8, u8, Errno); 18] = [
    (3, 0, Errno::ENETUNREACH),
    (3, 1, Errno::EHOSTUNREACH),
    (3, 2, Errno::ENOPROTOOPT),
    (3, 3, Errno::ECONNREFUSED),
    (3, 5, Errno::EOPNOTSUPP),
    (3, 6, Errno::ENETUNREACH),
    (3, 7, Errno::EHOSTDOWN),
    (3, 8, Errno::ENONET),
    (3, 9, Errno::ENETUNREACH),
    (3, 10, Errno::EHOSTUNREACH),
    (3, 11, Errno::ENETUNREACH),
    (3, 12, Errno::EHOSTUNREACH),
    (3, 13, Errno::EHOSTUNREACH),
    (3, 14, Errno::EHOSTUNREACH),
    (3, 15, Errno::EHOSTUNREACH),
    (11, 0, Errno::EHOSTUNREACH),
    (11, 1, Errno::EHOSTUNREACH),
    (12, 0, Errno::EPROTO),
];
const V6: [(u8, u8, Errno); 10] = [
    (1, 0, Errno::ENETUNREACH),
    (1, 1, Errno::EACCES),
    (1, 2, Errno::EHOSTUNREACH),
    (1, 3, Errno::EHOSTUNREACH),
    (1, 4, Errno::ECONNREFUSED),
    (1, 5, Errno::EACCES),
    (1, 6, Errno::EACCES),
    (3, 0, Errno::EHOSTUNREACH),
    (4, 0, Errno::EPROTO),
    (4, 1, Errno::EPROTO),
];

struct Host {
    sockets: Sockets,
    fd: i32,
}

impl Host {
    /// A socket that connects, and the SYN it has sent.
    fn connecting(peer: SocketAddr) -> (Host, Vec<u8>) {
        let ethernet = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
        let mut stack = Stack::new(Config::linux(), ethernet, [1; 32]);
        stack.add_address("10.0.0.1".parse().unwrap(), 24);
        stack.add_address("fd00::1".parse().unwrap(), 64);
        let mut sockets = Sockets::new(stack, 3);
        let domain = if peer.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let fd = sockets.socket(domain, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0).unwrap();
        let mut host = Host { sockets, fd };
        assert_eq!(host.connect(peer), Err(Errno::EINPROGRESS.into()));
        let syn = host.sent();
        (host, syn)
    }

    fn connect(&mut self, peer: SocketAddr) -> Result<(), Stop> {
        Connect::new(self.fd, Some(peer)).attempt(&mut self.sockets, NOW)
    }

    fn sent(&mut self) -> Vec<u8> {
        self.sockets.stack_mut().poll_transmit(NOW).unwrap().to_bytes().to_vec()
    }

    fn comes(&mut self, packet: Vec<u8>) {
        self.sockets.stack_mut().handle_packet(NOW, RxPacket::new(packet.into()));
        self.sockets.notice();
    }

    fn error(&mut self) -> i32 {
        let bytes = self.sockets.option(NOW, self.fd, libc::SOL_SOCKET, libc::SO_ERROR, 4).unwrap();
        i32::from_ne_bytes(bytes[..4].try_into().unwrap())
    }
}

fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let bytes: Vec<u8> = parts.concat();
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// The ICMP error that the peer of `packet` answers it with.
fn error_about(packet: &[u8], kind: u8, code: u8) -> Vec<u8> {
    let v4 = packet[0] >> 4 == 4;
    let mut message = [&[kind, code, 0, 0, 0, 0, 0, 0], packet].concat();
    let len = message.len() as u16;
    if v4 {
        let sum = checksum(&[&message]);
        message[2..4].copy_from_slice(&sum);
        let total = (20 + len).to_be_bytes();
        let mut header =
            [&[0x45, 0], &total[..], &[0, 0, 0, 0, 64, 1, 0, 0], &packet[16..20], &packet[12..16]].concat();
        let sum = checksum(&[&header]);
        header[10..12].copy_from_slice(&sum);
        return [header, message].concat();
    }
    let (from, to) = (&packet[24..40], &packet[8..24]);
    let sum = checksum(&[from, to, &u32::from(len).to_be_bytes(), &[0, 0, 0, 58], &message]);
    message[2..4].copy_from_slice(&sum);
    [&[0x60, 0, 0, 0], &len.to_be_bytes()[..], &[58, 64], from, to, &message].concat()
}

#[test]
fn each_error_ends_an_attempt_to_connect_with_its_errno_and_is_queued() {
    let (v4, v6) = (V4.map(|case| ("10.0.0.2:80", case)), V6.map(|case| ("[fd00::2]:80", case)));
    for (peer, (kind, code, errno)) in v4.into_iter().chain(v6) {
        let peer: SocketAddr = peer.parse().unwrap();
        let (mut host, syn) = Host::connecting(peer);
        host.comes(error_about(&syn, kind, code));
        assert_eq!(host.connect(peer), Err(errno.into()), "{peer} {kind} {code}");
        let (entry, _) = host.sockets.receive_error(host.fd).unwrap();
        let expected = if peer.is_ipv4() { origin::ICMP } else { origin::ICMP6 };
        assert_eq!((entry.errno, entry.origin, entry.kind, entry.code), (errno.0, expected, kind, code));
        assert_eq!((entry.offender, entry.name), (Some(peer.ip()), Some(peer)));
    }
}

#[test]
fn the_error_that_was_read_from_the_queue_is_not_told_again() {
    let peer = "10.0.0.2:80".parse().unwrap();
    let (mut host, syn) = Host::connecting(peer);
    host.comes(error_about(&syn, 3, 1));
    host.sockets.receive_error(host.fd).unwrap();
    assert_eq!(host.error(), 0);
}

/// A SYN-ACK, as the peer of this SYN sends it.
fn syn_ack(syn: &[u8]) -> Vec<u8> {
    let acked = u32::from_be_bytes(syn[24..28].try_into().unwrap()).wrapping_add(1);
    let ports = [&syn[22..24], &syn[20..22]].concat();
    let numbers = [0_u32.to_be_bytes(), acked.to_be_bytes()].concat();
    let mut tcp = [ports, numbers, vec![0x50, 0x12, 0xff, 0xff, 0, 0, 0, 0]].concat();
    let sum = checksum(&[&syn[16..20], &syn[12..16], &[0, 6, 0, 20], &tcp]);
    tcp[16..18].copy_from_slice(&sum);
    let mut header = [&[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0], &syn[16..20], &syn[12..16]].concat();
    let sum = checksum(&[&header]);
    header[10..12].copy_from_slice(&sum);
    [header, tcp].concat()
}

#[test]
fn of_a_connection_it_is_told_on_demand_or_at_once_to_who_asked() {
    for asked in [false, true] {
        let peer = "10.0.0.2:80".parse().unwrap();
        let (mut host, syn) = Host::connecting(peer);
        host.comes(syn_ack(&syn));
        host.sent();
        assert_eq!(host.connect(peer), Ok(()));
        let option = i32::from(asked).to_ne_bytes();
        host.sockets.set_option(NOW, host.fd, libc::IPPROTO_IP, libc::IP_RECVERR, &option).unwrap();
        let source = posix::Source { data: b"hello", faulty: false };
        let mut send = posix::Send::new(host.fd, source, 0, posix::Destination::None);
        assert_eq!(send.attempt(&mut host.sockets, NOW), Ok(5));
        let segment = host.sent();
        host.comes(error_about(&segment, 3, 1));
        let told = host.sockets.readiness(host.fd).unwrap().contains(posix::Ready::ERR);
        assert_eq!(told, asked);
        assert_eq!(host.error(), libc::EHOSTUNREACH);
        assert_eq!(host.error(), 0, "once");
        let mut send = posix::Send::new(host.fd, source, 0, posix::Destination::None);
        assert_eq!(send.attempt(&mut host.sockets, NOW), Ok(5), "the connection goes on");
        assert_eq!(host.sockets.receive_error(host.fd), Err(Errno::EAGAIN));
    }
}
