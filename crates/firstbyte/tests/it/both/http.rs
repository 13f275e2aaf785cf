//! HTTP clients of hyper-util over the connector.
use super::{Ends, Outcome, TcpListener};
use crate::pair::let_others_run;
use firstbyte::Skipped;
use firstbyte::http::{Connector, FirstRequest, HttpInfo, HttpStream};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, Uri, Version};
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::io::{ErrorKind, IoSlice};
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tower_service::Service;

/// Answers each request with its method and how many bytes of its connection came on the SYN.
pub(crate) fn serve(listener: TcpListener) {
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let peer = stream.peer_info();
            let answer = move |request: Request<Incoming>| {
                let text = format!("{} {}", request.method(), peer.early_data().len);
                async move {
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let text = format!("{text} {}", String::from_utf8_lossy(&body));
                    Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(text)))
                }
            };
            tokio::spawn(async move {
                let server = auto::Builder::new(TokioExecutor::new());
                let _ = server.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
            });
        }
    });
}

/// A client that opens a connection of its own.
pub(crate) struct Visit {
    client: Client<Connector, Full<Bytes>>,
    address: SocketAddr,
    version: Version,
}

impl Visit {
    pub(crate) fn new(connector: Connector, address: SocketAddr, version: Version) -> Visit {
        let mut builder = Client::builder(TokioExecutor::new());
        builder.http2_only(version == Version::HTTP_2);
        Visit { client: builder.build(connector), address, version }
    }

    /// Sends a request. Returns the body of the answer, and the outcome of Fast Open.
    pub(crate) async fn request(&self, method: Method, body: &str) -> Result<(String, Outcome), Error> {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://{}/path", self.address))
            .version(self.version)
            .body(Full::from(body.to_owned()))
            .unwrap();
        let answer = self.client.request(request).await?;
        let outcome = answer.extensions().get::<HttpInfo>().unwrap().outcome();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        Ok((String::from_utf8_lossy(&body).into_owned(), outcome))
    }
}

/// Visits a server twice with a connection for each request. Returns what the second had.
async fn second(
    ends: &Ends,
    policy: FirstRequest,
    version: Version,
    method: Method,
    body: &str,
) -> (String, Outcome) {
    let (listener, address) = ends.listen().await;
    serve(listener);
    let connector = Connector::new(&ends.client).first_request(policy);
    let visit = || Visit::new(connector.clone(), address, version);
    visit().request(method.clone(), body).await.unwrap();
    visit().request(method, body).await.unwrap()
}

pub(crate) fn early_len(answer: &str) -> usize {
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

const VERSIONS: [Version; 2] = [Version::HTTP_11, Version::HTTP_2];

pub(super) async fn a_repeatable_request_is_on_the_syn(ends: Ends) {
    for version in VERSIONS {
        for method in [Method::GET, Method::OPTIONS] {
            let (answer, outcome) =
                second(&ends, FirstRequest::Repeatable, version, method.clone(), "").await;
            assert_eq!(outcome, Outcome::Accepted, "{version:?} {method}");
            assert!(answer.starts_with(method.as_str()) && early_len(&answer) > 30, "{answer}");
        }
    }
}

pub(super) async fn a_request_that_is_not_repeatable_waits_for_the_handshake(ends: Ends) {
    for version in VERSIONS {
        for (method, body) in [(Method::POST, "body"), (Method::DELETE, ""), (Method::GET, "body")] {
            let (answer, outcome) =
                second(&ends, FirstRequest::Repeatable, version, method.clone(), body).await;
            assert_eq!(answer, format!("{method} 0 {body}"), "{version:?}");
            assert!(matches!(outcome, Outcome::Skipped(_)), "{version:?}: {outcome:?}");
        }
    }
}

pub(super) async fn a_request_that_waits_asks_for_a_cookie(ends: Ends) {
    let (listener, address) = ends.listen().await;
    serve(listener);
    let visit = || Visit::new(Connector::new(&ends.client), address, Version::HTTP_11);
    visit().request(Method::POST, "body").await.unwrap();
    assert_eq!(visit().request(Method::GET, "").await.unwrap().1, Outcome::Accepted);
}

pub(super) async fn the_policy_decides_what_is_early(ends: Ends) {
    for version in VERSIONS {
        let (answer, outcome) = second(&ends, FirstRequest::Always, version, Method::POST, "body").await;
        assert!(early_len(&answer) > 30 && answer.ends_with("body"), "{version:?}: {answer}");
        assert_eq!(outcome, Outcome::Accepted);
        let (answer, outcome) = second(&ends, FirstRequest::Never, version, Method::GET, "").await;
        assert_eq!((answer.as_str(), outcome), ("GET 0 ", Outcome::Skipped(Skipped::NotAsked)));
    }
}

pub(super) async fn requests_share_a_pooled_connection(ends: Ends) {
    for version in VERSIONS {
        let (listener, address) = ends.listen().await;
        serve(listener);
        let visit = Visit::new(Connector::new(&ends.client), address, version);
        let (_, first) = visit.request(Method::GET, "").await.unwrap();
        for method in [Method::GET, Method::POST] {
            // A new connection would have a cookie, and another outcome.
            assert_eq!(visit.request(method, "").await.unwrap().1, first, "{version:?}");
        }
    }
}

pub(super) async fn a_server_that_refuses_fails_the_request(ends: Ends) {
    let closed = ends.closed_port().await;
    for version in VERSIONS {
        for (policy, is_connect) in [(FirstRequest::Repeatable, false), (FirstRequest::Never, true)] {
            let connector = Connector::new(&ends.client).first_request(policy);
            let error = Visit::new(connector, closed, version).request(Method::GET, "").await.unwrap_err();
            assert_eq!(error.is_connect(), is_connect, "{version:?} {policy:?}: {error:?}");
            assert!(format!("{error:?}").contains("ConnectionRefused"), "{error:?}");
        }
    }
}

/// A stream of the connector to a server that tells how many bytes came on the SYN. The client
/// has a cookie.
async fn stream(ends: &Ends) -> TokioIo<HttpStream> {
    let (listener, address) = ends.listen().await;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut start = [0; 5];
                stream.read_exact(&mut start).await.unwrap();
                let early = stream.early_data().len;
                stream.write_all(early.to_string().as_bytes()).await.unwrap();
                stream.shutdown().await.unwrap();
                stream.read_to_end(&mut Vec::new()).await
            });
        }
    });
    let mut connector = Connector::new(&ends.client);
    let uri: Uri = format!("http://{address}/").parse().unwrap();
    let mut first = TokioIo::new(connector.call(uri.clone()).await.unwrap());
    assert_eq!(answer_to(&mut first, b"POST /").await, "0");
    TokioIo::new(connector.call(uri).await.unwrap())
}

