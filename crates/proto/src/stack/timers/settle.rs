//! What follows every change of a connection: its listener hears of it, its packets find their new owner, its deadline and its
//! events are noted, and it is freed when nobody needs it any more.

use super::pending_work::PendingWork;
use crate::slab::Slab;
use crate::stack::demux::holders::Holder;
use crate::stack::listen::listener::Listener;
use crate::stack::{REPLAY_GENERATION, Shared, Stack, is_live};
use crate::tcp::connection::{Connection, ParentEvent};
use crate::time::nanos;
use crate::time_wait::TimeWait;
use crate::tuple::FourTuple;
use crate::{CloseReason, Config, ConnId, DropReason, Instant, State};
use wire::SeqNum;

impl Stack {
    /// To be called once after every mutation of connection `index`.
    pub(in crate::stack) fn settle(&mut self, now: Instant, index: u32) {
        let Some((generation, connection)) = self.connections.entry_mut(index) else { return };
        let id = ConnId { index, generation };
        if self.trace.is_some() || !settle_ordinary(&mut self.shared, &mut self.work, now, id, connection) {
            self.settle_turn(now, id);
        }
    }

    /// As [`settle`](Self::settle), where more than the connection itself may have to learn of the change.
    #[inline(never)]
    pub(in crate::stack) fn settle_turn(&mut self, now: Instant, id: ConnId) {
        let Some(connection) = self.connections.get_mut(id.index) else { return };
        connection.note_plain();
        if connection.parent_event.is_some() {
            notify_listener(&mut self.listeners, now, connection);
        }
        if is_over(connection) {
            return self.end(now, id);
        }
        settle_open(&mut self.shared, &mut self.work, now, id, connection);
        if self.trace.is_some() {
            self.trace_changes(now, id.index);
        }
    }

    /// Its packets find their new owner, or none; and if nobody needs it any more, it is gone.
    pub(in crate::stack) fn end(&mut self, now: Instant, id: ConnId) {
        if self.trace.is_some() {
            self.trace_changes(now, id.index);
        }
        let Some(connection) = self.connections.get_mut(id.index) else { return };
        let orphan = connection.orphan;
        if connection.mapped {
            self.retire(now, id.index);
        }
        if orphan {
            return self.free(now, id.index);
        }
        let Some(connection) = self.connections.get_mut(id.index) else { return };
        settle_open(&mut self.shared, &mut self.work, now, id, connection);
        if self.trace.is_some() {
            self.trace_changes(now, id.index);
        }
    }

    /// CLOSED, TIME-WAIT, or FIN-WAIT-2 without a reader: says the last words, then the tuple is no longer its own.
    fn retire(&mut self, now: Instant, index: u32) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        let cx = self.shared.context(now);
        if only_awaits_fin(connection) {
            connection.let_go_in_fin_wait_2(cx);
        }
        cx.counters.out_rsts += u64::from(connection.reset_due);
        while connection.may_transmit() {
            let Some(place) = self.replies.push() else {
                self.drops.count(DropReason::RateLimited);
                break;
            };
            if !connection.poll_transmit(cx, place) {
                self.replies.unpush();
                break;
            }
            connection.sign_ahead(place);
            if let Some(hooks) = self.hooks.as_deref_mut()
                && !connection.options.tx_delay.is_zero()
            {
                // Nobody will know it by its tuple when it is its turn.
                let at = now + connection.options.tx_delay;
                if hooks.put_off(at, place) {
                    self.work.deadlines.note_other(at);
                    self.replies.unpush();
                }
            }
        }
        if connection.fast_open_was_swallowed() {
            cx.blackhole_suspected();
        }
        let peaceful = connection.close_reason == Some(CloseReason::Finished);
        if connection.state != State::Closed || peaceful {
            connection.save_path(cx);
        }
        self.timers.clear(&mut connection.timer);
        let hash = connection.tuple.hash(&self.hash_key);
        if waits_at_peer(&cx.config, connection) {
            self.peer_time_wait.note(now, hash);
        }
        if let Some(timeout) = numbers_are_kept(&cx.config, connection) {
            // As Linux counts what is kept of a connection, FIN-WAIT-2 too, and apart if it is not for long.
            let counters = &mut cx.counters;
            let ended =
                if timeout <= BRIEF { &mut counters.time_wait_killed } else { &mut counters.time_wait };
            *ended += 1;
            let entry = time_wait_of(connection);
            let key = if self.hooks.is_some() { connection.md5_key().cloned() } else { None };
            cx.counters.time_wait_overflow += self.time_wait.insert(now, hash, entry, timeout) as u64;
            self.work.deadlines.note_other(now.plus_nanos(timeout));
            if let Some(hooks) = &mut self.hooks {
                hooks.signing.keep_key(&self.time_wait, entry.tuple, key);
            }
        }
        connection.mapped = false;
        self.holders.remove(hash, Holder::Connection(index));
        if self.serves_fast_open
            && let Some((tuple, irs)) = opening_to_remember(&cx.config, now, connection)
        {
            self.remember_opening(now, &tuple, irs);
        }
    }

    /// See [`opening_to_remember`].
    fn remember_opening(&mut self, now: Instant, tuple: &FourTuple, irs: SeqNum) {
        let serves = |id| self.listener(id).is_some_and(|listener| listener.pending.max_qlen() > 0);
        if self.find_listener(tuple).is_some_and(serves) {
            self.guard.remember_plain(now, self.isn.of_tuple(tuple), irs);
        }
    }

    /// Nobody needs a connection any more that is not in the demultiplexer.
    #[inline(always)]
    pub(in crate::stack) fn free(&mut self, now: Instant, index: u32) {
        if self.trace.is_some() {
            self.trace_end(index);
        }
        let Some(connection) = self.connections.get_mut(index) else { return };
        debug_assert!(!connection.mapped);
        if connection.charged > 0 {
            self.shared.memory.charge(now, connection.charged, 0, &mut self.shared.counters);
        }
        self.timers.clear(&mut connection.timer);
        self.work.deadlines.forget(index, connection);
        self.shared.orphans -= u32::from(connection.orphan);
        self.connections.drop_at(index);
        if self.connections.len() == 0 {
            self.shared.blocks.clear();
        }
    }
}

