//! A connection of the kernel: open, on its way, or planned.
use super::connect::{connect, shut};
use super::sys::{is_delivered, stream_info};
use super::{options, sys, unsupported};
use crate::StreamInfo;
use crate::stream::deferred::{Deferred, Readers};
use bytes::{Bytes, BytesMut};
use proto::{ConnectOptions, EarlyData, Outcome, SocketOption, SocketOptions, State, WriteFlags};
use rustix::net::{send, sockopt};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// Bytes that one read of a chunk asks for at most.
const CHUNK_MAX: usize = 64 * 1024;
/// Pauses between two looks at what the peer has acknowledged: the first, and the longest.
const LOOKS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// An open socket of the kernel.
pub(crate) struct Open {
    stream: TcpStream,
    outcome: Outcome,
    /// Asked from the kernel when it is needed.
    early_len: OnceLock<usize>,
    options: Mutex<SocketOptions>,
}

impl Open {
    pub(super) fn new(stream: TcpStream, outcome: Outcome, options: SocketOptions) -> Open {
        Open { stream, outcome, early_len: OnceLock::from(0), options: Mutex::new(options) }
    }

    /// A socket that the application has connected.
    pub(crate) fn taken_over(stream: TcpStream) -> Open {
        Open::new(stream, Outcome::Skipped(proto::Skipped::NotAsked), SocketOptions::default())
    }

    /// An accepted socket whose SYN may have carried data.
    pub(super) fn accepted(stream: TcpStream, has_fast_open: bool, options: SocketOptions) -> Open {
        let outcome = Outcome::Skipped(proto::Skipped::NotAsked);
        let early_len = if has_fast_open { OnceLock::new() } else { OnceLock::from(0) };
        Open { stream, outcome, early_len, options: Mutex::new(options) }
    }

    /// Returns the number of bytes on the SYN.
    fn early_len(&self) -> usize {
        *self.early_len.get_or_init(|| sys::early_len(&self.stream).unwrap_or(0))
    }

    /// Reads what is there. After a short read the socket counts as empty, as in tokio's own
    /// stream: the next read waits instead of asking the kernel again.
    fn try_read(&self, buf: &mut ReadBuf<'_>) -> io::Result<usize> {
        let room = buf.remaining();
        let mut read = Ok(0);
        let tried = self.stream.try_io(Interest::READABLE, || {
            read = self.stream.try_read_buf(buf);
            match &read {
                Ok(len) if *len > 0 && *len < room => Err(io::ErrorKind::WouldBlock.into()),
                _ => Ok(()),
            }
        });
        // Without an attempt the socket is not ready.
        match tried {
            Err(_) if matches!(read, Ok(0)) => Err(io::ErrorKind::WouldBlock.into()),
            _ => read,
        }
    }
}

/// A connection of the kernel, or the plan for one. Closes its socket when it is dropped.
pub(crate) struct KernelConnection {
    peer: SocketAddr,
    shared: Arc<Shared>,
}

/// State that the task shares which opens a deferred connection.
struct Shared {
    open: OnceLock<Result<Open, Failed>>,
    plan: Mutex<Plan>,
    waiting: Readers,
}

enum Plan {
    /// Nothing was sent. Boxed: most connections never are in this phase.
    Deferred(Box<Deferred>, Handle),
    /// The SYN is out; `fin` once the application has shut down its direction.
    Opening { fin: bool },
}

/// The error that kept a deferred connection from opening.
#[derive(Debug)]
struct Failed {
    kind: io::ErrorKind,
    code: Option<i32>,
    text: String,
}

impl Failed {
    fn of(error: &io::Error) -> Failed {
        Failed { kind: error.kind(), code: error.raw_os_error(), text: error.to_string() }
    }

    fn error(&self) -> io::Error {
        match self.code {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(self.kind, self.text.clone()),
        }
    }
}

