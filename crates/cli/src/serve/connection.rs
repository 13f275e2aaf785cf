//! One HTTP connection: hyper on a stream of ours, and its end.
use super::Task;
use super::log::Request as RequestLine;
use super::reply::Site;
use firstbyte::TcpStream;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

/// What handles HTTP connections.
#[derive(Clone)]
pub(crate) struct HttpServer {
    site: Site,
    keep_alive: bool,
    /// How long a client may take for the head of a request.
    timeout: Duration,
}

/// The longest head of a request, and what is kept of a reply beside the send buffer, bytes.
const BUFFER_MAX: usize = 64 * 1024;
/// The most header fields; a request with more is answered with 431, as one with a longer head is.
const HEADERS_MAX: usize = 100;
/// How long a client may take to receive the last reply and close, after the server's FIN.
const LINGER: Duration = Duration::from_secs(10);

impl HttpServer {
    pub(crate) fn new(site: Site, keep_alive: bool, timeout: Duration) -> HttpServer {
        HttpServer { site, keep_alive, timeout }
    }

    /// Serves one connection to its end.
    pub(crate) async fn handle(self, stream: TcpStream, peer: SocketAddr, mut task: Task) {
        let stream = Marked { stream, unconfirmed: Arc::default() };
        let service = Answer {
            site: self.site,
            unconfirmed: stream.unconfirmed.clone(),
            answered: Arc::default(),
            is_asked: Arc::default(),
            on_keep_alive: self.keep_alive.then(|| (task.clone(), peer)),
        };
        let (answered, is_asked) = (service.answered.clone(), service.is_asked.clone());
        let mut connection = http1::Builder::new()
            .keep_alive(self.keep_alive)
            .half_close(true)
            .timer(TokioTimer::new())
            .header_read_timeout(self.timeout)
            .max_buf_size(BUFFER_MAX)
            .max_headers(HEADERS_MAX)
            .serve_connection(TokioIo::new(stream), service);
        let served = tokio::select! {
            biased;
            served = poll_fn(|cx| connection.poll_without_shutdown(cx)) => served,
            // Nothing is owed to a client that has not asked for anything yet.
            () = task.stopped() => {
                if !is_asked.load(Ordering::Relaxed) {
                    return;
                }
                Pin::new(&mut connection).graceful_shutdown();
                poll_fn(|cx| connection.poll_without_shutdown(cx)).await
            }
        };
        let mut stream = connection.into_parts().io.into_inner().stream;
        match &served {
            Err(error) if error.is_parse() => task.log.refused(peer, error),
            Err(error) => return task.log.broken(peer, error),
            Ok(()) => {}
        }
        tokio::select! {
            biased;
            () = finish(&mut stream, task.clone()) => {}
            // The stack delivers the rest.
            () = task.stopped() => {}
        }
        let last = answered.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(request) = last {
            task.log.request(peer, &request, stream.info().ok().as_ref());
        }
    }
}

/// Sends the FIN, and waits for the peer's and for all acknowledgements. What the peer still sends is taken and forgotten:
/// dropping the stream with it unread would reset the connection, and the reply might be lost with it. A peer that has received all and does
/// not close keeps its place only as long as not all are taken.
async fn finish(stream: &mut TcpStream, mut task: Task) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let stream = &*stream;
    let drained = async {
        let mut rest = [0; 4096];
        while stream.readable().await.is_ok() && stream.try_read(&mut rest).is_ok_and(|len| len > 0) {}
        stream.delivered().await
    };
    let given_up = async {
        stream.delivered().await?;
        task.crowded().await;
        Ok(())
    };
    let ended = async {
        tokio::select! {
            ended = drained => ended,
            ended = given_up => ended,
        }
    };
    // Any way the connection is let go of now.
    let _ = tokio::time::timeout(LINGER, ended).await;
}

/// A stream that remembers whether what was read last may be a replay.
struct Marked {
    stream: TcpStream,
    unconfirmed: Arc<AtomicBool>,
}

impl AsyncRead for Marked {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            let early = self.stream.early_data();
            self.unconfirmed.store(early.len > 0 && !early.confirmed, Ordering::Relaxed);
        }
        read
    }
}

impl AsyncWrite for Marked {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Answers the requests of one connection.
struct Answer {
    site: Site,
    unconfirmed: Arc<AtomicBool>,
    /// The last request, for the line at the connection's end.
    answered: Arc<Mutex<Option<RequestLine>>>,
    /// A request has come.
    is_asked: Arc<AtomicBool>,
    /// Where several requests share a connection, each has its line at once.
    on_keep_alive: Option<(Task, SocketAddr)>,
}

type Reply = Response<super::body::Body>;

impl Service<Request<Incoming>> for Answer {
    type Response = Reply;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, std::convert::Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.is_asked.store(true, Ordering::Relaxed);
        let early = self.unconfirmed.load(Ordering::Relaxed);
        let (site, answered, on_keep_alive) =
            (self.site.clone(), self.answered.clone(), self.on_keep_alive.clone());
        Box::pin(async move {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            let reply = site.answer(request, early).await;
            let line = RequestLine {
                method: method.to_string(),
                path,
                status: reply.status().as_u16(),
                bytes: content_length(&method, &reply),
                early,
            };
            match on_keep_alive {
                Some((task, peer)) => task.log.request(peer, &line, None),
                None => *answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(line),
            }
            Ok(reply)
        })
    }
}

/// Bytes of the reply's body as they go over the wire.
fn content_length(method: &hyper::Method, reply: &Reply) -> u64 {
    use hyper::body::Body as _;
    match *method {
        hyper::Method::HEAD => 0,
        _ => reply.body().size_hint().exact().unwrap_or(0),
    }
}
