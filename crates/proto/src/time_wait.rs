//! TIME-WAIT: finished connections, kept so that the last ACK can be repeated and old segments do
//! not reach a new connection. It also holds orphans in FIN-WAIT-2, which need only numbers until
//! the peer's FIN arrives.
//!
//! An entry takes 64 bytes and no timer: entries with the same timeout form a list in order of
//! expiry, so that only the first of each list is watched. A restart moves an entry to the end of
//! its list. The effect of a segment on an entry is a pure function, [`on_segment`].
//!
//! Not here: sending the ACK and limiting its rate, and the new connection that a SYN may open. The
//! engine does that.

mod segment;
use alloc::vec::Vec;
pub(crate) use segment::{ISN_DISTANCE, TimeWaitAction, is_old, on_segment};

use crate::Instant;
use crate::keyed_hash::HashKey;
use crate::rate_limit::LastAnswer;
use crate::time::nanos;
use crate::tuple::FourTuple;
use crate::tuple_table::TupleTable;
use core::time::Duration;
use wire::{Addr, SeqNum};

/// What is kept of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeWait {
    /// Its name.
    pub(crate) tuple: FourTuple,
    /// SND.NXT: one after our FIN.
    pub(crate) snd_nxt: SeqNum,
    /// RCV.NXT: one after the peer's FIN.
    pub(crate) rcv_nxt: SeqNum,
    /// The window field of ACKs, as it goes on the wire.
    pub(crate) rcv_wnd: u16,
    /// TS.Recent if timestamps were in use.
    pub(crate) ts_recent: Option<u32>,
    /// Its timestamps had the offset of its tuple: the setting (`tcp_timestamps`) may have changed since it began.
    pub(crate) ts_offset: bool,
    /// FIN-WAIT-2: the peer's FIN has not come.
    pub(crate) fin_awaited: bool,
}

/// Names an entry until the table is next changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeWaitIndex(u32);

/// An index of 24 bits, which bounds the table to 16 million entries.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Link([u8; 3]);

impl Link {
    const NONE: Link = Link([0xff; 3]);
    const MAX_ENTRIES: usize = 0xff_ffff;

    fn to(index: u32) -> Link {
        let [a, b, c, _] = index.to_le_bytes();
        Link([a, b, c])
    }

    fn index(self) -> Option<u32> {
        let [a, b, c] = self.0;
        (self != Link::NONE).then(|| u32::from_le_bytes([a, b, c, 0]))
    }
}

/// An end is kept in units of 2²³ ns (8.4 ms), rounded up, modulo 2²⁹ (52 days), above three flags.
const UNIT_BITS: u32 = 23;
const FLAG_BITS: u32 = 3;
const UNITS_MASK: u32 = u32::MAX >> FLAG_BITS;
const TIMESTAMPS: u32 = 0x1;
const FIN_AWAITED: u32 = 0x2;
const TS_OFFSET: u32 = 0x4;
/// The longest time-out, so that ends compare modulo 2²⁹: 12 days, in nanoseconds.
const MAX_TIMEOUT: u64 = 12 * 86_400 * 1_000_000_000;

/// Places for so many entries are kept while there are none (128 KB).
const KEPT: usize = 2048;

/// Entries that go for a new one, while there are more than a limit that was lowered allows.
const EVICTED_AT_ONCE: usize = 16;

/// An entry as it is stored.
struct Slot {
    tuple: FourTuple,
    snd_nxt: SeqNum,
    rcv_nxt: SeqNum,
    ts_recent: u32,
    last_answer: LastAnswer,
    /// The end in units, and the flags.
    end_and_flags: u32,
    rcv_wnd: u16,
    prev: Link,
    next: Link,
}

const _: () = assert!(size_of::<Slot>() <= 64);

/// Entries with the same time-out, in the order of their ends.
struct Fifo {
    /// Nanoseconds.
    timeout: u64,
    first: Link,
    last: Link,
}

