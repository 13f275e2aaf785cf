//! The schedule of the network: the next due time of each path and host, in order of time.
//!
//! The earliest entry of a thousand is found nearly as fast as that of two, and activity is a
//! counter. Most times are postponed before they come: every acknowledgment postpones a timeout. A
//! postponed entry stays in place and moves when its turn comes.

use core::cmp::Reverse;
use proto::Instant;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// A path or a host in the schedule. At equal times paths come before hosts, each in the order of
/// creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Party {
    Path(usize),
    Host(usize),
}

impl Party {
    /// Returns the first party after this one.
    pub(super) fn next(self) -> Party {
        match self {
            Party::Path(index) => Party::Path(index + 1),
            Party::Host(index) => Party::Host(index + 1),
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Entry {
    at: Option<Instant>,
    /// Time of its entry in the queue, at or before the due time.
    noted: Option<Instant>,
    is_busy: bool,
}

type Note = Reverse<(Instant, Party)>;

/// The next due time of each path and host, and the busy ones.
#[derive(Default)]
pub(super) struct Schedule {
    notes: BinaryHeap<Note>,
    /// Parties already handled in this step; they are due again in the next.
    passed: Vec<Note>,
    paths: Vec<Entry>,
    hosts: Vec<Entry>,
    busy: usize,
}

impl Schedule {
    /// Sets the next due time of `party` (not before `now`), and whether it is busy.
    pub(super) fn put(&mut self, now: Instant, party: Party, at: Option<Instant>, is_busy: bool) {
        let (entries, index) = match party {
            Party::Path(index) => (&mut self.paths, index),
            Party::Host(index) => (&mut self.hosts, index),
        };
        if entries.len() <= index {
            entries.resize(index + 1, Entry::default());
        }
        let entry = &mut entries[index];
        self.busy = self.busy + usize::from(is_busy) - usize::from(entry.is_busy);
        entry.is_busy = is_busy;
        entry.at = at.map(|at| at.max(now));
        if let Some(at) = entry.at
            && entry.noted.is_none_or(|noted| at < noted)
        {
            entry.noted = Some(at);
            self.notes.push(Reverse((at, party)));
        }
    }

    /// Returns the earliest due time and starts a new step.
    pub(super) fn next(&mut self) -> Option<Instant> {
        if !self.passed.is_empty() {
            self.notes.extend(self.passed.drain(..));
        }
        self.first().map(|(at, _)| at)
    }

    /// Returns whether no party is busy.
    pub(super) fn is_quiet(&self) -> bool {
        self.busy == 0
    }

    /// Returns the first party from this one on that is due at `now`.
    pub(super) fn due(&mut self, now: Instant, from: Party) -> Option<Party> {
        loop {
            let (_, party) = self.first().filter(|(at, _)| *at == now)?;
            if party >= from {
                return Some(party);
            }
            self.passed.extend(self.notes.pop());
        }
    }

    /// Returns the first valid entry. Outdated entries are removed or moved to their due time.
    fn first(&mut self) -> Option<(Instant, Party)> {
        loop {
            let Reverse((noted, party)) = *self.notes.peek()?;
            let entry = match party {
                Party::Path(index) => &mut self.paths[index],
                Party::Host(index) => &mut self.hosts[index],
            };
            if entry.noted != Some(noted) {
                self.notes.pop();
                continue;
            }
            if entry.at == Some(noted) {
                return Some((noted, party));
            }
            entry.noted = entry.at;
            match (entry.at, self.notes.peek_mut()) {
                (Some(at), Some(mut first)) => *first = Reverse((at, party)),
                (_, first) => drop(first.map(PeekMut::pop)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Option<Instant> {
        Some(Instant::from_nanos(nanos))
    }

    #[test]
    fn paths_come_before_hosts_and_each_in_order() {
        let (mut schedule, now) = (Schedule::default(), Instant::from_nanos(5));
        for party in [Party::Host(1), Party::Path(2), Party::Path(0), Party::Host(0)] {
            schedule.put(Instant::ZERO, party, at(5), true);
        }
        schedule.put(Instant::ZERO, Party::Host(2), at(6), false);
        assert_eq!(schedule.next(), at(5));
        let from = [Party::Path(0), Party::Path(1), Party::Path(3), Party::Host(1), Party::Host(2)];
        let due = from.map(|from| schedule.due(now, from));
        let [first, second, hosts] = [Party::Path(0), Party::Path(2), Party::Host(0)].map(Some);
        assert_eq!(due, [first, second, hosts, Some(Party::Host(1)), None]);
    }

    #[test]
    fn who_is_passed_over_comes_in_the_next_step() {
        let (mut schedule, now) = (Schedule::default(), Instant::from_nanos(5));
        schedule.put(now, Party::Path(1), at(5), true);
        schedule.put(now, Party::Path(0), at(5), true);
        assert_eq!(schedule.due(now, Party::Path(1)), Some(Party::Path(1)));
        schedule.put(now, Party::Path(1), at(7), true);
        assert_eq!(schedule.due(now, Party::Path(2)), None);
        schedule.put(now, Party::Path(0), at(6), true);
        assert_eq!(schedule.next(), at(6));
        assert_eq!(schedule.due(Instant::from_nanos(6), Party::Path(0)), Some(Party::Path(0)));
    }

    #[test]
    fn who_is_put_again_is_there_once_and_nothing_is_in_the_past() {
        let mut schedule = Schedule::default();
        schedule.put(Instant::ZERO, Party::Path(0), at(5), true);
        schedule.put(Instant::from_nanos(9), Party::Path(0), at(3), true);
        assert_eq!(schedule.next(), at(9));
        assert!(!schedule.is_quiet());
        schedule.put(Instant::from_nanos(9), Party::Path(0), None, false);
        assert!(schedule.next().is_none() && schedule.is_quiet());
    }

    #[test]
    fn who_moves_to_and_fro_is_there_once() {
        let mut schedule = Schedule::default();
        for moment in [9, 4, 8, 2, 2, 6] {
            schedule.put(Instant::ZERO, Party::Host(0), at(moment), true);
        }
        assert_eq!(schedule.next(), at(6));
        schedule.put(Instant::ZERO, Party::Host(0), None, true);
        assert_eq!(schedule.next(), None);
    }
}
