//! A connector for HTTP clients.
use super::first_write::{FirstWrite, Plan, within};
use super::{FirstRequest, HttpStream};
#[cfg(feature = "tls")]
use crate::tls::TlsConnector;
use crate::{Net, TcpSocket};
use hyper::Uri;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_service::Service;

/// Default time limit of a lookup, and of a connect: three retransmissions of the SYN.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects the client of hyper-util, a channel of tonic, and everything else that takes a
/// `Service<Uri>`, with Fast Open.
///
/// The connector looks up the name and returns a stream. The connection opens when the first
/// request is written: with the request on the SYN if the [`FirstRequest`] policy allows it and a
/// cookie of the server is known, otherwise with a plain handshake that asks for a cookie. Several
/// addresses of a name are tried by Happy Eyeballs (RFC 8305). Nagle's algorithm is off.
///
/// The start of an HTTP/2 connection, which clients send by itself, waits for the first request for
/// one tick of the runtime's timer, a millisecond.
///
/// A connection that cannot open fails its first request, not the connector: hyper-util's
/// `Error::is_connect` is false then. With [`FirstRequest::Never`] the connector itself opens the
/// connection and reports the error.
///
/// ```
/// use firstbyte::{Net, http::Connector};
/// use http_body_util::{BodyExt, Empty};
/// use hyper::body::Bytes;
/// use hyper_util::{client::legacy::Client, rt::TokioExecutor};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let connector = Connector::new(&Net::kernel());
/// let client = Client::builder(TokioExecutor::new()).build::<_, Empty<Bytes>>(connector);
/// let response = client.get("http://example.com/".parse()?).await?;
/// println!("{}", response.into_body().collect().await?.to_bytes().len());
/// # Ok(())
/// # }
/// ```
///
/// # gRPC
/// Each call is a POST, which is not repeatable: by default calls have a plain handshake. If every
/// method of the service may be executed twice, choose [`FirstRequest::Always`]; the first call
/// then needs one round trip. Otherwise choose [`FirstRequest::Never`], so that
/// `Endpoint::connect_with_connector` reports a server that cannot be reached.
///
/// # TLS
/// With the feature `tls`, and a connector given to `Connector::tls`, `https` addresses are
/// connected too, with ALPN and early data. Without, they are refused.
#[derive(Clone, Debug)]
pub struct Connector {
    socket: TcpSocket,
    first_request: FirstRequest,
    connect_timeout: Option<Duration>,
    #[cfg(feature = "tls")]
    tls: Option<TlsConnector>,
}

impl Connector {
    /// Returns a connector for plain HTTP on `net`.
    #[must_use]
    pub fn new(net: &Net) -> Connector {
        Connector::with_socket(net.socket().nodelay(true))
    }

    /// Returns a connector whose connections have the options of `socket`, for example a local
    /// address or keep-alive. Set [`nodelay`](TcpSocket::nodelay) there: a client that writes twice
    /// otherwise waits for an acknowledgment in between.
    #[must_use]
    pub fn with_socket(socket: TcpSocket) -> Connector {
        Connector {
            socket,
            first_request: FirstRequest::default(),
            connect_timeout: Some(CONNECT_TIMEOUT),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Sets which first requests the SYN may carry (default: [`FirstRequest::Repeatable`]).
    #[must_use]
    pub fn first_request(mut self, first_request: FirstRequest) -> Self {
        self.first_request = first_request;
        self
    }

    /// Sets the time limit of a lookup, and of a connect with all its attempts (default: 10 s);
    /// `None` leaves both to the operating system and to TCP.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Option<Duration>) -> Self {
        self.connect_timeout = limit;
        self
    }

    async fn connect(self, uri: Uri) -> io::Result<HttpStream> {
        let Target { is_tls, host, port } = target(&uri)?;
        let lookup = async {
            let found = tokio::net::lookup_host((host, port)).await;
            Ok(found.map_err(|error| not_found(host, &error))?.collect::<Vec<SocketAddr>>())
        };
        let peers = within(self.connect_timeout, host, lookup).await?;
        if is_tls {
            return self.connect_tls(&uri, host, peers).await;
        }
        let plan = Plan { socket: self.socket, name: host.into(), peers, limit: self.connect_timeout };
        Ok(HttpStream::tcp(match self.first_request {
            FirstRequest::Never => FirstWrite::opened(plan.open_plain().await?),
            policy => FirstWrite::waiting(plan, policy),
        }))
    }
}

#[cfg(feature = "tls")]
impl Connector {
    /// Connects `https` addresses with `tls`. Its own
    /// [`first_request`](crate::tls::TlsConnectorBuilder::first_request) does not count here: this
    /// connector's does.
    ///
    /// A server that was visited before, and takes early data, is connected with the first request;
    /// every other one first, because the server chooses HTTP/1.1 or HTTP/2 in its handshake.
    ///
    /// ```
    /// use firstbyte::tls::{TlsConnector, rustls::RootCertStore};
    /// use firstbyte::{Net, http::Connector};
    ///
    /// # fn example(roots: RootCertStore) -> std::io::Result<()> {
    /// let tls = TlsConnector::builder().roots(roots).alpn(["h2", "http/1.1"]).build()?;
    /// let connector = Connector::new(&Net::kernel()).tls(tls);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn tls(mut self, tls: TlsConnector) -> Self {
        self.tls = Some(tls);
        self
    }