/// The connections in TIME-WAIT.
pub(crate) struct TimeWaitTable {
    /// Those of removed entries are linked by `next` from `free` on.
    slots: Vec<Slot>,
    free: Link,
    len: usize,
    index: TupleTable,
    /// One for each time-out in use: a second one only after the setting was changed.
    fifos: Vec<Fifo>,
    max: usize,
    hash_key: HashKey,
    /// Recent enough to tell which 52 days an end lies in.
    now_units: u64,
}

impl TimeWaitTable {
    /// At most `max` entries (and 16 million). The key of their hashes must be secret.
    pub(crate) fn new(max: usize, hash_key: HashKey) -> TimeWaitTable {
        TimeWaitTable {
            slots: Vec::new(),
            free: Link::NONE,
            len: 0,
            index: TupleTable::new(),
            fifos: Vec::new(),
            max: max.min(Link::MAX_ENTRIES),
            hash_key,
            now_units: 0,
        }
    }

    /// Changes the limit. What is there stays until [`insert`](Self::insert), a few at a time, has made way.
    pub(crate) fn set_max(&mut self, max: usize) {
        self.max = max.min(Link::MAX_ENTRIES);
    }

    /// Keeps a connection whose name has this hash, and nobody's here, for `timeout` nanoseconds (2 MSL). Returns how many entries had to go before
    /// their time because of the limit, those that end first; with a limit of 0 that is this one.
    pub(crate) fn insert(&mut self, now: Instant, hash: u64, entry: TimeWait, timeout: u64) -> usize {
        debug_assert!(self.find(hash, &entry.tuple).is_none(), "a connection had the name of an entry");
        self.observe(now);
        if self.max == 0 {
            return 1;
        }
        let excess = (self.len + 1).saturating_sub(self.max).min(EVICTED_AT_ONCE);
        for _ in 0..excess {
            if let Some(first) = self.first_to_end() {
                self.remove(TimeWaitIndex(first));
            }
        }
        let index = self.store(Slot::new(&entry));
        let (slots, key) = (&self.slots, &self.hash_key);
        self.index.insert(hash, index, |i| slots[i as usize].tuple.hash(key));
        self.link_last(index, now, timeout);
        excess
    }

    fn store(&mut self, slot: Slot) -> u32 {
        self.len += 1;
        if let Some(index) = self.free.index() {
            self.free = core::mem::replace(&mut self.slots[index as usize], slot).next;
            return index;
        }
        self.slots.push(slot);
        self.slots.len() as u32 - 1
    }

    /// Finds the entry of a connection.
    pub(crate) fn lookup(&self, tuple: &FourTuple) -> Option<TimeWaitIndex> {
        self.find(tuple.hash(&self.hash_key), tuple)
    }

    /// Finds the entry of a tuple whose hash is known.
    #[inline]
    pub(crate) fn find(&self, hash: u64, tuple: &FourTuple) -> Option<TimeWaitIndex> {
        if self.len == 0 { None } else { self.find_hashed(hash, tuple) }
    }

    #[inline(never)]
    fn find_hashed(&self, hash: u64, tuple: &FourTuple) -> Option<TimeWaitIndex> {
        self.index.find(hash, |index| self.slots[index as usize].tuple == *tuple).map(TimeWaitIndex)
    }

    /// Has an entry this local name? Looks at all of them, in any order.
    pub(crate) fn has_local(&self, local: Addr, port: u16) -> bool {
        self.iter().any(|(TimeWait { tuple, .. }, _)| tuple.local_port == port && tuple.local == local)
    }

    /// Reads an entry.
    pub(crate) fn get(&self, index: TimeWaitIndex) -> TimeWait {
        self.slots[index.0 as usize].unpack()
    }

    /// When an entry ends.
    pub(crate) fn deadline(&self, index: TimeWaitIndex) -> Instant {
        self.end(&self.slots[index.0 as usize])
    }

