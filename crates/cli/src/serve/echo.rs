//! The echo server (RFC 862): returns every byte until the client closes.
use super::Task;
use super::pace::{self, LeastRate, reset};
use bytes::Bytes;
use firstbyte::TcpStream;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// The handler of echo connections.
#[derive(Clone)]
pub(crate) struct EchoServer {
    /// Limit of a client's idle time, and of the time to accept a chunk of at most [`CHUNK_MAX`].
    pub(crate) timeout: Duration,
    pub(crate) least_rate: LeastRate,
}

impl EchoServer {
    /// Serves one connection to its end, or until the server stops.
    pub(crate) async fn handle(self, mut stream: TcpStream, peer: SocketAddr, mut task: Task) {
        let early = stream.early_data().len;
        let echoed = tokio::select! {
            biased;
            echoed = self.echo(&mut stream) => echoed,
            () = task.stopped() => return,
        };
        match echoed {
            Ok(bytes) => task.log.echo(peer, bytes, early, stream.connection_info().ok().as_ref()),
            Err(error) => {
                task.log.broken(peer, &error);
                reset(stream);
            }
        }
    }

    /// Sends chunks back as they came, without a copy.
    async fn echo(&self, stream: &mut TcpStream) -> io::Result<u64> {
        let mut bytes = 0;
        while let Some(chunk) = self.next_chunk(stream).await? {
            bytes += chunk.len() as u64;
            let written = timeout(self.timeout, stream.write_bytes(chunk)).await;
            written.unwrap_or_else(|_| Err(too_slow("the peer accepts echoed data too slowly")))?;
        }
        stream.shutdown().await?;
        tokio::select! {
            biased;
            delivered = stream.delivered() => delivered?,
            error = pace::too_slow(stream, self.least_rate) => return Err(error),
        }
        Ok(bytes)
    }

    async fn next_chunk(&self, stream: &mut TcpStream) -> io::Result<Option<Bytes>> {
        let read = timeout(self.timeout, stream.read_chunk(CHUNK_MAX)).await;
        read.unwrap_or_else(|_| Err(too_slow("the peer was idle for too long")))
    }
}

fn too_slow(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, why)
}

/// Longest chunk, bytes.
const CHUNK_MAX: usize = 64 * 1024;
