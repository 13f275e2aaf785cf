//! Calls that open sockets: listen, accept, connect.

use super::ports::Claim;
use crate::fast_open::{ClientInputs, ClientPlan, decide};
use crate::socket_options::Options;
use crate::stack::listen::listener::Listener;
use crate::stack::{FirstNumbers, Stack};
use crate::tcp::connection::Fin;
use crate::tcp::open::handshake::{ActiveOpen, Handshake};
use crate::tuple::{FourTuple, Name};
use crate::{
    AcceptError, ConnId, ConnectError, ConnectOptions, FastOpen, FastOpenReadiness, Instant, ListenError,
    ListenOptions, ListenerId, Outcome, Skipped, State, fastopen,
};
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use wire::Addr;

/// The plan of a SYN, and the round trip remembered for the path.
type Planned = (ClientPlan, Option<Duration>);

/// The plan of a SYN that is not to be sent yet.
const HELD: Planned = (ClientPlan::Plain(Skipped::NotAsked), None);

/// Bytes written before the SYN has left, and whether the stream ends after them.
struct FirstBytes {
    bytes: Bytes,
    fin: bool,
    syn_only: bool,
}

impl Stack {
    /// Opens a listener. An unspecified address means every local address of that family, `[::]`
    /// those of both.
    ///
    /// # Errors
    /// [`ListenError::AddrInUse`] if this address and port have a listener,
    /// [`ListenError::AddrNotAvailable`] for an address that is not the stack's, or port 0.
    pub fn listen(
        &mut self,
        _now: Instant,
        local: SocketAddr,
        options: ListenOptions,
    ) -> Result<ListenerId, ListenError> {
        let own = local.ip().is_unspecified() || self.addresses.contains(&Addr::from(local.ip()));
        if !own || local.port() == 0 {
            return Err(ListenError::AddrNotAvailable);
        }
        let listener = Listener::new(&self.shared.config, self.hash_key, local, options);
        let same_port = self.listeners_by_port.entry(local.port()).or_default();
        let listeners = &self.listeners;
        let conflicts =
            |other: &Listener| other.has_place_of(&listener) && !(other.share_port && listener.share_port);
        if same_port.iter().any(|id| listeners.get(id.index).is_some_and(conflicts)) {
            return Err(ListenError::AddrInUse);
        }
        let socket = listener.socket.rare.clone();
        self.serves_fast_open |= listener.pending.max_qlen() > 0;
        let (index, generation) = self.listeners.insert(listener);
        let id = ListenerId { index, generation };
        same_port.push(id);
        self.share_cookies(id);
        self.enable_hooks(&socket);
        Ok(id)
    }

    /// Accepts the next connection of a listener. With Fast Open it may still be in SYN-RECEIVED:
    /// its data can be read and answered.
    ///
    /// # Errors
    /// [`AcceptError::Blocked`] if there is none yet.
    pub fn accept(&mut self, now: Instant, id: ListenerId) -> Result<(ConnId, SocketAddr), AcceptError> {
        loop {
            let listener = self.listener_mut(id).ok_or(AcceptError::Closed)?;
            let conn = listener.accept_queue.pop_front().ok_or(AcceptError::Blocked)?;
            let others_wait = !listener.waiting.is_empty();
            let Some(connection) = self.connections.find_mut(conn.index, conn.generation) else {
                self.count_closed_before_accept(id);
                continue;
            };
            connection.unaccepted = false;
            let peer = connection.tuple.peer_addr();
            let is_open = matches!(connection.state, State::SynReceived | State::Established);
            self.work.note_events(conn, connection);
            if !is_open {
                self.count_closed_before_accept(id);
            }
            if others_wait {
                self.admit_waiting(now, id);
            }
            return Ok((conn, peer));
        }
    }

    fn count_closed_before_accept(&mut self, id: ListenerId) {
        if let Some(listener) = self.listener_mut(id) {
            listener.drops.closed_before_accept += 1;
        }
    }

    /// Changes the backlog of an open listener, as a second `listen` does; the current
    /// `net.core.somaxconn` limits it. Its queues are unchanged. Returns false if there is no such
    /// listener.
    pub fn set_backlog(&mut self, now: Instant, id: ListenerId, backlog: u32) -> bool {
        let backlog = backlog.min(self.shared.config.somaxconn);
        let Some(listener) = self.listener_mut(id) else { return false };
        listener.backlog = backlog;
        self.admit_waiting(now, id);
        true
    }

    /// Changes the options of a listener. Its queues are unchanged; connections accepted from now
    /// on inherit the options. Returns false if there is no such listener.
    pub fn set_listen_options(&mut self, now: Instant, id: ListenerId, options: ListenOptions) -> bool {
        if !self.listeners.contains(id.index, id.generation) {
            return false;
        }
        if let Some(listener) = self.listeners.get_mut(id.index) {
            listener.set_options(&self.shared.config, self.hash_key, options);
            self.serves_fast_open |= listener.pending.max_qlen() > 0;
            let options = listener.socket.rare.clone();
            self.enable_hooks(&options);
        }
        self.admit_waiting(now, id);
        true
    }

