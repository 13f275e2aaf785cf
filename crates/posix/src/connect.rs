//! `connect`, plain and with Fast Open (Linux's `__inet_stream_connect`, `tcp_sendmsg_fastopen`,
//! `tcp_fastopen_defer_connect`).

use crate::destination::Destination;
use crate::errno::{Errno, Stop};
use crate::socket::{Domain, Opening, Role, Socket};
use crate::sockets::Sockets;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use proto::{
    ConnId, ConnectError, ConnectOptions, FastOpen, FastOpenReadiness, Instant, RejectRoute, Repair,
    SocketOptions, State, fastopen,
};

/// One call of `connect`.
#[derive(Debug)]
pub struct Connect {
    fd: i32,
    peer: Destination,
    waiting: Option<Waiting>,
}

/// A call that waits for the handshake, with its deadline and its error after that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) deadline: Option<Instant>,
    pub(crate) otherwise: Errno,
}

impl Connect {
    /// Creates a call that connects `fd` to `peer`. `None` is `AF_UNSPEC`, which ends an
    /// association.
    pub fn new(fd: i32, peer: Option<SocketAddr>) -> Connect {
        Connect::to(fd, peer.map_or(Destination::Unspecified, Destination::Address))
    }

    /// As [`new`](Self::new), to what is perhaps no address: that matters only where a connection could begin.
    pub(crate) fn to(fd: i32, peer: Destination) -> Connect {
        Connect { fd, peer, waiting: None }
    }

    /// Makes an attempt.
    ///
    /// # Errors
    /// Returns `EINPROGRESS`, `EALREADY`, `EISCONN`, `ECONNREFUSED`, `ETIMEDOUT`, `EADDRNOTAVAIL`,
    /// `ENETUNREACH` …, or [`Stop::Wait`].
    pub fn attempt(&mut self, sockets: &mut Sockets, now: Instant) -> Result<(), Stop> {
        if let Some(waiting) = self.waiting {
            return sockets.await_handshake(now, self.fd, waiting);
        }
        if self.peer == Destination::Unspecified {
            return Ok(sockets.disconnect(now, self.fd)?);
        }
        let otherwise = match sockets.files.socket(self.fd)?.opening {
            Opening::Connected | Opening::Deferred => return Err(Errno::EISCONN.into()),
            Opening::Disconnecting => return Err(Errno::EINVAL.into()),
            Opening::Connecting => Errno::EALREADY,
            Opening::Unconnected => {
                if sockets.begin(now, self.fd, self.peer)? {
                    return Ok(());
                }
                Errno::EINPROGRESS
            }
        };
        let waiting = Waiting { deadline: sockets.send_deadline(now, self.fd)?, otherwise };
        self.waiting = Some(waiting);
        sockets.await_handshake(now, self.fd, waiting)
    }
}

impl Sockets {
    /// Begins to connect. True: nothing was sent, since the SYN is to carry the first data.
    fn begin(&mut self, now: Instant, fd: i32, peer: Destination) -> Result<bool, Errno> {
        let socket = self.files.socket(fd)?;
        if matches!(socket.role, Role::Listener(_)) {
            return Err(Errno::EISCONN);
        }
        let peer = self.peer_named(socket, peer.address()?.ok_or(Errno::EINVAL)?)?;
        if socket.repair.on {
            self.connect_repaired(now, fd, peer)?;
            return Ok(false);
        }
        let wanted = socket.options.fast_open_connect;
        if wanted && self.note_cookie(now, fd, peer)? {
            self.dial(now, fd, peer, Syn { held: true, ..Syn::default() })?;
            return Ok(true);
        }
        let fast_open = if wanted { self.fast_open(fd)? } else { FastOpen::Off };
        self.dial(now, fd, peer, Syn { fast_open, ..Syn::default() })?;
        self.files.socket_mut(fd)?.fast_open_begun = wanted;
        Ok(false)
    }

    /// Whom an address means: nobody's own is this host (BSD's habit; Linux's `ip_route_output_key`, `tcp_v6_connect`).
    fn peer_named(&self, socket: &Socket, addr: SocketAddr) -> Result<SocketAddr, Errno> {
        let mut peer = socket.peer_named(addr)?;
        if peer.ip().is_unspecified() {
            let own = |ip: &IpAddr| ip.is_ipv4() == peer.is_ipv4();
            let bound = socket.bound.map(|bound| bound.ip()).filter(|ip| !ip.is_unspecified());
            let loopback = || self.stack.addresses().find(|ip| own(ip) && ip.is_loopback());
            let first = || self.stack.addresses().find(|ip| own(ip));
            peer.set_ip(bound.or_else(loopback).or_else(first).ok_or(Errno::ENETUNREACH)?);
        }
        Ok(peer)
    }

