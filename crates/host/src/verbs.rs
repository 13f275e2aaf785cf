//! The verbs of an application, with waiting.
//!
//! `poll_*` never say `Blocked`: they register the waker and return [`Poll::Pending`]. `try_*` do the opposite.
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

/// What makes reading worth another try.
const READ: Events = Events::READABLE.union(Events::CLOSED);
/// What makes writing worth another try.
const WRITE: Events = Events::WRITABLE.union(Events::CONNECTED).union(Events::CLOSED);
/// What may end the wait for an urgent byte.
const URGENT: Events = READ.union(Events::URGENT);
/// What may end the wait for a handshake.
const CONNECT: Events = Events::CONNECTED.union(Events::CLOSED);
/// What may end the wait for the last acknowledgement, which the answer to a SYN with data is, too.
const DELIVER: Events = Events::SENT_ALL.union(Events::CONNECTED).union(Events::CLOSED);
/// What makes accepting worth another try.
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

    /// The next connection of a listener, or `Blocked`.
    pub fn try_accept(&self, id: ListenerId) -> Result<(ConnId, SocketAddr), Error<AcceptError>> {
        self.consult(|shared, now, _| shared.accept(now, id))
    }

    /// The next connection of a listener. Any number of tasks may wait.
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

    /// A snapshot of a listener.
    pub fn listener_info(&self, id: ListenerId) -> Option<ListenerInfo> {
        self.inspect(|stack| stack.listener_info(id))
    }

    /// `listen` once more: another backlog from now on, capped by `net.core.somaxconn` as it is now. False: no such listener.
    pub fn set_backlog(&self, id: ListenerId, backlog: u32) -> bool {
        self.mutate(|shared, now, _| shared.stack.set_backlog(now, id, backlog))
    }

    /// Closes a listener and resets what nobody accepted.
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
    /// Opens a connection, to be let go with [`close`](Self::close) or [`abort`](Self::abort). The SYN leaves
    /// with the pump's next step.
    pub fn connect(&self, peer: SocketAddr, options: ConnectOptions) -> Result<ConnId, Error<ConnectError>> {
        self.mutate(|shared, now, _| {
            shared.ensure_running()?;
            let id = shared.stack.connect(now, peer, options).map_err(Error::Stack)?;
            shared.connections.insert(id);
            Ok(id)
        })
    }

    /// Waits until the SYN of [`connect`](Self::connect) has been answered.
    ///
    /// # Errors
    /// Why the connection ended instead.
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

    /// Ends the sending direction: FIN after what was written.
    pub fn shutdown(&self, id: ConnId) -> Result<(), Error<WriteError>> {
        self.mutate(|shared, now, _| {
            let ended = shared.stack.shutdown(now, id);
            ended.map_err(|error| shared.write_error(error))
        })
    }

    /// Lets go of a connection: `id` is invalid from here on. Unread data (or linger 0) resets; else what was
    /// written is delivered in the background.
    pub fn close(&self, id: ConnId) {
        self.let_go(|shared, now, woken| {
            if shared.connections.remove(&id) {
                shared.stack.close(now, id);
                shared.waiters.remove(SocketId::Connection(id), woken);
            }
        });
    }

    /// Resets and lets go.
    pub fn abort(&self, id: ConnId) {
        self.let_go(|shared, now, woken| {
            if shared.connections.remove(&id) {
                shared.stack.abort(now, id);
                shared.waiters.remove(SocketId::Connection(id), woken);
            }
        });
    }

    /// Waits until everything written (and a FIN, if queued) has been acknowledged, or the connection ended.
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
    /// Reads into `buf`, or says `Blocked`.
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

    /// Hands what is there to `take`, in chunks of at most `max` bytes in all, under one lock. Returns how many
    /// bytes that were; 0 is the end of the stream. Stops before an urgent byte.
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

    /// Reads into `buf` without consuming: the next read gives the same bytes.
    pub fn poll_peek(
        &self,
        cx: &mut Context<'_>,
        id: ConnId,
        buf: &mut [u8],
    ) -> Poll<Result<usize, Error<ReadError>>> {
        self.poll_read_with(cx, id, |shared, now| shared.stack.peek(now, id, buf))
    }

    /// Bytes before the last urgent one of which the peer told; see [`Stack::urgent_mark`](proto::Stack::urgent_mark).
    pub fn urgent_mark(&self, id: ConnId) -> Option<usize> {
        self.inspect(|stack| stack.urgent_mark(id))
    }

    /// The urgent byte of a socket that reads it apart; see [`Stack::read_urgent`](proto::Stack::read_urgent).
    pub fn try_read_urgent(&self, id: ConnId, take: bool) -> Result<u8, Error<UrgentError>> {
        self.consult(|shared, _, _| shared.read_urgent(id, take))
    }

    /// As [`try_read_urgent`](Self::try_read_urgent), and waits for one that was told of and for one that was not.
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
    /// Takes as many bytes as fit, or says `Blocked`.
    pub fn try_write(&self, id: ConnId, data: &[u8]) -> Result<usize, Error<WriteError>> {
        self.mutate(|shared, now, _| {
            shared.stack.write(now, id, data).map_err(|error| shared.write_error(error))
        })
    }

    /// As [`try_write`](Self::try_write), with flags that hold if all of `data` was taken.
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

    /// As [`poll_write`](Self::poll_write), with flags that hold if all of `data` was taken.
    pub fn poll_write_flagged(
        &self,
        cx: &mut Context<'_>,
        id: ConnId,
        data: &[u8],
        flags: WriteFlags,
    ) -> Poll<Result<usize, Error<WriteError>>> {
        self.poll_write_with(cx, id, |shared, now| shared.stack.write_with(now, id, data, flags))
    }

    /// Takes as many bytes as fit.
    pub fn poll_write(
        &self,
        cx: &mut Context<'_>,
        id: ConnId,
        data: &[u8],
    ) -> Poll<Result<usize, Error<WriteError>>> {
        self.poll_write_with(cx, id, |shared, now| shared.stack.write(now, id, data))
    }

    /// Takes bytes without copying; what does not fit stays in `data`.
    pub fn poll_write_bytes(
        &self,
        cx: &mut Context<'_>,
        id: ConnId,
        data: &mut Bytes,
    ) -> Poll<Result<usize, Error<WriteError>>> {
        self.poll_write_with(cx, id, |shared, now| shared.stack.write_bytes(now, id, data))
    }

    /// Takes as many bytes as fit of several slices, in order.
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

    /// Says that nothing more is coming soon: ends the hold of a SYN-ACK and Nagle's wait.
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

    /// The options of a connection; `None` once it was let go.
    pub fn options(&self, id: ConnId) -> Option<SocketOptions> {
        self.inspect(|stack| stack.options(id))
    }

    /// A snapshot of a connection; `None` once it was let go.
    pub fn info(&self, id: ConnId) -> Option<ConnectionInfo> {
        self.inspect(|stack| stack.info(id))
    }

    /// The connection in the words of `ss -tin`, now (see [`ConnectionInfo::ss`]); `None` once it was let go.
    pub fn ss(&self, id: ConnId) -> Option<String> {
        let now = self.clock().now();
        self.info(id).map(|info| info.ss(now).to_string())
    }

    /// What became of Fast Open; `None` once the connection was let go.
    pub fn outcome(&self, id: ConnId) -> Option<Outcome> {
        self.inspect(|stack| stack.outcome(id))
    }

    /// Which bytes came in the SYN; `None` once the connection was let go.
    pub fn early_data(&self, id: ConnId) -> Option<EarlyData> {
        self.inspect(|stack| stack.early_data(id))
    }

    /// Why the connection ended; `None` while it lives.
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

    /// As [`read_urgent`](Self::read_urgent), where one of which nobody has told is still to come, or never will.
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

    /// Handles vanish when the host stops; that is the better explanation.
    fn ended_or<E>(&self, error: E, is_unknown: bool) -> Error<E> {
        match self.ensure_running::<E>() {
            Err(stopped) if is_unknown => stopped,
            _ => Error::Stack(error),
        }
    }
}
