//! Which connection a packet belongs to, in bounded memory.

use crate::connection::Connection;
use crate::packet::Packet;
use core::net::SocketAddr;
use std::collections::HashMap;

/// Connections at once; of the others those that were quiet longest are given out. Some 150 MB.
const LIVE_MAX: usize = 1 << 17;

/// The connections of a capture.
///
/// A connection is given out when another begins between the same ports, when there are too many, or at the end: so captures of any length
/// can be read.
#[derive(Debug)]
pub struct Table {
    live: HashMap<(SocketAddr, SocketAddr), Box<Connection>>,
    live_max: usize,
    begun: u64,
    evicted: u64,
}

impl Default for Table {
    fn default() -> Table {
        Table::holding(LIVE_MAX)
    }
}

impl Table {
    /// At most so many connections at once, at least two.
    pub fn holding(live_max: usize) -> Table {
        Table { live: HashMap::new(), live_max: live_max.max(2), begun: 0, evicted: 0 }
    }

    /// Connections that were begun so far.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// Connections given out for want of room: what came of them later counts as another connection.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// The next packet of the capture; its connection, as it is afterwards. Connections that are over are given to `done`.
    pub fn handle(&mut self, packet: &Packet<'_>, done: &mut impl FnMut(Connection)) -> &Connection {
        let key = (packet.src.min(packet.dst), packet.src.max(packet.dst));
        let over = self.live.get(&key).is_some_and(|connection| connection.is_followed_by(packet));
        if let Some(before) = over.then(|| self.live.remove(&key)).flatten() {
            done(*before);
        }
        if self.live.len() >= self.live_max && !self.live.contains_key(&key) {
            self.evict(done);
        }
        let begun = &mut self.begun;
        let connection = self.live.entry(key).or_insert_with(|| {
            *begun += 1;
            Box::new(Connection::new(*begun, packet))
        });
        connection.handle(packet);
        connection
    }

    /// The capture is over: gives out what is left, in the order of numbers.
    pub fn finish(self, done: &mut impl FnMut(Connection)) {
        let mut left: Vec<Connection> = self.live.into_values().map(|connection| *connection).collect();
        left.sort_by_key(Connection::number);
        left.into_iter().for_each(done);
    }

    /// Gives out the half that was quiet longest, so that each is looked at a bounded number of times.
    fn evict(&mut self, done: &mut impl FnMut(Connection)) {
        let mut by_age: Vec<_> = self
            .live
            .iter()
            .map(|(key, connection)| (connection.last_at(), connection.number(), *key))
            .collect();
        by_age.sort();
        for (_, _, key) in by_age.into_iter().take(self.live_max.div_ceil(2)) {
            if let Some(quiet) = self.live.remove(&key) {
                self.evicted += 1;
                done(*quiet);
            }
        }
    }
}
