//! A client that opens a connection, sends a request and takes the reply.

use super::Closer;
use crate::network::{App, Sys};
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use proto::{
    CloseReason, ConnId, ConnectError, ConnectOptions, Events, FastOpen, Instant, Outcome, ReadError,
    SocketId,
};

/// How a client opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// `connect`, wait, `write`: every program without Fast Open.
    ConnectThenWrite,
    /// `connect_with(first_bytes)`.
    FirstBytes(FastOpen),
    /// `connect_with(first_bytes)`, with the FIN right behind the request, on the SYN if it may (both ends ours).
    FirstBytesAndFin(FastOpen),
    /// A cookie without data: the server speaks first.
    DataLess,
}

/// One request to be made.
#[derive(Clone, Debug)]
pub struct Visit {
    /// The server.
    pub peer: SocketAddr,
    /// The address to use; `None` = the host's.
    pub local: Option<IpAddr>,
    /// How to open.
    pub opening: Opening,
    /// The request; may be empty.
    pub request: Bytes,
    /// The reply to expect: the client compares, and where it closes, it does so once this much has come.
    pub reply: Bytes,
    /// Who closes.
    pub closer: Closer,
}

/// How a visit ended, as the program saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitEnd {
    /// When the program let go.
    pub at: Instant,
    /// Reply bytes it got.
    pub received: usize,
    /// They are those it expected, from the first to the last.
    pub is_exact: bool,
    /// What the stack said about Fast Open.
    pub outcome: Option<Outcome>,
    /// Why it ended, when it did not end well.
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

/// Makes visits when told to; any number at the same time.
#[derive(Default)]
pub struct Client {
    open: Vec<OpenVisit>,
    ends: Vec<Option<VisitEnd>>,
}

impl Client {
    /// A client that waits to be told.
    pub fn new() -> Client {
        Client::default()
    }

    /// Begins a visit; returns its number.
    ///
    /// # Errors
    /// As [`proto::Stack::connect`].
    pub fn begin(&mut self, sys: &mut Sys<'_>, visit: Visit) -> Result<usize, ConnectError> {
        let (options, unsent) = connect_options(&visit);
        let conn = sys.connect(visit.peer, options)?;
        let index = self.ends.len();
        self.ends.push(None);
        self.open.push(OpenVisit { index, conn, unsent, received: 0, differs: false, visit });
        Ok(index)
    }

    /// Is no visit under way?
    pub fn is_done(&self) -> bool {
        self.open.is_empty()
    }

    /// How the visits ended, in the order they began; `None` while under way.
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
            // A failed write shows again, with its reason, as the end of the stream.
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

    /// Reads what is there; `Some` when the visit is over, with the failure if it is one.
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
