//! One socket: its name, its state, and the options that the engine does not have.

use crate::Errno;
use crate::error_queue::{ErrorQueue, Stamping};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use core::time::Duration;
use proto::fast_open::KeyRing;
use proto::{
    CongestionControl, ConnId, ConnectionInfo, ListenOptions, ListenerId, PathMtuDiscovery, SeqNum, SocketId,
    SocketOptions, Windows,
};

/// Address family of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// `AF_INET`.
    V4,
    /// `AF_INET6`; speaks IPv4 too, by mapped addresses.
    V6,
}

impl Domain {
    /// The address as the engine knows it: a mapped one is IPv4.
    pub(crate) fn to_engine(addr: SocketAddr) -> SocketAddr {
        SocketAddr::new(addr.ip().to_canonical(), addr.port())
    }

    /// The address as an application of this family is told it.
    pub(crate) fn to_user(self, addr: SocketAddr) -> SocketAddr {
        match (self, addr.ip()) {
            (Domain::V6, IpAddr::V4(v4)) => SocketAddr::new(v4.to_ipv6_mapped().into(), addr.port()),
            _ => addr,
        }
    }

    pub(crate) fn unspecified(self) -> SocketAddr {
        match self {
            Domain::V4 => SocketAddr::new(IpAddr::from([0; 4]), 0),
            Domain::V6 => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0),
        }
    }
}

/// What a socket has become (Linux's `sk_state`, as far as the socket layer tells states apart).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Neither connected nor listening.
    Fresh,
    Listener(ListenerId),
    Connection(ConnId),
}

impl Role {
    /// As the engine's events name it.
    pub(crate) fn id(self) -> Option<SocketId> {
        match self {
            Role::Fresh => None,
            Role::Listener(id) => Some(SocketId::Listener(id)),
            Role::Connection(id) => Some(SocketId::Connection(id)),
        }
    }
}

/// How far `connect` has come (Linux's `sock->state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Unconnected,
    /// `TCP_FASTOPEN_CONNECT`: the SYN waits for the first data.
    Deferred,
    Connecting,
    Connected,
    /// `shutdown` came before the outcome was told: only an end of the association helps (`SS_DISCONNECTING`).
    Disconnecting,
}

/// Parts of a name that `bind` was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) address: bool,
    pub(crate) port: bool,
}

/// Which directions the application, or the end of the connection, has shut (Linux's `sk_shutdown`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shut {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

/// Which of its queues a socket in repair is read out of, or written into (`TCP_REPAIR_QUEUE`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Queue {
    #[default]
    None = 0,
    Receive = 1,
    Send = 2,
}

/// `TCP_REPAIR`, and what a connection will begin with that is put together by it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Repairing {
    pub(crate) on: bool,
    pub(crate) queue: Queue,
    /// It may have any name (Linux's `SK_FORCE_REUSE`).
    pub(crate) forces_reuse: bool,
    pub(crate) write_seq: SeqNum,
    pub(crate) rcv_nxt: SeqNum,
    pub(crate) windows: Windows,
    /// Bytes that were put into its send queue instead of being sent.
    pub(crate) put: u64,
    /// Of its time stamps from the stack's clock, ms.
    pub(crate) ts_offset: u32,
}

/// One socket.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) domain: Domain,
    pub(crate) nonblocking: bool,
    pub(crate) role: Role,
    pub(crate) opening: Opening,
    /// What it holds of a name; port 0: an address alone.
    pub(crate) bound: Option<SocketAddr>,
    /// Which part of that the application said itself, and keeps when the connection ends (`SOCK_BINDADDR_LOCK`, `SOCK_BINDPORT_LOCK`).
    pub(crate) chosen: Chosen,
    /// The port it had, which it is still told.
    pub(crate) former_port: u16,
    /// The connection it had, of which `TCP_INFO` still tells (Linux's `tcp_disconnect`).
    pub(crate) former: Option<Box<Former>>,
    /// Numbers between the last one sent and the first of the next connection: it begins beyond the window of those before.
    pub(crate) numbers_skipped: u32,
    /// `connect` has begun a Fast Open (`TCP_FASTOPEN_CONNECT`) that asks for a cookie: `MSG_FASTOPEN` comes too late until the end.
    pub(crate) fast_open_begun: bool,
    /// A cookie was wanted for its connection, and none was there (`TFO_COOKIE_UNAVAILABLE`).
    pub(crate) lacks_cookie: bool,
    /// `O_APPEND` and `O_NOATIME`, which mean nothing to a socket.
    pub(crate) status: i32,
    /// Of a listener.
    pub(crate) backlog: u32,
    pub(crate) shut: Shut,
    /// `SO_ERROR`: told once.
    pub(crate) error: Option<Errno>,
    /// The end of the connection has been noticed.
    pub(crate) ended: bool,
    /// The peer's FIN was seen before that.
    pub(crate) peer_finished: bool,
    /// What ICMP last said, and what was not acknowledged then (`sk_err_soft`).
    pub(crate) unreachable: Option<(Errno, Option<SeqNum>)>,
    /// `SO_COOKIE`, once somebody has asked.
    pub(crate) cookie: Option<u64>,
    pub(crate) errors: ErrorQueue,
    pub(crate) repair: Repairing,
    pub(crate) options: Options,
}

