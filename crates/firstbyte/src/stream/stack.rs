//! A connection of our own stack, or the plan for one.
use super::StreamInfo;
use super::deferred::Deferred;
use crate::{StackHandle, error};
use bytes::Bytes;
use host::{Error, Host, RealClock};
use proto::{
    CloseReason, ConnId, ConnectOptions, ConnectionInfo, EarlyData, Outcome, SocketOption, SocketOptions,
    WriteError, WriteFlags,
};
use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::ReadBuf;

/// Releases its connection when dropped.
pub(super) struct StackConnection {
    net: StackHandle,
    peer: SocketAddr,
    /// Set when the connection is open or opening.
    id: OnceLock<ConnId>,
    deferred: Option<Box<Mutex<Deferred>>>,
}

impl StackConnection {
    pub(super) fn open(net: &StackHandle, id: ConnId, peer: SocketAddr) -> StackConnection {
        StackConnection { net: net.clone(), peer, id: OnceLock::from(id), deferred: None }
    }

    pub(super) fn deferred(
        net: &StackHandle,
        peer: SocketAddr,
        options: ConnectOptions,
        grace: Duration,
    ) -> StackConnection {
        let plan = Deferred::new(peer, options, grace, net.mtu());
        let deferred = Some(Box::new(Mutex::new(plan)));
        StackConnection { net: net.clone(), peer, id: OnceLock::new(), deferred }
    }

    /// Adds the error of the device, if the device ended the stack.
    fn failed(&self, error: io::Error) -> io::Error {
        self.net.explain_end(error)
    }

    fn host(&self) -> &Host<RealClock> {
        self.net.host()
    }

    /// Returns the connection if it is open, otherwise the locked plan.
    fn phase(&self) -> Phase<'_> {
        if let Some(&id) = self.id.get() {
            return Phase::Open(id);
        }
        let Some(deferred) = &self.deferred else { unreachable!("a connection is open or deferred") };
        let plan = deferred.lock().unwrap_or_else(PoisonError::into_inner);
        match self.id.get() {
            Some(&id) => Phase::Open(id),
            None => Phase::Deferred(plan),
        }
    }

    /// Sends the SYN of a deferred stream with the data written so far.
    fn launch(&self, mut plan: MutexGuard<'_, Deferred>, fin: bool) -> io::Result<ConnId> {
        let (peer, options) = plan.take(fin)?;
        let launched = match self.host().connect(peer, options) {
            Ok(id) => Ok(*self.id.get_or_init(|| id)),
            Err(refused) => {
                plan.fail(refused);
                Err(error::connect(refused))
            }
        };
        let readers = plan.readers();
        drop(plan);
        readers.wake_all();
        launched
    }

    /// Returns the connection to read from. Opens a deferred one if waiting longer could mean
    /// waiting forever.
    fn poll_open_to_read(&self, cx: &mut Context<'_>) -> Poll<io::Result<ConnId>> {
        match self.phase() {
            Phase::Open(id) => Poll::Ready(Ok(id)),
            Phase::Deferred(mut plan) => {
                let is_running = || self.host().phase() == host::Phase::Running;
                ready!(plan.poll_read_grace(cx, is_running, || self.net.closing()))?;
                Poll::Ready(self.launch(plan, false))
            }
        }
    }
}

/// Phase of a connection.
enum Phase<'a> {
    Open(ConnId),
    Deferred(MutexGuard<'a, Deferred>),
}

/// Reading.
impl StackConnection {
    pub(super) fn poll_read(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        let id = ready!(self.poll_open_to_read(cx))?;
        let max = buf.remaining();
        let read = ready!(self.host().poll_read_chunks(cx, id, max, |chunk| buf.put_slice(chunk)));
        budget.made_progress();
        Poll::Ready(read.map(drop).map_err(|error| self.failed(error::read(error))))
    }

    pub(super) fn poll_read_chunk(
        &self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<io::Result<Option<Bytes>>> {
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        let id = ready!(self.poll_open_to_read(cx))?;
        let chunk = ready!(self.host().poll_read_chunk(cx, id, max));
        budget.made_progress();
        Poll::Ready(chunk.map_err(|error| self.failed(error::read(error))))
    }

    pub(super) fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        let id = ready!(self.poll_open_to_read(cx))?;
        let peeked = ready!(self.host().poll_peek(cx, id, buf));
        budget.made_progress();
        Poll::Ready(peeked.map_err(|error| self.failed(error::read(error))))
    }

    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let id = ready!(self.poll_open_to_read(cx))?;
        self.host().poll_readable(cx, id).map_err(|error| self.failed(error::read(error)))
    }

    pub(super) fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.flush()?;
        let &id = self.id.get().ok_or(io::ErrorKind::WouldBlock)?;
        self.host().try_read(id, buf).map_err(|error| self.failed(error::read(error)))
    }
}

