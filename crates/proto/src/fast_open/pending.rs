//! How many Fast Open connections of a listener are pending: accepted by cookie, not yet by the final ACK.
//!
//! The bound limits what a cookie holder can make a server do for spoofed neighbours behind the same address (R18).
//! Such SYN-ACKs draw resets from the victims, which would free the slots at once and undo the bound (R38). As in Linux,
//! a request whose connection the application has already accepted therefore stays counted for 60 s after a reset.
//! A reset before `accept` frees the slot at once: the accept queue has borne it.
//!
//! With `firstbyte.fair_shares`, a queue of 64 or more also counts its slots by network. A network
//! that holds three quarters of the queue gets no more slots. Without this limit, one address that
//! never completes a handshake could switch Fast Open off for everyone.

use crate::Instant;
use crate::keyed_hash::HashKey;
use crate::rate_limit::network;
use crate::stack::shares::{SHARED_FROM, is_last_quarter};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;
use wire::Addr;

/// How long a reset request stays counted.
const RESET_HOLD: Duration = Duration::from_secs(60);
/// Number of counters for networks. Networks with the same counter share one part of the queue.
const NETWORKS: usize = 256;

/// The Fast Open queue of one listener: only its length matters.
pub(crate) struct PendingQueue {
    max_qlen: u32,
    /// In SYN-RECEIVED now.
    pending: u32,
    /// Ends of the 60 s of reset requests, oldest first, with the counter of their network. At most
    /// `max_qlen` entries.
    reset_expiries: VecDeque<(Instant, u8)>,
    /// The hash key that maps a network to its counter; `None` if networks have no shares.
    key: Option<HashKey>,
    /// Counted requests by network; allocated with the first request.
    shares: Box<[u32]>,
}

