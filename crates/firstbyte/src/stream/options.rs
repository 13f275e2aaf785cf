//! Options of a stream.
use super::TcpStream;
use proto::{SocketOption, SocketOptions};
use std::io;
use std::time::Duration;

/// Options. All can be changed at any time. Accepted streams start with those of
/// [`socket_options`](crate::TcpListenerBuilder::socket_options).
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
/// // The connection may be idle for an hour, unless the peer is gone:
/// stream.set_keepalive(Some(std::time::Duration::from_secs(60)))?;
/// # Ok(())
/// # }
/// ```
impl TcpStream {
    /// Returns all options.
    ///
    /// # Errors
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn options(&self) -> io::Result<SocketOptions> {
        self.connection.options()
    }

    /// Changes one option.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn set_option(&self, option: SocketOption) -> io::Result<()> {
        self.connection.set_option(option)
    }

    /// True if Nagle is disabled.
    ///
    /// # Errors
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(self.options()?.nodelay)
    }

    /// Disables Nagle (`true`: small segments are sent at once) or enables it.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.set_option(SocketOption::NoDelay(nodelay))
    }

    /// Sends only full segments until the cork is removed (`TCP_CORK`), for several writes that
    /// belong together. Smaller data waits, at most one retransmission timeout (200 ms or more)
    /// after everything else was acknowledged.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn set_cork(&self, cork: bool) -> io::Result<()> {
        self.set_option(SocketOption::Cork(cork))
    }

    /// Acknowledges the next segments at once, for a while (`true`), or lets ACKs wait for replies
    /// (`false`) (`TCP_QUICKACK`). Neither is permanent: the connection adapts.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn set_quickack(&self, quickack: bool) -> io::Result<()> {
        self.set_option(SocketOption::QuickAck(quickack))
    }

    /// Probes a peer that has been idle for `time` (1 to 32767 s), and fails with
    /// [`TimedOut`](io::ErrorKind::TimedOut) if it never answers: by default after nine probes, 75
    /// s apart. `None`: a peer may be idle forever.
    ///
    /// Interval and number of the probes are [`SocketOption`]s.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn set_keepalive(&self, time: Option<Duration>) -> io::Result<()> {
        if time.is_some() {
            self.set_option(SocketOption::KeepAliveTime(time))?;
        }
        self.set_option(SocketOption::KeepAlive(time.is_some()))
    }

    /// Fails with [`TimedOut`](io::ErrorKind::TimedOut) if the peer has not acknowledged data, or
    /// answered a probe, for this time (`TCP_USER_TIMEOUT`). `None`: after about a quarter of an
    /// hour, by the stack's settings.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn set_user_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_option(SocketOption::UserTimeout(timeout))
    }

    /// Limits the number of unsent bytes (`TCP_NOTSENT_LOWAT`), so that the application can decide
    /// late what to send, for streams of frames or priorities. `None`: as many as the send buffer
    /// holds.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn set_notsent_lowat(&self, bytes: Option<u32>) -> io::Result<()> {
        self.set_option(SocketOption::NotsentLowat(bytes))
    }

    /// Sets where the last urgent byte of the peer is read. `true` (the default, as RFC 6093
    /// advises): in the stream, at its position (`SO_OOBINLINE`). `false`: with
    /// [`read_urgent`](Self::read_urgent), the default of BSD's and Linux's sockets.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn set_oob_inline(&self, inline: bool) -> io::Result<()> {
        self.set_option(SocketOption::UrgentApart(!inline))
    }

    /// Returns the linger option, see [`set_linger`](Self::set_linger).
    ///
    /// # Errors
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(self.options()?.linger)
    }

    /// Sets what happens to undelivered data when the stream is dropped. `None`: deliver it;
    /// `Some(0)`: reset at once; `Some(t)`: deliver it, but reset after `t`. Dropping never blocks.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        self.set_option(SocketOption::Linger(linger))
    }
}
