//! Accepts TLS connections, and answers early data in the first flight.
use super::session::{Session, invalid};
use super::shared::{Shared, SharedSessions};
use super::stream::{Stage, TlsStream};
use crate::TcpStream;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ServerSessionMemoryCache;
use rustls::{ServerConfig, ServerConnection};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// Early data that a connection may bring, bytes: a large request head.
pub const MAX_EARLY_DATA: u32 = 16_384;

/// Longest time for a handshake.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Sessions that a server keeps: some 300 bytes each.
const SESSIONS: usize = 32_768;

/// Accepts TLS connections so that a client that was here before has its answer after one round
/// trip.
///
/// Early data is the start of the [`TlsStream`]: an HTTP server reads it like any request. Its
/// answer leaves with the server's first flight, in one write: on our stack, both fit on the
/// SYN-ACK. [`TlsStream::handshake`] tells handlers whether a request may be a replay.
///
/// # Replays
/// A ticket is good for one connection: a copy of a ClientHello with early data gets a whole
/// handshake, and its early data is refused (RFC 8446 §8.1). This holds for all servers that share
/// their sessions ([`shared`](TlsAcceptor::shared)), and for each server alone otherwise. A copy at
/// a server that does not know the ticket is refused as well.
///
/// # Load balancers
/// A client that reaches another server than last time has a cookie of Fast Open only if the
/// servers share their cookie keys, and a ticket only if they share their sessions. Without
/// shared sessions the visit takes a whole handshake, and nothing fails.
#[derive(Clone)]
pub struct TlsAcceptor {
    config: Arc<ServerConfig>,
    shared: Option<Shared>,
    timeout: Duration,
}

impl TlsAcceptor {
    /// Takes a configuration of rustls, and changes what early data needs: early data up to
    /// [`MAX_EARLY_DATA`], answers before the client's Finished, and 32,768 sessions in memory.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the configuration has a `ticketer`:
    /// tickets without state can be used twice, and rustls takes no early data with them.
    pub fn new(mut config: ServerConfig) -> io::Result<TlsAcceptor> {
        if config.ticketer.enabled() {
            let text = "cannot take early data with a ticketer: its tickets can be replayed; remove it, \
                        and share sessions between servers with TlsAcceptor::shared";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        config.max_early_data_size = MAX_EARLY_DATA;
        config.send_half_rtt_data = true;
        config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
        Ok(TlsAcceptor { config: Arc::new(config), shared: None, timeout: HANDSHAKE_TIMEOUT })
    }

    /// Makes an acceptor from a certificate chain and its private key, both as PEM, and the
    /// application protocols in the server's order.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if there is no certificate or key, or if they
    /// do not belong together.
    pub fn from_pem<P: AsRef<[u8]>>(
        certificates: &[u8],
        key: &[u8],
        alpn: impl IntoIterator<Item = P>,
    ) -> io::Result<TlsAcceptor> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<_, _>>()
            .map_err(|error| unusable("certificates", error))?;
        if chain.is_empty() {
            return Err(unusable("certificates", "there is none in the file"));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| unusable("the private key", error))?;
        let mut config = ServerConfig::builder_with_provider(super::default_provider())
            .with_safe_default_protocol_versions()
            .map_err(invalid)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| unusable("certificate and key", error))?;
        config.alpn_protocols = alpn.into_iter().map(|protocol| protocol.as_ref().to_vec()).collect();
        TlsAcceptor::new(config)
    }

    /// Sets how much early data a connection may bring, bytes; zero refuses it.
    #[must_use]
    pub fn max_early_data(self, bytes: u32) -> TlsAcceptor {
        self.edit(|config| config.max_early_data_size = bytes)
    }

    /// Sets how many sessions are kept in memory.
    #[must_use]
    pub fn sessions(self, count: usize) -> TlsAcceptor {
        self.edit(|config| config.session_storage = ServerSessionMemoryCache::new(count))
    }

    /// Shares sessions with other servers, in place of this server's memory.
    #[must_use]
    pub fn shared(mut self, sessions: Arc<dyn SharedSessions>) -> TlsAcceptor {
        self.shared = Some(Shared::new(sessions));
        self
    }

    /// Sets the longest time for a handshake (default: [`HANDSHAKE_TIMEOUT`]).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> TlsAcceptor {
        self.timeout = timeout;
        self
    }

    fn edit(mut self, edit: impl FnOnce(&mut ServerConfig)) -> TlsAcceptor {
        edit(Arc::make_mut(&mut self.config));
        self
    }

    /// Makes the handshake. Returns when it is complete, or as soon as there is early data to
    /// answer: the rest of the handshake then takes place while the stream is read.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    ///
    /// # Errors
    /// [`InvalidData`](io::ErrorKind::InvalidData) with a [`rustls::Error`] if the handshake fails,
    /// [`TimedOut`](io::ErrorKind::TimedOut), [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if
    /// the client closes, otherwise like a read.
    pub async fn accept(&self, tcp: TcpStream) -> io::Result<TlsStream> {
        match tokio::time::timeout(self.timeout, self.handshake(tcp)).await {
            Ok(stream) => stream,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the TLS handshake took too long")),
        }
    }

    async fn handshake(&self, mut tcp: TcpStream) -> io::Result<TlsStream> {
        // Tickets follow the client's Finished; nothing gains from waiting for more to send.
        tcp.set_nodelay(true)?;
        let (first, stored) = match &self.shared {
            Some(shared) => shared.prepare(&mut tcp).await.map(|(first, stored)| (first, Some(stored)))?,
            None => (Vec::new(), None),
        };
        let mut config = Arc::clone(&self.config);
        if let Some(stored) = &stored {
            Arc::make_mut(&mut config).session_storage = Arc::clone(stored) as _;
        }
        let connection = ServerConnection::new(config).map_err(invalid)?;
        let mut session = Session::server(connection, stored);
        let received = session.receive_first(&first);
        let mut stream = TlsStream::at(Stage::Open(tcp, Box::new(session)));
        if received.is_err() {
            // rustls has an alert for the client.
            let _ = stream.flush().await;
        }
        received?;
        stream.accept().await?;
        Ok(stream)
    }
}

impl fmt::Debug for TlsAcceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsAcceptor").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

fn unusable(what: &str, error: impl fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("cannot use {what}: {error}"))
}
