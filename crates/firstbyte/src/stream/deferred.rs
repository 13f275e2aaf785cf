//! A connection that is not open yet because it does not know what to say.
use crate::error;
use bytes::{BufMut, BytesMut};
use host::{Error, Host, RealClock};
use proto::{ConnId, ConnectError, ConnectOptions, SocketOptions};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::Sleep;

/// The plan: where to, how, and what was written so far.
#[derive(Debug)]
pub(super) struct Deferred {
    peer: SocketAddr,
    options: ConnectOptions,
    first_bytes: BytesMut,
    /// One packet's worth: more cannot ride on a SYN.
    first_bytes_max: usize,
    read_grace: Duration,
    grace_timer: Option<Pin<Box<Sleep>>>,
    reader: Option<Waker>,
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
            grace_timer: None,
            reader: None,
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
    pub(super) fn poll_read_grace(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.ensure_possible()?;
        if !self.is_empty() || self.read_grace.is_zero() {
            return Poll::Ready(Ok(()));
        }
        self.reader = Some(cx.waker().clone());
        let grace = self.read_grace;
        let timer = self.grace_timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(grace)));
        timer.as_mut().poll(cx).map(Ok)
    }

    /// The reader to wake once the connection is open.
    pub(super) fn take_reader(&mut self) -> Option<Waker> {
        self.reader.take()
    }

    /// Opens the connection with the bytes written so far. The first failure is final.
    pub(super) fn launch(&mut self, host: &Host<RealClock>, fin: bool) -> io::Result<ConnId> {
        self.ensure_possible()?;
        let mut options = self.options.clone();
        options.first_bytes = self.first_bytes.split().freeze();
        options.data_less |= options.first_bytes.is_empty();
        options.fin |= fin;
        let opened = host.connect(self.peer, options);
        opened.map_err(|failed| {
            self.failed = Some(failed);
            if let Some(reader) = self.reader.take() {
                reader.wake();
            }
            error::connect(failed)
        })
    }
}