/// What a socket keeps of a connection that it has no more.
#[derive(Debug)]
pub(crate) struct Former {
    /// As `TCP_MAXSEG` tells it.
    pub(crate) mss: i32,
    pub(crate) info: ConnectionInfo,
}

/// Options of a socket. What the engine understands is in `engine`, and goes there when the connection is made.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) engine: SocketOptions,
    /// The default when the socket was made, which is its own from then on (Linux's `tcp_init_sock`).
    pub(crate) first_congestion: Option<CongestionControl>,
    pub(crate) reuse_addr: bool,
    pub(crate) reuse_port: bool,
    pub(crate) v6_only: bool,
    pub(crate) rcvlowat: i32,
    pub(crate) rcvtimeo: Option<Duration>,
    pub(crate) sndtimeo: Option<Duration>,
    /// `SO_LINGER`: how long `close` waits.
    pub(crate) linger: Option<Duration>,
    /// As it was last said, to be read back.
    pub(crate) linger_time: Duration,
    pub(crate) stamping: Stamping,
    /// `SO_ZEROCOPY`.
    pub(crate) zerocopy: bool,
    /// `IP_RECVERR` and `IPV6_RECVERR`.
    pub(crate) recverr: [bool; 2],
    /// `SO_BINDTODEVICE` with the name of the stack's device.
    pub(crate) bound_to_device: bool,
    pub(crate) freebind: bool,
    /// `IP_TRANSPARENT`: any address will do, as with `IP_FREEBIND`.
    pub(crate) transparent: bool,
    /// `IP_BIND_ADDRESS_NO_PORT`: `bind` leaves the port to `connect`.
    pub(crate) bind_address_no_port: bool,
    /// `IP_LOCAL_PORT_RANGE`: the lowest and the highest; 0 is the stack's.
    pub(crate) local_ports: (u16, u16),
    /// As the application reads it back: twice what was asked for.
    pub(crate) sndbuf: Option<u32>,
    pub(crate) rcvbuf: Option<u32>,
    /// `IP_TOS`, `IP_TTL`, `IP_MINTTL`.
    pub(crate) tos: u8,
    pub(crate) ttl: Option<u8>,
    pub(crate) min_ttl: u8,
    /// What IPv6 has in their place: `IPV6_TCLASS`, `IPV6_UNICAST_HOPS`, `IPV6_MINHOPCOUNT`.
    pub(crate) tclass: u8,
    pub(crate) hops: Option<u8>,
    pub(crate) min_hops: u8,
    /// `IP_MTU_DISCOVER`, at first as the stack said when the socket was made (Linux's `inet_create`), and `IPV6_MTU_DISCOVER`.
    pub(crate) mtu_discovery: [PathMtuDiscovery; 2],
    /// `SO_PEEK_OFF`: where `MSG_PEEK` begins; negative: at the beginning.
    pub(crate) peek_off: i32,
    /// `TCP_SAVE_SYN`.
    pub(crate) save_syn: i32,
    /// `SO_TXTIME`: a clock and flags, which are for packets that bear their own times.
    pub(crate) txtime: [i32; 2],
    pub(crate) fast_open_qlen: Option<u32>,
    pub(crate) fast_open_connect: bool,
    pub(crate) fast_open_no_cookie: bool,
    pub(crate) fast_open_key: Option<KeyRing>,
    pub(crate) defer_accept: Duration,
    /// `TCP_INQ`: every `recvmsg` says how much is left.
    pub(crate) inq: bool,
    /// Options that are only remembered: nothing in this stack depends on them.
    pub(crate) remembered: Vec<((i32, i32), i32)>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            // Sockets begin so, unlike the engine (`SO_OOBINLINE` off).
            engine: SocketOptions { urgent_apart: true, ..SocketOptions::default() },
            first_congestion: None,
            reuse_addr: false,
            reuse_port: false,
            v6_only: false,
            rcvlowat: 1,
            rcvtimeo: None,
            sndtimeo: None,
            linger: None,
            linger_time: Duration::ZERO,
            stamping: Stamping::default(),
            zerocopy: false,
            recverr: [false; 2],
            bound_to_device: false,
            freebind: false,
            transparent: false,
            bind_address_no_port: false,
            local_ports: (0, 0),
            sndbuf: None,
            rcvbuf: None,
            tos: 0,
            ttl: None,
            min_ttl: 0,
            tclass: 0,
            hops: None,
            min_hops: 0,
            mtu_discovery: [PathMtuDiscovery::Want; 2],
            peek_off: -1,
            save_syn: 0,
            txtime: [0; 2],
            fast_open_qlen: None,
            fast_open_connect: false,
            fast_open_no_cookie: false,
            fast_open_key: None,
            defer_accept: Duration::ZERO,
            inq: false,
            remembered: Vec::new(),
        }
    }
}

