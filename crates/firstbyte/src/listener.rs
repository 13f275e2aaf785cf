//! TCP listeners.
#[cfg(feature = "axum")]
mod axum;
#[cfg(feature = "stream")]
mod incoming;
use crate::kernel::KernelListener;
use crate::net::Inner;
use crate::{Net, StackHandle, TcpStream, error};
use proto::fast_open::KeyRing;
use proto::{ListenError, ListenOptions, ListenerId, ListenerInfo, SocketInfo};
use std::collections::HashSet;
use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::ToSocketAddrs;

/// A TCP listener on a [`Net`].
///
/// With [`fast_open`](TcpListenerBuilder::fast_open), a connection is returned as soon as a SYN
/// with a valid cookie arrives. Its request can be read, and a reply written before the task waits
/// again is sent on the SYN-ACK. The bytes of the SYN [may be a replay](TcpStream::early_data).
///
/// Dropping a listener closes it and resets connections that were not accepted.
#[derive(Debug)]
pub struct TcpListener {
    net: Net,
    inner: Listening,
}

#[derive(Debug)]
enum Listening {
    Stack { net: StackHandle, id: ListenerId, local: SocketAddr },
    Kernel(Box<KernelListener>),
}

impl TcpListener {
    /// Opens a listener with the default options on the first usable address of `addr`. Port 0
    /// selects a free port; [`local_addr`](Self::local_addr) returns it.
    ///
    /// # Errors
    /// [`AddrInUse`](io::ErrorKind::AddrInUse),
    /// [`AddrNotAvailable`](io::ErrorKind::AddrNotAvailable).
    pub async fn bind<A: ToSocketAddrs>(net: &Net, addr: A) -> io::Result<TcpListener> {
        TcpListener::builder(net).bind(addr).await
    }

    /// Returns a builder for a listener.
    #[must_use]
    pub fn builder(net: &Net) -> TcpListenerBuilder {
        TcpListenerBuilder { net: net.clone(), options: ListenOptions::default(), reuse_port: false }
    }

    /// Waits for the next connection. Returns it with its peer's address. Any number of tasks may
    /// wait.
    ///
    /// # Cancel safety
    /// Safe: a connection is returned or stays in the queue.
    ///
    /// # Errors
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) from every call once the stack has
    /// ended. An accept loop should then stop. A loop that continues does not spin: each failure
    /// after the first takes 100 ms. A peer cannot make this call fail.
    ///
    /// On the kernel's sockets the errors of accept(2), for example too many open files. Wait a
    /// little before the next call then.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match poll_fn(|cx| self.poll_accept(cx)).await {
            Ok(accepted) => Ok(accepted),
            Err(error) => Err(self.net.pause_at_end(error).await),
        }
    }

    /// Polls for the next connection, for hand-written futures. Unlike in [`accept`](Self::accept),
    /// every failure returns at once.
    ///
    /// # Errors
    /// Fails like [`accept`](Self::accept).
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        // Other tasks run in between, even if the caller retries errors forever.
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        let (stream, peer) = match &self.inner {
            Listening::Stack { net, id, .. } => {
                let accepted = ready!(net.host().poll_accept(cx, *id));
                budget.made_progress();
                let (id, peer) = accepted.map_err(|error| net.explain_end(error::accept(error)))?;
                (TcpStream::open(net, id, peer), peer)
            }
            Listening::Kernel(listener) => {
                let accepted = ready!(listener.poll_accept(cx));
                budget.made_progress();
                let (open, peer) = accepted?;
                (TcpStream::of_kernel(open, peer), peer)
            }
        };
        Poll::Ready(Ok((stream, peer)))
    }

    /// Returns whether every later call fails: only the end of a stack of our own makes it fail.
    #[cfg(any(feature = "axum", feature = "stream"))]
    pub(crate) fn has_ended(&self) -> bool {
        match &self.inner {
            Listening::Stack { net, .. } => net.host().phase() != host::Phase::Running,
            Listening::Kernel(_) => false,
        }
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// None today; the signature matches tokio's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.inner {
            Listening::Stack { local, .. } => Ok(*local),
            Listening::Kernel(listener) => listener.local_addr(),
        }
    }

    /// Returns the current queues and limits.
    ///
    /// # Errors
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down;
    /// [`Unsupported`](io::ErrorKind::Unsupported) on the kernel's sockets.
    pub fn info(&self) -> io::Result<ListenerInfo> {
        match &self.inner {
            Listening::Stack { net, id, .. } => {
                net.host().listener_info(*id).ok_or_else(|| net.explain_end(error::stopped()))
            }
            Listening::Kernel(_) => Err(error::unsupported("TcpListener::info")),
        }
    }

    /// Changes the backlog, like a repeated `listen`: the number of connections that may wait to be
    /// accepted, and of half-open ones; at most the current `net.core.somaxconn`. Connections that
    /// already wait stay.
    ///
    /// ```
    /// # async fn example(net: firstbyte::Net) -> std::io::Result<()> {
    /// let listener = firstbyte::TcpListener::builder(&net).backlog(128).bind("10.0.0.1:80").await?;
    /// // A busy hour:
    /// listener.set_backlog(1024)?;
    /// assert_eq!(listener.info()?.backlog, 1024);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down. On the
    /// kernel's sockets the errors of listen(2).
    pub fn set_backlog(&self, backlog: u32) -> io::Result<()> {
        match &self.inner {
            Listening::Stack { net, id, .. } if net.host().set_backlog(*id, backlog) => Ok(()),
            Listening::Stack { net, .. } => Err(net.explain_end(error::stopped())),
            Listening::Kernel(listener) => listener.set_backlog(backlog),
        }
    }

    /// Returns the stack of this listener.
    #[must_use]
    pub fn net(&self) -> &Net {
        &self.net
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        if let Listening::Stack { net, id, .. } = &self.inner {
            net.host().close_listener(*id);
        }
    }
}

