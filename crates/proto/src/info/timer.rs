//! The timer that runs for a socket, as `ss -o` shows it.

use crate::Instant;
use core::fmt;
use core::time::Duration;

/// What a socket waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKind {
    /// An acknowledgement of what was sent: SYN, SYN-ACK, data or FIN (`on`).
    Retransmission,
    /// A window that is closed, or too small for what waits (`persist`).
    Persist,
    /// A word from a silent peer; of a connection that nobody holds any more, its end (`keepalive`).
    Keepalive,
    /// The end of TIME-WAIT, or of FIN-WAIT-2 when nobody holds it (`timewait`).
    TimeWait,
}

/// A timer that runs: the one that Linux would show, of several that may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningTimer {
    /// What it is for.
    pub kind: TimerKind,
    /// When it expires.
    pub expires_at: Instant,
    /// How often it has in a row: retransmissions, or probes without an answer.
    pub expirations: u8,
}

impl RunningTimer {
    /// As ss(8) prints it at `now`, with the unit that is right: that prints 1.5 s as `1.500ms`.
    ///
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
