//! Detects the end of a device.

use proto::Instant;
use std::time::Duration;

/// State of the detection. The end is reported once, may concern only one direction, and a TUN
/// interface reports it shortly before reads fail. So reads are tried again later, with growing
/// intervals.
#[derive(Clone, Copy)]
pub(super) enum Ending {
    Unheard,
    Heard { look_at: Instant, wait: Duration },
    InOneDirection,
}

impl Ending {
    const FIRST_WAIT: Duration = Duration::from_millis(1);
    const LAST_WAIT: Duration = Duration::from_millis(1024);

    pub(super) fn next_look(self) -> Option<Instant> {
        match self {
            Ending::Heard { look_at, .. } => Some(look_at),
            Ending::Unheard | Ending::InOneDirection => None,
        }
    }

    /// True if a read should be tried now.
    pub(super) fn looks(&mut self, is_told: bool, now: Instant) -> bool {
        let heard = |wait| Ending::Heard { look_at: now + wait, wait };
        match *self {
            Ending::Unheard if is_told => *self = heard(Ending::FIRST_WAIT),
            Ending::Heard { look_at, wait } if look_at <= now => {
                *self = if wait < Ending::LAST_WAIT { heard(wait * 2) } else { Ending::InOneDirection };
            }
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_tells_its_end_too_early_is_read_again_ever_more_rarely() {
        let told_at = Instant::from_nanos(5_000_000);
        let mut ending = Ending::Unheard;
        assert!(!ending.looks(false, told_at) && ending.next_look().is_none());
        assert!(ending.looks(true, told_at));
        let mut waits = Vec::new();
        let mut now = told_at;
        while let Some(next) = ending.next_look() {
            assert!(!ending.looks(true, now), "not before its time, whatever is told meanwhile");
            waits.push(next.since(now).as_millis());
            now = next;
            assert!(ending.looks(false, now));
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]);
        assert!(!ending.looks(true, now), "it has ended in one direction only");
    }
}
