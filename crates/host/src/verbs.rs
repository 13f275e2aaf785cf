//! The methods of an application, with waiting.
//!
//! `poll_*` methods register the waker and return [`Poll::Pending`] instead of `Blocked`. `try_*`
//! methods return `Blocked`.
use crate::host::Shared;
use crate::waiters::Woken;
use crate::{Clock, Error, Host};
use bytes::Bytes;
use core::net::SocketAddr;
use core::task::{Context, Poll};
use proto::{
    AcceptError, CloseReason, ConnId, ConnectError, ConnectOptions, ConnectionInfo, EarlyData, Events,
    Instant, ListenError, ListenOptions, ListenerId, ListenerInfo, OptionError, Outcome, ReadError, SocketId,
    SocketOption, SocketOptions, State, UrgentError, WriteError, WriteFlags,
};
use std::io::IoSlice;

/// Events after which a read may succeed.
const READ: Events = Events::READABLE.union(Events::CLOSED);
/// Events after which a write may succeed.
const WRITE: Events = Events::WRITABLE.union(Events::CONNECTED).union(Events::CLOSED);
/// Events that may end the wait for an urgent byte.
const URGENT: Events = READ.union(Events::URGENT);
/// Events that may end the wait for a handshake.
const CONNECT: Events = Events::CONNECTED.union(Events::CLOSED);
/// Events that may end the wait for the last ACK, which may also be the answer to a SYN with data.
const DELIVER: Events = Events::SENT_ALL.union(Events::CONNECTED).union(Events::CLOSED);
/// Events after which an accept may succeed.
const ACCEPT: Events = Events::ACCEPTABLE.union(Events::CLOSED);

/// Listeners.
impl<C: Clock> Host<C> {
    /// Opens a listener, to be closed with [`close_listener`](Self::close_listener).
    pub fn listen(
        &self,
        local: SocketAddr,
        options: ListenOptions,
    ) -> Result<ListenerId, Error<ListenError>> {
        self.mutate(|shared, now, _| {
            shared.ensure_running()?;
            let id = shared.stack.listen(now, local, options).map_err(Error::Stack)?;
            shared.listeners.insert(id);
            Ok(id)
        })
    }

    /// Returns the next connection of a listener, or `Blocked`.
    pub fn try_accept(&self, id: ListenerId) -> Result<(ConnId, SocketAddr), Error<AcceptError>> {
        self.consult(|shared, now, _| shared.accept(now, id))
    }

    /// Waits for the next connection of a listener. Any number of tasks may wait.
    pub fn poll_accept(
        &self,
        cx: &mut Context<'_>,
        id: ListenerId,
    ) -> Poll<Result<(ConnId, SocketAddr), Error<AcceptError>>> {
        self.consult(|shared, now, woken| match shared.accept(now, id) {
            Err(Error::Stack(AcceptError::Blocked)) => {
                shared.park(now, SocketId::Listener(id), ACCEPT, cx, woken);
                Poll::Pending
            }
            done => Poll::Ready(done),
        })
    }

    /// Returns a snapshot of a listener.
    pub fn listener_info(&self, id: ListenerId) -> Option<ListenerInfo> {
        self.inspect(|stack| stack.listener_info(id))
    }

    /// Changes the backlog, like a repeated `listen`, capped by the current `net.core.somaxconn`.
    /// Returns false if there is no such listener.
    pub fn set_backlog(&self, id: ListenerId, backlog: u32) -> bool {
        self.mutate(|shared, now, _| shared.stack.set_backlog(now, id, backlog))
    }

    /// Closes a listener and resets connections that were not accepted.
    pub fn close_listener(&self, id: ListenerId) {
        self.let_go(|shared, now, woken| {
            if shared.listeners.remove(&id) {
                shared.stack.close_listener(now, id);
                shared.waiters.remove(SocketId::Listener(id), woken);
            }
        });
    }
}

/// Opening and closing connections.
impl<C: Clock> Host<C> {
    /// Opens a connection; release it with [`close`](Self::close) or [`abort`](Self::abort). The
    /// SYN leaves with the pump's next step.
    pub fn connect(&self, peer: SocketAddr, options: ConnectOptions) -> Result<ConnId, Error<ConnectError>> {
        self.mutate(|shared, now, _| {
            shared.ensure_running()?;
            let id = shared.stack.connect(now, peer, options).map_err(Error::Stack)?;
            shared.connections.insert(id);
            Ok(id)
        })
    }