    /// Starts the time-out again. A later TSval becomes TS.Recent where timestamps are in use.
    pub(crate) fn restart(
        &mut self,
        index: TimeWaitIndex,
        now: Instant,
        timeout: Duration,
        tsval: Option<u32>,
    ) {
        self.observe(now);
        self.unlink(index.0);
        self.link_last(index.0, now, nanos(timeout));
        let slot = &mut self.slots[index.0 as usize];
        if let Some(tsval) = tsval {
            slot.ts_recent = SeqNum(tsval).latest(SeqNum(slot.ts_recent)).0;
        }
    }

    /// The peer's FIN has come to an entry in FIN-WAIT-2: TIME-WAIT begins.
    pub(crate) fn fin_received(&mut self, index: TimeWaitIndex) {
        let slot = &mut self.slots[index.0 as usize];
        slot.end_and_flags &= !FIN_AWAITED;
        slot.rcv_nxt += 1;
    }

    /// May a segment that says nothing new to an entry be answered now?
    pub(crate) fn may_answer(&mut self, index: TimeWaitIndex, now: Instant, interval: Duration) -> bool {
        self.slots[index.0 as usize].last_answer.may_answer(now, interval)
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, index: TimeWaitIndex) -> TimeWait {
        let TimeWaitIndex(index) = index;
        self.unlink(index);
        let slot = &mut self.slots[index as usize];
        let removed = slot.unpack();
        slot.next = core::mem::replace(&mut self.free, Link::to(index));
        self.index.remove(removed.tuple.hash(&self.hash_key), index);
        self.len -= 1;
        if self.len == 0 {
            self.empty();
        }
        removed
    }

    /// Nobody is here any more. A small table is kept: those who close connections now and then fill it again and again.
    fn empty(&mut self) {
        self.free = Link::NONE;
        if self.slots.capacity() > KEPT {
            (self.slots, self.index) = (Vec::new(), TupleTable::new());
        } else {
            self.slots.clear();
        }
    }

