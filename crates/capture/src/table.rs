//! Finds the connection of a packet, in bounded memory.

use crate::connection::{Belonging, Connection};
use crate::icmp::IcmpError;
use crate::packet::Packet;
use core::net::SocketAddr;
use std::collections::HashMap;

/// Most connections at once. Beyond it, those idle for longest are returned.
const LIVE_MAX: usize = 1 << 17;
/// Limit of the memory of all connections, in bytes. The allocator takes more from the system,
/// because it scatters pieces of many sizes.
const MEMORY_MAX: usize = 256 << 20;
/// Connections kept per pair of ports. Late packets and answers may belong to each.
const SAME_PORTS_MAX: usize = 4;

/// The connections of a capture.
///
/// A connection is returned when several newer ones use the same ports, when there are too many, or
/// at the end. Captures of any length can therefore be read. A returned connection answers all
/// queries, and takes little memory.
#[derive(Debug)]
pub struct Table {
    /// Connections by addresses and ports. The newest is the last of its row.
    #[expect(clippy::vec_box, reason = "spare room in a row costs a pointer per entry, not a connection")]
    live: HashMap<Ports, Vec<Box<Connection>>>,
    live_max: usize,
    memory_max: usize,
    count: usize,
    /// Bytes of the connections, without the map and the rows.
    memory: usize,
    begun: u64,
    evicted: u64,
}

type Ports = (SocketAddr, SocketAddr);

/// Bytes of an entry of the map: ports, row, and a control byte.
const ENTRY: usize = size_of::<Ports>() + size_of::<Vec<Box<Connection>>>() + 1;
/// Bytes of a row's buffer: a vector of pointers has four or none.
const ROW: usize = SAME_PORTS_MAX * size_of::<Box<Connection>>();

impl Default for Table {
    fn default() -> Table {
        Table::holding(LIVE_MAX)
    }
}

impl Table {
    /// Creates a table of at most this many connections at once, at least two.
    pub fn holding(live_max: usize) -> Table {
        Table {
            live: HashMap::new(),
            live_max: live_max.max(2),
            memory_max: MEMORY_MAX,
            count: 0,
            memory: 0,
            begun: 0,
            evicted: 0,
        }
    }

    /// Limits the memory of connections to this many bytes.
    pub fn within(self, memory_max: usize) -> Table {
        Table { memory_max, ..self }
    }

    /// Returns the number of connections started so far.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// Returns the number of connections returned for lack of room. Their later packets count as
    /// new connections.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Returns the bytes of memory of its connections, map and rows.
    pub fn memory(&self) -> usize {
        // The map leaves one of eight entries empty.
        self.memory + self.live.capacity().div_ceil(7) * 8 * ENTRY + self.live.len() * ROW
    }

    /// Handles the next packet of the capture, and returns its connection. Passes finished
    /// connections to `done`.
    pub fn handle(&mut self, packet: &Packet<'_>, done: &mut impl FnMut(Connection)) -> &Connection {
        let ports = (packet.src.min(packet.dst), packet.src.max(packet.dst));
        let mut place = self.live.get(&ports).and_then(|row| place(row, packet));
        if self.memory() > self.memory_max || place.is_none() && self.count >= self.live_max {
            self.evict(done);
            place = self.live.get(&ports).and_then(|row| self::place(row, packet));
        }
        let row = self.live.entry(ports).or_default();
        let index = match place {
            Some(index) => index,
            None => {
                if row.len() == SAME_PORTS_MAX {
                    let oldest = row.remove(0);
                    self.count -= 1;
                    self.memory -= oldest.footprint();
                    done(oldest.ended());
                }
                self.begun += 1;
                self.count += 1;
                let connection = Connection::new(self.begun, packet, !row.is_empty());
                self.memory += connection.footprint();
                row.push(Box::new(connection));
                row.len() - 1
            }
        };
        let newest = row.len() - 1;
        if index < newest {
            row[newest].note_older(packet);
        }
        let connection = &mut row[index];
        let before = connection.footprint();
        connection.handle(packet);
        self.memory = self.memory - before + connection.footprint();
        connection
    }

    /// Handles an ICMP error that answers a segment of one of the connections.
    pub fn handle_icmp(&mut self, error: &IcmpError) {
        let row = self.live.get_mut(&(error.src.min(error.dst), error.src.max(error.dst)));
        row.into_iter().flatten().for_each(|connection| connection.on_icmp(error));
    }

    /// Ends the capture. Returns the remaining connections in the order of their numbers.
    pub fn finish(self, done: &mut impl FnMut(Connection)) {
        let mut left = self.places(|connection| connection.number());
        left.sort_unstable();
        let mut table = self;
        for (number, ports) in left {
            table.take(number, ports).into_iter().for_each(&mut *done);
        }
    }

    /// Returns the half that has been idle for longest. The cost per connection is therefore
    /// bounded.
    fn evict(&mut self, done: &mut impl FnMut(Connection)) {
        let mut by_age = self.places(|connection| (connection.last_at(), connection.number()));
        by_age.sort_unstable();
        by_age.truncate(self.count.div_ceil(2));
        for ((_, number), ports) in by_age {
            if let Some(quiet) = self.take(number, ports) {
                self.evicted += 1;
                done(quiet);
            }
        }
    }

    /// Returns the ports of each connection with a sort key. The connections are not moved.
    fn places<K>(&self, key: impl Fn(&Connection) -> K) -> Vec<(K, Ports)> {
        let mut places = Vec::with_capacity(self.count);
        for (ports, row) in &self.live {
            places.extend(row.iter().map(|connection| (key(connection), *ports)));
        }
        places
    }

    /// Removes the connection with this number.
    fn take(&mut self, number: u64, ports: Ports) -> Option<Connection> {
        let row = self.live.get_mut(&ports)?;
        let place = row.iter().position(|connection| connection.number() == number)?;
        let connection = row.remove(place);
        if row.is_empty() {
            self.live.remove(&ports);
        }
        self.count -= 1;
        self.memory -= connection.footprint();
        Some(connection.ended())
    }
}

/// Returns which of the connections between its ports the packet belongs to, or `None` if it starts
/// another one.
fn place(row: &[Box<Connection>], packet: &Packet<'_>) -> Option<usize> {
    let newest = row.len().checked_sub(1)?;
    if packet.is_syn() {
        return row.iter().rposition(|connection| !connection.is_followed_by(packet));
    }
    if row[newest].belonging(packet) == Belonging::Own {
        return Some(newest);
    }
    let older = row[..newest].iter().rposition(|connection| connection.claims(packet));
    let opens_another = match packet.is_syn_ack() {
        true => row[newest].is_followed_by(packet),
        false => row[newest].is_replaced_by(packet),
    };
    older.or((!opens_another).then_some(newest))
}
