//! A client that opens a connection, sends a request and reads the reply.

use super::Closer;
use crate::network::{App, Sys};
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use proto::{
    CloseReason, ConnId, ConnectError, ConnectOptions, Events, FastOpen, Instant, Outcome, ReadError,
    SocketId,
};

/// Ways to open a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// `connect`, wait, `write`, as every program without Fast Open does.
    ConnectThenWrite,
    /// `connect_with(first_bytes)`.
    FirstBytes(FastOpen),
    /// `connect_with(first_bytes)` with a FIN after the request, on the SYN if both ends are
    /// Firstbyte.
    FirstBytesAndFin(FastOpen),
    /// A cookie without data, for protocols in which the server speaks first.
    DataLess,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Visit {
    /// The server.
    pub peer: SocketAddr,
    /// The client's address; `None` for the host's own.
    pub local: Option<IpAddr>,
    /// The way to open the connection.
    pub opening: Opening,
    /// The request; may be empty.
    pub request: Bytes,
    /// The expected reply. The client compares, and, if it closes, closes after this many bytes.
    pub reply: Bytes,
    /// The end that closes first.
    pub closer: Closer,
}

/// The end of a visit, as the program saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitEnd {
    /// Time at which the program closed the connection.
    pub at: Instant,
    /// Reply bytes received.
    pub received: usize,
    /// True if the bytes equal the expected reply.
    pub is_exact: bool,
    /// The outcome of Fast Open reported by the stack.
    pub outcome: Option<Outcome>,
    /// The reason of a failure, if the visit failed.
    pub failure: Option<CloseReason>,
}

struct OpenVisit {
    index: usize,
    conn: ConnId,
    unsent: Bytes,
    received: usize,
    differs: bool,
    visit: Visit,
}

/// A client that makes visits on request, any number at a time.
#[derive(Default)]
pub struct Client {
    open: Vec<OpenVisit>,
    ends: Vec<Option<VisitEnd>>,
}

impl Client {
    /// Creates an idle client.
    pub fn new() -> Client {
        Client::default()
    }

    /// Starts a visit and returns its number.
    ///
    /// # Errors
    /// See [`proto::Stack::connect`].
    pub fn begin(&mut self, sys: &mut Sys<'_>, visit: Visit) -> Result<usize, ConnectError> {
        let (options, unsent) = connect_options(&visit);
        let conn = sys.connect(visit.peer, options)?;
        let index = self.ends.len();
        self.ends.push(None);
        self.open.push(OpenVisit { index, conn, unsent, received: 0, differs: false, visit });
        Ok(index)
    }

    /// Returns whether all visits are over.
    pub fn is_done(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the ends of the visits, in order of their start; `None` while a visit runs.
    pub fn ends(&self) -> &[Option<VisitEnd>] {
        &self.ends
    }
}

fn connect_options(visit: &Visit) -> (ConnectOptions, Bytes) {
    let base =
        ConnectOptions { local: visit.local.map(|ip| SocketAddr::new(ip, 0)), ..ConnectOptions::default() };
    match visit.opening {
        Opening::ConnectThenWrite => (base, visit.request.clone()),
        Opening::FirstBytes(fast_open) => {
            (ConnectOptions { fast_open, first_bytes: visit.request.clone(), ..base }, Bytes::new())
        }
        Opening::FirstBytesAndFin(fast_open) => {
            let first_bytes = visit.request.clone();
            (ConnectOptions { fast_open, first_bytes, fin: true, syn_fin: true, ..base }, Bytes::new())
        }
        Opening::DataLess => {
            (ConnectOptions { fast_open: FastOpen::Auto, data_less: true, ..base }, visit.request.clone())
        }
    }
}

impl App for Client {
    fn handle_event(&mut self, sys: &mut Sys<'_>, socket: SocketId, events: Events) {
        let SocketId::Connection(conn) = socket else { return };
        let Some(position) = self.open.iter().position(|open| open.conn == conn) else { return };
        let open = &mut self.open[position];
        if events.intersects(Events::CONNECTED | Events::WRITABLE) && !open.unsent.is_empty() {
            // The reason of a failed write appears again at the end of the stream.
            let _ = sys.write(conn, &mut open.unsent);
        }
        if let Some(failure) = open.read_all(sys) {
            let OpenVisit { index, received, differs, visit, .. } = self.open.remove(position);
            let is_exact = !differs && received == visit.reply.len();
            self.ends[index] =
                Some(VisitEnd { at: sys.now(), received, is_exact, outcome: sys.outcome(conn), failure });
            sys.close(conn);
        }
    }
}

impl OpenVisit {
    fn take(&mut self, chunk: &[u8]) {
        let expected = self.visit.reply.get(self.received..self.received + chunk.len());
        self.differs |= expected != Some(chunk);
        self.received += chunk.len();
    }

    /// Reads all available data. Returns `Some` when the visit is over, with its failure if any.
    fn read_all(&mut self, sys: &mut Sys<'_>) -> Option<Option<CloseReason>> {
        loop {
            match sys.read(self.conn) {
                Ok(Some(chunk)) => self.take(&chunk),
                Ok(None) => return Some(None),
                Err(ReadError::Blocked) => break,
                Err(ReadError::Closed(reason)) => return Some(Some(reason)),
                Err(ReadError::NotFound) => return Some(Some(CloseReason::Aborted)),
            }
        }
        (self.visit.closer == Closer::Client && self.received >= self.visit.reply.len().max(1))
            .then_some(None)
    }
}
