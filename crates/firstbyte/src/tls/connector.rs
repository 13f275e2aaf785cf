//! Opens TLS connections.
use super::client::Unsent;
use super::configs::{Anonymous, Configs, Ingredients, PostQuantum};
use super::sessions::{Prospect, Server, Sessions};
use super::stream::{Stage, TlsStream};
use crate::http::FirstRequest;
use crate::{Net, TcpSocket};
use rustls::client::ResolvesClientCert;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::{KeyLog, RootCertStore};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{ToSocketAddrs, lookup_host};

/// Opens TLS connections that need as few round trips as the server allows: one, if it was visited
/// before and takes Fast Open and early data.
///
/// Clones share the memory of sessions, which a restart of the program loses: rustls has no way to
/// write its sessions to a file. The cookies of Fast Open survive a restart (the kernel keeps
/// them, and our stack can save its [`paths`](crate::paths)).
///
/// # Examples
/// ```no_run
/// use firstbyte::tls::{TlsConnector, rustls::RootCertStore};
/// use firstbyte::Net;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// # let roots = RootCertStore::empty();
/// let net = Net::kernel();
/// let connector = TlsConnector::builder().roots(roots).alpn(["http/1.1"]).build()?;
/// let mut stream = connector.connect_deferred(&net, "www.example:443", "www.example").await?;
/// stream.write_all(b"GET / HTTP/1.1\r\nHost: www.example\r\n\r\n").await?;
/// stream.flush().await?;
/// let mut answer = [0; 4096];
/// let len = stream.read(&mut answer).await?;
/// println!("{len} bytes: {:?}", stream.outcome());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TlsConnector {
    configs: Arc<Configs>,
    first_request: FirstRequest,
}

impl TlsConnector {
    /// Returns a builder.
    pub fn builder() -> TlsConnectorBuilder {
        TlsConnectorBuilder::default()
    }

    /// Connects and completes the handshake: the ClientHello goes on the SYN if a cookie is known.
    /// Nothing is sent as early data.
    ///
    /// `socket` is a [`Net`], or a [`TcpSocket`] with options. `name` is the server's name in its
    /// certificate: a DNS name or an IP address.
    ///
    /// # Cancel safety
    /// Dropping the future aborts the connection.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if `name` is not a name;
    /// [`InvalidData`](io::ErrorKind::InvalidData) with a [`rustls::Error`] if the handshake fails;
    /// otherwise like [`TcpStream::connect`](crate::TcpStream::connect).
    pub async fn connect<A: ToSocketAddrs>(
        &self,
        socket: impl Into<TcpSocket>,
        addr: A,
        name: &str,
    ) -> io::Result<TlsStream> {
        let mut stream = self.resolve(socket.into(), addr, name, FirstRequest::Never).await?;
        stream.complete().await?;
        Ok(stream)
    }

    /// Connects and sends `first_bytes`: as early data if a ticket is known that allows it, and on
    /// the SYN if a cookie is known too; otherwise after the handshake. Returns when the handshake
    /// is complete.
    ///
    /// **Send only requests that may be executed twice** (RFC 8446 §8, RFC 7413 §6.1).
    ///
    /// # Cancel safety
    /// Dropping the future aborts the connection, but the peer may have processed `first_bytes`.
    ///
    /// # Errors
    /// Fails like [`connect`](Self::connect). An error does not mean that no peer has read
    /// `first_bytes`.
    pub async fn connect_with<A: ToSocketAddrs>(
        &self,
        socket: impl Into<TcpSocket>,
        addr: A,
        name: &str,
        first_bytes: &[u8],
    ) -> io::Result<TlsStream> {
        let mut stream = self.resolve(socket.into(), addr, name, FirstRequest::Always).await?;
        stream.begin_with(first_bytes.to_vec());
        stream.complete().await?;
        Ok(stream)
    }

    /// Returns a stream that connects with its first flush, for code that connects first and
    /// writes later, such as an HTTP library. Only a request that may be executed twice is sent as
    /// early data: see [`first_request`](TlsConnectorBuilder::first_request). Everything else waits
    /// for the handshake.
    ///
    /// A read does not open the connection: it waits until something was written and flushed. The
    /// start of HTTP/2 waits for the first request, even if it is flushed.
    ///
    /// # Errors
    /// `name` is not a name, or `addr` cannot be resolved. The first use of the stream reports
    /// errors of the connection.
    pub async fn connect_deferred<A: ToSocketAddrs>(
        &self,
        socket: impl Into<TcpSocket>,
        addr: A,
        name: &str,
    ) -> io::Result<TlsStream> {
        self.resolve(socket.into(), addr, name, self.first_request).await
    }

    async fn resolve<A: ToSocketAddrs>(
        &self,
        socket: TcpSocket,
        addr: A,
        name: &str,
        first_request: FirstRequest,
    ) -> io::Result<TlsStream> {
        let addresses = lookup_host(addr).await?.collect();
        self.unsent(socket, addresses, name, first_request, None)
    }

    /// Returns a stream that has sent nothing, and connects within `limit` once it has.
    pub(crate) fn unsent(
        &self,
        socket: TcpSocket,
        addresses: Vec<SocketAddr>,
        name: &str,
        first_request: FirstRequest,
        limit: Option<Duration>,
    ) -> io::Result<TlsStream> {
        let name = ServerName::try_from(name).map_err(|_| no_name(name))?.to_owned();
        let port = addresses.first().ok_or_else(crate::socket::no_address)?.port();
        let server: Server = (name, port);
        let alpn = self.configs.sessions().prospect(&server).and_then(|prospect| prospect.alpn);
        Ok(TlsStream::at(Stage::Unsent(Box::new(Unsent {
            configs: Arc::clone(&self.configs),
            // Finished and the request would be two small segments.
            socket: socket.nodelay(true),
            addresses,
            server,
            first_request,
            first: Vec::new(),
            alpn,
            limit,
        }))))
    }

