//! TLS 1.3 in one round trip: a connector and an acceptor on rustls.
//!
//! A repeat visit over HTTPS takes three round trips to the first byte of the answer, as people
//! usually write it. With a cookie of Fast Open, a ticket of TLS and early data it takes one, but
//! only if each of these is right. [`TlsConnector`] and [`TlsAcceptor`] take care of them:
//!
//! | trap | here |
//! |---|---|
//! | ClientHello and early data are several writes: only the first is on the SYN | one write |
//! | a post-quantum key share does not fit on a SYN | sent without a ticket only: [`PostQuantum`] |
//! | Finished and the request wait for one another (Nagle) | one write; `TCP_NODELAY` |
//! | tickets follow the client's Finished: who closes early has none for the next visit | a dropped stream reads on in the background until one arrives |
//! | the protocol is known only after the answer | remembered with the ticket |
//! | early data is not in the stream of the server | it is the start of the stream |
//! | flight and answer of the server are two packets | one write; on our stack, on the SYN-ACK |
//! | a server that closes early sends no tickets | closes after the client's Finished |
//! | early data may be a replay | only repeatable requests are sent early ([`FirstRequest`]); each ticket is good once; handlers ask the [`Handshake`] |
//! | a server refuses cookie, ticket or early data | everything is repeated after the handshake; [`TlsOutcome`] names each layer |
//! | servers behind a load balancer do not know each other's tickets | [`SharedSessions`] |
//!
//! # Examples
//! Two visits. The second has its answer after one round trip.
//!
//! ```
//! use firstbyte::tls::{EarlyBytes, Ticket, TlsAcceptor, TlsConnector, rustls::RootCertStore};
//! use firstbyte::{Net, TcpListener};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! # let certified = rcgen::generate_simple_self_signed(["www.example".into()]).unwrap();
//! # let (certificate, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());
//! # let mut roots = RootCertStore::empty();
//! # roots.add(certified.cert.der().clone()).unwrap();
//! let net = Net::kernel();
//! let listener = TcpListener::builder(&net).fast_open(256).bind("127.0.0.1:0").await?;
//! let address = listener.local_addr()?;
//! let acceptor = TlsAcceptor::from_pem(certificate.as_bytes(), key.as_bytes(), ["echo"])?;
//! tokio::spawn(async move {
//!     while let Ok((tcp, _)) = listener.accept().await {
//!         let mut stream = acceptor.accept(tcp).await?;
//!         let mut question = [0; 5];
//!         stream.read_exact(&mut question).await?;
//!         stream.write_all(&question).await?;
//!         stream.flush().await?;
//!     }
//!     std::io::Result::Ok(())
//! });
//!
//! let connector = TlsConnector::builder().roots(roots).alpn(["echo"]).build()?;
//! for ticket in [Ticket::None, Ticket::Accepted] {
//!     let mut stream = connector.connect_with(&net, address, "www.example", b"hello").await?;
//!     let mut answer = [0; 5];
//!     stream.read_exact(&mut answer).await?;
//!     assert_eq!(&answer, b"hello");
//!     assert_eq!(stream.outcome().ticket, ticket);
//!     # drop(stream);
//!     # tokio::time::sleep(std::time::Duration::from_millis(100)).await;
//! }
//! # Ok(())
//! # }
//! ```
mod acceptor;
mod client;
mod configs;
mod connector;
mod handshake;
mod hello;
mod linger;
mod listener;
mod outcome;
mod session;
mod sessions;
mod shared;
mod stream;
mod transport;

pub use crate::http::FirstRequest;
pub use acceptor::{HANDSHAKE_TIMEOUT, MAX_EARLY_DATA, TlsAcceptor};
pub use configs::PostQuantum;
pub use connector::{TlsConnector, TlsConnectorBuilder};
pub use handshake::Handshake;
pub use linger::LINGER;
pub use listener::{HANDSHAKES, TlsListener};
pub use outcome::{EarlyBytes, NotSent, Ticket, TlsOutcome};
pub use rustls;
#[cfg(feature = "redis")]
pub use shared::RedisSessions;
pub use shared::{SessionFuture, SharedSessions};
pub use stream::TlsStream;

use rustls::crypto::CryptoProvider;
use std::sync::Arc;

/// The process's default provider of cryptography, or else ring.
fn default_provider() -> Arc<CryptoProvider> {
    CryptoProvider::get_default()
        .map_or_else(|| Arc::new(rustls::crypto::ring::default_provider()), Arc::clone)
}
