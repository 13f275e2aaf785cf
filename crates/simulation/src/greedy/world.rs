//! Plays a [`Greed`]: one server, the honest peer and the greedy ones in virtual time, over a wire
//! that loses only what habits say.

use super::peers::{Honest, Taker};
use super::server::Server;
use super::{Greed, Habit, Held};
use crate::Random;
use crate::world::Failure;
use bytes::Bytes;
use core::time::Duration;
use proto::{Capabilities, Config, DropReason, Instant, ListenOptions, RxPacket, Stack};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use wire::{Flags, parse_tcp_packet};

/// Virtual duration of a run.
const TIME: Duration = Duration::from_secs(60);
/// Time within which the honest peer must be served.
const BOUND: Duration = Duration::from_secs(15);
/// Time within which greedy connections begin.
const BEGIN: Duration = Duration::from_secs(5);
/// Most bytes that a connection may hold beyond the third value of `tcp_mem`: the minimum of both
/// buffers, and packets with their entries.
const LEAST: u64 = 16_384;

const SERVER: usize = 0;
const HONEST: usize = 1;
const GREEDY: usize = 2;

pub(super) struct World<'a> {
    greed: &'a Greed,
    now: Instant,
    begun: Instant,
    stacks: Vec<Stack>,
    flying: BTreeMap<(Instant, u64), (usize, Bytes)>,
    packets: u64,
    server: Server,
    name: SocketAddr,
    honest: Honest,
    takers: Vec<Taker>,
    /// Habit and initial sequence number, by host and port of a greedy connection.
    habits: BTreeMap<(usize, u16), (Habit, Option<u32>)>,
}

