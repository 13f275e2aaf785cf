//! Who has a four-tuple: a connection, or a half-open request. Both are in one table, so that one look tells whom a segment concerns, and
//! the connection that a request becomes takes over its place.
//!
//! Not here: TIME-WAIT. Its entries may be many more, and would be in the way of those who are looked for.

use crate::slab::Slab;
use crate::stack::Stack;
use crate::stack::listen::request::Request;
use crate::tcp::connection::Connection;
use crate::tuple::{FourTuple, Name};
use crate::tuple_table::TupleTable;

/// Who has a tuple; by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stack) enum Holder {
    Connection(u32),
    Request(u32),
}

impl Holder {
    /// As the table keeps it: the index above a bit.
    #[inline]
    fn code(self) -> u32 {
        match self {
            Holder::Connection(index) => index << 1,
            Holder::Request(index) => index << 1 | 1,
        }
    }

    #[inline]
    fn of(code: u32) -> Holder {
        let index = code >> 1;
        if code & 1 == 0 { Holder::Connection(index) } else { Holder::Request(index) }
    }
}

/// Where the holders are, with their tuples.
struct Places<'a> {
    connections: &'a Slab<Connection>,
    requests: &'a Slab<Request>,
}

impl<'a> Places<'a> {
    #[inline]
    fn tuple_of(&self, holder: Holder) -> Option<&'a FourTuple> {
        match holder {
            Holder::Connection(index) => self.connections.get(index).map(|connection| &connection.tuple),
            Holder::Request(index) => self.requests.get(index).map(|request| &request.tuple),
        }
    }
}

/// See the module.
pub(in crate::stack) struct Holders(TupleTable);

impl Holders {
    pub(in crate::stack) fn new() -> Holders {
        Holders(TupleTable::new())
    }

    /// Nobody has the tuple of this hash any more that `holder` had.
    pub(in crate::stack) fn remove(&mut self, hash: u64, holder: Holder) {
        self.0.remove(hash, holder.code());
    }
}

impl Stack {
    pub(in crate::stack) fn name(&self, tuple: FourTuple) -> Name {
        Name { tuple, hash: tuple.hash(&self.hash_key) }
    }

    /// Who has this tuple, whose hash it is.
    #[inline(always)]
    pub(in crate::stack) fn holder_at(&self, hash: u64, tuple: &FourTuple) -> Option<Holder> {
        match self.holders.0.proposed(hash).map(Holder::of) {
            Some(holder) if self.has(holder, tuple) => Some(holder),
            _ => self.holder_elsewhere(hash, tuple),
        }
    }

    /// Finds the holder of a tuple that does not lie where its hash proposes.
    #[inline(never)]
    fn holder_elsewhere(&self, hash: u64, tuple: &FourTuple) -> Option<Holder> {
        self.holders.0.find_elsewhere(hash, |code| self.has(Holder::of(code), tuple)).map(Holder::of)
    }

    /// Returns whether `holder` has this tuple.
    fn has(&self, holder: Holder, tuple: &FourTuple) -> bool {
        let places = Places { connections: &self.connections, requests: &self.requests };
        places.tuple_of(holder) == Some(tuple)
    }

    /// Who has a tuple.
    #[inline(never)]
    pub(in crate::stack) fn holder_of(&self, tuple: &FourTuple) -> Option<Holder> {
        self.holder_at(tuple.hash(&self.hash_key), tuple)
    }

    /// The connection that has a tuple.
    pub(in crate::stack) fn find_connection(&self, tuple: &FourTuple) -> Option<u32> {
        match self.holder_of(tuple)? {
            Holder::Connection(index) => Some(index),
            _ => None,
        }
    }

    /// `holder` has the tuple of this hash from now on, which nobody had, or `before`.
    pub(in crate::stack) fn hold(&mut self, hash: u64, holder: Holder, before: Option<Holder>) {
        let key = &self.hash_key;
        if before.is_some_and(|before| self.holders.0.replace(hash, before.code(), holder.code())) {
            return;
        }
        let places = Places { connections: &self.connections, requests: &self.requests };
        let hash_of = |code| places.tuple_of(Holder::of(code)).map_or(0, |tuple| tuple.hash(key));
        self.holders.0.insert(hash, holder.code(), hash_of);
    }
}
