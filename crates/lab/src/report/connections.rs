//! Short names for the connections of a run.

use core::net::SocketAddr;

/// The connections of one run, in the order in which they were first spoken of.
#[derive(Default)]
pub(super) struct Connections {
    ends: Vec<[SocketAddr; 2]>,
}

impl Connections {
    /// From 1; both ends see the same connection.
    pub(super) fn number(&mut self, (local, peer): (SocketAddr, SocketAddr)) -> usize {
        let mut pair = [local, peer];
        pair.sort_unstable();
        let known = self.ends.iter().position(|known| *known == pair);
        1 + known.unwrap_or_else(|| {
            self.ends.push(pair);
            self.ends.len() - 1
        })
    }
}
