//! The network's schedule: when each path and each host next has something to do, in order of time.
//!
//! Finding the earliest of a thousand costs hardly more than of two, and whether anything is under way is a counter.

use proto::Instant;
use std::collections::BTreeSet;

/// Something with an entry in the schedule. At one moment paths come before hosts, each in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Party {
    Path(usize),
    Host(usize),
}

#[derive(Clone, Copy, Default)]
struct Entry {
    at: Option<Instant>,
    is_busy: bool,
}

/// The next moment of each path and host, and which of them are busy.
#[derive(Default)]
pub(super) struct Schedule {
    due: BTreeSet<(Instant, Party)>,
    paths: Vec<Entry>,
    hosts: Vec<Entry>,
    busy: usize,
}

impl Schedule {
    /// Sets when `party` is due next (not before `now`), and whether it is in the middle of something.
    pub(super) fn put(&mut self, now: Instant, party: Party, at: Option<Instant>, is_busy: bool) {
        let (entries, index) = match party {
            Party::Path(index) => (&mut self.paths, index),
            Party::Host(index) => (&mut self.hosts, index),
        };
        if entries.len() <= index {
            entries.resize(index + 1, Entry::default());
        }
        let entry = &mut entries[index];
        let at = at.map(|at| at.max(now));
        self.busy = self.busy + usize::from(is_busy) - usize::from(entry.is_busy);
        entry.is_busy = is_busy;
        if entry.at == at {
            return;
        }
        if let Some(before) = entry.at {
            self.due.remove(&(before, party));
        }
        if let Some(at) = at {
            self.due.insert((at, party));
        }
        entry.at = at;
    }

    /// The earliest moment at which a path or a host is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The first path from this number on that is due at `now`.
    pub(super) fn due_path(&self, now: Instant, from: usize) -> Option<usize> {
        match self.due.range((now, Party::Path(from))..).next() {
            Some((at, Party::Path(index))) if *at == now => Some(*index),
            _ => None,
        }
    }

    /// The first host from this number on that is due at `now`.
    pub(super) fn due_host(&self, now: Instant, from: usize) -> Option<usize> {
        match self.due.range((now, Party::Host(from))..).next() {
            Some((at, Party::Host(index))) if *at == now => Some(*index),
            _ => None,
        }
    }

    /// Is nobody in the middle of anything?
    pub(super) fn is_quiet(&self) -> bool {
        self.busy == 0
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
        assert_eq!(
            (schedule.due_path(now, 0), schedule.due_path(now, 1), schedule.due_path(now, 3)),
            (Some(0), Some(2), None)
        );
        assert_eq!(
            (schedule.due_host(now, 0), schedule.due_host(now, 1), schedule.due_host(now, 2)),
            (Some(0), Some(1), None)
        );
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
}
