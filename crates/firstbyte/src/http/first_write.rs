//! A stream that judges its first request before it opens.
use super::repeatable::Judgement;
use super::{FirstRequest, HttpInfo};
use crate::stream::deferred::Readers;
use crate::{TcpSocket, TcpStream};
use bytes::{Bytes, BytesMut};
use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep, timeout};

/// Bytes that are judged at most. A SYN carries about a tenth of it.
const JUDGED_MAX: usize = 16 * 1024;

/// Time that the start of a connection waits for the rest of a request: the runtime's timer cannot
/// measure less. Preface and SETTINGS of HTTP/2 are flushed before the request is known.
const HOLD: Duration = Duration::from_millis(1);

/// Turns of other tasks after that time, for a machine so busy that the tasks which write the
/// request have not run yet.
const TURNS: u32 = 4;

/// A connection that will open.
pub(super) struct Plan {
    pub(super) socket: TcpSocket,
    /// The host, for messages.
    pub(super) name: Box<str>,
    pub(super) peers: Vec<SocketAddr>,
    /// Time limit of the connect.
    pub(super) limit: Option<Duration>,
}

impl Plan {
    /// Opens with a plain handshake, without a request for a cookie.
    pub(super) async fn open_plain(self) -> io::Result<TcpStream> {
        within(self.limit, &self.name, self.socket.connect(&self.peers[..])).await
    }

    /// Opens with `first_bytes` on the SYN.
    async fn open_with(self, first_bytes: Bytes) -> io::Result<TcpStream> {
        within(self.limit, &self.name, self.socket.connect_with(&self.peers[..], first_bytes)).await
    }

    /// Opens with a plain handshake that asks for a cookie, and then writes `first_bytes`.
    async fn open_before(self, first_bytes: Bytes) -> io::Result<TcpStream> {
        let socket = self.socket.asking_for_a_cookie();
        let mut stream = within(self.limit, &self.name, socket.connect(&self.peers[..])).await?;
        stream.write_bytes(first_bytes).await?;
        Ok(stream)
    }
}

/// Ends `future` with an error when the limit has passed.
pub(super) async fn within<T>(
    limit: Option<Duration>,
    name: &str,
    future: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let Some(limit) = limit else { return future.await };
    timeout(limit, future).await.unwrap_or_else(|_| {
        Err(io::Error::new(
            ErrorKind::TimedOut,
            format!("cannot connect to `{name}`: no answer within {limit:?}; check the address, or raise connect_timeout"),
        ))
    })
}

/// A stream that opens when it knows whether the SYN may carry the first request.
pub(super) struct FirstWrite {
    state: State,
    info: HttpInfo,
    /// The tasks that wait for the connection to open: reader and writer may be two.
    tasks: Arc<Readers>,
}

enum State {
    Waiting(Box<Waiting>),
    Opening(Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>),
    Open(TcpStream),
    /// The connection could not open, or was shut down before it had anything to send.
    Ended,
}

/// A connection without a SYN.
struct Waiting {
    plan: Plan,
    policy: FirstRequest,
    written: BytesMut,
    /// Runs while an incomplete request waits for its rest.
    hold: Option<Pin<Box<Sleep>>>,
    /// Turns that other tasks have had since the hold has passed.
    turns: u32,
}

/// The SYN of a stream that is flushed or read.
enum Syn {
    /// It has the first bytes.
    Full,
    /// It waits for more.
    Later,
}

impl FirstWrite {
    pub(super) fn waiting(plan: Plan, policy: FirstRequest) -> FirstWrite {
        let waiting = Waiting { plan, policy, written: BytesMut::new(), hold: None, turns: 0 };
        FirstWrite::of(State::Waiting(Box::new(waiting)))
    }

    pub(super) fn opened(stream: TcpStream) -> FirstWrite {
        let first_write = FirstWrite::of(State::Ended);
        first_write.info.record(&stream);
        FirstWrite { state: State::Open(stream), ..first_write }
    }

    fn of(state: State) -> FirstWrite {
        FirstWrite { state, info: HttpInfo::default(), tasks: Arc::default() }
    }

    pub(super) fn info(&self) -> HttpInfo {
        self.info.clone()
    }

    /// Begins to open the connection, with the bytes on the SYN or behind the handshake.
    fn launch(&mut self, is_early: bool) {
        let State::Waiting(waiting) = std::mem::replace(&mut self.state, State::Ended) else { return };
        let Waiting { plan, written, .. } = *waiting;
        self.state = State::Opening(match is_early {
            true => Box::pin(plan.open_with(written.freeze())),
            false => Box::pin(plan.open_before(written.freeze())),
        });
        self.tasks.wake_all();
    }

