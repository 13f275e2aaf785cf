//! Hostile input: mutated packets into a stack with live connections. It does not panic, its tables stay bounded, and the live
//! connections go on as if nothing were.
//!
//! The attacker knows every number of its own connections and none of the live ones: a segment that claims to come from a live peer and
//! would pass its checksum lies far outside the window. ICMP errors may quote live segments rightly.
//!
//! `FIRSTBYTE_MUTATIONS=n` sets the number of packets.

use crate::random::Random;
use bytes::Bytes;
use core::time::Duration;
use proto::*;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use wire::{
    Cookie, FastOpenKind, FastOpenOption, Flags, Icmp, IcmpError, IpHeader, TcpHeader, TcpOptions, Timestamps,
};

const MUTATIONS: u64 = 40_000;
const TEMPLATES: usize = 256;
const OWN: usize = 64;
const CONNECTIONS_MAX: usize = 300;
const BACKLOG: usize = 64;
const TIME_WAIT_MAX: usize = 100;

/// One of the attacker's own connections: it knows all of its numbers.
#[derive(Clone, Copy)]
struct Own {
    from: SocketAddr,
    to: SocketAddr,
    snd_nxt: SeqNum,
    rcv_nxt: SeqNum,
    tsval: u32,
    cookie: Option<Cookie>,
}

/// A connection between the target and an honest peer.
struct Live {
    target: ConnId,
    honest: ConnId,
    exchanged: u64,
}

struct Attack {
    random: Random,
    now: Instant,
    target: Stack,
    honest: Stack,
    live: Vec<Live>,
    listeners: Vec<ListenerId>,
    accepted: VecDeque<ConnId>,
    own: Vec<Own>,
    templates: VecDeque<Bytes>,
    /// SYN-ACKs of the attacker that wait to be sent.
    answers: Vec<Bytes>,
}

const TARGET: [&str; 2] = ["10.0.0.2", "fd00::2"];
const HONEST: [&str; 2] = ["10.0.0.1", "fd00::1"];
const ATTACKER: [&str; 2] = ["10.6.6.6", "fd66::6"];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

impl Attack {
    fn new(seed: u64, mut config: Config) -> Attack {
        config.max_connections = CONNECTIONS_MAX as u32;
        config.tcp_max_tw_buckets = TIME_WAIT_MAX as u32;
        config.tcp_fastopen = 3;
        let capabilities = Capabilities { mtu: 1500, gso_max_size: 65_536, tx_checksum: false };
        let mut target = Stack::new(config, capabilities, [3; 32]);
        let mut honest = Stack::new(Config::default(), capabilities, [4; 32]);
        for family in 0..2 {
            target.add_address(ip(TARGET[family]), 24);
            honest.add_address(ip(HONEST[family]), 24);
        }
        let mut attack = Attack {
            random: Random(seed),
            now: Instant::ZERO + Duration::from_secs(500),
            target,
            honest,
            live: Vec::new(),
            listeners: Vec::new(),
            accepted: VecDeque::new(),
            own: Vec::new(),
            templates: VecDeque::new(),
            answers: Vec::new(),
        };
        attack.begin();
        attack
    }

    /// Live connections in both directions and both families.
    fn begin(&mut self) {
        let socket = SocketOptions { recv_buffer: Some(32_768), ..Default::default() };
        for family in 0..2 {
            let options = ListenOptions {
                backlog: BACKLOG as u32,
                fast_open: Some(16),
                socket: socket.clone(),
                ..Default::default()
            };
            let at = |addrs: [&str; 2]| SocketAddr::new(ip(addrs[family]), 80);
            let listener = self.target.listen(self.now, at(TARGET), options).unwrap();
            let theirs = self.honest.listen(self.now, at(HONEST), ListenOptions::default()).unwrap();
            let passive = self.honest.connect(self.now, at(TARGET), ConnectOptions::default()).unwrap();
            let active = self.target.connect(self.now, at(HONEST), ConnectOptions::default()).unwrap();
            self.settle();
            let (target, _) = self.target.accept(self.now, listener).unwrap();
            let (honest, _) = self.honest.accept(self.now, theirs).unwrap();
            self.live.push(Live { target, honest: passive, exchanged: 0 });
            self.live.push(Live { target: active, honest, exchanged: 0 });
            self.listeners.push(listener);
        }
    }

