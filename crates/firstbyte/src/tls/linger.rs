//! The end of a connection that was dropped: in the background, with a limit.
use super::session::Session;
use super::transport::{poll_receive, poll_send};
use crate::TcpStream;
use std::future::poll_fn;
use std::io;
use std::task::{Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncWriteExt, ReadBuf};

/// Longest time that a dropped stream goes on in the background.
pub const LINGER: Duration = Duration::from_secs(5);

/// Sends what waits, waits for a ticket if the next visit needs one, and closes.
///
/// Outside a tokio runtime nothing can wait: the connection closes at once.
pub(super) fn finish(tcp: TcpStream, session: Box<Session>) {
    if !session.is_unfinished() && !session.wants_write() {
        return;
    }
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move {
            // Nobody is left to tell about an error.
            let _ = tokio::time::timeout(LINGER, close(tcp, session)).await;
        });
    }
}

async fn close(mut tcp: TcpStream, mut session: Box<Session>) -> io::Result<()> {
    // Boxed: the plaintext is thrown away, but rustls must be read to go on.
    let mut space = vec![0; 4096];
    poll_fn(|cx| {
        loop {
            ready!(poll_send(&mut tcp, &mut session, cx))?;
            if !session.is_unfinished() {
                return Poll::Ready(io::Result::Ok(()));
            }
            let mut buf = ReadBuf::new(&mut space);
            if !session.read(&mut buf)? {
                ready!(poll_receive(&mut tcp, &mut session, cx))?;
            } else if buf.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    })
    .await?;
    session.close();
    poll_fn(|cx| poll_send(&mut tcp, &mut session, cx)).await?;
    tcp.shutdown().await
}
