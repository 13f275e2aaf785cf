//! What the stack still has to do for its connections: send, report, and wake at a time.

use crate::fifo::Fifo;
use crate::tcp::connection::Connection;
use crate::tcp::timers::NEVER;
use crate::{ConnId, Instant, SocketId};
use alloc::vec::Vec;

/// See the module.
pub(super) struct Agenda {
    /// Connections that may have something to send, in turn.
    pub(super) ready: Fifo<ConnId>,
    /// Sockets with events.
    pub(super) events: Fifo<SocketId>,
    pub(super) deadlines: Deadlines,
}

impl Agenda {
    pub(super) fn new() -> Agenda {
        Agenda { ready: Fifo::new(), events: Fifo::new(), deadlines: Deadlines::new() }
    }

    /// A connection has changed.
    #[inline(always)]
    pub(super) fn note(&mut self, now: Instant, id: ConnId, connection: &mut Connection) {
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

    /// A connection that is open has something to send, which it had not; its deadlines are what they were.
    #[inline(always)]
    pub(super) fn note_ready(&mut self, id: ConnId, connection: &mut Connection) {
        debug_assert!(connection.may_transmit());
        if !core::mem::replace(&mut connection.ready, true) {
            self.ready.push(id);
        }
        self.note_events(id, connection);
    }

    /// A connection that may have something to send is not asked for it before something changes.
    #[cold]
    pub(super) fn take_turn_away(&mut self, id: ConnId, connection: &mut Connection) {
        if core::mem::take(&mut connection.ready) {
            self.ready.take_out(id);
        }
    }

    /// Its application shall hear of what has happened, as soon as there is one.
    #[inline]
    pub(super) fn note_events(&mut self, id: ConnId, connection: &mut Connection) {
        let audible = !connection.events.is_empty() && !connection.orphan && !connection.unaccepted;
        if audible && !core::mem::replace(&mut connection.listed, true) {
            self.events.push(SocketId::Connection(id));
        }
    }
}

/// What the wheel does not know yet. Most deadlines are set and stopped, or moved, before the first of them comes; so the wheel hears
/// of them only then, or when it is asked for the earliest.
pub(super) struct Deadlines {
    /// Connections whose deadline may not be the one the wheel knows.
    pub(super) moved: Vec<u32>,
    /// No deadline of a connection is earlier.
    pub(super) of_connections: Instant,
    /// Connections with a deadline not after this have been asked for.
    pub(super) foreseen: Instant,
    /// No other deadline is earlier: of TIME-WAIT, of a request.
    pub(super) others: Instant,
}

impl Deadlines {
    fn new() -> Deadlines {
        Deadlines { moved: Vec::new(), of_connections: NEVER, foreseen: Instant::ZERO, others: NEVER }
    }

    /// A connection has changed.
    #[inline(always)]
    pub(super) fn note(&mut self, index: u32, connection: &mut Connection) {
        self.of_connections = self.of_connections.min(connection.next_deadline());
        if !core::mem::replace(&mut connection.deadline_moved, true) {
            self.moved.push(index);
        }
    }

    /// A connection is gone. One that was short has mostly left its place at the end of the list.
    pub(super) fn forget(&mut self, index: u32, connection: &Connection) {
        if connection.deadline_moved && self.moved.last() == Some(&index) {
            self.moved.pop();
        }
    }

    /// Something else than a connection has a deadline.
    #[inline]
    pub(super) fn note_other(&mut self, at: Instant) {
        self.others = self.others.min(at);
    }
}
