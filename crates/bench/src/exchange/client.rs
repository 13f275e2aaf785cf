//! The client of the exchange: so many at a time until so many are done.

use super::{Application, Inbox, Mode, REQUEST_BYTE, RESPONSE_BYTE};
use crate::ids::ConnMap;
use crate::report::Failure;
use bytes::BytesMut;
use core::net::SocketAddr;
use proto::{ConnId, ConnectOptions, Events, FastOpen, Instant, Outcome, SocketId, SocketOptions, Stack};

/// Bytes of a block of requests.
const BLOCK: usize = 16 * 1024;

/// The shape of an exchange.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Handshake.
    pub mode: Mode,
    /// The FIN travels with the request, in the SYN: three packets (both ends must be ours).
    pub fin_in_syn: bool,
    /// Bytes of a request.
    pub request_len: usize,
    /// Bytes of an answer.
    pub response_len: usize,
    /// Servers, taken in turn.
    pub servers: Vec<SocketAddr>,
}

/// The client's connections.
pub struct Client {
    plan: Plan,
    request: Vec<u8>,
    /// The rest of a block, out of which requests are cut: none costs an allocation of its own.
    outgoing: BytesMut,
    inbox: Inbox,
    running: ConnMap<Progress>,
    started: u64,
    target: u64,
    done: u64,
    accepted: u64,
    first_byte: Option<Instant>,
}

/// How far an exchange is.
#[derive(Default)]
struct Progress {
    received: usize,
    is_shut: bool,
}

impl Client {
    /// A client that does nothing yet.
    pub fn new(plan: Plan) -> Client {
        Client {
            request: vec![REQUEST_BYTE; plan.request_len],
            plan,
            outgoing: BytesMut::new(),
            inbox: Inbox::new(RESPONSE_BYTE),
            running: ConnMap::default(),
            started: 0,
            target: 0,
            done: 0,
            accepted: 0,
            first_byte: None,
        }
    }

    /// Begins `count` exchanges, at most `concurrency` at a time.
    ///
    /// # Errors
    /// The stack refuses to connect.
    pub fn start(
        &mut self,
        stack: &mut Stack,
        now: Instant,
        count: u64,
        concurrency: usize,
    ) -> Result<(), Failure> {
        (self.started, self.done, self.accepted, self.target) = (0, 0, 0, count);
        for _ in 0..count.min(concurrency as u64) {
            self.open(stack, now)?;
        }
        Ok(())
    }

    /// Exchanges done since the start.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Are all of them done?
    pub fn is_finished(&self) -> bool {
        self.done == self.target
    }

    /// Share of finished exchanges whose request was accepted in the SYN: 0 to 1.
    pub fn tfo_share(&self) -> f64 {
        self.accepted as f64 / self.done as f64
    }

    /// When the first byte of the latest answer was read.
    pub fn first_byte(&self) -> Option<Instant> {
        self.first_byte
    }

    fn open(&mut self, stack: &mut Stack, now: Instant) -> Result<(), Failure> {
        if self.outgoing.capacity() < self.request.len() {
            self.outgoing.reserve(BLOCK.max(self.request.len()));
        }
        self.outgoing.extend_from_slice(&self.request);
        let server = self.plan.servers[(self.started % self.plan.servers.len() as u64) as usize];
        let options = ConnectOptions {
            fast_open: if self.plan.mode == Mode::Tfo { FastOpen::Auto } else { FastOpen::Off },
            first_bytes: self.outgoing.split().freeze(),
            fin: self.plan.fin_in_syn,
            syn_fin: self.plan.fin_in_syn,
            socket: SocketOptions { nodelay: true, ..SocketOptions::default() },
            ..ConnectOptions::default()
        };
        let id = stack.connect(now, server, options).map_err(|error| format!("connect: {error:?}"))?;
        self.started += 1;
        self.running.insert(id, Progress { received: 0, is_shut: self.plan.fin_in_syn });
        Ok(())
    }

    /// Reads what is there, and shuts down behind the answer. True: the server's FIN was read.
    fn advance(&mut self, stack: &mut Stack, now: Instant, id: ConnId) -> Result<bool, Failure> {
        let Some(progress) = self.running.get_mut(id) else { return Ok(false) };
        while let Some(read) = self.inbox.read(stack, now, id)? {
            if read == 0 && progress.received == self.plan.response_len {
                return Ok(true);
            }
            if read == 0 {
                return Err(format!("end of stream after {} bytes", progress.received).into());
            }
            self.first_byte = if progress.received == 0 { Some(now) } else { self.first_byte };
            progress.received += read;
            if progress.received > self.plan.response_len {
                return Err(format!("{} bytes of answer", progress.received).into());
            }
            if progress.received == self.plan.response_len && !progress.is_shut {
                progress.is_shut = true;
                stack.shutdown(now, id).map_err(|error| format!("shutdown: {error:?}"))?;
            }
        }
        Ok(false)
    }
}

impl Application for Client {
    fn on_event(
        &mut self,
        stack: &mut Stack,
        now: Instant,
        id: SocketId,
        events: Events,
    ) -> Result<(), Failure> {
        let SocketId::Connection(id) = id else { return Ok(()) };
        if !events.contains(Events::READABLE) || !self.advance(stack, now, id)? {
            return Ok(());
        }
        self.running.remove(id);
        self.done += 1;
        self.accepted += u64::from(stack.outcome(id) == Some(Outcome::Accepted));
        stack.close(now, id);
        if self.started < self.target { self.open(stack, now) } else { Ok(()) }
    }
}