    async fn connect_tls(self, uri: &Uri, host: &str, peers: Vec<SocketAddr>) -> io::Result<HttpStream> {
        let Some(tls) = self.tls else {
            return Err(refuse(uri, "this connector speaks plain HTTP; give it a TlsConnector"));
        };
        let (policy, limit) = (self.first_request, self.connect_timeout);
        let is_deferred = policy != FirstRequest::Never && tls.knows(host, uri.port_u16().unwrap_or(443))?;
        let policy = if is_deferred { policy } else { FirstRequest::Never };
        let mut stream = tls.unsent(self.socket, peers, host, policy, limit)?;
        if !is_deferred {
            within(limit, host, stream.complete()).await?;
        }
        Ok(HttpStream::tls(stream))
    }
}

#[cfg(not(feature = "tls"))]
impl Connector {
    #[expect(clippy::unused_async, reason = "the other one, with TLS, waits")]
    async fn connect_tls(self, uri: &Uri, _: &str, _: Vec<SocketAddr>) -> io::Result<HttpStream> {
        Err(refuse(uri, "this connector speaks plain HTTP; build firstbyte with the feature `tls`"))
    }
}

impl Service<Uri> for Connector {
    type Response = HttpStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<HttpStream>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// The server that an address names.
#[derive(Debug, PartialEq, Eq)]
struct Target<'a> {
    is_tls: bool,
    /// Without the brackets of an IPv6 address.
    host: &'a str,
    port: u16,
}

fn target(uri: &Uri) -> io::Result<Target<'_>> {
    let is_tls = match uri.scheme_str() {
        Some("http") | None => false,
        Some("https") => true,
        Some(_) => return Err(refuse(uri, "give an address with `http://` or `https://`")),
    };
    let host = uri.host().filter(|host| !host.is_empty());
    let host =
        host.ok_or_else(|| refuse(uri, "it names no host; give an address such as `http://host:80/`"))?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    Ok(Target { is_tls, host, port })
}

fn refuse(uri: &Uri, why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("cannot connect to `{uri}`: {why}"))
}

fn not_found(host: &str, error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("cannot look up `{host}`: {error}; check the name and /etc/resolv.conf"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_of_an_address() {
        for (uri, is_tls, host, port) in [
            ("http://a.example/x", false, "a.example", 80),
            ("http://a.example:8080/x", false, "a.example", 8080),
            ("http://user@10.0.0.1:1/", false, "10.0.0.1", 1),
            ("http://[fd00::1]:81/", false, "fd00::1", 81),
            ("https://[fd00::1]/", true, "fd00::1", 443),
            ("https://a.example:444/", true, "a.example", 444),
        ] {
            let expected = Target { is_tls, host, port };
            assert_eq!(target(&uri.parse().unwrap()).unwrap(), expected, "{uri}");
        }
        for uri in ["/path", "ftp://a.example/"] {
            assert_eq!(target(&uri.parse().unwrap()).unwrap_err().kind(), ErrorKind::InvalidInput, "{uri}");
        }
    }
}
