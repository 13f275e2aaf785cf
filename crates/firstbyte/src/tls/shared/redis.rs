//! Sessions in Redis.
use super::{SessionFuture, SharedSessions};
use ::redis::aio::{ConnectionManager, ConnectionManagerConfig};
use ::redis::{AsyncCommands, Client, RedisError, SetExpiry, SetOptions};
use std::fmt;
use std::io;
use std::time::Duration;

/// Sessions in a Redis server (6.2 or later) that all servers use.
///
/// `GETDEL` returns a session to one of them only. A connection that breaks is opened again; until
/// then, clients make whole handshakes. Use TLS or a private network, and a password: the sessions
/// decrypt connections.
///
/// ```no_run
/// use firstbyte::tls::{RedisSessions, TlsAcceptor};
/// use std::sync::Arc;
///
/// # async fn example(acceptor: TlsAcceptor) -> std::io::Result<TlsAcceptor> {
/// let sessions = RedisSessions::connect("redis://:password@10.0.0.9/").await?;
/// Ok(acceptor.shared(Arc::new(sessions)))
/// # }
/// ```
pub struct RedisSessions {
    connection: ConnectionManager,
}

/// Life of a session, as rustls tells it to clients: a day.
const LIFE: u64 = 24 * 60 * 60;

/// Precedes the keys, so that the server may also serve other purposes.
const PREFIX: &[u8] = b"firstbyte:tls:";

/// Time limit of a command, and of connecting again.
const TIMEOUT: Duration = Duration::from_secs(1);

impl RedisSessions {
    /// Connects to the server of a URL: `redis://[:password@]host[:port][/database]`.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the URL is wrong; otherwise the error of
    /// the connection.
    pub async fn connect(url: &str) -> io::Result<RedisSessions> {
        let wrong = |error: RedisError| {
            let text = format!("cannot use `{url}` as the address of Redis: {error}");
            io::Error::new(io::ErrorKind::InvalidInput, text)
        };
        let client = Client::open(url).map_err(wrong)?;
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(TIMEOUT))
            .set_response_timeout(Some(TIMEOUT));
        let connection = ConnectionManager::new_with_config(client, config).await;
        Ok(RedisSessions { connection: connection.map_err(io::Error::other)? })
    }
}

impl SharedSessions for RedisSessions {
    fn put(&self, key: Vec<u8>, session: Vec<u8>) -> SessionFuture<()> {
        let mut connection = self.connection.clone();
        Box::pin(async move {
            let options = SetOptions::default().with_expiration(SetExpiry::EX(LIFE));
            connection.set_options(prefixed(&key), session, options).await.map_err(io::Error::other)
        })
    }

    fn take(&self, key: Vec<u8>) -> SessionFuture<Option<Vec<u8>>> {
        let mut connection = self.connection.clone();
        Box::pin(async move { connection.get_del(prefixed(&key)).await.map_err(io::Error::other) })
    }
}

fn prefixed(key: &[u8]) -> Vec<u8> {
    [PREFIX, key].concat()
}

impl fmt::Debug for RedisSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedisSessions")
    }
}
