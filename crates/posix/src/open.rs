//! `socket`, `bind`, `listen`, `accept`, and the names of both ends.

use crate::errno::{Errno, Stop};
use crate::files::File;
use crate::parting::Asks;
use crate::socket::{Chosen, Domain, Opening, Role, Socket};
use crate::sockets::{Sockets, wait};
use core::net::{IpAddr, SocketAddr};
use proto::{
    AcceptError, ConnId, Instant, ListenError, Md5Keys, PathMtuDiscovery, SocketOption, Stack, State,
};

impl Sockets {
    /// `socket`: a TCP socket, which is all there is here.
    ///
    /// # Errors
    /// `EAFNOSUPPORT`, `ESOCKTNOSUPPORT`, `EPROTONOSUPPORT`, `EINVAL` for unknown flags, `EMFILE`.
    pub fn socket(&mut self, domain: i32, kind: i32, protocol: i32) -> Result<i32, Errno> {
        let (domain, flags) = kind_of(domain, kind, protocol)?;
        let mut socket = Socket::new(domain, flags & libc::SOCK_NONBLOCK != 0);
        if self.stack.config().ip_no_pmtu_disc != 0 {
            socket.options.mtu_discovery[0] = PathMtuDiscovery::Dont;
        }
        socket.options.first_congestion = Some(self.stack.config().tcp_congestion_control);
        self.files.insert(File::Socket(Box::new(socket)), flags & libc::SOCK_CLOEXEC != 0)
    }

    /// `socketpair`, which TCP does not support.
    ///
    /// # Errors
    /// Returns `EOPNOTSUPP`, or the errors of [`socket`](Self::socket).
    pub fn socketpair(&mut self, domain: i32, kind: i32, protocol: i32) -> Result<(i32, i32), Errno> {
        kind_of(domain, kind, protocol)?;
        Err(Errno::EOPNOTSUPP)
    }

    /// `bind`. Port 0 chooses a port.
    ///
    /// # Errors
    /// Returns `EINVAL` if the socket has a name, is not fresh, or is IPv6-only and the address is
    /// mapped; `EADDRNOTAVAIL`; `EADDRINUSE`.
    pub fn bind(&mut self, fd: i32, addr: SocketAddr) -> Result<(), Errno> {
        let socket = self.files.socket(fd)?;
        let ip = addr.ip().to_canonical();
        if socket.domain == Domain::V6 && socket.options.v6_only && ip.is_ipv4() {
            return Err(Errno::EINVAL);
        }
        let anywhere = socket.options.freebind || socket.options.transparent;
        let own = ip.is_unspecified() || anywhere || self.stack.addresses().any(|a| a == ip);
        if !own {
            return Err(Errno::EADDRNOTAVAIL);
        }
        if !socket.is_closed() || socket.is_named() {
            return Err(Errno::EINVAL);
        }
        let port = match addr.port() {
            0 if socket.options.bind_address_no_port => 0,
            0 => self.choose_port(fd, ip)?,
            port if self.is_taken(fd, ip, port, Sharing::AsAsked) => return Err(Errno::EADDRINUSE),
            port => port,
        };
        self.forget_parted(port);
        let socket = self.files.socket_mut(fd)?;
        socket.bound = Some(SocketAddr::new(ip, port));
        socket.chosen = Chosen { address: !ip.is_unspecified(), port: addr.port() != 0 };
        // With an address of IPv6 it speaks nothing else.
        socket.options.v6_only |= ip.is_ipv6() && !ip.is_unspecified();
        Ok(())
    }

