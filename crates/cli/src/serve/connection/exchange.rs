//! Requests and replies: hyper, from the first byte of a request until the connection is idle.
use super::super::Task;
use super::super::body::Body;
use super::super::pace::reset;
use super::super::reply::{Arrival, Site};
use super::super::request::Request as RequestLine;
use super::HttpServer;
use super::stream::{HttpStream, Seen, SeenBody};
use bytes::Bytes;
use firstbyte::TcpStream;
use hyper::body::Incoming;
use hyper::header::CONNECTION;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use tokio::io::AsyncWriteExt;

/// Most bytes of a request's head, and of a reply outside the send buffer.
const BUFFER_MAX: usize = 64 * 1024;
/// Most header fields. A request with more gets a 431, like one with a longer head.
const HEADERS_MAX: usize = 100;

/// A client with its connection.
pub(super) struct Client {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    /// First bytes of the next request, received with the last one.
    pub(super) before: Bytes,
}

/// The next step after the replies.
pub(super) enum Next {
    /// The client may send another request.
    Idle(Client),
    /// The server closes the connection; this request, if any, was the last one.
    Finish(TcpStream, Option<RequestLine>),
    /// The connection cannot be used any more.
    Gone,
}

/// Answers requests until no more come.
pub(super) async fn answer(server: HttpServer, client: Client, mut task: Task) -> Next {
    let Client { stream, peer, before } = client;
    let stream = HttpStream::new(stream, before, server.least_rate);
    let seen = stream.seen();
    let service = Answer {
        site: server.site,
        seen: seen.clone(),
        answered: Arc::default(),
        keep_alive: server.keep_alive,
        log: (task.clone(), peer),
    };
    let answered = service.answered.clone();
    let mut connection = http1::Builder::new()
        .keep_alive(server.keep_alive)
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(server.timeout)
        .max_buf_size(BUFFER_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service);
    // `None`: idle.
    let served = tokio::select! {
        biased;
        served = poll_fn(|cx| match connection.poll_without_shutdown(cx) {
            Poll::Pending if seen.is_idle() => Poll::Ready(None),
            served => served.map(Some),
        }) => served,
        // The client has not requested anything yet.
        () = task.stopped() => {
            if !seen.is_asked() {
                return Next::Gone;
            }
            Pin::new(&mut connection).graceful_shutdown();
            Some(poll_fn(|cx| connection.poll_without_shutdown(cx)).await)
        }
    };
    let parts = connection.into_parts();
    let mut stream = parts.io.into_inner().into_inner();
    match served {
        None => {
            // An empty slice would keep all of hyper's buffer.
            let before = if parts.read_buf.is_empty() { Bytes::new() } else { parts.read_buf };
            return Next::Idle(Client { stream, peer, before });
        }
        Some(Err(error)) if error.is_parse() => {
            task.log.refused(peer, &error);
            if !seen.has_written() {
                // hyper does not answer the preface of HTTP/2.
                let _ = stream.write_all(VERSION_NOT_SUPPORTED).await;
            }
        }
        Some(Err(error)) => {
            task.log.broken(peer, &error);
            // An incomplete head does not affect the earlier replies.
            if !error.is_timeout() {
                reset(stream);
                return Next::Gone;
            }
        }
        Some(Ok(())) => {}
    }
    let last = answered.lock().unwrap_or_else(PoisonError::into_inner).take();
    Next::Finish(stream, last)
}

/// Reply in a version that the server supports (RFC 9110 §15.6.6).
const VERSION_NOT_SUPPORTED: &[u8] =
    b"HTTP/1.1 505 HTTP Version Not Supported\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// Answers the requests of one connection.
struct Answer {
    site: Site,
    seen: Arc<Seen>,
    /// The last request, logged at the end of the connection.
    answered: Arc<Mutex<Option<RequestLine>>>,
    keep_alive: bool,
    /// The log and the peer, for requests that others may follow: they are logged at once.
    log: (Task, SocketAddr),
}

type Reply = Response<SeenBody<Body>>;

impl Service<Request<Incoming>> for Answer {
    type Response = Reply;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let early = self.seen.is_early();
        let answering = self.seen.begin();
        let (site, answered) = (self.site.clone(), self.answered.clone());
        let is_last = !self.keep_alive || is_last(&request);
        let (task, peer) = self.log.clone();
        Box::pin(async move {
            let line = RequestLine::of(&request, early, false);
            let arrival = if early { Arrival::Syn } else { Arrival::Late };
            let reply = site.answer(request, arrival).await;
            let line = line.answered(&reply);
            match is_last {
                false => task.log.request(peer, &line, None),
                true => *answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(line),
            }
            Ok(reply.map(|body| SeenBody { body, _answering: answering }))
        })
    }
}

/// True if the client ends the connection after this request (RFC 9112 §9.3).
fn is_last<B>(request: &Request<B>) -> bool {
    let fields = request.headers().get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let mut options = fields.flat_map(|value| value.split(',')).map(str::trim);
    match request.version() {
        Version::HTTP_09 | Version::HTTP_10 => {
            !options.any(|option| option.eq_ignore_ascii_case("keep-alive"))
        }
        _ => options.any(|option| option.eq_ignore_ascii_case("close")),
    }
}
