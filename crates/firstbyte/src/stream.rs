//! A connection, as a stream of bytes.
mod connection;
pub(crate) mod deferred;
mod flags;
mod info;
mod options;
mod owned;
mod parity;
mod peer;
mod split;
mod stack;
#[cfg(feature = "tonic")]
mod tonic;
use crate::kernel::{self, KernelConnection};
use crate::net::Inner;
use crate::{Net, StackHandle, TcpSocket};
use bytes::Bytes;
use connection::Connection;
use proto::{ConnId, ConnectOptions, ConnectionInfo, EarlyData, Outcome};
use stack::StackConnection;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::ToSocketAddrs;

pub use info::StreamInfo;
pub use owned::{OwnedReadHalf, OwnedWriteHalf, ReuniteError};
pub use peer::PeerInfo;
pub use split::{ReadHalf, WriteHalf};

/// A TCP connection on a [`Net`], with the methods of `tokio::net::TcpStream`.
///
/// Shutting down the write side sends a FIN after the written data and leaves the read side open. A
/// flush has no effect: data is sent as soon as TCP allows. Call [`push`](Self::push) if no more
/// data follows soon.
///
/// Dropping a stream closes it. Written data is delivered in the background. If received data was
/// not read, the connection is reset, so that the peer knows (RFC 1122 §4.2.2.13).
pub struct TcpStream {
    connection: Arc<Connection>,
}

/// Shows both addresses and the state, which are read from the stack: do not use it within
/// [`StackHandle::inspect`](crate::StackHandle::inspect).
impl std::fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.connection.fmt_as("TcpStream", f)
    }
}

/// Opening.
impl TcpStream {
    /// Connects to the first address that answers, with a plain handshake. [`TcpSocket`] has
    /// options.
    ///
    /// # Cancel safety
    /// Dropping the future aborts the connection.
    ///
    /// # Errors
    /// [`ConnectionRefused`](io::ErrorKind::ConnectionRefused),
    /// [`TimedOut`](io::ErrorKind::TimedOut), [`HostUnreachable`](io::ErrorKind::HostUnreachable),
    /// [`NetworkUnreachable`](io::ErrorKind::NetworkUnreachable) (no address of the peer's family
    /// here), [`AddrNotAvailable`](io::ErrorKind::AddrNotAvailable),
    /// [`AddrInUse`](io::ErrorKind::AddrInUse), and
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) when the stack is shut down.
    pub async fn connect<A: ToSocketAddrs>(net: &Net, addr: A) -> io::Result<TcpStream> {
        TcpSocket::new(net).connect(addr).await
    }

    /// Connects and sends `first_bytes`: on the SYN if a cookie of the peer is known, otherwise
    /// with the last packet of the handshake (and requests a cookie for the next time). Returns
    /// when the SYN is answered; [`outcome`](Self::outcome) reports the result of Fast Open.
    ///
    /// **Send only requests that may be executed twice.** The network may duplicate a SYN, and a
    /// server that has lost its state takes the copy for a new connection (RFC 7413 §6.1). Send
    /// other requests after a plain [`connect`](Self::connect). If a name has several addresses, an
    /// attempt that is not answered within 250 ms does not stop the next one: more than one server
    /// may receive `first_bytes`.
    ///
    /// # Cancel safety
    /// Dropping the future aborts the connection, but the SYN may already be sent: the peer may
    /// have received and processed `first_bytes`.
    ///
    /// # Errors
    /// Fails like [`connect`](Self::connect). An error does not mean that no peer has read
    /// `first_bytes`.
    pub async fn connect_with<A: ToSocketAddrs>(
        net: &Net,
        addr: A,
        first_bytes: impl Into<Bytes>,
    ) -> io::Result<TcpStream> {
        TcpSocket::new(net).connect_with(addr, first_bytes).await
    }

    /// Returns a stream that sends its first bytes on the SYN, for code that connects first and
    /// writes later (TLS, HTTP libraries). Nothing is sent until the first of these:
    ///
    /// - a flush, after something was written;
    /// - a shutdown of the write side;
    /// - writing one packet's worth of bytes;
    /// - a read. Bytes that were written but not flushed are sent at once. Without any, the SYN is
    ///   sent without data after [`read_grace`](TcpSocket::read_grace), so that a protocol whose
    ///   server speaks first does not wait forever;
    /// - [`delivered`](Self::delivered) or [`try_read`](Self::try_read), after something was
    ///   written.
    ///
    /// Reads and writes report errors of the connection. Data of a stream that is dropped before
    /// the first of these is never sent. As with [`connect_with`](Self::connect_with), the first
    /// bytes may be delivered twice.
    ///
    /// # Errors
    /// The name has no address. Only the first address of a name is used.
    pub async fn connect_deferred<A: ToSocketAddrs>(net: &Net, addr: A) -> io::Result<TcpStream> {
        TcpSocket::new(net).connect_deferred(addr).await
    }

    pub(crate) fn open(net: &StackHandle, id: ConnId, peer: SocketAddr) -> TcpStream {
        TcpStream::of(Connection::Stack(StackConnection::open(net, id, peer)))
    }

    pub(crate) fn of_kernel(open: kernel::Open, peer: SocketAddr) -> TcpStream {
        TcpStream::of(Connection::Kernel(KernelConnection::open(peer, open)))
    }

    fn of(connection: Connection) -> TcpStream {
        TcpStream { connection: Arc::new(connection) }
    }

    pub(crate) fn deferred(
        net: &Net,
        peer: SocketAddr,
        options: ConnectOptions,
        grace: Duration,
    ) -> TcpStream {
        TcpStream::of(match net.inner() {
            Inner::Stack(net) => Connection::Stack(StackConnection::deferred(net, peer, options, grace)),
            Inner::Kernel => Connection::Kernel(KernelConnection::deferred(peer, options, grace)),
        })
    }
}