impl PendingQueue {
    /// Creates a queue of at most `max_qlen` requests (the value of `TCP_FASTOPEN`); 0 turns Fast
    /// Open off. With a `key`, networks have shares.
    pub(crate) fn new(max_qlen: u32, key: Option<HashKey>) -> PendingQueue {
        PendingQueue { max_qlen, pending: 0, reset_expiries: VecDeque::new(), key, shares: Box::default() }
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
    pub(crate) fn try_admit(&mut self, now: Instant, peer: Addr) -> bool {
        if !self.is_full() && !self.has_its_share(peer) {
            return true;
        }
        let (expiry, place) = match self.reset_expiries.front() {
            Some(oldest) if self.max_qlen > 0 => *oldest,
            _ => return false,
        };
        if expiry <= now {
            self.reset_expiries.pop_front();
            self.leave(place);
        }
        expiry <= now && !self.has_its_share(peer)
    }

    /// A connection in SYN-RECEIVED was made.
    pub(crate) fn admitted(&mut self, peer: Addr) {
        self.pending += 1;
        if self.max_qlen as usize >= SHARED_FROM && self.shares.is_empty() && self.key.is_some() {
            self.shares = vec![0; NETWORKS].into_boxed_slice();
        }
        let place = self.place(peer);
        if let Some(share) = self.shares.get_mut(usize::from(place)) {
            *share += 1;
        }
    }

    /// The final ACK came.
    pub(crate) fn on_established(&mut self, peer: Addr) {
        self.release(peer);
    }

    /// A pending connection ended without a reset by its peer: closed here, or timed out.
    pub(crate) fn on_closed(&mut self, peer: Addr) {
        self.release(peer);
    }

    /// A pending connection was reset by its peer, after (`accepted`) or before the application had accepted it.
    pub(crate) fn on_reset(&mut self, now: Instant, accepted: bool, peer: Addr) {
        if !accepted {
            return self.release(peer);
        }
        self.uncount();
        self.reset_expiries.push_back((now + RESET_HOLD, self.place(peer)));
    }

    fn release(&mut self, peer: Addr) {
        self.uncount();
        self.leave(self.place(peer));
    }

    fn uncount(&mut self) {
        debug_assert!(self.pending > 0, "one release for each admission");
        self.pending = self.pending.saturating_sub(1);
    }

    /// Returns whether the peer's network alone holds three quarters of the queue.
    fn has_its_share(&self, peer: Addr) -> bool {
        if !is_last_quarter(self.qlen() as usize, self.max_qlen as usize) {
            return false;
        }
        let share = self.shares.get(usize::from(self.place(peer))).copied().unwrap_or_default();
        is_last_quarter(share as usize, self.max_qlen as usize)
    }

    fn place(&self, peer: Addr) -> u8 {
        let [high, low] = network(peer);
        self.key.map_or(0, |key| key.mix(high, low)) as u8
    }

    /// Removes a request from the counter of its network. Requests admitted before the counters
    /// were allocated were not counted.
    fn leave(&mut self, place: u8) {
        if let Some(share) = self.shares.get_mut(usize::from(place)) {
            *share = share.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    fn peer(host: u8) -> Addr {
        Addr::from(core::net::Ipv4Addr::new(10, 0, 0, host))
    }

    fn full(max: u32) -> PendingQueue {
        let mut queue = PendingQueue::new(max, None);
        for _ in 0..max {
            assert!(queue.try_admit(at(0), peer(1)));
            queue.admitted(peer(1));
        }
        queue
    }

    /// One address gets three quarters of the queue, and more only after one of its requests ends.
    /// Another address still finds room.
    #[test]
    fn one_network_cannot_fill_the_queue() {
        let mut queue = PendingQueue::new(64, Some(HashKey::new((1, 2))));
        for host in [1, 2] {
            while queue.try_admit(at(0), peer(host)) {
                queue.admitted(peer(host));
            }
            assert_eq!(queue.qlen(), [48, 64][usize::from(host) - 1]);
        }
        queue.on_reset(at(1), true, peer(1));
        queue.on_established(peer(2));
        assert!(!queue.try_admit(at(1), peer(1)) && queue.try_admit(at(1), peer(2)), "the reset one counts");
        assert!(queue.try_admit(at(61), peer(1)));
        let mut alone = PendingQueue::new(64, None);
        while alone.try_admit(at(0), peer(1)) {
            alone.admitted(peer(1));
        }
        assert_eq!(alone.qlen(), 64, "without shares");
    }

    #[test]
    fn the_limit_holds_until_a_handshake_completes() {
        let mut queue = full(2);
        assert!(!queue.try_admit(at(1), peer(1)));
        queue.on_established(peer(1));
        assert!(queue.try_admit(at(1), peer(1)));
        queue.admitted(peer(1));
        queue.on_closed(peer(1));
        assert_eq!(queue.qlen(), 1);
    }

    #[test]
    fn a_reset_after_accept_counts_for_sixty_seconds() {
        let mut queue = full(2);
        queue.on_reset(at(1), true, peer(1));
        queue.on_reset(at(2), true, peer(1));
        assert_eq!(queue.qlen(), 2);
        assert!(!queue.try_admit(Instant::from_nanos(60_999_999_999), peer(1)));
        assert!(queue.try_admit(at(61), peer(1)));
        queue.admitted(peer(1));
        assert!(!queue.try_admit(at(61), peer(1)));
        assert!(queue.try_admit(at(62), peer(1)));
        assert_eq!(queue.qlen(), 1);
    }

    #[test]
    fn a_reset_before_accept_frees_its_slot() {
        let mut queue = full(2);
        queue.on_reset(at(1), false, peer(1));
        assert!(queue.try_admit(at(1), peer(1)));
        assert_eq!(queue.qlen(), 1);
    }

    #[test]
    fn zero_is_off_even_when_something_expired() {
        assert!(!PendingQueue::new(0, None).try_admit(at(0), peer(1)));
        let mut queue = full(1);
        queue.on_reset(at(0), true, peer(1));
        queue.set_max_qlen(0);
        assert!(!queue.try_admit(at(100), peer(1)));
        queue.set_max_qlen(2);
        assert!(queue.try_admit(at(1), peer(1)));
        assert_eq!((queue.qlen(), queue.max_qlen()), (1, 2));
    }
}
