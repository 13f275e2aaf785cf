//! `socket`, `bind`, `listen`, `accept`, and the names of both ends.

use crate::errno::{Errno, Stop};
use crate::files::File;
use crate::readiness::Ready;
use crate::socket::{Domain, Opening, Role, Socket};
use crate::sockets::{Sockets, wait};
use core::net::{IpAddr, SocketAddr};
use proto::{AcceptError, Instant, ListenError};

impl Sockets {
    /// `socket`: a TCP socket, which is all there is here.
    ///
    /// # Errors
    /// `EAFNOSUPPORT`, `ESOCKTNOSUPPORT`, `EPROTONOSUPPORT`, `EINVAL` for unknown flags, `EMFILE`.
    pub fn socket(&mut self, domain: i32, kind: i32, protocol: i32) -> Result<i32, Errno> {
        let domain = match domain {
            libc::AF_INET => Domain::V4,
            libc::AF_INET6 => Domain::V6,
            _ => return Err(Errno::EAFNOSUPPORT),
        };
        let flags = kind & !SOCK_TYPE_MASK;
        if flags & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) != 0 {
            return Err(Errno::EINVAL);
        }
        match (kind & SOCK_TYPE_MASK, protocol) {
            (libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) => {}
            (libc::SOCK_STREAM, _) => return Err(Errno::EPROTONOSUPPORT),
            _ => return Err(Errno::ESOCKTNOSUPPORT),
        }
        let socket = Socket::new(domain, flags & libc::SOCK_NONBLOCK != 0);
        self.files.insert(File::Socket(Box::new(socket)))
    }

    /// `bind`. Port 0: one is chosen.
    ///
    /// # Errors
    /// `EINVAL` if it has a name, or is more than a fresh socket; `EADDRNOTAVAIL`, `EADDRINUSE`.
    pub fn bind(&mut self, fd: i32, addr: SocketAddr) -> Result<(), Errno> {
        let socket = self.files.socket(fd)?;
        if socket.role != Role::Fresh || socket.bound.is_some() {
            return Err(Errno::EINVAL);
        }
        let ip = addr.ip().to_canonical();
        let own = ip.is_unspecified() || socket.options.freebind || self.stack.addresses().any(|a| a == ip);
        if !own {
            return Err(Errno::EADDRNOTAVAIL);
        }
        let port = match addr.port() {
            0 => self.choose_port(fd)?,
            port if self.is_taken(fd, ip, port) => return Err(Errno::EADDRINUSE),
            port => port,
        };
        let socket = self.files.socket_mut(fd)?;
        socket.bound = Some(SocketAddr::new(ip, port));
        Ok(())
    }

    /// Does another socket keep this one from this name? Two that both allow it may share one, unless one listens.
    fn is_taken(&self, fd: i32, ip: IpAddr, port: u16) -> bool {
        let Ok(own) = self.files.socket(fd) else { return true };
        self.files.iter().any(|(other, file)| {
            let File::Socket(socket) = file else { return false };
            let Some(bound) = socket.bound.filter(|bound| other != fd && bound.port() == port) else {
                return false;
            };
            let overlap = bound.ip() == ip || bound.ip().is_unspecified() || ip.is_unspecified();
            let listening = matches!(socket.role, Role::Listener(_));
            let shared = own.options.reuse_port && socket.options.reuse_port
                || own.options.reuse_addr && socket.options.reuse_addr && !listening;
            overlap && !shared
        })
    }

    fn choose_port(&mut self, fd: i32) -> Result<u16, Errno> {
        let config = self.stack.config();
        let low = u16::try_from(config.port_low).unwrap_or(u16::MAX);
        let high = u16::try_from(config.port_high).unwrap_or(u16::MAX).max(low);
        for _ in low..=high {
            let port = self.next_port.clamp(low, high);
            self.next_port = if port == high { low } else { port + 1 };
            if !self.is_taken(fd, Domain::V6.unspecified().ip(), port) {
                return Ok(port);
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
        let local = socket.bound.ok_or(Errno::EINVAL)?;
        let id = self.stack.listen(now, local, socket.listen_options()).map_err(|error| match error {
            ListenError::AddrInUse => Errno::EADDRINUSE,
            ListenError::AddrNotAvailable => Errno::EADDRNOTAVAIL,
        })?;
        self.own(fd, Role::Listener(id))
    }

    /// `accept4`: the new descriptor and its peer. `flags`: `SOCK_NONBLOCK`, `SOCK_CLOEXEC`.
    ///
    /// # Errors
    /// `EINVAL` if it does not listen, `EAGAIN`; [`Stop::Wait`].
    pub fn accept(&mut self, now: Instant, fd: i32, flags: i32) -> Result<(i32, SocketAddr), Stop> {
        let listener = self.files.socket(fd)?;
        let Role::Listener(id) = listener.role else { return Err(Errno::EINVAL.into()) };
        let nonblocking = listener.nonblocking;
        let (conn, peer) = match self.stack.accept(now, id) {
            Ok(accepted) => accepted,
            Err(AcceptError::Blocked) => return wait(nonblocking, now, None),
            Err(AcceptError::Closed) => return Err(Errno::EINVAL.into()),
        };
        let listener = self.files.socket(fd)?;
        let mut child = Socket::new(listener.domain, flags & libc::SOCK_NONBLOCK != 0);
        child.options = listener.options.clone();
        child.opening = Opening::Connected;
        child.bound = self.stack.info(conn).map(|info| info.local);
        let named = child.domain.to_user(peer);
        let Ok(new) = self.files.insert(File::Socket(Box::new(child))) else {
            self.stack.close(now, conn);
            return Err(Errno::EMFILE.into());
        };
        self.own(new, Role::Connection(conn))?;
        self.notice_state(new, conn);
        Ok((new, named))
    }

    /// `getsockname`.
    ///
    /// # Errors
    /// `EBADF`, `ENOTSOCK`.
    pub fn local_name(&self, fd: i32) -> Result<SocketAddr, Errno> {
        let socket = self.files.socket(fd)?;
        let connected = socket.connection().and_then(|id| self.stack.info(id)).map(|info| info.local);
        let name = connected.or(socket.bound).unwrap_or(socket.domain.unspecified());
        Ok(socket.domain.to_user(name))
    }

    /// `getpeername`.
    ///
    /// # Errors
    /// `ENOTCONN`, `EBADF`, `ENOTSOCK`.
    pub fn peer_name(&self, fd: i32) -> Result<SocketAddr, Errno> {
        let socket = self.files.socket(fd)?;
        let id = socket.connection().filter(|_| !socket.ended).ok_or(Errno::ENOTCONN)?;
        let peer = self.stack.info(id).ok_or(Errno::ENOTCONN)?.peer;
        Ok(socket.domain.to_user(peer))
    }

    /// Address family of a socket.
    ///
    /// # Errors
    /// `EBADF`, `ENOTSOCK`.
    pub fn domain(&self, fd: i32) -> Result<Domain, Errno> {
        Ok(self.files.socket(fd)?.domain)
    }

    /// A descriptor's readiness may have changed otherwise than by the network.
    pub(crate) fn stir(&mut self, fd: i32) {
        self.wake_epolls(fd, Ready::all());
    }
}

/// Linux's `SOCK_TYPE_MASK`.
const SOCK_TYPE_MASK: i32 = 0xf;