    /// Lets the packets between the target and the honest peer cross until both are silent; the attacker reads its own.
    fn settle(&mut self) {
        for _ in 0..1000 {
            let mut quiet = true;
            while let Some(tx) = self.target.poll_transmit(self.now) {
                quiet = false;
                for packet in tx.segments() {
                    self.left_target(packet);
                }
            }
            while let Some(tx) = self.honest.poll_transmit(self.now) {
                quiet = false;
                for packet in tx.segments() {
                    self.keep(&packet);
                    self.target.handle_packet(self.now, RxPacket::new(packet));
                }
            }
            if quiet {
                return;
            }
        }
        panic!("the two never fall silent");
    }

    fn keep(&mut self, packet: &Bytes) {
        if self.templates.len() == TEMPLATES {
            self.templates.pop_front();
        }
        self.templates.push_back(packet.clone());
    }

    fn left_target(&mut self, packet: Bytes) {
        self.keep(&packet);
        let (header_ip, _) = IpHeader::parse(&packet).expect("a stack sends valid packets");
        if self.honest.addresses().any(|addr| addr == header_ip.dst.to_ip()) {
            self.honest.handle_packet(self.now, RxPacket::new(packet));
            return;
        }
        let Ok((_, header, text)) = wire::parse_tcp_packet(&packet) else { return };
        let peer = SocketAddr::new(header_ip.dst.to_ip(), header.dst_port);
        if header.flags & (Flags::SYN | Flags::ACK) == Flags::SYN {
            let to = SocketAddr::new(header_ip.src.to_ip(), header.src_port);
            return self.answer_syn(peer, to, &header);
        }
        let Some(own) = self.own.iter_mut().find(|own| own.from == peer) else { return };
        let control =
            u32::from(header.flags.contains(Flags::SYN)) + u32::from(header.flags.contains(Flags::FIN));
        own.rcv_nxt = header.seq + (text.len() as u32 + control);
        if header.flags.contains(Flags::ACK) {
            own.snd_nxt = header.ack;
        }
        if let Some(timestamps) = header.options.timestamps {
            own.tsval = own.tsval.max(timestamps.tsecr);
        }
        own.cookie = header.options.fast_open.and_then(|option| option.cookie).or(own.cookie);
    }

    /// The target connects to the attacker, whose SYN-ACK (or crossing SYN) is sent next.
    fn answer_syn(&mut self, from: SocketAddr, to: SocketAddr, syn: &TcpHeader) {
        let random = &mut self.random;
        let seq = SeqNum(random.next() as u32);
        let own = Own { from, to, snd_nxt: seq + 1, rcv_nxt: syn.seq + 1, tsval: 1, cookie: None };
        let at = random.below(self.own.len() as u64 + 1) as usize;
        self.own.insert(at, own);
        self.own.truncate(OWN);
        let cookie = Cookie::new(&[7; 8]);
        let fast_open = FastOpenOption {
            kind: random.pick(&[FastOpenKind::Standard, FastOpenKind::Experimental]),
            cookie,
        };
        let tsecr = syn.options.timestamps.map_or(0, |timestamps| timestamps.tsval);
        let options = TcpOptions {
            mss: random.chance(80).then_some(1000),
            sack_permitted: random.chance(50),
            timestamps: random.chance(80).then_some(Timestamps { tsval: 1, tsecr }),
            fast_open: random.chance(50).then_some(fast_open),
            ..TcpOptions::default()
        };
        let mut flags = Flags::SYN;
        flags.set(Flags::ACK, random.chance(80));
        flags.set(Flags::FIN, random.chance(10));
        let ack = syn.seq + 1 + random.pick(&[0, 0, 1, 20]);
        let header =
            TcpHeader { seq, ack, flags, window: 5000, options, ..TcpHeader::new(from.port(), to.port()) };
        let len = random.pick(&[0, 0, 30]);
        let ip = IpHeader::new(from.ip().into(), to.ip().into(), wire::protocol::TCP);
        self.answers.push(wire::build_tcp_packet(&ip, &header, &vec![0x5a; len]));
    }

