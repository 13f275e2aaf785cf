//! Options of a stream.
use super::TcpStream;
use proto::{SocketOption, SocketOptions};
use std::io;
use std::time::Duration;

/// Options. All may be changed at any time; those of accepted streams begin as
/// [`socket_options`](crate::TcpListenerBuilder::socket_options) says.
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
/// // Then an hour of silence may follow, but not with a peer that is gone:
/// stream.set_keepalive(Some(std::time::Duration::from_secs(60)))?;
/// # Ok(())
/// # }
/// ```
impl TcpStream {
    /// All options as they are.
    ///
    /// # Errors
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn options(&self) -> io::Result<SocketOptions> {
        self.connection.options()
    }

    /// Changes one option.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and [`ConnectionAborted`](io::ErrorKind::ConnectionAborted)
    /// once the stack is shut down.
    pub fn set_option(&self, option: SocketOption) -> io::Result<()> {
        self.connection.set_option(option)
    }

    /// Is Nagle off?
    ///
    /// # Errors
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(self.options()?.nodelay)
    }

    /// Nagle off (`true`: small segments leave at once) or on.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and [`ConnectionAborted`](io::ErrorKind::ConnectionAborted)
    /// once the stack is shut down.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.set_option(SocketOption::NoDelay(nodelay))
    }

    /// Sends whole segments only until the cork is taken off (`TCP_CORK`), for several writes that belong together. What
    /// is smaller waits for it, at most for a retransmission time-out (200 ms or more) after all else was acknowledged.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and [`ConnectionAborted`](io::ErrorKind::ConnectionAborted)
    /// once the stack is shut down.
    pub fn set_cork(&self, cork: bool) -> io::Result<()> {
        self.set_option(SocketOption::Cork(cork))
    }

    /// `true` acknowledges at once what comes next, for a while; `false` lets acknowledgements wait for answers
    /// (`TCP_QUICKACK`). Neither lasts: the connection adapts to what happens.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and [`ConnectionAborted`](io::ErrorKind::ConnectionAborted)
    /// once the stack is shut down.
    pub fn set_quickack(&self, quickack: bool) -> io::Result<()> {
        self.set_option(SocketOption::QuickAck(quickack))
    }

    /// Asks a peer that has been silent for `time` (1 to 32767 s) whether it is still there, and fails with
    /// [`TimedOut`](io::ErrorKind::TimedOut) when it never answers: by default after nine probes, 75 s apart. `None`: a
    /// silent peer may stay silent for ever.
    ///
    /// Interval and number of the probes are [`SocketOption`]s.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and [`ConnectionAborted`](io::ErrorKind::ConnectionAborted)
    /// once the stack is shut down.
    pub fn set_keepalive(&self, time: Option<Duration>) -> io::Result<()> {
        if time.is_some() {
            self.set_option(SocketOption::KeepAliveTime(time))?;
        }
        self.set_option(SocketOption::KeepAlive(time.is_some()))
    }

    /// Fails with [`TimedOut`](io::ErrorKind::TimedOut) when the peer has not acknowledged data, or answered a probe, for so
    /// long (`TCP_USER_TIMEOUT`). `None`: after about a quarter of an hour, as the stack's settings say.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and [`ConnectionAborted`](io::ErrorKind::ConnectionAborted)
    /// once the stack is shut down.
    pub fn set_user_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_option(SocketOption::UserTimeout(timeout))
    }

    /// Takes no more than so many bytes before they are sent (`TCP_NOTSENT_LOWAT`), so that what is written late can still
    /// be chosen late: for streams of frames, or priorities. `None`: as many as the send buffer takes.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and [`ConnectionAborted`](io::ErrorKind::ConnectionAborted)
    /// once the stack is shut down.
    pub fn set_notsent_lowat(&self, bytes: Option<u32>) -> io::Result<()> {
        self.set_option(SocketOption::NotsentLowat(bytes))
    }

    /// `true`: the last urgent byte of the peer is in the stream, where it was sent (`SO_OOBINLINE`; so a stream begins, as RFC 6093
    /// advises). `false`: it is read by [`read_urgent`](Self::read_urgent), as BSD's and Linux's sockets do unless told otherwise.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and [`ConnectionAborted`](io::ErrorKind::ConnectionAborted)
    /// once the stack is shut down.
    pub fn set_oob_inline(&self, inline: bool) -> io::Result<()> {
        self.set_option(SocketOption::UrgentApart(!inline))
    }

    /// See [`set_linger`](Self::set_linger).
    ///
    /// # Errors
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) once the stack is shut down.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(self.options()?.linger)
    }

    /// What dropping the stream does with data not yet delivered: `None`, deliver it; `Some(0)`, reset at once;
    /// `Some(t)`, deliver it, but reset after `t`. Dropping never blocks.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value that Linux refuses too, and [`ConnectionAborted`](io::ErrorKind::ConnectionAborted)
    /// once the stack is shut down.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        self.set_option(SocketOption::Linger(linger))
    }
}
