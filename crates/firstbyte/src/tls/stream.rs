//! A TLS connection, as a stream of bytes.
use super::client::{Connecting, Unsent};
use super::handshake::Handshake;
use super::linger;
use super::outcome::{EarlyBytes, NotSent, Ticket, TlsOutcome};
use super::session::Session;
use super::transport::{poll_receive, poll_send};
use crate::stream::deferred::Readers;
use crate::{PeerInfo, TcpStream};
use proto::Outcome;
use std::fmt;
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A TLS connection over a [`TcpStream`], made by a [`TlsConnector`](super::TlsConnector) or a
/// [`TlsAcceptor`](super::TlsAcceptor).
///
/// Written data may wait for a flush, as with every TLS stream: until the handshake is complete,
/// everything written goes with its flights in as few packets as possible.
///
/// A stream that is dropped finishes in the background, on the current tokio runtime: a server
/// sends the tickets of the next visit, and a client that has received none waits for one. That
/// takes at most [`LINGER`](super::LINGER).
pub struct TlsStream {
    stage: Stage,
    /// The tasks that wait: a read may have to write, and the reverse, so each event is for all.
    tasks: Arc<Readers>,
    opened_at: Option<Instant>,
}

pub(super) enum Stage {
    /// A client that has sent nothing.
    Unsent(Box<Unsent>),
    /// A client whose SYN is not answered.
    Connecting(Connecting, Box<Session>),
    Open(TcpStream, Box<Session>),
    /// Failed while connecting, or dropped.
    Ended,
}

impl TlsStream {
    pub(super) fn at(stage: Stage) -> TlsStream {
        let opened_at = matches!(stage, Stage::Open(..)).then(Instant::now);
        TlsStream { stage, tasks: Arc::default(), opened_at }
    }

    /// Returns the TCP connection; `None` before the answer to the SYN.
    #[must_use]
    pub fn tcp(&self) -> Option<&TcpStream> {
        match &self.stage {
            Stage::Open(tcp, _) => Some(tcp),
            _ => None,
        }
    }

    /// Returns when the SYN was answered, or the connection accepted.
    #[must_use]
    pub fn opened_at(&self) -> Option<Instant> {
        self.opened_at
    }

    /// Returns when the TLS handshake was complete.
    #[must_use]
    pub fn completed_at(&self) -> Option<Instant> {
        self.session().and_then(Session::completed_at)
    }

    /// Returns rustls's connection: certificates, cipher suite, version. `None` before anything is
    /// sent.
    #[must_use]
    pub fn connection(&self) -> Option<&rustls::Connection> {
        self.session().map(Session::connection)
    }

    /// Returns the application protocol that both ends agreed on (RFC 7301). On a deferred stream
    /// it is that of the last visit until the server has answered.
    #[must_use]
    pub fn alpn(&self) -> Option<&[u8]> {
        match (&self.stage, self.session()) {
            (Stage::Unsent(unsent), _) => unsent.alpn(),
            (_, Some(session)) => session.connection().alpn_protocol().or(session.expected_alpn()),
            _ => None,
        }
    }

    /// Returns a handle that tells whether what was read may be a replay.
    ///
    /// A client's is complete once the server has answered. Ask for it when something was sent: a
    /// handle of before never completes.
    #[must_use]
    pub fn handshake(&self) -> Handshake {
        self.session().map_or_else(|| Handshake::begin().1, Session::handshake)
    }

    /// Returns the peer's address and the mark of early data, for handlers that do not have the
    /// stream. `None` before the answer to the SYN.
    #[must_use]
    pub fn peer_info(&self) -> Option<PeerInfo> {
        Some(self.tcp()?.peer_info().over_tls(self.handshake()))
    }

    /// Returns what each layer did to save a round trip, on a client's stream.
    #[must_use]
    pub fn outcome(&self) -> TlsOutcome {
        let fast_open = self.tcp().map_or(Outcome::Pending, TcpStream::outcome);
        let waiting = (Ticket::Pending, EarlyBytes::NotSent(NotSent::NotAsked));
        let (ticket, early_data) = self.session().map_or(waiting, Session::outcome);
        TlsOutcome { fast_open, ticket, early_data }
    }

    fn session(&self) -> Option<&Session> {
        match &self.stage {
            Stage::Connecting(_, session) | Stage::Open(_, session) => Some(session),
            Stage::Unsent(_) | Stage::Ended => None,
        }
    }

