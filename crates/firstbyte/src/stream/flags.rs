//! Writes that say more than their bytes, and the urgent byte.
use super::TcpStream;
use proto::WriteFlags;
use std::future::poll_fn;
use std::io;

/// Writes that say more than their bytes, and what the peer's said.
///
/// ```
/// use firstbyte::WriteFlags;
///
/// # async fn example(mut stream: firstbyte::TcpStream) -> std::io::Result<()> {
/// // Two messages of a protocol whose receiver wants each to begin a packet:
/// stream.write_with(b"length 5\n", WriteFlags::MORE).await?;
/// stream.write_with(b"hello", WriteFlags::END_OF_RECORD).await?;
/// stream.write_with(b"length 3\nbye", WriteFlags::END_OF_RECORD).await?;
/// // What Telnet does to be heard behind all that:
/// stream.write_with(b"\xff\xf2", WriteFlags::URGENT).await?;
///
/// // And the other side of it, reading as far as the urgent byte:
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
    /// Writes all of `data`; the flags hold for its end.
    ///
    /// A deferred stream ([`connect_deferred`](Self::connect_deferred)) opens with it, unless [`MORE`](WriteFlags::MORE) is all it says.
    ///
    /// # Cancel safety
    /// Not safe: a part may have been written when the future is dropped.
    ///
    /// # Errors
    /// As writes.
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

    /// Writes as much as fits; the flags hold if that is all of `data`.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when nothing fits; else as writes.
    pub fn try_write_with(&self, data: &[u8], flags: WriteFlags) -> io::Result<usize> {
        self.connection.try_write_with(data, flags)
    }

    /// Bytes to be read before the last urgent one that the peer announced, 0 = it is the next (`SIOCATMARK`); `None`: there is none to
    /// come. One read does not go over the mark.
    ///
    /// # Errors
    /// As [`local_addr`](Self::local_addr).
    pub fn urgent_mark(&self) -> io::Result<Option<usize>> {
        self.connection.urgent_mark()
    }

    /// The peer's last urgent byte (`MSG_OOB`), as soon as it has come, even before what was sent before it. Once: a second call waits for
    /// the next one.
    ///
    /// # Cancel safety
    /// Safe.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput): it is [in the stream](Self::set_oob_inline).
    /// [`NotConnected`](io::ErrorKind::NotConnected): the peer has ended its direction, and there is none to come. Else as reads.
    pub async fn read_urgent(&self) -> io::Result<u8> {
        poll_fn(|cx| self.connection.poll_read_urgent(cx)).await
    }

    /// As [`read_urgent`](Self::read_urgent), now.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when the peer has told of it and it has not come yet;
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) also when the peer has told of none, or it was read already; else as
    /// [`read_urgent`](Self::read_urgent).
    pub fn try_read_urgent(&self) -> io::Result<u8> {
        self.connection.try_read_urgent()
    }
}