    /// Returns whether the next connection to a server can carry early data: it was visited before
    /// and takes it.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if `name` is not a name.
    pub fn knows(&self, name: &str, port: u16) -> io::Result<bool> {
        Ok(self.prospect(name, port)?.is_some_and(|prospect| prospect.early_data_max > 0))
    }

    /// Returns whether the next connection to a server offers a ticket.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if `name` is not a name.
    pub fn has_ticket(&self, name: &str, port: u16) -> io::Result<bool> {
        Ok(self.prospect(name, port)?.is_some())
    }

    fn prospect(&self, name: &str, port: u16) -> io::Result<Option<Prospect>> {
        let name = ServerName::try_from(name).map_err(|_| no_name(name))?.to_owned();
        Ok(self.configs.sessions().prospect(&(name, port)))
    }
}

impl fmt::Debug for TlsConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConnector").field("first_request", &self.first_request).finish_non_exhaustive()
    }
}

impl From<&Net> for TcpSocket {
    fn from(net: &Net) -> TcpSocket {
        net.socket()
    }
}

/// Options of a [`TlsConnector`].
#[derive(Debug)]
#[must_use]
pub struct TlsConnectorBuilder {
    provider: Option<Arc<CryptoProvider>>,
    trust: Trust,
    identity: Arc<dyn ResolvesClientCert>,
    alpn: Vec<Vec<u8>>,
    key_log: Option<Arc<dyn KeyLog>>,
    post_quantum: PostQuantum,
    first_request: FirstRequest,
    servers: usize,
}

#[derive(Debug)]
enum Trust {
    Roots(Arc<RootCertStore>),
    Verifier(Arc<dyn ServerCertVerifier>),
}

/// Servers whose sessions are remembered by default.
const SERVERS: usize = 1024;

impl Default for TlsConnectorBuilder {
    fn default() -> TlsConnectorBuilder {
        TlsConnectorBuilder {
            provider: None,
            trust: Trust::Roots(Arc::new(RootCertStore::empty())),
            identity: Arc::new(Anonymous),
            alpn: Vec::new(),
            key_log: None,
            post_quantum: PostQuantum::default(),
            first_request: FirstRequest::default(),
            servers: SERVERS,
        }
    }
}

impl TlsConnectorBuilder {
    /// Sets the certificates that are trusted. Without any, every server is refused.
    pub fn roots(mut self, roots: impl Into<Arc<RootCertStore>>) -> Self {
        self.trust = Trust::Roots(roots.into());
        self
    }

    /// Sets the code that verifies certificates, in place of [`roots`](Self::roots).
    pub fn verifier(mut self, verifier: Arc<dyn ServerCertVerifier>) -> Self {
        self.trust = Trust::Verifier(verifier);
        self
    }

    /// Sets the client's own certificate.
    pub fn identity(mut self, identity: Arc<dyn ResolvesClientCert>) -> Self {
        self.identity = identity;
        self
    }

    /// Sets the application protocols that are offered, the preferred one first: `h2`, `http/1.1`.
    pub fn alpn<P: AsRef<[u8]>>(mut self, protocols: impl IntoIterator<Item = P>) -> Self {
        self.alpn = protocols.into_iter().map(|protocol| protocol.as_ref().to_vec()).collect();
        self
    }

    /// Sets the provider of cryptography. The default is the process's default, or else ring.
    pub fn provider(mut self, provider: Arc<CryptoProvider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Sets when post-quantum key exchange is offered, if the provider has it (ring has not).
    pub fn post_quantum(mut self, post_quantum: PostQuantum) -> Self {
        self.post_quantum = post_quantum;
        self
    }

    /// Sets which first requests of a deferred stream may be sent as early data.
    pub fn first_request(mut self, first_request: FirstRequest) -> Self {
        self.first_request = first_request;
        self
    }

    /// Sets how many servers are remembered (default: 1,024, with up to eight tickets each).
    pub fn servers(mut self, servers: usize) -> Self {
        self.servers = servers;
        self
    }

    /// Sets where secrets are logged, to decrypt captures: [`rustls::KeyLogFile`].
    pub fn key_log(mut self, key_log: Arc<dyn KeyLog>) -> Self {
        self.key_log = Some(key_log);
        self
    }

    /// Returns the connector.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if there are no roots and no verifier, or if
    /// nothing is left of the provider's key exchange groups.
    pub fn build(self) -> io::Result<TlsConnector> {
        let provider = self.provider.unwrap_or_else(super::default_provider);
        let verifier = match self.trust {
            Trust::Verifier(verifier) => verifier,
            Trust::Roots(roots) => WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
                .build()
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?,
        };
        let ingredients = Ingredients {
            provider,
            verifier,
            identity: self.identity,
            alpn: self.alpn,
            key_log: self.key_log,
            post_quantum: self.post_quantum,
        };
        let configs = Configs::new(&ingredients, Sessions::new(self.servers))?;
        Ok(TlsConnector { configs: Arc::new(configs), first_request: self.first_request })
    }
}

fn no_name(name: &str) -> io::Error {
    let text =
        format!("cannot verify a certificate for `{name}`: it is neither a DNS name nor an IP address");
    io::Error::new(io::ErrorKind::InvalidInput, text)
}