    fn run(&mut self, mutations: u64) {
        let memory = resident_bytes();
        for number in 0..mutations {
            let packet = self.next_packet();
            self.inject(packet);
            self.settle();
            self.applications();
            if self.random.chance(30) {
                let time = Duration::from_micros(self.random.below(20_000));
                self.pass(time);
            }
            if number % 1000 == 0 {
                let time = Duration::from_millis(self.random.below(3000));
                self.pass(time);
                self.check_tables();
                self.exchange();
            }
        }
        self.exchange();
        if let (Some(before), Some(after)) = (memory, resident_bytes()) {
            assert!(after < before + (256 << 20), "from {before} to {after} bytes of memory");
        }
        self.end();
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        self.settle();
        loop {
            let next = [self.target.poll_timeout(), self.honest.poll_timeout()].into_iter().flatten().min();
            let Some(next) = next.filter(|at| *at <= until) else { break };
            self.now = self.now.max(next);
            self.target.handle_timeout(self.now);
            self.honest.handle_timeout(self.now);
            self.settle();
        }
        self.now = until;
    }

    /// The target's application: takes what comes, echoes some, and lets go of the oldest.
    fn applications(&mut self) {
        while self.target.poll_event().is_some() {}
        while self.honest.poll_event().is_some() {}
        for listener in self.listeners.clone() {
            while let Ok((id, _)) = self.target.accept(self.now, listener) {
                self.accepted.push_back(id);
            }
        }
        if self.random.chance(2) {
            let family = self.random.below(2) as usize;
            let peer = SocketAddr::new(ip(ATTACKER[family]), 1 + self.random.below(1000) as u16);
            let fast_open = self.random.pick(&[FastOpen::Off, FastOpen::Auto, FastOpen::Force]);
            let first_bytes = Bytes::from_static(b"a request of twenty.");
            let options = ConnectOptions { fast_open, first_bytes, ..Default::default() };
            self.accepted.extend(self.target.connect(self.now, peer, options));
        }
        if let Some(id) = self.accepted.pop_front() {
            match self.random.below(8) {
                0 => self.target.abort(self.now, id),
                1 => self.target.close(self.now, id),
                2 => drop(self.target.shutdown(self.now, id)),
                3 | 4 => {
                    let mut buf = [0; 4000];
                    if let Ok(n) = self.target.read(self.now, id, &mut buf) {
                        let _ = self.target.write(self.now, id, &buf[..n]);
                    }
                }
                _ => {}
            }
            if self.target.info(id).is_some() {
                self.accepted.push_back(id);
            }
        }
        while self.accepted.len() > CONNECTIONS_MAX / 2 {
            let id = self.accepted.pop_front().unwrap();
            self.target.abort(self.now, id);
        }
        self.settle();
    }

    fn check_tables(&self) {
        let sizes = self.target.table_sizes();
        assert!(sizes.connections <= CONNECTIONS_MAX, "{sizes:?}");
        assert!(sizes.requests <= 2 * BACKLOG, "{sizes:?}");
        assert!(sizes.time_wait <= TIME_WAIT_MAX, "{sizes:?}");
        for id in &self.accepted {
            let info = self.target.info(*id).unwrap();
            assert!(info.recv_queue <= 16_384, "{info:?}");
        }
    }

