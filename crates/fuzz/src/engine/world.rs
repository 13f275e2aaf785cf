//! The two stacks, what is under way between them, and what their applications said and heard.
use super::mutate;
use arbitrary::Unstructured;
use bytes::Bytes;
use core::net::SocketAddr;
use core::time::Duration;
use proto::{
    Capabilities, CloseReason, Config, CongestionControl, ConnId, ConnectOptions, FastOpen, Instant,
    ListenOptions, ListenerId, ReadError, RxPacket, SocketInfo, SocketOption, SocketOptions, Stack, State,
};
use std::collections::VecDeque;

const FLOWS_MAX: usize = 3;
/// On their way in one direction.
const PACKETS_MAX: usize = 2_000;
/// Upper bound of packets after one call: the largest send buffer (`tcp_wmem`, 4 MiB) in the
/// smallest segments (`tcp_min_snd_mss`, 48 bytes) makes 87,381.
const SENT_MAX: usize = 100_000;
/// Rounds of delivering and waiting after which everything must have arrived.
const ROUNDS: usize = 20_000;
const ADDRESSES: [[&str; 2]; 2] = [["10.0.0.1", "10.0.0.2"], ["fd00::1", "fd00::2"]];

/// A connection: side 0 opens it, side 1 accepts it.
#[derive(Debug)]
struct Flow {
    client: SocketAddr,
    ends: [Option<ConnId>; 2],
    written: [u64; 2],
    read: [u64; 2],
    /// Somebody gave it up, so that its streams may end early.
    is_given_up: bool,
    /// Nothing more is written.
    is_shut: [bool; 2],
    /// The end of the other's stream was read.
    has_ended: [bool; 2],
    /// An application read bytes that were not written, or an end that the other did not send.
    wrong: bool,
    /// The server reset the client before it had a connection, or after it had given up its
    /// request.
    is_refused: bool,
    /// One end is over although the other is open, no time-out passed and nobody gave it up.
    broken: Option<CloseReason>,
}

impl Flow {
    fn is_settled(&self) -> bool {
        let has_heard = |side: usize| {
            self.read[side] == self.written[1 - side] && (self.has_ended[side] || !self.is_shut[1 - side])
        };
        self.is_given_up || has_heard(0) && has_heard(1)
    }
}

pub(super) struct World {
    now: Instant,
    stacks: [Stack; 2],
    listener: ListenerId,
    server: SocketAddr,
    /// To each side.
    wire: [VecDeque<Bytes>; 2],
    flows: Vec<Flow>,
    /// Sequence and acknowledgement numbers seen last.
    seen: Vec<u32>,
    old: VecDeque<Bytes>,
}

fn byte(choices: &mut Unstructured<'_>) -> u8 {
    choices.arbitrary().unwrap_or(0)
}

/// The byte of a stream at this place.
fn content(side: usize, at: u64) -> u8 {
    ((at as u32).wrapping_mul(0x9e37_79b1) >> 24) as u8 ^ side as u8
}

/// Settings that are changed while the stacks run; none asks for giving up.
const LIVE: [(&str, &[&str]); 18] = [
    ("net.ipv4.tcp_sack", &["0", "1"]),
    ("net.ipv4.tcp_dsack", &["0", "1"]),
    ("net.ipv4.tcp_timestamps", &["0", "1"]),
    ("net.ipv4.tcp_window_scaling", &["0", "1"]),
    ("net.ipv4.tcp_ecn", &["0", "1", "3"]),
    ("net.ipv4.tcp_recovery", &["0", "1"]),
    ("net.ipv4.tcp_early_retrans", &["0", "3"]),
    ("net.ipv4.tcp_frto", &["0", "2"]),
    ("net.ipv4.tcp_syncookies", &["0", "1", "2"]),
    ("net.ipv4.tcp_mtu_probing", &["0", "1", "2"]),
    ("net.ipv4.tcp_thin_linear_timeouts", &["0", "1"]),
    ("net.ipv4.tcp_slow_start_after_idle", &["0", "1"]),
    ("net.ipv4.tcp_moderate_rcvbuf", &["0", "1"]),
    ("net.ipv4.tcp_shrink_window", &["0", "1"]),
    ("net.ipv4.tcp_reordering", &["1", "3", "300"]),
    ("net.ipv4.tcp_congestion_control", &["reno", "cubic", "bbr"]),
    ("net.ipv4.tcp_wmem", &["4096 16384 4194304", "4096 4608 8192"]),
    ("net.ipv4.tcp_rmem", &["4096 131072 6291456", "4096 8192 16384"]),
];

