//! Sessions that several servers share.
#[cfg(feature = "redis")]
mod redis;
use super::hello::{self, Hello};
use crate::TcpStream;
use rustls::server::StoresServerSessions;
use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::task::JoinHandle;

#[cfg(feature = "redis")]
pub use self::redis::RedisSessions;

/// A future of a [`SharedSessions`].
pub type SessionFuture<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

/// Sessions that several servers share, so that a client may come back to any of them.
///
/// Stored sessions decrypt connections: protect the store and the way to it like private keys.
pub trait SharedSessions: Debug + Send + Sync + 'static {
    /// Stores a session for at most a day.
    fn put(&self, key: Vec<u8>, session: Vec<u8>) -> SessionFuture<()>;

    /// Removes and returns a session. **Of all calls with the same key, on all servers, only one
    /// may return it**: that is what refuses replays of early data (RFC 8446 §8.1).
    fn take(&self, key: Vec<u8>) -> SessionFuture<Option<Vec<u8>>>;
}

/// Longest time that a handshake waits for the store: then it goes on without.
const TIMEOUT: Duration = Duration::from_millis(100);

/// Tickets of one ClientHello that are looked up; clients send one or two.
const TICKETS_MAX: usize = 4;

/// The store. rustls asks for sessions in the middle of a handshake and does not wait. So the
/// tickets of a ClientHello are looked up before rustls sees it, and new ones are stored before
/// they are sent.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    store: Arc<dyn SharedSessions>,
}

impl Shared {
    pub(super) fn new(store: Arc<dyn SharedSessions>) -> Shared {
        Shared { store }
    }

    /// Reads the ClientHello and takes its sessions from the store. Returns the bytes that were
    /// read, and the sessions of this connection.
    pub(super) async fn prepare(&self, tcp: &mut TcpStream) -> io::Result<(Vec<u8>, Arc<Stored>)> {
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
            let taken = tokio::time::timeout(TIMEOUT, self.store.take(ticket.clone())).await;
            // A store that fails or is slow costs the client a whole handshake, no more.
            if let Ok(Ok(Some(session))) = taken {
                known.insert(ticket, session);
            }
        }
        let store = Arc::clone(&self.store);
        Ok((first, Arc::new(Stored { store, known: Mutex::new(known), puts: Mutex::default() })))
    }
}

/// The sessions of one connection, as rustls sees them.
pub(super) struct Stored {
    store: Arc<dyn SharedSessions>,
    known: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    puts: Mutex<Vec<JoinHandle<()>>>,
}

impl Stored {
    /// Ready when every session of this connection is stored, or the store took too long.
    pub(super) fn poll_stored(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut puts = lock(&self.puts);
        puts.retain_mut(|put| Pin::new(put).poll(cx).is_pending());
        if puts.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl StoresServerSessions for Stored {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let put = self.store.put(key, value);
        // A session that is not stored costs its client a whole handshake.
        let put = tokio::spawn(async move { drop(tokio::time::timeout(TIMEOUT, put).await) });
        lock(&self.puts).push(put);
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        // TLS 1.2 resumes sessions more than once; here every session is good for one connection.
        self.take(key)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        lock(&self.known).remove(key)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// Shows no secrets.
impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored").field("store", &self.store).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
