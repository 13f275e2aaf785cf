//! The least rate at which a client must take what it asked for: many slow readers must not hold the server's memory and places.
use firstbyte::TcpStream;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// So many bytes a second, over so long a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeastRate {
    /// Zero: any rate will do.
    pub(crate) bytes_per_second: u64,
    pub(crate) window: Duration,
}

/// How fast one client takes bytes while the server waits for it. Time in which the server itself has nothing to send does not count.
pub(crate) struct Pace {
    least: LeastRate,
    /// Bytes that the client had acknowledged when the window began.
    acked_before: u64,
    /// Time in this window that the client kept the server waiting, up to `waiting_since`.
    waited: Duration,
    waiting_since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    pub(crate) fn new(least: LeastRate) -> Pace {
        Pace { least, acked_before: 0, waited: Duration::ZERO, waiting_since: None, timer: None }
    }

    /// Counts time in which the client keeps the server waiting. Ready with an error once the client is too slow.
    pub(crate) fn poll_waiting(&mut self, cx: &mut Context<'_>, stream: &TcpStream) -> Poll<io::Error> {
        if self.least.bytes_per_second == 0 {
            return Poll::Pending;
        }
        if self.waiting_since.is_none() {
            let now = Instant::now();
            self.waiting_since = Some(now);
            if self.waited.is_zero() {
                self.acked_before = acked(stream);
            }
            self.set_timer(now + self.least.window.saturating_sub(self.waited));
        }
        while let Some(timer) = &mut self.timer {
            ready!(timer.as_mut().poll(cx));
            let acked = acked(stream);
            let taken = acked.saturating_sub(self.acked_before);
            let least = self.least.bytes_per_second.saturating_mul(self.least.window.as_secs().max(1));
            if taken < least {
                let why = format!(
                    "the peer took {taken} bytes in {} s, and --min-rate asks for {least}",
                    self.least.window.as_secs_f64()
                );
                return Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            let now = Instant::now();
            (self.acked_before, self.waited, self.waiting_since) = (acked, Duration::ZERO, Some(now));
            self.set_timer(now + self.least.window);
        }
        Poll::Pending
    }

    /// The client does not keep the server waiting any more.
    pub(crate) fn stop_waiting(&mut self) {
        if let Some(since) = self.waiting_since.take() {
            // At least something, so that the next wait does not begin the window anew.
            self.waited += since.elapsed().max(Duration::from_nanos(1));
        }
    }

    fn set_timer(&mut self, deadline: Instant) {
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(deadline),
            None => self.timer = Some(Box::pin(tokio::time::sleep_until(deadline))),
        }
    }
}

/// Waits until the client is too slow to take what was written; forever, once it has taken all.
pub(crate) async fn too_slow(stream: &TcpStream, least: LeastRate) -> io::Error {
    let mut pace = Pace::new(least);
    tokio::select! {
        biased;
        _ = stream.delivered() => std::future::pending().await,
        error = poll_fn(|cx| pace.poll_waiting(cx, stream)) => error,
    }
}

/// Ends the connection at once, and frees what it holds.
pub(crate) fn reset(stream: TcpStream) {
    // Refused only where the stack is gone, and the connection with it.
    let _ = stream.set_linger(Some(Duration::ZERO));
}

/// A connection that has ended takes nothing more, which its next read or write reports.
fn acked(stream: &TcpStream) -> u64 {
    stream.info().map_or(0, |info| info.bytes_acked)
}
