//! A listener as a stream of connections.
use crate::{TcpListener, TcpStream};
use futures_core::Stream;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Yields each connection, for libraries that take a stream of them. Ends when the stack of our own
/// has ended. An error of the kernel, such as too many open files, does not end it.
///
/// ```
/// # async fn example<S: futures_core::Stream<Item = std::io::Result<firstbyte::TcpStream>>>(_: S) {}
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// use firstbyte::{Net, TcpListener};
///
/// let listener = TcpListener::bind(&Net::kernel(), "127.0.0.1:0").await?;
/// example(listener).await;
/// # Ok(())
/// # }
/// ```
impl Stream for TcpListener {
    type Item = io::Result<TcpStream>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<TcpStream>>> {
        Poll::Ready(match ready!(self.poll_accept(cx)) {
            Ok((stream, _)) => Some(Ok(stream)),
            Err(_) if self.has_ended() => None,
            Err(error) => Some(Err(error)),
        })
    }
}
