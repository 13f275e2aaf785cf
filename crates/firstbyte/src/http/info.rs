//! Facts about the connection of a response.
use crate::TcpStream;
#[cfg(feature = "tls")]
use crate::tls::TlsOutcome;
use proto::Outcome;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

/// The connection of a response: both addresses, and the outcome of Fast Open. An extension of each
/// response of hyper-util's client.
///
/// ```
/// use firstbyte::{Outcome, http::HttpInfo};
///
/// fn came_in_one_round_trip<B>(response: &hyper::Response<B>) -> bool {
///     let info = response.extensions().get::<HttpInfo>();
///     info.is_some_and(|info| info.outcome() == Outcome::Accepted)
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct HttpInfo {
    opened: Arc<OnceLock<Opened>>,
    #[cfg(feature = "tls")]
    tls: Arc<OnceLock<TlsOutcome>>,
}

#[derive(Debug)]
struct Opened {
    peer: SocketAddr,
    local: Option<SocketAddr>,
    outcome: Outcome,
}

impl HttpInfo {
    /// Returns the peer's address; `None` before the SYN is answered.
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.opened.get().map(|opened| opened.peer)
    }

    /// Returns the local address; `None` before the SYN is answered.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.opened.get().and_then(|opened| opened.local)
    }

    /// Returns the outcome of Fast Open for the first request of the connection:
    /// [`Pending`](Outcome::Pending) until the SYN is answered.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.opened.get().map_or(Outcome::Pending, |opened| opened.outcome)
    }

    /// Records the connection once it is open.
    pub(super) fn record(&self, stream: &TcpStream) {
        let Ok(peer) = stream.peer_addr() else { return };
        let opened = Opened { peer, local: stream.local_addr().ok(), outcome: stream.outcome() };
        // A stream opens once.
        let _ = self.opened.set(opened);
    }
}

#[cfg(feature = "tls")]
impl HttpInfo {
    /// Returns the outcome of a connection over TLS, layer by layer: `None` without TLS, and before
    /// the server has answered.
    #[must_use]
    pub fn tls(&self) -> Option<TlsOutcome> {
        self.tls.get().copied()
    }

    pub(super) fn record_tls(&self, outcome: TlsOutcome) {
        // A handshake is completed once.
        let _ = self.tls.set(outcome);
    }
}
