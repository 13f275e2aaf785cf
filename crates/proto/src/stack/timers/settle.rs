//! The steps after every change of a connection: notifies its listener, updates the owner of its
//! packets, records deadline and events, and frees it when it is not needed any more.

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
    /// Settles connection `index`. Must be called once after every change.
    pub(in crate::stack) fn settle(&mut self, now: Instant, index: u32) {
        let Some((generation, connection)) = self.connections.entry_mut(index) else { return };
        let id = ConnId { index, generation };
        if self.trace.is_some() || !settle_ordinary(&mut self.shared, &mut self.work, now, id, connection) {
            self.settle_turn(now, id);
        }
    }

    /// Settles a change that concerns more than the connection.
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

    /// Ends a connection: passes its packets to the next owner, and frees it if it is not needed
    /// any more.
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

    /// Retires a connection in CLOSED, TIME-WAIT, or FIN-WAIT-2 without a reader: sends its last
    /// packets, then gives up its tuple.
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
                // Its tuple will not lead to it when the packet is due.
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
            // Counts as Linux does: FIN-WAIT-2 too, and brief ones separately.
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

    /// Frees a connection that is not in the demultiplexer.
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

/// Tells the listener that the handshake of a Fast Open child is over.
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

/// Nanoseconds. Linux counts TIME-WAIT of at most four seconds as `TWKilled`.
const BRIEF: u64 = 4_000_000_000;

/// Settles a change that concerns only the connection. Returns false if [`Stack::settle_turn`] must
/// do it.
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

/// Settles a connection that stays open, has nothing to report to its listener, and may take fast
/// paths as before.
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

/// Returns whether its packets get a new owner, or none.
pub(in crate::stack) fn is_over(connection: &Connection) -> bool {
    !is_live(connection.state) || only_awaits_fin(connection)
}

/// Returns whether our direction is closed and acknowledged, and the other has no reader.
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

/// Returns for how many nanoseconds TIME-WAIT, or FIN-WAIT-2 without a reader, keeps the numbers.
fn numbers_are_kept(config: &Config, connection: &Connection) -> Option<u64> {
    match connection.state {
        State::TimeWait => Some(nanos(config.time_wait)),
        State::FinWait2 => Some(nanos(connection.fin_wait2_time(config).unwrap_or_default())),
        _ => None,
    }
}

/// Returns a connection without TIME-WAIT whose listener serves Fast Open. If its SYN was a
/// fallback, the Fast Open SYN before may still come, and must not open the connection again.
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
