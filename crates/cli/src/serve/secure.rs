//! HTTP over TLS: HTTP/1.1 and HTTP/2, by the protocol that the client chose (ALPN).
//!
//! Early data is the start of the stream, so a request in it is answered with the server's first
//! flight. Requests that must not be executed twice get 425 Too Early until the handshake is
//! complete (RFC 8470).
use super::HttpServer;
use super::Task;
use super::body::Body;
use super::pace::{LeastRate, Pace, too_slow};
use super::reply::{Arrival, Site};
use super::request::Request as RequestLine;
use crate::failure::Failure;
use crate::input;
use crate::secret;
use firstbyte::TcpStream;
use firstbyte::tls::{Handshake, TlsAcceptor, TlsStream};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

/// Application protocols, in the server's order.
const PROTOCOLS: [&str; 2] = ["h2", "http/1.1"];
/// Longest private key, bytes.
const KEY_MAX: u64 = 64 * 1024;
/// Most bytes of a request's head, and of buffered data.
const BUFFER_MAX: usize = 64 * 1024;
/// Most header fields.
const HEADERS_MAX: usize = 100;
/// Most requests of one HTTP/2 connection at a time.
const STREAMS_MAX: u32 = 100;
/// Time for a client to close after the last reply.
const LINGER: Duration = Duration::from_secs(10);

/// Reads a certificate chain and its private key, both in PEM; one file may hold both.
pub(super) fn acceptor(cert: &Path, key: &Path, timeout: Duration) -> Result<TlsAcceptor, Failure> {
    let chain = input::bytes(cert, input::WRITTEN_MAX)?;
    let key_text = secret::read(key, KEY_MAX, "a private key")?;
    secret::warn_if_shared(key, "the private key");
    let acceptor = TlsAcceptor::from_pem(&chain, key_text.as_bytes(), PROTOCOLS).map_err(|error| {
        Failure::failed(format!(
            "{error} (--cert {}, --cert-key {}); both must be PEM, such as of `openssl req -x509 -newkey \
             ed25519 -nodes -keyout key.pem -out cert.pem -subj /CN=localhost -addext \
             subjectAltName=DNS:localhost -addext basicConstraints=CA:FALSE`",
            cert.display(),
            key.display()
        ))
    })?;
    Ok(acceptor.timeout(timeout))
}

/// The handler of TLS connections.
#[derive(Clone)]
pub(super) struct SecureServer {
    pub(super) http: HttpServer,
    pub(super) acceptor: TlsAcceptor,
}

impl SecureServer {
    /// Serves one connection to its end.
    pub(super) async fn handle(self, tcp: TcpStream, peer: SocketAddr, mut task: Task) {
        let accepted = tokio::select! {
            biased;
            accepted = self.acceptor.accept(tcp) => accepted,
            // The client has not requested anything.
            () = task.stopped() => return,
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => return task.log.refused(peer, &error),
        };
        let is_http2 = stream.alpn() == Some(b"h2");
        let activity = Activity::default();
        let answer = Answer {
            site: self.http.site.clone(),
            handshake: stream.handshake(),
            activity: activity.clone(),
            log: (task.clone(), peer),
        };
        let stream = SecureStream { stream, pace: Pace::new(self.http.least_rate) };
        match is_http2 {
            true => self.http2(stream, answer, activity, peer, task).await,
            false => self.http1(stream, answer, activity, peer, task).await,
        }
    }

    async fn http1(
        &self,
        stream: SecureStream,
        answer: Answer,
        activity: Activity,
        peer: SocketAddr,
        task: Task,
    ) {
        let mut connection = http1::Builder::new()
            .keep_alive(self.http.keep_alive)
            .half_close(true)
            .timer(TokioTimer::new())
            .header_read_timeout(self.http.timeout)
            .max_buf_size(BUFFER_MAX)
            .max_headers(HEADERS_MAX)
            .serve_connection(TokioIo::new(stream), answer);
        let mut others = task.clone();
        let served = tokio::select! {
            biased;
            served = std::future::poll_fn(|cx| connection.poll_without_shutdown(cx)) => served,
            is_asked = activity.ended(&mut others, self.http.timeout) => {
                if !is_asked {
                    return;
                }
                Pin::new(&mut connection).graceful_shutdown();
                std::future::poll_fn(|cx| connection.poll_without_shutdown(cx)).await
            }
        };
        if let Err(error) = served {
            return match error.is_parse() {
                true => task.log.refused(peer, &error),
                false => task.log.broken(peer, &error),
            };
        }
        let stream = connection.into_parts().io.into_inner().stream;
        finish(stream, self.http.least_rate, task).await;
    }

