//! Opens connections, in every way and with every option.
use crate::kernel;
use crate::net::Inner;
use crate::{Net, TcpStream, error, happy_eyeballs};
use bytes::Bytes;
use host::{Host, RealClock};
use proto::{CongestionControl, ConnId, ConnectOptions, FastOpen, SocketOptions};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::ToSocketAddrs;

/// A connection that is not open yet: set options, then call one of the `connect` methods. Created
/// by [`Net::socket`].
///
/// By default, Fast Open is off for [`connect`](Self::connect), which has no data for the SYN, and
/// [`Auto`](FastOpen::Auto) for the other two; [`fast_open`](Self::fast_open) changes this.
#[derive(Clone, Debug)]
pub struct TcpSocket {
    net: Net,
    options: ConnectOptions,
    fast_open: Option<FastOpen>,
    read_grace: Duration,
}

impl TcpSocket {
    pub(crate) fn new(net: &Net) -> TcpSocket {
        let options = ConnectOptions::default();
        TcpSocket { net: net.clone(), options, fast_open: None, read_grace: READ_GRACE }
    }

    /// Sets the local address; the stack chooses an unspecified address or port 0.
    #[must_use]
    pub fn bind(mut self, local: SocketAddr) -> Self {
        self.options.local = Some(local);
        self
    }

    /// Sets the use of Fast Open. With [`Auto`](FastOpen::Auto), even [`connect`](Self::connect)
    /// requests a cookie, which the next connection to this peer can use.
    #[must_use]
    pub fn fast_open(mut self, fast_open: FastOpen) -> Self {
        self.fast_open = Some(fast_open);
        self
    }

    /// Sends the cookie even without data, so that a server that speaks first can send data at
    /// once.
    #[must_use]
    pub fn data_less(mut self, data_less: bool) -> Self {
        self.options.data_less = data_less;
        self
    }

    /// Closes the sending direction right behind the first bytes; the stream is then read-only.
    #[must_use]
    pub fn fin(mut self, fin: bool) -> Self {
        self.options.fin = fin;
        self
    }

    /// Sends that FIN on the SYN. Only for servers that are known to accept it: Linux drops such a
    /// SYN.
    #[must_use]
    pub fn syn_fin(mut self, syn_fin: bool) -> Self {
        self.options.syn_fin = syn_fin;
        self
    }

    /// Sends small segments at once (disables Nagle).
    #[must_use]
    pub fn nodelay(mut self, nodelay: bool) -> Self {
        self.options.socket.nodelay = nodelay;
        self
    }

    /// Sets the linger option, see [`TcpStream::set_linger`].
    #[must_use]
    pub fn linger(mut self, linger: Option<Duration>) -> Self {
        self.options.socket.linger = linger;
        self
    }

    /// Sets keep-alive, see [`TcpStream::set_keepalive`]; clamps the time to the valid range.
    #[must_use]
    pub fn keepalive(mut self, time: Option<Duration>) -> Self {
        self.options.socket.keepalive = time.is_some();
        self.options.socket.keepalive_time = time;
        self
    }

