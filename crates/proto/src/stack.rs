//! One host: its addresses, listeners and connections.
//!
//! | folder | subject |
//! |---|---|
//! | `demux` | packets in: parsing, demultiplexing (`ingress`, `holders`), batches (`gro_run`), ICMP, valid sources (`sources`), answers without a connection (`replies`) |
//! | `listen` | passive opens: Fast Open, SYN queue (`request`), SYN cookies (`stateless`, `syn_cookie`), new connections (`open`, `fast_child`), `migration` |
//! | `api` | calls of the application: `verbs`, `stream`, `closing`, `routes`, `repair`, `ports`, `queries`, `socket_list`, `snmp` |
//! | `timers` | after a change of a connection (`settle`, `pending_work`), timeouts (`request_timers`), output and deadline (`egress`), `refusal` |
//! | `hooks` | options of single packets (`packet_hooks`, `signing`), the trace, and in debug builds invariants |
//!
//! The handling of a segment by its connection is in `tcp`.

pub(crate) mod api;
pub(crate) mod demux;
pub(crate) mod hooks;
mod listen;
pub(crate) use listen::shares;
pub(crate) mod timers;

use crate::fast_open::{Blackhole, Key, KeyRing, Network, PathCache, ReplayGuard, Rotation};
use crate::isn::{IsnGenerator, TupleSecret};
use crate::keyed_hash::HashKey;
use crate::memory::Memory;
use crate::rate_limit::{ChallengeLimit, PeerLimit};
use crate::rng::Rng;
use crate::route::RouteTable;
use crate::slab::Slab;
use crate::socket_options::Options;
use crate::stack::api::peer_time_wait::PeerTimeWait;
use crate::stack::api::ports::PortCounters;
use crate::stack::demux::holders::{Holder, Holders};
use crate::stack::demux::replies::Replies;
use crate::stack::hooks::packet_hooks::PacketHooks;
use crate::stack::listen::listener::Listener;
use crate::stack::listen::request::Request;
use crate::stack::listen::syn_cookie::SynCookies;
use crate::stack::timers::pending_work::PendingWork;
use crate::stack::timers::reclaim::Reclaim;
use crate::stack::timers::request_timers::RequestTimers;
use crate::tcp::connection::{Connection, Shared};
use crate::tcp::open::fresh::Fresh;
use crate::tcp::open::handshake::SpareHandshakes;
use crate::tcp::recv::receive_buffer::Spare;
use crate::tcp::send::send_queue::blocks::SendBlocks;
use crate::time_wait::TimeWaitTable;
use crate::timer_wheel::TimerWheel;
use crate::trace::Tracer;
use crate::tuple::{FourTuple, Name};
use crate::{
    CloseReason, Config, ConnId, ConnectionInfo, Counters, Drops, EarlyData, Instant, ListenerId,
    ListenerInfo, Outcome, SenderLimits, SettingError, State, TableSizes, TcpInfo,
};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;
use wire::{Addr, Capabilities, SeqNum};

#[cfg(debug_assertions)]
pub use crate::stack::hooks::watch::Complaint;

/// Life of a generation of the replay guard: the longest a packet may wander (RFC 9293's MSL).
const REPLAY_GENERATION: Duration = Duration::from_secs(120);

/// One host: its addresses, listeners and connections.
///
/// There are four kinds of methods: getters; `handle_*` (a packet, or the time); the application's
/// calls; `poll_*` (the next action). After one mutation, or a batch of them at one `now`, drain
/// [`poll_transmit`](Stack::poll_transmit), [`poll_event`](Stack::poll_event) and
/// [`poll_timeout`](Stack::poll_timeout). `now` must never decrease.
pub struct Stack {
    shared: Shared,
    addresses: Vec<Addr>,
    /// While tracing is on.
    trace: Option<Box<Tracer>>,
    /// From the first socket on with an option that needs them.
    hooks: Option<Box<PacketHooks>>,
    connections: Slab<Connection>,
    requests: Slab<Request>,
    holders: Holders,
    listeners: Slab<Listener>,
    listeners_by_port: BTreeMap<u16, Vec<ListenerId>>,
    time_wait: TimeWaitTable,
    timers: TimerWheel,
    request_timers: RequestTimers,
    reclaim: Reclaim,
    work: PendingWork,
    replies: Replies,
    resets: PeerLimit,
    echo_replies: PeerLimit,
    hash_key: HashKey,
    isn: IsnGenerator,
    /// Every connection's, if not what `isn` gives.
    fixed_isn: Option<SeqNum>,
    ports: PortCounters,
    peer_time_wait: PeerTimeWait,
    guard: ReplayGuard,
    /// Some listener has served Fast Open.
    serves_fast_open: bool,
    keys: KeyRing,
    rotation: Rotation,
    syn_cookies: SynCookies,
    routes: RouteTable,
    drops: Drops,
    device_name: Box<str>,
}

