//! A program given as steps: a client that makes connections, or a server that treats all alike.

use super::Step;
use crate::network::{App, Sys};
use bytes::Bytes;
use core::net::SocketAddr;
use core::time::Duration;
use proto::{
    ConnId, ConnectError, ConnectOptions, Events, FastOpen, Instant, ListenOptions, ReadError, RejectRoute,
    SocketId, WriteError,
};
use std::collections::BTreeSet;

/// The progress of one connection, as the program saw it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// Time of the first step.
    pub begun_at: Option<Instant>,
    /// True if the connection was ever open.
    pub connected: bool,
    /// Time at which the last step completed; `None` if it did not.
    pub done_at: Option<Instant>,
    /// Time of a failure before the last step completed.
    pub failed_at: Option<Instant>,
    /// The error of `connect`, by Linux's name, e.g. `EADDRNOTAVAIL`.
    pub refused: Option<&'static str>,
    /// Bytes read.
    pub read: usize,
    /// Named times noted by `mark` steps.
    pub marks: Vec<(String, Instant)>,
}

struct Session {
    conn: Option<ConnId>,
    next: usize,
    unsent: Bytes,
    /// Bytes the current step still waits for.
    unread: usize,
    wakes_at: Option<Instant>,
    is_open: bool,
    told: Told,
}

/// The schedule of a client's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Number of connections.
    pub count: usize,
    /// Number of connections that run alone at first, one after the other.
    pub alone: usize,
    /// Number of concurrent connections.
    pub at_once: usize,
    /// Time from the end of one connection to the start of the next.
    pub pause: Duration,
}

enum Role {
    Client {
        /// Destinations; connections use them in turn.
        peers: Vec<SocketAddr>,
        options: Box<ConnectOptions>,
        rounds: Rounds,
        begun: usize,
        next_at: Option<Instant>,
    },
    Server {
        locals: Vec<SocketAddr>,
        options: Box<ListenOptions>,
        accepts: bool,
    },
}

/// A program made of steps.
pub struct Program {
    role: Role,
    steps: Vec<Step>,
    /// The source of the data of all writes.
    text: Bytes,
    sessions: Vec<Session>,
    /// Session of each connection, by slot.
    by_slot: Vec<Option<(ConnId, usize)>>,
    /// Sleeping sessions by wake-up time.
    sleepers: BTreeSet<(Instant, usize)>,
}

impl Program {
    /// Creates a client. It starts with its host and connects to the peers in turn.
    pub fn client(
        peers: Vec<SocketAddr>,
        options: ConnectOptions,
        steps: Vec<Step>,
        rounds: Rounds,
    ) -> Program {
        let role = Role::Client {
            peers,
            options: Box::new(options),
            rounds,
            begun: 0,
            next_at: Some(Instant::ZERO),
        };
        Program::new(role, steps)
    }

    /// Creates a server. A server that does not accept leaves connections in the listener's queue.
    pub fn server(
        locals: Vec<SocketAddr>,
        options: ListenOptions,
        steps: Vec<Step>,
        accepts: bool,
    ) -> Program {
        let role = Role::Server { locals, options: Box::new(options), accepts };
        Program::new(role, steps)
    }

    fn new(role: Role, steps: Vec<Step>) -> Program {
        let longest = steps.iter().map(Step::text_len).max().unwrap_or_default();
        Program {
            role,
            steps,
            text: vec![b'x'; longest].into(),
            sessions: Vec::new(),
            by_slot: Vec::new(),
            sleepers: BTreeSet::new(),
        }
    }

    /// Returns the progress of the connections, in order of their start.
    pub fn told(&self) -> impl Iterator<Item = &Told> {
        self.sessions.iter().map(|session| &session.told)
    }

    fn begin(&mut self, now: Instant, conn: Option<ConnId>) -> usize {
        let told = Told { begun_at: Some(now), connected: conn.is_some(), ..Told::default() };
        let is_open = conn.is_some();
        if let Some(conn) = conn {
            self.note_conn(conn, self.sessions.len());
        }
        self.sessions.push(Session {
            conn,
            next: 0,
            unsent: Bytes::new(),
            unread: 0,
            wakes_at: None,
            is_open,
            told,
        });
        self.sessions.len() - 1
    }

    fn note_conn(&mut self, conn: ConnId, session: usize) {
        if self.by_slot.len() <= conn.slot() {
            self.by_slot.resize(conn.slot() + 1, None);
        }
        self.by_slot[conn.slot()] = Some((conn, session));
    }

