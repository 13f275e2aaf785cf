//! A peer that writes its packets by hand, and the stack it has connected to.

use super::arriving;
use crate::report::Failure;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use proto::{Capabilities, Config, ConnId, Instant, ListenOptions, RxPacket, SeqNum, Stack, TxPacket};
use wire::{Flags, IpHeader, TcpHeader, TcpOptions, parse_tcp_packet};

const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 80, 0, 2));
const THEIRS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 80, 0, 1));
const PORT: u16 = 7001;
const THEIR_PORT: u16 = 40_000;
/// The number of the peer's SYN.
const ISN: SeqNum = SeqNum(1000);
/// Bytes that an acknowledgement tells of, where all are told of.
const STRETCH: u32 = 512;
/// Shift of its window.
const WSCALE: u8 = 14;

/// See the module.
pub(super) struct Peer {
    pub(super) stack: Stack,
    pub(super) now: Instant,
    pub(super) connection: ConnId,
    /// Our first byte.
    pub(super) first: SeqNum,
}

impl Peer {
    /// A connection whose peer takes segments of `mss` bytes, over a device that cuts bursts of up
    /// to `burst` bytes. `cwnd`: our first congestion window, segments.
    pub(super) fn connected(
        config: Config,
        listen: ListenOptions,
        (mss, burst, cwnd): (u16, usize, u32),
    ) -> Result<Peer, Failure> {
        let capabilities = Capabilities { mtu: 1500, gso_max_size: burst, tx_checksum: true };
        let mut stack = Stack::new(config, capabilities, [7; 32]);
        stack.add_address(OURS, 24);
        let mut now = Instant::ZERO + Duration::from_secs(1000);
        let (everywhere, metrics) = proto::parse_route(&format!("0.0.0.0/0 initcwnd {cwnd}"))
            .map_err(|error| format!("route: {error}"))?;
        stack.set_route(now, everywhere, metrics);
        let listener = stack
            .listen(now, SocketAddr::new(OURS, PORT), listen)
            .map_err(|error| format!("listen: {error:?}"))?;
        let options = TcpOptions {
            mss: Some(mss),
            sack_permitted: true,
            window_scale: Some(WSCALE),
            ..TcpOptions::default()
        };
        stack.handle_packet(now, packet(Flags::SYN, ISN, SeqNum(0), options, &[]));
        let mut answer = TxPacket::default();
        if !stack.poll_transmit_into(now, &mut answer) {
            return Err("no SYN-ACK".into());
        }
        let (_, header, _) =
            parse_tcp_packet(&answer.to_bytes()).map_err(|error| format!("SYN-ACK: {error}"))?;
        let first = header.seq + 1;
        now = now + Duration::from_millis(50);
        stack.handle_packet(now, packet(Flags::ACK, ISN + 1, first, TcpOptions::default(), &[]));
        let (connection, _) = stack.accept(now, listener).map_err(|error| format!("accept: {error:?}"))?;
        Ok(Peer { stack, now, connection, first })
    }

    /// Takes what the stack sends; returns how many bytes of payload.
    pub(super) fn drain(&mut self) -> usize {
        let mut packet = TxPacket::default();
        let mut bytes = 0;
        while self.stack.poll_transmit_into(self.now, &mut packet) {
            bytes += packet.payload_len();
        }
        bytes
    }

    /// An acknowledgement up to `ack`, with these blocks; all are bytes of our stream.
    pub(super) fn ack(&self, ack: u32, blocks: &[(u32, u32)]) -> RxPacket {
        let sack = blocks.iter().map(|(from, to)| (self.first + *from, self.first + *to)).collect();
        let options = TcpOptions { sack, ..TcpOptions::default() };
        packet(Flags::ACK, ISN + 1, self.first + ack, options, &[])
    }

    /// A segment with `payload`, that begins with byte `at` of the peer's stream.
    pub(super) fn text(&self, at: u32, payload: &[u8]) -> RxPacket {
        packet(Flags::ACK, ISN + 1 + at, self.first, TcpOptions::default(), payload)
    }

    /// All of our stream that was sent so far, `len` bytes, is acknowledged, by and by: what
    /// follows is the stream from now on.
    pub(super) fn acknowledge(&mut self, len: u32) {
        for ack in (STRETCH..len).step_by(STRETCH as usize).chain([len]) {
            self.send(self.ack(ack, &[]));
        }
        self.first += len;
    }

    /// It arrives, and what it has sent is taken.
    pub(super) fn send(&mut self, packet: RxPacket) {
        self.now = self.now + Duration::from_micros(100);
        self.stack.handle_packet(self.now, packet);
        self.drain();
    }
}

fn packet(flags: Flags, seq: SeqNum, ack: SeqNum, options: TcpOptions, payload: &[u8]) -> RxPacket {
    let ip = IpHeader::new(THEIRS.into(), OURS.into(), wire::protocol::TCP);
    let header = TcpHeader { seq, ack, flags, window: u16::MAX, options, ..TcpHeader::new(THEIR_PORT, PORT) };
    arriving(wire::build_tcp_packet(&ip, &header, payload))
}
