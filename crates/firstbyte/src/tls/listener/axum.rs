//! HTTPS for axum.
use super::TlsListener;
use crate::PeerInfo;
use crate::tls::TlsStream;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Pause after an error of the kernel that stays for a while (too many open files), as axum waits
/// with tokio's listener.
const PAUSE: Duration = Duration::from_secs(1);

/// Serves an axum router over HTTPS, as [`TcpListener`](crate::TcpListener) does over HTTP. The
/// acceptor's protocols decide whether HTTP/2 is spoken: name `h2` and `http/1.1` there.
impl Listener for TlsListener {
    type Io = TlsStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TlsStream, SocketAddr) {
        loop {
            match TlsListener::accept(self).await {
                Ok(accepted) => return accepted,
                Err(_) if self.listener.has_ended() => std::future::pending().await,
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Connected<IncomingStream<'_, TlsListener>> for PeerInfo {
    fn connect_info(stream: IncomingStream<'_, TlsListener>) -> PeerInfo {
        stream.io().peer_info().expect("an accepted stream is open")
    }
}
