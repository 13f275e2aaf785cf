//! One HTTP connection, from accept to its end.
//!
//! - `connection/exchange.rs`: requests and answers, by hyper; `connection/stream.rs`: the stream that hyper reads and writes.
//!
//! A client that asks for nothing takes no more than this file's future. hyper, whose buffers have
//! 16 KiB, begins with the first byte of a request and ends with the last byte of an answer.
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

/// What handles HTTP connections.
#[derive(Clone)]
pub(crate) struct HttpServer {
    pub(crate) site: Site,
    pub(crate) keep_alive: bool,
    /// Time that a client has to begin a request, and again to complete its head.
    pub(crate) timeout: Duration,
    pub(crate) least_rate: LeastRate,
}

/// Time that a client has to close after the last reply and the server's FIN.
const LINGER: Duration = Duration::from_secs(10);

impl HttpServer {
    /// Serves one connection to its end.
    pub(crate) async fn handle(self, stream: TcpStream, peer: SocketAddr, mut task: Task) {
        let mut client = Client { stream, peer, before: Bytes::new() };
        let (mut stream, last) = loop {
            if client.before.is_empty() {
                let begun = tokio::select! {
                    biased;
                    begun = begins_request(&client.stream, self.timeout, self.least_rate) => begun,
                    // Nothing is owed to a client that has not asked for anything.
                    () = task.stopped() => return,
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
            // Boxed, so that an idle connection does not hold its room.
            match Box::pin(answer(self.clone(), client, task.clone())).await {
                Next::Idle(idle) => client = idle,
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
/// The connection has ended, no request comes in time, or the client accepts earlier replies too
/// slowly.
async fn begins_request(stream: &TcpStream, timeout: Duration, least_rate: LeastRate) -> io::Result<Begun> {
    let mut first = [0];
    tokio::select! {
        biased;
        peeked = stream.peek(&mut first) => Ok(if peeked? > 0 { Begun::Request } else { Begun::End }),
        () = tokio::time::sleep(timeout) => {
            Err(io::Error::new(io::ErrorKind::TimedOut, "no request came in time"))
        }
        error = too_slow(stream, least_rate) => Err(error),
    }
}

/// Sends the FIN, and waits for the peer's and for all acknowledgements. What the peer still sends is taken and forgotten:
/// dropping the stream with it unread would reset the connection, and the reply might be lost with it. A peer that has received all and does
/// not close keeps its place only as long as not all are taken.
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
        // A connection that ended otherwise takes nothing more.
        let _ = stream.delivered().await;
    };
    let given_up = async {
        // The error is reported by what else waits.
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
