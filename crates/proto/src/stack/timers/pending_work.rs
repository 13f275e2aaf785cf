//! Pending work: connections that may send, sockets with events, and deadlines that the timer wheel
//! does not know.

use crate::fifo::Fifo;
use crate::tcp::connection::Connection;
use crate::tcp::timers::NEVER;
use crate::{ConnId, Instant, SocketId};
use alloc::vec::Vec;

/// Lists of pending work.
pub(in crate::stack) struct PendingWork {
    /// Connections that may send, round robin.
    pub(super) ready: Fifo<ConnId>,
    /// Sockets with events.
    pub(in crate::stack) events: Fifo<SocketId>,
    pub(in crate::stack) deadlines: Deadlines,
}

impl PendingWork {
    pub(in crate::stack) fn new() -> PendingWork {
        PendingWork { ready: Fifo::new(), events: Fifo::new(), deadlines: Deadlines::new() }
    }

    /// Lists what follows from a change of a connection: a turn to send, a deadline, events.
    #[inline(always)]
    pub(in crate::stack) fn note(&mut self, now: Instant, id: ConnId, connection: &mut Connection) {
        self.deadlines.note(id.index, connection);
        if !connection.ready {
            connection.ready = connection.may_transmit();
            if connection.ready {
                self.ready.push(id);
            } else {
                connection.note_limit(now);
            }
        }
        self.note_events(id, connection);
    }

    /// Lists a turn to send and events of an open connection whose deadlines have not changed.
    #[inline(always)]
    pub(in crate::stack) fn note_ready(&mut self, id: ConnId, connection: &mut Connection) {
        debug_assert!(connection.may_transmit());
        if !core::mem::replace(&mut connection.ready, true) {
            self.ready.push(id);
        }
        self.note_events(id, connection);
    }

    /// Takes a connection off the list of those to send: it is not asked again before something changes.
    #[cold]
    pub(in crate::stack) fn take_turn_away(&mut self, id: ConnId, connection: &mut Connection) {
        if core::mem::take(&mut connection.ready) {
            self.ready.take_out(id);
        }
    }

    /// Lists a connection's events for its application, unless it has none (not accepted yet, or orphaned).
    #[inline]
    pub(in crate::stack) fn note_events(&mut self, id: ConnId, connection: &mut Connection) {
        let audible = !connection.events.is_empty() && !connection.orphan && !connection.unaccepted;
        if audible && !core::mem::replace(&mut connection.listed, true) {
            self.events.push(SocketId::Connection(id));
        }
    }
}

/// Deadlines that the timer wheel does not know yet. Most are stopped or moved before the first of
/// them comes. So the wheel is updated only then, or when the earliest is needed.
pub(in crate::stack) struct Deadlines {
    /// Connections whose deadline may differ from the wheel's.
    pub(super) moved: Vec<u32>,
    /// Lower bound of the connections' deadlines.
    pub(super) of_connections: Instant,
    /// Lower bound of all other deadlines: TIME-WAIT, requests, delayed packets.
    pub(super) others: Instant,
}

impl Deadlines {
    fn new() -> Deadlines {
        Deadlines { moved: Vec::new(), of_connections: NEVER, others: NEVER }
    }

    /// Notes a connection whose deadline may have changed.
    pub(in crate::stack) fn note(&mut self, index: u32, connection: &mut Connection) {
        self.of_connections = self.of_connections.min(connection.next_deadline());
        if !core::mem::replace(&mut connection.deadline_moved, true) {
            self.moved.push(index);
        }
    }

    /// Forgets a closed connection, if it is the last in the list, as brief ones mostly are.
    pub(in crate::stack) fn forget(&mut self, index: u32, connection: &Connection) {
        if connection.deadline_moved && self.moved.last() == Some(&index) {
            self.moved.pop();
        }
    }

    /// Notes a deadline that is not a connection's.
    #[inline]
    pub(in crate::stack) fn note_other(&mut self, at: Instant) {
        self.others = self.others.min(at);
    }
}
