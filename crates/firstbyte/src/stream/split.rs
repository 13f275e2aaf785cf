//! Two halves that borrow their stream.
use super::TcpStream;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The read half of [`TcpStream::split`]. Use `as_ref` for other methods (`info`, `outcome`, …).
#[derive(Debug)]
pub struct ReadHalf<'a>(&'a TcpStream);

/// The write half of [`TcpStream::split`]; use `as_ref` for other methods. Shutting it down sends
/// the FIN; dropping it has no effect.
#[derive(Debug)]
pub struct WriteHalf<'a>(&'a TcpStream);

pub(super) fn split(stream: &mut TcpStream) -> (ReadHalf<'_>, WriteHalf<'_>) {
    (ReadHalf(stream), WriteHalf(stream))
}

impl ReadHalf<'_> {
    /// Waits like [`TcpStream::readable`].
    ///
    /// # Errors
    /// Fails like [`TcpStream::readable`].
    pub async fn readable(&self) -> io::Result<()> {
        self.0.readable().await
    }

    /// Reads like [`TcpStream::try_read`].
    ///
    /// # Errors
    /// Fails like [`TcpStream::try_read`].
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buf)
    }

    /// Reads like [`TcpStream::peek`].
    ///
    /// # Errors
    /// Fails like [`TcpStream::peek`].
    pub async fn peek(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.peek(buf).await
    }

    /// Returns the peer's address, see [`TcpStream::peer_addr`].
    ///
    /// # Errors
    /// Fails like [`TcpStream::peer_addr`].
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }

    /// Returns the local address, see [`TcpStream::local_addr`].
    ///
    /// # Errors
    /// Fails like [`TcpStream::local_addr`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl WriteHalf<'_> {
    /// Waits like [`TcpStream::writable`].
    ///
    /// # Errors
    /// Fails like [`TcpStream::writable`].
    pub async fn writable(&self) -> io::Result<()> {
        self.0.writable().await
    }

    /// Writes like [`TcpStream::try_write`].
    ///
    /// # Errors
    /// Fails like [`TcpStream::try_write`].
    pub fn try_write(&self, data: &[u8]) -> io::Result<usize> {
        self.0.try_write(data)
    }

    /// Pushes like [`TcpStream::push`].
    pub fn push(&self) {
        self.0.push();
    }

    /// Returns the peer's address, see [`TcpStream::peer_addr`].
    ///
    /// # Errors
    /// Fails like [`TcpStream::peer_addr`].
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }

    /// Returns the local address, see [`TcpStream::local_addr`].
    ///
    /// # Errors
    /// Fails like [`TcpStream::local_addr`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl AsRef<TcpStream> for ReadHalf<'_> {
    fn as_ref(&self) -> &TcpStream {
        self.0
    }
}

impl AsRef<TcpStream> for WriteHalf<'_> {
    fn as_ref(&self) -> &TcpStream {
        self.0
    }
}

impl AsyncRead for ReadHalf<'_> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.0.connection.poll_read(cx, buf)
    }
}

impl AsyncWrite for WriteHalf<'_> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.0.connection.poll_write(cx, data)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.connection.poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.connection.flush())
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.connection.shutdown())
    }
}
