//! Owners of four-tuples: connections and half-open requests. Both are in one table, so that one
//! lookup finds the owner, and the connection that a request becomes takes its place.
//!
//! TIME-WAIT has its own table, because it may have many more entries.

use crate::slab::Slab;
use crate::stack::Stack;
use crate::stack::listen::request::Request;
use crate::tcp::connection::Connection;
use crate::tuple::{FourTuple, Name};
use crate::tuple_table::TupleTable;

/// Owner of a tuple, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stack) enum Holder {
    Connection(u32),
    Request(u32),
}

impl Holder {
    /// Returns the code in the table: the index above a bit.
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

/// The owners with their tuples.
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

/// Table of owners; see the module.
pub(in crate::stack) struct Holders(TupleTable);

impl Holders {
    pub(in crate::stack) fn new() -> Holders {
        Holders(TupleTable::new())
    }

    /// Removes `holder` from the table. `hash` is that of its tuple.
    pub(in crate::stack) fn remove(&mut self, hash: u64, holder: Holder) {
        self.0.remove(hash, holder.code());
    }
}

impl Stack {
    pub(in crate::stack) fn name(&self, tuple: FourTuple) -> Name {
        Name { tuple, hash: tuple.hash(&self.hash_key) }
    }

    /// Returns the owner of a tuple with this hash.
    #[inline(always)]
    pub(in crate::stack) fn holder_at(&self, hash: u64, tuple: &FourTuple) -> Option<Holder> {
        match self.holders.0.proposed(hash).map(Holder::of) {
            Some(holder) if self.has(holder, tuple) => Some(holder),
            _ => self.holder_elsewhere(hash, tuple),
        }
    }

    /// Finds the owner of a tuple that is not where its hash proposes.
    #[inline(never)]
    fn holder_elsewhere(&self, hash: u64, tuple: &FourTuple) -> Option<Holder> {
        self.holders.0.find_elsewhere(hash, |code| self.has(Holder::of(code), tuple)).map(Holder::of)
    }

    /// Returns whether `holder` has this tuple.
    fn has(&self, holder: Holder, tuple: &FourTuple) -> bool {
        let places = Places { connections: &self.connections, requests: &self.requests };
        places.tuple_of(holder) == Some(tuple)
    }

    /// Returns the owner of a tuple.
    #[inline(never)]
    pub(in crate::stack) fn holder_of(&self, tuple: &FourTuple) -> Option<Holder> {
        self.holder_at(tuple.hash(&self.hash_key), tuple)
    }

    /// Returns the connection with this tuple.
    pub(in crate::stack) fn find_connection(&self, tuple: &FourTuple) -> Option<u32> {
        match self.holder_of(tuple)? {
            Holder::Connection(index) => Some(index),
            _ => None,
        }
    }

    /// Makes `holder` the owner of the tuple with this hash. It replaces `before`, if that is
    /// present.
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