    /// Returns whether the SYN of a [`connect`](Stack::connect) would carry data now. The query
    /// changes nothing and ignores negative verdicts. Without `local` it uses the address that
    /// would be chosen.
    pub fn fast_open_readiness(
        &self,
        now: Instant,
        peer: IpAddr,
        local: Option<IpAddr>,
        mode: FastOpen,
    ) -> FastOpenReadiness {
        let peer = Addr::from(peer);
        let named = local.filter(|local| !local.is_unspecified()).map(Addr::from);
        let Some(local) = named.or_else(|| self.source_address(peer)) else {
            return FastOpenReadiness::Unavailable;
        };
        let plan = decide(&ClientInputs {
            bits: self.shared.config.tcp_fastopen,
            mode,
            has_data: true,
            data_less: false,
            syn_fin: false,
            entry: self.shared.paths.lookup(local, peer),
            verdict: None,
            syn_fin_verdict: false,
            paused: self.shared.blackhole.paused(now),
        });
        match plan {
            ClientPlan::Data { .. } => FastOpenReadiness::Ready,
            ClientPlan::Request(_) => FastOpenReadiness::LacksCookie,
            ClientPlan::Plain(_) => FastOpenReadiness::Unavailable,
        }
    }

    /// Closes a listener. Another one on its port takes its requests and unaccepted connections if
    /// `tcp_migrate_req` allows that. Otherwise these connections are reset and half-open requests
    /// removed; with `firstbyte.accept_overflow`, requests that consider themselves connected are
    /// reset.
    pub fn close_listener(&mut self, now: Instant, id: ListenerId) {
        if self.listener(id).is_none() {
            return;
        }
        self.bequeath(now, id);
        let requests: Vec<u32> =
            self.requests.iter().filter(|(_, r)| r.listener == id).map(|(index, _)| index).collect();
        requests.into_iter().for_each(|index| self.forget_request(now, index));
        let Some(listener) = self.listeners.remove(id.index) else { return };
        if let Some(same_port) = self.listeners_by_port.get_mut(&listener.local.port()) {
            same_port.retain(|other| *other != id);
            if same_port.is_empty() {
                self.listeners_by_port.remove(&listener.local.port());
            }
        }
        for conn in listener.accept_queue {
            if self.connections.contains(conn.index, conn.generation) {
                self.abort_connection(now, conn.index);
            }
        }
    }

    /// Opens a connection. Its SYN leaves with the next [`poll_transmit`](Stack::poll_transmit).
    ///
    /// # Errors
    /// See [`ConnectError`]. Errors of the network are reported later, as an event and a
    /// [`CloseReason`](crate::CloseReason).
    pub fn connect(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        options: ConnectOptions,
    ) -> Result<ConnId, ConnectError> {
        let (name, is_free) = self.choose_tuple(now, peer, &options, Claim::Opens)?;
        let tuple = name.tuple;
        if self.connections.len() >= self.shared.config.max_connections as usize {
            return Err(ConnectError::TooMany);
        }
        if options.fast_open == FastOpen::Force && self.shared.config.tcp_fastopen & fastopen::CLIENT == 0 {
            return Err(ConnectError::FastOpenDisabled);
        }
        let min_isn = if is_free { None } else { self.recycle(&name) };
        let FirstNumbers { iss, ts_offset } = self.first_numbers(now, &tuple, min_isn);
        let ConnectOptions { socket, held, .. } = &options;
        let held = *held;
        let signs = socket.signs(&tuple.peer);
        let plan = if held { HELD } else { self.plan_fast_open(now, &tuple, &options, signs) };
        let ConnectOptions { socket, first_bytes, fin, syn_only, .. } = options;
        let socket = Options::from(socket);
        self.enable_hooks(&socket.rare);
        let id = self.begin_connection(now, name, (State::SynSent, iss), socket, None);
        let cx = self.shared.context(now);
        let Some(connection) = self.connections.get_mut(id.index) else {
            return Err(ConnectError::TooMany);
        };
        connection.begin(cx);
        connection.ts_offset = ts_offset;
        self.open_actively(now, id, (plan, held), FirstBytes { bytes: first_bytes, fin, syn_only });
        Ok(id)
    }

    /// Sends the SYN of a connection that was opened [`held`](ConnectOptions::held). The SYN is the
    /// one that [`connect`](Stack::connect) would send with these options. The connection keeps its
    /// name and its socket options. Returns false if the connection has no held SYN.
    pub fn send_held_syn(&mut self, now: Instant, id: ConnId, options: ConnectOptions) -> bool {
        let Some(connection) = self.connections.find_mut(id.index, id.generation) else { return false };
        let waits =
            matches!(connection.handshake.as_deref(), Some(Handshake::Active(active)) if active.held());
        if !waits {
            return false;
        }
        let (tuple, signs) = (connection.tuple, connection.md5_key().is_some());
        let plan = self.plan_fast_open(now, &tuple, &options, signs);
        let ConnectOptions { first_bytes, fin, syn_only, .. } = options;
        self.open_actively(now, id, (plan, false), FirstBytes { bytes: first_bytes, fin, syn_only });
        true
    }