    /// Returns `None` for an earlier or unknown connection.
    fn session_of(&self, conn: ConnId) -> Option<usize> {
        let noted = self.by_slot.get(conn.slot()).copied().flatten();
        noted.filter(|(known, _)| *known == conn).map(|(_, session)| session)
    }

    /// Starts as many connections as the schedule allows.
    fn begin_due(&mut self, sys: &mut Sys<'_>) {
        let Role::Client { rounds, begun, next_at, .. } = &mut self.role else { return };
        if next_at.is_none_or(|at| at > sys.now()) {
            return;
        }
        let under_way = self.sessions.iter().filter(|session| !session.is_over(self.steps.len())).count();
        *next_at = None;
        let at_once = if *begun < rounds.alone { 1 } else { rounds.at_once };
        let count = at_once.saturating_sub(under_way).min(rounds.count - *begun);
        *begun += count;
        for _ in 0..count {
            let index = self.begin(sys.now(), None);
            self.advance(sys, index);
        }
    }

    /// Takes steps until one has to wait.
    fn advance(&mut self, sys: &mut Sys<'_>, index: usize) {
        let slept_until = self.sessions[index].wakes_at;
        self.take_steps(sys, index);
        let session = &mut self.sessions[index];
        if session.is_over(self.steps.len()) {
            session.wakes_at = None;
        }
        if session.wakes_at != slept_until {
            slept_until.map(|at| self.sleepers.remove(&(at, index)));
            self.sleepers.extend(session.wakes_at.map(|at| (at, index)));
        }
    }

    fn take_steps(&mut self, sys: &mut Sys<'_>, index: usize) {
        while let Some(step) = self.steps.get(self.sessions[index].next) {
            let session = &mut self.sessions[index];
            if session.told.failed_at.is_some() {
                break;
            }
            let is_new = session.conn.is_none();
            let progress = session.take(sys, step, index, &self.role, &self.text);
            if let (true, Some(conn)) = (is_new, session.conn) {
                self.note_conn(conn, index);
            }
            let session = &mut self.sessions[index];
            match progress {
                Progress::Done => {
                    session.next += 1;
                    session.wakes_at = None;
                }
                Progress::Waits => return,
                Progress::Failed => session.told.failed_at = Some(sys.now()),
            }
        }
        let session = &mut self.sessions[index];
        if session.told.failed_at.is_none() && session.told.done_at.is_none() {
            session.told.done_at = Some(sys.now());
        }
        if let Role::Client { rounds, begun, next_at, .. } = &mut self.role
            && *begun < rounds.count
            && next_at.is_none()
        {
            *next_at = Some(sys.now() + rounds.pause);
        }
    }
}

enum Progress {
    Done,
    Waits,
    Failed,
}

impl Session {
    fn is_over(&self, steps: usize) -> bool {
        self.next >= steps || self.told.failed_at.is_some()
    }

    /// Takes a step of the `index`-th connection, counted from 0.
    fn take(&mut self, sys: &mut Sys<'_>, step: &Step, index: usize, role: &Role, text: &Bytes) -> Progress {
        if let Step::Connect { first } = step {
            return self.connect(sys, first.map(|len| text.slice(..len)), index, role);
        }
        let Some(conn) = self.conn else { return Progress::Failed };
        match step {
            Step::Connect { .. } => Progress::Failed,
            Step::Write(len) => self.write(sys, conn, text, *len),
            Step::Read(len) => self.read(sys, conn, Some(*len)),
            Step::ReadToEnd => self.read(sys, conn, None),
            Step::Sleep(span) => {
                let until = *self.wakes_at.get_or_insert(sys.now() + *span);
                if sys.now() >= until { Progress::Done } else { Progress::Waits }
            }
            Step::Mark(name) => {
                self.told.marks.push((name.clone(), sys.now()));
                Progress::Done
            }
            Step::Shutdown => sys.shutdown(conn).map_or(Progress::Failed, |()| Progress::Done),
            Step::Close => {
                sys.close(conn);
                Progress::Done
            }
            Step::Abort => {
                sys.abort(conn);
                Progress::Done
            }
        }
    }

