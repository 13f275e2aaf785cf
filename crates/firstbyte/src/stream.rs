//! A connection, as a stream of bytes.
mod connection;
pub(crate) mod deferred;
mod flags;
mod info;
mod options;
mod owned;
mod split;
mod stack;
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
pub use split::{ReadHalf, WriteHalf};

/// A TCP connection on a [`Net`], read and written as `tokio::net::TcpStream` is.
///
/// Shutting down the write side sends a FIN after what was written and leaves the read side open. A flush does
/// nothing by itself: what is written is sent as soon as TCP allows; [`push`](Self::push) is the word for "nothing
/// more is coming soon".
///
/// Dropping a stream closes it: what was written is still delivered in the background, unless received data was
/// never read, which resets the connection and tells the peer so (RFC 1122 §4.2.2.13).
pub struct TcpStream {
    connection: Arc<Connection>,
}

/// Both ends and the state, which the stack is asked for: not for use within [`Net::inspect`].
impl std::fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.connection.fmt_as("TcpStream", f)
    }
}

/// Opening.
impl TcpStream {
    /// Connects to the first address that answers, with a plain handshake. [`TcpSocket`] has options.
    ///
    /// # Cancel safety
    /// Dropping the future aborts the connection.
    ///
    /// # Errors
    /// [`ConnectionRefused`](io::ErrorKind::ConnectionRefused), [`TimedOut`](io::ErrorKind::TimedOut),
    /// [`HostUnreachable`](io::ErrorKind::HostUnreachable), [`NetworkUnreachable`](io::ErrorKind::NetworkUnreachable)
    /// (no address of the peer's family here), [`AddrNotAvailable`](io::ErrorKind::AddrNotAvailable),
    /// [`AddrInUse`](io::ErrorKind::AddrInUse), and [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) when the
    /// stack is shut down.
    pub async fn connect<A: ToSocketAddrs>(net: &Net, addr: A) -> io::Result<TcpStream> {
        TcpSocket::new(net).connect(addr).await
    }

    /// Connects and sends `first_bytes`: on the SYN where a cookie of the peer is known, with the handshake's last
    /// packet where not (and then a cookie is asked for, for the next time). Returns when the SYN has been answered;
    /// [`outcome`](Self::outcome) tells what became of Fast Open.
    ///
    /// **Send only what may be delivered twice.** The network may duplicate a SYN, and a server that lost its
    /// memory takes the copy for a new connection (RFC 7413 §6.1). A request that must happen once belongs after a
    /// plain [`connect`](Self::connect).
    ///
    /// # Cancel safety
    /// Dropping the future aborts the connection, but the SYN may have left: `first_bytes` may already have been
    /// delivered, and acted upon.
    ///
    /// # Errors
    /// As [`connect`](Self::connect). An error does not mean that the peer has not read `first_bytes`; the same holds
    /// when several addresses are tried, one after the other.
    pub async fn connect_with<A: ToSocketAddrs>(
        net: &Net,
        addr: A,
        first_bytes: impl Into<Bytes>,
    ) -> io::Result<TcpStream> {
        TcpSocket::new(net).connect_with(addr, first_bytes).await
    }

    /// A stream whose own first bytes go with its SYN, for code that connects first and writes later (TLS, HTTP
    /// libraries). Nothing is sent until the first of these:
    ///
    /// - a flush, after something was written;
    /// - a shutdown of the write side;
    /// - one packet's worth of bytes written;
    /// - a read. With bytes written but not flushed, they go at once; with none, the SYN goes without data after
    ///   [`read_grace`](TcpSocket::read_grace), so that a protocol whose server speaks first does not wait for ever;
    /// - [`delivered`](Self::delivered) or [`try_read`](Self::try_read), after something was written.
    ///
    /// What keeps the connection from opening is reported by reads and writes. What is dropped before the first of
    /// these is never sent. As with [`connect_with`](Self::connect_with), the first bytes may be delivered twice.
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
    /// Waits until a read would not block: data, the end of the stream, or an error. May return when it would.
    ///
    /// # Cancel safety
    /// Safe.
    ///
    /// # Errors
    /// As reads.
    pub async fn readable(&self) -> io::Result<()> {
        self.connection.readable().await
    }