impl Options {
    /// Keeps what an option, by level and name, is to be read back as.
    pub(crate) fn remember(&mut self, option: (i32, i32), value: i32) {
        self.remembered.retain(|(key, _)| *key != option);
        self.remembered.push((option, value));
    }

    /// The engine's options, for a connection of this IP version.
    pub(crate) fn engine_for(&self, v4: bool) -> SocketOptions {
        let (tos, hop_limit, min_hops) =
            if v4 { (self.tos, self.ttl, self.min_ttl) } else { (self.tclass, self.hops, self.min_hops) };
        let path_mtu_discovery = Some(self.mtu_discovery[usize::from(!v4)]);
        SocketOptions { dscp: tos >> 2, hop_limit, min_hops, path_mtu_discovery, ..self.engine.clone() }
    }

    /// Is an ICMP error of this version to be told at once?
    pub(crate) fn receives_errors(&self, v6: bool) -> bool {
        self.recverr[usize::from(v6)]
    }
}

impl Socket {
    pub(crate) fn new(domain: Domain, nonblocking: bool) -> Socket {
        Socket {
            domain,
            nonblocking,
            role: Role::Fresh,
            opening: Opening::Unconnected,
            bound: None,
            chosen: Chosen::default(),
            former_port: 0,
            former: None,
            numbers_skipped: 0,
            fast_open_begun: false,
            lacks_cookie: false,
            status: 0,
            backlog: 0,
            shut: Shut::default(),
            error: None,
            ended: false,
            peer_finished: false,
            unreachable: None,
            cookie: None,
            errors: ErrorQueue::default(),
            repair: Repairing::default(),
            options: Options::default(),
        }
    }

    pub(crate) fn connection(&self) -> Option<ConnId> {
        match self.role {
            Role::Connection(id) => Some(id),
            _ => None,
        }
    }

    /// The connection is over: what of its name was not chosen is free again (`tcp_set_state`, `tcp_disconnect`).
    pub(crate) fn let_go_of_name(&mut self, named: Option<SocketAddr>) {
        self.former_port = named.or(self.bound).map_or(self.former_port, |name| name.port());
        self.bound = self.bound.filter(|_| self.chosen != Chosen::default());
        if let Some(bound) = &mut self.bound {
            if !self.chosen.port {
                bound.set_port(0);
            }
            if !self.chosen.address {
                let any = if bound.is_ipv4() { IpAddr::from([0; 4]) } else { Ipv6Addr::UNSPECIFIED.into() };
                bound.set_ip(any);
            }
        }
    }

    /// Its SYN is on the way: an error of what it was before is told no more (Linux's `tcp_connect_init`).
    pub(crate) fn syn_goes(&mut self) {
        self.opening = Opening::Connecting;
        self.error = None;
    }

    /// Neither listening nor connected nor on the way (Linux's `TCP_CLOSE`).
    pub(crate) fn is_closed(&self) -> bool {
        match self.role {
            Role::Fresh => true,
            Role::Listener(_) => false,
            Role::Connection(_) => self.ended,
        }
    }

    /// Has it a local port (Linux's `inet_num`)?
    pub(crate) fn is_named(&self) -> bool {
        self.bound.is_some_and(|bound| bound.port() != 0) || !self.is_closed()
    }

    /// What the engine is told of a listener.
    pub(crate) fn listen_options(&self) -> ListenOptions {
        ListenOptions {
            backlog: self.backlog,
            fast_open: self.options.fast_open_qlen,
            key: self.options.fast_open_key.clone(),
            synack_hold: None,
            fast_open_no_cookie: self.options.fast_open_no_cookie,
            defer_accept: self.options.defer_accept,
            v6_only: self.domain == Domain::V6 && self.options.v6_only,
            share_port: self.options.reuse_port,
            socket: self.options.engine_for(self.domain == Domain::V4),
        }
    }

    /// Whom an address names, as the engine knows it.
    pub(crate) fn peer_named(&self, addr: SocketAddr) -> Result<SocketAddr, Errno> {
        let peer = Domain::to_engine(addr);
        let refused = self.domain == Domain::V6 && self.options.v6_only && peer.is_ipv4();
        if refused { Err(Errno::ENETUNREACH) } else { Ok(peer) }
    }

    pub(crate) fn take_error(&mut self) -> Option<Errno> {
        self.error.take()
    }
}
