//! What a world did, in numbers: without them nobody would notice that worlds have become emptier.

use super::World;
use super::app::Fate;
use std::collections::BTreeMap;

/// A world that held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Hash of every packet and its time: the same scenario gives the same.
    pub fingerprint: u64,
    /// Packets on the wire.
    pub packets: u64,
    /// Bytes that applications have read.
    pub bytes: u64,
    /// Ends of connections by what became of them.
    pub ends: Ends,
    /// Packets that a stack has dropped.
    pub drops: u64,
    /// Both stacks' counters together, in the order of their table.
    pub counters: Vec<u64>,
    /// Uses of each fast path, by name; only in a build with debug assertions.
    pub fast_paths: BTreeMap<String, u64>,
    /// Ends of connections that needed an excuse, by its name.
    pub excused: BTreeMap<&'static str, u64>,
}

impl Summary {
    /// Of several worlds.
    pub(crate) fn add(&mut self, other: Summary) {
        self.fingerprint = self.fingerprint.wrapping_add(other.fingerprint);
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.ends.add(other.ends);
        self.drops += other.drops;
        self.counters.resize(other.counters.len(), 0);
        self.counters.iter_mut().zip(other.counters).for_each(|(sum, count)| *sum += count);
        for (name, count) in other.fast_paths {
            *self.fast_paths.entry(name).or_default() += count;
        }
        for (name, count) in other.excused {
            *self.excused.entry(name).or_default() += count;
        }
    }
}

/// Ends of connections by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Said and heard everything.
    pub complete: u64,
    /// Let go early, as the scenario says.
    pub left: u64,
    /// Were told that the connection is over.
    pub ended: u64,
    /// Never opened, never accepted, or still waiting.
    pub without: u64,
}

impl Ends {
    fn of(apps: &[[Option<super::app::App>; 2]]) -> Ends {
        let mut ends = Ends::default();
        for app in apps.iter().flatten() {
            *match app.as_ref().map(|app| app.fate) {
                Some(Fate::Complete) => &mut ends.complete,
                Some(Fate::Left) => &mut ends.left,
                Some(Fate::Ended(_)) => &mut ends.ended,
                Some(Fate::Busy) | None => &mut ends.without,
            } += 1;
        }
        ends
    }

    fn add(&mut self, other: Ends) {
        self.complete += other.complete;
        self.left += other.left;
        self.ended += other.ended;
        self.without += other.without;
    }
}

impl World<'_> {
    /// Before everything is closed: then applications and their fates are gone.
    pub(super) fn sum_up(&self) -> Summary {
        let [client, server] = self.stacks.each_ref().map(|stack| stack.counters().all());
        Summary {
            bytes: self.apps.iter().flatten().flatten().map(|app| app.read).sum(),
            ends: Ends::of(&self.apps),
            drops: self.stacks.iter().flat_map(|stack| stack.drops().all()).map(|(_, count)| count).sum(),
            counters: client.zip(server).map(|((_, ours), (_, theirs))| ours + theirs).collect(),
            fast_paths: self.fast_paths(),
            ..Summary::default()
        }
    }

    #[cfg(debug_assertions)]
    fn fast_paths(&self) -> BTreeMap<String, u64> {
        let mut taken = BTreeMap::new();
        for (name, count) in self.stacks.iter().flat_map(|stack| stack.fast_paths_taken()) {
            *taken.entry(name).or_default() += count;
        }
        taken
    }

    #[cfg(not(debug_assertions))]
    fn fast_paths(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}