    /// Waits until a write would not block. May return when it would.
    ///
    /// # Cancel safety
    /// Safe.
    ///
    /// # Errors
    /// As writes.
    pub async fn writable(&self) -> io::Result<()> {
        self.connection.writable().await
    }

    /// Reads what is there. `Ok(0)` is the end of the stream, or an empty `buf`.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when nothing is there yet; else as reads.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.connection.try_read(buf)
    }

    /// Writes as much as fits.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when nothing fits; else as writes.
    pub fn try_write(&self, data: &[u8]) -> io::Result<usize> {
        self.connection.try_write(data)
    }

    /// Reads without consuming: the next read gives the same bytes. `Ok(0)` is the end of the stream.
    ///
    /// # Cancel safety
    /// Safe.
    ///
    /// # Errors
    /// As reads.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.connection.peek(buf).await
    }

    /// The next bytes as they came in, without a copy, at most `max` of them; `None` is the end of the stream.
    ///
    /// # Cancel safety
    /// Safe: bytes are handed out or stay.
    ///
    /// # Errors
    /// As reads.
    pub async fn read_chunk(&mut self, max: usize) -> io::Result<Option<Bytes>> {
        poll_fn(|cx| self.connection.poll_read_chunk(cx, max)).await
    }

    /// Writes all of `data` without copying it.
    ///
    /// # Cancel safety
    /// Not safe: a part may have been written when the future is dropped.
    ///
    /// # Errors
    /// As writes.
    pub async fn write_bytes(&mut self, mut data: Bytes) -> io::Result<()> {
        while !data.is_empty() {
            poll_fn(|cx| self.connection.poll_write_bytes(cx, &mut data)).await?;
        }
        Ok(())
    }

    /// Says that nothing more is coming soon: what was written leaves now, even if it is small (Nagle), and even on a
    /// SYN-ACK that is being held for more.
    pub fn push(&self) {
        self.connection.push();
    }

    /// Waits until the peer has acknowledged everything that was written, and the FIN after a shutdown.
    ///
    /// # Cancel safety
    /// Safe.
    ///
    /// # Errors
    /// Why the connection ended before.
    pub async fn delivered(&self) -> io::Result<()> {
        self.connection.delivered().await
    }

    /// Two borrowed halves, one for reading, one for writing, for use within one task.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        split::split(self)
    }

    /// Two owned halves that may move to different tasks. Dropping the write half shuts down the write side.
    #[must_use]
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        owned::split(self)
    }
}

/// What is known about the connection.
impl TcpStream {
    /// The peer's address.
    ///
    /// # Errors
    /// None today; the signature is tokio's.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.connection.peer())
    }

    /// The local address.
    ///
    /// # Errors
    /// [`NotConnected`](io::ErrorKind::NotConnected) before the SYN of a deferred stream;
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.connection.local_addr()
    }

    /// What became of Fast Open. [`Pending`](Outcome::Pending) until the SYN has been answered.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.connection.outcome()
    }

    /// Which bytes at the start of an accepted stream came in the SYN. Until
    /// [`confirmed`](EarlyData::confirmed), and after a restart of this host even then, they may be a replay of an
    /// earlier connection's (RFC 7413 §6.1): act only on what may happen twice.
    #[must_use]
    pub fn early_data(&self) -> EarlyData {
        self.connection.early_data()
    }

    /// Returns a snapshot of the connection: state, round trips, windows, retransmissions. The same on
    /// both backends.
    ///
    /// # Errors
    /// As [`local_addr`](Self::local_addr).
    pub fn info(&self) -> io::Result<StreamInfo> {
        self.connection.info()
    }

    /// Returns all that our stack knows of the connection.
    ///
    /// # Errors
    /// As [`local_addr`](Self::local_addr); [`Unsupported`](io::ErrorKind::Unsupported) on the kernel's
    /// sockets.
    pub fn connection_info(&self) -> io::Result<ConnectionInfo> {
        self.connection.connection_info()
    }

    /// What is known of the connection in one line, as `ss -tin` has it: sample it in a loop to see what limits a transfer.
    ///
    /// # Errors
    /// As [`local_addr`](Self::local_addr).
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
