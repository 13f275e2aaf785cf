//! Two stacks, a wire with a delay, a virtual clock, and a log of every packet.

use crate::random::Random;
use bytes::Bytes;
use core::time::Duration;
use proto::*;
use qdisc::Link;
use std::collections::VecDeque;
use std::net::SocketAddr;
use wire::{Flags, TcpHeader};

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// A packet as it left its sender.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) from: usize,
    pub(crate) packet: Bytes,
    pub(crate) header: TcpHeader,
    pub(crate) len: usize,
    pub(crate) delivered: bool,
}

impl Sent {
    /// `S`, `SA`, `PA`, `FA`, `A`, `R` … with the payload's length: `PA(27)`.
    pub(crate) fn short(&self) -> String {
        let names =
            [(Flags::SYN, 'S'), (Flags::FIN, 'F'), (Flags::RST, 'R'), (Flags::PSH, 'P'), (Flags::ACK, 'A')];
        let mut text: String = names
            .iter()
            .filter(|(flag, _)| self.header.flags.contains(*flag))
            .map(|(_, name)| *name)
            .collect();
        if self.len > 0 {
            text += &format!("({})", self.len);
        }
        text
    }
}

type Filter = Box<dyn FnMut(&Sent) -> bool>;
type Copies = Box<dyn FnMut(&Sent) -> Vec<Duration>>;
type Refuses = Box<dyn FnMut(usize, &TxPacket) -> bool>;
type Rewrite = Box<dyn Fn(&Sent) -> Bytes>;

pub(crate) struct Pair {
    pub(crate) stacks: [Stack; 2],
    pub(crate) now: Instant,
    pub(crate) delay: Duration,
    /// Where `listen` listens and `connect` connects to.
    pub(crate) server: SocketAddr,
    pub(crate) log: Vec<Sent>,
    flying: VecDeque<(Instant, usize, Bytes)>,
    /// By the sender: the link that its packets cross. Without links they take `delay`.
    pub(crate) links: Option<[Link<Bytes>; 2]>,
    /// Returns false to lose the packet.
    pub(crate) filter: Filter,
    /// True: the packet of that side cannot leave, and its stack is told.
    pub(crate) refuses: Refuses,
    /// How much later than `delay` each copy of a packet arrives.
    pub(crate) copies: Copies,
    /// What a middlebox makes of a packet on its way (the log shows it as it was sent).
    pub(crate) rewrite: Rewrite,
    /// What a packet calls forth leaves before the next is looked at, as in a kernel; otherwise arrivals of one moment are a batch.
    pub(crate) one_by_one: bool,
}

pub(crate) fn ethernet() -> Capabilities {
    Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false }
}

pub(crate) fn server_addr() -> SocketAddr {
    "10.0.0.2:80".parse().unwrap()
}

impl Pair {
    pub(crate) fn new(client: Config, server: Config, delay_ms: u64) -> Pair {
        Pair::with(client, server, delay_ms, ethernet())
    }

    /// Both stacks on devices with these capabilities.
    pub(crate) fn with(client: Config, server: Config, delay_ms: u64, device: Capabilities) -> Pair {
        let mut stacks = [Stack::new(client, device, [1; 32]), Stack::new(server, device, [2; 32])];
        stacks[CLIENT].add_address("10.0.0.1".parse().unwrap(), 24);
        stacks[CLIENT].add_address("fd00::1".parse().unwrap(), 64);
        stacks[SERVER].add_address("10.0.0.2".parse().unwrap(), 24);
        stacks[SERVER].add_address("fd00::2".parse().unwrap(), 64);
        Pair {
            stacks,
            now: Instant::ZERO + Duration::from_secs(1000),
            delay: Duration::from_millis(delay_ms),
            server: server_addr(),
            log: Vec::new(),
            flying: VecDeque::new(),
            links: None,
            filter: Box::new(|_| true),
            refuses: Box::new(|_, _| false),
            copies: Box::new(|_| vec![Duration::ZERO]),
            rewrite: Box::new(|sent| sent.packet.clone()),
            one_by_one: false,
        }
    }

    /// Ours at both ends, 20 ms each way.
    pub(crate) fn ours() -> Pair {
        Pair::new(Config::default(), Config::default(), 20)
    }

    /// Moves what the stacks want to send onto the wire.
    pub(crate) fn flush(&mut self) {
        for from in [CLIENT, SERVER] {
            while let Some(tx) = self.stacks[from].poll_transmit(self.now) {
                if (self.refuses)(from, &tx) {
                    self.stacks[from].handle_refusal(self.now, &tx);
                    continue;
                }
                for packet in tx.segments() {
                    self.launch(from, packet);
                }
            }
            #[cfg(debug_assertions)]
            assert_eq!(self.stacks[from].complaint(self.now), None);
        }
    }

    fn launch(&mut self, from: usize, packet: Bytes) {
        let (_, header, text) = wire::parse_tcp_packet(&packet).expect("a stack sends valid packets");
        let mut sent =
            Sent { at: self.now, from, len: text.len(), packet: packet.clone(), header, delivered: true };
        sent.delivered = (self.filter)(&sent);
        if sent.delivered
            && let Some(links) = &mut self.links
        {
            links[from].enqueue(self.now.as_nanos(), (self.rewrite)(&sent), packet.len());
        } else if sent.delivered {
            for late in (self.copies)(&sent) {
                let arrival = self.now + self.delay + late;
                let at = self.flying.partition_point(|(earlier, _, _)| *earlier <= arrival);
                self.flying.insert(at, (arrival, 1 - from, (self.rewrite)(&sent)));
            }
        }
        self.log.push(sent);
    }