    /// Does another socket keep this one from this name (Linux's `inet_csk_bind_conflict`)? Two that both allow it may share one, by
    /// `SO_REUSEADDR` unless one listens.
    fn is_taken(&self, fd: i32, ip: IpAddr, port: u16, sharing: Sharing) -> bool {
        let (Ok(open), Ok(own)) = (self.files.open(fd), self.files.socket(fd)) else { return true };
        let asks = Asks {
            ip,
            v6_only: own.options.v6_only,
            reuse_addr: own.options.reuse_addr,
            reuse_port: own.options.reuse_port,
        };
        if own.repair.forces_reuse && sharing == Sharing::AsAsked {
            return false;
        }
        let held = self.files.iter().any(|(other, file)| {
            let File::Socket(socket) = file else { return false };
            let connection = socket.connection().filter(|_| !socket.ended);
            let connected = || connection.and_then(|id| self.stack.names(id)).map(|(local, _)| local);
            let Some(bound) = socket.bound.or_else(connected) else { return false };
            if other == open || bound.port() != port || !overlap((own, ip), (socket, bound.ip())) {
                return false;
            }
            let listening = matches!(socket.role, Role::Listener(_));
            let shared = own.options.reuse_port && socket.options.reuse_port
                || own.options.reuse_addr && socket.options.reuse_addr && !listening;
            sharing == Sharing::Never || !shared
        });
        held || self.is_parting(asks, port, sharing == Sharing::AsAsked)
    }

    /// A port that no socket has that could be in the way.
    fn choose_port(&mut self, fd: i32, ip: IpAddr) -> Result<u16, Errno> {
        let asked = self.files.socket(fd)?.options.local_ports;
        let (low, high) = self.stack.port_range(Some(asked).filter(|range| *range != (0, 0)));
        let low = u16::try_from(low).unwrap_or(u16::MAX);
        let high = u16::try_from(high).unwrap_or(u16::MAX).max(low);
        let count = u32::from(high - low) + 1;
        let by_parity = self.stack.config().port_choice == proto::PortChoice::Parity;
        let halves = by_parity && count >= HALVED && self.files.socket(fd)?.options.reuse_addr;
        let half = if halves { count / 4 * 2 } else { count };
        for (first, count) in [(0, half), (half, count - half)] {
            let begin = self.stack.random_port();
            for tried in 0..count {
                let offset = match by_parity {
                    true => Stack::offset_by_parity(count, begin | 1, tried),
                    false => (begin % count + tried) % count,
                };
                let port = low + (first + offset) as u16;
                let reserved = self.stack.config().ip_local_reserved_ports.contains(port);
                if !reserved && !self.is_taken(fd, ip, port, Sharing::Never) {
                    return Ok(port);
                }
            }
        }
        Err(Errno::EADDRINUSE)
    }

    /// `listen`; once more on a listener changes its backlog.
    ///
    /// # Errors
    /// `EINVAL` if it is connected, `EADDRINUSE`.
    pub fn listen(&mut self, now: Instant, fd: i32, backlog: i32) -> Result<(), Errno> {
        let socket = self.files.socket_mut(fd)?;
        let fresh = socket.role == Role::Fresh && socket.opening == Opening::Unconnected;
        if !fresh && !matches!(socket.role, Role::Listener(_)) {
            return Err(Errno::EINVAL);
        }
        socket.backlog = u32::try_from(backlog).unwrap_or(u32::MAX);
        if let Role::Listener(id) = socket.role {
            let options = socket.listen_options();
            self.stack.set_listen_options(now, id, options);
            return Ok(());
        }
        if socket.bound.is_none() {
            let any = socket.domain.unspecified();
            self.bind(fd, any)?;
        }
        let socket = self.files.socket(fd)?;
        let mut local = socket.bound.ok_or(Errno::EINVAL)?;
        if local.port() == 0 {
            local.set_port(self.choose_port(fd, local.ip())?);
            self.files.socket_mut(fd)?.bound = Some(local);
        }
        if self.is_taken(fd, local.ip(), local.port(), Sharing::AsAsked) {
            return Err(Errno::EADDRINUSE);
        }
        // Linux's `inet_csk_delack_init`.
        self.files.socket_mut(fd)?.options.engine.quickack = None;
        let socket = self.files.socket(fd)?;
        let id = self.stack.listen(now, local, socket.listen_options()).map_err(|error| match error {
            ListenError::AddrInUse => Errno::EADDRINUSE,
            _ => Errno::EADDRNOTAVAIL,
        })?;
        self.own(fd, Role::Listener(id))
    }

