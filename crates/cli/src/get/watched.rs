//! A stream that notes the times of a visit and the state of its connection.
use super::request::How;
use firstbyte::{ConnectionInfo, Outcome, State, StreamInfo, TcpStream};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Observations during a visit. Clones share them.
#[derive(Clone)]
pub(crate) struct Seen(Arc<Mutex<Observations>>);

pub(crate) struct Observations {
    begun: Instant,
    /// Time of the last read or write.
    active_at: Instant,
    data_less: bool,
    syn_fin: bool,
    pub(crate) handshake: Option<Duration>,
    pub(crate) first_byte: Option<Duration>,
    /// True if the peer accepted data of the SYN.
    was_early: bool,
    pub(crate) fast_open: Option<FastOpenUse>,
    pub(crate) stream: Option<StreamInfo>,
    pub(crate) info: Option<ConnectionInfo>,
    pub(crate) ss: Option<String>,
}

impl Seen {
    pub(crate) fn begin(how: &How) -> Seen {
        Seen(Arc::new(Mutex::new(Observations::new(how.data_less, how.syn_fin))))
    }

    fn lock(&self) -> MutexGuard<'_, Observations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the peer had accepted data of the SYN when its reply began.
    pub(crate) fn was_early(&self) -> bool {
        self.lock().was_early
    }

    /// Waits until nothing was read or written for `pause`.
    pub(crate) async fn stalled(&self, pause: Duration) {
        loop {
            let end = self.lock().active_at + pause;
            if end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end.into()).await;
        }
    }

    /// Notes the state of the connection.
    pub(crate) fn look(&self, stream: &impl Observed) {
        self.lock().look(stream.tcp());
    }

    /// Returns the observations. Other clones see none of them.
    pub(crate) fn take(&self) -> Observations {
        std::mem::replace(&mut *self.lock(), Observations::new(false, false))
    }
}

impl Observations {
    fn new(data_less: bool, syn_fin: bool) -> Observations {
        let now = Instant::now();
        Observations {
            begun: now,
            active_at: now,
            data_less,
            syn_fin,
            handshake: None,
            first_byte: None,
            was_early: false,
            fast_open: None,
            stream: None,
            info: None,
            ss: None,
        }
    }

    fn look(&mut self, stream: &TcpStream) {
        self.stream = stream.info().ok().or(self.stream.take());
        self.info = stream.connection_info().ok().or(self.info.take());
        self.ss = stream.ss().ok().or(self.ss.take());
        self.look_for_handshake(stream);
        if self.stream.is_some() {
            let has_data = self.info.as_ref().map_or(!self.data_less, |info| info.syn_data_len > 0);
            let outcome = stream.outcome();
            self.fast_open = Some(FastOpenUse { outcome, has_data, syn_fin: self.syn_fin });
        }
    }

    /// Notes the end of the handshake. Our stack knows it; the kernel's sockets show it afterwards.
    fn look_for_handshake(&mut self, stream: &TcpStream) {
        if self.handshake.is_some() {
            return;
        }
        self.handshake = match stream.connection_info() {
            Ok(info) => info.established_at.map(|at| at.since(info.opened_at)),
            Err(_) => {
                let is_open = stream.info().is_ok_and(|info| info.state != State::SynSent);
                is_open.then(|| self.begun.elapsed())
            }
        };
    }

    fn on_read(&mut self, stream: &TcpStream) {
        self.active_at = Instant::now();
        if self.first_byte.is_none() {
            self.first_byte = Some(self.begun.elapsed());
            self.was_early = match stream.connection_info() {
                Ok(info) => info.syn_data_acked > 0,
                Err(_) => !self.data_less && stream.outcome() == Outcome::Accepted,
            };
        }
    }
}

/// The use of Fast Open by a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FastOpenUse {
    pub(crate) outcome: Outcome,
    /// True if there was data for the SYN.
    pub(crate) has_data: bool,
    /// A FIN was requested on the SYN.
    pub(crate) syn_fin: bool,
}

/// A stream over a connection.
pub(crate) trait Observed {
    fn tcp(&self) -> &TcpStream;
}

impl Observed for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

/// A stream that reports to [`Seen`].
pub(crate) struct Watched<S> {
    stream: S,
    seen: Seen,
}

impl<S: Observed> Watched<S> {
    pub(crate) fn new(stream: S, seen: Seen) -> Watched<S> {
        Watched { stream, seen }
    }

    pub(crate) fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Observed + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let mut seen = self.seen.lock();
        seen.look_for_handshake(self.stream.tcp());
        if buf.filled().len() > before {
            seen.on_read(self.stream.tcp());
        }
        if let Poll::Ready(Err(_)) = read {
            seen.look(self.stream.tcp());
        }
        drop(seen);
        read
    }
}

impl<S: AsyncWrite + Observed + Unpin> Watched<S> {
    fn wrote<T>(&self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.seen.lock().active_at = Instant::now();
        }
        written
    }
}

impl<S: AsyncWrite + Observed + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, data);
        self.wrote(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