    /// Every live connection carries bytes both ways.
    fn exchange(&mut self) {
        for number in 0..self.live.len() {
            let live = &mut self.live[number];
            live.exchanged += 1;
            let (target, honest, stamp) = (live.target, live.honest, live.exchanged);
            let text: Vec<u8> = (0..3000u64).map(|at| (at * stamp + number as u64) as u8).collect();
            assert_eq!(self.honest.write(self.now, honest, &text), Ok(text.len()), "{number}");
            self.pass(Duration::from_secs(2));
            let heard = read_all(&mut self.target, self.now, target);
            assert!(
                heard == text,
                "live connection {number}: {} bytes, {:?}",
                heard.len(),
                self.target.info(target)
            );
            assert_eq!(self.target.write(self.now, target, &text), Ok(text.len()));
            self.pass(Duration::from_secs(2));
            let heard = read_all(&mut self.honest, self.now, honest);
            assert!(
                heard == text,
                "live connection {number}: {} bytes, {:?}",
                heard.len(),
                self.honest.info(honest)
            );
        }
    }

    fn end(&mut self) {
        for live in std::mem::take(&mut self.live) {
            self.target.close(self.now, live.target);
            self.honest.close(self.now, live.honest);
        }
        for id in std::mem::take(&mut self.accepted) {
            self.target.abort(self.now, id);
        }
        for listener in std::mem::take(&mut self.listeners) {
            self.target.close_listener(self.now, listener);
        }
        self.settle();
        // An orphan may wait nine times 120 s.
        self.pass(Duration::from_secs(1200));
        let nothing = TableSizes { connections: 0, requests: 0, time_wait: 0 };
        assert_eq!((self.target.table_sizes(), self.honest.table_sizes()), (nothing, nothing));
    }

    /// Half the packets are right before they are mutated, from the attacker's own connections; the others repeat what was heard.
    fn next_packet(&mut self) -> Bytes {
        if let Some(answer) = self.answers.pop() {
            return if self.random.chance(30) { self.mutate(&answer) } else { answer };
        }
        let (packet, mutate) = match self.random.below(10) {
            0..4 => (self.own_segment(), self.random.chance(60)),
            4 => (self.icmp_about_something(), self.random.chance(50)),
            _ => {
                let count = self.templates.len() as u64;
                let at = self.random.below(count) as usize;
                (towards_target(&self.templates[at]), true)
            }
        };
        if mutate { self.mutate(&packet) } else { packet }
    }

    fn inject(&mut self, packet: Bytes) {
        if self.harms_by_knowledge(&packet) {
            return;
        }
        let mut rx = RxPacket::new(packet);
        if self.random.chance(10) {
            let bits = self.random.below(17);
            rx.gso_size = self.random.below(1 << bits) as u16;
            rx.truesize += self.random.below(100_000) as usize;
        }
        if self.random.chance(5) {
            self.target.handle_packets(self.now, &mut RxBatch::from_iter([rx.clone(), rx]));
        } else {
            self.target.handle_packet(self.now, rx);
        }
    }

    /// Would the segment hit a live connection with numbers that a blind attacker cannot know?
    fn harms_by_knowledge(&self, packet: &[u8]) -> bool {
        let Ok((header_ip, header, _)) = wire::parse_tcp_packet(packet) else { return false };
        let (peer, local) = (header_ip.src.to_ip(), header_ip.dst.to_ip());
        self.live.iter().any(|live| {
            let Some(info) = self.target.info(live.target) else { return false };
            info.local == SocketAddr::new(local, header.dst_port)
                && info.peer == SocketAddr::new(peer, header.src_port)
        }) && !self.is_blind(&header)
    }

    /// The live connections' numbers lie within a gigabyte of their beginnings; `make_blind` puts segments elsewhere.
    fn is_blind(&self, header: &TcpHeader) -> bool {
        header.window == BLIND_MARK && header.urgent == BLIND_MARK
    }

