//! Limits of the sender, and their durations.
//!
//! After a connection has sent all it could, one check determines what held the rest back. If that
//! changed, the time since the last change is recorded. It corresponds to Linux's `tcp_chrono`,
//! with separate times of the congestion window and the network.

mod connection;

use crate::Instant;
use core::time::Duration;

/// The reason why the sender sends no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LimitedBy {
    /// Nothing: everything written is sent and acknowledged.
    #[default]
    Idle,
    /// The application has written no more, or Nagle's algorithm waits for more.
    Application,
    /// The handshake is not complete.
    Handshake,
    /// The send buffer: it is full of data in flight, and the application has more.
    SendBuffer,
    /// The congestion window, or the pacing rate.
    Congestion,
    /// The window advertised by the peer.
    Receiver,
    /// Queues of the host below the stack, with enough of the connection in them
    /// ([`Stack::hold_back`](crate::Stack::hold_back)).
    Device,
}

/// Kinds that are timed one by one: send buffer, congestion window, receiver, queues below.
const TIMED: usize = 4;

fn timed(by: LimitedBy) -> Option<usize> {
    match by {
        LimitedBy::Idle | LimitedBy::Application | LimitedBy::Handshake => None,
        LimitedBy::SendBuffer => Some(0),
        LimitedBy::Congestion => Some(1),
        LimitedBy::Receiver => Some(2),
        LimitedBy::Device => Some(3),
    }
}

/// Time of one connection with something to deliver, in ns; while there is, the moment it would have begun without a break.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Busy(u64);

impl Busy {
    #[inline]
    fn switch(&mut self, before: LimitedBy, by: LimitedBy, now: Instant) {
        if (before == LimitedBy::Idle) != (by == LimitedBy::Idle) {
            self.0 = now.as_nanos().saturating_sub(self.0);
        }
    }
}

/// The times of a connection that was ever held back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::tcp) struct Clocks {
    since: Instant,
    times: [Duration; TIMED],
}

impl Clocks {
    fn switch(&mut self, before: LimitedBy, now: Instant) {
        if let Some(kind) = timed(before) {
            self.times[kind] += now.since(self.since);
        }
        self.since = now;
    }
}

/// Current and past limits of a sender. Clocks that run at the time of the snapshot continue: the
/// times are those up to a `now` not before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderLimits {
    by: LimitedBy,
    busy: Busy,
    clocks: Clocks,
    established_at: Option<Instant>,
}

impl SenderLimits {
    /// Returns the current limit.
    pub fn by(&self) -> LimitedBy {
        self.by
    }

    /// Returns the time with unacknowledged data (`tcpi_busy_time`).
    pub fn busy_time(&self, now: Instant) -> Duration {
        if self.by == LimitedBy::Idle {
            Duration::from_nanos(self.busy.0)
        } else {
            now.since(Instant::from_nanos(self.busy.0))
        }
    }

    /// Returns the part of that time in which the peer's window held data back
    /// (`tcpi_rwnd_limited`).
    pub fn rwnd_limited(&self, now: Instant) -> Duration {
        self.time_of(LimitedBy::Receiver, now)
    }

    /// Returns the time in which all written data was in flight, both windows had room, and the
    /// send buffer was full (`tcpi_sndbuf_limited`).
    pub fn sndbuf_limited(&self, now: Instant) -> Duration {
        self.time_of(LimitedBy::SendBuffer, now)
    }

    /// Returns the time in which the congestion window or pacing held data back.
    pub fn cwnd_limited(&self, now: Instant) -> Duration {
        self.time_of(LimitedBy::Congestion, now)
    }

    /// Returns the time in which queues of the host below held data back. Linux counts that of its
    /// small queues only as busy.
    pub fn device_limited(&self, now: Instant) -> Duration {
        self.time_of(LimitedBy::Device, now)
    }

    /// Returns the time since the handshake without any of these limits: the application could have
    /// sent more.
    pub fn app_limited(&self, now: Instant) -> Duration {
        let open = self.established_at.map_or(Duration::ZERO, |at| now.since(at));
        let sending = self.cwnd_limited(now) + self.device_limited(now);
        open.saturating_sub(self.rwnd_limited(now) + self.sndbuf_limited(now) + sending)
    }

    fn time_of(&self, by: LimitedBy, now: Instant) -> Duration {
        let Some(kind) = timed(by) else { return Duration::ZERO };
        let running = if self.by == by { now.since(self.clocks.since) } else { Duration::ZERO };
        self.clocks.times[kind] + running
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// After these changes, each at its moment.
    fn after(changes: &[(LimitedBy, u64)]) -> SenderLimits {
        let (busy, clocks) = (Busy::default(), Clocks::default());
        let mut limits = SenderLimits { by: LimitedBy::Idle, busy, clocks, established_at: None };
        for (by, ms) in changes {
            limits.busy.switch(limits.by, *by, at(*ms));
            limits.clocks.switch(limits.by, at(*ms));
            limits.by = *by;
        }
        limits
    }

    #[test]
    fn every_moment_is_booked_once() {
        let mut changes = vec![
            (LimitedBy::Application, 1000),
            (LimitedBy::Receiver, 1010),
            (LimitedBy::Congestion, 1030),
            (LimitedBy::Application, 1070),
            (LimitedBy::Idle, 1080),
        ];
        assert_eq!(after(&changes).busy_time(at(9000)), ms(80));
        changes.push((LimitedBy::SendBuffer, 2000));
        let limits = after(&changes);
        let times = |now| [limits.sndbuf_limited(now), limits.cwnd_limited(now), limits.rwnd_limited(now)];
        assert_eq!(times(at(2000)), [ms(0), ms(40), ms(20)]);
        assert_eq!(times(at(2005)), [ms(5), ms(40), ms(20)], "the clock of what limits now runs");
        assert_eq!(limits.busy_time(at(2005)), ms(85));
    }
}
