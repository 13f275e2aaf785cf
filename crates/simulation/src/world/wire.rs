//! What lies between the two stacks.

use super::{CLIENT, Failure, SERVER, World};
use crate::Scenario;
use bytes::Bytes;
use core::time::Duration;
use proto::{Instant, RxBatch, RxPacket, TxPacket};
use std::collections::BTreeMap;
use wire::{Addr, Ecn, Flags, Icmp, IcmpError, IpHeader, TcpHeader};

/// More packets than any world needs, beside those for its bytes: somebody sends without end.
const MOST_PACKETS: u64 = 200_000;
/// Each byte may take so many packets, where a setting or an option makes segments of one byte.
const PACKETS_PER_BYTE: u64 = 8;
/// More packets than one call may bring forth.
const MOST_AT_ONCE: u64 = 60_000;
/// Copies of SYNs wander for long so many times as often as those of other packets.
const SYNS_LATE: u64 = 20;
/// Nothing repeats more often without an answer: the greatest of all limits is 255 (`tcp_retries2`), and timers before it are linear.
const MOST_REPEATS: u32 = 700;

#[derive(Default)]
pub(super) struct Wire {
    flying: BTreeMap<(Instant, u64), (usize, RxPacket)>,
    serial: u64,
    pub(super) fingerprint: u64,
    pub(super) packets: u64,
    /// The latest TCP packet of each host.
    pub(super) latest: [Option<Bytes>; 2],
    /// The latest SYN with a Fast Open cookie.
    pub(super) cookie_syn: Option<Bytes>,
    repeats: [Repeats; 2],
    most_packets: u64,
}

/// How often a host has said the same and heard nothing.
#[derive(Default)]
struct Repeats {
    hash: u64,
    count: u32,
}

impl Wire {
    pub(super) fn new(scenario: &Scenario) -> Wire {
        let said: u64 = scenario.connections.iter().map(|plan| plan.says(0) + plan.says(1)).sum();
        Wire { most_packets: MOST_PACKETS + PACKETS_PER_BYTE * said, ..Wire::default() }
    }

    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.flying.keys().next().map(|(at, _)| *at)
    }

    pub(super) fn insert(&mut self, at: Instant, to: usize, packet: RxPacket) {
        self.serial += 1;
        self.flying.insert((at, self.serial), (to, packet));
    }
}

/// Multiplies as FNV-1a does, eight bytes at a time, and brings the upper bits down each time.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mix = |mixed: u64, word: u64| {
        let mixed = (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 32)
    };
    let words = bytes.chunks_exact(8);
    let rest = words.remainder().iter().fold(seed, |mixed, byte| mix(mixed, u64::from(*byte) + 1));
    words.map(|word| u64::from_le_bytes(word.try_into().expect("eight of them"))).fold(rest, mix)
}

