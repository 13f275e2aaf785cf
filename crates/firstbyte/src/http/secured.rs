//! A connection over TLS that records its outcome.
use super::HttpInfo;
use crate::tls::TlsStream;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[derive(Debug)]
pub(super) struct Secured {
    stream: TlsStream,
    info: HttpInfo,
}

impl Secured {
    pub(super) fn new(stream: TlsStream) -> Secured {
        let secured = Secured { stream, info: HttpInfo::default() };
        secured.record();
        secured
    }

    pub(super) fn info(&self) -> HttpInfo {
        self.info.clone()
    }

    pub(super) fn is_http2(&self) -> bool {
        self.stream.alpn() == Some(b"h2")
    }

    /// Records the connection once the server has answered.
    fn record(&self) {
        if let Some(tcp) = self.stream.tcp()
            && self.stream.handshake().is_complete()
        {
            self.info.record(tcp);
            self.info.record_tls(self.stream.outcome());
        }
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if self.info.peer_addr().is_none() {
            self.record();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Secured {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