/// Settings that turn whole mechanisms on and off.
fn config(choices: &mut Unstructured<'_>) -> Config {
    let [first, second] = [byte(choices), byte(choices)];
    let mut config = if first & 1 == 0 { Config::default() } else { Config::linux() };
    let switches = [
        ("net.ipv4.tcp_sack", "0"),
        ("net.ipv4.tcp_timestamps", "0"),
        ("net.ipv4.tcp_window_scaling", "0"),
        ("net.ipv4.tcp_ecn", "3"),
        ("net.ipv4.tcp_recovery", "0"),
        ("net.ipv4.tcp_syncookies", "2"),
        ("net.ipv4.tcp_mtu_probing", "2"),
    ];
    for (at, (name, value)) in switches.iter().enumerate() {
        if first >> (at + 1) & 1 == 1 {
            config.set(name, value).expect("a value of the table");
        }
    }
    config.tcp_congestion_control = [
        CongestionControl::Cubic,
        CongestionControl::Reno,
        CongestionControl::Bbr,
        CongestionControl::Vegas,
        CongestionControl::Tahoe,
    ][usize::from(second % 5)];
    config
}

impl World {
    pub(super) fn new(choices: &mut Unstructured<'_>) -> World {
        let shape = byte(choices);
        let capabilities = Capabilities {
            mtu: [1500, 576, 1280, 9000][usize::from(shape & 3)].max(if shape & 4 == 0 { 0 } else { 1280 }),
            gso_max_size: if shape & 8 == 0 { 0 } else { 65_000 },
            tx_checksum: shape & 8 != 0,
        };
        let addresses = ADDRESSES[usize::from(shape >> 2 & 1)];
        let mut stacks = [0, 1].map(|side| Stack::new(config(choices), capabilities, [side; 32]));
        for (stack, address) in stacks.iter_mut().zip(addresses) {
            stack.add_address(address.parse().expect("an address"), 24);
            if shape & 16 != 0 {
                stack.fix_isn(Some(u32::MAX - 2000));
            }
        }
        let now = Instant::ZERO + Duration::from_secs(1);
        let server = SocketAddr::new(addresses[1].parse().expect("an address"), 80);
        let options = ListenOptions { fast_open: Some(16), ..ListenOptions::default() };
        let listener = stacks[1].listen(now, server, options).expect("nobody else listens");
        let (wire, old) = (Default::default(), VecDeque::new());
        let mut world = World { now, stacks, listener, server, wire, flows: Vec::new(), seen: vec![0], old };
        world.connect(choices);
        world
    }

    fn connect(&mut self, choices: &mut Unstructured<'_>) {
        if self.flows.len() == FLOWS_MAX {
            return;
        }
        let fast_open = if byte(choices) & 1 == 0 { FastOpen::Off } else { FastOpen::Auto };
        let options = ConnectOptions { fast_open, ..ConnectOptions::default() };
        let Ok(id) = self.stacks[0].connect(self.now, self.server, options) else { return };
        let Some(info) = self.stacks[0].info(id) else { return };
        self.flows.push(Flow {
            client: info.local,
            ends: [Some(id), None],
            written: [0; 2],
            read: [0; 2],
            is_given_up: false,
            is_shut: [false; 2],
            has_ended: [false; 2],
            wrong: false,
            is_refused: false,
            broken: None,
        });
        self.drain();
    }

    /// One thing that an application does.
    pub(super) fn application(&mut self, choices: &mut Unstructured<'_>) {
        let what = byte(choices);
        let (side, at) = (usize::from(what >> 7), usize::from(what >> 5 & 3) % self.flows.len().max(1));
        let number = choices.arbitrary::<u16>().unwrap_or(0);
        match what & 31 {
            0..10 => self.write(side, at, usize::from(number)),
            10..20 => drop(self.read(side, at, usize::from(number).max(1))),
            20 => self.shut(side, at),
            21 => self.connect(choices),
            22..28 => self.option(choices, side, at),
            28 => self.close(side, at, number),
            29 => self.listen_again(number),
            30 => self.set(side, number),
            31 if number & 1 == 1 => self.move_over(side, at),
            _ => self.accept(),
        }
        self.drain();
    }

    fn end_of(&self, side: usize, at: usize) -> Option<ConnId> {
        self.flows.get(at)?.ends[side]
    }

    fn write(&mut self, side: usize, at: usize, len: usize) {
        let Some(id) = self.end_of(side, at) else { return };
        let flow = &mut self.flows[at];
        let text: Vec<u8> = (0..len as u64).map(|byte| content(side, flow.written[side] + byte)).collect();
        if let Ok(len) = self.stacks[side].write(self.now, id, &text) {
            flow.written[side] += len as u64;
        }
    }

