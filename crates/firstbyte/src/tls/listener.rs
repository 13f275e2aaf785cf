//! A listener whose connections have made their handshake.
#[cfg(feature = "axum")]
mod axum;
use super::{TlsAcceptor, TlsStream};
use crate::TcpListener;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::task::{AbortHandle, JoinSet};

/// Default limit of handshakes at the same time.
pub const HANDSHAKES: usize = 1024;

/// Accepts TLS connections. A slow client does not hold up the next one.
///
/// With the feature `axum`, it serves an axum router as a [`TcpListener`] does.
///
/// ```no_run
/// use firstbyte::tls::{TlsAcceptor, TlsListener};
/// use firstbyte::{Net, TcpListener};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let (chain, key) = (std::fs::read("chain.pem")?, std::fs::read("key.pem")?);
/// let acceptor = TlsAcceptor::from_pem(&chain, &key, ["h2", "http/1.1"])?;
/// let listener = TcpListener::builder(&Net::kernel()).fast_open(256).bind("[::]:443").await?;
/// let mut listener = TlsListener::new(listener, acceptor);
/// loop {
///     let (stream, peer) = listener.accept().await?;
///     println!("{peer}: {:?}", stream.alpn());
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    handshakes: JoinSet<Accepted>,
    /// The oldest first; some may have ended.
    order: VecDeque<AbortHandle>,
    limit: usize,
}

type Accepted = io::Result<(TlsStream, SocketAddr)>;
type Handshake = Pin<Box<dyn Future<Output = Accepted> + Send>>;

impl TlsListener {
    /// Accepts the connections of `listener` with `acceptor`.
    #[must_use]
    pub fn new(listener: TcpListener, acceptor: TlsAcceptor) -> TlsListener {
        TlsListener {
            listener,
            acceptor,
            handshakes: JoinSet::new(),
            order: VecDeque::new(),
            limit: HANDSHAKES,
        }
    }

    /// Sets how many handshakes take place at the same time (default: [`HANDSHAKES`]). A further
    /// connection ends the oldest one, so that clients that say nothing do not keep others out.
    #[must_use]
    pub fn handshakes(mut self, limit: usize) -> TlsListener {
        self.limit = limit;
        self
    }

    /// Returns the listener below.
    #[must_use]
    pub fn get_ref(&self) -> &TcpListener {
        &self.listener
    }

    /// Returns the next connection whose handshake is complete, or that has early data to answer.
    /// Connections whose handshake fails are left out.
    ///
    /// # Cancel safety
    /// Safe: handshakes go on.
    ///
    /// # Errors
    /// Fails like [`TcpListener::accept`].
    pub async fn accept(&mut self) -> io::Result<(TlsStream, SocketAddr)> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<Accepted> {
        while let Poll::Ready((tcp, peer)) = self.listener.poll_accept(cx)? {
            let acceptor = self.acceptor.clone();
            let mut handshake: Handshake = Box::pin(async move { Ok((acceptor.accept(tcp).await?, peer)) });
            // The ClientHello may be there already: then the answer can leave on the SYN-ACK.
            match handshake.as_mut().poll(cx) {
                Poll::Ready(Ok(accepted)) => return Poll::Ready(Ok(accepted)),
                Poll::Ready(Err(_)) => {}
                Poll::Pending => self.go_on(handshake),
            }
        }
        while let Poll::Ready(Some(done)) = self.handshakes.poll_join_next(cx) {
            if let Ok(Ok(accepted)) = done {
                return Poll::Ready(Ok(accepted));
            }
        }
        Poll::Pending
    }

    /// Continues a handshake beside the others.
    fn go_on(&mut self, handshake: Handshake) {
        while self.order.front().is_some_and(AbortHandle::is_finished) {
            self.order.pop_front();
        }
        if self.order.len() >= self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            oldest.abort();
        }
        self.order.push_back(self.handshakes.spawn(handshake));
    }
}