    /// Keeps as much of `data` as can be judged. Opens the connection once the judgement cannot
    /// change.
    fn keep(&mut self, data: &[u8]) -> Option<usize> {
        let State::Waiting(waiting) = &mut self.state else { return None };
        let len = data.len().min(JUDGED_MAX - waiting.written.len());
        waiting.written.extend_from_slice(&data[..len]);
        let is_full = waiting.written.len() == JUDGED_MAX;
        match waiting.policy.judge(&waiting.written) {
            Judgement::NotRepeatable => self.launch(false),
            // A server cannot execute an incomplete request.
            Judgement::Repeatable | Judgement::Incomplete if is_full => self.launch(true),
            Judgement::Repeatable | Judgement::Incomplete => {}
        }
        Some(len)
    }

    /// Opens the connection if it has something to send and need not wait for more.
    fn poll_send(&mut self, cx: &mut Context<'_>) {
        if let State::Waiting(waiting) = &mut self.state
            && matches!(waiting.poll_syn(cx, &self.tasks), Syn::Full)
        {
            self.launch(true);
        }
    }

    /// Returns the open stream. Must not be called while the stream waits.
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Pin<&mut TcpStream>>> {
        if let State::Opening(opening) = &mut self.state {
            self.tasks.add(cx.waker());
            let everybody = Waker::from(Arc::clone(&self.tasks));
            let opened = ready!(opening.as_mut().poll(&mut Context::from_waker(&everybody)));
            self.state = State::Ended;
            let stream = opened?;
            self.info.record(&stream);
            self.state = State::Open(stream);
        }
        Poll::Ready(match &mut self.state {
            State::Open(stream) => Ok(Pin::new(stream)),
            _ => Err(ErrorKind::NotConnected.into()),
        })
    }

    fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting(_))
    }
}

impl Waiting {
    fn poll_syn(&mut self, cx: &mut Context<'_>, tasks: &Arc<Readers>) -> Syn {
        tasks.add(cx.waker());
        if self.written.is_empty() {
            return Syn::Later;
        }
        let is_incomplete = self.policy.judge(&self.written) == Judgement::Incomplete;
        if !is_incomplete && !self.policy.awaits_request(&self.written) {
            return Syn::Full;
        }
        let hold = self.hold.get_or_insert_with(|| Box::pin(sleep(HOLD)));
        let everybody = Waker::from(Arc::clone(tasks));
        if !hold.is_elapsed() && hold.as_mut().poll(&mut Context::from_waker(&everybody)).is_pending() {
            return Syn::Later;
        }
        if self.turns < TURNS {
            self.turns += 1;
            cx.waker().wake_by_ref();
            return Syn::Later;
        }
        Syn::Full
    }
}

impl AsyncRead for FirstWrite {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let State::Open(stream) = &mut self.state {
            return Pin::new(stream).poll_read(cx, buf);
        }
        self.poll_send(cx);
        // A server of HTTP does not speak first.
        if self.is_waiting() { Poll::Pending } else { ready!(self.poll_open(cx))?.poll_read(cx, buf) }
    }
}

impl AsyncWrite for FirstWrite {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        match self.keep(data) {
            Some(len) => Poll::Ready(Ok(len)),
            None => ready!(self.poll_open(cx))?.poll_write(cx, data),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut kept = 0;
        for slice in slices {
            // A slice that is kept in part has launched the connection.
            match self.keep(slice) {
                Some(len) => kept += len,
                None => break,
            }
        }
        match kept {
            0 if !self.is_waiting() => ready!(self.poll_open(cx))?.poll_write_vectored(cx, slices),
            _ => Poll::Ready(Ok(kept)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Ready while an incomplete request waits for its rest.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_send(cx);
        if self.is_waiting() { Poll::Ready(Ok(())) } else { ready!(self.poll_open(cx))?.poll_flush(cx) }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.state {
            State::Waiting(waiting) if waiting.written.is_empty() => self.state = State::Ended,
            State::Waiting(_) => self.launch(true),
            State::Opening(_) | State::Open(_) | State::Ended => {}
        }
        match &self.state {
            State::Ended => Poll::Ready(Ok(())),
            _ => ready!(self.poll_open(cx))?.poll_shutdown(cx),
        }
    }
}

impl fmt::Debug for FirstWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.state {
            State::Waiting(waiting) => write!(f, "waiting for a request to {}", waiting.plan.name),
            State::Opening(_) => f.write_str("opening"),
            State::Open(stream) => stream.fmt(f),
            State::Ended => f.write_str("ended"),
        }
    }
}