/// What a connection begins with.
#[derive(Clone, Copy)]
struct FirstNumbers {
    iss: SeqNum,
    /// See [`Stack::timestamp_offset`].
    ts_offset: u32,
}

impl Stack {
    /// What a connection adds to the stack's clock for its timestamps (`tcp_timestamps`).
    fn timestamp_offset(&self, tuple: &FourTuple) -> u32 {
        if self.has_timestamp_offsets() { self.isn.of_tuple(tuple).timestamp_offset() } else { 0 }
    }

    fn has_timestamp_offsets(&self) -> bool {
        self.shared.config.tcp_timestamps == 1
    }

    /// The ISN of a connection that begins, and that. `min_isn`: where everything the last connection of this tuple used ends, if it was in
    /// TIME-WAIT: RFC 6528's clock may be behind what a fast connection has sent.
    fn first_numbers(&self, now: Instant, tuple: &FourTuple, min_isn: Option<SeqNum>) -> FirstNumbers {
        self.numbers_of(self.isn.of_tuple(tuple), now, min_isn)
    }

    /// The ISN and timestamp offset of a new connection, from the secret of its tuple.
    fn numbers_of(&self, secret: TupleSecret, now: Instant, min_isn: Option<SeqNum>) -> FirstNumbers {
        let ts_offset = if self.has_timestamp_offsets() { secret.timestamp_offset() } else { 0 };
        let iss = min_isn.or(self.fixed_isn).unwrap_or_else(|| secret.isn(now));
        FirstNumbers { iss, ts_offset }
    }
}

impl Shared {
    /// Returns the most that a send buffer may hold while the stack is short of memory.
    pub(crate) fn send_share(&self) -> Option<u32> {
        self.memory.send_share(self.config.tcp_wmem[0])
    }

    /// Charges a connection what its buffers hold now.
    #[inline(always)]
    fn charge(&mut self, now: Instant, connection: &mut Connection) {
        let held = connection.memory();
        if held != connection.charged {
            let before = core::mem::replace(&mut connection.charged, held);
            self.memory.charge(now, before, held, &mut self.counters);
        }
    }
}

impl Stack {
    /// Creates a host without addresses. `seed` determines every random choice: initial sequence
    /// numbers, ports, hash keys, the cookie key.
    ///
    /// # Panics
    /// If TCP cannot work with these settings; [`try_new`](Stack::try_new) returns an error
    /// instead.
    pub fn new(config: Config, capabilities: Capabilities, seed: [u8; 32]) -> Stack {
        match Stack::try_new(config, capabilities, seed) {
            Ok(stack) => stack,
            Err(error) => panic!("{error}"),
        }
    }

    /// Creates a host like [`new`](Stack::new).
    ///
    /// # Errors
    /// TCP cannot work with these settings: see [`Config::check`].
    pub fn try_new(
        config: Config,
        capabilities: Capabilities,
        seed: [u8; 32],
    ) -> Result<Stack, SettingError> {
        config.check()?;
        Ok(Stack::with(config, capabilities, seed))
    }