    /// Sets the user timeout, see [`TcpStream::set_user_timeout`]; also for the handshake.
    #[must_use]
    pub fn user_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.options.socket.user_timeout = timeout;
        self
    }

    /// Sets every option of the connection, and replaces earlier ones; the other methods are
    /// shorthands for some of them.
    #[must_use]
    pub fn socket_options(mut self, options: SocketOptions) -> Self {
        self.options.socket = options;
        self
    }

    /// Sets the congestion control (`TCP_CONGESTION`) instead of the route's or the stack's.
    #[must_use]
    pub fn congestion(mut self, algorithm: CongestionControl) -> Self {
        self.options.socket.congestion = Some(algorithm);
        self
    }

    /// Limits the sending rate to this many bytes per second, spread evenly (`SO_MAX_PACING_RATE`).
    #[must_use]
    pub fn max_pacing_rate(mut self, bytes_per_second: u32) -> Self {
        self.options.socket.max_pacing_rate = Some(bytes_per_second);
        self
    }

    /// Limits the MSS, 88 to 32767 bytes (`TCP_MAXSEG`); clamps other numbers to this range.
    #[must_use]
    pub fn max_segment(mut self, bytes: u16) -> Self {
        self.options.socket.max_segment = Some(bytes);
        self
    }

    /// Sets the size of the send buffer: unacknowledged and unsent bytes (`SO_SNDBUF`, at most
    /// `net.core.wmem_max`). Writes wait for room, and the size is fixed. By default, it starts
    /// with the initial size of `tcp_wmem` and follows the congestion window.
    #[must_use]
    pub fn send_buffer_size(mut self, bytes: usize) -> Self {
        self.options.socket.send_buffer = Some(u32::try_from(bytes).unwrap_or(u32::MAX));
        self
    }

    /// Sets the size of the receive buffer, bytes (`SO_RCVBUF`, at most `net.core.rmem_max`): the
    /// window is never larger. By default, it starts with the initial size of `tcp_rmem` and
    /// follows the amount that the application reads in a round trip.
    #[must_use]
    pub fn recv_buffer_size(mut self, bytes: usize) -> Self {
        self.options.socket.recv_buffer = Some(u32::try_from(bytes).unwrap_or(u32::MAX));
        self
    }

    /// Limits the advertised window, bytes (`TCP_WINDOW_CLAMP`); the buffer may be larger.
    #[must_use]
    pub fn window_clamp(mut self, bytes: u32) -> Self {
        self.options.socket.window_clamp = Some(bytes);
        self
    }

    /// Sets how long a deferred stream, if it is read before anything was written, waits for a
    /// write before it sends a SYN without data (default: 1 ms; zero: not at all). Uses the
    /// runtime's timer, with milliseconds resolution.
    #[must_use]
    pub fn read_grace(mut self, grace: Duration) -> Self {
        self.read_grace = grace;
        self
    }

    /// Asks for a cookie with a plain handshake, unless the application has chosen otherwise.
    #[cfg(feature = "hyper-util")]
    pub(crate) fn asking_for_a_cookie(mut self) -> Self {
        self.fast_open = self.fast_open.or(Some(FastOpen::Auto));
        self
    }

    /// Connects to the first address that answers. Attempts at several addresses begin
    /// 250 ms apart, or at once when one fails (Happy Eyeballs, RFC 8305).
    ///
    /// # Cancel safety
    /// Dropping the future aborts the connection.
    ///
    /// # Errors
    /// Fails like [`TcpStream::connect`].
    pub async fn connect<A: ToSocketAddrs>(self, addr: A) -> io::Result<TcpStream> {
        self.connect_bytes(addr, Bytes::new(), FastOpen::Off).await
    }

    /// Connects and sends `first_bytes`, with Fast Open on the SYN. See
    /// [`TcpStream::connect_with`].
    ///
    /// # Cancel safety
    /// Dropping the future aborts the connection; the peer may already have read `first_bytes`.
    ///
    /// # Errors
    /// Fails like [`TcpStream::connect`].
    pub async fn connect_with<A: ToSocketAddrs>(
        self,
        addr: A,
        first_bytes: impl Into<Bytes>,
    ) -> io::Result<TcpStream> {
        self.connect_bytes(addr, first_bytes.into(), FastOpen::Auto).await
    }

    /// Returns a stream that connects when it has data to send. See
    /// [`TcpStream::connect_deferred`].
    ///
    /// # Errors
    /// The name has no address. The first use of the stream reports errors of the connection.
    pub async fn connect_deferred<A: ToSocketAddrs>(mut self, addr: A) -> io::Result<TcpStream> {
        let peer = tokio::net::lookup_host(addr).await?.next().ok_or_else(no_address)?;
        self.options.fast_open = self.fast_open.unwrap_or(FastOpen::Auto);
        Ok(TcpStream::deferred(&self.net, peer, self.options, self.read_grace))
    }

    async fn connect_bytes<A: ToSocketAddrs>(
        mut self,
        addr: A,
        first_bytes: Bytes,
        fast_open: FastOpen,
    ) -> io::Result<TcpStream> {
        self.options.fast_open = self.fast_open.unwrap_or(fast_open);
        self.options.first_bytes = first_bytes;
        let connected = happy_eyeballs::connect(tokio::net::lookup_host(addr).await?, |peer| {
            connect_one(&self.net, peer, self.options.clone())
        });
        match connected.await {
            Ok(stream) => Ok(stream),
            Err(error) => Err(self.net.pause_at_end(error).await),
        }
    }
}

/// Long enough for the task of a new stream to get from its first read to its first write.
const READ_GRACE: Duration = Duration::from_millis(1);

async fn connect_one(net: &Net, peer: SocketAddr, options: ConnectOptions) -> io::Result<TcpStream> {
    let net = match net.inner() {
        Inner::Stack(net) => net,
        Inner::Kernel => {
            let open = kernel::connect(peer, &options).await?;
            return Ok(TcpStream::of_kernel(open, peer));
        }
    };
    let id = net.host().connect(peer, options).map_err(error::connect)?;
    let mut attempt = Attempt { host: net.host(), id: Some(id) };
    poll_fn(|cx| net.host().poll_connected(cx, id)).await.map_err(error::ended)?;
    attempt.id = None;
    Ok(TcpStream::open(net, id, peer))
}

/// A connect in progress: aborted if it is dropped before its end.
struct Attempt<'a> {
    host: &'a Host<RealClock>,
    id: Option<ConnId>,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.host.abort(id);
        }
    }
}

pub(crate) fn no_address() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "the name has no address")
}