async fn answer_to(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), bytes: &[u8]) -> String {
    stream.write_all(bytes).await.unwrap();
    stream.flush().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

pub(super) async fn a_request_that_is_written_in_parts_is_on_the_syn(ends: Ends) {
    let mut stream = stream(&ends).await;
    for part in GET[..20].chunks(7) {
        stream.write_all(part).await.unwrap();
        stream.flush().await.unwrap();
    }
    assert_eq!(stream.inner().info().outcome(), Outcome::Pending);
    assert_eq!(answer_to(&mut stream, &GET[20..]).await, GET.len().to_string());
    assert_eq!(stream.inner().info().outcome(), Outcome::Accepted);
}

/// Slices that end a request, and one that begins a request that must not be repeated.
pub(super) async fn slices_are_judged_together(ends: Ends) {
    let mut first = stream(&ends).await;
    let slices = [&GET[..10], b"", &GET[10..]].map(IoSlice::new);
    assert!(first.is_write_vectored());
    assert_eq!(first.write_vectored(&slices).await.unwrap(), GET.len());
    assert_eq!(answer_to(&mut first, b"").await, GET.len().to_string());
    let mut second = stream(&ends).await;
    let slices = [GET, b"POST / HTTP/1.1\r\n"].map(IoSlice::new);
    let written = second.write_vectored(&slices).await.unwrap();
    assert_eq!(written, GET.len() + slices[1].len());
    assert_eq!(answer_to(&mut second, b"").await, "0");
}

pub(super) async fn the_start_of_a_request_is_sent_after_a_while(ends: Ends) {
    let mut stream = stream(&ends).await;
    assert_eq!(answer_to(&mut stream, &GET[..9]).await, "9");
}

pub(super) async fn a_request_larger_than_what_is_judged_is_sent(ends: Ends) {
    let mut stream = stream(&ends).await;
    let head = format!("GET /{} HTTP/1.1\r\n", "x".repeat(20_000));
    // A server cannot execute the part that the SYN has.
    let early: usize = answer_to(&mut stream, head.as_bytes()).await.parse().unwrap();
    assert!((1000..head.len()).contains(&early), "{early}");
}

pub(super) async fn a_reader_waits_for_the_writers_request(ends: Ends) {
    let (mut read, mut write) = tokio::io::split(stream(&ends).await);
    let reader = tokio::spawn(async move {
        let mut answer = String::new();
        read.read_to_string(&mut answer).await.map(|_| answer)
    });
    let_others_run().await;
    write.write_all(GET).await.unwrap();
    write.flush().await.unwrap();
    assert_eq!(reader.await.unwrap().unwrap(), GET.len().to_string());
}

pub(super) async fn a_shutdown_sends_what_was_written(ends: Ends) {
    let mut unused = stream(&ends).await;
    unused.shutdown().await.unwrap();
    assert_eq!(unused.write(GET).await.unwrap_err().kind(), ErrorKind::NotConnected);
    let mut used = stream(&ends).await;
    used.write_all(GET).await.unwrap();
    used.shutdown().await.unwrap();
    assert_eq!(answer_to(&mut used, b"").await, GET.len().to_string());
}