    fn with(config: Config, capabilities: Capabilities, seed: [u8; 32]) -> Stack {
        let mut rng = Rng::new(seed);
        // Of another stream, as the other draws of `rng` keep their order.
        let mut replies_rng = Rng::new(seed.map(|byte| byte ^ 0x55));
        let hash_key = HashKey::new(rng.next_key());
        Stack {
            shared: Shared {
                now: Instant::ZERO,
                capabilities,
                counters: Counters::default(),
                paths: PathCache::new(config.path_cache_entries as usize, rng.next_key()),
                blackhole: Blackhole::new(Duration::from_secs(
                    config.tcp_fastopen_blackhole_timeout_sec.into(),
                )),
                networks: Vec::new(),
                challenge: ChallengeLimit::new(Rng::new(seed.map(|byte| !byte))),
                blocks: SendBlocks::new(config.tcp_wmem[2] as usize),
                handshakes: SpareHandshakes::default(),
                spare: Spare::default(),
                orphans: 0,
                memory: Memory::new(&config),
                meanwhile: Vec::new(),
                tap_read: None,
                #[cfg(debug_assertions)]
                fast_paths: true,
                #[cfg(debug_assertions)]
                fast_paths_taken: Default::default(),
                fresh: Fresh::new(&config),
                config: config.clone(),
            },
            addresses: Vec::new(),
            trace: None,
            hooks: None,
            connections: Slab::new(),
            requests: Slab::new(),
            holders: Holders::new(),
            listeners: Slab::new(),
            listeners_by_port: BTreeMap::new(),
            time_wait: TimeWaitTable::new(config.tcp_max_tw_buckets as usize, hash_key),
            timers: TimerWheel::new(),
            request_timers: RequestTimers::new(),
            reclaim: Reclaim::default(),
            work: PendingWork::new(),
            replies: Replies::default(),
            resets: PeerLimit::new(replies_rng.next_key()),
            echo_replies: PeerLimit::new(replies_rng.next_key()),
            hash_key,
            isn: IsnGenerator::new(rng.next_key()),
            fixed_isn: None,
            ports: PortCounters::new(Rng::new(seed.map(|byte| byte ^ 0xaa))),
            peer_time_wait: PeerTimeWait::default(),
            guard: ReplayGuard::new(rng.next_key(), config.replay_guard_entries as usize, REPLAY_GENERATION),
            serves_fast_open: false,
            keys: KeyRing::new(Key::from_bytes(rng.next_bytes16())),
            rotation: Rotation::new(Rng::new(seed.map(|byte| byte.rotate_left(4)))),
            syn_cookies: SynCookies::new(rng.next_key()),
            routes: RouteTable::default(),
            drops: Drops::default(),
            device_name: "".into(),
        }
    }