    fn read(&mut self, side: usize, at: usize, len: usize) -> usize {
        let Some(id) = self.end_of(side, at) else { return 0 };
        let mut text = vec![0; len];
        let read = match self.stacks[side].read(self.now, id, &mut text) {
            Ok(0) => {
                let flow = &mut self.flows[at];
                flow.wrong |= !flow.is_given_up && !flow.is_shut[1 - side];
                flow.has_ended[side] = true;
                0
            }
            Ok(read) => read,
            Err(ReadError::Blocked) => 0,
            Err(ReadError::Closed(reason)) => {
                self.ended(side, at, reason);
                0
            }
            Err(ReadError::NotFound) => 0,
        };
        let flow = &mut self.flows[at];
        flow.wrong |=
            text[..read].iter().zip(flow.read[side]..).any(|(got, at)| *got != content(1 - side, at));
        flow.read[side] += read as u64;
        read
    }

    /// Marks the connection as over at one end. A reset means that the other end has timed out,
    /// gave up before anybody accepted it, or did not know it: an older SYN or ACK may open the
    /// connection after the reset was sent.
    fn ended(&mut self, side: usize, at: usize, reason: CloseReason) {
        let other = self.end_of(1 - side, at).and_then(|id| self.stacks[1 - side].state(id));
        let other_is_open = other.is_some_and(|state| state != State::Closed);
        let flow = &mut self.flows[at];
        let is_excused = flow.is_given_up || flow.is_refused && side == 0;
        if reason != CloseReason::TimedOut && other_is_open && !is_excused {
            flow.broken = Some(reason);
        }
        flow.is_given_up = true;
    }

    fn shut(&mut self, side: usize, at: usize) {
        let Some(id) = self.end_of(side, at) else { return };
        self.flows[at].is_shut[side] |= self.stacks[side].shutdown(self.now, id).is_ok();
    }

    fn close(&mut self, side: usize, at: usize, number: u16) {
        let Some(id) = self.end_of(side, at) else { return };
        self.flows[at].is_given_up = true;
        match number % 3 {
            0 => self.stacks[side].close(self.now, id),
            1 => self.stacks[side].abort(self.now, id),
            _ => self.stacks[side].shutdown_read(self.now, id),
        }
    }

    fn listen_again(&mut self, number: u16) {
        self.stacks[1].set_backlog(self.now, self.listener, u32::from(number % 4));
    }

    fn option(&mut self, choices: &mut Unstructured<'_>, side: usize, at: usize) {
        let Some(id) = self.end_of(side, at) else { return };
        let number = choices.arbitrary::<u16>().unwrap_or(0);
        let option = match byte(choices) % 10 {
            0 => SocketOption::NoDelay(number & 1 == 0),
            1 => SocketOption::Cork(number & 1 == 0),
            2 => SocketOption::QuickAck(number & 1 == 0),
            3 => SocketOption::MaxSegment(Some(number.max(88))),
            4 => SocketOption::SendBuffer(u32::from(number) + 4608),
            5 => SocketOption::RecvBuffer(u32::from(number) * 4 + 65_536),
            6 => SocketOption::KeepAlive(number & 1 == 0),
            7 => SocketOption::MaxPacingRate(Some(u32::from(number) * 100 + 100_000)),
            8 => SocketOption::UrgentApart(number & 1 == 0),
            _ => SocketOption::NotsentLowat(Some(u32::from(number) + 1)),
        };
        let _ = self.stacks[side].set_option(self.now, id, option);
    }

    /// A setting of a stack that runs.
    fn set(&mut self, side: usize, number: u16) {
        let (name, values) = LIVE[usize::from(number) % LIVE.len()];
        let value = values[usize::from(number) / LIVE.len() % values.len()];
        let set = self.stacks[side].set(self.now, name, value);
        assert!(set.is_ok(), "{name} {value}: {set:?}");
    }

    /// A connection is saved, and restored as if by another stack.
    fn move_over(&mut self, side: usize, at: usize) {
        let Some(id) = self.end_of(side, at) else { return };
        let stack = &mut self.stacks[side];
        let Some(saved) = stack.save_connection(self.now, id) else { return };
        stack.discard(self.now, id);
        let options = SocketOptions::default();
        let id = stack.restore_connection(self.now, &saved, options).expect("its name has just become free");
        self.flows[at].ends[side] = Some(id);
    }

