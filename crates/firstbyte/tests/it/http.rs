//! An HTTP library without support for Fast Open, on both sides.
use crate::both::http;
use crate::pair::{Pair, SERVER, Segment, bounded, patient};
use firstbyte::http::{Connector, FirstRequest};
use firstbyte::{Net, Outcome, TcpListener, TcpStream};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, Version};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::time::Duration;
use tower_service::Service;

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("hello")))
}

/// Serves one request per connection.
fn serve(listener: TcpListener) {
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let server = hyper::server::conn::http1::Builder::new().keep_alive(false).clone();
                server.serve_connection(TokioIo::new(stream), service_fn(hello)).await
            });
        }
    });
}

/// Sends one request over a stream that connects when the request is written.
async fn get(pair: &Pair) -> Bytes {
    let socket = pair.client.socket().read_grace(Duration::from_secs(60));
    let stream = socket.connect_deferred(SERVER).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let request =
        Request::get("/").header("host", "server").header("connection", "close").body(Empty::<Bytes>::new());
    let response = sender.send_request(request.unwrap()).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    connection.await.unwrap().unwrap();
    pair.until_empty().await;
    body
}

fn summary(log: &[Segment]) -> Vec<(bool, &str, bool)> {
    log.iter().map(|segment| (segment.from_client, segment.flags.as_str(), segment.payload_len > 0)).collect()
}

#[tokio::test]
async fn a_repeat_visit_with_hyper_takes_four_packets() {
    bounded(async {
        // Independent of the programs' speed: ACKs only leave with data.
        let config = patient().delayed_ack(Duration::from_secs(60));
        let pair = Pair::with(config.clone(), config);
        serve(pair.listen().await);
        assert_eq!(get(&pair).await, "hello");
        let first = pair.take_log();
        assert_eq!(summary(&first)[..2], [(true, "S", false), (false, "S.", false)]);
        assert_eq!(get(&pair).await, "hello");
        let expected = [(true, "S", true), (false, "SF.", true), (true, "F.", false), (false, ".", false)];
        assert_eq!(summary(&pair.take_log()), expected);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_with_hyper() {
    bounded(async {
        let pair = Pair::new();
        serve(pair.listen().await);
        for _ in 0..200 {
            assert_eq!(get(&pair).await, "hello");
        }
        let stream = TcpStream::connect_with(&pair.client, SERVER, "GET / HTTP/1.0\r\n\r\n").await.unwrap();
        assert_eq!(stream.outcome(), Outcome::Accepted);
    })
    .await;
}

/// Returns the types of the HTTP/2 frames behind the preface.
fn frame_types(payload: &[u8]) -> Vec<u8> {
    let mut rest = payload.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    let mut types = Vec::new();
    while let [a, b, c, kind, ..] = *rest {
        types.push(kind);
        rest = &rest[9 + usize::from(a) * 65_536 + usize::from(b) * 256 + usize::from(c)..];
    }
    types
}

const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const HEADERS: u8 = 1;

/// The client flushes preface and SETTINGS before it knows the request. The SYN has both.
#[tokio::test]
async fn the_syn_of_a_repeat_visit_has_the_whole_http2_get() {
    bounded(async {
        let pair = Pair::with(patient(), patient());
        http::serve(pair.listen().await);
        let visit =
            || http::Visit::new(Connector::new(&pair.client), SERVER.parse().unwrap(), Version::HTTP_2);
        visit().request(Method::GET, "").await.unwrap();
        for _ in 0..10 {
            pair.until_empty().await;
            pair.take_log();
            visit().request(Method::GET, "").await.unwrap();
            let log = pair.take_log();
            assert_eq!(log[0].flags, "S");
            assert_eq!(frame_types(&pair.last_syn_data()), [SETTINGS, WINDOW_UPDATE, HEADERS]);
            assert!(log[1].payload_len > 0, "the SYN-ACK has SETTINGS or the answer");
        }
        pair.until_empty().await;
        pair.take_log();
        visit().request(Method::POST, "").await.unwrap();
        assert_eq!(summary(&pair.take_log())[..2], [(true, "S", false), (false, "S.", false)]);
    })
    .await;
}

#[tokio::test]
async fn a_connect_has_a_time_limit() {
    bounded(async {
        let pair = Pair::new();
        let connector = Connector::new(&pair.client).connect_timeout(Some(Duration::from_millis(20)));
        for policy in [FirstRequest::Never, FirstRequest::Repeatable] {
            let connector = connector.clone().first_request(policy);
            // No host of the network has this address.
            let visit = http::Visit::new(connector, "10.0.0.77:80".parse().unwrap(), Version::HTTP_11);
            let error = visit.request(Method::GET, "").await.unwrap_err();
            assert!(format!("{error:?}").contains("no answer within 20ms"), "{error:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_name_that_is_not_found_is_in_the_error() {
    let uri = "http://no.such.host.invalid/".parse().unwrap();
    let error = Connector::new(&Net::kernel()).call(uri).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot look up `no.such.host.invalid`: "), "{error}");
}
