//! The stream that a connector returns.
use super::HttpInfo;
use super::first_write::FirstWrite;
#[cfg(feature = "tls")]
use super::secured::Secured;
#[cfg(feature = "tls")]
use crate::tls::TlsStream;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection of a [`Connector`](super::Connector), for hyper and the libraries above it.
///
/// Nothing is sent until the first request is written. The stream then decides whether the SYN
/// carries it, by the connector's [`FirstRequest`](super::FirstRequest). An error of the connection
/// is reported by the first read or write after that.
#[derive(Debug)]
pub struct HttpStream {
    io: TokioIo<Inner>,
}

/// The layers below HTTP.
#[derive(Debug)]
enum Inner {
    Tcp(FirstWrite),
    #[cfg(feature = "tls")]
    Tls(Box<Secured>),
}

impl HttpStream {
    pub(super) fn tcp(stream: FirstWrite) -> HttpStream {
        HttpStream { io: TokioIo::new(Inner::Tcp(stream)) }
    }

    #[cfg(feature = "tls")]
    pub(super) fn tls(stream: TlsStream) -> HttpStream {
        HttpStream { io: TokioIo::new(Inner::Tls(Box::new(Secured::new(stream)))) }
    }

    /// Returns the facts that each response of this connection carries.
    #[must_use]
    pub fn info(&self) -> HttpInfo {
        match self.io.inner() {
            Inner::Tcp(stream) => stream.info(),
            #[cfg(feature = "tls")]
            Inner::Tls(stream) => stream.info(),
        }
    }
}

impl Connection for HttpStream {
    fn connected(&self) -> Connected {
        let connected = Connected::new().extra(self.info());
        match self.io.inner() {
            Inner::Tcp(_) => connected,
            #[cfg(feature = "tls")]
            Inner::Tls(stream) if stream.is_http2() => connected.negotiated_h2(),
            #[cfg(feature = "tls")]
            Inner::Tls(_) => connected,
        }
    }
}

impl Read for HttpStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl Write for HttpStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl AsyncRead for Inner {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Inner::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            #[cfg(feature = "tls")]
            Inner::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Inner {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Inner::Tcp(stream) => Pin::new(stream).poll_write(cx, data),
            #[cfg(feature = "tls")]
            Inner::Tls(stream) => Pin::new(stream).poll_write(cx, data),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Inner::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            #[cfg(feature = "tls")]
            Inner::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Inner::Tcp(stream) => stream.is_write_vectored(),
            #[cfg(feature = "tls")]
            Inner::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Inner::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            #[cfg(feature = "tls")]
            Inner::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Inner::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            #[cfg(feature = "tls")]
            Inner::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
