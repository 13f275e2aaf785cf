//! A client that visits a server again and again.
use crate::side::{NAME, Protocol, Side, certified};
use bytes::Bytes;
use firstbyte::Net;
use firstbyte::tls::rustls::RootCertStore;
use firstbyte::tls::{TlsConnector, TlsOutcome, TlsStream};
use http_body_util::{BodyExt as _, Empty};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use interop::{Conversation, Direction, Wire};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// One visit.
pub(crate) struct Visit {
    /// From the call that connects to the head of the answer.
    pub(crate) first_byte: Duration,
    /// Packets of both sides, up to the one with the first byte.
    pub(crate) packets_to_first_byte: usize,
    pub(crate) conversation: Conversation,
}

pub(crate) struct Client<'a> {
    side: &'a Side,
    connector: TlsConnector,
    server: SocketAddr,
    protocol: Protocol,
}

impl<'a> Client<'a> {
    pub(crate) fn new(side: &'a Side, server: IpAddr, protocol: Protocol) -> Client<'a> {
        let mut roots = RootCertStore::empty();
        roots.add(certified().2.clone()).expect("a certificate");
        let connector = TlsConnector::builder().roots(roots).alpn([protocol.alpn()]).build();
        let connector = connector.expect("a connector");
        Client { side, connector, server: SocketAddr::new(server, 443), protocol }
    }

    /// Makes the first visit, which leaves a cookie and a ticket.
    pub(crate) fn prepare(&self) {
        self.get();
        self.wait_for_ticket();
    }

    /// Makes a visit when a ticket is there, and reads its packets.
    pub(crate) fn visit(&self, wire: &Wire) -> Visit {
        drop(wire.settle(crate::rtt() * 2));
        let first_byte = self.get();
        let conversation = wire.settle(crate::rtt() * 2).only_opened();
        self.wait_for_ticket();
        let answered = |packet: &interop::record::Packet| {
            packet.direction == Direction::ToClient && !packet.segment.payload.is_empty()
        };
        let packets_to_first_byte = conversation.packets.iter().position(answered).map_or(0, |n| n + 1);
        Visit { first_byte, packets_to_first_byte, conversation }
    }

    /// Gets the page. Returns the time to the head of the answer.
    pub(crate) fn get(&self) -> Duration {
        let (net, connector, server) = (self.side.net.clone(), self.connector.clone(), self.server);
        let protocol = self.protocol;
        self.side.run(async move { get(&net, &connector, server, protocol).await.expect("an answer") })
    }

    /// Sends one request without hyper, and reads the first byte of the answer.
    pub(crate) fn ask(&self, method: &'static str) -> TlsOutcome {
        let (net, connector, server) = (self.side.net.clone(), self.connector.clone(), self.server);
        self.side.run(async move { ask(&net, &connector, server, method).await.expect("an answer") })
    }

    /// Gets the page again and again, without hyper, and drops the stream with its first byte.
    pub(crate) fn visits_without_pause(&self, count: usize) -> Vec<TlsOutcome> {
        let (net, connector, server) = (self.side.net.clone(), self.connector.clone(), self.server);
        self.side.run(async move {
            let mut outcomes = Vec::new();
            for _ in 0..count {
                outcomes.push(ask(&net, &connector, server, "GET").await.expect("an answer"));
            }
            outcomes
        })
    }

    pub(crate) fn wait_for_ticket(&self) {
        let begun = Instant::now();
        while !self.connector.knows(NAME, 443).expect("a name") {
            assert!(begun.elapsed() < Duration::from_secs(5), "no ticket came");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

async fn ask(
    net: &Net,
    connector: &TlsConnector,
    server: SocketAddr,
    method: &str,
) -> io::Result<TlsOutcome> {
    let mut stream = connector.connect_deferred(net, server, NAME).await?;
    let request = format!("{method} / HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    stream.read_u8().await?;
    Ok(stream.outcome())
}

async fn get(
    net: &Net,
    connector: &TlsConnector,
    server: SocketAddr,
    protocol: Protocol,
) -> io::Result<Duration> {
    let begun = Instant::now();
    let stream = connector.connect_deferred(net, server, NAME).await?;
    let request = protocol.request().map_err(io::Error::other)?;
    let response = send(stream, request, protocol).await.map_err(io::Error::other)?;
    let first_byte = begun.elapsed();
    let body = response.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    assert_eq!(body.len(), 612);
    Ok(first_byte)
}

async fn send(
    stream: TlsStream,
    request: Request<Empty<Bytes>>,
    protocol: Protocol,
) -> hyper::Result<Response<hyper::body::Incoming>> {
    let io = TokioIo::new(stream);
    match protocol {
        Protocol::Http1 => {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
            tokio::spawn(connection);
            sender.send_request(request).await
        }
        Protocol::Http2 => {
            let executor = TokioExecutor::new();
            let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await?;
            tokio::spawn(connection);
            sender.send_request(request).await
        }
    }
}

impl Protocol {
    /// Returns a GET, with the server's name where the protocol has it.
    fn request(self) -> hyper::http::Result<Request<Empty<Bytes>>> {
        let request = match self {
            Protocol::Http1 => Request::get("/").header("host", NAME),
            Protocol::Http2 => Request::get(format!("https://{NAME}/")),
        };
        request.body(Empty::new())
    }
}