/// Writing.
impl StackConnection {
    pub(super) fn poll_write(&self, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        let written = match self.phase() {
            Phase::Open(id) => {
                ready!(self.host().poll_write(cx, id, data)).map_err(|error| self.failed(error::write(error)))
            }
            Phase::Deferred(plan) => self.write_deferred(plan, data),
        };
        budget.made_progress();
        Poll::Ready(written)
    }

    pub(super) fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        let written = match self.phase() {
            Phase::Open(id) => ready!(self.host().poll_write_vectored(cx, id, slices))
                .map_err(|error| self.failed(error::write(error))),
            Phase::Deferred(plan) => {
                let first = slices.iter().find(|slice| !slice.is_empty());
                first.map_or(Ok(0), |slice| self.write_deferred(plan, slice))
            }
        };
        budget.made_progress();
        Poll::Ready(written)
    }

    pub(super) fn poll_write_bytes(&self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<io::Result<usize>> {
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        let written = match self.phase() {
            Phase::Open(id) => ready!(self.host().poll_write_bytes(cx, id, data))
                .map_err(|error| self.failed(error::write(error))),
            Phase::Deferred(plan) => {
                let written = self.write_deferred(plan, data);
                written.inspect(|&len| drop(data.split_to(len)))
            }
        };
        budget.made_progress();
        Poll::Ready(written)
    }

    pub(super) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.phase() {
            Phase::Open(id) => {
                self.host().poll_writable(cx, id).map_err(|error| self.failed(error::write(error)))
            }
            Phase::Deferred(plan) => Poll::Ready(plan.ensure_possible()),
        }
    }

    pub(super) fn try_write(&self, data: &[u8]) -> io::Result<usize> {
        match self.phase() {
            Phase::Open(id) => {
                self.host().try_write(id, data).map_err(|error| self.failed(error::write(error)))
            }
            Phase::Deferred(plan) => self.write_deferred(plan, data),
        }
    }

    pub(super) fn poll_write_with(
        &self,
        cx: &mut Context<'_>,
        data: &[u8],
        flags: WriteFlags,
    ) -> Poll<io::Result<usize>> {
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        let written = match self.phase() {
            Phase::Open(id) => ready!(self.host().poll_write_flagged(cx, id, data, flags))
                .map_err(|error| self.failed(error::write(error))),
            Phase::Deferred(plan) => self.write_deferred_with(plan, data, flags),
        };
        budget.made_progress();
        Poll::Ready(written)
    }

    pub(super) fn try_write_with(&self, data: &[u8], flags: WriteFlags) -> io::Result<usize> {
        match self.phase() {
            Phase::Open(id) => {
                self.host().try_write_with(id, data, flags).map_err(|error| self.failed(error::write(error)))
            }
            Phase::Deferred(plan) => self.write_deferred_with(plan, data, flags),
        }
    }

    /// Data flagged with only `MORE` may wait; the end of a record, or an urgent byte, is passed to
    /// the connection.
    fn write_deferred_with(
        &self,
        mut plan: MutexGuard<'_, Deferred>,
        data: &[u8],
        flags: WriteFlags,
    ) -> io::Result<usize> {
        let written = plan.buffer(data)?;
        let ends = written == data.len() && !(flags - WriteFlags::MORE).is_empty();
        if ends || plan.is_full() {
            let id = self.launch(plan, false)?;
            if ends {
                self.host()
                    .try_write_with(id, &[], flags)
                    .map_err(|error| self.failed(error::write(error)))?;
            }
        }
        Ok(written)
    }

    fn write_deferred(&self, mut plan: MutexGuard<'_, Deferred>, data: &[u8]) -> io::Result<usize> {
        let written = plan.buffer(data)?;
        if plan.is_full() {
            self.launch(plan, false)?;
        }
        Ok(written)
    }

    /// Opens a deferred stream with written data. Does nothing to an open one.
    pub(super) fn flush(&self) -> io::Result<()> {
        if let Phase::Deferred(plan) = self.phase() {
            plan.ensure_possible()?;
            if !plan.is_empty() {
                self.launch(plan, false)?;
            }
        }
        Ok(())
    }

    pub(super) fn push(&self) {
        // The next read or write reports why a deferred stream cannot open.
        if self.flush().is_ok()
            && let Some(&id) = self.id.get()
        {
            self.host().push(id);
        }
    }

    /// Queues the FIN. A connection that has ended is already shut down.
    pub(super) fn shutdown(&self) -> io::Result<()> {
        match self.phase() {
            Phase::Deferred(plan) => self.launch(plan, true).map(drop),
            Phase::Open(id) => match self.host().shutdown(id) {
                Ok(())
                | Err(Error::Stack(WriteError::Shutdown | WriteError::Closed(_) | WriteError::NotFound)) => {
                    Ok(())
                }
                Err(error) => Err(self.failed(error::write(error))),
            },
        }
    }

    /// Ends writing. The data of a deferred stream is sent with the next read, followed by its FIN.
    pub(super) fn end_writing(&self) -> io::Result<()> {
        match self.phase() {
            Phase::Deferred(mut plan) => {
                plan.end_writing();
                let readers = plan.readers();
                drop(plan);
                readers.wake_all();
                Ok(())
            }
            Phase::Open(_) => self.shutdown(),
        }
    }

    pub(super) fn poll_delivered(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.flush()?;
        match self.id.get() {
            Some(&id) => self.host().poll_delivered(cx, id).map_err(|error| self.failed(error::write(error))),
            None => Poll::Ready(Ok(())),
        }
    }
}

