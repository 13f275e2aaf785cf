//! Many connections that stay open: a client that asks on one of them at a time or on all, a server
//! that answers.

use crate::exchange::{Application, Inbox, REQUEST_BYTE, RESPONSE_BYTE};
use crate::meter;
use crate::pair::{CLIENT, Pair, SERVER};
use crate::report::Failure;
use core::net::SocketAddr;
use proto::{Config, ConnId, ConnectOptions, Events, Instant, ListenOptions, SocketId, SocketOptions, Stack};

/// Server ports, so that the client's ports suffice for a million connections.
const PORTS: u16 = 16;
const FIRST_SERVER_PORT: u16 = 7000;
const FIRST_CLIENT_PORT: u16 = 1024;
/// Most connections of one crowd.
const CONNECTIONS_MAX: usize = (u16::MAX - FIRST_CLIENT_PORT) as usize * PORTS as usize;
/// Connections opened at a time.
const OPENED_AT_ONCE: usize = 500;

/// Settings with room for `connections`.
///
/// # Errors
/// More than there are ports for.
pub fn config(connections: usize) -> Result<Config, Failure> {
    if connections > CONNECTIONS_MAX {
        return Err(format!("at most {CONNECTIONS_MAX} connections").into());
    }
    let ours = Config::default();
    let most = (connections as u32).max(ours.max_connections);
    Ok(ours.max_connections(most))
}

/// The asking side.
pub struct Asker {
    inbox: Inbox,
    connections: Vec<ConnId>,
    request: Vec<u8>,
    response_len: usize,
    established: usize,
    answers: u64,
}

/// The side that answers every request.
pub struct Answerer {
    inbox: Inbox,
    request_len: usize,
    response: Vec<u8>,
    accepted: usize,
}

impl Asker {
    /// Room for `count` connections.
    pub fn new(count: usize, request_len: usize, response_len: usize) -> Asker {
        Asker {
            inbox: Inbox::new(RESPONSE_BYTE),
            connections: Vec::with_capacity(count),
            request: vec![REQUEST_BYTE; request_len],
            response_len,
            established: 0,
            answers: 0,
        }
    }

    /// The connections in order of creation.
    pub fn connections(&self) -> &[ConnId] {
        &self.connections
    }

    /// Whole answers received.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    fn open(&mut self, stack: &mut Stack, now: Instant) -> Result<(), Failure> {
        let number = self.connections.len();
        let server = SocketAddr::new(SERVER, FIRST_SERVER_PORT + (number % usize::from(PORTS)) as u16);
        let local = SocketAddr::new(CLIENT, FIRST_CLIENT_PORT + (number / usize::from(PORTS)) as u16);
        let options = ConnectOptions {
            local: Some(local),
            socket: SocketOptions { nodelay: true, ..SocketOptions::default() },
            ..ConnectOptions::default()
        };
        let id = stack.connect(now, server, options).map_err(|error| format!("connect: {error:?}"))?;
        self.connections.push(id);
        Ok(())
    }

    /// Sends a request on `id`.
    ///
    /// # Errors
    /// The stack does not take it whole.
    pub fn ask(&mut self, stack: &mut Stack, now: Instant, id: ConnId) -> Result<(), Failure> {
        write_whole(stack, now, id, &self.request)
    }
}

impl Application for Asker {
    fn on_event(
        &mut self,
        stack: &mut Stack,
        now: Instant,
        id: SocketId,
        events: Events,
    ) -> Result<(), Failure> {
        let SocketId::Connection(id) = id else { return Ok(()) };
        self.established += usize::from(events.contains(Events::CONNECTED));
        if !events.contains(Events::READABLE) {
            return Ok(());
        }
        match self.inbox.read(stack, now, id)? {
            Some(read) if read == self.response_len => {
                self.answers += 1;
                Ok(())
            }
            other => Err(format!("{other:?} bytes of an answer").into()),
        }
    }
}

impl Answerer {
    /// Listens on all ports.
    ///
    /// # Errors
    /// The stack refuses.
    pub fn new(stack: &mut Stack, request_len: usize, response_len: usize) -> Result<Answerer, Failure> {
        for port in 0..PORTS {
            let options = ListenOptions {
                socket: SocketOptions { nodelay: true, ..SocketOptions::default() },
                ..ListenOptions::default()
            };
            let address = SocketAddr::new(SERVER, FIRST_SERVER_PORT + port);
            stack.listen(meter::now(), address, options).map_err(|error| format!("listen: {error:?}"))?;
        }
        let inbox = Inbox::new(REQUEST_BYTE);
        Ok(Answerer { inbox, request_len, response: vec![RESPONSE_BYTE; response_len], accepted: 0 })
    }

    fn answer(&mut self, stack: &mut Stack, now: Instant, id: ConnId) -> Result<(), Failure> {
        match self.inbox.read(stack, now, id)? {
            Some(read) if read == self.request_len => {}
            None => return Ok(()),
            other => return Err(format!("{other:?} bytes of a request").into()),
        }
        write_whole(stack, now, id, &self.response)
    }
}

impl Application for Answerer {
    fn on_event(
        &mut self,
        stack: &mut Stack,
        now: Instant,
        id: SocketId,
        events: Events,
    ) -> Result<(), Failure> {
        match id {
            SocketId::Listener(listener) => {
                while let Ok((id, _)) = stack.accept(now, listener) {
                    self.accepted += 1;
                    self.answer(stack, now, id)?;
                }
                Ok(())
            }
            SocketId::Connection(id) if events.contains(Events::READABLE) => self.answer(stack, now, id),
            SocketId::Connection(_) => Ok(()),
        }
    }
}

/// Establishes `count` connections; with `ask`, a request and its answer pass over each of them.
///
/// # Errors
/// A connection or an answer was lost.
pub fn establish(
    pair: &mut Pair,
    asker: &mut Asker,
    answerer: &mut Answerer,
    count: usize,
    ask: bool,
) -> Result<(), Failure> {
    while asker.connections.len() < count {
        let first = asker.connections.len();
        let now = meter::now();
        for _ in first..count.min(first + OPENED_AT_ONCE) {
            asker.open(&mut pair.client.stack, now)?;
        }
        while asker.established < asker.connections.len() || answerer.accepted < asker.connections.len() {
            pair.round(meter::now(), asker, answerer)?;
        }
        if ask {
            let now = meter::now();
            for number in first..asker.connections.len() {
                asker.ask(&mut pair.client.stack, now, asker.connections[number])?;
            }
            while asker.answers < asker.connections.len() as u64 {
                pair.round(meter::now(), asker, answerer)?;
            }
        }
    }
    Ok(())
}

/// Writes a message that a send buffer always has room for.
fn write_whole(stack: &mut Stack, now: Instant, id: ConnId, message: &[u8]) -> Result<(), Failure> {
    match stack.write(now, id, message) {
        Ok(written) if written == message.len() => Ok(()),
        other => Err(format!("write: {other:?}").into()),
    }
}