/// Options of a listener. Created by [`TcpListener::builder`].
#[derive(Clone, Debug)]
pub struct TcpListenerBuilder {
    net: Net,
    options: ListenOptions,
    reuse_port: bool,
}

impl TcpListenerBuilder {
    /// Sets the maximum number of connections that wait to be accepted (default: 1024), capped by
    /// `net.core.somaxconn`.
    #[must_use]
    pub fn backlog(mut self, backlog: u32) -> Self {
        self.options.backlog = backlog;
        self
    }

    /// Enables Fast Open for at most `qlen` connections whose handshake is not complete
    /// (`TCP_FASTOPEN`); 0 disables it.
    #[must_use]
    pub fn fast_open(mut self, qlen: u32) -> Self {
        self.options.fast_open = Some(qlen);
        self
    }

    /// Sets cookie keys for this listener (`TCP_FASTOPEN_KEY`).
    #[must_use]
    pub fn key(mut self, ring: KeyRing) -> Self {
        self.options.key = Some(ring);
        self
    }

    /// Sets the longest time that a SYN-ACK waits for a reply to carry (default: the stack's
    /// setting). Zero sends the SYN-ACK at once, like Linux.
    #[must_use]
    pub fn synack_hold(mut self, hold: Duration) -> Self {
        self.options.synack_hold = Some(hold);
        self
    }

    /// Accepts SYN data without a cookie (`TCP_FASTOPEN_NO_COOKIE`): anybody can then make the
    /// application work with a forged address.
    #[must_use]
    pub fn fast_open_no_cookie(mut self, no_cookie: bool) -> Self {
        self.options.fast_open_no_cookie = no_cookie;
        self
    }

    /// Accepts a connection only when its first data arrives, or after at least this time
    /// (`TCP_DEFER_ACCEPT`); zero accepts it when the handshake is complete.
    #[must_use]
    pub fn defer_accept(mut self, defer: Duration) -> Self {
        self.options.defer_accept = defer;
        self
    }

    /// Lets several listeners of the kernel share the address (`SO_REUSEPORT`): each gets a part of
    /// the connections. A stack of our own refuses it when it binds.
    #[must_use]
    pub fn reuse_port(mut self, reuse_port: bool) -> Self {
        self.reuse_port = reuse_port;
        self
    }

    /// Sets the initial options of accepted connections.
    #[must_use]
    pub fn socket_options(mut self, options: proto::SocketOptions) -> Self {
        self.options.socket = options;
        self
    }

    /// Opens the listener on the first usable address of `addr`.
    ///
    /// # Errors
    /// Fails like [`TcpListener::bind`], and with [`Unsupported`](io::ErrorKind::Unsupported) if an
    /// option does not exist on the network's backend.
    pub async fn bind<A: ToSocketAddrs>(self, addr: A) -> io::Result<TcpListener> {
        let mut last = io::Error::new(io::ErrorKind::InvalidInput, "the name has no address");
        for local in tokio::net::lookup_host(addr).await? {
            match self.open(local) {
                Ok(inner) => return Ok(TcpListener { net: self.net, inner }),
                Err(refused) => last = refused,
            }
        }
        Err(self.net.pause_at_end(last).await)
    }

    fn open(&self, local: SocketAddr) -> io::Result<Listening> {
        match self.net.inner() {
            Inner::Stack(_) if self.reuse_port => Err(error::unsupported_on_stack("reuse_port")),
            Inner::Stack(net) => {
                let id = self.listen(net, local).map_err(error::listen)?;
                let local = net.host().listener_info(id).map_or(local, |info| info.local);
                Ok(Listening::Stack { net: net.clone(), id, local })
            }
            Inner::Kernel => {
                Ok(Listening::Kernel(Box::new(KernelListener::bind(local, &self.options, self.reuse_port)?)))
            }
        }
    }

    fn listen(
        &self,
        net: &StackHandle,
        mut local: SocketAddr,
    ) -> Result<ListenerId, host::Error<ListenError>> {
        if local.port() != 0 {
            return net.host().listen(local, self.options.clone());
        }
        let mut refused = host::Error::Stack(ListenError::AddrInUse);
        for port in free_ports(net) {
            local.set_port(port);
            match net.host().listen(local, self.options.clone()) {
                // Another thread has taken the port.
                Err(error @ host::Error::Stack(ListenError::AddrInUse)) => refused = error,
                done => return done,
            }
        }
        Err(refused)
    }
}

/// Returns the local ports without a listener, from a random one on.
fn free_ports(net: &StackHandle) -> impl Iterator<Item = u16> {
    let (taken, reserved, (low, high)) = net.inspect(|stack| {
        let listeners = stack.sockets().map_while(|socket| match socket {
            SocketInfo::Listener(listener) => Some(listener.local.port()),
            _ => None,
        });
        let reserved = stack.config().ip_local_reserved_ports.clone();
        (listeners.collect::<HashSet<u16>>(), reserved, stack.port_range(None))
    });
    let count = high.saturating_sub(low) + 1;
    let begin = RandomState::new().hash_one(()) as u32 % count;
    let ports = (0..count).map(move |tried| (low + (begin + tried) % count) as u16);
    ports.filter(move |port| !taken.contains(port) && !reserved.contains(*port))
}
