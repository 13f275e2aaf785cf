//! HTTPS through the connector of hyper-util, with axum as server, on both backends.
use crate::both::{Ends, on_both, on_kernel};
use crate::pair::{bounded, until};
use crate::tls::{acceptor_of, certified};
use axum::Router;
use axum::http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use axum::routing::get;
use firstbyte::http::{Connector, EarlyDataLayer, FirstRequest, HttpInfo, RetryTooEarlyLayer};
use firstbyte::tls::rustls::RootCertStore;
use firstbyte::tls::{EarlyBytes, NotSent, Ticket, TlsConnector, TlsListener};
use firstbyte::{Outcome, PeerInfo};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tower_layer::Layer;
use tower_service::Service;

on_both! {
    needs_fast_open = false:
        http2_is_spoken_where_it_is_agreed_on, an_address_with_https_needs_a_connector_of_tls;
    needs_fast_open = true:
        repeat_visits_by_hyper_are_early, an_unsafe_early_request_is_repeated_after_the_handshake;
}

/// An axum server that answers with what a handler knows of the request.
struct Served {
    url: String,
    port: u16,
    executed: Arc<AtomicUsize>,
}

async fn serve(ends: &Ends, protocol: &str) -> Served {
    let (listener, address) = ends.listen().await;
    let executed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&executed);
    let handler = move |method: Method, headers: HeaderMap| {
        count.fetch_add(1, Ordering::Relaxed);
        let early = headers.get("early-data").map_or("-", |value| value.to_str().unwrap());
        let answer = format!("{method} {early}");
        async move { answer }
    };
    let router = Router::new().route("/", get(handler.clone()).post(handler)).layer(EarlyDataLayer);
    let listener = TlsListener::new(listener, acceptor_of(protocol));
    let service = router.into_make_service_with_connect_info::<PeerInfo>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    Served { url: format!("https://{address}/"), port: address.port(), executed }
}

fn tls() -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(certified().2.clone()).unwrap();
    TlsConnector::builder().roots(roots).alpn(["h2", "http/1.1"]).build().unwrap()
}

/// Sends one request on a connection of its own. Returns the answer, and the facts of the
/// connection.
async fn send(
    connector: &Connector,
    method: Method,
    url: &str,
) -> Result<(Response<String>, HttpInfo), Box<dyn std::error::Error + Send + Sync>> {
    let client = Client::builder(TokioExecutor::new()).build::<_, Empty<Bytes>>(connector.clone());
    let request = Request::builder().method(method).uri(url).body(Empty::new())?;
    let response: Response<Incoming> = RetryTooEarlyLayer.layer(client).call(request).await?;
    let info = response.extensions().get::<HttpInfo>().unwrap().clone();
    let (head, body) = response.into_parts();
    let body = String::from_utf8(body.collect().await?.to_bytes().to_vec())?;
    Ok((Response::from_parts(head, body), info))
}

/// Waits until the next connection can be early.
async fn until_known(tls: &TlsConnector, ends: &Ends, served: &Served) {
    until(|| tls.knows(&ends.any().ip().to_string(), served.port).unwrap()).await;
}

async fn repeat_visits_by_hyper_are_early(ends: Ends) {
    for protocol in ["http/1.1", "h2"] {
        let (served, tls) = (serve(&ends, protocol).await, tls());
        let connector = Connector::new(&ends.client).tls(tls.clone());
        let (response, info) = send(&connector, Method::GET, &served.url).await.unwrap();
        assert_eq!(response.body(), "GET -");
        let outcome = info.tls().unwrap();
        assert_eq!(outcome.ticket, Ticket::None);
        assert_eq!(outcome.early_data, EarlyBytes::NotSent(NotSent::NotAsked));
        for _ in 0..5 {
            until_known(&tls, &ends, &served).await;
            let (response, info) = send(&connector, Method::GET, &served.url).await.unwrap();
            assert_eq!(response.body(), "GET 1", "{protocol}: the handler knows");
            let outcome = info.tls().unwrap();
            assert_eq!(outcome.fast_open, Outcome::Accepted);
            assert_eq!(outcome.ticket, Ticket::Accepted);
            assert_eq!(outcome.early_data, EarlyBytes::Accepted);
        }
        until_known(&tls, &ends, &served).await;
        let (response, info) = send(&connector, Method::POST, &served.url).await.unwrap();
        assert_eq!(response.body(), "POST -");
        let outcome = info.tls().unwrap();
        assert_eq!(outcome.early_data, EarlyBytes::NotSent(NotSent::NotRepeatable));
        assert_eq!(served.executed.load(Ordering::Relaxed), 7);
    }
}

async fn an_unsafe_early_request_is_repeated_after_the_handshake(ends: Ends) {
    for protocol in ["http/1.1", "h2"] {
        let (served, tls) = (serve(&ends, protocol).await, tls());
        let connector = Connector::new(&ends.client).tls(tls.clone()).first_request(FirstRequest::Always);
        send(&connector, Method::GET, &served.url).await.unwrap();
        until_known(&tls, &ends, &served).await;
        let (response, info) = send(&connector, Method::POST, &served.url).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.body(), "POST -");
        assert_eq!(info.tls().unwrap().early_data, EarlyBytes::Accepted, "{protocol}: answered with 425");
        assert_eq!(served.executed.load(Ordering::Relaxed), 2);
    }
}

async fn http2_is_spoken_where_it_is_agreed_on(ends: Ends) {
    for (protocol, version) in [("h2", Version::HTTP_2), ("http/1.1", Version::HTTP_11)] {
        let served = serve(&ends, protocol).await;
        let connector = Connector::new(&ends.client).tls(tls());
        let (response, info) = send(&connector, Method::GET, &served.url).await.unwrap();
        assert_eq!(response.version(), version);
        assert_eq!(info.peer_addr().unwrap().port(), served.port);
    }
}

async fn an_address_with_https_needs_a_connector_of_tls(ends: Ends) {
    let served = serve(&ends, "h2").await;
    let error = send(&Connector::new(&ends.client), Method::GET, &served.url).await.unwrap_err();
    let cause = std::error::Error::source(&*error).unwrap().to_string();
    assert!(cause.contains("give it a TlsConnector"), "{cause}");
}
