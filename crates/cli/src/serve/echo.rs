//! The echo server (RFC 862): every byte comes back, until the client has said all.
use super::Task;
use firstbyte::TcpStream;
use std::io;
use std::net::SocketAddr;
use tokio::io::AsyncWriteExt;

/// Serves one connection to its end, or until the server stops.
pub(crate) async fn handle(mut stream: TcpStream, peer: SocketAddr, mut task: Task) {
    let early = stream.early_data().len;
    let echoed = tokio::select! {
        biased;
        echoed = echo(&mut stream) => echoed,
        () = task.stopped() => return,
    };
    match echoed {
        Ok(bytes) => task.log.echo(peer, bytes, early, stream.info().ok().as_ref()),
        Err(error) => task.log.broken(peer, &error),
    }
}

/// Chunks go back as they came, without a copy.
async fn echo(stream: &mut TcpStream) -> io::Result<u64> {
    let mut bytes = 0;
    while let Some(chunk) = stream.read_chunk(CHUNK_MAX).await? {
        bytes += chunk.len() as u64;
        stream.write_bytes(chunk).await?;
    }
    stream.shutdown().await?;
    stream.delivered().await?;
    Ok(bytes)
}

/// A chunk is at most this long, bytes.
const CHUNK_MAX: usize = 64 * 1024;