    /// Would the SYN carry data? If it would not for want of a cookie, `TCP_INFO` tells it.
    fn note_cookie(&mut self, now: Instant, fd: i32, peer: SocketAddr) -> Result<bool, Errno> {
        let mode = self.fast_open(fd)?;
        let local = self.files.socket(fd)?.bound.map(|bound| bound.ip());
        let readiness = self.stack.fast_open_readiness(now, peer.ip(), local, mode);
        self.files.socket_mut(fd)?.lacks_cookie |= readiness == FastOpenReadiness::LacksCookie;
        Ok(readiness == FastOpenReadiness::Ready)
    }

    fn fast_open(&self, fd: i32) -> Result<FastOpen, Errno> {
        let no_cookie = self.files.socket(fd)?.options.fast_open_no_cookie;
        Ok(if no_cookie { FastOpen::NoCookie } else { FastOpen::Auto })
    }

    /// Begins a connection, and sends its SYN unless it is held. Returns how many of the first bytes that carries; the others are not taken.
    fn dial(&mut self, now: Instant, fd: i32, peer: SocketAddr, syn: Syn) -> Result<usize, Errno> {
        self.let_go_of_failed(now, fd)?;
        let socket = self.files.socket(fd)?;
        let options = ConnectOptions {
            local: socket.bound,
            socket: self.options_of(socket, peer),
            local_ports: Some(socket.options.local_ports).filter(|range| *range != (0, 0)),
            ..syn.options()
        };
        let held = options.held;
        let id = self.stack.connect(now, peer, options).map_err(of_connect)?;
        let taken = self.syn_carries(id);
        self.own(fd, Role::Connection(id))?;
        let socket = self.files.socket_mut(fd)?;
        socket.numbers_skipped = 0;
        if held {
            socket.opening = Opening::Deferred;
        } else {
            socket.syn_goes();
        }
        Ok(taken)
    }

    fn syn_carries(&self, id: ConnId) -> usize {
        self.stack.queues(id).map_or(0, |queues| queues.unacknowledged)
    }

    /// The connection is there, without a packet (Linux's `tcp_connect` in repair).
    fn connect_repaired(&mut self, now: Instant, fd: i32, peer: SocketAddr) -> Result<(), Errno> {
        self.let_go_of_failed(now, fd)?;
        let socket = self.files.socket(fd)?;
        let repair = socket.repair;
        let any = if peer.is_ipv4() { Domain::V4 } else { Domain::V6 }.unspecified();
        let local = socket.bound.filter(|bound| bound.is_ipv4() == peer.is_ipv4());
        let local = local.unwrap_or(SocketAddr::new(any.ip(), socket.bound.map_or(0, |bound| bound.port())));
        let options = self.options_of(socket, peer);
        let numbers = (repair.write_seq, repair.rcv_nxt);
        let id = self.stack.open_repaired(now, (local, peer), numbers, options).map_err(of_connect)?;
        let tsval = (now.as_millis() as u32).wrapping_add(repair.ts_offset);
        // It has just been made.
        let _ = self.stack.repair(now, id, Repair::TsVal(tsval));
        self.own(fd, Role::Connection(id))?;
        let socket = self.files.socket_mut(fd)?;
        socket.opening = Opening::Connecting;
        socket.error = None;
        socket.repair.put = 0;
        Ok(())
    }

    /// What was the default when the socket was made still is, though the stack's is another by now.
    fn options_of(&self, socket: &Socket, peer: SocketAddr) -> SocketOptions {
        let mut options = socket.options.engine_for(peer.is_ipv4());
        let default = self.stack.config().tcp_congestion_control;
        let first = socket.options.first_congestion.filter(|first| *first != default);
        options.congestion = options.congestion.or(first);
        options
    }

    /// A socket whose connection failed may try again.
    fn let_go_of_failed(&mut self, now: Instant, fd: i32) -> Result<(), Errno> {
        let socket = self.files.socket_mut(fd)?;
        if socket.connection().is_some() {
            self.disconnect(now, fd)?;
        }
        Ok(())
    }

