//! The stream that hyper reads and writes, and the state of the connection that it shows.
use super::super::pace::{LeastRate, Pace};
use bytes::{Buf, Bytes};
use firstbyte::TcpStream;
use hyper::body::{Body, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that first returns bytes read earlier, with a least rate for the client.
pub(super) struct HttpStream {
    stream: TcpStream,
    /// Bytes that were read earlier and not used yet.
    before: Bytes,
    pace: Pace,
    seen: Arc<Seen>,
}

/// hyper's progress on a stream. Everything runs on one thread; the atomics make it `Send`.
#[derive(Default)]
pub(super) struct Seen {
    /// True if the bytes that were read last may be a replay.
    is_early: AtomicBool,
    asked: AtomicU32,
    answered: AtomicU32,
    has_written: AtomicBool,
    /// True once everything that hyper wrote is in the stream.
    is_flushed: AtomicBool,
    /// True if there is nothing to read.
    is_read: AtomicBool,
}

impl Seen {
    pub(super) fn is_early(&self) -> bool {
        self.is_early.load(Relaxed)
    }

    /// True if a request has arrived.
    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Relaxed) > 0
    }

    pub(super) fn has_written(&self) -> bool {
        self.has_written.load(Relaxed)
    }

    /// True if the client is idle: all requests are answered, and it has sent nothing more.
    pub(super) fn is_idle(&self) -> bool {
        self.is_asked()
            && self.asked.load(Relaxed) == self.answered.load(Relaxed)
            && self.is_flushed.load(Relaxed)
            && self.is_read.load(Relaxed)
    }

    /// Begins a reply, which ends when its body is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Answering {
        self.asked.fetch_add(1, Relaxed);
        self.is_flushed.store(false, Relaxed);
        Answering(self.clone())
    }
}

/// A reply in progress.
pub(super) struct Answering(Arc<Seen>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answered.fetch_add(1, Relaxed);
    }
}

/// A body that reports its end.
pub(super) struct SeenBody<B> {
    pub(super) body: B,
    pub(super) _answering: Answering,
}

impl<B: Body + Unpin> Body for SeenBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl HttpStream {
    pub(super) fn new(stream: TcpStream, before: Bytes, least: LeastRate) -> HttpStream {
        HttpStream { stream, before, pace: Pace::new(least), seen: Arc::default() }
    }

    pub(super) fn seen(&self) -> Arc<Seen> {
        self.seen.clone()
    }

    pub(super) fn into_inner(self) -> TcpStream {
        self.stream
    }

    /// Records a write. Fails if the client accepts earlier bytes too slowly.
    fn pass<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.seen.is_flushed.store(false, Relaxed);
        if written.is_pending() {
            return self.pace.poll_waiting(cx, &self.stream).map(Err);
        }
        self.pace.stop_waiting();
        self.seen.has_written.store(true, Relaxed);
        written
    }
}

impl AsyncRead for HttpStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = match self.before.len().min(buf.remaining()) {
            0 => Pin::new(&mut self.stream).poll_read(cx, buf),
            len => {
                buf.put_slice(&self.before[..len]);
                self.before.advance(len);
                Poll::Ready(Ok(()))
            }
        };
        self.seen.is_read.store(read.is_pending(), Relaxed);
        if read.is_ready() {
            let early = self.stream.early_data();
            self.seen.is_early.store(early.len > 0 && !early.confirmed, Relaxed);
        }
        read
    }
}

impl AsyncWrite for HttpStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, data);
        self.pass(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.pass(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.seen.is_flushed.store(matches!(flushed, Poll::Ready(Ok(()))), Relaxed);
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