    /// A copy of the packet `log[at]` sets out now.
    pub(crate) fn send_again(&mut self, at: usize) {
        let sent = &self.log[at];
        self.flying.push_back((self.now + self.delay, 1 - sent.from, sent.packet.clone()));
    }

    /// The next moment something happens.
    pub(crate) fn next(&mut self) -> Option<Instant> {
        let arrival = self.flying.front().map(|(at, _, _)| *at);
        let timers = self.stacks.iter_mut().filter_map(Stack::poll_timeout);
        let links = self.links.iter().flatten().filter_map(Link::next_event).map(Instant::from_nanos);
        timers.chain(arrival).chain(links).min()
    }

    /// One step of time. False when nothing will ever happen.
    pub(crate) fn step(&mut self) -> bool {
        self.flush();
        let Some(next) = self.next() else { return false };
        self.now = self.now.max(next);
        for stack in &mut self.stacks {
            stack.handle_timeout(self.now);
        }
        for (from, link) in self.links.iter_mut().flatten().enumerate() {
            let arrived = core::iter::from_fn(|| link.poll(self.now.as_nanos()));
            self.flying.extend(arrived.map(|arrived| (self.now, 1 - from, arrived.packet)));
        }
        while self.flying.front().is_some_and(|(at, _, _)| *at <= self.now) {
            let (_, to, packet) = self.flying.pop_front().unwrap();
            let mut batch = RxBatch::default();
            batch.push(RxPacket::new(packet));
            while !self.one_by_one
                && self.flying.front().is_some_and(|next| next.0 <= self.now && next.1 == to)
            {
                batch.extend(self.flying.pop_front().map(|(_, _, packet)| RxPacket::new(packet)));
            }
            self.stacks[to].handle_packets(self.now, &mut batch);
            assert!(batch.is_empty(), "unclaimed");
            if self.one_by_one {
                self.flush();
            }
        }
        self.flush();
        true
    }

    /// So many of a hundred segments with data are lost, so many packets come late, and so many twice.
    pub(crate) fn trouble(&mut self, seed: u64, [lost, late, twice]: [u64; 3]) {
        let mut dice = Random(seed ^ 0x5eed);
        self.filter = Box::new(move |sent| sent.len == 0 || !dice.chance(lost));
        let mut dice = Random(seed ^ 0xd1ce);
        self.copies = Box::new(move |_| {
            let delay =
                if dice.chance(late) { Duration::from_millis(dice.below(60)) } else { Duration::ZERO };
            if dice.chance(twice) { vec![delay, Duration::from_millis(3)] } else { vec![delay] }
        });
    }

    /// Runs for `ms` of virtual time.
    pub(crate) fn run(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        self.flush();
        while self.next().is_some_and(|at| at <= end) {
            self.step();
        }
        self.now = end;
    }

    pub(crate) fn listen(&mut self, fast_open: u32) -> ListenerId {
        let options = ListenOptions { fast_open: Some(fast_open), ..ListenOptions::default() };
        self.stacks[SERVER].listen(self.now, self.server, options).unwrap()
    }

    pub(crate) fn connect(&mut self, options: ConnectOptions) -> ConnId {
        self.stacks[CLIENT].connect(self.now, self.server, options).unwrap()
    }

    pub(crate) fn accept(&mut self, listener: ListenerId) -> Option<ConnId> {
        self.stacks[SERVER].accept(self.now, listener).ok().map(|(id, _)| id)
    }

    /// Everything readable; `None` at the end of the stream.
    pub(crate) fn read(&mut self, side: usize, id: ConnId) -> Result<Vec<u8>, ReadError> {
        let mut buf = vec![0; 1 << 20];
        self.stacks[side].read(self.now, id, &mut buf).map(|n| buf[..n].to_vec())
    }

    pub(crate) fn write(&mut self, side: usize, id: ConnId, data: &[u8]) {
        assert_eq!(self.stacks[side].write(self.now, id, data), Ok(data.len()));
    }

    /// The log as `C S(27)  S SA …`.
    pub(crate) fn ladder(&self) -> Vec<String> {
        self.log
            .iter()
            .map(|sent| format!("{}{}", if sent.from == CLIENT { "> " } else { "< " }, sent.short()))
            .collect()
    }

    pub(crate) fn ms_since(&self, start: Instant) -> u64 {
        self.now.since(start).as_millis() as u64
    }

    /// First visit: afterwards the client holds a cookie, and all is quiet.
    pub(crate) fn obtain_cookie(&mut self, listener: ListenerId) {
        let id = self.connect(ConnectOptions { fast_open: FastOpen::Auto, ..ConnectOptions::default() });
        self.run(100);
        let child = self.accept(listener).unwrap();
        let now = self.now;
        self.stacks[CLIENT].close(now, id);
        self.run(100);
        let now = self.now;
        self.stacks[SERVER].close(now, child);
        self.run(100);
        self.log.clear();
    }
}
