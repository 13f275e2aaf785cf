//! The calls of an application: the verbs of its host's stack at the current time.

use super::sink::Sink;
use bytes::Bytes;
use core::net::SocketAddr;
use proto::{
    AcceptError, ConnId, ConnectError, ConnectOptions, EarlyData, Events, Instant, ListenError,
    ListenOptions, ListenerId, Outcome, ReadError, SocketId, Stack, WriteError,
};
use std::collections::VecDeque;

/// The way a host receives and sends packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// One by one, as a kernel does. Each system call sends at once: `write`, then `close`, are two
    /// packets.
    OneByOne,
    /// In batches, as a user-space stack does. Packets that arrive together are one batch, and so
    /// are all calls of an application until it waits.
    Batched,
}

/// The calls of one application at one instant.
pub struct Sys<'a> {
    now: Instant,
    stack: &'a mut Stack,
    calls: Calls,
    sink: &'a mut Sink,
    events: &'a mut VecDeque<(SocketId, Events)>,
}

impl<'a> Sys<'a> {
    pub(super) fn new(
        now: Instant,
        stack: &'a mut Stack,
        calls: Calls,
        sink: &'a mut Sink,
        events: &'a mut VecDeque<(SocketId, Events)>,
    ) -> Sys<'a> {
        Sys { now, stack, calls, sink, events }
    }

    /// Returns the current time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Opens a listener.
    ///
    /// # Errors
    /// See [`Stack::listen`].
    pub fn listen(&mut self, local: SocketAddr, options: ListenOptions) -> Result<ListenerId, ListenError> {
        self.call(|stack, now| stack.listen(now, local, options))
    }

    /// Accepts the next connection of a listener.
    ///
    /// # Errors
    /// See [`Stack::accept`].
    pub fn accept(&mut self, listener: ListenerId) -> Result<(ConnId, SocketAddr), AcceptError> {
        self.call(|stack, now| stack.accept(now, listener))
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// See [`Stack::connect`].
    pub fn connect(&mut self, peer: SocketAddr, options: ConnectOptions) -> Result<ConnId, ConnectError> {
        self.call(|stack, now| stack.connect(now, peer, options))
    }

    /// Writes without copying. Data that does not fit stays in `data`.
    ///
    /// # Errors
    /// See [`Stack::write_bytes`].
    pub fn write(&mut self, id: ConnId, data: &mut Bytes) -> Result<usize, WriteError> {
        self.call(|stack, now| stack.write_bytes(now, id, data))
    }

    /// Reads available data. `Ok(None)` is the end of the stream.
    ///
    /// # Errors
    /// See [`Stack::read_chunk`].
    pub fn read(&mut self, id: ConnId) -> Result<Option<Bytes>, ReadError> {
        self.read_up_to(id, usize::MAX)
    }

    /// Reads at most `max` bytes of the available data.
    ///
    /// # Errors
    /// See [`Stack::read_chunk`].
    pub fn read_up_to(&mut self, id: ConnId, max: usize) -> Result<Option<Bytes>, ReadError> {
        self.call(|stack, now| stack.read_chunk(now, id, max))
    }

    /// Closes the sending direction.
    ///
    /// # Errors
    /// See [`Stack::shutdown`].
    pub fn shutdown(&mut self, id: ConnId) -> Result<(), WriteError> {
        self.call(|stack, now| stack.shutdown(now, id))
    }

    /// Closes a connection.
    pub fn close(&mut self, id: ConnId) {
        self.call(|stack, now| stack.close(now, id));
    }

    /// Resets a connection.
    pub fn abort(&mut self, id: ConnId) {
        self.call(|stack, now| stack.abort(now, id));
    }

    /// Returns the outcome of Fast Open on a connection.
    pub fn outcome(&self, id: ConnId) -> Option<Outcome> {
        self.stack.outcome(id)
    }

    /// Returns the range of a connection's data that arrived in its SYN.
    pub fn early_data(&self, id: ConnId) -> Option<EarlyData> {
        self.stack.early_data(id)
    }

    fn call<R>(&mut self, verb: impl FnOnce(&mut Stack, Instant) -> R) -> R {
        let result = verb(self.stack, self.now);
        if self.calls == Calls::OneByOne {
            self.sink.drain(self.stack, self.now, self.events);
        }
        result
    }
}