    fn accept(&mut self) {
        while let Ok((id, client)) = self.stacks[1].accept(self.now, self.listener) {
            match self.flows.iter_mut().find(|flow| flow.client == client && flow.ends[1].is_none()) {
                Some(flow) => flow.ends[1] = Some(id),
                None => self.stacks[1].abort(self.now, id),
            }
        }
    }

    /// Carries packets as an honest but poor wire does: loses, repeats, reorders or delivers them.
    pub(super) fn carry(&mut self, choices: &mut Unstructured<'_>) {
        let what = byte(choices);
        let side = usize::from(what >> 7);
        let Some(packet) = self.wire[side].pop_front() else { return };
        match what & 15 {
            0 => {}
            1 => self.wire[side].push_back(packet),
            2 => {
                self.wire[side].push_back(packet.clone());
                self.arrive(side, RxPacket::new(packet));
            }
            at => {
                self.arrive(side, RxPacket::new(packet));
                for _ in 3..at {
                    let Some(packet) = self.wire[side].pop_front() else { break };
                    self.arrive(side, RxPacket::new(packet));
                }
            }
        }
    }

    /// A packet that no honest wire brings.
    pub(super) fn attack(&mut self, choices: &mut Unstructured<'_>) {
        let what = byte(choices);
        let side = usize::from(what >> 7);
        let from_wire = if what & 8 == 0 { self.wire[side].pop_front() } else { None };
        let old = choices.choose_index(self.old.len()).ok().and_then(|at| self.old.get(at).cloned());
        let Some(packet) = from_wire.or(old) else { return };
        let mut packet = match what & 7 {
            0 => match mutate::error_about(choices, &packet) {
                Some(error) => RxPacket::new(error),
                None => return,
            },
            1 => RxPacket::new(packet.slice(..usize::from(byte(choices)).min(packet.len()))),
            2 => {
                let mut bytes = packet.to_vec();
                let (at, mask) = (usize::from(choices.arbitrary::<u16>().unwrap_or(0)), byte(choices));
                let len = bytes.len();
                bytes[at % len] ^= mask;
                let trusted = RxPacket::new(bytes.into());
                RxPacket { checksum: wire::RxChecksum::Trusted, ..trusted }
            }
            _ => RxPacket::new(mutate::changed(choices, &packet, &self.seen)),
        };
        if what & 16 != 0 {
            packet.gso_size = choices.arbitrary().unwrap_or(0);
        }
        // Of an ICMP error the quoted packet's sender is told; of a repeated one its destination.
        let side = match wire::IpHeader::parse(&packet.data) {
            Ok((ip, _)) => usize::from(self.stacks[1].addresses().any(|known| known == ip.dst.to_ip())),
            Err(_) => side,
        };
        self.arrive(side, packet);
    }

    fn arrive(&mut self, side: usize, packet: RxPacket) {
        let unknown = self.unknown_client(side, &packet.data);
        let resets = self.stacks[side].counters().out_rsts;
        let _ = self.stacks[side].handle_packet(self.now, packet);
        self.drain();
        if let Some(at) = unknown {
            self.flows[at].is_refused |= self.stacks[side].counters().out_rsts > resets;
        }
    }

    /// Returns the flow whose client sent this packet to a server that has neither a connection nor
    /// a request of this client. A reset is a correct answer: an ACK or data out of order is not a
    /// SYN cookie (RFC 4987 §3.6), and a request whose SYN-ACKs stay unanswered is forgotten.
    fn unknown_client(&self, side: usize, packet: &Bytes) -> Option<usize> {
        let (ip, tcp, _) = wire::parse_tcp_packet(packet).ok()?;
        let client = SocketAddr::new(ip.src.to_ip(), tcp.src_port);
        let at = self.flows.iter().position(|flow| flow.client == client)?;
        let is_known = || {
            self.stacks[side].sockets().any(|socket| match socket {
                SocketInfo::Listener(_) => false,
                SocketInfo::Numbers { peer, .. } => peer == client,
                SocketInfo::Connection(info) => info.peer == client,
            })
        };
        (side == 1 && self.flows[at].ends[1].is_none() && !is_known()).then_some(at)
    }

    /// To the next deadline, or a little, or far.
    pub(super) fn pass_time(&mut self, choices: &mut Unstructured<'_>) {
        let what = byte(choices);
        let step = match what & 3 {
            0 => Duration::from_millis(u64::from(what >> 2)),
            1 if what == 253 => Duration::from_secs(86_400 * 40),
            1 => Duration::from_secs(u64::from(what >> 2)),
            _ => return self.wait_for_deadline(),
        };
        self.now = self.now + step;
        self.expire();
    }