    /// Waits for the answer to the SYN of [`connect`](Self::connect).
    ///
    /// # Errors
    /// The reason why the connection ended instead.
    pub fn poll_connected(&self, cx: &mut Context<'_>, id: ConnId) -> Poll<Result<(), Error<CloseReason>>> {
        self.consult(|shared, now, woken| {
            shared.ensure_running()?;
            match shared.stack.close_reason(id) {
                None | Some(CloseReason::Finished) => {}
                Some(reason) => return Poll::Ready(Err(Error::Stack(reason))),
            }
            match shared.stack.state(id) {
                Some(State::SynSent) => {
                    shared.park(now, SocketId::Connection(id), CONNECT, cx, woken);
                    Poll::Pending
                }
                Some(_) => Poll::Ready(Ok(())),
                None => Poll::Ready(Err(Error::Stopped)),
            }
        })
    }

    /// Closes the sending direction: a FIN follows the written data.
    pub fn shutdown(&self, id: ConnId) -> Result<(), Error<WriteError>> {
        self.mutate(|shared, now, _| {
            let ended = shared.stack.shutdown(now, id);
            ended.map_err(|error| shared.write_error(error))
        })
    }

    /// Releases a connection: `id` becomes invalid. Unread data (or linger 0) resets it; otherwise
    /// written data is delivered in the background.
    pub fn close(&self, id: ConnId) {
        self.let_go(|shared, now, woken| {
            if shared.connections.remove(&id) {
                shared.stack.close(now, id);
                shared.waiters.remove(SocketId::Connection(id), woken);
            }
        });
    }

    /// Resets and releases a connection.
    pub fn abort(&self, id: ConnId) {
        self.let_go(|shared, now, woken| {
            if shared.connections.remove(&id) {
                shared.stack.abort(now, id);
                shared.waiters.remove(SocketId::Connection(id), woken);
            }
        });
    }

    /// Waits until everything written (and a FIN, if queued) is acknowledged, or the connection has
    /// ended.
    pub fn poll_delivered(&self, cx: &mut Context<'_>, id: ConnId) -> Poll<Result<(), Error<WriteError>>> {
        self.consult(|shared, now, woken| {
            if let Some(reason) = shared.stack.close_reason(id)
                && reason != CloseReason::Finished
            {
                return Poll::Ready(Err(Error::Stack(WriteError::Closed(reason))));
            }
            match shared.stack.is_delivered(id) {
                None => Poll::Ready(Err(shared.write_error(WriteError::NotFound))),
                Some(false) => {
                    shared.park(now, SocketId::Connection(id), DELIVER, cx, woken);
                    Poll::Pending
                }
                Some(true) => Poll::Ready(Ok(())),
            }
        })
    }
}

/// Reading.
impl<C: Clock> Host<C> {
    /// Reads into `buf`, or returns `Blocked`.
    pub fn try_read(&self, id: ConnId, buf: &mut [u8]) -> Result<usize, Error<ReadError>> {
        self.consult(|shared, now, _| {
            shared.stack.read(now, id, buf).map_err(|error| shared.read_error(error))
        })
    }

    /// Reads into `buf`; 0 for a non-empty `buf` is the end of the stream.
    pub fn poll_read(
        &self,
        cx: &mut Context<'_>,
        id: ConnId,
        buf: &mut [u8],
    ) -> Poll<Result<usize, Error<ReadError>>> {
        self.poll_read_with(cx, id, |shared, now| shared.stack.read(now, id, buf))
    }

