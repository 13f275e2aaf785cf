//! One visit: a connection, a request, its reply, and their times.
use super::body::{Page, Sink};
use super::request::{Early, How};
use super::watched::{FastOpenUse, Observed, Seen, TlsUse, Watched};
use super::words;
use crate::failure::Failure;
use crate::recorder::{self, Recorder};
use bytes::Bytes;
use firstbyte::tls::{TlsConnector, TlsStream};
use firstbyte::{ConnectionInfo, Net, StreamInfo, TcpSocket, TcpStream};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::{http1, http2};
use hyper::header::{HeaderValue, LOCATION};
use hyper::{Response, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A finished visit.
#[derive(Debug)]
pub(crate) struct Visit {
    pub(crate) url: String,
    pub(crate) peer: SocketAddr,
    pub(crate) result: Result<Reply, String>,
    /// Observations of the connection, if there was one.
    pub(crate) fast_open: Option<FastOpenUse>,
    pub(crate) tls: Option<TlsUse>,
    pub(crate) stream: Option<StreamInfo>,
    /// State that only our own stack reports.
    pub(crate) info: Option<ConnectionInfo>,
    /// State of the connection at its end, as `ss` prints it.
    pub(crate) ss: Option<String>,
    /// Time for the name, if it was looked up for this visit.
    pub(crate) name: Option<Duration>,
    /// Time from the SYN to the end of the handshake.
    pub(crate) handshake: Option<Duration>,
    /// Time from then to the end of the TLS handshake.
    pub(crate) tls_handshake: Option<Duration>,
    /// Time from the first packet to the first byte of the reply.
    pub(crate) first_byte: Option<Duration>,
    pub(crate) total: Duration,
    /// The recorded packets, if any.
    pub(crate) packets: Option<Vec<recorder::Seen>>,
    /// True if the visit before was answered with 425 Too Early.
    pub(crate) is_retry: bool,
    /// True if the next visit counts instead.
    pub(crate) is_superseded: bool,
    /// True if the peer did not answer the connection attempt.
    pub(crate) is_unreachable: bool,
}

/// A complete reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    /// Length of its body, bytes.
    pub(crate) len: u64,
    /// True if the server rejected the request only because it was early data.
    pub(crate) is_too_early: bool,
    /// The value of `Location`, if the redirect is to be followed.
    pub(crate) location: Option<HeaderValue>,
    /// The reply is not a part of the file that is continued.
    pub(crate) is_other: bool,
}

impl Visit {
    /// True if there was a reply, and a successful one if `status_matters`.
    pub(crate) fn is_well(&self, status_matters: bool) -> bool {
        let is_good = |reply: &Reply| {
            !reply.is_other && (!status_matters || reply.status.as_u16() < 400 || self.is_superseded)
        };
        self.is_superseded || self.result.as_ref().is_ok_and(is_good)
    }

    /// True if the server rejected the request only because it was early data.
    pub(crate) fn is_too_early(&self) -> bool {
        self.result.as_ref().is_ok_and(|reply| reply.is_too_early)
    }

    /// The status and the target of a redirect to be followed.
    pub(crate) fn redirect(&self) -> Option<(StatusCode, &HeaderValue)> {
        let reply = self.result.as_ref().ok()?;
        Some((reply.status, reply.location.as_ref()?))
    }

    /// Time from the first byte of the reply to the end.
    pub(crate) fn rest(&self) -> Option<Duration> {
        Some(self.total.saturating_sub(self.first_byte?))
    }

    /// Keeps the packets recorded since the last call.
    pub(crate) fn keep_packets(&mut self, recorder: Option<&Recorder>) {
        self.packets = recorder.map(Recorder::take);
    }
}

/// Idle time after which keep-alive probes are sent: the server may have closed and forgotten the
/// connection.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Opens connections, with TLS for https.
pub(crate) struct Client<'a> {
    pub(crate) net: &'a Net,
    /// Made when the first https URL is visited; keeps tickets for the next.
    pub(crate) tls: Option<TlsConnector>,
}