    /// Prepares the planned SYN, and sends it unless it is held.
    fn open_actively(
        &mut self,
        now: Instant,
        id: ConnId,
        ((plan, path_srtt), held): (Planned, bool),
        mut first: FirstBytes,
    ) {
        let cx = self.shared.context(now);
        let Some(connection) = self.connections.get_mut(id.index) else { return };
        connection.outcome = match plan {
            ClientPlan::Plain(why) => Outcome::Skipped(why),
            _ => Outcome::Pending,
        };
        let active = ActiveOpen::new(now, plan, path_srtt, !held);
        connection.handshake = Some(cx.handshakes.place(Handshake::Active(active)));
        if first.syn_only {
            first.bytes.truncate(connection.first_syn_room(cx, &plan));
        }
        if !first.bytes.is_empty() {
            connection.write_first_bytes(cx, first.bytes);
        }
        connection.snd.fin.set(Fin::QUEUED, first.fin);
        cx.counters.active_opens += u64::from(!held);
        if self.trace.is_some() || held {
            self.settle_turn(now, id);
        } else {
            // There is a SYN to send, and nothing else to report yet.
            connection.note_plain();
            cx.charge(now, connection);
            self.work.note_ready(id, connection);
        }
    }

    /// A tuple, and whether nobody has it; else a TIME-WAIT spares it.
    pub(in crate::stack) fn choose_tuple(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        options: &ConnectOptions,
        claim: Claim,
    ) -> Result<(Name, bool), ConnectError> {
        let peer_addr = Addr::from(peer.ip());
        if peer.port() == 0 || peer_addr.is_unspecified() || peer_addr.is_multicast() {
            return Err(ConnectError::InvalidPeer);
        }
        if let Some(reject) = self.routes.reject_route(peer_addr) {
            return Err(ConnectError::Rejected(reject));
        }
        let wanted =
            options.local.filter(|local| !local.ip().is_unspecified()).map(|local| Addr::from(local.ip()));
        let local = match wanted {
            Some(addr) if !self.addresses.contains(&addr) => {
                return Err(ConnectError::AddrNotAvailable);
            }
            Some(addr) if addr.is_v4() != peer_addr.is_v4() => return Err(ConnectError::AddrNotAvailable),
            Some(addr) => addr,
            None => match self.source_address(peer_addr) {
                Some(addr) => addr,
                None => {
                    self.shared.counters.ip_out_no_routes += 1;
                    return Err(ConnectError::Unreachable);
                }
            },
        };
        let port = options.local.map_or(0, |local| local.port());
        if port == 0 {
            return self.choose_port(now, local, (peer_addr, peer.port()), options.local_ports);
        }
        let tuple = FourTuple { local, local_port: port, peer: peer_addr, peer_port: peer.port() };
        let name = self.name(tuple);
        let is_free = self.is_free(&name, claim);
        let parting = claim == Claim::Takes && self.time_wait.find(name.hash, &tuple).is_some();
        let can_be_had = is_free || parting || self.can_be_recycled(now, &name, true);
        if can_be_had { Ok((name, is_free)) } else { Err(ConnectError::AddrInUse) }
    }

    /// What the SYN shall be, and the round trip of earlier connections while it is to be believed.
    fn plan_fast_open(
        &mut self,
        now: Instant,
        tuple: &FourTuple,
        options: &ConnectOptions,
        signs: bool,
    ) -> Planned {
        if options.fast_open == FastOpen::Off || signs {
            return (ClientPlan::Plain(Skipped::NotAsked), None);
        }
        let heed = self.shared.config.fast_open_verdicts
            && matches!(options.fast_open, FastOpen::Auto | FastOpen::NoCookie);
        let key = (heed && self.shared.paths.has_verdicts()).then(|| self.shared.verdict_key(tuple));
        let verdict = key.and_then(|key| self.shared.paths.verdict_admit(now, &key));
        let no_cookie = self.routes.lookup(tuple.peer).is_some_and(|route| route.metrics.fastopen_no_cookie);
        let mode = match options.fast_open {
            FastOpen::Auto | FastOpen::Force if no_cookie => FastOpen::NoCookie,
            mode => mode,
        };
        let syn_fin = options.syn_fin && options.fin;
        let admits = |key| self.shared.paths.syn_fin_verdict_admit(now, &key);
        let syn_fin_verdict = key.filter(|_| syn_fin).is_some_and(admits);
        let entry = self.shared.paths.lookup(tuple.local, tuple.peer);
        let life = self.shared.config.path_metrics_life;
        let plan = decide(&ClientInputs {
            bits: self.shared.config.tcp_fastopen,
            mode,
            has_data: !options.first_bytes.is_empty(),
            data_less: options.data_less,
            syn_fin,
            entry,
            verdict,
            syn_fin_verdict,
            paused: self.shared.blackhole.paused(now),
        });
        (plan, entry.and_then(|path| path.fresh_rtt(now, life)))
    }
}