    /// Waits until the handshake is complete, and sends what belongs to it.
    pub(crate) async fn complete(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_complete(cx)).await
    }

    /// Adds a task to those that are woken, and returns the waker of all.
    fn wakes_all(&self, cx: &Context<'_>) -> Waker {
        self.tasks.add(cx.waker());
        Waker::from(Arc::clone(&self.tasks))
    }

    fn poll_complete(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (tcp, session) = ready!(self.poll_open(cx))?;
        while session.is_handshaking() {
            ready!(poll_send(tcp, session, cx))?;
            ready!(poll_receive(tcp, session, cx))?;
        }
        poll_send(tcp, session, cx)
    }

    /// Sends the first flight, and waits for the answer to the SYN.
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(&mut TcpStream, &mut Session)>> {
        if let Stage::Unsent(_) = &self.stage {
            let Stage::Unsent(unsent) = std::mem::replace(&mut self.stage, Stage::Ended) else {
                unreachable!("just matched")
            };
            let (connecting, session) = unsent.start()?;
            self.tasks.wake_all();
            self.stage = Stage::Connecting(connecting, Box::new(session));
        }
        if let Stage::Connecting(connecting, _) = &mut self.stage {
            let connected = ready!(connecting.as_mut().poll(cx));
            let Stage::Connecting(_, session) = std::mem::replace(&mut self.stage, Stage::Ended) else {
                unreachable!("just matched")
            };
            self.stage = Stage::Open(connected?, session);
            self.opened_at = Some(Instant::now());
        }
        match &mut self.stage {
            Stage::Open(tcp, session) => Poll::Ready(Ok((tcp, session))),
            _ => Poll::Ready(Err(ended())),
        }
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let waker = this.wakes_all(cx);
        let cx = &mut Context::from_waker(&waker);
        if let Stage::Unsent(_) = &this.stage {
            // A request comes first: a read does not open the connection.
            return Poll::Pending;
        }
        let (tcp, session) = ready!(this.poll_open(cx))?;
        loop {
            if session.read(buf)? {
                return Poll::Ready(Ok(()));
            }
            if poll_receive(tcp, session, cx)?.is_pending() {
                // Nothing more comes before the peer has heard what waits here.
                let _ = poll_send(tcp, session, cx)?;
                return Poll::Pending;
            }
        }
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(data)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let waker = this.wakes_all(cx);
        let cx = &mut Context::from_waker(&waker);
        if let Stage::Unsent(unsent) = &mut this.stage
            && let Some(len) = unsent.buffer(slices)
        {
            return Poll::Ready(Ok(len));
        }
        ready!(this.poll_verdict(cx))?;
        let (tcp, session) = ready!(this.poll_open(cx))?;
        let is_empty = slices.iter().all(|slice| slice.is_empty());
        loop {
            let len = session.write(slices)?;
            if len > 0 || is_empty {
                if !session.is_handshaking() {
                    let _ = poll_send(tcp, session, cx)?;
                }
                return Poll::Ready(Ok(len));
            }
            if session.wants_write() {
                ready!(poll_send(tcp, session, cx))?;
            } else {
                ready!(poll_receive(tcp, session, cx))?;
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let waker = this.wakes_all(cx);
        let cx = &mut Context::from_waker(&waker);
        if let Stage::Unsent(unsent) = &this.stage
            && unsent.waits_for_more()
        {
            return Poll::Ready(Ok(()));
        }
        let (tcp, session) = ready!(this.poll_open(cx))?;
        ready!(poll_send(tcp, session, cx))?;
        if session.holds_text() {
            ready!(this.poll_complete(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let waker = this.wakes_all(cx);
        let cx = &mut Context::from_waker(&waker);
        if let Stage::Unsent(unsent) = &this.stage
            && unsent.is_empty()
        {
            this.stage = Stage::Ended;
        }
        if let Stage::Ended = this.stage {
            return Poll::Ready(Ok(()));
        }
        // Closing before the handshake is complete would keep the tickets from the client.
        ready!(this.poll_complete(cx))?;
        let (tcp, session) = ready!(this.poll_open(cx))?;
        session.close();
        ready!(poll_send(tcp, session, cx))?;
        Pin::new(tcp).poll_shutdown(cx)
    }
}

impl TlsStream {
    /// Writes the first bytes of a stream that is not connected.
    pub(super) fn begin_with(&mut self, first: Vec<u8>) {
        if let Stage::Unsent(unsent) = &mut self.stage {
            unsent.first = first;
        }
    }

    /// Reads on a server until the handshake is complete, or there is early data to answer.
    pub(super) async fn accept(&mut self) -> io::Result<()> {
        poll_fn(|cx| {
            let (tcp, session) = ready!(self.poll_open(cx))?;
            while session.is_handshaking() && !session.takes_early_data() {
                ready!(poll_send(tcp, session, cx))?;
                ready!(poll_receive(tcp, session, cx))?;
            }
            session.accepted();
            match session.is_handshaking() {
                true => Poll::Ready(Ok(())),
                false => poll_send(tcp, session, cx),
            }
        })
        .await
    }

    /// Waits until the server has taken or refused early data.
    fn poll_verdict(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.stage {
            Stage::Open(_, session) | Stage::Connecting(_, session) if session.awaits_verdict() => {
                self.poll_complete(cx)
            }
            _ => Poll::Ready(Ok(())),
        }
    }
}

impl Drop for TlsStream {
    fn drop(&mut self) {
        if let Stage::Open(tcp, session) = std::mem::replace(&mut self.stage, Stage::Ended) {
            linger::finish(tcp, session);
        }
    }
}

impl fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsStream").field("tcp", &self.tcp()).field("session", &self.session()).finish()
    }
}

fn ended() -> io::Error {
    io::Error::new(ErrorKind::NotConnected, "the connection has failed or was closed")
}
