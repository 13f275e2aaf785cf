//! A stream for tonic's server.
use super::{PeerInfo, TcpStream};
use tonic::transport::server::Connected;

/// Adds a [`PeerInfo`] to each request: `request.extensions().get::<PeerInfo>()`. tonic's own
/// `Request::remote_addr` only knows tokio's sockets and returns `None`.
impl Connected for TcpStream {
    type ConnectInfo = PeerInfo;

    fn connect_info(&self) -> PeerInfo {
        self.peer_info()
    }
}
