//! A connection that is not open yet because it does not know what to say.
use crate::{Net, error};
use bytes::{BufMut, BytesMut};
use host::{Error, Host, Phase, RealClock};
use proto::{ConnId, ConnectError, ConnectOptions, SocketOptions};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::sync::futures::OwnedNotified;
use tokio::time::{Timeout, timeout};

/// The plan: where to, how, and what was written so far.
#[derive(Debug)]
pub(super) struct Deferred {
    peer: SocketAddr,
    options: ConnectOptions,
    first_bytes: BytesMut,
    /// One packet's worth: more cannot ride on a SYN.
    first_bytes_max: usize,
    read_grace: Duration,
    /// Ends early with the stack.
    grace: Option<Pin<Box<Timeout<OwnedNotified>>>>,
    readers: Arc<Readers>,
    /// No more will be written.
    has_ended: bool,
    failed: Option<Error<ConnectError>>,
}

impl Deferred {
    pub(super) fn new(
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
    pub(super) fn ensure_possible(&self) -> io::Result<()> {
        self.failed.map_or(Ok(()), |failed| Err(error::connect(failed)))
    }

    /// Keeps as much of `data` as may still ride on the SYN.
    pub(super) fn buffer(&mut self, data: &[u8]) -> io::Result<usize> {
        self.ensure_possible()?;
        let len = data.len().min(self.first_bytes_max - self.first_bytes.len());
        self.first_bytes.put_slice(&data[..len]);
        Ok(len)
    }

    pub(super) fn is_full(&self) -> bool {
        self.first_bytes.len() >= self.first_bytes_max
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first_bytes.is_empty()
    }

    pub(super) fn socket_options(&mut self) -> &mut SocketOptions {
        &mut self.options.socket
    }

    /// Ready when a reader has waited long enough for a writer.
    pub(super) fn poll_read_grace(&mut self, cx: &mut Context<'_>, net: &Net) -> Poll<io::Result<()>> {
        self.ensure_possible()?;
        if !self.is_empty() || self.has_ended || self.read_grace.is_zero() {
            return Poll::Ready(Ok(()));
        }
        let time = self.read_grace;
        let grace = self.grace.get_or_insert_with(|| Box::pin(timeout(time, net.closing())));
        // After `closing`, which tells only of what comes later.
        if net.host().phase() != Phase::Running {
            return Poll::Ready(Ok(()));
        }
        self.readers.add(cx.waker());
        let everybody = Waker::from(Arc::clone(&self.readers));
        grace.as_mut().poll(&mut Context::from_waker(&everybody)).map(|_| Ok(()))
    }

    /// No more will be written: readers need not wait for it.
    pub(super) fn end_writing(&mut self) {
        self.has_ended = true;
    }

    /// Those to wake once the connection is open, or cannot be.
    pub(super) fn readers(&self) -> Arc<Readers> {
        Arc::clone(&self.readers)
    }

    /// Opens the connection with the bytes written so far. The first failure is final.
    pub(super) fn launch(&mut self, host: &Host<RealClock>, fin: bool) -> io::Result<ConnId> {
        self.ensure_possible()?;
        let mut options = self.options.clone();
        options.first_bytes = self.first_bytes.split().freeze();
        options.data_less |= options.first_bytes.is_empty();
        options.fin |= fin || self.has_ended;
        let opened = host.connect(self.peer, options);
        opened.map_err(|failed| {
            self.failed = Some(failed);
            error::connect(failed)
        })
    }
}

/// The tasks that wait to read. As one waker, since the timer that they share knows only the last that asked.
#[derive(Debug, Default)]
pub(super) struct Readers(Mutex<Vec<Waker>>);

impl Readers {
    fn add(&self, waker: &Waker) {
        let mut wakers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }

    pub(super) fn wake_all(&self) {
        let wakers = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Wake for Readers {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }
}