    async fn http2(
        &self,
        stream: SecureStream,
        answer: Answer,
        activity: Activity,
        peer: SocketAddr,
        task: Task,
    ) {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_header_list_size(BUFFER_MAX as u32)
            .max_concurrent_streams(STREAMS_MAX);
        let mut connection = builder.serve_connection(TokioIo::new(stream), answer);
        let mut others = task.clone();
        let served = tokio::select! {
            biased;
            served = Pin::new(&mut connection) => served,
            is_asked = activity.ended(&mut others, self.http.timeout) => {
                if !is_asked {
                    return;
                }
                Pin::new(&mut connection).graceful_shutdown();
                // Waits for the client to confirm that no more requests are under way.
                tokio::time::timeout(LINGER, connection).await.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = served {
            task.log.broken(peer, &error);
        }
    }
}

/// Sends the end of the stream, and waits until the client closes too. A connection that is dropped
/// with unread data is reset, and the reply might be lost.
async fn finish(mut stream: TlsStream, least_rate: LeastRate, mut task: Task) {
    let closed = async {
        stream.shutdown().await?;
        let mut rest = [0; 512];
        while stream.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    tokio::select! {
        biased;
        // The reply is complete, so an abrupt end does not matter.
        _ = tokio::time::timeout(LINGER, closed) => {}
        () = task.crowded() => {}
    }
    if let Some(tcp) = stream.tcp() {
        tokio::select! {
            biased;
            _ = tcp.delivered() => {}
            _ = too_slow(tcp, least_rate) => super::pace::abort(tcp),
            () = task.stopped() => {}
        }
    }
}

/// The requests of a connection that are being answered.
#[derive(Clone)]
struct Activity(Arc<Mutex<State>>);

struct State {
    asked: u64,
    pending: u32,
    /// Time of the last end of a reply, or of the connection's begin.
    idle_since: Instant,
}

impl Default for Activity {
    fn default() -> Activity {
        Activity(Arc::new(Mutex::new(State { asked: 0, pending: 0, idle_since: Instant::now() })))
    }
}

impl Activity {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> Answering {
        let mut state = self.lock();
        state.asked += 1;
        state.pending += 1;
        Answering(self.clone())
    }

    /// Waits until the connection should end: the server stops, the client is idle for too long, or
    /// it is idle between two requests and others need its place. Returns true if there was a
    /// request.
    async fn ended(&self, task: &mut Task, timeout: Duration) -> bool {
        let mut stopping = task.clone();
        let idle = async {
            loop {
                let State { pending, idle_since, .. } = *self.lock();
                let end = if pending > 0 { Instant::now() + timeout } else { idle_since + timeout };
                if pending == 0 && end <= Instant::now() {
                    return;
                }
                tokio::time::sleep_until(end.into()).await;
            }
        };
        let crowded = async {
            loop {
                task.crowded().await;
                let State { asked, pending, .. } = *self.lock();
                if asked > 0 && pending == 0 {
                    return;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::select! {
            () = stopping.stopped() => {}
            () = idle => {}
            () = crowded => {}
        }
        self.lock().asked > 0
    }
}

/// Time between two looks at a busy connection whose place others need.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A reply in progress.
struct Answering(Activity);

impl Drop for Answering {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.pending -= 1;
        state.idle_since = Instant::now();
    }
}

/// Answers the requests of one connection.
struct Answer {
    site: Site,
    handshake: Handshake,
    activity: Activity,
    log: (Task, SocketAddr),
}

impl Service<Request<Incoming>> for Answer {
    type Response = Response<Tracked>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Tracked>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let early = !self.handshake.is_complete();
        let arrival = if early { Arrival::EarlyData } else { Arrival::Secure };
        let answering = self.activity.begin();
        let (site, (task, peer)) = (self.site.clone(), self.log.clone());
        Box::pin(async move {
            let line = RequestLine::of(&request, early, true);
            let reply = site.answer(request, arrival).await;
            task.log.request(peer, &line.answered(&reply), None);
            Ok(reply.map(|body| Tracked { body, _answering: answering }))
        })
    }
}

/// A body that reports its end.
struct Tracked {
    body: Body,
    _answering: Answering,
}

impl hyper::body::Body for Tracked {
    type Data = bytes::Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<bytes::Bytes>>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A TLS stream with a least rate for the client.
struct SecureStream {
    stream: TlsStream,
    pace: Pace,
}

impl SecureStream {
    /// Fails if the client accepts earlier bytes too slowly.
    fn pass<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match (written, self.stream.tcp()) {
            (Poll::Pending, Some(tcp)) => self.pace.poll_waiting(cx, tcp).map(Err),
            (written, _) => {
                self.pace.stop_waiting();
                written
            }
        }
    }
}

impl AsyncRead for SecureStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for SecureStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, data);
        self.pass(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.pass(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.pass(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
