//! What lies between the two stacks.

use super::ledger::{self, Seen};
use super::{CLIENT, Failure, SERVER, World};
use crate::Scenario;
use crate::scenario::Attack;
use bytes::Bytes;
use core::time::Duration;
use proto::{Instant, RxBatch, RxPacket, TxPacket};
use std::collections::BTreeMap;
use wire::{Addr, Ecn, Flags, Icmp, IcmpError, IpHeader, TcpHeader};

/// Packets without progress of any application: somebody sends without end.
const MOST_PACKETS: u64 = 50_000;
/// No timer asks more often than every second once its waits have doubled; each question, and each
/// answer, may come twice.
const PACKETS_PER_SECOND: u64 = 8;
/// Where segments are of one byte, so many packets may fly, and fly again, before the first that is
/// missing arrives.
const PACKETS_PER_BYTE: u64 = 4;
/// A world of more packets, beside those for its bytes, is left: an application that writes a byte
/// at a time, each of which leaves after seconds and is sent again every second, is right, and
/// endless.
const MOST_OF_WORLD: u64 = 200_000;
const MOST_PER_BYTE: u64 = 8;
/// A compared world is left after so many: one in three hundred is longer, and those would take two
/// thirds of the time of all.
const MOST_COMPARED: u64 = 10_000;
/// So many of the first packets of each host an attacker keeps.
const MOST_PAST: usize = 200;
/// More packets than one call may bring forth.
const MOST_AT_ONCE: u64 = 60_000;
/// Copies of SYNs wander for long so many times as often as those of other packets.
const SYNS_LATE: u64 = 20;
/// Nothing repeats more often without an answer: the greatest of all limits is 255
/// (`tcp_retries2`), and timers before it are linear.
const MOST_REPEATS: u32 = 700;
/// After so many repetitions without an answer the waits have doubled often enough, or are those of
/// a greatest time-out, of which the least is a second (`tcp_rto_max_ms`, and keepalive's
/// interval): what is repeated sooner does not wait longer and longer (RFC 6298 §5.5, RFC 9293
/// §3.8.6.1).
const HASTY_REPEATS: u32 = 40;
const LEAST_WAIT: Duration = Duration::from_millis(400);

#[derive(Default)]
pub(super) struct Wire {
    flying: BTreeMap<(Instant, u64), Flying>,
    serial: u64,
    pub(super) fingerprint: u64,
    pub(super) packets: u64,
    /// Since an application has read, written or ended something, and when that was.
    since_progress: u64,
    progress_at: Option<Instant>,
    /// The latest TCP packet of each host.
    pub(super) latest: [Option<Bytes>; 2],
    /// The latest SYN with a Fast Open cookie.
    pub(super) cookie_syn: Option<Bytes>,
    /// Bytes that all applications have to say.
    said: u64,
    /// Some of all that each has sent, for who repeats it.
    pub(super) past: [Vec<Bytes>; 2],
    /// What is to be forged as soon as it can be.
    pub(super) to_forge: Vec<(Attack, u32)>,
}

/// A packet on its way.
struct Flying {
    to: usize,
    packet: RxPacket,
    /// It is as its sender, who is the other host, has sent it.
    intact: bool,
}

