//! Time as the caller tells it: nanoseconds since an epoch the caller chooses.
use core::ops::{Add, Sub};
use core::time::Duration;

/// A moment, in nanoseconds since the caller's epoch. The engine never asks for one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The epoch.
    pub const ZERO: Instant = Instant(0);
    /// From nanoseconds since the epoch.
    pub const fn from_nanos(nanos: u64) -> Instant {
        Instant(nanos)
    }
    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Whole milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// The moment `nanos` nanoseconds later.
    pub(crate) const fn plus_nanos(self, nanos: u64) -> Instant {
        Instant(self.0.saturating_add(nanos))
    }
    /// Nanoseconds from `earlier` to `self`; 0 if `earlier` is later.
    #[inline]
    pub(crate) const fn nanos_since(self, earlier: Instant) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
    /// Time from `earlier` to `self`; zero if `earlier` is later.
    pub fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
/// Whole nanoseconds of a time, as many as fit (584 years).
#[inline]
pub(crate) const fn nanos(time: Duration) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    if time.as_secs() >= u64::MAX / SECOND {
        return u64::MAX;
    }
    time.as_secs() * SECOND + time.subsec_nanos() as u64
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, d: Duration) -> Instant {
        Instant(self.0.saturating_add(nanos(d)))
    }
}
impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, d: Duration) -> Instant {
        Instant(self.0.saturating_sub(nanos(d)))
    }
}
impl core::fmt::Debug for Instant {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}
