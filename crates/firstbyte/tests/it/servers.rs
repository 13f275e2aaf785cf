//! Servers of axum and tonic on our listener, on both backends.
use crate::both::http::{Visit, early_len};
use crate::both::{Ends, on_both, on_kernel};
use crate::pair::bounded;
use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use firstbyte::http::{Connector, FirstRequest};
use firstbyte::{Net, Outcome, PeerInfo};
use futures_core::Stream;
use hyper::{Method, Version};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use tonic::transport::{Endpoint, Server};

#[path = "../../examples/tonic.rs"]
#[expect(dead_code, reason = "the test calls its parts, and not its main function")]
mod example;

on_both! {
    needs_fast_open = false:
        axum_serves_both_versions_and_knows_the_peer, axum_knows_addresses_as_with_tokio,
        tonic_serves_calls, a_stream_of_connections_ends_with_the_stack;
    needs_fast_open = true:
        handlers_of_axum_know_early_data, handlers_of_tonic_know_early_data;
}

async fn peer(ConnectInfo(peer): ConnectInfo<PeerInfo>) -> String {
    format!("{} {} {}", peer.addr().ip(), peer.early_data().len, peer.is_early())
}

async fn axum_serves_both_versions_and_knows_the_peer(ends: Ends) {
    let (listener, address) = ends.listen().await;
    let router = Router::new().route("/path", get(peer));
    tokio::spawn(
        axum::serve(listener, router.into_make_service_with_connect_info::<PeerInfo>()).into_future(),
    );
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let connector = Connector::new(&ends.client).first_request(FirstRequest::Never);
        let visit = Visit::new(connector, address, version);
        let (body, _) = visit.request(Method::GET, "").await.unwrap();
        let client = if address.ip().is_loopback() { "127.0.0.1" } else { "10.0.0.2" };
        assert_eq!(body, format!("{client} 0 false"));
    }
}

async fn axum_knows_addresses_as_with_tokio(ends: Ends) {
    let (listener, address) = ends.listen().await;
    let handler = |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.to_string() };
    let service =
        Router::new().route("/path", get(handler)).into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(axum::serve(listener.tap_io(|_| {}), service).into_future());
    let visit = Visit::new(Connector::new(&ends.client), address, Version::HTTP_11);
    let (body, _) = visit.request(Method::GET, "").await.unwrap();
    assert!(body.parse::<SocketAddr>().is_ok(), "{body}");
}

async fn handlers_of_axum_know_early_data(ends: Ends) {
    let (listener, address) = ends.listen().await;
    let router = Router::new().route("/path", post(peer));
    tokio::spawn(
        axum::serve(listener, router.into_make_service_with_connect_info::<PeerInfo>()).into_future(),
    );
    let connector = Connector::new(&ends.client).first_request(FirstRequest::Always);
    let visit = || Visit::new(connector.clone(), address, Version::HTTP_11);
    assert_eq!(early_len(&visit().request(Method::POST, "body").await.unwrap().0), 0);
    let (answer, outcome) = visit().request(Method::POST, "body").await.unwrap();
    assert_eq!(outcome, Outcome::Accepted);
    assert!(early_len(&answer) > 30, "{answer}");
}

/// Calls the server of the example twice, on a connection each.
async fn calls(ends: &Ends, policy: FirstRequest) -> [String; 2] {
    let (listener, address) = ends.listen().await;
    tokio::spawn(Server::builder().serve_with_incoming(example::Greeter, listener));
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let call = async || {
        let connector = Connector::new(&ends.client).first_request(policy);
        let channel = endpoint.connect_with_connector(connector).await.unwrap();
        example::hello(channel, "you").await.unwrap()
    };
    [call().await, call().await]
}

async fn tonic_serves_calls(ends: Ends) {
    for policy in [FirstRequest::Never, FirstRequest::Repeatable] {
        let answers = calls(&ends, policy).await;
        assert_eq!(answers, ["hello you; 0 bytes came on the SYN"; 2], "{policy:?}");
    }
    let closed = Endpoint::from_shared(format!("http://{}", ends.closed_port().await)).unwrap();
    let connector = Connector::new(&ends.client).first_request(FirstRequest::Never);
    assert!(closed.connect_with_connector(connector).await.is_err());
}

async fn handlers_of_tonic_know_early_data(ends: Ends) {
    let [first, second] = calls(&ends, FirstRequest::Always).await;
    assert_eq!(first, "hello you; 0 bytes came on the SYN");
    // The whole call: preface, settings, headers and message.
    let len: usize = second.split(' ').nth(2).unwrap().parse().unwrap();
    assert!(len > 130, "{second}");
}

async fn a_stream_of_connections_ends_with_the_stack(ends: Ends) {
    let (mut listener, address) = ends.listen().await;
    let mut next = async || poll_fn(|cx| Pin::new(&mut listener).poll_next(cx)).await;
    let client = firstbyte::TcpStream::connect(&ends.client, address).await.unwrap();
    assert_eq!(next().await.unwrap().unwrap().peer_addr().unwrap(), client.local_addr().unwrap());
    if let Ok(stack) = ends.server.stack() {
        let _: &firstbyte::StackHandle = stack;
        let _ = Net::shutdown_timeout(&ends.server, std::time::Duration::ZERO).await;
        assert!(next().await.is_none());
        assert!(next().await.is_none());
    }
}
