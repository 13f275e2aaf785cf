//! A client's memory of sessions.
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Tickets kept of one server: the newest ones.
const TICKETS_PER_SERVER: usize = 8;

/// A server: its name, and its port, because each port may belong to another program.
pub(super) type Server = (ServerName<'static>, u16);

/// Sessions of the servers visited before, in memory. Clones share it.
///
/// rustls finds tickets by the server's name alone. This memory also remembers the protocol that a
/// ticket belongs to, because early data is refused under another one (RFC 8446 §4.2.10).
#[derive(Clone)]
pub(super) struct Sessions {
    servers: Arc<Mutex<Servers>>,
}

struct Servers {
    known: HashMap<Server, Known>,
    capacity: usize,
    /// Counts uses; the entry with the lowest number is replaced first.
    clock: u64,
}

#[derive(Default)]
struct Known {
    tickets: VecDeque<Ticket>,
    tls12: Option<Tls12ClientSessionValue>,
    /// The key exchange group that the server chose: without a ticket, and with one.
    groups: [Option<NamedGroup>; 2],
    used: u64,
}

/// A ticket of TLS 1.3, good for one connection.
pub(super) struct Ticket {
    value: Tls13ClientSessionValue,
    alpn: Option<Vec<u8>>,
}

/// Promises of a ticket for the next connection.
pub(super) struct Prospect {
    /// Bytes of early data that the server takes; none if zero.
    pub(super) early_data_max: usize,
    /// The protocol that the server will choose, if it still chooses as it did.
    pub(super) alpn: Option<Vec<u8>>,
}

impl Sessions {
    pub(super) fn new(capacity: usize) -> Sessions {
        let servers = Servers { known: HashMap::new(), capacity: capacity.max(1), clock: 0 };
        Sessions { servers: Arc::new(Mutex::new(servers)) }
    }

    fn servers(&self) -> MutexGuard<'_, Servers> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns the newest ticket of a server.
    pub(super) fn take(&self, server: &Server) -> Option<Ticket> {
        self.servers().known.get_mut(server)?.tickets.pop_back()
    }

    /// Returns what the newest ticket of a server promises; `None` without a ticket.
    pub(super) fn prospect(&self, server: &Server) -> Option<Prospect> {
        let servers = self.servers();
        let ticket = servers.known.get(server)?.tickets.back()?;
        let early_data_max = ticket.value.max_early_data_size() as usize;
        Some(Prospect { early_data_max, alpn: ticket.alpn.clone() })
    }

    fn edit<R>(&self, server: &Server, edit: impl FnOnce(&mut Known) -> R) -> R {
        let mut servers = self.servers();
        servers.make_room_for(server);
        servers.clock += 1;
        let used = servers.clock;
        let known = servers.known.entry(server.clone()).or_default();
        known.used = used;
        edit(known)
    }
}

impl Servers {
    fn make_room_for(&mut self, server: &Server) {
        if self.known.len() < self.capacity || self.known.contains_key(server) {
            return;
        }
        let oldest = self.known.iter().min_by_key(|(_, known)| known.used).map(|(server, _)| server.clone());
        if let Some(oldest) = oldest {
            self.known.remove(&oldest);
        }
    }
}

/// The part of the memory that one connection sees: the ticket it takes along, and the tickets it
/// receives.
pub(super) struct Visit {
    sessions: Sessions,
    server: Server,
    is_resuming: bool,
    /// The protocol of the connection that the ticket came from.
    alpn: Option<Vec<u8>>,
    ticket: Mutex<Option<Tls13ClientSessionValue>>,
    received: Mutex<Vec<Tls13ClientSessionValue>>,
}

impl Visit {
    pub(super) fn new(sessions: &Sessions, server: &Server, ticket: Option<Ticket>) -> Visit {
        Visit {
            sessions: sessions.clone(),
            server: server.clone(),
            is_resuming: ticket.is_some(),
            alpn: ticket.as_ref().and_then(|ticket| ticket.alpn.clone()),
            ticket: Mutex::new(ticket.map(|ticket| ticket.value)),
            received: Mutex::default(),
        }
    }

    /// Returns the protocol of the connection that the ticket came from.
    pub(super) fn alpn(&self) -> Option<&[u8]> {
        self.alpn.as_deref()
    }

    /// Moves the received tickets to the memory, with the protocol of their connection.
    pub(super) fn keep(&self, alpn: Option<&[u8]>) {
        let received = std::mem::take(&mut *lock(&self.received));
        if received.is_empty() {
            return;
        }
        self.sessions.edit(&self.server, |known| {
            for value in received {
                known.tickets.push_back(Ticket { value, alpn: alpn.map(<[u8]>::to_vec) });
            }
            let surplus = known.tickets.len().saturating_sub(TICKETS_PER_SERVER);
            known.tickets.drain(..surplus);
        });
    }

    /// Drops everything known of this server.
    pub(super) fn forget(&self) {
        self.sessions.servers().known.remove(&self.server);
    }
}

impl ClientSessionStore for Visit {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.sessions.edit(&self.server, |known| known.groups[usize::from(self.is_resuming)] = Some(group));
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.sessions.servers().known.get(&self.server)?.groups[usize::from(self.is_resuming)]
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.sessions.edit(&self.server, |known| known.tls12 = Some(value));
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.sessions.servers().known.get(&self.server)?.tls12.clone()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        if let Some(known) = self.sessions.servers().known.get_mut(&self.server) {
            known.tls12 = None;
        }
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        lock(&self.received).push(value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        lock(&self.ticket).take()
    }
}

/// Shows no secrets.
impl fmt::Debug for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visit").field("server", &self.server).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
