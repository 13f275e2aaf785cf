//! One visit: a connection, a request, its reply, and their times.
use super::body::Sink;
use super::target::Target;
use super::words;
use crate::failure::Failure;
use crate::recorder::{Recorder, Seen};
use bytes::Bytes;
use firstbyte::{ConnectionInfo, FastOpen, Net, TcpStream};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

/// The request, and the way to connect.
#[derive(Clone, Debug)]
pub(crate) struct How {
    pub(crate) target: Target,
    pub(crate) method: Method,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
    pub(crate) fast_open: FastOpen,
    pub(crate) data_less: bool,
    pub(crate) syn_fin: bool,
    /// Limit for the whole visit.
    pub(crate) timeout: Duration,
}

/// A finished visit.
#[derive(Debug)]
pub(crate) struct Visit {
    pub(crate) result: Result<Reply, String>,
    /// State of the connection at its end, if there was one.
    pub(crate) info: Option<ConnectionInfo>,
    /// State of the connection at its end, as `ss` prints it.
    pub(crate) ss: Option<String>,
    /// Time from the first packet to the first byte of the reply.
    pub(crate) first_byte: Option<Duration>,
    pub(crate) total: Duration,
    /// The recorded packets, if any.
    pub(crate) packets: Option<Vec<Seen>>,
    /// True if the visit before was answered with 425 Too Early.
    pub(crate) is_retry: bool,
    /// True if the next visit counts instead.
    pub(crate) is_superseded: bool,
}

/// A complete reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    /// Length of its body, bytes.
    pub(crate) len: u64,
    /// True if the server rejected the request only because it was early data.
    pub(crate) is_too_early: bool,
}

impl Visit {
    /// True if there was a reply, and a successful one if `status_matters`.
    pub(crate) fn is_well(&self, status_matters: bool) -> bool {
        let is_good = |reply: &Reply| !status_matters || reply.status.as_u16() < 400;
        self.is_superseded || self.result.as_ref().is_ok_and(is_good)
    }

    /// True if the server rejected the request only because it was early data.
    pub(crate) fn is_too_early(&self) -> bool {
        self.result.as_ref().is_ok_and(|reply| reply.is_too_early)
    }

    /// Time from the SYN to the end of the handshake.
    pub(crate) fn handshake(&self) -> Option<Duration> {
        let info = self.info.as_ref()?;
        Some(info.established_at?.since(info.opened_at))
    }

    /// Keeps the packets recorded since the last call.
    pub(crate) fn keep_packets(&mut self, recorder: Option<&Recorder>) {
        self.packets = recorder.map(Recorder::take);
    }
}

/// Observations during a visit.
#[derive(Default)]
struct Progress {
    first_byte_at: Option<Instant>,
    info: Option<ConnectionInfo>,
    ss: Option<String>,
}

impl Progress {
    fn look(&mut self, stream: &TcpStream) {
        self.info = stream.connection_info().ok().or(self.info.take());
        self.ss = stream.ss().ok().or(self.ss.take());
    }
}

/// Idle time after which keep-alive probes are sent: the server may have closed and forgotten the
/// connection.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Makes one visit. Fails only if the sink fails: network errors are results.
pub(crate) async fn visit(net: &Net, peer: SocketAddr, how: &How, sink: &mut Sink) -> Result<Visit, Failure> {
    let begun = Instant::now();
    let mut progress = Progress::default();
    let exchanged = tokio::time::timeout(how.timeout, exchange(net, peer, how, sink, &mut progress)).await;
    let result = match exchanged {
        Ok(Ok((reply, stream))) => {
            let total = begun.elapsed();
            finish(stream, how.timeout.saturating_sub(total), &mut progress).await;
            (Ok(reply), total)
        }
        Ok(Err(Broken::Network(error))) => (Err(words::failure(&error, peer)), begun.elapsed()),
        Ok(Err(Broken::Sink(failure))) => return Err(failure),
        Err(_) => (Err(words::timeout(how.timeout, peer)), begun.elapsed()),
    };
    Ok(Visit {
        result: result.0,
        info: progress.info,
        ss: progress.ss,
        first_byte: progress.first_byte_at.map(|at| at - begun),
        total: result.1,
        packets: None,
        is_retry: false,
        is_superseded: false,
    })
}

/// Reason of an early end.
enum Broken {
    Network(io::Error),
    Sink(Failure),
}

impl From<hyper::Error> for Broken {
    fn from(error: hyper::Error) -> Broken {
        Broken::Network(words::io_error(error))
    }
}

