//! An HTTP library without support for Fast Open, on both sides.
use crate::pair::{Pair, SERVER, Segment, bounded, patient};
use firstbyte::{Outcome, TcpListener, TcpStream};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::time::Duration;

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