    fn own_segment(&mut self) -> Bytes {
        if self.own.len() < OWN || self.random.chance(5) {
            return self.own_syn();
        }
        let at = self.random.below(self.own.len() as u64) as usize;
        let own = &mut self.own[at];
        let random = &mut self.random;
        own.tsval = own.tsval.wrapping_add(random.below(3) as u32);
        let flags = match random.below(20) {
            0 => Flags::RST,
            1 => Flags::FIN | Flags::ACK,
            2 => Flags::SYN,
            3 => Flags::SYN | Flags::ACK,
            _ => Flags::ACK,
        };
        let ahead = if random.chance(50) { 0 } else { random.below(30_000) as u32 };
        let behind = if random.chance(80) { 0 } else { random.below(3000) as u32 };
        let len = if random.chance(50) { 0 } else { 1 + random.below(1400) as usize };
        let mut options = TcpOptions::default();
        if random.chance(70) {
            options.timestamps = Some(Timestamps { tsval: own.tsval, tsecr: 0 });
        }
        if random.chance(10) {
            options.sack.push((own.rcv_nxt, own.rcv_nxt + random.below(5000) as u32));
        }
        let header = TcpHeader {
            seq: own.snd_nxt + ahead - behind,
            ack: own.rcv_nxt - if random.chance(10) { random.below(3000) as u32 } else { 0 },
            flags,
            window: random.pick(&[0, 1, 500, 1000, 65_535]),
            options,
            ..TcpHeader::new(own.from.port(), own.to.port())
        };
        let ip = IpHeader::new(own.from.ip().into(), own.to.ip().into(), wire::protocol::TCP);
        wire::build_tcp_packet(&ip, &header, &vec![0x5a; len])
    }

    fn own_syn(&mut self) -> Bytes {
        let family = self.random.below(2) as usize;
        let from = SocketAddr::new(ip(ATTACKER[family]), 1024 + self.random.below(400) as u16);
        let to = SocketAddr::new(ip(TARGET[family]), 80);
        let seq = SeqNum(self.random.next() as u32);
        let known = self.own.iter().filter(|own| own.from.ip() == from.ip());
        let cookie = known.filter_map(|own| own.cookie).next();
        let new = Own { from, to, snd_nxt: seq + 1, rcv_nxt: SeqNum(0), tsval: 1000, cookie };
        match self.own.iter().position(|own| own.from == from) {
            Some(at) => self.own[at] = new,
            None if self.own.len() < OWN => self.own.push(new),
            None => {
                let at = self.random.below(OWN as u64) as usize;
                self.own[at] = new;
            }
        }
        let random = &mut self.random;
        let options = TcpOptions {
            mss: random.chance(90).then(|| random.pick(&[0, 1, 88, 536, 1460, 65_535])),
            window_scale: random.chance(50).then(|| random.below(20) as u8),
            sack_permitted: random.chance(50),
            timestamps: random.chance(50).then_some(Timestamps { tsval: 1000, tsecr: 0 }),
            fast_open: random.chance(70).then_some(FastOpenOption { kind: FastOpenKind::Standard, cookie }),
            ..TcpOptions::default()
        };
        let mut flags = Flags::SYN;
        flags.set(Flags::FIN, random.chance(10));
        let header = TcpHeader {
            seq,
            flags,
            window: random.next() as u16,
            options,
            ..TcpHeader::new(from.port(), 80)
        };
        let len = if random.chance(50) { random.below(1300) as usize } else { 0 };
        let ip = IpHeader::new(from.ip().into(), to.ip().into(), wire::protocol::TCP);
        wire::build_tcp_packet(&ip, &header, &vec![0x5a; len])
    }

    fn icmp_about_something(&mut self) -> Bytes {
        let at = self.random.below(self.templates.len() as u64) as usize;
        let about = self.templates[at].clone();
        let family = usize::from(about[0] >> 4 == 6);
        let ip = IpHeader::new(ip(ATTACKER[family]).into(), ip(TARGET[family]).into(), wire::protocol::ICMP);
        let error = self.random.pick(&[
            IcmpError::HostUnreachable,
            IcmpError::PortUnreachable,
            IcmpError::PacketTooBig { mtu: 0 },
            IcmpError::PacketTooBig { mtu: 1 },
            IcmpError::PacketTooBig { mtu: 900 },
            IcmpError::PacketTooBig { mtu: u32::MAX },
            IcmpError::TimeExceeded,
            IcmpError::ParameterProblem,
        ]);
        let quote = &about[..self.random.below(about.len() as u64 + 1) as usize];
        let message = match self.random.below(10) {
            0 => Icmp::EchoRequest { ident: 1, seq: 2, data: quote },
            _ => Icmp::Error { error, quote },
        };
        wire::build_icmp_packet(&ip, &message)
    }

