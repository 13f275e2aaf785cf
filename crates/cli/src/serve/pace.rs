//! The least rate at which a client must accept a reply. Without it, many slow readers could hold
//! the server's memory and places.
use firstbyte::TcpStream;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// A rate in bytes per second, measured over a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeastRate {
    /// The least rate; zero allows any rate.
    pub(crate) bytes_per_second: u64,
    pub(crate) window: Duration,
}

/// Measures how fast one client accepts bytes while the server waits for it. Time in which the
/// server has nothing to send does not count.
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

    /// Counts time in which the client makes the server wait. Ready with an error once the client
    /// is too slow.
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
                    "the peer accepted {taken} bytes in {} s, less than the --min-rate of {least}",
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

    /// Stops counting, because the server does not wait for the client any more.
    pub(crate) fn stop_waiting(&mut self) {
        if let Some(since) = self.waiting_since.take() {
            // More than zero, so that the next wait does not start a new window.
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

/// Waits until the client accepts written bytes too slowly. Waits forever once it has accepted
/// everything.
pub(crate) async fn too_slow(stream: &TcpStream, least: LeastRate) -> io::Error {
    let mut pace = Pace::new(least);
    tokio::select! {
        biased;
        _ = stream.delivered() => std::future::pending().await,
        error = poll_fn(|cx| pace.poll_waiting(cx, stream)) => error,
    }
}

/// Resets the connection, and frees its memory.
pub(crate) fn reset(stream: TcpStream) {
    abort(&stream);
}

/// Makes the connection end with a reset when it is dropped.
pub(crate) fn abort(stream: &TcpStream) {
    // Fails only if the stack is gone, and the connection with it.
    let _ = stream.set_linger(Some(Duration::ZERO));
}

/// Returns the bytes that the client has acknowledged. Returns 0 if the connection has ended; its
/// next read or write reports the error.
fn acked(stream: &TcpStream) -> u64 {
    stream.info().map_or(0, |info| info.bytes_acked)
}
