//! A connector for HTTP clients.
use super::first_write::{FirstWrite, Plan, within};
use super::{FirstRequest, HttpStream};
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
/// This connector speaks plain HTTP and refuses `https` addresses.
#[derive(Clone, Debug)]
pub struct Connector {
    socket: TcpSocket,
    first_request: FirstRequest,
    connect_timeout: Option<Duration>,
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
        Connector { socket, first_request: FirstRequest::default(), connect_timeout: Some(CONNECT_TIMEOUT) }
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
        let (host, port) = target(&uri)?;
        let lookup = async { Ok(tokio::net::lookup_host((host, port)).await?.collect::<Vec<SocketAddr>>()) };
        let peers = within(self.connect_timeout, host, lookup).await?;
        let plan = Plan { socket: self.socket, name: host.into(), peers, limit: self.connect_timeout };
        Ok(HttpStream::tcp(match self.first_request {
            FirstRequest::Never => FirstWrite::opened(plan.open_plain().await?),
            policy => FirstWrite::waiting(plan, policy),
        }))
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

/// Returns the host, without the brackets of an IPv6 address, and the port.
fn target(uri: &Uri) -> io::Result<(&str, u16)> {
    let refuse =
        |why: &str| io::Error::new(ErrorKind::InvalidInput, format!("cannot connect to `{uri}`: {why}"));
    if let Some(scheme) = uri.scheme_str()
        && scheme != "http"
    {
        return Err(refuse("this connector speaks plain HTTP; give an address with `http://`"));
    }
    let host = uri.host().filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| refuse("it names no host; give an address such as `http://host:80/`"))?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Ok((host, uri.port_u16().unwrap_or(80)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_of_an_address() {
        for (uri, expected) in [
            ("http://a.example/x", ("a.example", 80)),
            ("http://a.example:8080/x", ("a.example", 8080)),
            ("http://user@10.0.0.1:1/", ("10.0.0.1", 1)),
            ("http://[fd00::1]:81/", ("fd00::1", 81)),
            ("http://[fd00::1]/", ("fd00::1", 80)),
        ] {
            assert_eq!(target(&uri.parse().unwrap()).unwrap(), expected, "{uri}");
        }
        for uri in ["https://a.example/", "/path", "ftp://a.example/"] {
            assert_eq!(target(&uri.parse().unwrap()).unwrap_err().kind(), ErrorKind::InvalidInput, "{uri}");
        }
    }
}