    fn mutate(&mut self, packet: &[u8]) -> Bytes {
        let mut packet = packet.to_vec();
        for _ in 0..1 + self.random.below(3) {
            self.mutate_once(&mut packet);
        }
        if self.random.chance(50) {
            self.repair(&mut packet);
        }
        packet.into()
    }

    fn mutate_once(&mut self, packet: &mut Vec<u8>) {
        if packet.is_empty() {
            return packet.push(self.random.next() as u8);
        }
        let at = self.random.below(packet.len().min(100) as u64) as usize;
        match self.random.below(10) {
            0..4 => packet[at] ^= 1 << self.random.below(8),
            4 => packet[at] = self.random.pick(&[0, 1, 0x7f, 0x80, 0xff]),
            5 => packet.truncate(self.random.below(packet.len() as u64) as usize),
            6 => {
                let more = self.random.below(60);
                packet.extend((0..more).map(|_| self.random.next() as u8));
            }
            7 => {
                // The head of this with the tail of another.
                let other = self.random.below(self.templates.len() as u64) as usize;
                let other = &self.templates[other];
                packet.truncate(at);
                packet.extend_from_slice(&other[at.min(other.len())..]);
            }
            8 => {
                // Random options: the data offset grows over what follows.
                let start = if packet[0] >> 4 == 4 { 20 } else { 40 };
                if let Some(offset) = packet.get_mut(start + 12) {
                    *offset = (5 + self.random.below(11) as u8) << 4 | *offset & 0xf;
                }
                let options = packet.len().min(start + 20)..packet.len().min(start + 60);
                for at in options {
                    packet[at] = self.random.pick(&[0, 1, 2, 3, 4, 5, 8, 10, 34, 254, self.random.0 as u8]);
                }
            }
            _ => {
                // Four bytes of a field: numbers around the edges.
                let value = (self.random.pick(&[0u32, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX])).to_be_bytes();
                for (byte, value) in packet.iter_mut().skip(at).zip(value) {
                    *byte = value;
                }
            }
        }
    }

    /// Lengths and checksums right again; what claims to come from a live peer becomes blind.
    fn repair(&mut self, packet: &mut [u8]) {
        let Some(version) = packet.first().map(|byte| byte >> 4) else { return };
        let start = if version == 4 { 20 } else { 40 };
        if packet.len() < start + 8 {
            return;
        }
        let total = packet.len() as u16;
        if version == 4 {
            packet[0] = 0x45;
            packet[2..4].copy_from_slice(&total.to_be_bytes());
            packet[6..8].copy_from_slice(&[0x40, 0]);
            packet[10..12].fill(0);
            let mut sum = wire::Checksum::new();
            sum.add(&packet[..20]);
            packet[10..12].copy_from_slice(&sum.finish().to_be_bytes());
        } else {
            packet[4..6].copy_from_slice(&(total - 40).to_be_bytes());
        }
        let Ok((ip, range)) = IpHeader::parse(packet) else { return };
        let segment = &mut packet[range];
        if ip.protocol == wire::protocol::TCP && segment.len() >= 20 {
            if HONEST.iter().any(|addr| ip.src.to_ip() == self::ip(addr)) {
                self.make_blind(segment);
            }
            wire::set_checksum(&ip, segment);
        } else if segment.len() >= 4 {
            segment[2..4].fill(0);
            let mut sum = if ip.src.is_v4() {
                wire::Checksum::new()
            } else {
                wire::Checksum::pseudo_header(ip.src, ip.dst, wire::protocol::ICMPV6, segment.len() as u32)
            };
            sum.add(segment);
            segment[2..4].copy_from_slice(&sum.finish().to_be_bytes());
        }
    }

