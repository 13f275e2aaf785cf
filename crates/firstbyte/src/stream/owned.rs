//! Two halves that own their stream together, for two tasks.
use super::TcpStream;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The read half of [`TcpStream::into_split`]. Use `as_ref` for other methods (`info`, `outcome`,
/// …).
#[derive(Debug)]
pub struct OwnedReadHalf {
    stream: TcpStream,
}

/// The write half of [`TcpStream::into_split`]; use `as_ref` for other methods. Dropping it shuts
/// down the write side, unless it is [forgotten](Self::forget). For a
/// [deferred](TcpStream::connect_deferred) stream that has sent nothing yet, this happens with the
/// next read.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    stream: TcpStream,
    shuts_down: bool,
}

/// Error of [`OwnedReadHalf::reunite`]: the halves are not of the same stream. Contains both.
#[derive(Debug)]
pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

impl std::fmt::Display for ReuniteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the halves are not of the same stream")
    }
}

impl std::error::Error for ReuniteError {}

pub(super) fn split(stream: TcpStream) -> (OwnedReadHalf, OwnedWriteHalf) {
    let other = TcpStream { connection: Arc::clone(&stream.connection) };
    (OwnedReadHalf { stream }, OwnedWriteHalf { stream: other, shuts_down: true })
}

fn reunite(read: OwnedReadHalf, mut write: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
    if !Arc::ptr_eq(&read.stream.connection, &write.stream.connection) {
        return Err(ReuniteError(read, write));
    }
    write.shuts_down = false;
    Ok(read.stream)
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if self.shuts_down {
            // A connection that has ended needs no FIN.
            let _ = self.stream.connection.end_writing();
        }
    }
}

impl OwnedReadHalf {
    /// Reunites the halves of a stream.
    ///
    /// # Errors
    /// They are not of the same stream.
    pub fn reunite(self, other: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
        reunite(self, other)
    }

    /// Waits like [`TcpStream::readable`].
    ///
    /// # Errors
    /// Fails like [`TcpStream::readable`].
    pub async fn readable(&self) -> io::Result<()> {
        self.stream.readable().await
    }

    /// Reads like [`TcpStream::try_read`].
    ///
    /// # Errors
    /// Fails like [`TcpStream::try_read`].
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.stream.try_read(buf)
    }

    /// Reads like [`TcpStream::peek`].
    ///
    /// # Errors
    /// Fails like [`TcpStream::peek`].
    pub async fn peek(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.stream.peek(buf).await
    }

    /// Returns the peer's address, see [`TcpStream::peer_addr`].
    ///
    /// # Errors
    /// Fails like [`TcpStream::peer_addr`].
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }

    /// Returns the local address, see [`TcpStream::local_addr`].
    ///
    /// # Errors
    /// Fails like [`TcpStream::local_addr`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }
}

impl OwnedWriteHalf {
    /// Reunites the halves of a stream.
    ///
    /// # Errors
    /// They are not of the same stream.
    pub fn reunite(self, other: OwnedReadHalf) -> Result<TcpStream, ReuniteError> {
        reunite(other, self)
    }

    /// Drops the half without shutting down the write side.
    pub fn forget(mut self) {
        self.shuts_down = false;
    }

    /// Waits like [`TcpStream::writable`].
    ///
    /// # Errors
    /// Fails like [`TcpStream::writable`].
    pub async fn writable(&self) -> io::Result<()> {
        self.stream.writable().await
    }

    /// Writes like [`TcpStream::try_write`].
    ///
    /// # Errors
    /// Fails like [`TcpStream::try_write`].
    pub fn try_write(&self, data: &[u8]) -> io::Result<usize> {
        self.stream.try_write(data)
    }

    /// Pushes like [`TcpStream::push`].
    pub fn push(&self) {
        self.stream.push();
    }

    /// Returns the peer's address, see [`TcpStream::peer_addr`].
    ///
    /// # Errors
    /// Fails like [`TcpStream::peer_addr`].
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }

    /// Returns the local address, see [`TcpStream::local_addr`].
    ///
    /// # Errors
    /// Fails like [`TcpStream::local_addr`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }
}

impl AsRef<TcpStream> for OwnedReadHalf {
    fn as_ref(&self) -> &TcpStream {
        &self.stream
    }
}

impl AsRef<TcpStream> for OwnedWriteHalf {
    fn as_ref(&self) -> &TcpStream {
        &self.stream
    }
}

impl AsyncRead for OwnedReadHalf {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.stream.connection.poll_read(cx, buf)
    }
}

impl AsyncWrite for OwnedWriteHalf {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.stream.connection.poll_write(cx, data)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream.connection.poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.stream.connection.flush())
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.stream.connection.shutdown())
    }
}