/// A Fast Open child's handshake is over, one way or the other.
pub(in crate::stack) fn notify_listener(
    listeners: &mut Slab<Listener>,
    now: Instant,
    connection: &mut Connection,
) {
    let Some(event) = connection.parent_event.take() else { return };
    let accepted = !connection.unaccepted;
    let Some(parent) = connection.parent.take() else { return };
    let Some(listener) = listeners.find_mut(parent.index, parent.generation) else { return };
    let peer = connection.tuple.peer;
    match event {
        ParentEvent::Established => listener.pending.on_established(peer),
        ParentEvent::Reset => listener.pending.on_reset(now, accepted, peer),
        ParentEvent::Closed => listener.pending.on_closed(peer),
    }
}

/// Linux's `TCP_TIMEWAIT`s of four seconds or less are its `TWKilled`; nanoseconds.
const BRIEF: u64 = 4_000_000_000;

/// Settles a change that concerns nobody but the connection. False: [`Stack::settle_turn`] must do it.
#[inline(always)]
pub(in crate::stack) fn settle_ordinary(
    shared: &mut Shared,
    work: &mut PendingWork,
    now: Instant,
    id: ConnId,
    connection: &mut Connection,
) -> bool {
    connection.note_plain();
    if connection.parent_event.is_some() || is_over(connection) {
        return false;
    }
    settle_open(shared, work, now, id, connection);
    true
}

/// Settles a connection that stays open, has nothing to report to its listener, and is as plain as it was: the end of a fast path.
#[inline(always)]
pub(in crate::stack) fn settle_open(
    shared: &mut Shared,
    work: &mut PendingWork,
    now: Instant,
    id: ConnId,
    connection: &mut Connection,
) {
    debug_assert!(connection.snd.is_in_order(), "SND.UNA ≤ SND.NXT ≤ SND.MAX");
    shared.charge(now, connection);
    work.note(now, id, connection);
}

/// Its packets find a new owner, or none.
pub(in crate::stack) fn is_over(connection: &Connection) -> bool {
    !is_live(connection.state) || only_awaits_fin(connection)
}

/// Our direction is over and acknowledged, and nobody will read what comes of the other.
fn only_awaits_fin(connection: &Connection) -> bool {
    connection.orphan && connection.state == State::FinWait2
}

/// Returns whether the peer is in TIME-WAIT: it closed first, and has acknowledged our FIN.
/// Considers only ports that may be chosen. If the peer answers our SYN for an older connection,
/// our reset has already ended that TIME-WAIT.
fn waits_at_peer(config: &Config, connection: &Connection) -> bool {
    let port = u32::from(connection.tuple.local_port);
    connection.state == State::Closed
        && connection.close_reason == Some(CloseReason::Finished)
        && (config.port_low..=config.port_high).contains(&port)
}

/// For how many nanoseconds TIME-WAIT needs only its numbers, and so does FIN-WAIT-2 when nobody will read.
fn numbers_are_kept(config: &Config, connection: &Connection) -> Option<u64> {
    match connection.state {
        State::TimeWait => Some(nanos(config.time_wait)),
        State::FinWait2 => Some(nanos(connection.fin_wait2_time(config).unwrap_or_default())),
        _ => None,
    }
}

/// An ordinary connection to a listener that serves Fast Open ends without TIME-WAIT, or may: if its SYN was a fallback, the SYN
/// before it may still come, and must not open again what is over.
fn opening_to_remember(
    config: &Config,
    now: Instant,
    connection: &Connection,
) -> Option<(FourTuple, SeqNum)> {
    let plain = connection.opened_passively() && !connection.fast_opened;
    let recent = now < connection.moments.opened_at + REPLAY_GENERATION;
    let in_doubt = plain && recent && connection.state != State::TimeWait && config.replay_guard;
    in_doubt.then_some((connection.tuple, connection.rcv.irs))
}

fn time_wait_of(connection: &Connection) -> TimeWait {
    TimeWait {
        tuple: connection.tuple,
        snd_nxt: connection.snd.nxt,
        rcv_nxt: connection.rcv.nxt,
        rcv_wnd: (connection.rcv.wnd() >> connection.rcv.wscale).min(u32::from(u16::MAX)) as u16,
        ts_recent: connection.agreed.timestamps.then_some(connection.ts_recent),
        ts_offset: connection.ts_offset != 0,
        fin_awaited: connection.state == State::FinWait2,
    }
}