    /// When [`expire`](Self::expire) has something to do.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.first_to_end().map(|index| self.deadline(TimeWaitIndex(index)))
    }

    /// Removes what has ended, what ended first before the others, and no more than `most` entries; returns how many that were.
    pub(crate) fn expire(&mut self, now: Instant, most: usize) -> usize {
        self.observe(now);
        let before = self.len;
        while before - self.len < most
            && let Some((at, first)) = self.first_fifo()
            && self.end(&self.slots[first as usize]) <= now
        {
            self.end_first(at, first);
        }
        if self.len < before {
            self.fifos.retain(|fifo| fifo.first != Link::NONE);
        }
        if self.len == 0 && before > 0 {
            self.empty();
        }
        before - self.len
    }

    /// Removes `first`, which is the first of the fifo that lies `at` that place.
    fn end_first(&mut self, at: usize, first: u32) {
        let slot = &mut self.slots[first as usize];
        let next = core::mem::replace(&mut slot.next, self.free);
        let hash = slot.tuple.hash(&self.hash_key);
        self.free = Link::to(first);
        self.len -= 1;
        let fifo = &mut self.fifos[at];
        fifo.first = next;
        match next.index() {
            Some(next) => self.slots[next as usize].prev = Link::NONE,
            None => fifo.last = Link::NONE,
        }
        self.index.remove(hash, first);
    }

    /// Every entry and its end; of one time-out in the order of their ends.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TimeWait, Instant)> {
        let next = |index: &u32| self.slots[*index as usize].next.index();
        let fifos = self.fifos.iter().map(|fifo| fifo.first.index());
        let indices = fifos.flat_map(move |first| core::iter::successors(first, next));
        indices.map(|index| &self.slots[index as usize]).map(|slot| (slot.unpack(), self.end(slot)))
    }

    /// Entries that stand for FIN-WAIT-2.
    pub(crate) fn awaiting_fin(&self) -> usize {
        self.iter().filter(|(entry, _)| entry.fin_awaited).count()
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn observe(&mut self, now: Instant) {
        self.now_units = self.now_units.max(now.as_nanos() >> UNIT_BITS);
    }

    /// The moment an entry ends: the one nearest to now among those 52 days apart.
    fn end(&self, slot: &Slot) -> Instant {
        let ahead = (slot.end_and_flags >> FLAG_BITS).wrapping_sub(self.now_units as u32) & UNITS_MASK;
        // Sign extension from 29 bits.
        let ahead = i64::from((ahead << FLAG_BITS) as i32 >> FLAG_BITS);
        Instant::from_nanos(self.now_units.saturating_add_signed(ahead) << UNIT_BITS)
    }

    fn first_to_end(&self) -> Option<u32> {
        self.first_fifo().map(|(_, first)| first)
    }

    /// The fifo whose first entry ends before those of all others: its place, and that entry.
    fn first_fifo(&self) -> Option<(usize, u32)> {
        let firsts = self.fifos.iter().enumerate().filter_map(|(at, fifo)| Some((at, fifo.first.index()?)));
        firsts.min_by_key(|(_, first)| self.end(&self.slots[*first as usize]))
    }

    fn link_last(&mut self, index: u32, now: Instant, timeout: u64) {
        let timeout = timeout.min(MAX_TIMEOUT);
        let own = Link::to(index);
        let same = |fifo: &&mut Fifo| fifo.timeout == timeout;
        let prev = match self.fifos.iter_mut().find(same) {
            Some(fifo) => {
                if fifo.last == Link::NONE {
                    fifo.first = own;
                }
                core::mem::replace(&mut fifo.last, own)
            }
            None => {
                self.fifos.push(Fifo { timeout, first: own, last: own });
                Link::NONE
            }
        };
        if let Some(prev) = prev.index() {
            self.slots[prev as usize].next = own;
        }
        let slot = &mut self.slots[index as usize];
        slot.set_end(now.plus_nanos(timeout).as_nanos().div_ceil(1 << UNIT_BITS));
        (slot.prev, slot.next) = (prev, Link::NONE);
    }

    fn unlink(&mut self, index: u32) {
        let (prev, next) = (self.slots[index as usize].prev, self.slots[index as usize].next);
        match prev.index() {
            Some(prev) => self.slots[prev as usize].next = next,
            None => self.replace_first(index, next),
        }
        match next.index() {
            Some(next) => self.slots[next as usize].prev = prev,
            None => self.replace_last(index, prev),
        }
        if (prev, next) == (Link::NONE, Link::NONE) {
            self.fifos.retain(|fifo| fifo.first != Link::NONE);
        }
    }

    fn replace_first(&mut self, old: u32, new: Link) {
        if let Some(fifo) = self.fifos.iter_mut().find(|fifo| fifo.first == Link::to(old)) {
            fifo.first = new;
        }
    }

    fn replace_last(&mut self, old: u32, new: Link) {
        if let Some(fifo) = self.fifos.iter_mut().find(|fifo| fifo.last == Link::to(old)) {
            fifo.last = new;
        }
    }
}

impl Slot {
    fn new(entry: &TimeWait) -> Slot {
        let &TimeWait { tuple, snd_nxt, rcv_nxt, rcv_wnd, ts_recent, ts_offset, fin_awaited } = entry;
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        Slot {
            tuple,
            snd_nxt,
            rcv_nxt,
            ts_recent: ts_recent.unwrap_or(0),
            last_answer: LastAnswer::default(),
            end_and_flags: flag(ts_recent.is_some(), TIMESTAMPS)
                | flag(ts_offset, TS_OFFSET)
                | flag(fin_awaited, FIN_AWAITED),
            rcv_wnd,
            prev: Link::NONE,
            next: Link::NONE,
        }
    }

    fn set_end(&mut self, units: u64) {
        self.end_and_flags = (units as u32) << FLAG_BITS | self.end_and_flags & !(UNITS_MASK << FLAG_BITS);
    }

