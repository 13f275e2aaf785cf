//! Builds the network of one variant and runs it.

use super::device::DevicePart;
use super::event::Act;
use super::file::{EndPart, EventPart, File, PathPart, ProfileName, RunPart};
use super::limits::Limits;
use super::mistake::{Mistake, Within};
use super::nearest::nearest_of_settings;
use super::path;
use super::quantities::Size;
use super::routes::Routes;
use super::topology::{self, Joined, SERVER, address_of_client};
use crate::apps::{Program, Rounds, Step, Told};
use crate::capture::{Capture, HostId};
use crate::middlebox::Direction;
use crate::network::{CardStats, HostPlan, Network, PathId, Profile};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use proto::fast_open::{Key, KeyRing};
use proto::{ConnectOptions, Instant, ListenOptions, SettingError, SocketOptions, Stack, StateCounts};
use qdisc::{LinkStats, Loss, Probability};
use std::collections::BTreeMap;
use wire::{Addr, Flags, IpHeader, SeqNum, TcpHeader, protocol};

/// Maximum number of client hosts.
pub(super) const CLIENTS_MAX: u32 = 100_000;
/// Name of the sender of probes.
pub(super) const PROBE: &str = "probe";
/// First source address of spoofed SYNs (RFC 5737).
const NOBODY: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 100);
/// Source addresses of spoofed SYNs.
pub(super) const NOBODIES: core::ops::Range<u32> = NOBODY.to_bits()..NOBODY.to_bits() + 100;
/// Bytes of a probe, headers included.
const PROBE_LEN: usize = 200;
/// Maximum number of listening ports of a server.
const PORTS_MAX: u64 = 1000;
/// Maximum number of servers behind one address.
const SERVERS_MAX: u64 = 1000;
/// Keys of the ends.
const ENDS: [&str; 2] = ["client", "server"];
/// Default maximum virtual time of a run.
const LIMIT: Duration = Duration::from_secs(600);

/// A finished run.
#[derive(Clone, Debug)]
pub(super) struct Played {
    pub(super) name: String,
    pub(super) capture: Capture,
    pub(super) clients: Vec<HostId>,
    pub(super) told: [Vec<Told>; 2],
    pub(super) counters: [BTreeMap<String, u64>; 2],
    pub(super) states: [Vec<StateCounts>; 2],
    /// Statistics of the wires towards the client and towards the server.
    pub(super) links: [Vec<LinkStats>; 2],
    /// Direction of the path's queue and losses.
    pub(super) narrow: Direction,
    /// Lines logged by the server's `log_martians`.
    pub(super) martians: usize,
    /// Packets on each link of a bond, towards the client.
    pub(super) bonded: Vec<u64>,
    /// Statistics of the cards of all hosts.
    pub(super) cards: [Vec<CardStats>; 2],
    /// True for each end that runs a Firstbyte stack, which reports its state.
    pub(super) ours: [bool; 2],
}

pub(super) struct Hosts {
    pub(super) clients: Vec<HostId>,
    pub(super) servers: Vec<HostId>,
    paths: Vec<Joined>,
}

impl Hosts {
    fn of(&self, client: bool) -> &[HostId] {
        if client { &self.clients } else { &self.servers }
    }
}

enum Happening<'a> {
    Start(&'a HostId),
    /// An event and its number in the file, from 1.
    Event(usize, &'a EventPart),
}

/// A variant and the file values it uses.
pub(super) struct Variant<'a> {
    pub(super) name: &'a str,
    pub(super) path: PathPart,
    pub(super) ends: [EndPart; 2],
    pub(super) events: Vec<EventPart>,
    limit: Duration,
    seed: u64,
}

