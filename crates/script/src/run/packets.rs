//! Packets of a script: those that come are made and handed in, those that are expected are compared with what left.

use crate::ast::{Body, Direction, Icmp, Ip, Packet, Segment, TcpOption, Tos};
use crate::print::Seconds;
use crate::run::Runner;
use crate::run::failure::Failure;
use crate::run::flow::Flow;
use crate::run::segment;
use core::net::SocketAddr;
use wire::{Ecn, Flags, IpHeader};

/// How long a packet is waited for, microseconds.
const PACKET_TIMEOUT: i64 = 200_000_000;

impl Runner<'_> {
    /// A packet comes in.
    pub(super) fn inject(&mut self, line: usize, packet: &Packet) -> Result<(), Failure> {
        let refused = |message| Failure::new(line, message);
        let is_v4 = self.setup.local.is_ipv4();
        if let Body::Icmp(icmp) = &packet.body
            && segment::is_echo(segment::numbers(icmp, is_v4).map_err(refused)?.0, is_v4)
        {
            // Of no socket's concern.
            let ends = [self.setup.local, self.setup.remote].map(|ip| SocketAddr::new(ip, 0));
            let bytes = segment::emit_icmp(ends[0], ends[1], &packet.ip, icmp, 0).map_err(refused)?;
            self.world.inject(bytes);
            return Ok(());
        }
        let ports = match &packet.body {
            Body::Tcp(segment) => segment.ports,
            Body::Icmp(_) => None,
        };
        let of_packet = match ports {
            Some((from, to)) => self.flow_of_ports(to, from, true),
            None => {
                self.begin_flow_of_listener();
                self.under_test
            }
        };
        let setup = &self.setup;
        let Some(flow) = self.flows.get_mut(of_packet) else {
            return Err(Failure::new(line, "a packet comes for no socket: there is none yet"));
        };
        let bytes = match &packet.body {
            Body::Tcp(segment) => {
                let live = flow.live_of(segment, setup.remote_isn, setup.ts_ecr_scaled).map_err(refused)?;
                segment::emit(flow.remote, flow.local, &packet.ip, &live)
            }
            Body::Icmp(icmp) => {
                let seq = flow.quoted(icmp.quote.map_or(0, |(seq, _)| seq));
                segment::emit_icmp(flow.local, flow.remote, &packet.ip, icmp, seq).map_err(refused)?
            }
        };
        self.world.inject(bytes);
        Ok(())
    }

    /// A packet for a socket that listens comes from a peer of its own.
    fn begin_flow_of_listener(&mut self) {
        let Some(listener) = self.flows.get(self.under_test) else { return };
        if !listener.listening {
            return;
        }
        let remote = SocketAddr::new(self.setup.remote, self.next_peer_port);
        self.next_peer_port = self.next_peer_port.checked_add(1).unwrap_or(1024);
        let local = SocketAddr::new(self.setup.local, listener.local.port());
        self.under_test = self.flows.len();
        self.flows.push(Flow::new(None, local, remote));
    }

    /// Where a packet says its ports, they tell whose it is; a first one to a listener `begins` a flow of its own. Else it is of the one
    /// under test.
    fn flow_of_ports(&mut self, local: u16, remote: u16, begins: bool) -> usize {
        let same =
            |flow: &Flow| !flow.listening && (flow.local.port(), flow.remote.port()) == (local, remote);
        if let Some(known) = self.flows.iter().rposition(same) {
            return known;
        }
        let listens = self.flows.iter().any(|flow| flow.listening && flow.local.port() == local);
        if !begins || !listens {
            return self.under_test;
        }
        let ends = [(self.setup.local, local), (self.setup.remote, remote)].map(SocketAddr::from);
        self.flows.push(Flow::new(None, ends[0], ends[1]));
        self.flows.len() - 1
    }

    /// A packet is expected: the next of its flow must be it. Returns when it left.
    pub(super) fn expect(&mut self, line: usize, packet: &Packet) -> Result<i64, Failure> {
        let expected = match &packet.body {
            Body::Tcp(expected) => expected,
            Body::Icmp(icmp) => return self.expect_icmp(line, packet, icmp),
        };
        if self.flows.is_empty() {
            return Err(Failure::new(line, "a packet is expected of no socket: there is none yet"));
        }
        let (first_at, ip, mut seen) = self.next_of_flow(line, packet, expected)?;
        let (mut at, mut last) = (first_at, seen.clone());
        while seen.len < expected.len && !self.setup.strict_segments && seen.len > 0 {
            let (when, header, more) = self.next_of_flow(line, packet, expected)?;
            let missing = expected.len - seen.len;
            let together = header == ip && when - first_at <= self.setup.tolerance_usecs;
            let goes_on = together && continues(&last, &more);
            if !goes_on || (more.len < missing && more.len != last.len) {
                let (len, wanted) = (seen.len, expected.len);
                let message = format!(
                    "the packet ends after {len} of {wanted} bytes, and the next at {} s does not go on",
                    Seconds(when)
                );
                let more = show(packet, expected, header, more);
                return Err(Failure::new(line, message).beside(packet.to_string(), more));
            }
            seen = merged(&seen, &more);
            (at, last) = (when, more);
        }
        let differing = self.differing(packet, expected, ip, &seen);
        if differing.is_empty() {
            return Ok(at);
        }
        let message = format!("the packet at {} s differs in {}", Seconds(at), differing.join(", "));
        Err(Failure::new(line, message).beside(packet.to_string(), show(packet, expected, ip, seen)))
    }

    /// The next ICMP message must be it; TCP's packets in between are nobody's.
    fn expect_icmp(&mut self, line: usize, packet: &Packet, icmp: &Icmp) -> Result<i64, Failure> {
        let latest = self.world.micros() + PACKET_TIMEOUT;
        let is_v4 = self.setup.local.is_ipv4();
        let wanted = segment::numbers(icmp, is_v4).map_err(|message| Failure::new(line, message))?;
        loop {
            let Some((at, bytes)) = self.world.take_sent() else {
                if self.world.step(latest) {
                    continue;
                }
                let message = format!("no ICMP message left by {} s", Seconds(latest));
                return Err(Failure::new(line, message).beside(packet.to_string(), "nothing"));
            };
            let Some(seen) = segment::read_icmp(&bytes) else { continue };
            if segment::is_icmp(wanted, icmp.id, seen) && differing_ip(packet.ip, seen.ip).is_empty() {
                return Ok(at);
            }
            let body = Body::Icmp(segment::show_icmp(is_v4, seen));
            let seen =
                Packet { direction: Direction::Out, ip: shown_ip(packet.ip, seen.ip), body }.to_string();
            let message = format!("the ICMP message at {} s differs", Seconds(at));
            return Err(Failure::new(line, message).beside(packet.to_string(), seen));
        }
    }

    fn next_of_flow(
        &mut self,
        line: usize,
        packet: &Packet,
        expected: &Segment,
    ) -> Result<(i64, Ip, Segment), Failure> {
        let latest = self.world.micros() + PACKET_TIMEOUT;
        let of_packet = match expected.ports {
            Some((from, to)) => self.flow_of_ports(from, to, false),
            None => self.under_test,
        };
        loop {
            let Some((at, bytes)) = self.world.take_sent() else {
                if self.world.step(latest) {
                    continue;
                }
                let message = format!("no packet left by {} s", Seconds(latest));
                return Err(Failure::new(line, message).beside(packet.to_string(), "nothing"));
            };
            if let Err(error) = IpHeader::parse(&bytes) {
                return Err(Failure::new(
                    line,
                    format!("what left at {} s is no IP packet: {error}", Seconds(at)),
                ));
            }
            let Some((from, to, ip, live)) = segment::read(&bytes) else { continue };
            if let Some(flow) = self.flows.get_mut(of_packet)
                && flow.owns(expected, from, to, &live)
            {
                let seen = flow.seen_of(&live, expected);
                if let Some(wrong) = segment::wrong_in(&bytes) {
                    let message = format!("the packet at {} s has {wrong}", Seconds(at));
                    let seen = show(packet, expected, ip, seen);
                    return Err(Failure::new(line, message).beside(packet.to_string(), seen));
                }
                return Ok((at, ip, seen));
            }
        }
    }

    /// Names of the fields in which a packet is not as expected.
    fn differing(&self, packet: &Packet, expected: &Segment, ip: Ip, seen: &Segment) -> Vec<&'static str> {
        let (tick, tolerance) = (self.setup.ts_tick_usecs, self.tolerance(self.world.micros()));
        let found = seen.options.as_deref().unwrap_or_default();
        let options = expected.options.as_ref().is_none_or(|wanted| {
            let pairs = || wanted.iter().zip(found);
            wanted.len() == found.len()
                && pairs().all(|(wanted, found)| is_same_option(wanted, found, tick, tolerance))
        });
        let checks = [
            ("flags", expected.flags == seen.flags),
            ("sequence number", expected.seq == seen.seq),
            ("length", expected.len == seen.len),
            ("acknowledgment", expected.ack.unwrap_or(0) == seen.ack.unwrap_or(0)),
            ("window", expected.window.is_none_or(|window| seen.window == Some(window))),
            ("urgent pointer", expected.urgent.unwrap_or(0) == seen.urgent.unwrap_or(0)),
            ("options", options),
        ];
        let of_segment = checks.into_iter().filter(|(_, same)| !same).map(|(name, _)| name);
        differing_ip(packet.ip, ip).into_iter().chain(of_segment).collect()
    }
}