    /// `send` with `MSG_FASTOPEN`, or the first one after a deferred `connect`: how many bytes the SYN carries, and what the call has to
    /// wait for.
    pub(crate) fn send_with_syn(
        &mut self,
        now: Instant,
        fd: i32,
        peer: Destination,
        data: &[u8],
    ) -> Result<(usize, Waiting), Errno> {
        if self.stack.config().tcp_fastopen & fastopen::CLIENT == 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        let deadline = self.send_deadline(now, fd)?;
        let fast_open = self.fast_open(fd)?;
        let socket = self.files.socket(fd)?;
        if socket.fast_open_begun {
            return Err(Errno::EALREADY);
        }
        let peer = match socket.opening {
            Opening::Connected => return Err(Errno::EISCONN),
            Opening::Connecting => return Ok((0, Waiting { deadline, otherwise: Errno::EALREADY })),
            Opening::Deferred => {
                let taken = self.send_held_syn(now, fd, Syn::with(fast_open, data))?;
                return Ok((taken, Waiting { deadline, otherwise: Errno::EINPROGRESS }));
            }
            Opening::Disconnecting => return Err(Errno::EINVAL),
            Opening::Unconnected if matches!(socket.role, Role::Listener(_)) => return Err(Errno::EISCONN),
            Opening::Unconnected => self.peer_named(socket, peer.address()?.ok_or(Errno::EINVAL)?)?,
        };
        self.let_go_of_failed(now, fd)?;
        self.note_cookie(now, fd, peer)?;
        let taken = self.dial(now, fd, peer, Syn::with(fast_open, data))?;
        Ok((taken, Waiting { deadline, otherwise: Errno::EINPROGRESS }))
    }

    /// The SYN that a deferred `connect` held goes now.
    fn send_held_syn(&mut self, now: Instant, fd: i32, syn: Syn) -> Result<usize, Errno> {
        let id = self.files.socket(fd)?.connection().ok_or(Errno::ECONNABORTED)?;
        if let Some((_, peer)) = self.stack.names(id) {
            self.note_cookie(now, fd, peer)?;
        }
        self.stack.send_held_syn(now, id, syn.options());
        self.files.socket_mut(fd)?.syn_goes();
        Ok(self.syn_carries(id))
    }

    /// Until when a call may wait that sends or connects: `None` for ever, `Some(now)` not at all.
    pub(crate) fn send_deadline(&self, now: Instant, fd: i32) -> Result<Option<Instant>, Errno> {
        let socket = self.files.socket(fd)?;
        let timeout = socket.options.sndtimeo.map(|timeout| now + timeout);
        Ok(if socket.nonblocking { Some(now) } else { timeout })
    }

    /// Waits for the end of the handshake, and tells how it ended.
    pub(crate) fn await_handshake(&mut self, now: Instant, fd: i32, waiting: Waiting) -> Result<(), Stop> {
        let id = self.files.socket(fd)?.connection().ok_or(Errno::ECONNABORTED)?;
        self.notice_state(fd, id);
        let state = self.state(id);
        let socket = self.files.socket_mut(fd)?;
        if socket.ended {
            let error = socket.take_error().unwrap_or(Errno::ECONNABORTED);
            self.disconnect(now, fd)?;
            return Err(error.into());
        }
        if !matches!(state, State::SynSent | State::SynReceived) {
            socket.opening = Opening::Connected;
            return Ok(());
        }
        if waiting.deadline.is_some_and(|deadline| now >= deadline) {
            return Err(waiting.otherwise.into());
        }
        Err(Stop::Wait(waiting.deadline))
    }
}

/// The first bytes and Fast Open use of a SYN.
#[derive(Debug, Default)]
struct Syn {
    fast_open: FastOpen,
    first_bytes: Bytes,
    held: bool,
}

impl Syn {
    /// Creates a SYN that carries as much of `data` as fits.
    fn with(fast_open: FastOpen, data: &[u8]) -> Syn {
        let first_bytes = Bytes::copy_from_slice(&data[..data.len().min(SYN_DATA_MAX)]);
        Syn { fast_open, first_bytes, held: false }
    }

    fn options(self) -> ConnectOptions {
        let Syn { fast_open, first_bytes, held } = self;
        ConnectOptions {
            fast_open,
            first_bytes,
            held,
            syn_only: true,
            data_less: true,
            ..ConnectOptions::default()
        }
    }
}

fn of_connect(error: ConnectError) -> Errno {
    match error {
        ConnectError::AddrInUse | ConnectError::AddrNotAvailable | ConnectError::NoPorts => {
            Errno::EADDRNOTAVAIL
        }
        ConnectError::Unreachable | ConnectError::InvalidPeer => Errno::ENETUNREACH,
        // Linux's `fib_props`.
        ConnectError::Rejected(RejectRoute::Blackhole) => Errno::EINVAL,
        ConnectError::Rejected(RejectRoute::Unreachable) => Errno::EHOSTUNREACH,
        ConnectError::Rejected(RejectRoute::Prohibit) => Errno::EACCES,
        ConnectError::FastOpenDisabled => Errno::EOPNOTSUPP,
        ConnectError::TooMany => Errno::EAGAIN,
        _ => Errno::EINVAL,
    }
}

/// No packet carries more.
const SYN_DATA_MAX: usize = 65_535;