impl Wire {
    pub(super) fn new(scenario: &Scenario) -> Wire {
        let said: u64 = scenario.connections.iter().map(|plan| plan.says(0) + plan.says(1)).sum();
        Wire { said, ..Wire::default() }
    }

    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.flying.keys().next().map(|(at, _)| *at)
    }

    /// Packets on the wire.
    pub(super) fn flying(&self) -> usize {
        self.flying.len()
    }

    /// An application has read, written or ended something.
    pub(super) fn progress(&mut self, now: Instant) {
        (self.since_progress, self.progress_at) = (0, Some(now));
    }

    /// Time since an application has read, written or ended something.
    pub(super) fn idle_since(&self, now: Instant) -> Duration {
        self.progress_at.map_or(Duration::MAX, |at| now.since(at))
    }

    /// Somebody else than a host sends it.
    pub(super) fn insert(&mut self, at: Instant, to: usize, packet: RxPacket) {
        self.carry(at, Flying { to, packet, intact: false });
    }

    fn carry(&mut self, at: Instant, flying: Flying) {
        self.serial += 1;
        self.flying.insert((at, self.serial), flying);
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
                    if is_syn(&packet.to_bytes()) {
                        // Its text may be retransmitted whatever the window, as if the SYN had been
                        // lost behind the device.
                        self.watch_leaving(from, &packet.to_bytes())?;
                    }
                    if let Some((which, seen)) = self.seen(from, &packet.to_bytes()) {
                        ledger::leaves(&mut self.accounts[which], from, self.now, seen);
                        ledger::is_harmed(&mut self.accounts[which], from, self.now);
                    }
                    continue;
                }
                self.send(from, &packet)?;
            }
        }
        self.hear_complaints()
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
        self.check_repetition(from, &packet.data)?;
        self.watch_leaving(from, &packet.data)?;
        self.wire.latest[from] = Some(packet.data.clone());
        if !self.scenario.attacks.is_empty() {
            self.keep_for_attackers(from, &packet);
        }
        self.forge_when_due();
        let arrow = if from == CLIENT { ">" } else { "<" };
        if packet.gso_size == 0 && packet.data.len() > self.mtu() && !may_be_cut(&packet.data) {
            self.say(format_args!("{arrow} too big: {}", wire::Summary(&packet.data)));
            self.harm(from, &packet.data);
            self.too_big(from, &packet.data);
            return Ok(());
        }
        if self.is_out() || !self.is_honest() && self.random.chance(self.scenario.wire.loss) {
            self.say(format_args!("{arrow} lost: {}", wire::Summary(&packet.data)));
            self.harm(from, &packet.data);
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

    fn keep_for_attackers(&mut self, from: usize, packet: &RxPacket) {
        if from == CLIENT && brings_cookie(&packet.data) {
            self.wire.cookie_syn = Some(packet.data.clone());
        }
        let past = &mut self.wire.past[from];
        if packet.gso_size == 0 && past.len() < MOST_PAST {
            past.push(packet.data.clone());
        }
    }

    /// What the ledger calls this packet, and whose it is.
    pub(super) fn seen(&self, from: usize, packet: &[u8]) -> Option<(usize, Seen)> {
        let seen = Seen::new(from, packet)?;
        Some((*self.by_port.get(&seen.client_port)?, seen))
    }

    fn harm(&mut self, from: usize, packet: &[u8]) {
        if let Some((which, _)) = self.seen(from, packet) {
            ledger::is_harmed(&mut self.accounts[which], from, self.now);
        }
    }

    /// Of a connection that makes no progress. Where an attacker has written into the stream each
    /// end acknowledges what the other has never sent, and answers such an acknowledgement, for
    /// ever: as often as `tcp_invalid_ratelimit` lets both.
    fn packets_per_second(&self) -> u64 {
        let out_of_step = self.scenario.attacks.iter().any(|attack| !attack.kind.is_bounded());
        let limits = self.stacks.iter().map(|stack| u64::from(stack.config().tcp_invalid_ratelimit));
        match limits.max() {
            Some(0) if out_of_step => u64::from(u32::MAX),
            Some(limit) if out_of_step => PACKETS_PER_SECOND.max(4 * 1000 / limit),
            _ => PACKETS_PER_SECOND,
        }
    }

    /// Nobody repeats without end, or without waiting longer and longer.
    fn check_repetition(&mut self, from: usize, packet: &[u8]) -> Result<(), Failure> {
        self.wire.since_progress += 1;
        let said = self.wire.said;
        let most =
            if self.scenario.differential { MOST_COMPARED } else { MOST_OF_WORLD + MOST_PER_BYTE * said };
        self.too_long |= self.wire.packets > most;
        let since = self.now.since(self.wire.progress_at.unwrap_or(self.at(0))).as_secs();
        let connections = self.scenario.connections.len() as u64;
        if self.wire.since_progress
            > MOST_PACKETS
                + PACKETS_PER_BYTE * said
                + self.packets_per_second().saturating_mul(connections * since)
        {
            return Err(Failure::new("a storm of packets", wire::Summary(packet)));
        }
        let Some((which, seen)) = self.seen(from, packet) else { return Ok(()) };
        let repeated = ledger::leaves(&mut self.accounts[which], from, self.now, seen);
        if seen.is_reset() {
            self.note_reset(from, which);
        }
        if repeated.times > MOST_REPEATS {
            return Err(Failure::new("repeats without end and without an answer", wire::Summary(packet)));
        }
        // Of SYNs the first time-outs may be as many as one likes, each as long as the first
        // (`tcp_syn_linear_timeouts`); what `TCP_TX_DELAY` holds back was asked for before. A reset
        // is no repetition: it answers a packet, and several may have arrived at once.
        let hasty = repeated.times > HASTY_REPEATS && repeated.after < LEAST_WAIT;
        if hasty && !seen.is_syn() && !seen.is_reset() && !self.facts_of(from, which).leaves_late() {
            return Err(Failure::new("repeats without waiting longer", wire::Summary(packet)));
        }
        Ok(())
    }

    fn fly(&mut self, from: usize, mut packet: RxPacket, late: Duration) {
        let faults = &self.scenario.wire;
        let mut delay = Duration::from_micros(faults.delay_us);
        let mut intact = true;
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
                // Whose it was is known only of what was sent: the damage may have hit the ports.
                self.harm(from, &packet.data);
                let mut bytes = packet.data.to_vec();
                let at = self.random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << self.random.below(8);
                packet.data = bytes.into();
                intact = false;
            }
        }
        // No packet lives longer than RFC 9293's MSL, two minutes: what reorders does not lengthen
        // this.
        self.wire.carry(self.now + delay + late, Flying { to: 1 - from, packet, intact });
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
        self.attack_within_bounds()?;
        let mut batches: [RxBatch; 2] = Default::default();
        while let Some(entry) = self.wire.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let Flying { to, packet, intact } = entry.remove();
            self.watch_arriving(to, &packet.data);
            if let Some((which, seen)) = self.seen(1 - to, &packet.data) {
                ledger::arrives(&mut self.accounts[which], to, self.now, intact.then_some(seen));
            }
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