    /// Returns the current settings.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// Returns the counters, under Linux's names.
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Returns the dropped packets by reason.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }

    /// Returns the local addresses.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.iter().map(Addr::to_ip)
    }

    /// Returns a snapshot of a connection, until its application closes it.
    pub fn info(&self, id: ConnId) -> Option<ConnectionInfo> {
        let c = self.connection(id)?;
        Some(ConnectionInfo::of(c, &self.shared))
    }

    /// Returns a snapshot of a listener.
    pub fn listener_info(&self, id: ListenerId) -> Option<ListenerInfo> {
        let listener = self.listener(id)?;
        Some(listener.info())
    }

    /// Returns the outcome of Fast Open (active opens).
    pub fn outcome(&self, id: ConnId) -> Option<Outcome> {
        self.connection(id).map(|c| c.outcome)
    }

    /// Returns the range of data received in the SYN (passive opens).
    pub fn early_data(&self, id: ConnId) -> Option<EarlyData> {
        self.connection(id).map(Connection::early_data)
    }

    /// Returns the reason why the connection ended; `None` while it lives, and for unknown ids.
    pub fn close_reason(&self, id: ConnId) -> Option<CloseReason> {
        self.connection(id).and_then(|c| c.close_reason)
    }

    /// Returns the path cache: cookies, MSS, SRTT and verdicts.
    pub fn path_cache(&self) -> &PathCache {
        &self.shared.paths
    }

    /// Returns the path cache for changes.
    pub fn path_cache_mut(&mut self) -> &mut PathCache {
        &mut self.shared.paths
    }

    /// Returns the sizes of the stack's tables.
    pub fn table_sizes(&self) -> TableSizes {
        TableSizes {
            connections: self.connections.len(),
            requests: self.requests.len(),
            time_wait: self.time_wait.len(),
        }
    }

    /// Returns the memory of all buffers in bytes, by their real sizes.
    pub fn memory(&self) -> u64 {
        self.shared.memory.held()
    }

    /// Returns whether buffers do not grow and windows shrink because of memory pressure
    /// (`tcp_mem`).
    pub fn is_under_memory_pressure(&self) -> bool {
        self.shared.memory.is_under_pressure()
    }

    /// Returns the three sizes of `tcp_mem`, bytes.
    pub fn memory_levels(&self) -> [u64; 3] {
        self.shared.memory.levels()
    }

    /// Returns the number of orphans: closed connections that still deliver data.
    pub fn orphans(&self) -> usize {
        self.shared.orphans as usize
    }

    /// Enables or disables fast paths, for tests that compare both. They are enabled by default.
    #[cfg(debug_assertions)]
    #[doc(hidden)]
    pub fn set_fast_paths(&mut self, on: bool) {
        self.shared.fast_paths = on;
    }

    /// Returns how often each fast path was taken, by name.
    #[cfg(debug_assertions)]
    #[doc(hidden)]
    pub fn fast_paths_taken(&self) -> impl Iterator<Item = (String, u64)> {
        self.shared.fast_paths_taken.all()
    }

    /// Adds a local address. `prefix_len` (0..=32 or 0..=128) determines its network, which is part
    /// of the key of verdicts.
    pub fn add_address(&mut self, addr: IpAddr, prefix_len: u8) {
        let addr = Addr::from(addr);
        if !self.addresses.contains(&addr) {
            self.addresses.push(addr);
            self.shared.networks.push(Network::new(addr, prefix_len));
        }
    }

    /// Removes a local address. Packets for it are no longer accepted, and connections from it time
    /// out.
    pub fn remove_address(&mut self, addr: IpAddr) {
        if let Some(at) = self.addresses.iter().position(|known| *known == Addr::from(addr)) {
            self.addresses.remove(at);
            self.shared.networks.remove(at);
        }
    }

    /// Changes a setting by Linux's name, e.g. `("net.ipv4.tcp_fastopen", "0x403")`, or the cookie
    /// keys by `net.ipv4.tcp_fastopen_key`. Returns a warning if a part was refused.
    ///
    /// # Errors
    /// See [`Config::set`].
    pub fn set(&mut self, _now: Instant, name: &str, value: &str) -> Result<Option<String>, SettingError> {
        if name == "net.ipv4.tcp_fastopen_key" {
            let keys = value.parse().map_err(|error| SettingError::Invalid(format!("{error}")))?;
            self.set_fast_open_key(keys);
            return Ok(None);
        }
        let warning = self.set_row(name, value)?;
        self.shared.fresh = Fresh::new(&self.shared.config);
        let pause = self.shared.config.tcp_fastopen_blackhole_timeout_sec;
        self.shared.blackhole.set_timeout(Duration::from_secs(pause.into()));
        self.time_wait.set_max(self.shared.config.tcp_max_tw_buckets as usize);
        self.shared.memory.set_levels(&self.shared.config);
        Ok(warning)
    }

    /// Fixes the initial sequence number of new connections; `None` restores RFC 6528. Connections
    /// that reuse a tuple in TIME-WAIT continue its numbers, and SYN cookies are unaffected.
    ///
    /// This is for tests of wrapping sequence numbers: anyone who knows the number can write into a
    /// connection, or end it.
    pub fn fix_isn(&mut self, isn: Option<u32>) {
        self.fixed_isn = isn.map(SeqNum);
    }

    /// Replaces the stack's cookie keys. Listeners with their own keys keep them.
    pub fn set_fast_open_key(&mut self, ring: KeyRing) {
        self.keys = ring;
        self.rotation.restart();
    }

    /// Returns the stack's cookie keys as of the last use (`firstbyte.fast_open_key_rotation`).
    pub fn fast_open_key(&self) -> &KeyRing {
        &self.keys
    }

    fn connection(&self, id: ConnId) -> Option<&Connection> {
        self.connections.find(id.index, id.generation).filter(|connection| !connection.orphan)
    }

    /// The round trip of earlier connections, while it is to be believed.
    fn remembered_rtt(&self, now: Instant, tuple: &FourTuple) -> Option<Duration> {
        let path = self.shared.paths.lookup(tuple.local, tuple.peer)?;
        path.fresh_rtt(now, self.shared.config.path_metrics_life)
    }

    fn listener(&self, id: ListenerId) -> Option<&Listener> {
        self.listeners.find(id.index, id.generation)
    }

    fn listener_mut(&mut self, id: ListenerId) -> Option<&mut Listener> {
        self.listeners.find_mut(id.index, id.generation)
    }

    /// A connection of this name begins, and can be found by it; `before` had it.
    #[inline(never)]
    fn begin_connection(
        &mut self,
        now: Instant,
        name: Name,
        begin: (State, SeqNum),
        options: Options,
        before: Option<Holder>,
    ) -> ConnId {
        self.bound_moved();
        let route = self.route_of(&name.tuple);
        let cx = self.shared.context(now);
        let make = || Connection::new(cx, name.tuple, begin, options, route);
        let (index, generation) = self.connections.insert_with(make);
        self.hold(name.hash, Holder::Connection(index), before);
        ConnId { index, generation }
    }
}