/// Reading and writing beyond [`AsyncRead`] and [`AsyncWrite`].
impl TcpStream {
    /// Waits until a read would not block: data, the end of the stream, or an error. May return
    /// spuriously.
    ///
    /// # Cancel safety
    /// Safe.
    ///
    /// # Errors
    /// Fails like a read.
    pub async fn readable(&self) -> io::Result<()> {
        self.connection.readable().await
    }

    /// Waits until a write would not block. May return spuriously.
    ///
    /// # Cancel safety
    /// Safe.
    ///
    /// # Errors
    /// Fails like a write.
    pub async fn writable(&self) -> io::Result<()> {
        self.connection.writable().await
    }

    /// Reads available data. `Ok(0)` is the end of the stream, or an empty `buf`.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if no data is available; otherwise like a read.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.connection.try_read(buf)
    }

    /// Writes as much as fits.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing fits; otherwise like a write.
    pub fn try_write(&self, data: &[u8]) -> io::Result<usize> {
        self.connection.try_write(data)
    }

    /// Reads without consuming: the next read returns the same bytes. `Ok(0)` is the end of the
    /// stream.
    ///
    /// # Cancel safety
    /// Safe.
    ///
    /// # Errors
    /// Fails like a read.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.connection.peek(buf).await
    }

    /// Reads the next bytes as they were received, without a copy, at most `max`; `None` is the end
    /// of the stream.
    ///
    /// # Cancel safety
    /// Safe: bytes are returned or stay.
    ///
    /// # Errors
    /// Fails like a read.
    pub async fn read_chunk(&mut self, max: usize) -> io::Result<Option<Bytes>> {
        poll_fn(|cx| self.connection.poll_read_chunk(cx, max)).await
    }

    /// Writes all of `data` without copying it.
    ///
    /// # Cancel safety
    /// Not safe: a part may have been written when the future is dropped.
    ///
    /// # Errors
    /// Fails like a write.
    pub async fn write_bytes(&mut self, mut data: Bytes) -> io::Result<()> {
        while !data.is_empty() {
            poll_fn(|cx| self.connection.poll_write_bytes(cx, &mut data)).await?;
        }
        Ok(())
    }

    /// Tells the stack that no more data follows soon. Written data is sent now, even if it is
    /// small (Nagle), and even on a SYN-ACK that is held.
    pub fn push(&self) {
        self.connection.push();
    }

    /// Waits until the peer has acknowledged everything written, and the FIN after a shutdown.
    ///
    /// # Cancel safety
    /// Safe.
    ///
    /// # Errors
    /// The reason why the connection ended before.
    pub async fn delivered(&self) -> io::Result<()> {
        self.connection.delivered().await
    }

    /// Splits the stream into two borrowed halves, for reading and writing within one task.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        split::split(self)
    }

    /// Splits the stream into two owned halves that may move to different tasks. Dropping the write
    /// half shuts down the write side.
    #[must_use]
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        owned::split(self)
    }
}

/// Information about the connection.
impl TcpStream {
    /// Returns the peer's address.
    ///
    /// # Errors
    /// None today; the signature matches tokio's.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.connection.peer())
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// [`NotConnected`](io::ErrorKind::NotConnected) before the SYN of a deferred stream;
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.connection.local_addr()
    }

    /// Returns the outcome of Fast Open: [`Pending`](Outcome::Pending) until the SYN is answered.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.connection.outcome()
    }

    /// Returns which bytes at the start of an accepted stream arrived on the SYN. They may be a
    /// replay of an earlier connection until [`confirmed`](EarlyData::confirmed), and after a
    /// restart of this host even then (RFC 7413 §6.1): process only requests that may be executed
    /// twice.
    #[must_use]
    pub fn early_data(&self) -> EarlyData {
        self.connection.early_data()
    }

    /// Returns a snapshot of the connection: state, round trips, windows, retransmissions. The same
    /// on both backends.
    ///
    /// # Errors
    /// Fails like [`local_addr`](Self::local_addr).
    pub fn info(&self) -> io::Result<StreamInfo> {
        self.connection.info()
    }

    /// Returns all that our stack knows of the connection.
    ///
    /// # Errors
    /// Fails like [`local_addr`](Self::local_addr); [`Unsupported`](io::ErrorKind::Unsupported) on
    /// the kernel's sockets.
    pub fn connection_info(&self) -> io::Result<ConnectionInfo> {
        self.connection.connection_info()
    }

    /// Formats the connection as one line, like `ss -tin`: sample it in a loop to see the limit of
    /// a transfer.
    ///
    /// # Errors
    /// Fails like [`connection_info`](Self::connection_info).
    pub fn ss(&self) -> io::Result<String> {
        self.connection.ss()
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.connection.poll_read(cx, buf)
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.connection.poll_write(cx, data)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.connection.poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.connection.flush())
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.connection.shutdown())
    }
}
