//! How many Fast Open connections of a listener are pending: accepted by cookie, not yet by the final ACK.
//!
//! The bound limits what a cookie holder can make a server do for spoofed neighbours behind the same address (R18).
//! Such SYN-ACKs draw resets from the victims, which would free the slots at once and undo the bound (R38). As in Linux,
//! a request whose connection the application has already accepted therefore stays counted for 60 s after a reset.
//! A reset before `accept` frees the slot at once: the accept queue has borne it.

use crate::Instant;
use alloc::collections::VecDeque;
use core::time::Duration;

/// How long a reset request stays counted.
const RESET_HOLD: Duration = Duration::from_secs(60);

/// The Fast Open queue of one listener: only its length matters.
#[derive(Clone, Debug)]
pub(crate) struct PendingQueue {
    max_qlen: u32,
    /// In SYN-RECEIVED now.
    pending: u32,
    /// Ends of the 60 s of reset ones, oldest first; at most `max_qlen`.
    reset_expiries: VecDeque<Instant>,
}

impl PendingQueue {
    /// A queue of at most `max_qlen` (the value of `TCP_FASTOPEN`); 0 = Fast Open is off.
    pub(crate) fn new(max_qlen: u32) -> PendingQueue {
        PendingQueue { max_qlen, pending: 0, reset_expiries: VecDeque::new() }
    }

    /// The limit.
    pub(crate) fn max_qlen(&self) -> u32 {
        self.max_qlen
    }

    /// Changes the limit; what is pending stays.
    pub(crate) fn set_max_qlen(&mut self, max_qlen: u32) {
        self.max_qlen = max_qlen;
    }

    /// Pending requests, together with the reset ones that are still counted.
    pub(crate) fn qlen(&self) -> u32 {
        self.pending + self.reset_expiries.len() as u32
    }

    /// Does the limit leave no room now? Changes nothing.
    pub(crate) fn is_full(&self) -> bool {
        self.qlen() >= self.max_qlen
    }

    /// Is there room for one more? When there is none, the oldest reset request makes room if its 60 s are over.
    /// Call [`admitted`](Self::admitted) when the connection has been made.
    pub(crate) fn try_admit(&mut self, now: Instant) -> bool {
        if !self.is_full() {
            return true;
        }
        let expired = self.max_qlen > 0 && self.reset_expiries.front().is_some_and(|&expiry| expiry <= now);
        if expired {
            self.reset_expiries.pop_front();
        }
        expired
    }

    /// A connection in SYN-RECEIVED was made.
    pub(crate) fn admitted(&mut self) {
        self.pending += 1;
    }

    /// The final ACK came.
    pub(crate) fn on_established(&mut self) {
        self.release();
    }

    /// A pending connection ended without a reset by its peer: closed here, or timed out.
    pub(crate) fn on_closed(&mut self) {
        self.release();
    }

    /// A pending connection was reset by its peer, after (`accepted`) or before the application had accepted it.
    pub(crate) fn on_reset(&mut self, now: Instant, accepted: bool) {
        self.release();
        if accepted {
            self.reset_expiries.push_back(now + RESET_HOLD);
        }
    }

    fn release(&mut self) {
        debug_assert!(self.pending > 0, "one release for each admission");
        self.pending = self.pending.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    fn full(max: u32) -> PendingQueue {
        let mut queue = PendingQueue::new(max);
        for _ in 0..max {
            assert!(queue.try_admit(at(0)));
            queue.admitted();
        }
        queue
    }

    #[test]
    fn the_limit_holds_until_a_handshake_completes() {
        let mut queue = full(2);
        assert!(!queue.try_admit(at(1)));
        queue.on_established();
        assert!(queue.try_admit(at(1)));
        queue.admitted();
        queue.on_closed();
        assert_eq!(queue.qlen(), 1);
    }

    #[test]
    fn a_reset_after_accept_counts_for_sixty_seconds() {
        let mut queue = full(2);
        queue.on_reset(at(1), true);
        queue.on_reset(at(2), true);
        assert_eq!(queue.qlen(), 2);
        assert!(!queue.try_admit(Instant::from_nanos(60_999_999_999)));
        assert!(queue.try_admit(at(61)));
        queue.admitted();
        assert!(!queue.try_admit(at(61)));
        assert!(queue.try_admit(at(62)));
        assert_eq!(queue.qlen(), 1);
    }

    #[test]
    fn a_reset_before_accept_frees_its_slot() {
        let mut queue = full(2);
        queue.on_reset(at(1), false);
        assert!(queue.try_admit(at(1)));
        assert_eq!(queue.qlen(), 1);
    }

    #[test]
    fn zero_is_off_even_when_something_expired() {
        assert!(!PendingQueue::new(0).try_admit(at(0)));
        let mut queue = full(1);
        queue.on_reset(at(0), true);
        queue.set_max_qlen(0);
        assert!(!queue.try_admit(at(100)));
        queue.set_max_qlen(2);
        assert!(queue.try_admit(at(1)));
        assert_eq!((queue.qlen(), queue.max_qlen()), (1, 2));
    }
}
