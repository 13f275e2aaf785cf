//! A listener for axum.
use crate::{PeerInfo, TcpListener, TcpStream};
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

/// Pause after an error of the kernel that stays for a while (too many open files), as axum waits
/// with tokio's listener.
const PAUSE: Duration = Duration::from_secs(1);

/// Serves an axum router.
///
/// `axum::serve` never returns by itself. On a stack of our own, end it with the stack: give
/// [`Net::closed`](crate::Net::closed) to its `with_graceful_shutdown`.
///
/// Handlers that extract `ConnectInfo<SocketAddr>` work unchanged if the listener is wrapped:
/// `listener.tap_io(|_| {})`, of axum's `ListenerExt`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// use axum::{Router, extract::ConnectInfo, http::StatusCode, routing::get};
/// use firstbyte::{Net, PeerInfo, TcpListener};
///
/// async fn hello(ConnectInfo(peer): ConnectInfo<PeerInfo>) -> Result<String, StatusCode> {
///     if peer.is_early() { Err(StatusCode::TOO_EARLY) } else { Ok(format!("hello {}", peer.addr())) }
/// }
///
/// let listener = TcpListener::builder(&Net::kernel()).fast_open(256).bind("127.0.0.1:0").await?;
/// let router = Router::new().route("/", get(hello));
/// let service = router.into_make_service_with_connect_info::<PeerInfo>();
/// # let stop = std::future::ready(());
/// axum::serve(listener, service).with_graceful_shutdown(stop).await
/// # }
/// ```
impl Listener for TcpListener {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            match TcpListener::accept(self).await {
                Ok(accepted) => return accepted,
                Err(_) if self.has_ended() => std::future::pending().await,
                Err(error) if is_of_one_connection(&error) => {}
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        TcpListener::local_addr(self)
    }
}

/// Returns whether a connection ended in the queue, which says nothing about the next one.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
    )
}

impl Connected<IncomingStream<'_, TcpListener>> for PeerInfo {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> PeerInfo {
        stream.io().peer_info()
    }
}
