//! The peer of an accepted connection, for the handlers of a server.
use super::TcpStream;
use super::connection::Connection;
use proto::EarlyData;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

/// The peer of a connection, as far as handlers of requests need it: its address, and the mark of
/// early data. Cheap to clone; does not keep the connection open.
///
/// With the feature `axum` a handler extracts it with `ConnectInfo<PeerInfo>`. With the feature
/// `tonic` it is an extension of each request.
#[derive(Clone)]
pub struct PeerInfo {
    addr: SocketAddr,
    early_len: usize,
    connection: Weak<Connection>,
    #[cfg(feature = "tls")]
    handshake: Option<crate::tls::Handshake>,
}

impl PeerInfo {
    /// Returns the peer's address.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns which bytes at the start of the connection arrived on the SYN, see
    /// [`TcpStream::early_data`]. Each call reads [`confirmed`](EarlyData::confirmed) again. It
    /// stays false if the connection ended before the handshake.
    #[must_use]
    pub fn early_data(&self) -> EarlyData {
        if self.early_len == 0 {
            return EarlyData { len: 0, confirmed: true };
        }
        // A stack that has forgotten the connection reports no bytes.
        let known = self.connection.upgrade().map(|connection| connection.early_data());
        let known = known.filter(|early| early.len > 0);
        known.unwrap_or(EarlyData { len: self.early_len, confirmed: false })
    }

    /// Returns true while a request may be a replay: bytes arrived on the SYN, and the handshake is
    /// not complete. Over TLS, the handshake of TLS counts instead. Answer a request that must not
    /// be executed twice with 425 Too Early then (RFC 8470 §5.2).
    #[must_use]
    pub fn is_early(&self) -> bool {
        #[cfg(feature = "tls")]
        if let Some(handshake) = &self.handshake {
            return !handshake.is_complete();
        }
        let early = self.early_data();
        early.len > 0 && !early.confirmed
    }
}

#[cfg(feature = "tls")]
impl PeerInfo {
    /// Adds the handshake of TLS above the connection.
    pub(crate) fn over_tls(mut self, handshake: crate::tls::Handshake) -> PeerInfo {
        self.handshake = Some(handshake);
        self
    }

    /// Returns the handshake of TLS, which can be awaited; `None` without TLS.
    #[must_use]
    pub fn handshake(&self) -> Option<&crate::tls::Handshake> {
        self.handshake.as_ref()
    }
}

impl std::fmt::Debug for PeerInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PeerInfo").field("addr", &self.addr).field("early_len", &self.early_len).finish()
    }
}

impl TcpStream {
    /// Returns the peer's address and the mark of early data, for handlers that do not have the
    /// stream.
    #[must_use]
    pub fn peer_info(&self) -> PeerInfo {
        PeerInfo {
            addr: self.connection.peer(),
            early_len: self.connection.early_len(),
            connection: Arc::downgrade(&self.connection),
            #[cfg(feature = "tls")]
            handshake: None,
        }
    }
}
