//! The running timer of a socket, as `ss -o` shows it.

use crate::Instant;
use core::fmt;
use core::time::Duration;

/// The purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKind {
    /// Waits for an acknowledgment of a SYN, SYN-ACK, data or FIN (`on`).
    Retransmission,
    /// Waits for a window that is zero or too small (`persist`).
    Persist,
    /// Waits for an idle peer; for an orphan, its end (`keepalive`).
    Keepalive,
    /// Waits for the end of TIME-WAIT, or of FIN-WAIT-2 of an orphan (`timewait`).
    TimeWait,
}

/// A running timer: of several, the one that Linux would show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningTimer {
    /// Its purpose.
    pub kind: TimerKind,
    /// Its expiry.
    pub expires_at: Instant,
    /// Consecutive expirations: retransmissions, or unanswered probes.
    pub expirations: u8,
}

impl RunningTimer {
    /// Formats the timer as ss(8) does at `now`, with the correct unit: ss prints 1.5 s as
    /// `1.500ms`.
    /// ```
    /// # use core::time::Duration;
    /// # use firstbyte_proto::{Instant, RunningTimer, TimerKind};
    /// let timer = RunningTimer { kind: TimerKind::Persist, expires_at: Instant::from_nanos(1_500_000_000), expirations: 3 };
    /// assert_eq!(timer.ss(Instant::ZERO).to_string(), "timer:(persist,1.5sec,3)");
    /// ```
    pub fn ss(&self, now: Instant) -> impl fmt::Display {
        Shown { timer: *self, left: self.expires_at.since(now) }
    }
}

struct Shown {
    timer: RunningTimer,
    left: Duration,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.timer.kind {
            TimerKind::Retransmission => "on",
            TimerKind::Persist => "persist",
            TimerKind::Keepalive => "keepalive",
            TimerKind::TimeWait => "timewait",
        };
        let (seconds, millis) = (self.left.as_secs(), self.left.subsec_millis());
        write!(f, "timer:({name},")?;
        match (seconds, millis) {
            (60.., _) => write!(f, "{}min{}sec", seconds / 60, seconds % 60)?,
            (0, _) => write!(f, "{millis}ms")?,
            (_, 0) => write!(f, "{seconds}sec")?,
            _ => write!(f, "{seconds}.{}sec", format!("{millis:03}").trim_end_matches('0'))?,
        }
        write!(f, ",{})", self.timer.expirations)
    }
}
