//! Packets that wait to be sent although no connection will write them: SYN-ACKs of requests, resets, last words, answers to ICMP; and what
//! a connection has written in the middle of its application's write.
//!
//! They lie in places that are used again: a packet is large, and moving it costs more than writing it.

use alloc::vec::Vec;
use wire::TxPacket;

/// Packets that may wait; more are dropped (they are rate-limited anyway).
const MOST: usize = 4096;
/// Places that are kept while nothing waits.
const KEPT: usize = 64;

/// A queue of packets.
#[derive(Default)]
pub(in crate::stack) struct Replies {
    places: Vec<TxPacket>,
    /// The first that waits, and the first free place behind those that do.
    first: usize,
    end: usize,
}

impl Replies {
    pub(in crate::stack) fn is_empty(&self) -> bool {
        self.first == self.end
    }

    /// A place for one more, without payload; it waits at once. `None`: too many do.
    pub(in crate::stack) fn push(&mut self) -> Option<&mut TxPacket> {
        if self.end - self.first >= MOST {
            return None;
        }
        if self.end == self.places.len() {
            if self.first > self.end / 2 {
                // Those who were sent make room.
                self.places.rotate_left(self.first);
                (self.first, self.end) = (0, self.end - self.first);
            } else {
                self.places.push(TxPacket::default());
            }
        }
        self.end += 1;
        let place = &mut self.places[self.end - 1];
        place.clear_payload();
        Some(place)
    }

    /// Takes back what was pushed last.
    pub(in crate::stack) fn unpush(&mut self) {
        self.end -= usize::from(!self.is_empty());
    }

    /// What was pushed last, if it still waits.
    pub(in crate::stack) fn last_mut(&mut self) -> Option<&mut TxPacket> {
        self.places[self.first..self.end].last_mut()
    }

    /// Takes out the last of those that are `wanted`.
    #[cold]
    pub(in crate::stack) fn take_last(&mut self, wanted: impl Fn(&TxPacket) -> bool) -> Option<TxPacket> {
        let waiting = &mut self.places[self.first..self.end];
        let at = waiting.iter().rposition(wanted)?;
        waiting[at..].rotate_left(1);
        self.end -= 1;
        let mut taken = TxPacket::default();
        taken.take_from(&mut self.places[self.end]);
        Some(taken)
    }

    /// The next, into `packet`. False: there is none.
    pub(in crate::stack) fn pop_into(&mut self, packet: &mut TxPacket) -> bool {
        if self.is_empty() {
            return false;
        }
        packet.take_from(&mut self.places[self.first]);
        self.first += 1;
        if self.first == self.end {
            (self.first, self.end) = (0, 0);
            self.places.truncate(KEPT);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(replies: &mut Replies, number: u16) -> bool {
        replies.push().map(|place| place.gso_size = number).is_some()
    }

    fn popped(replies: &mut Replies) -> Option<u16> {
        let mut packet = TxPacket::default();
        replies.pop_into(&mut packet).then_some(packet.gso_size)
    }

    #[test]
    fn they_keep_their_order_and_their_places() {
        let mut replies = Replies::default();
        let (mut next, mut expected) = (0, 0);
        for round in 0..1000 {
            for _ in 0..round % 7 + 3 {
                assert!(pushed(&mut replies, next));
                next += 1;
            }
            for _ in 0..round % 7 + 2 {
                assert_eq!(popped(&mut replies), Some(expected));
                expected += 1;
            }
        }
        assert_eq!(replies.end - replies.first, 1000);
        assert!(replies.places.len() <= 2100, "{}", replies.places.len());
        while popped(&mut replies).is_some() {}
        assert!(replies.is_empty() && replies.places.len() <= KEPT);
    }

    #[test]
    fn the_last_of_some_goes_out_of_turn() {
        let mut replies = Replies::default();
        assert!((0..6).all(|number| pushed(&mut replies, number)));
        assert_eq!(popped(&mut replies), Some(0));
        let even = |packet: &TxPacket| packet.gso_size.is_multiple_of(2);
        let mut taken = || replies.take_last(even).map(|packet| packet.gso_size);
        assert_eq!([taken(), taken(), taken()], [Some(4), Some(2), None]);
        assert_eq!([1, 3, 5].map(Some), [(); 3].map(|()| popped(&mut replies)));
        assert!(replies.is_empty());
    }

    #[test]
    fn there_is_an_end() {
        let mut replies = Replies::default();
        assert!((0..MOST).all(|_| pushed(&mut replies, 1)));
        assert!(!pushed(&mut replies, 2));
        replies.unpush();
        assert!(pushed(&mut replies, 3) && !pushed(&mut replies, 4));
        assert_eq!(popped(&mut replies), Some(1));
        assert!(pushed(&mut replies, 5));
    }
}