    /// Reads without copying, at most `max` bytes; `None` is the end of the stream.
    pub fn poll_read_chunk(
        &self,
        cx: &mut Context<'_>,
        id: ConnId,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, Error<ReadError>>> {
        self.poll_read_with(cx, id, |shared, now| shared.stack.read_chunk(now, id, max))
    }

    /// Passes available data to `take` under one lock, in chunks of at most `max` bytes in total.
    /// Returns the number of bytes; 0 is the end of the stream. Stops before an urgent byte.
    pub fn poll_read_chunks(
        &self,
        cx: &mut Context<'_>,
        id: ConnId,
        max: usize,
        mut take: impl FnMut(&[u8]),
    ) -> Poll<Result<usize, Error<ReadError>>> {
        self.poll_read_with(cx, id, |shared, now| {
            let mut total = 0;
            while let Some(chunk) = shared.stack.read_chunk(now, id, max - total)? {
                take(&chunk);
                total += chunk.len();
                let at_mark = shared.stack.urgent_mark(id) == Some(0);
                if total == max || at_mark || shared.stack.recv_queue(id) == 0 {
                    break;
                }
            }
            Ok(total)
        })
    }

    /// Reads into `buf` without consuming: the next read returns the same bytes.
    pub fn poll_peek(
        &self,
        cx: &mut Context<'_>,
        id: ConnId,
        buf: &mut [u8],
    ) -> Poll<Result<usize, Error<ReadError>>> {
        self.poll_read_with(cx, id, |shared, now| shared.stack.peek(now, id, buf))
    }

    /// Returns the number of bytes before the last urgent byte that the peer announced; see
    /// [`Stack::urgent_mark`](proto::Stack::urgent_mark).
    pub fn urgent_mark(&self, id: ConnId) -> Option<usize> {
        self.inspect(|stack| stack.urgent_mark(id))
    }

    /// Reads the urgent byte of a socket without SO_OOBINLINE; see
    /// [`Stack::read_urgent`](proto::Stack::read_urgent).
    pub fn try_read_urgent(&self, id: ConnId, take: bool) -> Result<u8, Error<UrgentError>> {
        self.consult(|shared, _, _| shared.read_urgent(id, take))
    }

    /// Reads the urgent byte like [`try_read_urgent`](Self::try_read_urgent), and waits for it,
    /// announced or not.
    pub fn poll_read_urgent(&self, cx: &mut Context<'_>, id: ConnId) -> Poll<Result<u8, Error<UrgentError>>> {
        self.consult(|shared, now, woken| match shared.await_urgent(id) {
            Err(Error::Stack(UrgentError::Blocked)) => {
                shared.park(now, SocketId::Connection(id), URGENT, cx, woken);
                Poll::Pending
            }
            done => Poll::Ready(done),
        })
    }

    /// Waits until a read would not block.
    pub fn poll_readable(&self, cx: &mut Context<'_>, id: ConnId) -> Poll<Result<(), Error<ReadError>>> {
        self.poll_peek(cx, id, &mut [0]).map(|peeked| peeked.map(drop))
    }

    fn poll_read_with<R>(
        &self,
        cx: &mut Context<'_>,
        id: ConnId,
        read: impl FnOnce(&mut Shared, Instant) -> Result<R, ReadError>,
    ) -> Poll<Result<R, Error<ReadError>>> {
        self.consult(|shared, now, woken| match read(shared, now) {
            Err(ReadError::Blocked) => {
                shared.park(now, SocketId::Connection(id), READ, cx, woken);
                Poll::Pending
            }
            done => Poll::Ready(done.map_err(|error| shared.read_error(error))),
        })
    }
}

/// Writing.
impl<C: Clock> Host<C> {
    /// Writes as many bytes as fit, or returns `Blocked`.
    pub fn try_write(&self, id: ConnId, data: &[u8]) -> Result<usize, Error<WriteError>> {
        self.mutate(|shared, now, _| {
            shared.stack.write(now, id, data).map_err(|error| shared.write_error(error))
        })
    }

    /// Writes like [`try_write`](Self::try_write), with flags that apply if all of `data` was
    /// accepted.
    pub fn try_write_with(
        &self,
        id: ConnId,
        data: &[u8],
        flags: WriteFlags,
    ) -> Result<usize, Error<WriteError>> {
        self.mutate(|shared, now, _| {
            shared.stack.write_with(now, id, data, flags).map_err(|error| shared.write_error(error))
        })
    }

    /// Writes like [`poll_write`](Self::poll_write), with flags that apply if all of `data` was
    /// accepted.
    pub fn poll_write_flagged(
        &self,
        cx: &mut Context<'_>,
        id: ConnId,
        data: &[u8],
        flags: WriteFlags,
    ) -> Poll<Result<usize, Error<WriteError>>> {
        self.poll_write_with(cx, id, |shared, now| shared.stack.write_with(now, id, data, flags))
    }

    /// Writes as many bytes as fit.
    pub fn poll_write(
        &self,
        cx: &mut Context<'_>,
        id: ConnId,
        data: &[u8],
    ) -> Poll<Result<usize, Error<WriteError>>> {
        self.poll_write_with(cx, id, |shared, now| shared.stack.write(now, id, data))
    }

    /// Writes bytes without copying; the rest stays in `data`.
    pub fn poll_write_bytes(
        &self,
        cx: &mut Context<'_>,
        id: ConnId,
        data: &mut Bytes,
    ) -> Poll<Result<usize, Error<WriteError>>> {
        self.poll_write_with(cx, id, |shared, now| shared.stack.write_bytes(now, id, data))
    }

    /// Writes as many bytes of several slices as fit, in order.
    pub fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        id: ConnId,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize, Error<WriteError>>> {
        self.poll_write_with(cx, id, |shared, now| {
            let mut total = 0;
            for slice in slices.iter().filter(|slice| !slice.is_empty()) {
                match shared.stack.write(now, id, slice) {
                    Ok(written) => {
                        total += written;
                        if written < slice.len() {
                            break;
                        }
                    }
                    Err(_) if total > 0 => break,
                    Err(error) => return Err(error),
                }
            }
            Ok(total)
        })
    }

    /// Waits until a write would not block.
    pub fn poll_writable(&self, cx: &mut Context<'_>, id: ConnId) -> Poll<Result<(), Error<WriteError>>> {
        self.poll_write_with(cx, id, |shared, _| shared.stack.send_capacity(id).map(drop))
    }

