//! Short names for the connections of a run.

use core::net::SocketAddr;
use std::collections::BTreeMap;

/// The connections of one run, in order of their first mention.
#[derive(Default)]
pub(super) struct Connections {
    numbers: BTreeMap<[SocketAddr; 2], usize>,
}

impl Connections {
    /// Returns the number of a connection, from 1; both ends share it.
    pub(super) fn number(&mut self, (local, peer): (SocketAddr, SocketAddr)) -> usize {
        let mut pair = [local, peer];
        pair.sort_unstable();
        let next = self.numbers.len() + 1;
        *self.numbers.entry(pair).or_insert(next)
    }
}