async fn exchange(
    net: &Net,
    peer: SocketAddr,
    how: &How,
    sink: &mut Sink,
    progress: &mut Progress,
) -> Result<(Reply, TcpStream), Broken> {
    let stream = connect(net, peer, how).await.map_err(Broken::Network)?;
    let was_early = Rc::new(Cell::new(false));
    let io = TokioIo::new(Watched { stream, first_byte_at: None, was_early: was_early.clone() });
    let (mut sender, connection) = http1::handshake::<_, Full<Bytes>>(io).await?;
    let talk = async move {
        let response = sender.send_request(request(how)).await?;
        receive(response, &was_early, sink).await
    };
    // The request is queued before the connection starts, so the first flush carries all of it.
    let (reply, connection) = tokio::join!(talk, connection.without_shutdown());
    // If both failed, the connection knows the reason.
    let Watched { stream, first_byte_at, .. } = connection?.io.into_inner();
    progress.first_byte_at = first_byte_at;
    progress.look(&stream);
    Ok((reply?, stream))
}

async fn connect(net: &Net, peer: SocketAddr, how: &How) -> io::Result<TcpStream> {
    let socket = net.socket().nodelay(true).keepalive(Some(KEEPALIVE)).fast_open(how.fast_open);
    match how.data_less {
        true => socket.data_less(true).connect(peer).await,
        false => socket.fin(how.syn_fin).syn_fin(how.syn_fin).connect_deferred(peer).await,
    }
}

fn request(how: &How) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(how.body.clone()));
    *request.method_mut() = how.method.clone();
    *request.uri_mut() = how.target.path.clone();
    let mut headers = HeaderMap::new();
    headers.insert(HOST, how.target.authority.clone());
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("firstbyte/", env!("CARGO_PKG_VERSION"))));
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    for (name, _) in &how.headers {
        headers.remove(name);
    }
    for (name, value) in &how.headers {
        headers.append(name, value.clone());
    }
    *request.headers_mut() = headers;
    request
}

/// Receives the reply. Skips the page of a reply 425 Too Early: another visit follows.
async fn receive(
    response: Response<Incoming>,
    was_early: &Cell<bool>,
    sink: &mut Sink,
) -> Result<Reply, Broken> {
    let (head, mut body) = response.into_parts();
    let mut nowhere = Sink::Nowhere;
    let is_too_early = head.status == StatusCode::TOO_EARLY && was_early.get();
    let sink = if is_too_early { &mut nowhere } else { sink };
    sink.head(&head).map_err(Broken::Sink)?;
    let mut len = 0;
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            len += data.len() as u64;
            sink.write(&data).map_err(Broken::Sink)?;
        }
    }
    Ok(Reply { status: head.status, len, is_too_early })
}

/// Closes the connection and waits for the last packets: the peer's FIN and the ACK of ours.
async fn finish(mut stream: TcpStream, timeout: Duration, progress: &mut Progress) {
    let closed = async {
        stream.shutdown().await?;
        let mut rest = [0; 4096];
        while stream.read(&mut rest).await? > 0 {}
        stream.delivered().await
    };
    // The reply is complete, so an abrupt end does not matter.
    let _ = tokio::time::timeout(timeout.min(LINGER), closed).await;
    progress.look(&stream);
}

/// Time for the server to close after its reply.
const LINGER: Duration = Duration::from_secs(1);

/// A stream that notes the time of its first byte, and whether the SYN's data was accepted by then.
struct Watched {
    stream: TcpStream,
    first_byte_at: Option<Instant>,
    /// True if the peer accepted data of the SYN.
    was_early: Rc<Cell<bool>>,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before && self.first_byte_at.is_none() {
            self.first_byte_at = Some(Instant::now());
            self.was_early.set(self.stream.connection_info().is_ok_and(|info| info.syn_data_acked > 0));
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(headers: &[&str]) -> How {
        How {
            target: "http://a/".parse().unwrap(),
            method: Method::GET,
            headers: headers.iter().map(|text| super::super::target::header(text).unwrap()).collect(),
            body: Bytes::new(),
            fast_open: FastOpen::Auto,
            data_less: false,
            syn_fin: false,
            timeout: Duration::from_secs(1),
        }
    }

    #[test]
    fn every_header_given_is_sent_and_replaces_the_default() {
        let request = request(&how(&["Cookie: a=1", "Accept: text/html", "Cookie: b=2"]));
        let sent = |name: &str| request.headers().get_all(name).iter().collect::<Vec<_>>();
        assert_eq!(sent("cookie"), ["a=1", "b=2"]);
        assert_eq!(sent("accept"), ["text/html"]);
        assert_eq!(sent("host"), ["a"]);
    }
}