impl World<'_> {
    /// Moves what the stacks want to send onto the wire.
    pub(super) fn drain(&mut self) -> Result<(), Failure> {
        for from in [CLIENT, SERVER] {
            let mut sent = 0;
            while let Some(packet) = self.stacks[from].poll_transmit(self.now) {
                sent += 1;
                if sent > MOST_AT_ONCE {
                    return Err(Failure::new("poll_transmit does not end", format_args!("side {from}")));
                }
                if !self.is_honest() && self.random.chance(self.scenario.hosts[from].refusals) {
                    self.say(format_args!("{from} refused {}", wire::Summary(&packet.to_bytes())));
                    self.stacks[from].handle_refusal(self.now, &packet);
                    continue;
                }
                self.send(from, &packet)?;
            }
        }
        Ok(())
    }

    fn send(&mut self, from: usize, packet: &TxPacket) -> Result<(), Failure> {
        let merged = self.scenario.wire.merge
            && packet.gso_size > 0
            && usize::from(packet.gso_size) + 80 <= self.mtu();
        if merged {
            let whole = RxPacket { gso_size: packet.gso_size, ..RxPacket::new(packet.to_bytes()) };
            return self.launch(from, whole);
        }
        for segment in packet.segments() {
            if segment.len() > self.scenario.hosts[from].mtu {
                return Err(Failure::new("larger than the device's MTU", wire::Summary(&segment)));
            }
            self.launch(from, RxPacket::new(segment))?;
        }
        Ok(())
    }

    /// The largest packet that gets through now.
    fn mtu(&self) -> usize {
        let begun = self.scenario.wire.mtus.iter().filter(|(at_ms, _)| self.now >= self.at(*at_ms));
        begun.max_by_key(|(at_ms, _)| *at_ms).map_or(65_535, |(_, mtu)| *mtu)
    }

    fn is_out(&self) -> bool {
        !self.is_honest()
            && self
                .scenario
                .wire
                .outages
                .iter()
                .any(|(at, len)| self.now >= self.at(*at) && self.now < self.at(at + len))
    }

    fn launch(&mut self, from: usize, packet: RxPacket) -> Result<(), Failure> {
        self.wire.fingerprint = hash(self.wire.fingerprint, &packet.data) ^ self.now.as_nanos();
        self.wire.packets += 1;
        self.count_repeats(from, &packet.data)?;
        self.watch_leaving(from, &packet.data)?;
        self.wire.latest[from] = Some(packet.data.clone());
        if !self.scenario.attacks.is_empty() && from == CLIENT && brings_cookie(&packet.data) {
            self.wire.cookie_syn = Some(packet.data.clone());
        }
        self.forge_when_due();
        let arrow = if from == CLIENT { ">" } else { "<" };
        if packet.gso_size == 0 && packet.data.len() > self.mtu() && !may_be_cut(&packet.data) {
            self.say(format_args!("{arrow} too big: {}", wire::Summary(&packet.data)));
            self.too_big(from, &packet.data);
            return Ok(());
        }
        if self.is_out() || !self.is_honest() && self.random.chance(self.scenario.wire.loss) {
            self.say(format_args!("{arrow} lost: {}", wire::Summary(&packet.data)));
            return Ok(());
        }
        self.say(format_args!("{arrow} {}", wire::Summary(&packet.data)));
        self.fly(from, packet.clone(), Duration::ZERO);
        if !self.is_honest() && self.random.chance(self.scenario.wire.duplicate) {
            self.fly(from, packet.clone(), Duration::ZERO);
        }
        let (late, by_ms) = self.scenario.wire.late;
        // SYNs are few, and a copy of one does most when its connection is over.
        let wanders = self.scenario.attacks.is_empty() && is_syn(&packet.data);
        let late = if wanders { late * SYNS_LATE } else { late };
        if !self.is_honest() && self.random.chance(late) {
            let by = Duration::from_millis(self.random.below(by_ms + 1));
            self.fly(from, packet, by);
        }
        Ok(())
    }

    fn count_repeats(&mut self, from: usize, packet: &[u8]) -> Result<(), Failure> {
        if self.wire.packets > self.wire.most_packets {
            return Err(Failure::new("a storm of packets", wire::Summary(packet)));
        }
        // Without what changes from one to the next: IP's identification and checksum, TCP's checksum and options.
        let Ok((ip, range)) = IpHeader::parse(packet) else { return Ok(()) };
        let tcp = &packet[range];
        let told = hash(u64::from(ip.protocol), &tcp[..tcp.len().min(16)]);
        let repeats = &mut self.wire.repeats[from];
        repeats.count = if repeats.hash == told { repeats.count + 1 } else { 0 };
        repeats.hash = told;
        if repeats.count > MOST_REPEATS {
            return Err(Failure::new("repeats without end and without an answer", wire::Summary(packet)));
        }
        Ok(())
    }

    fn fly(&mut self, from: usize, mut packet: RxPacket, late: Duration) {
        let faults = &self.scenario.wire;
        let mut delay = Duration::from_micros(faults.delay_us) + late;
        if !self.is_honest() {
            if self.random.chance(faults.reorder) {
                delay += delay.mul_f64(self.random.below(300) as f64 / 100.0);
            }
            delay += Duration::from_millis(self.random.below(faults.jitter_ms + 1));
            if self.random.chance(faults.mark) {
                packet.data = marked(packet.data);
            }
            if self.random.chance(faults.icmp) {
                self.needless_error(from, &packet.data);
            }
            if self.random.chance(faults.corrupt) {
                let mut bytes = packet.data.to_vec();
                let at = self.random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << self.random.below(8);
                packet.data = bytes.into();
            }
        }
        self.wire.insert(self.now + delay, 1 - from, packet);
    }

    /// A router cannot forward it whole.
    fn too_big(&mut self, from: usize, packet: &[u8]) {
        let lost = !self.is_honest() && self.random.chance(self.scenario.wire.loss);
        if !lost {
            self.answer(from, packet, IcmpError::PacketTooBig { mtu: self.mtu() as u32 });
        }
    }

    fn needless_error(&mut self, from: usize, packet: &[u8]) {
        let error = self.random.pick(&[
            IcmpError::HostUnreachable,
            IcmpError::Prohibited,
            IcmpError::PortUnreachable,
            IcmpError::TimeExceeded,
            IcmpError::ParameterProblem,
        ]);
        self.answer(from, packet, error);
    }

    fn answer(&mut self, from: usize, packet: &[u8], error: IcmpError) {
        let Ok((ip, _)) = IpHeader::parse(packet) else { return };
        let at = self.now + Duration::from_micros(self.scenario.wire.delay_us);
        let answer = icmp(ip.dst, ip.src, error, packet);
        self.say(format_args!("to {from}: {}", wire::Summary(&answer)));
        self.wire.insert(at, from, RxPacket::new(answer));
    }

    /// Hands over what has arrived.
    pub(super) fn deliver(&mut self) -> Result<(), Failure> {
        let mut batches: [RxBatch; 2] = Default::default();
        while let Some(entry) = self.wire.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, packet) = entry.remove();
            self.watch_arriving(to, &packet.data);
            self.wire.repeats[to] = Repeats::default();
            if self.scenario.wire.batches {
                // One half in memory of their own, the other in what the batch has.
                match packet.data.len() % 2 {
                    0 => batches[to].push(packet),
                    _ => batches[to].copy(&packet.data, packet.checksum, packet.gso_size),
                }
                continue;
            }
            self.stacks[to].handle_packet(self.now, packet);
            self.drain()?;
        }
        for (stack, batch) in self.stacks.iter_mut().zip(&mut batches) {
            stack.handle_packets(self.now, batch);
        }
        self.drain()
    }
}

