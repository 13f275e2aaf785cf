//! Calls that end a connection.

use super::stream::open_for_writing;
use crate::stack::timers::settle::settle_ordinary;
use crate::stack::{Shared, Stack, is_live};
use crate::tcp::connection::Connection;
use crate::tcp::open::handshake::Handshake;
use crate::tcp::timers::Timer;
use crate::{ConnId, Instant, State, WriteError};
use alloc::vec::Vec;
use core::time::Duration;

impl Stack {
    /// Closes the sending direction: a FIN follows the written data.
    ///
    /// # Errors
    /// [`WriteError::Shutdown`] the second time, [`WriteError::Closed`] if the connection ended
    /// before.
    pub fn shutdown(&mut self, now: Instant, id: ConnId) -> Result<(), WriteError> {
        let connection = open_for_writing(&mut self.connections, id)?;
        match connection.handshake.as_deref_mut() {
            Some(Handshake::Passive(passive)) if !self.shared.config.early_shutdown => {
                passive.fin_waits = true;
            }
            _ => connection.queue_fin(),
        }
        connection.arm_persist(self.shared.context(now));
        connection.release_synack();
        if self.trace.is_some() || !settle_ordinary(&mut self.shared, &mut self.work, now, id, connection) {
            self.settle_turn(now, id);
        }
        Ok(())
    }

    /// Closes the receiving direction. By itself that has no effect, because the peer cannot know.
    /// Data that arrives after this end's FIN is answered with a reset.
    pub fn shutdown_read(&mut self, now: Instant, id: ConnId) {
        if let Some(connection) = self.owned(id) {
            connection.read_no_more(now);
        }
    }

    /// Closes a connection; the id becomes invalid. Unread data, or linger 0, resets it. Otherwise
    /// written data is still delivered in the background.
    pub fn close(&mut self, now: Instant, id: ConnId) {
        let Some(connection) = self.connections.find_mut(id.index, id.generation) else { return };
        if !self.shared.let_go(connection) {
            return;
        }
        if !connection.mapped {
            return self.free(now, id.index);
        }
        let too_many = self.shared.orphans > self.shared.config.tcp_max_orphans
            || self.shared.memory.is_exhausted() && connection.snd.holds_much();
        let unread = !connection.rcv.buffer.is_empty();
        let promised = self.shared.config.deliver_after_early_close && !connection.snd.queue.is_empty();
        let nothing_promised = connection.state == State::SynSent && !promised;
        let gives_up = connection.options.linger == Some(Duration::ZERO);
        if unread || nothing_promised || gives_up {
            self.shared.counters.abort_on_close += u64::from(unread);
            self.shared.counters.abort_on_data += u64::from(gives_up && !unread);
            return self.abort_connection(now, id.index);
        }
        if too_many {
            self.shared.counters.abort_on_memory += 1;
            return self.abort_connection(now, id.index);
        }
        connection.queue_fin();
        connection.arm_persist(self.shared.context(now));
        connection.release_synack();
        if let Some(linger) = connection.options.linger {
            connection.timers.set(Timer::Life, now + linger);
        }
        if self.trace.is_some() || !settle_ordinary(&mut self.shared, &mut self.work, now, id, connection) {
            self.settle_turn(now, id);
        }
    }

    /// Resets a connection and removes it.
    pub fn abort(&mut self, now: Instant, id: ConnId) {
        if self.owned(id).is_some() {
            self.abort_connection(now, id.index);
        }
    }

    pub(in crate::stack) fn abort_connection(&mut self, now: Instant, index: u32) {
        self.orphan(index);
        if let Some(connection) = self.connections.get_mut(index) {
            connection.abort(&mut self.shared.counters);
        }
        self.settle(now, index);
    }

    /// Nobody holds the connection any more.
    pub(in crate::stack) fn orphan(&mut self, index: u32) {
        if let Some(connection) = self.connections.get_mut(index) {
            self.shared.let_go(connection);
        }
    }

    /// Returns whether the peer has acknowledged all written data, and the FIN if there is one.
    /// `None` for an unknown connection.
    pub fn is_delivered(&self, id: ConnId) -> Option<bool> {
        let connection = self.connections.get(id.index).filter(|connection| !connection.orphan);
        connection
            .filter(|_| self.connections.contains(id.index, id.generation))
            .map(|found| !is_undelivered(found))
    }

    /// Returns the number of connections with unacknowledged bytes or an unacknowledged FIN.
    pub fn undelivered(&self) -> usize {
        self.connections.iter().filter(|(_, connection)| is_undelivered(connection)).count()
    }

    /// Resets every connection with unacknowledged bytes or an unacknowledged FIN, including those
    /// closed before.
    pub fn abort_undelivered(&mut self, now: Instant) {
        let undelivered = self.connections.iter().filter(|(_, connection)| is_undelivered(connection));
        let indices: Vec<u32> = undelivered.map(|(index, _)| index).collect();
        indices.into_iter().for_each(|index| self.abort_connection(now, index));
    }
}

impl Shared {
    /// The application lets go of a connection. False: it had before.
    fn let_go(&mut self, connection: &mut Connection) -> bool {
        if core::mem::replace(&mut connection.orphan, true) {
            return false;
        }
        self.orphans += 1;
        connection.timers.stop(Timer::Life);
        true
    }
}

/// A peer in our FIN-WAIT-2 has everything and only owes its own FIN.
fn is_undelivered(connection: &Connection) -> bool {
    let fin_unacknowledged = connection.snd.fin_queued() && connection.state != State::FinWait2;
    is_live(connection.state) && (fin_unacknowledged || !connection.snd.queue.is_empty())
}