impl Client<'_> {
    /// Makes one visit to the first of `peers` that answers. Fails only if the sink fails: network
    /// errors are results.
    pub(crate) async fn visit(
        &self,
        peers: &[SocketAddr],
        how: &How,
        sink: &mut Sink,
    ) -> Result<Visit, Failure> {
        let Some((last, others)) = peers.split_last() else {
            return Err(Failure::failed(format!("cannot reach {}: it has no address", how.target.host)));
        };
        for peer in others {
            let visit = self.visit_peer(*peer, how, sink).await?;
            if !visit.is_unreachable {
                return Ok(visit);
            }
        }
        self.visit_peer(*last, how, sink).await
    }

    async fn visit_peer(&self, peer: SocketAddr, how: &How, sink: &mut Sink) -> Result<Visit, Failure> {
        let seen = Seen::begin(how);
        let begun = Instant::now();
        let exchanged = tokio::select! {
            biased;
            exchanged = self.exchange(peer, how, sink, &seen) => exchanged,
            () = seen.stalled(how.limits.pause) => Err(Broken::Stalled),
            () = at_most(how.limits.total) => Err(Broken::TooLong),
        };
        let (result, total) = match exchanged {
            Ok((reply, end)) => {
                let total = begun.elapsed();
                end.await;
                (Ok(reply), total)
            }
            Err(Broken::Sink(failure)) => return Err(failure),
            Err(broken) => (Err(broken), begun.elapsed()),
        };
        let seen = seen.take();
        let is_unreachable = match &result {
            Err(Broken::Network(error)) => seen.first_byte.is_none() && is_unreachable(error),
            Err(Broken::Stalled) => seen.handshake.is_none() && seen.first_byte.is_none(),
            _ => false,
        };
        let words = words::Place { peer, backend: self.net.backend() };
        let result = result.map_err(|broken| match broken {
            Broken::Network(error) => words.failure(&error),
            Broken::TooLong => words.too_long(how.limits.total.unwrap_or_default()),
            Broken::Stalled | Broken::Sink(_) => words.stalled(how.limits.pause, seen.first_byte.is_some()),
        });
        Ok(Visit {
            url: how.target.url.clone(),
            peer,
            result,
            fast_open: seen.fast_open,
            tls: seen.tls,
            stream: seen.stream,
            info: seen.info,
            ss: seen.ss,
            name: None,
            handshake: seen.handshake,
            tls_handshake: seen.tls_handshake,
            first_byte: seen.first_byte,
            total,
            packets: None,
            is_retry: false,
            is_superseded: false,
            is_unreachable,
        })
    }

    /// Exchanges a request for its reply. The future that is returned closes the connection.
    async fn exchange(
        &self,
        peer: SocketAddr,
        how: &How,
        sink: &mut Sink,
        seen: &Seen,
    ) -> Result<(Reply, End), Broken> {
        match &self.tls {
            Some(connector) if how.is_secure() => {
                let stream = self.connect_secure(connector, peer, how).await.map_err(Broken::Network)?;
                match stream.alpn() {
                    Some(b"h2") => http2(stream, how, sink, seen).await,
                    _ => http1(stream, how, sink, seen).await,
                }
            }
            _ => {
                let stream = self.connect(peer, how).await.map_err(Broken::Network)?;
                http1(stream, how, sink, seen).await
            }
        }
    }

    fn socket(&self, how: &How) -> TcpSocket {
        self.net.socket().nodelay(true).keepalive(Some(KEEPALIVE)).fast_open(how.fast_open())
    }

    async fn connect(&self, peer: SocketAddr, how: &How) -> io::Result<TcpStream> {
        let socket = self.socket(how);
        match how.data_less {
            true => socket.data_less(true).connect(peer).await,
            false => socket.fin(how.syn_fin).syn_fin(how.syn_fin).connect_deferred(peer).await,
        }
    }

    /// Connects with the first write if the protocol is known from an earlier visit, and else
    /// before it.
    async fn connect_secure(
        &self,
        connector: &TlsConnector,
        peer: SocketAddr,
        how: &How,
    ) -> io::Result<TlsStream> {
        let name = &how.target.host;
        if how.early != Early::Never {
            let stream = connector.connect_deferred(self.socket(how), peer, name).await?;
            if stream.alpn().is_some() {
                return Ok(stream);
            }
        }
        connector.connect(self.socket(how), peer, name).await
    }
}

/// Closes a connection.
type End = Pin<Box<dyn Future<Output = ()>>>;

/// Waits for the end of a time limit.
async fn at_most(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

fn is_unreachable(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable, TimedOut};
    let kinds = [AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable, TimedOut];
    kinds.contains(&error.kind())
}

/// Reason of an early end.
enum Broken {
    Network(io::Error),
    Sink(Failure),
    /// Nothing happened for too long.
    Stalled,
    /// The visit took too long.
    TooLong,
}