    /// A sequence number half the space away from the live ones, and marks by which the test knows it.
    fn make_blind(&mut self, segment: &mut [u8]) {
        let expected = u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]]);
        let ports =
            (u16::from_be_bytes([segment[0], segment[1]]), u16::from_be_bytes([segment[2], segment[3]]));
        let live = self.live.iter().find_map(|live| {
            let info = self.target.info(live.target)?;
            (info.peer.port() == ports.0 && info.local.port() == ports.1).then_some(live.honest)
        });
        let next = live.and_then(|honest| self.next_number(honest)).unwrap_or(expected);
        let far = next.wrapping_add(1 << 30).wrapping_add(self.random.below(1 << 31) as u32);
        segment[4..8].copy_from_slice(&far.to_be_bytes());
        segment[14..16].copy_from_slice(&BLIND_MARK.to_be_bytes());
        segment[18..20].copy_from_slice(&BLIND_MARK.to_be_bytes());
    }

    /// Where the honest peer's stream is: from the last segment it sent.
    fn next_number(&self, honest: ConnId) -> Option<u32> {
        let info = self.honest.info(honest)?;
        self.templates.iter().rev().find_map(|packet| {
            let (ip, header, text) = wire::parse_tcp_packet(packet).ok()?;
            let from = SocketAddr::new(ip.src.to_ip(), header.src_port);
            let to = SocketAddr::new(ip.dst.to_ip(), header.dst_port);
            if from == info.local && to == info.peer {
                return Some(header.seq.0.wrapping_add(text.len() as u32));
            }
            (from == info.peer && to == info.local).then_some(header.ack.0)
        })
    }
}

const BLIND_MARK: u16 = 0xb11d;

/// The packet itself, or its mirror image if it left the target: swapping the ends leaves every checksum right.
fn towards_target(packet: &Bytes) -> Bytes {
    let Ok((ip, range)) = IpHeader::parse(packet) else { return packet.clone() };
    if TARGET.iter().any(|addr| ip.dst.to_ip() == self::ip(addr)) {
        return packet.clone();
    }
    let mut mirrored = packet.to_vec();
    let (addresses, half) = if ip.src.is_v4() { (12, 4) } else { (8, 16) };
    let (src, dst) = mirrored[addresses..addresses + 2 * half].split_at_mut(half);
    src.swap_with_slice(dst);
    if let Some([a, b, c, d]) = mirrored.get_mut(range).and_then(|segment| segment.first_chunk_mut()) {
        std::mem::swap(a, c);
        std::mem::swap(b, d);
    }
    mirrored.into()
}

fn read_all(stack: &mut Stack, now: Instant, id: ConnId) -> Vec<u8> {
    let mut buf = vec![0; 1 << 16];
    let mut all = Vec::new();
    while let Ok(n @ 1..) = stack.read(now, id, &mut buf) {
        all.extend_from_slice(&buf[..n]);
    }
    all
}

/// Memory of this process, where the system tells it.
fn resident_bytes() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(pages.split_whitespace().nth(1)?.parse::<usize>().ok()? * 4096)
}

#[test]
fn mutated_packets_harm_nobody() {
    let asked = std::env::var("FIRSTBYTE_MUTATIONS").ok().and_then(|n| n.parse().ok());
    let mutations = asked.unwrap_or(MUTATIONS);
    for (seed, config) in [(1, Config::default()), (2, Config::linux())] {
        let mut attack = Attack::new(seed, config);
        attack.run(mutations / 2);
        let drops: Vec<_> = attack.target.drops().all().filter(|(_, count)| *count > 0).collect();
        println!("seed {seed}: {drops:?}");
        assert!(drops.len() >= 9, "the mutations reach every check: {drops:?}");
        let counters = attack.target.counters();
        println!("{:?}", counters.all().filter(|(_, value)| *value > 0).collect::<Vec<_>>());
        assert!(counters.passive_opens > mutations / 10_000 && counters.challenge_ack > 0);
    }
}