/// Names of what an IP header has otherwise than it is said.
fn differing_ip(said: Ip, seen: Ip) -> Vec<&'static str> {
    let byte = match seen.tos {
        Some(Tos::Byte(byte)) => byte,
        _ => 0,
    };
    let tos = match said.tos {
        None => true,
        Some(Tos::Ecn(ecn)) => Ecn::from_bits(byte) == ecn,
        Some(Tos::Ect01) => matches!(Ecn::from_bits(byte), Ecn::Ect0 | Ecn::Ect1),
        Some(Tos::Byte(wanted)) => byte == wanted,
    };
    let checks = [
        ("traffic class", tos),
        ("TTL", said.ttl.is_none_or(|ttl| seen.ttl == Some(ttl))),
        ("flow label", said.flow_label.is_none_or(|label| seen.flow_label == Some(label))),
    ];
    checks.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
}

/// Are these two segments of one burst? Its first may say CWR (RFC 3168 §6.1.2), its last PSH and FIN.
fn continues(before: &Segment, more: &Segment) -> bool {
    let own = Flags::PSH | Flags::FIN | Flags::CWR;
    let options =
        |segment: &Segment| segment.options.iter().flatten().map(TcpOption::wire_len).sum::<usize>();
    more.len > 0
        && more.seq == before.end()
        && more.ack == before.ack
        && more.window == before.window
        && more.urgent == before.urgent
        && more.flags.difference(own) == before.flags.difference(own)
        && options(more) == options(before)
        && !before.flags.contains(Flags::FIN)
}