    fn connect(&mut self, sys: &mut Sys<'_>, first: Option<Bytes>, index: usize, role: &Role) -> Progress {
        if self.conn.is_some() {
            // With first bytes the program continues at once, as after `sendto` with
            // `MSG_FASTOPEN`.
            return if self.is_open || first.is_some() { Progress::Done } else { Progress::Waits };
        }
        let Role::Client { peers, options, .. } = role else { return Progress::Done };
        let mut options = (**options).clone();
        let is_early = first.is_some();
        if let Some(first) = first {
            options.fast_open = FastOpen::Auto;
            options.first_bytes = first;
        }
        match sys.connect(peers[index % peers.len()], options) {
            Ok(conn) => {
                self.conn = Some(conn);
                if is_early { Progress::Done } else { Progress::Waits }
            }
            Err(error) => {
                self.told.refused = Some(errno(error));
                Progress::Failed
            }
        }
    }

    fn write(&mut self, sys: &mut Sys<'_>, conn: ConnId, text: &Bytes, len: usize) -> Progress {
        if self.unsent.is_empty() {
            self.unsent = text.slice(..len);
        }
        match sys.write(conn, &mut self.unsent) {
            Ok(_) | Err(WriteError::Blocked) if self.unsent.is_empty() => Progress::Done,
            Ok(_) | Err(WriteError::Blocked) => Progress::Waits,
            Err(_) => Progress::Failed,
        }
    }

    /// Reads `len` bytes, or everything up to the end of the stream.
    fn read(&mut self, sys: &mut Sys<'_>, conn: ConnId, len: Option<usize>) -> Progress {
        if let (0, Some(len)) = (self.unread, len) {
            self.unread = len;
        }
        loop {
            match sys.read_up_to(conn, if len.is_some() { self.unread } else { usize::MAX }) {
                Ok(Some(chunk)) => {
                    self.told.read += chunk.len();
                    self.unread = self.unread.saturating_sub(chunk.len());
                    if len.is_some() && self.unread == 0 {
                        return Progress::Done;
                    }
                }
                Ok(None) if len.is_none() => return Progress::Done,
                Err(ReadError::Blocked) => return Progress::Waits,
                Ok(None) | Err(ReadError::Closed(_) | ReadError::NotFound) => return Progress::Failed,
            }
        }
    }
}

impl App for Program {
    fn start(&mut self, sys: &mut Sys<'_>) {
        if let Role::Server { locals, options, .. } = &self.role {
            for local in locals {
                let listener = sys.listen(*local, (**options).clone());
                listener.expect("the host has the address and the port is free");
            }
        }
    }

    fn handle_event(&mut self, sys: &mut Sys<'_>, socket: SocketId, events: Events) {
        match socket {
            SocketId::Listener(listener) => {
                if !matches!(self.role, Role::Server { accepts: true, .. }) {
                    return;
                }
                while let Ok((conn, _)) = sys.accept(listener) {
                    let index = self.begin(sys.now(), Some(conn));
                    self.advance(sys, index);
                }
            }
            SocketId::Connection(conn) => {
                let Some(index) = self.session_of(conn) else { return };
                let session = &mut self.sessions[index];
                if events.contains(Events::CONNECTED) && !events.contains(Events::CLOSED) {
                    (session.is_open, session.told.connected) = (true, true);
                }
                if events.contains(Events::CLOSED) && !session.is_open && !session.is_over(self.steps.len()) {
                    session.told.failed_at = Some(sys.now());
                }
                self.advance(sys, index);
                self.begin_due(sys);
            }
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        let waits = self.sleepers.first().map(|(at, _)| *at);
        let begins = match &self.role {
            Role::Client { next_at, .. } => *next_at,
            Role::Server { .. } => None,
        };
        [waits, begins].into_iter().flatten().min()
    }

    fn handle_wake(&mut self, sys: &mut Sys<'_>) {
        let awake = self.sleepers.range(..=(sys.now(), usize::MAX));
        let mut due: Vec<usize> = awake.map(|(_, index)| *index).collect();
        due.sort_unstable();
        due.into_iter().for_each(|index| self.advance(sys, index));
        self.begin_due(sys);
    }
}

/// Returns the errno of connect(2).
fn errno(error: ConnectError) -> &'static str {
    match error {
        ConnectError::AddrInUse | ConnectError::AddrNotAvailable | ConnectError::NoPorts => "EADDRNOTAVAIL",
        ConnectError::Unreachable | ConnectError::InvalidPeer => "ENETUNREACH",
        ConnectError::Rejected(RejectRoute::Unreachable) => "EHOSTUNREACH",
        ConnectError::Rejected(RejectRoute::Prohibit) => "EACCES",
        ConnectError::FastOpenDisabled => "EOPNOTSUPP",
        ConnectError::TooMany => "EAGAIN",
        _ => "EINVAL",
    }
}
