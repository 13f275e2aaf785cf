//! Methods that tokio's stream has beside reading and writing.
use super::TcpStream;
use super::connection::Connection;
use crate::error::unsupported_on_stack;
use crate::kernel;
use bytes::BufMut;
use proto::SocketOption;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::Poll;
use tokio::io::{Interest, Ready};

/// Bytes that [`TcpStream::try_read_buf`] reads at most.
const READ_MAX: usize = 16 * 1024;

/// Methods that tokio's stream has, too.
impl TcpStream {
    /// Takes over a connected stream of the kernel.
    ///
    /// # Errors
    /// What the operating system reports when the stream cannot be set nonblocking or watched.
    ///
    /// # Panics
    /// Outside a tokio runtime, or in one without I/O enabled.
    pub fn from_std(stream: std::net::TcpStream) -> io::Result<TcpStream> {
        let peer = stream.peer_addr()?;
        stream.set_nonblocking(true)?;
        Ok(TcpStream::of_kernel(kernel::Open::taken_over(tokio::net::TcpStream::from_std(stream)?), peer))
    }

    /// Gives the kernel's stream back. It stays nonblocking.
    ///
    /// # Errors
    /// [`Unsupported`](io::ErrorKind::Unsupported) on a stack of our own, whose streams are no
    /// descriptors; [`NotConnected`](io::ErrorKind::NotConnected) before the SYN of a deferred
    /// stream; [`ResourceBusy`](io::ErrorKind::ResourceBusy) while a half of the stream lives.
    pub fn into_std(self) -> io::Result<std::net::TcpStream> {
        let connection = std::sync::Arc::into_inner(self.connection).ok_or(io::ErrorKind::ResourceBusy)?;
        match connection {
            Connection::Stack(_) => Err(unsupported_on_stack("into_std")),
            Connection::Kernel(connection) => connection.into_std(),
        }
    }

    /// Returns the error that ended the connection, if any (`SO_ERROR`). The kernel forgets the
    /// error with this call: a later read returns the end of the stream. On a stack of our own it
    /// stays.
    ///
    /// # Errors
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.connection.take_error()
    }

    /// Waits until a read or a write, as `interest` says, would not block. May return when it
    /// would.
    ///
    /// # Cancel safety
    /// Safe.
    ///
    /// # Errors
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down. An
    /// error of the connection makes the stream ready; the read or write reports it.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        let mut readable = std::pin::pin!(self.readable());
        let mut writable = std::pin::pin!(self.writable());
        poll_fn(|cx| {
            let mut ready = Ready::EMPTY;
            if interest.is_readable() && readable.as_mut().poll(cx).is_ready() {
                ready |= Ready::READABLE;
            }
            if interest.is_writable() && writable.as_mut().poll(cx).is_ready() {
                ready |= Ready::WRITABLE;
            }
            if ready.is_empty() { Poll::Pending } else { Poll::Ready(Ok(ready)) }
        })
        .await
    }

    /// Reads what is there into the free part of `buf`. `Ok(0)` is the end of the stream, or a full
    /// `buf`.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when nothing is there yet; else as reads.
    pub fn try_read_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        let mut bytes = vec![0; buf.remaining_mut().min(READ_MAX)];
        let len = self.try_read(&mut bytes)?;
        buf.put_slice(&bytes[..len]);
        Ok(len)
    }

    /// Writes as much of the slices as fits, in their order.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when nothing fits; else as writes.
    pub fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut written = 0;
        for slice in slices.iter().filter(|slice| !slice.is_empty()) {
            match self.try_write(slice) {
                Ok(len) if len == slice.len() => written += len,
                Ok(len) => return Ok(written + len),
                Err(error) if written == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(written)
    }

    /// Returns the hop limit of packets (`IP_TTL`, `IPV6_UNICAST_HOPS`).
    ///
    /// # Errors
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn ttl(&self) -> io::Result<u32> {
        self.connection.ttl()
    }

    /// Sets the hop limit of packets, 1 to 255.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for another value;
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let hops = u8::try_from(ttl).ok().filter(|hops| *hops > 0);
        let hops = hops.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("cannot use the hop limit {ttl}: give a number from 1 to 255"),
            )
        })?;
        self.set_option(SocketOption::HopLimit(Some(hops)))
    }
}