impl ConnectionInfo {
    fn of(c: &Connection, shared: &Shared) -> ConnectionInfo {
        use crate::tcp::congestion::Controller;
        let config = &shared.config;
        ConnectionInfo {
            state: c.state,
            local: c.tuple.local_addr(),
            peer: c.tuple.peer_addr(),
            outcome: c.outcome,
            syn_data_len: c.syn_data_len.into(),
            syn_data_acked: c.syn_data_acked.into(),
            early_data: c.early_data(),
            synack_data_len: c.synack_data_len.into(),
            srtt: c.rtt.srtt(),
            rttvar: c.rtt.rttvar(),
            rto: c.handshake_rto(config).unwrap_or(c.reported_rto(config)),
            min_rtt: c.rtt.min_rtt(),
            congestion: c.congestion.algorithm(),
            congestion_info: c.congestion.info(),
            cwnd: c.reported_cwnd(),
            ssthresh: c.congestion.ssthresh(),
            pacing_rate: c.pacing_rate(config),
            delivery_rate: c.snd.queue.delivery.best().map(|rate| rate.per_second()),
            delivery_rate_app_limited: c.snd.queue.delivery.best().is_some_and(|rate| rate.app_limited),
            limits: SenderLimits::of(c),
            flight_size: c.snd.flight_size(),
            snd_mss: c.smss(),
            snd_wnd: c.snd.wnd,
            rcv_wnd: c.rcv.wnd(),
            snd_wscale: c.agreed.snd_wscale.unwrap_or(0),
            rcv_wscale: c.rcv.wscale,
            recv_buffer: c.rcv.space.rcvbuf(),
            send_buffer: c.snd.queue.limit,
            memory: c.memory(),
            window_scaling: c.agreed.snd_wscale.is_some(),
            timestamps: c.agreed.timestamps,
            sack: c.agreed.sack,
            ecn: !c.agreed.ecn.is_off(),
            send_queue: c.snd.queue.len(),
            send_buffer_used: c.send_buffer_used(config),
            writable: c.is_writable(config, shared.send_share()),
            recv_queue: c.rcv.buffer.len(),
            orphan: c.orphan,
            timer: c.running_timer(config),
            total_retrans: c.total_retrans(),
            bytes_acked: c.bytes_acked,
            bytes_received: c.rcv.bytes_received(),
            tcp_info: TcpInfo::of(c, config),
            opened_at: c.moments.opened_at,
            established_at: c.established_at(),
        }
    }
}

/// Does this state still exchange packets of its own?
fn is_live(state: State) -> bool {
    !matches!(state, State::Closed | State::TimeWait)
}
