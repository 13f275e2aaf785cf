//! A stream that notes the times of a visit and the state of its connection.
use super::request::How;
use firstbyte::tls::rustls::{CipherSuite, ProtocolVersion};
use firstbyte::tls::{EarlyBytes, TlsOutcome, TlsStream};
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
    /// Time from the end of TCP's handshake to the end of TLS's.
    pub(crate) tls_handshake: Option<Duration>,
    pub(crate) tls: Option<TlsUse>,
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
        self.lock().look(stream);
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
            tls_handshake: None,
            tls: None,
            first_byte: None,
            was_early: false,
            fast_open: None,
            stream: None,
            info: None,
            ss: None,
        }
    }

    fn look(&mut self, stream: &impl Observed) {
        self.look_for_handshake(stream);
        let Some(tcp) = stream.tcp() else { return };
        self.stream = tcp.info().ok().or(self.stream.take());
        self.info = tcp.connection_info().ok().or(self.info.take());
        self.ss = tcp.ss().ok().or(self.ss.take());
        if self.stream.is_some() {
            let has_data = self.info.as_ref().map_or(!self.data_less, |info| info.syn_data_len > 0);
            let outcome = tcp.outcome();
            let is_tls = self.tls.is_some();
            self.fast_open = Some(FastOpenUse { outcome, has_data, syn_fin: self.syn_fin, is_tls });
        }
    }

    /// Notes the ends of the handshakes. Our stack knows that of TCP; the kernel's sockets show it
    /// afterwards.
    fn look_for_handshake(&mut self, stream: &impl Observed) {
        if self.handshake.is_none()
            && let Some(tcp) = stream.tcp()
        {
            self.handshake = match (tcp.connection_info(), stream.opened_at()) {
                (Ok(info), _) => info.established_at.map(|at| at.since(info.opened_at)),
                (Err(_), Some(at)) => Some(at - self.begun),
                (Err(_), None) => {
                    let is_open = tcp.info().is_ok_and(|info| info.state != State::SynSent);
                    is_open.then(|| self.begun.elapsed())
                }
            };
        }
        self.tls = stream.tls().or(self.tls.take());
        if self.tls_handshake.is_none()
            && let Some(completed_at) = stream.completed_at()
        {
            let before = self.handshake.unwrap_or_default();
            self.tls_handshake = Some((completed_at - self.begun).saturating_sub(before));
        }
    }

    fn on_read(&mut self, stream: &impl Observed) {
        self.active_at = Instant::now();
        if self.first_byte.is_none() {
            self.first_byte = Some(self.begun.elapsed());
            // Later the kernel may have forgotten the peer.
            self.look(stream);
            self.was_early = match (&self.tls, stream.tcp()) {
                (Some(tls), _) => tls.outcome.early_data == EarlyBytes::Accepted,
                (None, Some(tcp)) => match tcp.connection_info() {
                    Ok(info) => info.syn_data_acked > 0,
                    Err(_) => !self.data_less && tcp.outcome() == Outcome::Accepted,
                },
                (None, None) => false,
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
    /// True if the data for the SYN was a ClientHello.
    pub(crate) is_tls: bool,
}

/// The use of TLS by a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsUse {
    pub(crate) outcome: TlsOutcome,
    pub(crate) version: Option<ProtocolVersion>,
    pub(crate) cipher: Option<CipherSuite>,
    pub(crate) alpn: Option<String>,
}

/// A stream over a connection.
pub(crate) trait Observed {
    /// The connection. `None` before it is open, if the stream hides it until then.
    fn tcp(&self) -> Option<&TcpStream>;

    /// Point in time when the SYN was answered, if the stream knows it.
    fn opened_at(&self) -> Option<Instant> {
        None
    }

    /// End of the TLS handshake.
    fn completed_at(&self) -> Option<Instant> {
        None
    }

    fn tls(&self) -> Option<TlsUse> {
        None
    }
}

impl Observed for TcpStream {
    fn tcp(&self) -> Option<&TcpStream> {
        Some(self)
    }
}

impl Observed for TlsStream {
    fn tcp(&self) -> Option<&TcpStream> {
        TlsStream::tcp(self)
    }

    fn opened_at(&self) -> Option<Instant> {
        TlsStream::opened_at(self)
    }

    fn completed_at(&self) -> Option<Instant> {
        TlsStream::completed_at(self)
    }

    fn tls(&self) -> Option<TlsUse> {
        let connection = self.connection()?;
        Some(TlsUse {
            outcome: self.outcome(),
            version: connection.protocol_version(),
            cipher: connection.negotiated_cipher_suite().map(|suite| suite.suite()),
            alpn: connection.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
        })
    }
}

/// A stream that reports to [`Seen`].
pub(crate) struct Watched<S: Observed> {
    /// The stream, until it is taken back.
    stream: Option<S>,
    seen: Seen,
}

/// HTTP/2 does not give its stream back.
impl<S: Observed> Drop for Watched<S> {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            self.seen.look(stream);
        }
    }
}

impl<S: Observed> Watched<S> {
    pub(crate) fn new(stream: S, seen: Seen) -> Watched<S> {
        Watched { stream: Some(stream), seen }
    }

    pub(crate) fn into_inner(mut self) -> Option<S> {
        self.stream.take()
    }

    fn stream(&mut self) -> io::Result<&mut S> {
        self.stream.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl<S: AsyncRead + Observed + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let shared = self.seen.clone();
        let stream = self.stream()?;
        let read = Pin::new(&mut *stream).poll_read(cx, buf);
        let mut seen = shared.lock();
        seen.look_for_handshake(stream);
        if buf.filled().len() > before {
            seen.on_read(stream);
        }
        if let Poll::Ready(Err(_)) = read {
            seen.look(stream);
        }
        drop(seen);
        read
    }
}

impl<S: AsyncWrite + Observed + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(self.stream()?).poll_write(cx, data);
        if written.is_ready() {
            self.seen.lock().active_at = Instant::now();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream()?).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream()?).poll_shutdown(cx)
    }
}
