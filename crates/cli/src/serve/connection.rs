//! One HTTP connection, from accept to its end.
//!
//! - `connection/exchange.rs`: requests and replies, by hyper; `connection/stream.rs`: the stream
//!   that hyper reads and writes.
//!
//! An idle client only uses the memory of this file's future. hyper, whose buffers have 16 KiB,
//! runs from the first byte of a request to the last byte of a reply.
mod exchange;
mod stream;

use super::Task;
use super::pace::{LeastRate, reset, too_slow};
use super::reply::Site;
use bytes::Bytes;
use exchange::{Client, Next, answer};
use firstbyte::TcpStream;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// The handler of HTTP connections.
#[derive(Clone)]
pub(crate) struct HttpServer {
    pub(crate) site: Site,
    pub(crate) keep_alive: bool,
    /// Time for a client to begin a request, and again to complete its head.
    pub(crate) timeout: Duration,
    pub(crate) least_rate: LeastRate,
}

/// Time for a client to close after the last reply and the server's FIN.
const LINGER: Duration = Duration::from_secs(10);

impl HttpServer {
    /// Serves one connection to its end.
    pub(crate) async fn handle(self, stream: TcpStream, peer: SocketAddr, mut task: Task) {
        let mut client = Client { stream, peer, before: Bytes::new() };
        let mut is_answered = false;
        let (mut stream, last) = loop {
            if client.before.is_empty() {
                let mut others = task.clone();
                let begun = tokio::select! {
                    biased;
                    begun = begins_request(&client.stream, self.timeout, self.least_rate) => begun,
                    // The client has not requested anything.
                    () = task.stopped() => return,
                    // Others need the place.
                    () = others.crowded(), if is_answered => break (client.stream, None),
                };
                match begun {
                    Ok(Begun::Request) => {}
                    Ok(Begun::End) => return,
                    Err(error) => {
                        task.log.broken(peer, &error);
                        return reset(client.stream);
                    }
                }
            }
            // Boxed, so that an idle connection does not reserve the memory.
            match Box::pin(answer(self.clone(), client, task.clone())).await {
                Next::Idle(idle) => (client, is_answered) = (idle, true),
                Next::Finish(stream, last) => break (stream, last),
                Next::Gone => return,
            }
        };
        let finished = tokio::select! {
            biased;
            finished = Box::pin(finish(&mut stream, self.least_rate, task.clone())) => finished,
            // The stack delivers the rest.
            () = task.stopped() => Ok(()),
        };
        if let Some(request) = last {
            task.log.request(peer, &request, stream.connection_info().ok().as_ref());
        }
        if let Err(error) = finished {
            task.log.broken(peer, &error);
            reset(stream);
        }
    }
}

/// The first event of a client.
enum Begun {
    Request,
    /// The client has closed the connection.
    End,
}

/// Waits for the first byte of a request.
///
/// # Errors
/// The connection has ended, no request arrives in time, or the client accepts earlier replies too
/// slowly.
async fn begins_request(stream: &TcpStream, timeout: Duration, least_rate: LeastRate) -> io::Result<Begun> {
    let mut first = [0];
    tokio::select! {
        biased;
        peeked = stream.peek(&mut first) => Ok(if peeked? > 0 { Begun::Request } else { Begun::End }),
        () = tokio::time::sleep(timeout) => {
            Err(io::Error::new(io::ErrorKind::TimedOut, "no request arrived in time"))
        }
        error = too_slow(stream, least_rate) => Err(error),
    }
}

/// Sends the FIN, and waits for the peer's FIN and for all acknowledgements. Reads and discards
/// what the peer still sends: dropping the stream with unread data would reset the connection, and
/// might lose the reply. A peer that has received everything but does not close keeps its place
/// only while other places are free.
///
/// # Errors
/// The peer accepts the reply too slowly.
async fn finish(stream: &mut TcpStream, least_rate: LeastRate, mut task: Task) -> io::Result<()> {
    if stream.shutdown().await.is_err() {
        return Ok(());
    }
    let stream = &*stream;
    let drained = async {
        let mut rest = [0; 512];
        while stream.readable().await.is_ok() && stream.try_read(&mut rest).is_ok_and(|len| len > 0) {}
        // A connection that ended in another way delivers nothing more.
        let _ = stream.delivered().await;
    };
    let given_up = async {
        // The other branch reports the error.
        if stream.delivered().await.is_err() {
            std::future::pending().await
        }
        tokio::select! {
            () = tokio::time::sleep(LINGER) => {}
            () = task.crowded() => {}
        }
    };
    tokio::select! {
        () = drained => Ok(()),
        () = given_up => Ok(()),
        error = too_slow(stream, least_rate) => Err(error),
    }
}
