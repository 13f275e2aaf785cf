//! The configurations of a client: with and without post-quantum key shares, for one memory of
//! sessions.
use super::hello::{self, Hello};
use super::session::{Session, invalid};
use super::sessions::{Server, Sessions, Ticket, Visit};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, KeyLog, NamedGroup, SignatureScheme};
use std::io;
use std::sync::Arc;

/// When a client offers post-quantum key exchange.
///
/// A post-quantum share makes a ClientHello longer than a SYN can carry (1,460 to 1,777 bytes), so
/// that Fast Open saves nothing. A resumed session comes from a key exchange that was protected;
/// without a new post-quantum share, somebody who records the connection, later breaks X25519 and
/// also steals the ticket's secret could read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PostQuantum {
    /// On connections without a ticket (the default). A connection with a ticket does not list the
    /// groups: a server that prefers them would ask for a second ClientHello and refuse early data.
    #[default]
    WithoutTicket,
    /// On each connection.
    Always,
    /// Never.
    Never,
}

/// All that a ClientConfig is made of.
pub(super) struct Ingredients {
    pub(super) provider: Arc<CryptoProvider>,
    pub(super) verifier: Arc<dyn ServerCertVerifier>,
    pub(super) identity: Arc<dyn ResolvesClientCert>,
    pub(super) alpn: Vec<Vec<u8>>,
    pub(super) key_log: Option<Arc<dyn KeyLog>>,
    pub(super) post_quantum: PostQuantum,
}

/// Two configurations, and the memory of sessions that both use.
///
/// rustls resumes a session only with the very verifier and credentials of its first connection:
/// both have the same.
pub(super) struct Configs {
    without_ticket: ClientConfig,
    with_ticket: ClientConfig,
    sessions: Sessions,
}

impl Configs {
    pub(super) fn new(ingredients: &Ingredients, sessions: Sessions) -> io::Result<Configs> {
        let config = |wanted| ingredients.config(wanted);
        Ok(Configs {
            without_ticket: config(ingredients.post_quantum != PostQuantum::Never)?,
            with_ticket: config(ingredients.post_quantum == PostQuantum::Always)?,
            sessions,
        })
    }

    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Begins a connection: with a ticket, if one of the server is known. `early` lets it send
    /// early data.
    pub(super) fn begin(&self, server: &Server, early: bool) -> io::Result<Session> {
        if let Some(ticket) = self.sessions.take(server) {
            let (connection, visit) = self.connection(&self.with_ticket, server, Some(ticket), early)?;
            let mut session = Session::client(connection, visit);
            if offers_ticket(session.hello()?) {
                session.expect_resumption();
                return Ok(session);
            }
            // The ticket had expired: this is a first visit.
        }
        let (connection, visit) = self.connection(&self.without_ticket, server, None, false)?;
        Ok(Session::client(connection, visit))
    }

    fn connection(
        &self,
        config: &ClientConfig,
        server: &Server,
        ticket: Option<Ticket>,
        early: bool,
    ) -> io::Result<(ClientConnection, Arc<Visit>)> {
        let visit = Arc::new(Visit::new(&self.sessions, server, ticket));
        let mut config = config.clone();
        config.enable_early_data = early;
        config.resumption = Resumption::store(Arc::clone(&visit) as _);
        let connection = ClientConnection::new(Arc::new(config), server.0.clone()).map_err(invalid)?;
        Ok((connection, visit))
    }
}

impl Ingredients {
    fn config(&self, post_quantum: bool) -> io::Result<ClientConfig> {
        let mut provider = (*self.provider).clone();
        if !post_quantum {
            provider.kx_groups.retain(|group| !is_post_quantum(group.name()));
        }
        if provider.kx_groups.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "cannot connect without post-quantum key exchange: the provider has no other group; \
                 set PostQuantum::Always",
            ));
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()
            .map_err(invalid)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&self.verifier))
            .with_client_cert_resolver(Arc::clone(&self.identity));
        config.alpn_protocols.clone_from(&self.alpn);
        if let Some(key_log) = &self.key_log {
            config.key_log = Arc::clone(key_log);
        }
        Ok(config)
    }
}

/// True for the groups with ML-KEM, alone or with an elliptic curve (FIPS 203,
/// draft-ietf-tls-ecdhe-mlkem).
fn is_post_quantum(group: NamedGroup) -> bool {
    use NamedGroup::*;
    matches!(group, MLKEM512 | MLKEM768 | MLKEM1024 | X25519MLKEM768 | secp256r1MLKEM768)
}

/// Returns true if a ClientHello offers a ticket.
fn offers_ticket(flight: &[u8]) -> bool {
    matches!(hello::read(flight), Hello::Whole(identities) if !identities.is_empty())
}

/// A client without a certificate.
#[derive(Debug)]
pub(super) struct Anonymous;

impl ResolvesClientCert for Anonymous {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}
