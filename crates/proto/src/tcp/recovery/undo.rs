//! Was a recovery spurious? Then the windows of before it come back (RFC 4015's response).
//!
//! Three things show it: an ACK that echoes a time before the first retransmission (Eifel, RFC 3522), D-SACKs for everything that was
//! retransmitted (RFC 3708), and after a time-out an ACK of something that was sent only once (F-RTO with SACK, RFC 5682 §3).

use super::arrived::Block;
use crate::Instant;
use wire::SeqNum;

/// How a recovery was found to be spurious.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spurious {
    Timestamp,
    Duplicates,
    ForwardProgress,
}

/// What a recovery began from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Undo {
    /// cwnd and ssthresh, which come back. None do where congestion was echoed, too: that was no mistake (RFC 4015 §3.2).
    pub(in crate::tcp) windows: Option<(u32, u32)>,
    /// `snd_una` then.
    from: SeqNum,
    /// Once the recovery is over: D-SACKs may come until more than this is acknowledged.
    pub(super) until: Option<SeqNum>,
    /// First retransmission, in milliseconds.
    first_resent: Option<u32>,
    /// Bytes retransmitted and not reported to have arrived twice.
    unreported: u32,
}

impl Undo {
    pub(crate) fn new(cwnd: u32, ssthresh: u32, snd_una: SeqNum) -> Undo {
        Undo {
            windows: Some((cwnd, ssthresh)),
            from: snd_una,
            until: None,
            first_resent: None,
            unreported: 0,
        }
    }

    /// What can be undone of a window reduction for an echo of congestion: not the window.
    pub(crate) fn of_congestion(snd_una: SeqNum) -> Undo {
        Undo { windows: None, ..Undo::new(0, 0, snd_una) }
    }

    /// What was retransmitted before, since `first`, and is still on its way: `bytes` of it.
    pub(super) fn inherit(&mut self, first: Option<u32>, bytes: u32) {
        (self.first_resent, self.unreported) = (first, bytes);
    }

    pub(super) fn on_resent(&mut self, now: Instant, bytes: u32) {
        self.first_resent.get_or_insert(now.as_millis() as u32);
        self.unreported = self.unreported.saturating_add(bytes);
    }

    /// An ACK that made progress answers something sent before the first retransmission.
    pub(super) fn precedes(&self, echo: Option<u32>) -> bool {
        let older = |(echo, first): (u32, u32)| (echo.wrapping_sub(first) as i32) < 0;
        self.until.is_none() && echo.zip(self.first_resent).is_some_and(older)
    }

    /// An ACK that made progress, but not beyond the recovery if `amid` it, came of what was sent before the first retransmission: by what it
    /// echoes, or because nothing has been retransmitted yet (Linux's `tcp_packet_delayed`).
    pub(crate) fn was_delayed(&self, echo: Option<u32>, amid: bool) -> bool {
        if self.first_resent.is_some() { self.precedes(echo) } else { amid }
    }

    /// True if with this all that was retransmitted had arrived before. `bytes` of the duplicate were retransmitted.
    pub(super) fn reported(&mut self, duplicate: Block, bytes: u32) -> bool {
        let counts = duplicate.1.after(self.from) && self.unreported > 0;
        if counts {
            self.unreported = self.unreported.saturating_sub(bytes);
        }
        counts && self.unreported == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recovery_is_spurious_when_every_retransmission_was() {
        let mut undo = Undo::new(10, 20, SeqNum(100));
        assert!(!undo.reported((SeqNum(100), SeqNum(200)), 100), "nothing was sent again");
        undo.on_resent(Instant::from_nanos(7_000_000), 100);
        undo.on_resent(Instant::from_nanos(9_000_000), 100);
        assert!(!undo.reported((SeqNum(0), SeqNum(100)), 100), "from before");
        assert!(!undo.reported((SeqNum(100), SeqNum(200)), 100));
        assert!(undo.reported((SeqNum(200), SeqNum(300)), 100));
        assert_eq!(
            (undo.precedes(Some(6)), undo.precedes(Some(7)), undo.precedes(None)),
            (true, false, false)
        );
    }
}
