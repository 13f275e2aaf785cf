//! The driver's deadline, with a kernel timer.
//!
//! A runtime's own timers have a resolution of milliseconds; the hold of a SYN-ACK is shorter. A
//! timerfd fires within about ten microseconds of its time. It is armed again only if the deadline
//! moves earlier. If the deadline moves later, the timer fires once too early, which is cheaper
//! than a system call per change.
use crate::watched::watch_fd;
use host::{Clock, RealClock};
use proto::Instant;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// One deadline at a time.
#[derive(Debug)]
pub(crate) struct Timer {
    fd: AsyncFd<OwnedFd>,
    armed_at: Option<Instant>,
}

impl Timer {
    /// Creates a timer that is not armed. Needs a runtime with I/O enabled.
    pub(crate) fn new() -> io::Result<Timer> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Timer { fd: watch_fd(fd)?, armed_at: None })
    }

    /// Ready once `deadline` has passed, and sometimes before.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        clock: &RealClock,
        deadline: Option<Instant>,
    ) -> Poll<io::Result<()>> {
        let Some(deadline) = deadline else { return Poll::Pending };
        if self.armed_at.is_none_or(|armed_at| deadline < armed_at) {
            let wait = deadline.since(clock.now());
            if wait.is_zero() {
                return Poll::Ready(Ok(()));
            }
            self.arm(wait)?;
            self.armed_at = Some(deadline);
        }
        self.poll_fired(cx)
    }

    fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.fd.poll_read_ready(cx))?;
            let mut expirations = [0; 8];
            let fired = rustix::io::read(guard.get_inner(), &mut expirations);
            guard.clear_ready();
            match fired {
                Ok(_) => {
                    self.armed_at = None;
                    return Poll::Ready(Ok(()));
                }
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    fn arm(&self, wait: Duration) -> io::Result<()> {
        let it_value = Timespec::try_from(wait).map_err(io::Error::other)?;
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        rustix::time::timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    async fn fires_at(timer: &mut Timer, clock: &RealClock, deadline: Instant) -> Instant {
        while clock.now() < deadline {
            poll_fn(|cx| timer.poll(cx, clock, Some(deadline))).await.unwrap();
        }
        clock.now()
    }

    #[tokio::test]
    async fn never_fires_early_and_finer_than_a_millisecond() {
        let (mut timer, clock) = (Timer::new().unwrap(), RealClock::new());
        let mut best = Duration::MAX;
        for _ in 0..50 {
            let deadline = clock.now() + Duration::from_micros(300);
            best = best.min(fires_at(&mut timer, &clock, deadline).await.since(deadline));
        }
        assert!(best < Duration::from_micros(500), "{best:?} late at best");
    }

    #[tokio::test]
    async fn a_deadline_may_move_either_way() {
        let (mut timer, clock) = (Timer::new().unwrap(), RealClock::new());
        let (far, near) = (clock.now() + Duration::from_secs(60), clock.now() + Duration::from_millis(2));
        let mut poll = |deadline| {
            let mut cx = Context::from_waker(std::task::Waker::noop());
            timer.poll(&mut cx, &clock, Some(deadline)).is_pending()
        };
        assert!(poll(far) && poll(near) && poll(far));
        fires_at(&mut timer, &clock, near).await;
        assert_eq!(timer.armed_at, None);
    }
}