/// Information and options.
impl StackConnection {
    pub(super) fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub(super) fn outcome(&self) -> Outcome {
        self.id.get().and_then(|&id| self.host().outcome(id)).unwrap_or(Outcome::Pending)
    }

    pub(super) fn early_data(&self) -> EarlyData {
        self.id.get().and_then(|&id| self.host().early_data(id)).unwrap_or_default()
    }

    pub(super) fn early_len(&self) -> usize {
        self.early_data().len
    }

    /// Formats both addresses and the state, if known.
    pub(super) fn fmt_as(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id.get().copied();
        let (local, state) = self
            .host()
            .inspect(|stack| id.map(|id| (stack.names(id).map(|names| names.0), stack.state(id))))
            .unwrap_or_default();
        let mut shown = f.debug_struct(name);
        if let Some(local) = local {
            shown.field("local", &local);
        }
        shown.field("peer", &self.peer);
        match (id, state) {
            (None, _) => shown.field("state", &format_args!("not opened")),
            (Some(_), None) => shown.field("state", &format_args!("gone")),
            (Some(_), Some(state)) => shown.field("state", &state),
        };
        shown.finish()
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.connection_info()?.local)
    }

    pub(super) fn info(&self) -> io::Result<StreamInfo> {
        Ok(StreamInfo::from(&self.connection_info()?))
    }

    pub(super) fn connection_info(&self) -> io::Result<ConnectionInfo> {
        let &id = self.id.get().ok_or(io::ErrorKind::NotConnected)?;
        self.host().info(id).ok_or_else(|| self.failed(error::stopped()))
    }

    pub(super) fn ss(&self) -> io::Result<String> {
        let &id = self.id.get().ok_or(io::ErrorKind::NotConnected)?;
        self.host().ss(id).ok_or_else(|| self.failed(error::stopped()))
    }

    pub(super) fn urgent_mark(&self) -> io::Result<Option<usize>> {
        let &id = self.id.get().ok_or(io::ErrorKind::NotConnected)?;
        Ok(self.host().urgent_mark(id))
    }

    pub(super) fn poll_read_urgent(&self, cx: &mut Context<'_>) -> Poll<io::Result<u8>> {
        let id = ready!(self.poll_open_to_read(cx))?;
        self.host().poll_read_urgent(cx, id).map_err(|error| self.failed(error::urgent(error)))
    }

    pub(super) fn try_read_urgent(&self) -> io::Result<u8> {
        let &id = self.id.get().ok_or(io::ErrorKind::NotConnected)?;
        self.host().try_read_urgent(id, true).map_err(|error| self.failed(error::urgent(error)))
    }

    pub(super) fn take_error(&self) -> io::Result<Option<io::Error>> {
        match self.phase() {
            Phase::Deferred(plan) => Ok(plan.ensure_possible().err()),
            Phase::Open(_) if self.host().phase() == host::Phase::Stopped => {
                Err(self.failed(error::stopped()))
            }
            Phase::Open(id) => Ok(match self.host().close_reason(id) {
                None | Some(CloseReason::Finished) => None,
                Some(reason) => Some(self.failed(error::ended(Error::Stack(reason)))),
            }),
        }
    }

    pub(super) fn ttl(&self) -> io::Result<u32> {
        let chosen = self.options()?.hop_limit.map(u32::from);
        Ok(chosen.unwrap_or_else(|| self.host().inspect(|stack| stack.config().ip_default_ttl)))
    }

    pub(super) fn options(&self) -> io::Result<SocketOptions> {
        match self.phase() {
            Phase::Open(id) => self.host().options(id).ok_or_else(|| self.failed(error::stopped())),
            Phase::Deferred(mut plan) => Ok(plan.socket_options().clone()),
        }
    }

    pub(super) fn set_option(&self, option: SocketOption) -> io::Result<()> {
        let set = match self.phase() {
            Phase::Open(id) => self.host().set_option(id, option),
            Phase::Deferred(mut plan) => plan.socket_options().set(option),
        };
        set.map_err(|error| self.failed(error::option(error)))
    }
}

impl Drop for StackConnection {
    fn drop(&mut self) {
        if let Some(&id) = self.id.get() {
            self.host().close(id);
        }
    }
}
