//! An axum server with Fast Open on the kernel's sockets. Needs no root. Ctrl-C ends it.
//!
//! ```text
//! cargo run -p firstbyte --example axum --features axum
//! curl --tcp-fastopen http://127.0.0.1:3000/
//! ```
//!
//! An argument is another address to listen on. Clients send data on the SYN if bit 2 of
//! `net.ipv4.tcp_fastopen` is set: `sysctl -w net.ipv4.tcp_fastopen=3` as root, once.
use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use firstbyte::{Net, PeerInfo, TcpListener};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    // Instead of `tokio::net::TcpListener::bind(address)`:
    let listener = TcpListener::builder(&Net::kernel()).fast_open(256).bind(address).await?;
    println!("http://{}/", listener.local_addr()?);

    let router = Router::new()
        .route("/", get(hello))
        .route("/orders", post(|| async { "ordered\n" }))
        .layer(middleware::from_fn(refuse_replays));
    axum::serve(listener, router.into_make_service_with_connect_info::<PeerInfo>()).await
}

async fn hello(ConnectInfo(peer): ConnectInfo<PeerInfo>) -> String {
    format!("hello; {} bytes came on the SYN\n", peer.early_data().len)
}

/// Answers 425 Too Early to a request that may be a replay and must not be executed twice (RFC 8470
/// §5.2).
async fn refuse_replays(
    ConnectInfo(peer): ConnectInfo<PeerInfo>,
    request: Request,
    next: Next,
) -> Result<Response, StatusCode> {
    match request.method().is_safe() || !peer.is_early() {
        true => Ok(next.run(request).await),
        false => Err(StatusCode::TOO_EARLY),
    }
}
