//! A connection of either backend, shared by a stream and its halves.
use super::StreamInfo;
use super::stack::StackConnection;
use crate::error;
use crate::kernel::KernelConnection;
use bytes::Bytes;
use proto::{ConnectionInfo, EarlyData, Outcome, SocketOption, SocketOptions, WriteFlags};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::task::{Context, Poll};
use tokio::io::ReadBuf;

/// Closes the connection when it is dropped.
pub(super) enum Connection {
    Stack(StackConnection),
    Kernel(KernelConnection),
}

/// Calls the method of this name on the backend's connection.
macro_rules! on_both {
    ($( $(#[$doc:meta])* fn $name:ident(&self $(, $argument:ident: $type:ty)*) $(-> $result:ty)?; )+) => {
        impl Connection {
            $( $(#[$doc])* pub(super) fn $name(&self $(, $argument: $type)*) $(-> $result)? {
                match self {
                    Connection::Stack(connection) => connection.$name($($argument),*),
                    Connection::Kernel(connection) => connection.$name($($argument),*),
                }
            } )+
        }
    };
}

on_both! {
    fn poll_read(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>>;
    fn poll_read_chunk(&self, cx: &mut Context<'_>, max: usize) -> Poll<io::Result<Option<Bytes>>>;
    fn try_read(&self, buf: &mut [u8]) -> io::Result<usize>;
    fn poll_write(&self, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>>;
    fn poll_write_vectored(&self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>>;
    fn poll_write_bytes(&self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<io::Result<usize>>;
    fn poll_write_with(&self, cx: &mut Context<'_>, data: &[u8], flags: WriteFlags) -> Poll<io::Result<usize>>;
    fn try_write(&self, data: &[u8]) -> io::Result<usize>;
    fn try_write_with(&self, data: &[u8], flags: WriteFlags) -> io::Result<usize>;
    /// Opens a deferred stream that has something to send. Does nothing to an open one.
    fn flush(&self) -> io::Result<()>;
    fn push(&self);
    /// Queues the FIN. A connection that has ended is already shut down.
    fn shutdown(&self) -> io::Result<()>;
    /// Marks the end of writing. The bytes of a deferred stream go with the next read, and the FIN
    /// with them.
    fn end_writing(&self) -> io::Result<()>;
    fn peer(&self) -> SocketAddr;
    fn local_addr(&self) -> io::Result<SocketAddr>;
    fn outcome(&self) -> Outcome;
    fn early_data(&self) -> EarlyData;
    /// Returns the number of bytes on the SYN of an accepted connection.
    fn early_len(&self) -> usize;
    fn info(&self) -> io::Result<StreamInfo>;
    /// Returns the error that ended the connection, or that kept it from opening.
    fn take_error(&self) -> io::Result<Option<io::Error>>;
    /// Returns the hop limit of packets.
    fn ttl(&self) -> io::Result<u32>;
    fn options(&self) -> io::Result<SocketOptions>;
    fn set_option(&self, option: SocketOption) -> io::Result<()>;
    /// Writes both ends and the state, as far as there are any.
    fn fmt_as(&self, name: &str, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result;
}

impl Connection {
    // Boxed, so that a task that waits for our stack does not reserve the kernel's future.

    pub(super) async fn readable(&self) -> io::Result<()> {
        match self {
            Connection::Stack(connection) => poll_fn(|cx| connection.poll_readable(cx)).await,
            Connection::Kernel(connection) => Box::pin(connection.readable()).await,
        }
    }

    pub(super) async fn writable(&self) -> io::Result<()> {
        match self {
            Connection::Stack(connection) => poll_fn(|cx| connection.poll_writable(cx)).await,
            Connection::Kernel(connection) => Box::pin(connection.writable()).await,
        }
    }

    pub(super) async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Connection::Stack(connection) => poll_fn(|cx| connection.poll_peek(cx, buf)).await,
            Connection::Kernel(connection) => Box::pin(connection.peek(buf)).await,
        }
    }

    pub(super) async fn delivered(&self) -> io::Result<()> {
        match self {
            Connection::Stack(connection) => poll_fn(|cx| connection.poll_delivered(cx)).await,
            Connection::Kernel(connection) => Box::pin(connection.delivered()).await,
        }
    }

    /// The connection of our stack, for calls that the kernel's sockets do not have.
    fn stack(&self, what: &str) -> io::Result<&StackConnection> {
        match self {
            Connection::Stack(connection) => Ok(connection),
            Connection::Kernel(_) => Err(error::unsupported(what)),
        }
    }

    pub(super) fn connection_info(&self) -> io::Result<ConnectionInfo> {
        self.stack("connection_info")?.connection_info()
    }

    pub(super) fn ss(&self) -> io::Result<String> {
        self.stack("ss")?.ss()
    }

    pub(super) fn urgent_mark(&self) -> io::Result<Option<usize>> {
        self.stack("urgent_mark")?.urgent_mark()
    }

    pub(super) fn poll_read_urgent(&self, cx: &mut Context<'_>) -> Poll<io::Result<u8>> {
        self.stack("read_urgent")?.poll_read_urgent(cx)
    }

    pub(super) fn try_read_urgent(&self) -> io::Result<u8> {
        self.stack("try_read_urgent")?.try_read_urgent()
    }
}
