//! Moves records between a session and its TCP connection.
use super::session::{READ_MAX, Session};
use crate::TcpStream;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Sends all records that are ready.
pub(super) fn poll_send(
    tcp: &mut TcpStream,
    session: &mut Session,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    ready!(session.poll_stored(cx));
    while session.wants_write() {
        match session.write_to(&mut Writer { tcp, cx }) {
            Ok(0) => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Poll::Pending,
            Err(error) => return Poll::Ready(Err(error)),
        }
    }
    Poll::Ready(Ok(()))
}

/// Reads once. An error of the handshake is told to the peer first.
pub(super) fn poll_receive(
    tcp: &mut TcpStream,
    session: &mut Session,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    let mut space = [MaybeUninit::uninit(); READ_MAX];
    let mut buf = ReadBuf::uninit(&mut space);
    ready!(Pin::new(&mut *tcp).poll_read(cx, &mut buf))?;
    if buf.filled().is_empty() && session.is_handshaking() {
        return Poll::Ready(Err(cut()));
    }
    let received = session.receive(buf.filled());
    if received.is_err() {
        let _ = poll_send(tcp, session, cx);
    }
    Poll::Ready(received)
}

/// The transport, as rustls writes to it.
struct Writer<'a, 'b> {
    tcp: &'a mut TcpStream,
    cx: &'a mut Context<'b>,
}

impl Write for Writer<'_, '_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        would_block(Pin::new(&mut *self.tcp).poll_write(self.cx, data))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        would_block(Pin::new(&mut *self.tcp).poll_write_vectored(self.cx, slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn would_block(poll: Poll<io::Result<usize>>) -> io::Result<usize> {
    match poll {
        Poll::Ready(result) => result,
        Poll::Pending => Err(ErrorKind::WouldBlock.into()),
    }
}

fn cut() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the peer closed the connection within the TLS handshake")
}
