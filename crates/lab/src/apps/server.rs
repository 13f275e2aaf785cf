//! A server that answers requests of known length, echoes, or speaks first.

use super::Closer;
use crate::network::{App, Sys};
use bytes::{Bytes, BytesMut};
use core::net::SocketAddr;
use core::time::Duration;
use proto::{ConnId, Events, Instant, ListenOptions, ListenerId, ReadError, SocketId};
use std::collections::BTreeMap;

/// Behavior of a server towards each connection.
#[derive(Clone, Debug)]
pub enum Service {
    /// Reads a whole request, thinks, writes the reply.
    Answer {
        /// Length of a request, bytes.
        request_len: usize,
        /// The reply.
        reply: Bytes,
        /// Time the server needs to make the reply.
        think: Duration,
    },
    /// Echoes data as it arrives and closes after the client.
    Echo,
    /// Writes a greeting before it reads anything.
    Greet {
        /// The greeting.
        greeting: Bytes,
    },
}

/// A request delivered to the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Time at which the request was complete.
    pub at: Instant,
    /// The sender's address, as the server sees it.
    pub peer: SocketAddr,
    /// The request.
    pub request: Bytes,
    /// True if the request was complete before the handshake: only the cookie proved the peer's
    /// address.
    pub early: bool,
}

struct Session {
    peer: SocketAddr,
    request: BytesMut,
    unsent: Bytes,
    answered: bool,
    peer_is_done: bool,
}

enum Stream {
    Open,
    Ended,
    Failed,
}

/// A server program.
pub struct Server {
    local: SocketAddr,
    options: ListenOptions,
    service: Service,
    closer: Closer,
    listener: Option<ListenerId>,
    sessions: BTreeMap<ConnId, Session>,
    thinking: Vec<(Instant, ConnId)>,
    deliveries: Vec<Delivery>,
}

impl Server {
    /// Creates a server that listens at `local`. `qlen` is the Fast Open queue; `None` disables
    /// Fast Open.
    pub fn new(local: SocketAddr, qlen: Option<u32>, service: Service, closer: Closer) -> Server {
        Server {
            local,
            options: ListenOptions { fast_open: qlen, ..ListenOptions::default() },
            service,
            closer,
            listener: None,
            sessions: BTreeMap::new(),
            thinking: Vec::new(),
            deliveries: Vec::new(),
        }
    }

    /// Returns the delivered requests in order of time.
    pub fn deliveries(&self) -> &[Delivery] {
        &self.deliveries
    }

    /// Returns the listener once the host has started.
    pub fn listener(&self) -> Option<ListenerId> {
        self.listener
    }

    fn accept_all(&mut self, sys: &mut Sys<'_>, listener: ListenerId) {
        while let Ok((conn, peer)) = sys.accept(listener) {
            let unsent = match &self.service {
                Service::Greet { greeting } => greeting.clone(),
                Service::Answer { .. } | Service::Echo => Bytes::new(),
            };
            let answered = !unsent.is_empty();
            let session = Session { peer, request: BytesMut::new(), unsent, answered, peer_is_done: false };
            self.sessions.insert(conn, session);
            self.serve(sys, conn);
        }
    }

    /// Advances one connection as far as possible.
    fn serve(&mut self, sys: &mut Sys<'_>, conn: ConnId) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        match session.read_all(sys, conn, &self.service) {
            Stream::Open => {}
            Stream::Ended => session.peer_is_done = true,
            Stream::Failed => return self.let_go(sys, conn),
        }
        if let Service::Answer { request_len, think, .. } = &self.service
            && !session.answered
            && session.request.len() >= *request_len
        {
            session.answered = true;
            let early =
                sys.early_data(conn).is_some_and(|early| early.len >= *request_len && !early.confirmed);
            let request = session.request.clone().freeze();
            self.deliveries.push(Delivery { at: sys.now(), peer: session.peer, request, early });
            match think.is_zero() {
                true => self.answer(sys, conn),
                false => self.thinking.push((sys.now() + *think, conn)),
            }
        } else {
            self.write_on(sys, conn);
        }
    }

    fn answer(&mut self, sys: &mut Sys<'_>, conn: ConnId) {
        if let (Service::Answer { reply, .. }, Some(session)) = (&self.service, self.sessions.get_mut(&conn))
        {
            session.unsent = reply.clone();
        }
        self.write_on(sys, conn);
    }

    /// Writes pending output, then closes if this end closes first.
    fn write_on(&mut self, sys: &mut Sys<'_>, conn: ConnId) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        if !session.unsent.is_empty() {
            // The reason of a failed write appears again at the end of the stream.
            let _ = sys.write(conn, &mut session.unsent);
        }
        if !session.unsent.is_empty() || self.thinking.iter().any(|(_, waiting)| *waiting == conn) {
            return;
        }
        if session.peer_is_done || session.answered && self.closer == Closer::Server {
            self.let_go(sys, conn);
        }
    }

    fn let_go(&mut self, sys: &mut Sys<'_>, conn: ConnId) {
        sys.close(conn);
        self.sessions.remove(&conn);
        self.thinking.retain(|(_, waiting)| *waiting != conn);
    }
}

impl Session {
    /// Reads all available data and returns the state of the stream.
    fn read_all(&mut self, sys: &mut Sys<'_>, conn: ConnId, service: &Service) -> Stream {
        loop {
            match sys.read(conn) {
                Ok(Some(chunk)) => match service {
                    Service::Echo => self.unsent = [&self.unsent[..], &chunk].concat().into(),
                    Service::Answer { .. } | Service::Greet { .. } => self.request.extend_from_slice(&chunk),
                },
                Ok(None) => return Stream::Ended,
                Err(ReadError::Blocked) => return Stream::Open,
                Err(ReadError::Closed(_) | ReadError::NotFound) => return Stream::Failed,
            }
        }
    }
}

impl App for Server {
    fn start(&mut self, sys: &mut Sys<'_>) {
        let listener = sys.listen(self.local, self.options.clone());
        self.listener = Some(listener.expect("the host has the server's address and the port is free"));
    }

    fn handle_event(&mut self, sys: &mut Sys<'_>, socket: SocketId, _events: Events) {
        match socket {
            SocketId::Listener(listener) => self.accept_all(sys, listener),
            SocketId::Connection(conn) => self.serve(sys, conn),
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        self.thinking.iter().map(|(at, _)| *at).min()
    }

    fn handle_wake(&mut self, sys: &mut Sys<'_>) {
        let now = sys.now();
        let (due, later) = core::mem::take(&mut self.thinking).into_iter().partition(|(at, _)| *at <= now);
        self.thinking = later;
        let due: Vec<(Instant, ConnId)> = due;
        for (_, conn) in due {
            self.answer(sys, conn);
        }
    }
}