    fn wait_for_deadline(&mut self) {
        let next = self.stacks.iter_mut().filter_map(Stack::poll_timeout).min();
        if let Some(next) = next {
            self.now = self.now.max(next);
            self.expire();
        }
    }

    fn expire(&mut self) {
        for stack in &mut self.stacks {
            stack.handle_timeout(self.now);
        }
        self.drain();
    }

    /// Calls in which a stack has handled all that is due.
    fn calls_to_expire(&self, side: usize) -> usize {
        let sizes = self.stacks[side].table_sizes();
        1 + (sizes.connections + sizes.requests + sizes.time_wait) / Stack::EXPIRED_AT_ONCE
    }

    fn drain(&mut self) {
        for side in 0..2 {
            let mut sent = 0;
            while let Some(packet) = self.stacks[side].poll_transmit(self.now) {
                for packet in packet.segments() {
                    self.see(&packet);
                    // What does not fit a queue is lost, as in any router.
                    if self.wire[1 - side].len() < PACKETS_MAX {
                        self.wire[1 - side].push_back(packet);
                    }
                }
                sent += 1;
                assert!(sent < SENT_MAX, "output does not end");
            }
            while self.stacks[side].poll_event().is_some() {}
        }
    }

    fn see(&mut self, packet: &Bytes) {
        if let Ok((_, tcp, text)) = wire::parse_tcp_packet(packet) {
            self.seen.extend([tcp.seq.0, tcp.ack.0, tcp.seq.0.wrapping_add(text.len() as u32)]);
            self.seen.drain(..self.seen.len().saturating_sub(12));
        }
        self.old.push_back(packet.clone());
        if self.old.len() > 16 {
            self.old.pop_front();
        }
    }

    /// Handles deadlines that have passed. One call is enough unless more have passed than it takes
    /// at once.
    pub(super) fn check(&mut self) {
        for side in 0..2 {
            for _ in 0..self.calls_to_expire(side) {
                if self.stacks[side].poll_timeout().is_some_and(|at| at <= self.now) {
                    self.stacks[side].handle_timeout(self.now);
                    self.drain();
                }
            }
            let next = self.stacks[side].poll_timeout();
            assert!(next.is_none_or(|at| at > self.now), "a deadline stays at {next:?}");
        }
    }

    /// Asserts that applications read what was written.
    pub(super) fn check_streams(&self) {
        for (flow, side) in self.flows.iter().flat_map(|flow| [(flow, 0), (flow, 1)]) {
            assert!(!flow.wrong, "a stream was altered");
            assert!(flow.read[side] <= flow.written[1 - side], "a stream has more than was written");
            assert_eq!(flow.broken, None, "a connection ended although nobody gave it up");
        }
    }

    /// The wire is honest from now on and the applications read: everything written arrives.
    pub(super) fn deliver_all(&mut self) {
        self.stacks[1].set_backlog(self.now, self.listener, 16);
        for _ in 0..ROUNDS {
            let mut moved = false;
            for side in 0..2 {
                for packet in std::mem::take(&mut self.wire[side]) {
                    self.arrive(side, RxPacket::new(packet));
                    moved = true;
                }
            }
            self.accept();
            for at in 0..self.flows.len() {
                for side in 0..2 {
                    while self.read(side, at, 65_536) > 0 {
                        moved = true;
                    }
                }
            }
            self.drain();
            self.check();
            self.check_streams();
            if self.flows.iter().all(Flow::is_settled) {
                return;
            }
            if !moved {
                self.wait_for_deadline();
            }
        }
        let flow = self.flows.iter().find(|flow| !flow.is_settled());
        panic!("not all that was written arrived: {flow:?}");
    }

    /// Everything is closed, time passes, and nothing is left.
    pub(super) fn end(&mut self) {
        for at in 0..self.flows.len() {
            for side in 0..2 {
                if let Some(id) = self.end_of(side, at) {
                    self.stacks[side].abort(self.now, id);
                }
            }
        }
        self.stacks[1].close_listener(self.now, self.listener);
        self.drain();
        self.check();
        for _ in 0..ROUNDS {
            self.wait_for_deadline();
            if self.stacks.iter_mut().all(|stack| stack.poll_timeout().is_none()) {
                break;
            }
        }
        for stack in &self.stacks {
            let sizes = stack.table_sizes();
            assert_eq!((sizes.connections, sizes.requests, sizes.time_wait), (0, 0, 0), "something is left");
        }
    }
}
