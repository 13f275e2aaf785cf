//! Packets of somebody who has seen every packet, and so knows every number.

use super::wire::icmp;
use super::{Failure, SERVER, World, ledger};
use crate::scenario::{Attack, Forgery};
use bytes::Bytes;
use core::time::Duration;
use proto::{RxPacket, SeqNum, State};
use std::net::IpAddr;
use wire::{Addr, Flags, IcmpError, IpHeader, SackBlocks, TcpHeader, TcpOptions};

impl World<'_> {
    pub(super) fn forge_when_due(&mut self) {
        let packets = self.wire.packets;
        let due: Vec<&Attack> =
            self.scenario.attacks.iter().filter(|attack| attack.after.max(1) == packets).collect();
        for attack in due {
            for nth in 0..attack.count {
                match attack.kind.is_bounded() {
                    true => self.wire.to_forge.push((attack.clone(), nth)),
                    false => self.forge(attack, nth),
                }
            }
        }
    }

    /// Hands over what is forged of the numbers of this very moment. What no connection is in a
    /// state for waits until one is.
    pub(super) fn attack_within_bounds(&mut self) -> Result<(), Failure> {
        for (attack, nth) in std::mem::take(&mut self.wire.to_forge) {
            let Some(packet) = self.bounded_forgery(&attack, nth) else {
                self.wire.to_forge.push((attack, nth));
                continue;
            };
            self.say(format_args!("forged for {}: {}", attack.to, wire::Summary(&packet)));
            if let Some((which, _)) = self.seen(1 - attack.to, &packet) {
                ledger::arrives(&mut self.accounts[which], attack.to, self.now, None);
            }
            self.stacks[attack.to].handle_packet(self.now, RxPacket::new(packet));
            self.drain()?;
        }
        Ok(())
    }

    fn bounded_forgery(&mut self, attack: &Attack, nth: u32) -> Option<Bytes> {
        let to = attack.to;
        if attack.kind == Forgery::Error {
            let about = self.wire.latest[to].clone()?;
            return Some(self.icmp_error(&about));
        }
        if attack.kind == Forgery::Replay {
            // What must not be taken again although it is valid by itself (RFC 7413 §6.1).
            if to == SERVER
                && nth.is_multiple_of(2)
                && let Some(syn) = self.wire.cookie_syn.clone()
            {
                return Some(syn);
            }
            let past = &self.wire.past[1 - to];
            let at = self.random.below(past.len() as u64) as usize;
            return past.get(at).cloned();
        }
        let latest = self.wire.latest[1 - to].clone()?;
        let (ip, range) = IpHeader::parse(&latest).ok()?;
        let (tcp, _) = TcpHeader::parse(&latest[range], None).ok()?;
        let (which, _) = self.seen(1 - to, &latest)?;
        let id = self.apps[which][to].as_ref()?.id;
        let info = self.stacks[to].info(id)?;
        if matches!(info.state, State::SynSent | State::SynReceived | State::TimeWait | State::Closed) {
            return None;
        }
        let stack = &self.stacks[to];
        let (rcv_nxt, (una, end)) = (stack.rcv_nxt(id)?, stack.send_span(id)?);
        let off = (attack.seq_off.unsigned_abs() as u32 % (1 << 30)).wrapping_add(nth);
        let timestamps = tcp.options.timestamps.filter(|_| info.timestamps);
        let header = TcpHeader {
            seq: rcv_nxt,
            ack: una,
            flags: Flags::ACK,
            options: TcpOptions { timestamps, ..TcpOptions::default() },
            ..tcp
        };
        // Where the window ends, or may be told to end by what is on its way.
        let beyond = rcv_nxt + info.rcv_wnd.max(info.recv_buffer) + (1 << info.rcv_wscale) + 1;
        let before = attack.seq_off < 0;
        let text = [b'x'; 1000];
        let (header, text) = match attack.kind {
            Forgery::StrayReset => {
                // Within the window none may be the number behind what came early, which counts as
                // the one expected.
                let in_order = info.tcp_info.rcv_ooopack == 0;
                let seq = match (before, in_order) {
                    (true, _) => rcv_nxt - 2 - off,
                    (false, true) => rcv_nxt + 1 + off,
                    (false, false) => beyond + off,
                };
                (TcpHeader { seq, flags: Flags::RST, ..header }, &text[..0])
            }
            Forgery::StraySyn => {
                let seq = if before { rcv_nxt - off } else { rcv_nxt + off };
                let flags = if nth.is_multiple_of(2) { Flags::SYN } else { Flags::SYN | Flags::ACK };
                (TcpHeader { seq, flags, ..header }, &text[..0])
            }
            Forgery::FarText => {
                let len = 1 + self.random.magnitude(999) as u32;
                let seq = if before { rcv_nxt - len - off } else { beyond + off };
                // A FIN before the window would be one that has come.
                let flags = if before { Flags::ACK } else { Flags::ACK | Flags::FIN };
                (TcpHeader { seq, flags, ..header }, &text[..len as usize])
            }
            Forgery::FarAck => {
                let ack = if before { una - 1 - off } else { end + 2 + off };
                (TcpHeader { ack, ..header }, &text[..0])
            }
            Forgery::LyingSack => (self.with_blocks(header), &text[..0]),
            Forgery::ShutWindow => (TcpHeader { window: 0, ..header }, &text[..0]),
            _ => return None,
        };
        Some(wire::build_tcp_packet(&ip, &header, text))
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
            Forgery::StolenCookie => return self.steal_cookie(),
            Forgery::Icmp => {
                let Some(about) = self.wire.latest[attack.to].clone() else { return };
                let error = self.icmp_error(&about);
                return self.wire.insert(self.now, attack.to, RxPacket::new(error));
            }
            Forgery::Mutated => {
                let mut bytes = latest.to_vec();
                let at = range.start + self.random.below((bytes.len() - range.start) as u64) as usize;
                bytes[at] = self.random.bits() as u8;
                wire::set_checksum(&ip, &mut bytes[range.start..]);
                self.wire.insert(self.now, attack.to, RxPacket::new(bytes.into()));
                return;
            }
            _ => return,
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

    /// An error about this packet.
    fn icmp_error(&mut self, about: &Bytes) -> Bytes {
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
        match IpHeader::parse(about) {
            Ok((ip, _)) => icmp(ip.dst, ip.src, error, about),
            Err(_) => about.clone(),
        }
    }
}