impl From<hyper::Error> for Broken {
    fn from(error: hyper::Error) -> Broken {
        Broken::Network(words::io_error(error))
    }
}

async fn http1<S>(stream: S, how: &How, sink: &mut Sink, seen: &Seen) -> Result<(Reply, End), Broken>
where
    S: AsyncRead + AsyncWrite + Observed + Unpin + Send + 'static,
{
    let io = TokioIo::new(Watched::new(stream, seen.clone()));
    let (mut sender, connection) = http1::handshake::<_, Full<Bytes>>(io).await?;
    let talk = async move {
        let response = sender.send_request(how.request(Version::HTTP_11)).await?;
        receive(response, how, seen, sink).await
    };
    // The request is queued before the connection starts, so the first flush carries all of it.
    let (reply, connection) = tokio::join!(talk, connection.without_shutdown());
    // If both failed, the connection knows the reason.
    let stream = connection?.io.into_inner().into_inner();
    stream.iter().for_each(|stream| seen.look(stream));
    let (seen, pause) = (seen.clone(), how.limits.pause);
    let end = async move {
        if let Some(stream) = stream {
            finish(stream, pause, &seen).await;
        }
    };
    Ok((reply?, Box::pin(end)))
}

async fn http2(stream: TlsStream, how: &How, sink: &mut Sink, seen: &Seen) -> Result<(Reply, End), Broken> {
    let io = TokioIo::new(Watched::new(stream, seen.clone()));
    let (mut sender, connection) = http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), io).await?;
    let mut connection = Box::pin(connection);
    let talk = async move {
        let response = sender.send_request(how.request(Version::HTTP_2)).await?;
        receive(response, how, seen, sink).await
    };
    let reply = tokio::select! {
        biased;
        reply = talk => reply,
        ended = &mut connection => match ended {
            Err(error) => Err(error.into()),
            Ok(()) => Err(Broken::Network(io::ErrorKind::UnexpectedEof.into())),
        },
    };
    let end = async move {
        // The reply is complete, so an abrupt end does not matter.
        let _ = tokio::time::timeout(LINGER, connection).await;
    };
    Ok((reply?, Box::pin(end)))
}

/// Receives the reply. Skips the page of a reply that another visit follows.
async fn receive(
    response: Response<Incoming>,
    how: &How,
    seen: &Seen,
    sink: &mut Sink,
) -> Result<Reply, Broken> {
    let (head, mut body) = response.into_parts();
    let is_too_early = head.status == StatusCode::TOO_EARLY && seen.was_early();
    let location = head.headers.get(LOCATION).filter(|_| how.follows && is_followed(head.status)).cloned();
    let mut is_other = false;
    let mut nowhere = Sink::nowhere();
    let sink = match is_too_early || location.is_some() {
        true => &mut nowhere,
        false => match sink.head(&head, body.size_hint().exact()).map_err(Broken::Sink)? {
            Page::Keep => sink,
            Page::Discard => {
                is_other = !sink.is_complete();
                &mut nowhere
            }
        },
    };
    let mut len = 0;
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            len += data.len() as u64;
            sink.write(&data).map_err(Broken::Sink)?;
        }
    }
    Ok(Reply { status: head.status, len, is_too_early, location, is_other })
}

/// True for redirects with a `Location` to go to (RFC 9110 §15.4). 300 offers a choice, and 304
/// and 305 have other meanings.
fn is_followed(status: StatusCode) -> bool {
    [
        StatusCode::MOVED_PERMANENTLY,
        StatusCode::FOUND,
        StatusCode::SEE_OTHER,
        StatusCode::TEMPORARY_REDIRECT,
        StatusCode::PERMANENT_REDIRECT,
    ]
    .contains(&status)
}

/// Closes the connection and waits for the last packets: the peer's FIN and the ACK of ours.
async fn finish<S>(mut stream: S, timeout: Duration, seen: &Seen)
where
    S: AsyncRead + AsyncWrite + Observed + Unpin,
{
    let closed = async {
        stream.shutdown().await?;
        let mut rest = [0; 4096];
        while stream.read(&mut rest).await? > 0 {}
        match stream.tcp() {
            Some(tcp) => tcp.delivered().await,
            None => Ok(()),
        }
    };
    // The reply is complete, so an abrupt end does not matter.
    let _ = tokio::time::timeout(timeout.min(LINGER), closed).await;
    seen.look(&stream);
}

/// Time for the server to close after its reply.
const LINGER: Duration = Duration::from_secs(1);