    /// Makes an attempt at `accept4`. Returns the new descriptor and its peer. `flags`:
    /// `SOCK_NONBLOCK`, `SOCK_CLOEXEC`.
    ///
    /// # Errors
    /// Returns `EINVAL` if it does not listen, `EAGAIN`, or [`Stop::Wait`].
    pub fn accept(&mut self, now: Instant, fd: i32, flags: i32) -> Result<(i32, SocketAddr), Stop> {
        let listener = self.files.socket(fd)?;
        if flags & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) != 0 {
            return Err(Errno::EINVAL.into());
        }
        let Role::Listener(id) = listener.role else { return Err(Errno::EINVAL.into()) };
        let nonblocking = listener.nonblocking;
        if self.files.is_full() {
            // It waits in the queue until there is a number for it.
            return Err(Errno::EMFILE.into());
        }
        let (conn, peer) = match self.stack.accept(now, id) {
            Ok(accepted) => accepted,
            Err(AcceptError::Blocked) => return wait(nonblocking, now, None),
            Err(AcceptError::Closed) => return Err(Errno::EINVAL.into()),
        };
        let listener = self.files.socket(fd)?;
        let mut child = Socket::new(listener.domain, flags & libc::SOCK_NONBLOCK != 0);
        child.options = listener.options.clone();
        child.opening = Opening::Connected;
        child.chosen = Chosen { address: listener.chosen.address, port: false };
        child.bound = self.stack.names(conn).map(|(local, _)| local);
        // The listener's may have changed since the handshake, when the connection got its own.
        child.options.engine.md5_keys =
            self.stack.options(conn).map_or(Md5Keys::NONE, |options| options.md5_keys);
        let named = child.domain.to_user(peer);
        let close_on_exec = flags & libc::SOCK_CLOEXEC != 0;
        let Ok(new) = self.files.insert(File::Socket(Box::new(child)), close_on_exec) else {
            self.stack.close(now, conn);
            return Err(Errno::EMFILE.into());
        };
        self.own(new, Role::Connection(conn))?;
        self.speak_as(now, new, conn)?;
        self.notice_state(new, conn);
        Ok((new, named))
    }

    /// What each IP version has an option of its own for holds for the one that the peer speaks.
    fn speak_as(&mut self, now: Instant, fd: i32, conn: ConnId) -> Result<(), Errno> {
        let socket = self.files.socket(fd)?;
        let v4 = self.stack.names(conn).is_some_and(|(_, peer)| peer.is_ipv4());
        if v4 && socket.domain == Domain::V6 {
            let engine = socket.options.engine_for(true);
            // The class of the SYN is of no version (Linux's `tcp_v4_syn_recv_sock`).
            let class =
                Some(SocketOption::Dscp(engine.dscp)).filter(|_| !self.stack.config().tcp_reflect_tos);
            let fitting = [
                SocketOption::HopLimit(engine.hop_limit),
                SocketOption::MinHops(engine.min_hops),
                SocketOption::PathMtuDiscovery(socket.options.mtu_discovery[0]),
            ];
            // A connection that is gone by now has none.
            class.into_iter().chain(fitting).for_each(|option| _ = self.stack.set_option(now, conn, option));
        }
        Ok(())
    }

    /// `getsockname`.
    ///
    /// # Errors
    /// `EBADF`, `ENOTSOCK`.
    pub fn local_name(&self, fd: i32) -> Result<SocketAddr, Errno> {
        let socket = self.files.socket(fd)?;
        let connected = socket.connection().and_then(|id| self.stack.names(id)).map(|(local, _)| local);
        let again = socket.bound.filter(|bound| socket.ended && bound.port() != 0);
        let mut name = again.or(connected).or(socket.bound).unwrap_or(socket.domain.unspecified());
        if name.port() == 0 {
            name.set_port(socket.former_port);
        }
        Ok(socket.domain.to_user(name))
    }

    /// `getpeername`.
    ///
    /// # Errors
    /// `ENOTCONN`, `EBADF`, `ENOTSOCK`.
    pub fn peer_name(&self, fd: i32) -> Result<SocketAddr, Errno> {
        let socket = self.files.socket(fd)?;
        let open = |id: &ConnId| !socket.ended && self.state(*id) != State::SynSent;
        let id = socket.connection().filter(open).ok_or(Errno::ENOTCONN)?;
        let (_, peer) = self.stack.names(id).ok_or(Errno::ENOTCONN)?;
        Ok(socket.domain.to_user(peer))
    }

    /// Address family of a socket.
    ///
    /// # Errors
    /// `EBADF`, `ENOTSOCK`.
    pub fn domain(&self, fd: i32) -> Result<Domain, Errno> {
        Ok(self.files.socket(fd)?.domain)
    }
}