impl<'a> World<'a> {
    pub(super) fn new(greed: &'a Greed) -> World<'a> {
        let now = Instant::ZERO + Duration::from_secs(1000);
        let mut random = Random(greed.seed);
        let mut config = Config::default();
        for (name, value) in &greed.settings {
            config.set(name, value).expect("worth drawing");
        }
        let mut stacks: Vec<Stack> = (0..GREEDY + usize::from(greed.hosts))
            .map(|host| {
                let config =
                    if host == SERVER { config.clone() } else { Config::default().tcp_fastopen(0x7) };
                let device = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
                let mut stack = Stack::new(config, device, [host as u8 ^ greed.seed as u8; 32]);
                stack.add_address(address(host), 8);
                stack
            })
            .collect();
        let name = SocketAddr::new(address(SERVER), 80);
        let listening = ListenOptions {
            backlog: greed.backlog,
            fast_open: Some(greed.fast_open),
            fast_open_no_cookie: true,
            ..ListenOptions::default()
        };
        let listener = stacks[SERVER].listen(now, name, listening).expect("nobody else listens");
        let takers = (0..greed.connections as usize)
            .map(|n| {
                let due_at = now + Duration::from_micros(random.below(BEGIN.as_micros() as u64));
                let host = GREEDY + n % usize::from(greed.hosts);
                Taker::new(host, greed.habits[n % greed.habits.len()], due_at)
            })
            .collect();
        World {
            greed,
            now,
            begun: now,
            stacks,
            flying: BTreeMap::new(),
            packets: 0,
            server: Server::new(listener),
            name,
            honest: Honest::new(greed, now),
            takers,
            habits: BTreeMap::new(),
        }
    }

    pub(super) fn run(mut self) -> Result<Held, Failure> {
        while self.now.since(self.begun) < TIME {
            self.step()?;
            self.now = self.next();
        }
        let counters = self.stacks[SERVER].counters();
        let drops = self.stacks[SERVER].drops();
        let reasons = [DropReason::NoMemory, DropReason::TooManyConnections, DropReason::AcceptQueueFull];
        Ok(Held {
            served: self.honest.served,
            longest_ms: self.honest.longest.as_millis() as u64,
            gave_way: counters.abort_on_memory,
            refused: reasons.into_iter().map(|reason| drops.get(reason)).sum(),
            packets: self.packets,
        })
    }

    /// Returns the next time at which something happens.
    fn next(&mut self) -> Instant {
        let arrival = self.flying.keys().next().map(|(at, _)| *at);
        let timers = self.stacks.iter_mut().filter_map(Stack::poll_timeout).min();
        let takers = self.takers.iter().map(|taker| taker.due_at).min();
        let next = [arrival, timers, takers].into_iter().flatten().min();
        next.map_or(self.honest.due_at, |next| next.min(self.honest.due_at)).max(self.now)
    }

    /// Handles everything that is due now.
    fn step(&mut self) -> Result<(), Failure> {
        while let Some(first) = self.flying.first_entry()
            && first.key().0 <= self.now
        {
            let (to, packet) = first.remove();
            self.stacks[to].handle_packet(self.now, RxPacket::new(packet));
            self.drain(to)?;
        }
        for host in 0..self.stacks.len() {
            while self.stacks[host].poll_timeout().is_some_and(|at| at <= self.now) {
                self.stacks[host].handle_timeout(self.now);
                self.drain(host)?;
            }
        }
        for place in 0..self.takers.len() {
            let taker = &mut self.takers[place];
            if taker.due_at <= self.now {
                let host = taker.host;
                if let Some(port) = taker.act(self.now, &mut self.stacks[host], self.name) {
                    self.habits.insert((host, port), (taker.habit, None));
                }
                self.drain(host)?;
            }
        }
        self.drain(HONEST)
    }

    /// Sends what a stack has to send, and lets its application act.
    fn drain(&mut self, host: usize) -> Result<(), Failure> {
        match host {
            SERVER => self.server.act(self.now, &mut self.stacks[SERVER]),
            HONEST => {
                let acted = self.honest.act(self.now, &mut self.stacks[HONEST], self.name, self.greed);
                acted.map_err(|why| self.failure("the honest peer was not served", &why))?;
            }
            _ => {}
        }
        while self.stacks[host].poll_event().is_some() {}
        while let Some(sent) = self.stacks[host].poll_transmit(self.now) {
            sent.segments().into_iter().for_each(|packet| self.send(host, packet));
        }
        self.check()
    }

    fn send(&mut self, from: usize, packet: Bytes) {
        let Ok((ip, header, text)) = parse_tcp_packet(&packet) else { return };
        let last = *ip.dst.0.last().expect("sixteen bytes");
        let to = usize::from(last) - 1;
        let key = if from == SERVER { (to, header.dst_port) } else { (from, header.src_port) };
        if let Some((habit, iss)) = self.habits.get_mut(&key) {
            if from != SERVER && header.flags.contains(Flags::SYN) {
                *iss = Some(header.seq.0);
            }
            if !habit.lets_through(from != SERVER, &header, text.len(), *iss) {
                return;
            }
        }
        self.packets += 1;
        let arrival = self.now + Duration::from_millis(self.greed.delay_ms);
        self.flying.insert((arrival, self.packets), (to, packet));
    }

    fn check(&mut self) -> Result<(), Failure> {
        if let Some(oldest) = self.honest.oldest().filter(|oldest| self.now.since(*oldest) > BOUND) {
            let why = format!("it has waited since {:?}", oldest.since(self.begun));
            return Err(self.failure("the honest peer was not served", &why));
        }
        let server = &self.stacks[SERVER];
        let most = server.memory_levels()[2] + LEAST * (server.table_sizes().connections as u64 + 8);
        match server.memory() > most {
            true => Err(self.failure("the server holds too much", &format!("{} of {most}", server.memory()))),
            false => Ok(()),
        }
    }

    fn failure(&self, kind: &str, why: &str) -> Failure {
        let server = &self.stacks[SERVER];
        let counters: Vec<_> = server.counters().all().filter(|(_, count)| *count > 0).collect();
        let drops: Vec<_> = server.drops().all().filter(|(_, count)| *count > 0).collect();
        Failure::new(
            kind,
            format_args!(
                "at {:?}: {why}; {} served; the server has {} of {:?} bytes, {:?}, {counters:?}, {drops:?}; {:?}",
                self.now.since(self.begun),
                self.honest.served,
                server.memory(),
                server.memory_levels(),
                server.table_sizes(),
                self.greed,
            ),
        )
    }
}

fn address(host: usize) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1).into()
}
