//! Happy Eyeballs (RFC 8305 §4 and §5): attempts at several addresses. The first answer wins.
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// The Connection Attempt Delay: RFC 8305 §5 recommends 250 ms.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Attempts each of `peers`, one more whenever an attempt fails or [`ATTEMPT_DELAY`] has passed.
/// Returns the first success and drops the other attempts, or the error of the attempt that failed
/// last.
pub(crate) async fn connect<T, F>(
    peers: impl IntoIterator<Item = SocketAddr>,
    begin: impl FnMut(SocketAddr) -> F,
) -> io::Result<T>
where
    F: Future<Output = io::Result<T>>,
{
    let mut race = Race {
        begin,
        waiting: interleaved(peers),
        running: Vec::new(),
        delay: None,
        failed: io::Error::new(io::ErrorKind::InvalidInput, "the name has no address"),
    };
    poll_fn(|cx| race.poll(cx)).await
}

struct Race<B, F> {
    begin: B,
    waiting: VecDeque<SocketAddr>,
    running: Vec<Pin<Box<F>>>,
    /// Ends when the next attempt may begin; `None`: it may begin now. A timer that has passed
    /// would still cost a millisecond, the runtime's granularity.
    delay: Option<Pin<Box<Sleep>>>,
    failed: io::Error,
}

impl<T, F: Future<Output = io::Result<T>>, B: FnMut(SocketAddr) -> F> Race<B, F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        loop {
            let mut at = 0;
            while let Some(attempt) = self.running.get_mut(at) {
                match attempt.as_mut().poll(cx) {
                    Poll::Pending => at += 1,
                    Poll::Ready(Ok(connected)) => return Poll::Ready(Ok(connected)),
                    Poll::Ready(Err(error)) => {
                        self.failed = error;
                        self.running.swap_remove(at);
                        self.delay = None;
                    }
                }
            }
            if self.waiting.is_empty() {
                return match self.running.is_empty() {
                    true => {
                        Poll::Ready(Err(std::mem::replace(&mut self.failed, io::ErrorKind::Other.into())))
                    }
                    false => Poll::Pending,
                };
            }
            if let Some(delay) = &mut self.delay
                && delay.as_mut().poll(cx).is_pending()
            {
                return Poll::Pending;
            }
            if let Some(peer) = self.waiting.pop_front() {
                self.running.push(Box::pin((self.begin)(peer)));
                self.delay = Some(Box::pin(sleep(ATTEMPT_DELAY)));
            }
        }
    }
}

/// Alternates the address families, beginning with that of the first address (RFC 8305 §4). The
/// order within a family is the resolver's (RFC 6724).
fn interleaved(peers: impl IntoIterator<Item = SocketAddr>) -> VecDeque<SocketAddr> {
    let peers: Vec<SocketAddr> = peers.into_iter().collect();
    let begins_v6 = peers.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = peers.into_iter().partition(|peer| peer.is_ipv6() == begins_v6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut order = VecDeque::new();
    loop {
        let pair = [first.next(), second.next()];
        if pair == [None, None] {
            return order;
        }
        order.extend(pair.into_iter().flatten());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    fn peers(text: &str) -> Vec<SocketAddr> {
        text.split(' ').map(|peer| peer.parse().unwrap()).collect()
    }

    /// Plays attempts that end after so many milliseconds; returns the winner, the time, and when
    /// each attempt began.
    async fn play(ends: &[(&str, u64, bool)]) -> (io::Result<SocketAddr>, u128, Vec<u128>) {
        let start = Instant::now();
        let begun = std::cell::RefCell::new(Vec::new());
        let all = ends.iter().map(|(peer, ..)| peer.parse::<SocketAddr>().unwrap());
        let connected = connect(all, |peer| {
            begun.borrow_mut().push(start.elapsed().as_millis());
            let (_, after, answers) =
                *ends.iter().find(|(known, ..)| known.parse::<SocketAddr>().unwrap() == peer).unwrap();
            async move {
                tokio::time::sleep(Duration::from_millis(after)).await;
                if answers { Ok(peer) } else { Err(io::ErrorKind::ConnectionRefused.into()) }
            }
        });
        let connected = connected.await;
        (connected, start.elapsed().as_millis(), begun.into_inner())
    }

    #[test]
    fn families_alternate() {
        let order = interleaved(peers("[fd00::1]:1 [fd00::2]:1 10.0.0.1:1 10.0.0.2:1 10.0.0.3:1"));
        assert_eq!(order, peers("[fd00::1]:1 10.0.0.1:1 [fd00::2]:1 10.0.0.2:1 10.0.0.3:1"));
    }

    /// In virtual time a wait would show as a millisecond.
    #[tokio::test(start_paused = true)]
    async fn the_first_attempt_does_not_wait() {
        let (connected, millis, begun) = play(&[("10.0.0.1:80", 0, true)]).await;
        assert_eq!((connected.is_ok(), millis, begun), (true, 0, vec![0]));
        let first = connect(["10.0.0.1:80".parse().unwrap()], |peer| async move { Ok(peer) });
        let mut first = std::pin::pin!(first);
        let polled = poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx).is_ready())).await;
        assert!(polled, "the first poll starts the attempt");
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_does_not_answer_costs_a_quarter_of_a_second() {
        let (connected, millis, begun) =
            play(&[("[fd00::1]:80", 100_000, false), ("10.0.0.1:80", 20, true)]).await;
        assert_eq!((connected.unwrap().to_string().as_str(), millis), ("10.0.0.1:80", 270));
        assert_eq!(begun, [0, 250]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_starts_the_next_attempt_at_once() {
        let (connected, millis, begun) =
            play(&[("[fd00::1]:80", 30, false), ("10.0.0.1:80", 20, true)]).await;
        assert_eq!((connected.unwrap().to_string().as_str(), millis), ("10.0.0.1:80", 50));
        assert_eq!(begun, [0, 30]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_first_attempt_may_still_win() {
        let (connected, millis, _) = play(&[("[fd00::1]:80", 300, true), ("10.0.0.1:80", 90, true)]).await;
        assert_eq!((connected.unwrap().to_string().as_str(), millis), ("[fd00::1]:80", 300));
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_refusal_is_reported() {
        let (connected, millis, _) = play(&[("[fd00::1]:80", 300, false), ("10.0.0.1:80", 90, false)]).await;
        assert_eq!((connected.unwrap_err().kind(), millis), (io::ErrorKind::ConnectionRefused, 340));
    }
}
