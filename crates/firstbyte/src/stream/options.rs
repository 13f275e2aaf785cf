//! Options of a stream.
use super::TcpStream;
use proto::{SocketOption, SocketOptions};
use std::io;
use std::time::Duration;

/// Options. All may be changed at any time; those of accepted streams begin as
/// [`socket_options`](crate::TcpListenerBuilder::socket_options) says.
///
/// Setters fail with [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and like getters
/// with [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
///
/// ```
/// # async fn example(stream: firstbyte::TcpStream) -> std::io::Result<()> {
/// use tokio::io::AsyncWriteExt;
/// # let mut stream = stream;
/// stream.set_nodelay(true)?;
/// // A header and a body in as few packets as possible:
/// stream.set_cork(true)?;
/// stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
/// stream.write_all(&[0; 4000]).await?;
/// stream.set_cork(false)?;
/// # Ok(())
/// # }
/// ```
impl TcpStream {
    /// All options as they are.
    ///
    /// # Errors
    /// See above.
    pub fn options(&self) -> io::Result<SocketOptions> {
        self.connection.options()
    }

    /// Changes one option.
    ///
    /// # Errors
    /// See above.
    pub fn set_option(&self, option: SocketOption) -> io::Result<()> {
        self.connection.set_option(option)
    }

    /// Is Nagle off?
    ///
    /// # Errors
    /// See above.
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(self.options()?.nodelay)
    }

    /// Nagle off (`true`: small segments leave at once) or on.
    ///
    /// # Errors
    /// See above.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.set_option(SocketOption::NoDelay(nodelay))
    }

    /// Sends whole segments only until the cork is taken off (`TCP_CORK`), for several writes that belong together. What
    /// is smaller waits for it, at most for a retransmission time-out (200 ms or more) after all else was acknowledged.
    ///
    /// # Errors
    /// See above.
    pub fn set_cork(&self, cork: bool) -> io::Result<()> {
        self.set_option(SocketOption::Cork(cork))
    }

    /// See [`set_linger`](Self::set_linger).
    ///
    /// # Errors
    /// See above.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(self.options()?.linger)
    }

    /// What dropping the stream does with data not yet delivered: `None`, deliver it; `Some(0)`, reset at once;
    /// `Some(t)`, deliver it, but reset after `t`. Dropping never blocks.
    ///
    /// # Errors
    /// See above.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        self.set_option(SocketOption::Linger(linger))
    }
}
