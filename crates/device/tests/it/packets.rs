//! TCP packets to send.
use bytes::Bytes;
use std::net::IpAddr;
use wire::{Addr, Flags, IpHeader, SeqNum, TcpHeader, TcpOptions, TxPacket, protocol};

/// Addresses of a test's packets.
#[derive(Clone, Copy)]
pub(crate) struct Flow {
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) src_port: u16,
    pub(crate) dst_port: u16,
}

impl Flow {
    pub(crate) fn v4() -> Flow {
        Flow::new("10.0.0.2", "10.0.0.1")
    }

    pub(crate) fn v6() -> Flow {
        Flow::new("fd00::2", "fd00::1")
    }

    fn new(src: &str, dst: &str) -> Flow {
        Flow { src: src.parse().unwrap(), dst: dst.parse().unwrap(), src_port: 4000, dst_port: 80 }
    }

    pub(crate) fn ip(&self) -> IpHeader {
        IpHeader::new(Addr::from(self.src), Addr::from(self.dst), protocol::TCP)
    }

    pub(crate) fn tcp(&self, seq: u32, ack: u32, flags: Flags) -> TcpHeader {
        TcpHeader {
            src_port: self.src_port,
            dst_port: self.dst_port,
            seq: SeqNum(seq),
            ack: SeqNum(ack),
            flags,
            window: 65_535,
            urgent: 0,
            options: TcpOptions::default(),
        }
    }

    /// Returns data in segments of `gso_size` (0: one packet), with its checksum left to the device
    /// if `partial`.
    pub(crate) fn data(&self, payload: Vec<u8>, gso_size: u16, partial: bool) -> TxPacket {
        let payload = [Bytes::from(payload)].into_iter().collect();
        TxPacket::tcp(&self.ip(), &self.tcp(1, 1, Flags::ACK | Flags::PSH), payload, gso_size, partial)
    }
}

/// Returns header and payload of a whole packet, with its checksum verified.
pub(crate) fn parse(packet: &[u8]) -> (IpHeader, TcpHeader, Vec<u8>) {
    let (ip, transport) = IpHeader::parse(packet).expect("an IP packet");
    let segment = &packet[transport];
    let (tcp, payload) = TcpHeader::parse(segment, Some((ip.src, ip.dst))).expect("a TCP segment");
    (ip, tcp, segment[payload].to_vec())
}