impl<'a> Variant<'a> {
    pub(super) fn of(file: &'a File, run: &'a RunPart) -> Variant<'a> {
        let mut events = [file.event.clone(), run.event.clone()].concat();
        events.sort_by_key(|event| event.at.0);
        Variant {
            name: &run.name,
            path: path::over(&run.path, &file.path),
            ends: [end_over(&run.client, &file.client), end_over(&run.server, &file.server)],
            events,
            limit: run.limit.or(file.limit).map_or(LIMIT, |limit| limit.0),
            seed: file.seed,
        }
    }

    /// Checks everything that needs no network.
    pub(super) fn check(&self) -> Result<(), Mistake> {
        let [client, server] = &self.ends;
        let misplaced = |end, key: Option<&str>, other| match key {
            Some(key) => {
                let error = format!("`{key}` has no meaning in [{end}]; it belongs to [{other}]");
                Err(error).within(key).within(end)
            }
            None => Ok(()),
        };
        misplaced("client", client.of_a_server(), "server")?;
        misplaced("server", server.of_a_client(), "client")?;
        let over = || format!("but the run ends after {:?}; change `for`", self.limit);
        let last_start = self.starts_after(client.clients.unwrap_or(1).saturating_sub(1));
        if last_start > self.limit {
            let error = format!("the last client would start after {last_start:?}, {}", over());
            return Err(error).within("stagger").within("client");
        }
        self.events.iter().try_for_each(|event| match event.act {
            _ if event.at.0 > self.limit => {
                Err(event.mistake("at", format!("an event at {:?}, {}", event.at.0, over())))
            }
            Act::Probe { .. } if event.last_at() > self.limit => {
                let error = format!("the last probe would be at {:?}, {}", event.last_at(), over());
                Err(event.mistake("do", error))
            }
            Act::Link { number, .. } => {
                self.path.check_link(number).map_err(|error| event.mistake("do", error))
            }
            _ => Ok(()),
        })
    }

    /// Checks the limits as far as possible without a network.
    pub(super) fn check_limits(&self, limits: &Limits) -> Result<(), Mistake> {
        limits.check(&self.path, &self.ends, &self.events)
    }

    /// Returns the start of the n-th client, counted from 0.
    fn starts_after(&self, number: u32) -> Duration {
        self.ends[0].stagger.map_or(Duration::ZERO, |stagger| stagger.0.saturating_mul(number))
    }

    /// Tries the settings of all events on the hosts.
    pub(super) fn try_settings(&self, network: &mut Network, hosts: &Hosts) -> Result<(), Mistake> {
        let mut sets =
            self.events.iter().filter(|event| matches!(event.act, Act::Set { .. } | Act::Route { .. }));
        sets.try_for_each(|event| {
            let act = self.act(network, hosts, 0, &event.act);
            act.map_err(|error| event.mistake("do", error))
        })
    }

    /// Runs the variant and subtracts its needs from the limits.
    pub(super) fn play(&self, left: &mut Limits) -> Result<Played, Mistake> {
        self.check_limits(left)?;
        let (mut network, hosts, locals) = self.build([true; 2])?;
        network.limit(left.packets, left.memory);
        self.run(&mut network, &hosts, &locals)?;
        *left = left.without(network.capture().packets(), network.capture().memory())?;
        Ok(self.told(network, hosts))
    }

    /// Builds the hosts, joins them and starts the servers. An end that is not `ours` is a host
    /// outside.
    pub(super) fn build(&self, ours: [bool; 2]) -> Result<(Network, Hosts, Vec<SocketAddr>), Mistake> {
        for (end, name) in self.ends.iter().zip(ENDS) {
            check_counts(end).within(name)?;
        }
        let mut network = Network::new(self.seed);
        let [client, server] = &self.ends;
        let listening = ListenOptions {
            backlog: server.backlog.unwrap_or(1024),
            fast_open: server.fast_open,
            socket: socket(server),
            ..ListenOptions::default()
        };
        let ports = SERVER.port()..SERVER.port() + server.ports.unwrap_or(1);
        let locals: Vec<SocketAddr> = ports.map(|port| SocketAddr::new(SERVER.ip(), port)).collect();
        let mut servers = Vec::new();
        for _ in 0..server.servers.unwrap_or(1) {
            if !ours[1] {
                servers.push(network.add_outside(SERVER.ip()));
                continue;
            }
            let accepts = server.accepts.unwrap_or(true);
            let serving = Program::server(locals.clone(), listening.clone(), steps(server), accepts);
            servers.push(network.add_host(self.plan(server, SERVER.ip()).within("server")?, serving));
        }
        // A client acts as soon as it is added, so its path must exist before.
        let mut clients = Vec::new();
        for number in 0..client.clients.unwrap_or(1) {
            let address = address_of_client(number).into();
            clients.push(match ours[0] {
                true => network.add_host(self.plan(client, address).within("client")?, crate::network::Idle),
                false => network.add_outside(address),
            });
        }
        let hosts =
            Hosts { paths: topology::join(&mut network, &self.path, &clients, &servers)?, clients, servers };
        for (number, host) in hosts.servers.iter().enumerate().filter(|_| ours[1]) {
            self.prepare(&mut network, *host, server).within("server")?;
            let key = self.key_of(number, 0);
            network.with_stack(*host, |stack, _| stack.set_fast_open_key(key));
        }
        for host in hosts.clients.iter().filter(|_| ours[0]) {
            self.prepare(&mut network, *host, client).within("client")?;
        }
        Ok((network, hosts, locals))
    }

    /// Collects the results of a run. Several servers or clients are summed.
    fn told(&self, network: Network, hosts: Hosts) -> Played {
        let told = |host: &HostId| network.app::<Program>(*host).told().cloned().collect::<Vec<_>>();
        let told = [&hosts.clients, &hosts.servers].map(|hosts| hosts.iter().flat_map(told).collect());
        self.seen(network, hosts, told)
    }

    /// Collects the results of a run with the programs' own reports.
    pub(super) fn seen(&self, mut network: Network, hosts: Hosts, told: [Vec<Told>; 2]) -> Played {
        let Hosts { clients, servers, paths } = hosts;
        let ends = [&clients[..], &servers[..]];
        let links = |way| paths.iter().flat_map(|path| network.link_stats(path.id, way)).collect();
        Played {
            name: self.name.to_owned(),
            told,
            counters: ends.map(|hosts| counters(&network, hosts)),
            states: ends.map(|hosts| hosts.iter().map(|host| network.stack(*host).states()).collect()),
            links: [Direction::Backward, Direction::Forward].map(links),
            narrow: self.path.narrow_way(),
            bonded: bonded(&network, &paths),
            cards: ends.map(|hosts| hosts.iter().filter_map(|host| network.card_stats(*host)).collect()),
            ours: ends.map(|hosts| !network.is_outside(hosts[0])),
            martians: network.ways(servers[0]).map_or(0, |ways| ways.martians().len()),
            capture: network.take_capture(),
            clients,
        }
    }

    /// Starts the clients one after the other and triggers the events.
    pub(super) fn run(
        &self,
        network: &mut Network,
        hosts: &Hosts,
        peers: &[SocketAddr],
    ) -> Result<(), Mistake> {
        let start = |(number, client)| (self.starts_after(number), Happening::Start(client));
        let starts = (0..).zip(&hosts.clients).map(start);
        let events = (1..)
            .zip(&self.events)
            .flat_map(|(number, event)| event.moments().map(move |at| (at, Happening::Event(number, event))));
        let mut plan: Vec<(Duration, Happening<'_>)> = starts.chain(events).collect();
        // The sort is stable: at equal times clients start before events.
        plan.sort_by_key(|(at, _)| *at);
        let mut passed = Duration::ZERO;
        for (at, happening) in plan {
            if at > passed {
                network.run_for(at - passed);
                passed = at;
            }
            match happening {
                Happening::Start(client) => network.set_app(*client, self.program(peers)),
                Happening::Event(number, event) => {
                    let act = self.act(network, hosts, number, &event.act);
                    act.map_err(|error| event.mistake("do", error))?;
                }
            }
        }
        network.run_until_quiet(self.limit.saturating_sub(passed));
        Ok(())
    }

    /// Executes an event, on every path or at every host of its end.
    fn act(&self, network: &mut Network, hosts: &Hosts, number: usize, act: &Act) -> Result<(), String> {
        match act {
            Act::Path { up } => hosts.paths.iter().for_each(|path| {
                for way in [Direction::Forward, Direction::Backward] {
                    network.set_path_up(path.id, way, *up);
                }
            }),
            Act::Link { number, up } => {
                hosts.paths.iter().for_each(|path| network.set_link_up(path.id, number - 1, *up));
            }
            Act::Loss { percent } => hosts.paths.iter().for_each(|path| {
                let loss = Loss::Random(Probability::percent(*percent));
                network.set_loss(path.id, self.path.narrow_way(), loss);
            }),
            Act::SpoofSyns { count } => hosts.servers.iter().for_each(|server| {
                // Any path to that server will do.
                let path = hosts.paths.iter().find(|path| path.server == *server);
                path.into_iter().for_each(|path| spoof(network, path.id, *count));
            }),
            Act::Probe { .. } => hosts.paths.iter().for_each(|path| {
                let way = self.path.narrow_way();
                network.inject(PROBE, path.id, way, a_probe(way));
            }),
            Act::Set { client, name, value } => {
                hosts.of(*client).iter().try_for_each(|host| set_one(network, *host, name, value))?;
            }
            Act::Route { client, routes } => {
                hosts.of(*client).iter().try_for_each(|host| set_routes(network, *host, routes))?;
            }
            Act::Forget => hosts.clients.iter().chain(&hosts.servers).for_each(|host| {
                network.with_stack(*host, |stack, _| stack.path_cache_mut().clear());
            }),
            Act::NewKey => hosts.servers.iter().enumerate().for_each(|(server, host)| {
                let key = self.key_of(server, number);
                network.with_stack(*host, |stack, _| stack.set_fast_open_key(key));
            }),
        }
        Ok(())
    }

    /// Returns the cookie key of the n-th server since this event; 0 is the start.
    fn key_of(&self, server: usize, event: usize) -> KeyRing {
        let owner = if self.ends[1].own_keys == Some(true) { server } else { 0 };
        let mut bytes = [0; 16];
        let (first, second) = bytes.split_at_mut(8);
        first.copy_from_slice(&(owner as u64).to_be_bytes());
        second.copy_from_slice(&(event as u64).to_be_bytes());
        KeyRing::new(Key::from_bytes(bytes))
    }

    /// Returns the names of all marks in the programs of both ends.
    pub(super) fn marks(&self) -> impl Iterator<Item = &str> {
        let steps = self.ends.iter().filter_map(|end| end.steps.as_deref()).flatten();
        steps.filter_map(|step| match step {
            Step::Mark(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Returns a client's program.
    pub(super) fn program(&self, peers: &[SocketAddr]) -> Program {
        let client = &self.ends[0];
        let rounds = Rounds {
            count: client.connections.unwrap_or(1),
            alone: client.alone.unwrap_or(0),
            at_once: client.at_once.unwrap_or(1),
            pause: client.pause.map_or(Duration::ZERO, |pause| pause.0),
        };
        let options = ConnectOptions { socket: socket(client), ..ConnectOptions::default() };
        Program::client(peers.to_vec(), options, steps(client), rounds)
    }

    fn plan(&self, end: &EndPart, address: IpAddr) -> Result<HostPlan, Mistake> {
        let profile = match end.profile.unwrap_or(ProfileName::Firstbyte) {
            ProfileName::Firstbyte => Profile::Firstbyte,
            ProfileName::Linux => Profile::Linux,
        };
        let card = end.device.as_ref().map(DevicePart::plan).transpose();
        let card = card.map_err(|mistake| Mistake::of(mistake, "device")).within("device")?;
        Ok(HostPlan { mtu: self.path.mtu.unwrap_or(1500), card, ..HostPlan::new(profile, address) })
    }

    fn prepare(&self, network: &mut Network, host: HostId, end: &EndPart) -> Result<(), Mistake> {
        for (name, value) in &end.set {
            set_one(network, host, name, &value.text()).within(name).within("set")?;
        }
        match &end.route {
            Some(routes) => set_routes(network, host, routes).within("route"),
            None => Ok(()),
        }
    }
}

fn set_one(network: &mut Network, host: HostId, name: &str, value: &str) -> Result<(), String> {
    // A host with a routing table filters packets before its stack.
    if let Some(ways) = network.ways_mut(host)
        && ways.set(name, value).map_err(|error| format!("`{name}`: {error}"))?
    {
        return Ok(());
    }
    network.with_stack(host, |stack, now| set(stack, now, name, value))
}

fn set(stack: &mut Stack, now: Instant, name: &str, value: &str) -> Result<(), String> {
    stack.set(now, name, value).map(drop).map_err(|error| match error {
        SettingError::Unknown => {
            let known: Vec<&str> = stack.config().all().into_iter().map(|(name, _)| name).collect();
            let near = nearest_of_settings(name, &known);
            format!("unknown setting `{name}`{near}; settings have Linux's names, such as net.ipv4.tcp_sack")
        }
        why => format!("`{name}`: {why}"),
    })
}

fn set_routes(network: &mut Network, host: HostId, routes: &Routes) -> Result<(), Mistake> {
    let set = network.with_routes(host, |now, stack, ways| routes.apply(now, stack, ways));
    set.map_err(|mistake| mistake.of("route"))
}

/// Checks that counts are at least one and below their maximum.
fn check_counts(end: &EndPart) -> Result<(), Mistake> {
    let counts = [
        ("clients", end.clients.map(u64::from), CLIENTS_MAX.into()),
        ("connections", end.connections.map(|count| count as u64), u64::MAX),
        ("at_once", end.at_once.map(|count| count as u64), u64::MAX),
        ("ports", end.ports.map(u64::from), PORTS_MAX),
        ("servers", end.servers.map(|count| count as u64), SERVERS_MAX),
    ];
    for (name, count, most) in counts {
        match count {
            Some(0) if most == u64::MAX => {
                return Err(format!("`{name} = 0`: write at least 1")).within(name);
            }
            Some(count) if count == 0 || count > most => {
                return Err(format!("`{name} = {count}`: from 1 to {most}")).within(name);
            }
            _ => (),
        }
    }
    Ok(())
}

fn steps(end: &EndPart) -> Vec<Step> {
    end.steps.clone().unwrap_or_default()
}

/// Sums counters of hosts, by Linux's names.
pub(super) fn counters(network: &Network, hosts: &[HostId]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for host in hosts {
        for (name, value) in network.stack(*host).nstat() {
            *sums.entry(name).or_default() += value;
        }
        if let Some(ways) = network.ways(*host) {
            *sums.entry("TcpExtIPReversePathFilter".into()).or_default() += ways.filtered();
        }
    }
    sums
}

/// Sums the packets towards the client on each link of the paths' bonds.
fn bonded(network: &Network, paths: &[Joined]) -> Vec<u64> {
    let of_path = |path: &Joined| network.bond_packets(path.id, Direction::Backward);
    let sum = |sums: Vec<u64>, more: Vec<u64>| sums.iter().zip(&more).map(|(a, b)| a + b).collect();
    paths.iter().map(of_path).reduce(sum).unwrap_or_default()
}

fn socket(end: &EndPart) -> SocketOptions {
    let size = |size: Option<Size>| size.map(|size| u32::try_from(size.0).unwrap_or(u32::MAX));
    SocketOptions {
        nodelay: end.nodelay.unwrap_or_default(),
        keepalive: end.keepalive.unwrap_or_default(),
        send_buffer: size(end.sndbuf),
        recv_buffer: size(end.rcvbuf),
        ..SocketOptions::default()
    }
}

fn spoof(network: &mut Network, path: PathId, count: u32) {
    for number in 0..count {
        if network.is_over_limit() {
            break;
        }
        network.inject("nobody", path, Direction::Forward, spoofed(number));
    }
}

/// Builds a datagram as a call or a game sends it, to the first client or to the server. Nobody
/// answers.
fn a_probe(way: Direction) -> bytes::Bytes {
    const PORT: u16 = 9; // discard
    let to = match way {
        Direction::Backward => IpAddr::V4(address_of_client(0)),
        Direction::Forward => SERVER.ip(),
    };
    let ip = IpHeader::new(Addr::from(IpAddr::V4(NOBODY)), Addr::from(to), protocol::UDP);
    let mut packet = vec![0; PROBE_LEN];
    let header = ip.emit_len();
    ip.emit(PROBE_LEN - header, &mut packet);
    let udp_len = (PROBE_LEN - header) as u16;
    // No checksum (RFC 768).
    let udp = [PORT, PORT, udp_len, 0].map(u16::to_be_bytes);
    packet[header..header + 8].copy_from_slice(udp.as_flattened());
    packet.into()
}

/// Builds the n-th SYN from an address that does not answer.
fn spoofed(number: u32) -> bytes::Bytes {
    let source = IpAddr::V4(Ipv4Addr::from_bits(NOBODIES.start + number % NOBODIES.len() as u32));
    let mut tcp = TcpHeader::new(10_000 + (number % 50_000) as u16, SERVER.port());
    tcp.seq = SeqNum(number.wrapping_mul(0x9e37_79b9));
    tcp.flags = Flags::SYN;
    tcp.window = 64_240;
    tcp.options.mss = Some(1460);
    let ip = IpHeader::new(Addr::from(source), Addr::from(SERVER.ip()), protocol::TCP);
    wire::build_tcp_packet(&ip, &tcp, &[])
}

fn end_over(own: &EndPart, base: &EndPart) -> EndPart {
    let mut set = base.set.clone();
    set.extend(own.set.clone());
    let steps: Option<Vec<Step>> = own.steps.clone().or_else(|| base.steps.clone());
    EndPart {
        profile: own.profile.or(base.profile),
        set,
        route: own.route.clone().or_else(|| base.route.clone()),
        nodelay: own.nodelay.or(base.nodelay),
        keepalive: own.keepalive.or(base.keepalive),
        sndbuf: own.sndbuf.or(base.sndbuf),
        rcvbuf: own.rcvbuf.or(base.rcvbuf),
        steps,
        clients: own.clients.or(base.clients),
        stagger: own.stagger.or(base.stagger),
        connections: own.connections.or(base.connections),
        alone: own.alone.or(base.alone),
        at_once: own.at_once.or(base.at_once),
        pause: own.pause.or(base.pause),
        backlog: own.backlog.or(base.backlog),
        fast_open: own.fast_open.or(base.fast_open),
        accepts: own.accepts.or(base.accepts),
        ports: own.ports.or(base.ports),
        servers: own.servers.or(base.servers),
        own_keys: own.own_keys.or(base.own_keys),
        device: match (own.device.clone(), &base.device) {
            (Some(own), Some(base)) => Some(own.over(base)),
            (own, base) => own.or_else(|| base.clone()),
        },
    }
}