    /// Tells the stack that no more data follows soon: ends the hold of a SYN-ACK and Nagle's wait.
    pub fn push(&self, id: ConnId) {
        self.mutate(|shared, now, _| shared.stack.push(now, id));
    }

    fn poll_write_with<R>(
        &self,
        cx: &mut Context<'_>,
        id: ConnId,
        write: impl FnOnce(&mut Shared, Instant) -> Result<R, WriteError>,
    ) -> Poll<Result<R, Error<WriteError>>> {
        self.consult(|shared, now, woken| match write(shared, now) {
            Err(WriteError::Blocked) => {
                shared.park(now, SocketId::Connection(id), WRITE, cx, woken);
                Poll::Pending
            }
            done => Poll::Ready(done.map_err(|error| shared.write_error(error))),
        })
    }
}

/// Options and snapshots of one connection.
impl<C: Clock> Host<C> {
    /// Changes one option.
    ///
    /// # Errors
    /// See [`OptionError`].
    pub fn set_option(&self, id: ConnId, option: SocketOption) -> Result<(), OptionError> {
        self.mutate(|shared, now, _| shared.stack.set_option(now, id, option))
    }

    /// Returns the options of a connection; `None` once it was released.
    pub fn options(&self, id: ConnId) -> Option<SocketOptions> {
        self.inspect(|stack| stack.options(id))
    }

    /// Returns a snapshot of a connection; `None` once it was released.
    pub fn info(&self, id: ConnId) -> Option<ConnectionInfo> {
        self.inspect(|stack| stack.info(id))
    }

    /// Formats the connection like `ss -tin` (see [`ConnectionInfo::ss`]); `None` once it was
    /// released.
    pub fn ss(&self, id: ConnId) -> Option<String> {
        let now = self.clock().now();
        self.info(id).map(|info| info.ss(now).to_string())
    }

    /// Returns the outcome of Fast Open; `None` once the connection was released.
    pub fn outcome(&self, id: ConnId) -> Option<Outcome> {
        self.inspect(|stack| stack.outcome(id))
    }

    /// Returns the bytes that arrived on the SYN; `None` once the connection was released.
    pub fn early_data(&self, id: ConnId) -> Option<EarlyData> {
        self.inspect(|stack| stack.early_data(id))
    }

    /// Returns why the connection ended; `None` while it lives.
    pub fn close_reason(&self, id: ConnId) -> Option<CloseReason> {
        self.inspect(|stack| stack.close_reason(id))
    }
}

impl Shared {
    fn accept(&mut self, now: Instant, id: ListenerId) -> Result<(ConnId, SocketAddr), Error<AcceptError>> {
        self.ensure_running()?;
        let (connection, peer) = self.stack.accept(now, id).map_err(Error::Stack)?;
        self.connections.insert(connection);
        Ok((connection, peer))
    }

    fn park(
        &mut self,
        now: Instant,
        socket: SocketId,
        interest: Events,
        cx: &Context<'_>,
        woken: &mut Woken,
    ) {
        self.waiters.register(now, socket, interest, cx.waker(), woken);
    }

    fn read_urgent(&mut self, id: ConnId, take: bool) -> Result<u8, Error<UrgentError>> {
        let read = self.stack.read_urgent(id, take);
        read.map_err(|error| self.ended_or(error, error == UrgentError::NotFound))
    }

    /// Reads like [`read_urgent`](Self::read_urgent), and blocks if an urgent byte was not
    /// announced and may still come.
    fn await_urgent(&mut self, id: ConnId) -> Result<u8, Error<UrgentError>> {
        let read = self.read_urgent(id, true);
        let is_apart = self.stack.options(id).is_some_and(|options| options.urgent_apart);
        if read != Err(Error::Stack(UrgentError::None)) || !is_apart {
            return read;
        }
        Err(Error::Stack(match (self.stack.close_reason(id), self.stack.state(id)) {
            (Some(reason), _) => UrgentError::Closed(reason),
            (None, Some(State::CloseWait | State::Closing | State::LastAck | State::TimeWait)) => {
                UrgentError::Closed(CloseReason::Finished)
            }
            (None, _) => UrgentError::Blocked,
        }))
    }

    fn read_error(&self, error: ReadError) -> Error<ReadError> {
        self.ended_or(error, error == ReadError::NotFound)
    }

    fn write_error(&self, error: WriteError) -> Error<WriteError> {
        self.ended_or(error, error == WriteError::NotFound)
    }

    /// Handles vanish when the host stops: this explains the error better.
    fn ended_or<E>(&self, error: E, is_unknown: bool) -> Error<E> {
        match self.ensure_running::<E>() {
            Err(stopped) if is_unknown => stopped,
            _ => Error::Stack(error),
        }
    }
}
