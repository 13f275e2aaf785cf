//! Sessions that several servers share.
use super::hello::{self, Hello};
use crate::TcpStream;
use rustls::ServerConfig;
use rustls::server::StoresServerSessions;
use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;

/// A future of a [`SharedSessions`].
pub type SessionFuture<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

/// Sessions that several servers share, so that a client may come back to any of them.
///
/// What is stored decrypts connections: protect the store and the way to it like private keys.
pub trait SharedSessions: Debug + Send + Sync + 'static {
    /// Stores a session for at most a day.
    fn put(&self, key: Vec<u8>, session: Vec<u8>) -> SessionFuture<()>;

    /// Removes and returns a session. **Of all calls with the same key, on all servers, only one
    /// may return it**: that is what refuses replays of early data (RFC 8446 §8.1).
    fn take(&self, key: Vec<u8>) -> SessionFuture<Option<Vec<u8>>>;
}

/// Longest time that a handshake waits for the store: then it goes on without a session.
const TAKE_TIMEOUT: Duration = Duration::from_millis(100);

/// Tickets of one ClientHello that are looked up; clients send one or two.
const TICKETS_MAX: usize = 4;

/// Sessions that wait to be stored. With more, clients get no tickets.
const QUEUE: usize = 1024;

/// The store, and the queue of the task that writes to it.
///
/// rustls asks for sessions in the middle of a handshake and does not wait. So the tickets of a
/// ClientHello are looked up before rustls sees it.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    store: Arc<dyn SharedSessions>,
    queue: Arc<Mutex<Option<mpsc::Sender<Entry>>>>,
}

type Entry = (Vec<u8>, Vec<u8>);

impl Shared {
    pub(super) fn new(store: Arc<dyn SharedSessions>) -> Shared {
        Shared { store, queue: Arc::default() }
    }

    /// Reads the ClientHello and takes its sessions from the store. Returns a configuration for
    /// this connection, and the bytes that were read.
    pub(super) async fn prepare(
        &self,
        config: &Arc<ServerConfig>,
        tcp: &mut TcpStream,
    ) -> io::Result<(Arc<ServerConfig>, Vec<u8>)> {
        let mut first = Vec::new();
        let tickets = loop {
            match hello::read(&first) {
                Hello::Whole(tickets) => break tickets,
                Hello::Other => break Vec::new(),
                Hello::Incomplete => {}
            }
            if tcp.read_buf(&mut first).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let mut known = HashMap::new();
        for ticket in tickets.into_iter().take(TICKETS_MAX) {
            let taken = tokio::time::timeout(TAKE_TIMEOUT, self.store.take(ticket.clone())).await;
            // A store that fails or is slow costs the client a whole handshake, no more.
            if let Ok(Ok(Some(session))) = taken {
                known.insert(ticket, session);
            }
        }
        let mut config = (**config).clone();
        config.session_storage = Arc::new(Connection { known: Mutex::new(known), queue: self.queue() });
        Ok((Arc::new(config), first))
    }

    /// Returns the queue, and starts its task on the current runtime if it does not run.
    fn queue(&self) -> mpsc::Sender<Entry> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = &*queue
            && !sender.is_closed()
        {
            return sender.clone();
        }
        let (sender, receiver) = mpsc::channel(QUEUE);
        tokio::spawn(store_all(Arc::clone(&self.store), receiver));
        *queue = Some(sender.clone());
        sender
    }
}

async fn store_all(store: Arc<dyn SharedSessions>, mut queue: mpsc::Receiver<Entry>) {
    while let Some((key, session)) = queue.recv().await {
        // A session that is not stored costs its client a whole handshake.
        let _ = store.put(key, session).await;
    }
}

/// The sessions of one connection, as rustls sees them.
struct Connection {
    known: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    queue: mpsc::Sender<Entry>,
}

/// Shows no secrets.
impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

impl StoresServerSessions for Connection {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.queue.try_send((key, value)).is_ok()
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        // TLS 1.2 resumes sessions more than once; here every session is good for one connection.
        self.take(key)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(key)
    }

    fn can_cache(&self) -> bool {
        true
    }
}