/// One call of `accept4`, which waits no longer than `SO_RCVTIMEO`.
#[derive(Debug)]
pub struct Accept {
    fd: i32,
    flags: i32,
    deadline: Option<Option<Instant>>,
}

impl Accept {
    /// A call not yet begun.
    pub fn new(fd: i32, flags: i32) -> Accept {
        Accept { fd, flags, deadline: None }
    }

    /// Makes an attempt. Returns the new descriptor and its peer.
    ///
    /// # Errors
    /// See [`Sockets::accept`]; `EAGAIN` when the time is up.
    pub fn attempt(&mut self, sockets: &mut Sockets, now: Instant) -> Result<(i32, SocketAddr), Stop> {
        let timeout = sockets.files.socket(self.fd)?.options.rcvtimeo;
        let deadline = *self.deadline.get_or_insert(timeout.map(|timeout| now + timeout));
        match sockets.accept(now, self.fd, self.flags) {
            Err(Stop::Wait(_)) => wait(false, now, deadline),
            result => result,
        }
    }
}

/// May two sockets that both allow it share a name?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    AsAsked,
    Never,
}

/// Could a packet be for either of two sockets with these addresses (Linux's `inet_rcv_saddr_equal`)? An unspecified address is any; of
/// IPv6 it is any of IPv4 too, unless the socket speaks IPv6 only.
fn overlap((one, ip): (&Socket, IpAddr), (other, other_ip): (&Socket, IpAddr)) -> bool {
    let includes = |socket: &Socket, any: IpAddr, ip: IpAddr| {
        any.is_unspecified() && (any.is_ipv4() == ip.is_ipv4() || any.is_ipv6() && !socket.options.v6_only)
    };
    ip == other_ip || includes(one, ip, other_ip) || includes(other, other_ip, ip)
}

/// A TCP socket's family, and the flags beside its type. Of other types Linux would have more; here they are not.
fn kind_of(domain: i32, kind: i32, protocol: i32) -> Result<(Domain, i32), Errno> {
    let flags = kind & !SOCK_TYPE_MASK;
    if flags & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) != 0 {
        return Err(Errno::EINVAL);
    }
    let kind = kind & SOCK_TYPE_MASK;
    if kind >= SOCK_MAX {
        return Err(Errno::EINVAL);
    }
    let domain = match domain {
        libc::AF_INET => Domain::V4,
        libc::AF_INET6 => Domain::V6,
        _ => return Err(Errno::EAFNOSUPPORT),
    };
    match (kind, protocol) {
        (_, protocol) if !(0..IPPROTO_MAX).contains(&protocol) => Err(Errno::EINVAL),
        (libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) => Ok((domain, flags)),
        (libc::SOCK_STREAM, _) => Err(Errno::EPROTONOSUPPORT),
        _ => Err(Errno::ESOCKTNOSUPPORT),
    }
}

/// Linux's `SOCK_MAX`, and `IPPROTO_MAX`, which is behind `IPPROTO_MPTCP`.
const SOCK_MAX: i32 = 11;
const IPPROTO_MAX: i32 = 263;
/// Linux's `SOCK_TYPE_MASK`.
const SOCK_TYPE_MASK: i32 = 0xf;

/// Ports of a range that has an upper and a lower half (Linux's `inet_csk_find_open_port`).
const HALVED: u32 = 4;