/// The segment that was cut into `first`, which may itself be of several, and `more`: its header is the last one's, but for where it begins
/// and CWR.
fn merged(first: &Segment, more: &Segment) -> Segment {
    let mut flags = more.flags;
    flags.set(Flags::CWR, first.flags.contains(Flags::CWR));
    Segment { seq: first.seq, len: first.len.saturating_add(more.len), flags, ..more.clone() }
}

/// Of timestamps, how much TSval has grown is compared where the script says what a tick is; TSecr is not.
fn is_same_option(wanted: &TcpOption, seen: &TcpOption, tick: u32, tolerance: i64) -> bool {
    match (wanted, seen) {
        (TcpOption::Timestamps { val: wanted, .. }, TcpOption::Timestamps { val: seen, .. }) => {
            let off = i64::from(seen.wrapping_sub(*wanted).cast_signed().unsigned_abs());
            tick == 0 || off * i64::from(tick) <= tolerance
        }
        _ => wanted == seen,
    }
}

/// What was seen, in the words in which the expected packet is written.
fn show(packet: &Packet, expected: &Segment, ip: Ip, mut seen: Segment) -> String {
    let ip = shown_ip(packet.ip, ip);
    seen.ace = expected.ace;
    seen.ports = expected.ports;
    seen.window = expected.window.and(seen.window);
    seen.urgent = seen.urgent.filter(|urgent| *urgent != 0 || expected.urgent.is_some());
    if expected.options.is_none() {
        seen.options = None;
    }
    Packet { direction: Direction::Out, ip, body: Body::Tcp(seen) }.to_string()
}

/// Of an IP header what is said of it, as it is said.
fn shown_ip(said: Ip, seen: Ip) -> Ip {
    let tos = said.tos.and(seen.tos).map(|tos| match (said.tos, tos) {
        (Some(Tos::Ecn(_) | Tos::Ect01), Tos::Byte(byte)) => Tos::Ecn(Ecn::from_bits(byte)),
        (_, tos) => tos,
    });
    Ip { tos, flow_label: said.flow_label.and(seen.flow_label), ttl: said.ttl.and(seen.ttl) }
}
