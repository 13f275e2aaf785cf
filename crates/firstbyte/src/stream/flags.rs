//! Writes with flags, and the urgent byte.
use super::TcpStream;
use proto::WriteFlags;
use std::future::poll_fn;
use std::io;

/// Writes with flags, and the urgent byte of the peer.
///
/// ```
/// use firstbyte::WriteFlags;
///
/// # async fn example(mut stream: firstbyte::TcpStream) -> std::io::Result<()> {
/// // Two messages of a protocol in which each must begin a packet:
/// stream.write_with(b"length 5\n", WriteFlags::MORE).await?;
/// stream.write_with(b"hello", WriteFlags::END_OF_RECORD).await?;
/// stream.write_with(b"length 3\nbye", WriteFlags::END_OF_RECORD).await?;
/// // Telnet interrupts the peer with an urgent byte:
/// stream.write_with(b"\xff\xf2", WriteFlags::URGENT).await?;
///
/// // The other side reads up to the urgent byte:
/// stream.set_oob_inline(false)?;
/// let interrupt = stream.read_urgent().await?;
/// assert_eq!(interrupt, 0xf2);
/// while stream.urgent_mark()?.is_some_and(|bytes| bytes > 0) {
///     stream.read_chunk(usize::MAX).await?;
/// }
/// # Ok(())
/// # }
/// ```
impl TcpStream {
    /// Writes all of `data`; the flags apply to its end.
    ///
    /// A deferred stream ([`connect_deferred`](Self::connect_deferred)) opens with it, unless the
    /// only flag is [`MORE`](WriteFlags::MORE).
    ///
    /// # Cancel safety
    /// Not safe: a part may have been written when the future is dropped.
    ///
    /// # Errors
    /// Fails like a write.
    pub async fn write_with(&mut self, data: &[u8], flags: WriteFlags) -> io::Result<()> {
        let mut written = 0;
        loop {
            let rest = &data[written..];
            written += poll_fn(|cx| self.connection.poll_write_with(cx, rest, flags)).await?;
            if written == data.len() {
                return Ok(());
            }
        }
    }

    /// Writes as much as fits; the flags apply if that is all of `data`.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing fits; otherwise like a write.
    pub fn try_write_with(&self, data: &[u8], flags: WriteFlags) -> io::Result<usize> {
        self.connection.try_write_with(data, flags)
    }

    /// Returns the number of bytes before the last urgent byte that the peer announced; 0 if it is
    /// the next byte (`SIOCATMARK`), `None` if none is pending. A read does not cross the mark.
    ///
    /// # Errors
    /// Fails like [`connection_info`](Self::connection_info).
    pub fn urgent_mark(&self) -> io::Result<Option<usize>> {
        self.connection.urgent_mark()
    }

    /// Reads the peer's last urgent byte (`MSG_OOB`) as soon as it arrives, even before the data in
    /// front of it. A second call waits for the next urgent byte.
    ///
    /// # Cancel safety
    /// Safe.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput): it is [in the stream](Self::set_oob_inline).
    /// [`NotConnected`](io::ErrorKind::NotConnected): the peer has ended its direction, and no
    /// urgent byte is pending. [`Unsupported`](io::ErrorKind::Unsupported) on the kernel's sockets.
    /// Otherwise like a read.
    pub async fn read_urgent(&self) -> io::Result<u8> {
        poll_fn(|cx| self.connection.poll_read_urgent(cx)).await
    }

    /// Reads the urgent byte like [`read_urgent`](Self::read_urgent), without waiting.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the peer has announced it and it has not
    /// arrived; [`InvalidInput`](io::ErrorKind::InvalidInput) also if none was announced, or it was
    /// already read; otherwise like [`read_urgent`](Self::read_urgent).
    pub fn try_read_urgent(&self) -> io::Result<u8> {
        self.connection.try_read_urgent()
    }
}
