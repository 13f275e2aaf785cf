//! Packets of somebody who has seen every packet, and so knows every number.

use super::wire::icmp;
use super::{SERVER, World};
use crate::scenario::{Attack, Forgery};
use core::time::Duration;
use proto::{RxPacket, SeqNum};
use std::net::IpAddr;
use wire::{Addr, Flags, IcmpError, IpHeader, SackBlocks, TcpHeader, TcpOptions};

impl World<'_> {
    pub(super) fn forge_when_due(&mut self) {
        let packets = self.wire.packets;
        let due: Vec<&Attack> =
            self.scenario.attacks.iter().filter(|attack| attack.after == packets).collect();
        for attack in due {
            for nth in 0..attack.count {
                self.forge(attack, nth);
            }
        }
    }

    fn forge(&mut self, attack: &Attack, nth: u32) {
        let from = 1 - attack.to;
        let Some(latest) = self.wire.latest[from].clone() else { return };
        let Ok((ip, range)) = IpHeader::parse(&latest) else { return };
        let Ok((tcp, payload)) = TcpHeader::parse(&latest[range.clone()], None) else { return };
        let next = tcp.seq + payload.len() as u32;
        let seq = next + (attack.seq_off as u32).wrapping_add(nth.wrapping_mul(700));
        let ack = tcp.ack + (attack.ack_off as u32).wrapping_add(nth);
        let header = TcpHeader { seq, ack, flags: Flags::ACK, ..tcp.clone() };
        let text = [b'x'; 1000];
        let (header, text) = match attack.kind {
            Forgery::Reset => (TcpHeader { flags: Flags::RST, ..header }, &text[..0]),
            Forgery::Syn => {
                (TcpHeader { flags: Flags::SYN, ..header }, &text[..usize::from(nth as u8 % 2) * 100])
            }
            Forgery::SynAck => (TcpHeader { flags: Flags::SYN | Flags::ACK, ..header }, &text[..0]),
            Forgery::Ack => (header, &text[..0]),
            Forgery::ZeroWindow => (TcpHeader { window: 0, ..header }, &text[..0]),
            Forgery::Sack => (self.with_blocks(header), &text[..0]),
            Forgery::Text => (header, &text[..1 + self.random.magnitude(999) as usize]),
            Forgery::Urgent => {
                let urgent = self.random.magnitude(65_535) as u16;
                (TcpHeader { urgent, flags: Flags::ACK | Flags::URG, ..header }, &text[..1])
            }
            Forgery::Fin => (TcpHeader { flags: Flags::ACK | Flags::FIN, ..header }, &text[..0]),
            Forgery::Christmas => (TcpHeader { flags: Flags::all(), ..header }, &text[..10]),
            Forgery::Icmp => return self.forge_icmp(attack),
            Forgery::StolenCookie => return self.steal_cookie(),
            Forgery::Mutated => {
                let mut bytes = latest.to_vec();
                let at = range.start + self.random.below((bytes.len() - range.start) as u64) as usize;
                bytes[at] = self.random.bits() as u8;
                wire::set_checksum(&ip, &mut bytes[range.start..]);
                self.wire.insert(self.now, attack.to, RxPacket::new(bytes.into()));
                return;
            }
        };
        let packet = wire::build_tcp_packet(&ip, &header, text);
        self.say(format_args!("forged for {}: {}", attack.to, wire::Summary(&packet)));
        let at = self.now + Duration::from_micros(self.random.below(self.scenario.wire.delay_us * 2));
        self.wire.insert(at, attack.to, RxPacket::new(packet));
    }

    /// Whoever overhears a cookie cannot use it at another address.
    fn steal_cookie(&mut self) {
        let Some(syn) = self.wire.cookie_syn.clone() else { return };
        let Ok((mut ip, range)) = IpHeader::parse(&syn) else { return };
        let Ok((mut tcp, text)) = TcpHeader::parse(&syn[range.clone()], None) else { return };
        let name = if self.scenario.v6 { "fd00::66" } else { "10.0.0.66" };
        ip.src = Addr::from(name.parse::<IpAddr>().expect("it is one"));
        tcp.seq += self.random.bits() as u32;
        let packet = wire::build_tcp_packet(&ip, &tcp, &syn[range][text]);
        self.say(format_args!("forged for {SERVER}: {}", wire::Summary(&packet)));
        self.wire.insert(self.now, SERVER, RxPacket::new(packet));
    }

    fn with_blocks(&mut self, mut header: TcpHeader) -> TcpHeader {
        let mut blocks = SackBlocks::default();
        for _ in 0..1 + self.random.below(2) {
            let start = header.ack + self.random.magnitude(100_000) as u32;
            let len = self.random.magnitude(100_000) as u32;
            blocks.push((start, start + len));
        }
        if self.random.chance(20) {
            blocks.push((header.ack - 1000, SeqNum(header.ack.0)));
        }
        let timestamps = header.options.timestamps;
        header.options = TcpOptions { timestamps, sack: blocks, ..TcpOptions::default() };
        header
    }

    /// An error about the latest packet that the victim has sent itself.
    fn forge_icmp(&mut self, attack: &Attack) {
        let Some(about) = self.wire.latest[attack.to].clone() else { return };
        let Ok((ip, _)) = IpHeader::parse(&about) else { return };
        let mtu = self.random.magnitude(70_000) as u32;
        let error = self.random.pick(&[
            IcmpError::HostUnreachable,
            IcmpError::Prohibited,
            IcmpError::ProtocolUnreachable,
            IcmpError::PortUnreachable,
            IcmpError::PacketTooBig { mtu },
            IcmpError::PacketTooBig { mtu },
            IcmpError::TimeExceeded,
            IcmpError::ParameterProblem,
        ]);
        self.wire.insert(self.now, attack.to, RxPacket::new(icmp(ip.dst, ip.src, error, &about)));
    }
}