    fn unpack(&self) -> TimeWait {
        let &Slot { tuple, snd_nxt, rcv_nxt, rcv_wnd, .. } = self;
        let ts_recent = (self.end_and_flags & TIMESTAMPS != 0).then_some(self.ts_recent);
        let fin_awaited = self.end_and_flags & FIN_AWAITED != 0;
        let ts_offset = self.end_and_flags & TS_OFFSET != 0;
        TimeWait { tuple, snd_nxt, rcv_nxt, rcv_wnd, ts_recent, ts_offset, fin_awaited }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use core::net::Ipv4Addr;
    use proptest::prelude::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const UNIT: Duration = Duration::from_nanos(1 << UNIT_BITS);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn entry(peer_port: u16) -> TimeWait {
        TimeWait {
            tuple: FourTuple {
                local: Ipv4Addr::new(10, 0, 0, 1).into(),
                local_port: 80,
                peer: Ipv4Addr::new(10, 0, 0, 2).into(),
                peer_port,
            },
            snd_nxt: SeqNum(u32::from(peer_port)),
            rcv_nxt: SeqNum(7),
            rcv_wnd: 512,
            ts_recent: peer_port.is_multiple_of(2).then_some(99),
            ts_offset: peer_port.is_multiple_of(3),
            fin_awaited: peer_port.is_multiple_of(3),
        }
    }

    impl TimeWaitTable {
        /// In place of one of the same name.
        fn keep(&mut self, now: Instant, entry: TimeWait, timeout: Duration) -> usize {
            if let Some(old) = self.lookup(&entry.tuple) {
                self.remove(old);
            }
            self.insert(now, entry.tuple.hash(&self.hash_key), entry, nanos(timeout))
        }
    }

    fn table(max: usize) -> TimeWaitTable {
        TimeWaitTable::new(max, HashKey::new((1, 2)))
    }

    #[test]
    fn an_entry_comes_back_as_it_went_in() {
        let mut table = table(10);
        for port in [1, 2] {
            assert_eq!(table.keep(at(1), entry(port), MINUTE), 0);
            let index = table.lookup(&entry(port).tuple).unwrap();
            assert_eq!(table.get(index), entry(port));
        }
        assert_eq!(table.lookup(&entry(3).tuple), None);
        let index = table.lookup(&entry(1).tuple).unwrap();
        assert_eq!(table.remove(index), entry(1));
        assert_eq!((table.lookup(&entry(1).tuple), table.len()), (None, 1));
        assert_eq!(table.get(table.lookup(&entry(2).tuple).unwrap()), entry(2));
    }

    /// What is removed leaves its numbers behind in a place that is free: they are nobody's.
    #[test]
    fn only_entries_that_are_there_are_counted_and_listed() {
        let mut table = table(10);
        for port in 1..=6 {
            table.keep(at(port.into()), entry(port), MINUTE);
        }
        table.remove(table.lookup(&entry(3).tuple).unwrap());
        let ports = |table: &TimeWaitTable| -> Vec<u16> {
            table.iter().map(|(entry, _)| entry.tuple.peer_port).collect()
        };
        assert_eq!((ports(&table), table.awaiting_fin()), (vec![1, 2, 4, 5, 6], 1));
        for port in [1, 2, 4, 6] {
            table.remove(table.lookup(&entry(port).tuple).unwrap());
        }
        table.keep(at(7), entry(7), 2 * MINUTE);
        assert_eq!((ports(&table), table.awaiting_fin(), table.len()), (vec![5, 7], 0, 2));
    }

    /// Ends are rounded up to 2.1 ms: never early.
    #[test]
    fn entries_end_in_time() {
        let mut table = table(10);
        for port in 0..5u16 {
            table.keep(at(u64::from(port) * 100), entry(port), MINUTE);
        }
        let first = table.next_deadline().unwrap();
        assert!(first >= at(60_000) && first < at(60_000) + UNIT);
        assert_eq!(table.expire(at(59_999), usize::MAX), 0);
        assert_eq!(table.expire(first, usize::MAX), 1);
        assert_eq!(table.expire(at(60_310), usize::MAX), 3);
        assert_eq!(table.expire(at(70_000), usize::MAX), 1);
        assert_eq!((table.len(), table.next_deadline(), table.fifos.len()), (0, None, 0));
    }

    #[test]
    fn an_entry_that_is_gone_awaits_no_fin() {
        let mut table = table(10);
        // Of the first and the last the peer's FIN has not come.
        for port in 3..=6 {
            table.keep(at(0), entry(port), MINUTE);
        }
        assert_eq!(table.awaiting_fin(), 2);
        for (port, left) in [(3, 1), (5, 1), (6, 0)] {
            table.remove(table.lookup(&entry(port).tuple).unwrap());
            assert_eq!(table.awaiting_fin(), left);
        }
    }

    #[test]
    fn a_small_table_keeps_its_places_and_a_large_one_frees_its_memory() {
        let mut table = table(3 * KEPT);
        for (entries, kept) in [(5, 5..=KEPT), (KEPT as u16 + 1, 0..=0), (5, 5..=KEPT)] {
            for port in 0..entries {
                table.keep(at(0), entry(port), MINUTE);
            }
            assert_eq!(table.expire(at(61_000), usize::MAX), usize::from(entries));
            assert!(kept.contains(&table.slots.capacity()), "{}", table.slots.capacity());
            table.keep(at(0), entry(7), MINUTE);
            assert!(table.lookup(&entry(7).tuple).is_some() && table.lookup(&entry(3).tuple).is_none());
            table.expire(at(61_000), usize::MAX);
        }
    }

    #[test]
    fn restarting_moves_the_end() {
        let mut table = table(10);
        table.keep(at(0), entry(2), MINUTE);
        table.keep(at(1_000), entry(4), MINUTE);
        let index = table.lookup(&entry(2).tuple).unwrap();
        table.restart(index, at(5_000), MINUTE, Some(123));
        assert_eq!(table.get(index).ts_recent, Some(123));
        table.restart(index, at(5_000), MINUTE, Some(122));
        assert_eq!(table.get(index).ts_recent, Some(123));
        assert!(table.deadline(index) >= at(65_000) && table.deadline(index) < at(65_000) + UNIT);
        assert!(table.next_deadline().unwrap() < at(61_000) + UNIT);
        assert_eq!(table.expire(at(64_999), usize::MAX), 1);
        assert!(table.lookup(&entry(2).tuple).is_some());
    }

    #[test]
    fn over_the_limit_the_oldest_goes() {
        let mut table = table(2);
        assert_eq!([1, 2, 3].map(|port| table.keep(at(0), entry(port), MINUTE)), [0, 0, 1]);
        assert_eq!([1, 2, 3].map(|port| table.lookup(&entry(port).tuple).is_some()), [false, true, true]);
        assert_eq!(table.keep(at(1), entry(2), MINUTE), 0);
        assert_eq!(table.len(), 2);
        table.set_max(1);
        assert_eq!(table.keep(at(1), entry(4), MINUTE), 2);
        table.set_max(0);
        assert_eq!((table.keep(at(1), entry(5), MINUTE), table.lookup(&entry(5).tuple)), (1, None));
    }

    /// Whatever ends by one jump of the clock: no call removes more than it may, and what ended first goes first.
    #[test]
    fn a_hundred_thousand_end_a_few_at_a_time_in_the_order_of_their_ends() {
        const MOST: usize = 256;
        let mut table = table(100_000);
        for number in 0..100_000u32 {
            let mut entry = entry(1);
            entry.tuple.peer = Ipv4Addr::from(0x0a00_0000 + number).into();
            let timeout = if number.is_multiple_of(3) { MINUTE } else { MINUTE + Duration::from_secs(7) };
            table.keep(at(u64::from(number) / 10), entry, timeout);
        }
        let (late, mut ended, mut calls) = (at(3_600_000), Instant::ZERO, 0);
        while let Some(next) = table.next_deadline() {
            assert!(next >= ended, "{next:?} after {ended:?}");
            ended = next;
            let removed = table.expire(late, MOST);
            assert!((1..=MOST).contains(&removed), "{removed}");
            calls += 1;
        }
        assert_eq!((table.len(), calls), (0, 100_000usize.div_ceil(MOST)));
    }

    #[test]
    fn a_lowered_limit_is_reached_a_few_entries_at_a_time() {
        let mut table = table(1000);
        for port in 0..1000 {
            table.keep(at(0), entry(port), MINUTE);
        }
        table.set_max(10);
        assert_eq!(table.keep(at(0), entry(1000), MINUTE), EVICTED_AT_ONCE);
        for port in 1001..1100 {
            assert!(table.keep(at(0), entry(port), MINUTE) <= EVICTED_AT_ONCE);
        }
        assert_eq!(table.len(), 10);
    }

    #[test]
    fn a_shorter_time_out_ends_sooner() {
        let mut table = table(10);
        table.keep(at(0), entry(1), MINUTE);
        table.keep(at(0), entry(2), Duration::from_secs(1));
        table.keep(at(0), entry(3), MINUTE);
        assert_eq!((table.expire(at(1_010), usize::MAX), table.fifos.len()), (1, 1));
        assert_eq!(table.lookup(&entry(2).tuple), None);
    }

    #[test]
    fn ends_are_told_apart_far_from_the_epoch() {
        let year = Duration::from_secs(365 * 86_400);
        let mut table = table(10);
        let late = Instant::ZERO + year;
        table.keep(late, entry(1), Duration::from_secs(86_400 * 400));
        let end = table.next_deadline().unwrap();
        let last = late.plus_nanos(MAX_TIMEOUT);
        assert!(end >= last && end < last + UNIT);
        assert_eq!((table.expire(last - UNIT, usize::MAX), table.expire(end, usize::MAX)), (0, 1));
    }

    proptest! {
        #[test]
        fn behaves_as_a_map_of_ends(ops in proptest::collection::vec((0u8..5, 0u16..30, 0u64..3_000), 1..300)) {
            let mut table = table(1_000);
            let mut model: BTreeMap<u16, Instant> = BTreeMap::new();
            let mut now = at(0);
            for (op, port, wait) in ops {
                now = now + Duration::from_millis(wait);
                let timeout = if port % 3 == 0 { MINUTE / 4 } else { MINUTE };
                let index = table.lookup(&entry(port).tuple);
                prop_assert_eq!(index.is_some(), model.contains_key(&port));
                match (op, index) {
                    (0 | 1, _) => {
                        table.keep(now, entry(port), timeout);
                        model.insert(port, now + timeout);
                    }
                    (2, Some(index)) => {
                        table.restart(index, now, timeout, None);
                        model.insert(port, now + timeout);
                    }
                    (3, Some(index)) => {
                        prop_assert_eq!(table.remove(index), entry(port));
                        model.remove(&port);
                    }
                    _ => {
                        table.expire(now, usize::MAX);
                        model.retain(|_, end| *end > now || not_yet_rounded_up(*end, now));
                    }
                }
                prop_assert_eq!(table.len(), model.len());
                let first = model.values().min().copied();
                prop_assert_eq!(table.next_deadline().is_some(), first.is_some());
                if let (Some(exact), Some(rounded)) = (first, table.next_deadline()) {
                    prop_assert!(rounded >= exact && rounded < exact + UNIT);
                }
            }
        }
    }

    /// An end that has passed, but not when rounded up.
    fn not_yet_rounded_up(end: Instant, now: Instant) -> bool {
        Instant::from_nanos(end.as_nanos().div_ceil(1 << UNIT_BITS) << UNIT_BITS) > now
    }
}
