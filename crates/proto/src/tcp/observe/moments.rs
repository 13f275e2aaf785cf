//! When a connection was opened and established, and when its peer was last heard: three moments in the room of two.

use crate::Instant;
use core::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments {
    pub(crate) opened_at: Instant,
    /// Microseconds from then to the end of the handshake, or [`NOT_YET`].
    established_after: u32,
    /// When the peer last acknowledged something, milliseconds modulo 2³²; since the handshake is complete.
    heard_ms: u32,
}

/// No handshake takes so long.
const NOT_YET: u32 = u32::MAX;

impl Moments {
    /// Of a connection that opens now.
    pub(crate) fn opened(now: Instant) -> Moments {
        Moments { opened_at: now, established_after: NOT_YET, heard_ms: 0 }
    }

    /// The handshake is complete.
    pub(crate) fn establish(&mut self, now: Instant) {
        let after = now.nanos_since(self.opened_at) / 1_000;
        self.established_after = u32::try_from(after).unwrap_or(NOT_YET).min(NOT_YET - 1);
        self.heard(now);
    }

    pub(crate) fn is_established(&self) -> bool {
        self.established_after != NOT_YET
    }

    /// When it was, to the microsecond.
    pub(crate) fn established_at(&self) -> Option<Instant> {
        let after = Duration::from_micros(self.established_after.into());
        self.is_established().then_some(self.opened_at + after)
    }

    /// The peer has acknowledged something, if only what it had before.
    #[inline]
    pub(crate) fn heard(&mut self, now: Instant) {
        self.heard_ms = now.as_millis() as u32;
    }

    /// When it last did: of all moments with these lower digits the one next to when anything else was last sent or received.
    pub(crate) fn heard_at(&self, busy_at: Instant) -> Option<Instant> {
        let busy_ms = self.established_at()?.max(busy_at).as_millis();
        let later = self.heard_ms.wrapping_sub(busy_ms as u32).cast_signed();
        Some(Instant::ZERO + Duration::from_millis(busy_ms.saturating_add_signed(later.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn what_was_heard_is_told_after_months_too() {
        for days in [0, 24, 25, 49, 50, 400] {
            let begun = Instant::ZERO + Duration::from_millis(u64::from(u32::MAX) - 5);
            let mut moments = Moments::opened(begun);
            assert_eq!(moments.heard_at(begun), None);
            moments.establish(begun + Duration::from_millis(20));
            let busy = begun + DAY * days;
            let heard = busy.max(begun + Duration::from_millis(20)) + Duration::from_millis(10);
            moments.heard(heard);
            assert_eq!(moments.heard_at(busy), Some(heard), "{days} days");
        }
    }
}
