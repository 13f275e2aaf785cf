//! Output of the stack: packets, events, and the time of the next call.

use crate::stack::Stack;
use crate::tcp::timers::NEVER;
use crate::timer_wheel::TimerHandle;
use crate::{Events, Instant, SocketId};
use smallvec::SmallVec;
use wire::TxPacket;

impl Stack {
    /// Returns the next packet to send; connections take turns.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<TxPacket> {
        let mut packet = TxPacket::default();
        self.poll_transmit_into(now, &mut packet).then_some(packet)
    }

    /// Writes the next packet into the caller's memory, like
    /// [`poll_transmit`](Stack::poll_transmit) without the move. Returns false if there is none;
    /// the memory is unspecified then.
    #[inline]
    pub fn poll_transmit_into(&mut self, now: Instant, packet: &mut TxPacket) -> bool {
        self.is_transmit_pending() && self.transmit_pending(now, packet)
    }

    #[inline(never)]
    fn transmit_pending(&mut self, now: Instant, packet: &mut TxPacket) -> bool {
        if self.trace.is_some() {
            return self.transmit_traced(now, packet);
        }
        self.transmit(now, packet)
    }

    pub(in crate::stack) fn transmit(&mut self, now: Instant, packet: &mut TxPacket) -> bool {
        if self.hooks.is_some() {
            return self.transmit_with_hooks(now, packet);
        }
        self.transmit_next(now, packet)
    }

    /// Returns the next packet, even if its socket delays it.
    pub(in crate::stack) fn transmit_next(&mut self, now: Instant, packet: &mut TxPacket) -> bool {
        packet.clear_payload();
        if !self.replies.is_empty() {
            return self.replies.pop_into(packet);
        }
        while let Some(id) = self.work.ready.pop() {
            let Some(connection) = self.connections.find_mut(id.index, id.generation) else { continue };
            let cx = self.shared.context(now);
            let all_has_left = connection.send_ordinary(cx, packet);
            let sent = all_has_left || connection.poll_transmit(cx, packet);
            if !all_has_left {
                connection.note_plain();
            }
            connection.ready = sent && !all_has_left && connection.may_transmit();
            debug_assert!(!all_has_left || !connection.may_transmit());
            if connection.ready {
                self.work.ready.push(id);
            } else {
                match all_has_left {
                    true => connection.note_all_has_left(now),
                    false => connection.note_limit(now),
                }
                if connection.special.is_some() {
                    self.work.note_events(id, connection);
                }
                if connection.writer_waits {
                    connection.room_to_write(self.shared.context(now));
                    self.work.note_events(id, connection);
                }
            }
            self.work.deadlines.note(id.index, connection);
            if self.trace.is_some() {
                self.trace_changes(now, id.index);
            }
            if sent {
                return true;
            }
        }
        false
    }

    /// Returns whether [`poll_transmit`](Stack::poll_transmit) may return a packet. May return
    /// false positives, never false negatives.
    #[inline]
    pub fn is_transmit_pending(&self) -> bool {
        !self.replies.is_empty()
            || !self.work.ready.is_empty()
            || self.hooks.as_ref().is_some_and(|hooks| hooks.is_due())
    }

    /// Returns the next event. Events of one socket are merged until they are polled.
    #[inline]
    pub fn poll_event(&mut self) -> Option<(SocketId, Events)> {
        if self.work.events.is_empty() { None } else { self.take_event() }
    }

    #[inline(always)]
    fn take_event(&mut self) -> Option<(SocketId, Events)> {
        while let Some(id) = self.work.events.pop() {
            match id {
                SocketId::Listener(listener_id) => {
                    if let Some(listener) = self.listener_mut(listener_id) {
                        listener.listed = false;
                        return Some((id, Events::ACCEPTABLE));
                    }
                }
                SocketId::Connection(conn) => {
                    let Some(connection) = self.connections.find_mut(conn.index, conn.generation) else {
                        continue;
                    };
                    connection.listed = false;
                    let events = core::mem::take(&mut connection.events);
                    if !events.is_empty() && !connection.orphan {
                        return Some((id, events));
                    }
                }
            }
        }
        None
    }

    /// Maximum connections, half-open requests, TIME-WAIT entries and postponed packets, of each
    /// kind, that expire in one [`handle_timeout`](Stack::handle_timeout). A large jump of the
    /// clock therefore does not block a driver for long.
    pub const EXPIRED_AT_ONCE: usize = 256;

    /// Returns the exact time of the next [`handle_timeout`](Stack::handle_timeout); `None` if
    /// nothing is scheduled. A time in the past means at once.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        self.look_at_connections();
        self.look_at_others();
        let earliest = self.work.deadlines.of_connections.min(self.work.deadlines.others);
        (earliest != NEVER).then_some(earliest)
    }

    /// Advances the time to `now` and fires what is due, earliest first, at most
    /// [`EXPIRED_AT_ONCE`](Stack::EXPIRED_AT_ONCE) of each kind. While
    /// [`poll_timeout`](Stack::poll_timeout) returns a time that is not after `now`, more is due:
    /// drain the output, then call again.
    ///
    /// Nearly free if nothing is due: a driver may call it before every batch, and
    /// [`poll_timeout`](Stack::poll_timeout) only when it is idle.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.wants_reclaim() {
            self.reclaim(now);
        }
        if now >= self.work.deadlines.others {
            self.expire_others(now);
        }
        if now >= self.work.deadlines.of_connections {
            self.expire_connections(now);
        }
    }

    #[inline(never)]
    fn expire_others(&mut self, now: Instant) {
        self.release_put_off(now, Stack::EXPIRED_AT_ONCE);
        self.time_wait.expire(now, Stack::EXPIRED_AT_ONCE);
        self.guard.expire(now);
        self.shared.blocks.shrink(now);
        for _ in 0..Stack::EXPIRED_AT_ONCE {
            let Some(index) = self.request_timers.pop_expired(&mut self.requests, now) else { break };
            self.request_timeout(now, index);
        }
        self.look_at_others();
    }

    #[inline(never)]
    fn expire_connections(&mut self, now: Instant) {
        self.arm_moved();
        self.guard.expire(now);
        self.shared.blocks.shrink(now);
        let mut expired = SmallVec::<[(Instant, u32); SORTED_AT_ONCE]>::new();
        for _ in 0..Stack::EXPIRED_AT_ONCE / SORTED_AT_ONCE {
            while expired.len() < SORTED_AT_ONCE
                && let Some(deadline) = self.timers.next()
                && let Some(index) = self.timers.pop_expired(now)
            {
                if let Some(connection) = self.connections.get_mut(index) {
                    connection.timer = TimerHandle::default();
                }
                expired.push((deadline, index));
            }
            if expired.is_empty() {
                break;
            }
            // Timers of the same time fire in the order of their connections, because fast paths
            // set them in another order than the general path.
            expired.sort_unstable();
            for (_, index) in expired.drain(..) {
                if let Some(connection) = self.connections.get_mut(index) {
                    connection.handle_timeout(self.shared.context(now));
                }
                self.settle(now, index);
            }
        }
        self.look_at_connections();
    }

    fn look_at_connections(&mut self) {
        self.arm_moved();
        self.work.deadlines.of_connections = self.timers.next().unwrap_or(NEVER);
    }

    fn look_at_others(&mut self) {
        let requests = self.request_timers.next(&self.requests).unwrap_or(NEVER);
        let put_off = self.hooks.as_ref().and_then(|hooks| hooks.next()).unwrap_or(NEVER);
        let time_wait = self.time_wait.next_deadline().unwrap_or(NEVER);
        let reclaim = if self.wants_reclaim() { self.reclaim.resumes_at() } else { NEVER };
        self.work.deadlines.others = time_wait.min(requests).min(put_off).min(reclaim);
    }

    /// Bounds the list of moved deadlines, in which closed connections leave entries.
    pub(in crate::stack) fn bound_moved(&mut self) {
        if self.work.deadlines.moved.len() > MOVED_MIN + 2 * self.connections.len() {
            self.arm_moved();
        }
    }

    /// Updates the wheel with all deadlines that have changed. Each connection is visited once,
    /// however often its timers moved.
    fn arm_moved(&mut self) {
        while let Some(index) = self.work.deadlines.moved.pop() {
            self.arm(index);
        }
        if self.work.deadlines.moved.capacity() > MOVED_MAX {
            self.work.deadlines.moved.shrink_to(MOVED_MIN);
        }
    }

    fn arm(&mut self, index: u32) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        if !core::mem::take(&mut connection.deadline_moved) {
            // The entry belonged to an earlier connection.
            return;
        }
        let deadline = connection.next_deadline();
        if deadline == NEVER {
            self.timers.clear(&mut connection.timer);
            connection.timers.release();
        } else {
            self.timers.set(&mut connection.timer, index, deadline);
        }
    }
}

/// Expired timers that fire in the order of their connections.
const SORTED_AT_ONCE: usize = 16;
/// Entries of the list that are always tolerated.
const MOVED_MIN: usize = 1024;
/// Largest number of entries for which an empty list keeps memory.
const MOVED_MAX: usize = 8 * MOVED_MIN;
