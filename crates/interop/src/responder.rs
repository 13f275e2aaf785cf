//! The smallest HTTP server on our library: one GET per connection, answered and closed at once.
use firstbyte::{TcpListener, TcpStream};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Requests per path.
pub type Visits = Arc<Mutex<BTreeMap<String, u32>>>;

/// Answers `/x` with `x` and a line feed, forever, each connection in its own task, and counts.
pub async fn respond(listener: TcpListener, visits: Visits) {
    while let Ok((stream, _)) = listener.accept().await {
        let visits = visits.clone();
        tokio::spawn(async move {
            if let Ok(Some(path)) = answer(stream).await {
                *visits.lock().unwrap_or_else(PoisonError::into_inner).entry(path).or_insert(0) += 1;
            }
        });
    }
}

/// Serves one connection; the path it asked for, or `None` if it ended before the request did.
async fn answer(mut stream: TcpStream) -> io::Result<Option<String>> {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut buffer).await? {
            0 => return Ok(None),
            len => request.extend_from_slice(&buffer[..len]),
        }
    }
    let text = String::from_utf8_lossy(&request);
    let path = text.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
    let len = path.len() + 1;
    let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n{path}\n");
    stream.write_all(reply.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(Some(path))
}
