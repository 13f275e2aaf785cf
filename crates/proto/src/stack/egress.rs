//! What goes out, what is reported, and when the stack wants to be called again.

use super::Stack;
use crate::{Events, Instant, SocketId};
use wire::TxPacket;

impl Stack {
    /// The next packet to send; connections take turns.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<TxPacket> {
        if let Some(packet) = self.replies.pop_front() {
            return Some(packet);
        }
        while let Some(id) = self.ready.pop_front() {
            if !self.connections.contains(id.index, id.generation) {
                continue;
            }
            let Some(connection) = self.connections.get_mut(id.index) else { continue };
            let packet = connection.poll_transmit(&mut self.shared.context(now));
            connection.ready = packet.is_some();
            match connection.next_deadline() {
                Some(at) => self.timers.set(id.index, at),
                None => {
                    self.timers.clear(id.index);
                }
            }
            if packet.is_some() {
                self.ready.push_back(id);
                return packet;
            }
        }
        None
    }

    /// Might [`poll_transmit`](Stack::poll_transmit) have something? True may be wrong, false never is.
    pub fn is_transmit_pending(&self) -> bool {
        !self.replies.is_empty() || !self.ready.is_empty()
    }

    /// The next event; events of one socket are merged until they are polled.
    pub fn poll_event(&mut self) -> Option<(SocketId, Events)> {
        while let Some(id) = self.events.pop_front() {
            match id {
                SocketId::Listener(listener_id) => {
                    if let Some(listener) = self.listener_mut(listener_id) {
                        listener.listed = false;
                        return Some((id, Events::ACCEPTABLE));
                    }
                }
                SocketId::Connection(conn) => {
                    if !self.connections.contains(conn.index, conn.generation) {
                        continue;
                    }
                    let Some(connection) = self.connections.get_mut(conn.index) else { continue };
                    connection.listed = false;
                    let events = std::mem::take(&mut connection.events);
                    if !events.is_empty() && !connection.orphan {
                        return Some((id, events));
                    }
                }
            }
        }
        None
    }

    /// When [`handle_timeout`](Stack::handle_timeout) wants to be called next, exactly; `None` = not until something else happens.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        [self.timers.next(), self.request_timers.next(), self.time_wait.next_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// The time is `now`: everything due until then happens.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.time_wait.expire(now);
        self.guard.expire(now);
        while let Some(index) = self.request_timers.pop_expired(now) {
            self.request_timeout(now, index);
        }
        while let Some(index) = self.timers.pop_expired(now) {
            if let Some(connection) = self.connections.get_mut(index) {
                connection.handle_timeout(&mut self.shared.context(now));
            }
            self.settle(now, index);
        }
    }
}