/// Phase of a connection.
enum Phase<'a> {
    Open(&'a Open),
    Opening(MutexGuard<'a, Plan>),
    Deferred(MutexGuard<'a, Plan>),
}

impl KernelConnection {
    pub(crate) fn open(peer: SocketAddr, open: Open) -> KernelConnection {
        let plan = Mutex::new(Plan::Opening { fin: false });
        let open = OnceLock::from(Ok(open));
        KernelConnection { peer, shared: Arc::new(Shared { open, plan, waiting: Readers::default() }) }
    }

    /// Must be called inside a tokio runtime, whose task will open the connection.
    pub(crate) fn deferred(peer: SocketAddr, options: ConnectOptions, grace: Duration) -> KernelConnection {
        let plan = Box::new(Deferred::new(peer, options, grace, FIRST_BYTES_MAX));
        let plan = Mutex::new(Plan::Deferred(plan, Handle::current()));
        let shared = Shared { open: OnceLock::new(), plan, waiting: Readers::default() };
        KernelConnection { peer, shared: Arc::new(shared) }
    }

    fn phase(&self) -> io::Result<Phase<'_>> {
        if let Some(open) = self.shared.open.get() {
            return open.as_ref().map(Phase::Open).map_err(Failed::error);
        }
        let plan = self.shared.plan.lock().unwrap_or_else(PoisonError::into_inner);
        match self.shared.open.get() {
            Some(open) => open.as_ref().map(Phase::Open).map_err(Failed::error),
            None if matches!(*plan, Plan::Opening { .. }) => Ok(Phase::Opening(plan)),
            None => Ok(Phase::Deferred(plan)),
        }
    }

    /// Starts the task that opens a deferred connection. It lives on when the stream is dropped,
    /// until the first bytes are with the kernel.
    fn launch(&self, mut plan: MutexGuard<'_, Plan>, fin: bool) -> io::Result<()> {
        let Plan::Deferred(deferred, runtime) = &mut *plan else { return Ok(()) };
        let (peer, options) = deferred.take(fin)?;
        let (runtime, readers) = (runtime.clone(), deferred.readers());
        *plan = Plan::Opening { fin: options.fin };
        drop(plan);
        let shared = Arc::clone(&self.shared);
        runtime.spawn(async move {
            let opened = connect(peer, &options).await;
            shared.settle(opened, options.fin);
        });
        readers.wake_all();
        Ok(())
    }

    /// The open socket. A call of a reader or writer that waits is repeated when there is one.
    fn poll_open(&self, cx: &mut Context<'_>) -> Poll<io::Result<&Open>> {
        match self.phase()? {
            Phase::Open(open) => Poll::Ready(Ok(open)),
            Phase::Opening(_plan) => {
                self.shared.waiting.add(cx.waker());
                Poll::Pending
            }
            Phase::Deferred(plan) => {
                self.launch(plan, false)?;
                self.poll_open(cx)
            }
        }
    }

    /// The socket to read from. Opens a deferred connection when waiting longer could mean waiting
    /// forever.
    fn poll_open_to_read(&self, cx: &mut Context<'_>) -> Poll<io::Result<&Open>> {
        if let Phase::Deferred(mut plan) = self.phase()?
            && let Plan::Deferred(deferred, _) = &mut *plan
        {
            ready!(deferred.poll_read_grace(cx, || true, || Arc::new(Notify::new()).notified_owned()))?;
        }
        self.poll_open(cx)
    }

    fn opened(&self) -> io::Result<&Open> {
        match self.phase()? {
            Phase::Open(open) => Ok(open),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

/// An Ethernet packet: more cannot ride on a SYN of most paths.
const FIRST_BYTES_MAX: usize = 1500;

impl Shared {
    /// Hands the result to those who wait.
    fn settle(&self, opened: io::Result<Open>, had_fin: bool) {
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(open) = &opened
            && !had_fin
            && matches!(*plan, Plan::Opening { fin: true })
        {
            // A connection that has ended needs no FIN.
            let _ = shut(&open.stream);
        }
        let _ = self.open.set(opened.map_err(|error| Failed::of(&error)));
        drop(plan);
        self.waiting.wake_all();
    }
}

/// Reading.
impl KernelConnection {
    pub(crate) fn poll_read(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let open = ready!(self.poll_open_to_read(cx))?;
        loop {
            ready!(open.stream.poll_read_ready(cx))?;
            match open.try_read(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read.map(drop)),
            }
        }
    }

    pub(crate) fn poll_read_chunk(
        &self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<io::Result<Option<Bytes>>> {
        let open = ready!(self.poll_open_to_read(cx))?;
        loop {
            ready!(open.stream.poll_read_ready(cx))?;
            let mut chunk = BytesMut::zeroed(max.min(CHUNK_MAX));
            match open.stream.try_read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(0) if max > 0 => return Poll::Ready(Ok(None)),
                Ok(len) => {
                    chunk.truncate(len);
                    return Poll::Ready(Ok(Some(chunk.freeze())));
                }
            }
        }
    }

    /// Waits like [`peek`](Self::peek) in any number of tasks: the runtime keeps a waker for each.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_open_to_read(cx)).await?.stream.readable().await
    }

    pub(crate) async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.poll_open_to_read(cx)).await?.stream.peek(buf).await
    }

    pub(crate) fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.flush()?;
        match self.phase()? {
            Phase::Open(open) => open.stream.try_read(buf),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

/// Writing.
impl KernelConnection {
    /// Writes with `write`, which gets the open socket when it may be writable, or into the plan.
    fn poll_write_by(
        &self,
        cx: &mut Context<'_>,
        data: &[u8],
        mut write: impl FnMut(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        if let Phase::Deferred(plan) = self.phase()? {
            return Poll::Ready(self.write_deferred(plan, data, false));
        }
        let open = ready!(self.poll_open(cx))?;
        loop {
            ready!(open.stream.poll_write_ready(cx))?;
            match write(&open.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn write_deferred(&self, mut plan: MutexGuard<'_, Plan>, data: &[u8], ends: bool) -> io::Result<usize> {
        let Plan::Deferred(deferred, _) = &mut *plan else { return Ok(0) };
        let written = deferred.buffer(data)?;
        if deferred.is_full() || ends && written == data.len() {
            self.launch(plan, false)?;
        }
        Ok(written)
    }

    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_by(cx, data, |stream| stream.try_write(data))
    }

    pub(crate) fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = slices.iter().find(|slice| !slice.is_empty());
        let first = first.map_or(&[][..], |slice| slice);
        self.poll_write_by(cx, first, |stream| stream.try_write_vectored(slices))
    }

    pub(crate) fn poll_write_bytes(&self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<io::Result<usize>> {
        let written = ready!(self.poll_write(cx, data));
        Poll::Ready(written.inspect(|&len| drop(data.split_to(len))))
    }

    pub(crate) fn poll_write_with(
        &self,
        cx: &mut Context<'_>,
        data: &[u8],
        flags: WriteFlags,
    ) -> Poll<io::Result<usize>> {
        if let Phase::Deferred(plan) = self.phase()? {
            return Poll::Ready(self.write_deferred_with(plan, data, flags));
        }
        self.poll_write_by(cx, data, |stream| send_with(stream, data, flags))
    }

    /// Keeps bytes that are only announced; a record's end opens the connection. Its mark is lost:
    /// the kernel takes none with the SYN.
    fn write_deferred_with(
        &self,
        plan: MutexGuard<'_, Plan>,
        data: &[u8],
        flags: WriteFlags,
    ) -> io::Result<usize> {
        if flags.contains(WriteFlags::URGENT) {
            return Err(unsupported("an urgent byte on the SYN"));
        }
        self.write_deferred(plan, data, !(flags - WriteFlags::MORE).is_empty())
    }

    pub(crate) fn try_write(&self, data: &[u8]) -> io::Result<usize> {
        match self.phase()? {
            Phase::Open(open) => open.stream.try_write(data),
            Phase::Opening(_) => Err(io::ErrorKind::WouldBlock.into()),
            Phase::Deferred(plan) => self.write_deferred(plan, data, false),
        }
    }

    pub(crate) fn try_write_with(&self, data: &[u8], flags: WriteFlags) -> io::Result<usize> {
        match self.phase()? {
            Phase::Open(open) => send_with(&open.stream, data, flags),
            Phase::Opening(_) => Err(io::ErrorKind::WouldBlock.into()),
            Phase::Deferred(plan) => self.write_deferred_with(plan, data, flags),
        }
    }

    pub(crate) async fn writable(&self) -> io::Result<()> {
        if let Phase::Deferred(_) = self.phase()? {
            return Ok(());
        }
        poll_fn(|cx| self.poll_open(cx)).await?.stream.writable().await
    }

    /// Opens a deferred connection that has something to send. Does nothing to an open one.
    pub(crate) fn flush(&self) -> io::Result<()> {
        if let Phase::Deferred(plan) = self.phase()?
            && matches!(&*plan, Plan::Deferred(deferred, _) if !deferred.is_empty())
        {
            self.launch(plan, false)?;
        }
        Ok(())
    }

    /// Sends what Nagle holds back: Linux does when `TCP_NODELAY` is set.
    pub(crate) fn push(&self) {
        if self.flush().is_err() {
            return;
        }
        if let Ok(Phase::Open(open)) = self.phase()
            && !sockopt::tcp_nodelay(&open.stream).unwrap_or(true)
        {
            // What keeps this from working is reported to the next reader or writer.
            let _ = sockopt::set_tcp_nodelay(&open.stream, true);
            let _ = sockopt::set_tcp_nodelay(&open.stream, false);
        }
    }

    /// Sends the FIN after what was written.
    pub(crate) fn shutdown(&self) -> io::Result<()> {
        match self.phase()? {
            Phase::Open(open) => shut(&open.stream),
            Phase::Opening(mut plan) => {
                *plan = Plan::Opening { fin: true };
                Ok(())
            }
            Phase::Deferred(plan) => self.launch(plan, true),
        }
    }

    /// Marks the end of writing. The bytes of a deferred connection go with the next read, and the
    /// FIN with them.
    pub(crate) fn end_writing(&self) -> io::Result<()> {
        match self.phase()? {
            Phase::Deferred(mut plan) => {
                if let Plan::Deferred(deferred, _) = &mut *plan {
                    deferred.end_writing();
                    deferred.readers().wake_all();
                }
                Ok(())
            }
            _ => self.shutdown(),
        }
    }

    /// Waits until the peer has acknowledged everything. The kernel has no event for it.
    pub(crate) async fn delivered(&self) -> io::Result<()> {
        self.flush()?;
        if let Phase::Deferred(_) = self.phase()? {
            return Ok(());
        }
        let open = poll_fn(|cx| self.poll_open(cx)).await?;
        let mut pause = LOOKS.0;
        while !is_delivered(&open.stream)? {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LOOKS.1);
        }
        open.stream.take_error()?.map_or(Ok(()), Err)
    }
}

fn send_with(stream: &TcpStream, data: &[u8], flags: WriteFlags) -> io::Result<usize> {
    let bits = sys::send_flags(flags)?;
    stream.try_io(Interest::WRITABLE, || Ok(send(stream, data, bits)?))
}

/// Information and options.
impl KernelConnection {
    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub(crate) fn outcome(&self) -> Outcome {
        self.opened().map_or(Outcome::Pending, |open| open.outcome)
    }

    pub(crate) fn early_data(&self) -> EarlyData {
        let Ok(open) = self.opened() else { return EarlyData::default() };
        let state = sys::state(&open.stream);
        EarlyData { len: open.early_len(), confirmed: state.is_ok_and(|state| state != State::SynReceived) }
    }

    pub(crate) fn early_len(&self) -> usize {
        self.opened().map_or(0, Open::early_len)
    }

    pub(crate) fn info(&self) -> io::Result<StreamInfo> {
        stream_info(&self.opened()?.stream)
    }

    pub(crate) fn take_error(&self) -> io::Result<Option<io::Error>> {
        match self.shared.open.get() {
            Some(Ok(open)) => open.stream.take_error(),
            Some(Err(failed)) => Ok(Some(failed.error())),
            None => Ok(None),
        }
    }

    pub(crate) fn ttl(&self) -> io::Result<u32> {
        let stream = &self.opened()?.stream;
        Ok(match self.peer.is_ipv4() {
            true => sockopt::ip_ttl(stream)?,
            false => sockopt::ipv6_unicast_hops(stream)?.into(),
        })
    }

    /// Gives the socket back.
    pub(crate) fn into_std(self) -> io::Result<std::net::TcpStream> {
        // A task that opens the connection holds it, too.
        let shared = Arc::into_inner(self.shared).ok_or(io::ErrorKind::NotConnected)?;
        match shared.open.into_inner() {
            Some(Ok(open)) => open.stream.into_std(),
            Some(Err(failed)) => Err(failed.error()),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.opened()?.stream.local_addr()
    }

    pub(crate) fn options(&self) -> io::Result<SocketOptions> {
        let lock =
            |options: &Mutex<SocketOptions>| options.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match self.phase()? {
            Phase::Open(open) => Ok(lock(&open.options)),
            Phase::Opening(_) => Err(io::ErrorKind::NotConnected.into()),
            Phase::Deferred(mut plan) => match &mut *plan {
                Plan::Deferred(deferred, _) => Ok(deferred.socket_options().clone()),
                Plan::Opening { .. } => Err(io::ErrorKind::NotConnected.into()),
            },
        }
    }

    pub(crate) fn set_option(&self, option: SocketOption) -> io::Result<()> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        match self.phase()? {
            Phase::Open(open) => {
                let mut known = open.options.lock().unwrap_or_else(PoisonError::into_inner);
                let mut changed = known.clone();
                changed.set(option).map_err(invalid)?;
                options::set(open.stream.as_fd(), self.peer.is_ipv4(), option)?;
                *known = changed;
                Ok(())
            }
            Phase::Opening(_) => Err(io::ErrorKind::NotConnected.into()),
            Phase::Deferred(mut plan) => match &mut *plan {
                Plan::Deferred(deferred, _) => deferred.socket_options().set(option).map_err(invalid),
                Plan::Opening { .. } => Err(io::ErrorKind::NotConnected.into()),
            },
        }
    }

    pub(crate) fn fmt_as(&self, name: &str, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct(name);
        if let Ok(local) = self.local_addr() {
            shown.field("local", &local);
        }
        shown.field("peer", &self.peer);
        match self.opened().and_then(|open| sys::state(&open.stream)) {
            Ok(state) => shown.field("state", &state),
            Err(_) => shown.field("state", &format_args!("not opened")),
        };
        shown.finish()
    }
}
