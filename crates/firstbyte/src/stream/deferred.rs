//! A connection that is not open yet, because it has no data to send.
use crate::error;
use bytes::{BufMut, BytesMut};
use host::Error;
use proto::{ConnectError, ConnectOptions, SocketOptions};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::sync::futures::OwnedNotified;
use tokio::time::{Timeout, timeout};

/// The plan: address, options, and data written so far.
#[derive(Debug)]
pub(crate) struct Deferred {
    peer: SocketAddr,
    options: ConnectOptions,
    first_bytes: BytesMut,
    /// Length of one packet: more does not fit on a SYN.
    first_bytes_max: usize,
    read_grace: Duration,
    /// The wait for a write; ends early with the stack.
    grace: Option<Pin<Box<Timeout<OwnedNotified>>>>,
    readers: Arc<Readers>,
    /// True if no more will be written.
    has_ended: bool,
    failed: Option<Error<ConnectError>>,
}

impl Deferred {
    pub(crate) fn new(
        peer: SocketAddr,
        options: ConnectOptions,
        read_grace: Duration,
        mtu: usize,
    ) -> Deferred {
        Deferred {
            peer,
            first_bytes: BytesMut::from(&*options.first_bytes),
            options,
            first_bytes_max: mtu,
            read_grace,
            grace: None,
            readers: Arc::default(),
            has_ended: false,
            failed: None,
        }
    }

    /// Fails if an earlier attempt to open failed.
    pub(crate) fn ensure_possible(&self) -> io::Result<()> {
        self.failed.map_or(Ok(()), |failed| Err(error::connect(failed)))
    }

    /// Keeps as much of `data` as still fits on the SYN.
    pub(crate) fn buffer(&mut self, data: &[u8]) -> io::Result<usize> {
        self.ensure_possible()?;
        let len = data.len().min(self.first_bytes_max - self.first_bytes.len());
        self.first_bytes.put_slice(&data[..len]);
        Ok(len)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.first_bytes.len() >= self.first_bytes_max
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first_bytes.is_empty()
    }

    pub(crate) fn socket_options(&mut self) -> &mut SocketOptions {
        &mut self.options.socket
    }

    /// Ready when a reader has waited long enough for a writer, or the stack is no longer running.
    pub(crate) fn poll_read_grace(
        &mut self,
        cx: &mut Context<'_>,
        is_running: impl FnOnce() -> bool,
        closing: impl FnOnce() -> OwnedNotified,
    ) -> Poll<io::Result<()>> {
        self.ensure_possible()?;
        if !self.is_empty() || self.has_ended || self.read_grace.is_zero() {
            return Poll::Ready(Ok(()));
        }
        let time = self.read_grace;
        let grace = self.grace.get_or_insert_with(|| Box::pin(timeout(time, closing())));
        // `closing` reports only an end that comes later.
        if !is_running() {
            return Poll::Ready(Ok(()));
        }
        self.readers.add(cx.waker());
        let everybody = Waker::from(Arc::clone(&self.readers));
        grace.as_mut().poll(&mut Context::from_waker(&everybody)).map(|_| Ok(()))
    }

    /// Marks the end of writing: readers need not wait for a write.
    pub(crate) fn end_writing(&mut self) {
        self.has_ended = true;
    }

    /// Returns the readers to wake once the connection is open, or cannot be opened.
    pub(crate) fn readers(&self) -> Arc<Readers> {
        Arc::clone(&self.readers)
    }

    /// Returns the peer, and the options with the bytes written so far.
    pub(crate) fn take(&mut self, fin: bool) -> io::Result<(SocketAddr, ConnectOptions)> {
        self.ensure_possible()?;
        let mut options = self.options.clone();
        options.first_bytes = self.first_bytes.split().freeze();
        options.data_less |= options.first_bytes.is_empty();
        options.fin |= fin || self.has_ended;
        Ok((self.peer, options))
    }

    /// Records why the stack refused to connect. The first failure is final.
    pub(crate) fn fail(&mut self, failed: Error<ConnectError>) {
        self.failed = Some(failed);
    }
}

/// The tasks that wait to read, as one waker: the timer that they share only remembers the last
/// waker.
#[derive(Debug, Default)]
pub(crate) struct Readers(Mutex<Vec<Waker>>);

impl Readers {
    pub(crate) fn add(&self, waker: &Waker) {
        let mut wakers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }

    pub(crate) fn wake_all(&self) {
        let wakers = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Wake for Readers {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }
}