pub(super) fn icmp(from: Addr, to: Addr, error: IcmpError, about: &[u8]) -> Bytes {
    let router =
        IpHeader::new(from, to, if to.is_v4() { wire::protocol::ICMP } else { wire::protocol::ICMPV6 });
    let quote = &about[..about.len().min(100)];
    wire::build_icmp_packet(&router, &Icmp::Error { error, quote })
}

fn is_syn(packet: &[u8]) -> bool {
    let Ok((_, range)) = IpHeader::parse(packet) else { return false };
    packet[range].get(13).is_some_and(|flags| flags & Flags::SYN.bits() as u8 != 0)
}

fn brings_cookie(packet: &[u8]) -> bool {
    let Ok((_, range)) = IpHeader::parse(packet) else { return false };
    let Ok((tcp, text)) = TcpHeader::parse(&packet[range], None) else { return false };
    let cookie = tcp.options.fast_open.and_then(|option| option.cookie);
    tcp.flags.contains(Flags::SYN) && !text.is_empty() && cookie.is_some()
}

/// Routers cut it, and the other host puts it together again.
fn may_be_cut(packet: &[u8]) -> bool {
    IpHeader::parse(packet).is_ok_and(|(ip, _)| ip.src.is_v4() && !ip.dont_fragment)
}

/// What a congested router makes of a packet that is ECT.
fn marked(packet: Bytes) -> Bytes {
    let Ok((mut ip, range)) = IpHeader::parse(&packet) else { return packet };
    if ip.ecn == Ecn::NotEct {
        return packet;
    }
    ip.ecn = Ecn::Ce;
    let mut bytes = packet.to_vec();
    ip.emit(range.len(), &mut bytes[..range.start]);
    bytes.into()
}
