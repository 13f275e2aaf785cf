//! A connection: its parts, and the application's verbs. Algorithms live in other files.

use super::congestion::{Congestion, Controller, Start};
use super::ecn::{EcnMode, EcnState};
use super::recovery::{Purpose, Recovery};
use super::state::{self, Transition};
use super::timers::{Timer, Timers};
use crate::fast_open::{Blackhole, Network, PathCache, VerdictKey};
use crate::fast_paths::FastPath;
use crate::memory::Memory;
use crate::rate_limit::ChallengeLimit;
use crate::route::{Route, RouteMetrics};
use crate::rtt::RttEstimator;
use crate::slab::Slab;
use crate::socket_options::{Options, RareOptions};
use crate::tcp::observe::limits::{Busy, LimitedBy};
use crate::tcp::observe::moments::Moments;
use crate::tcp::observe::tcp_info::Tally;
use crate::tcp::open::fresh::Fresh;
use crate::tcp::open::handshake::{Handshake, SpareHandshakes};
use crate::tcp::open::negotiation::{self, Negotiated};
use crate::tcp::rare::special::Special;
use crate::tcp::recv::receive_buffer::Spare;
use crate::tcp::recv::receiver::{AckOwed, Receiver};
use crate::tcp::send::nagle::Nagle;
use crate::tcp::send::rules::SendRules;
use crate::tcp::send::send_queue::SendQueue;
use crate::tcp::send::send_queue::blocks::SendBlocks;
use crate::tcp::send::window_use::WindowUse;
use crate::timer_wheel::TimerHandle;
use crate::tuple::FourTuple;
use crate::tuple_table::TupleTable;
use crate::{
    CloseReason, Config, CongestionControl, Counters, EarlyData, Events, Instant, ListenerId, Outcome, State,
};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use wire::{Capabilities, SeqNum, TxPacket};

/// Unit of the age of a timestamp: 2³⁰ ns (1.07 s).
const TS_AGE_UNIT: u32 = 30;
/// 24 days: half the time in which a clock of milliseconds wraps (RFC 7323 §5.5).
const TS_RECENT_LIFE: u32 = ((24 * 86_400 * 1_000_000_000_u64) >> TS_AGE_UNIT) as u32;

fn ts_age_units(now: Instant) -> u32 {
    (now.as_nanos() >> TS_AGE_UNIT) as u32
}

/// State of the stack that connections may read and change, one at a time.
pub(crate) struct Shared {
    /// Time of the present event; see [`context`](Self::context).
    pub(crate) now: Instant,
    pub(crate) config: Config,
    /// Defaults of new connections, derived from `config`.
    pub(crate) fresh: Fresh,
    pub(crate) capabilities: Capabilities,
    pub(crate) counters: Counters,
    pub(crate) paths: PathCache,
    pub(crate) blackhole: Blackhole,
    pub(crate) networks: Vec<Network>,
    /// Limit of the stack's challenge ACKs.
    pub(crate) challenge: ChallengeLimit,
    /// Memory for written data.
    pub(crate) blocks: SendBlocks,
    pub(crate) handshakes: SpareHandshakes,
    /// Reusable memory for received data.
    pub(crate) spare: Spare,
    /// Connections that their application has closed.
    pub(crate) orphans: u32,
    pub(crate) memory: Memory,
    /// Packets that a connection sent while it handled a segment. They leave before all others.
    pub(crate) meanwhile: Vec<TxPacket>,
    /// See [`Stack::tap_has_read`](crate::Stack::tap_has_read).
    pub(crate) tap_read: Option<u32>,
    /// Allows fast paths. Without them every segment takes the general path, with the same effects.
    #[cfg(debug_assertions)]
    pub(crate) fast_paths: bool,
    #[cfg(debug_assertions)]
    pub(crate) fast_paths_taken: crate::fast_paths::FastPathsTaken,
}

/// State of the stack that a connection may read and change while it handles one event.
pub(crate) type Context = Shared;

impl Shared {
    /// Lends the state for an event at `now`.
    #[inline]
    pub(crate) fn context(&mut self, now: Instant) -> &mut Context {
        self.now = now;
        self
    }
}

impl Context {
    /// Returns whether fast paths are allowed: always, except where random runs compare both paths
    /// ([`Stack::set_fast_paths`](crate::Stack::set_fast_paths)).
    pub(crate) fn takes_fast_paths(&self) -> bool {
        #[cfg(debug_assertions)]
        return self.fast_paths;
        #[cfg(not(debug_assertions))]
        true
    }

    /// Counts the use of a fast path.
    pub(crate) fn took(&mut self, path: FastPath) {
        #[cfg(debug_assertions)]
        self.fast_paths_taken.note(path);
        #[cfg(not(debug_assertions))]
        let _ = path;
    }

    /// Returns the key of a path's verdicts.
    pub(crate) fn verdict_key(&self, tuple: &FourTuple) -> VerdictKey {
        let holds = |network: &&Network| Network::new(tuple.local, network.prefix_len()) == **network;
        let network = self.networks.iter().find(holds).copied();
        VerdictKey {
            network: network.unwrap_or_else(|| Network::new(tuple.local, 128)),
            peer: tuple.peer,
            port: tuple.peer_port,
        }
    }

    /// Counts the third timeout in a row of a Fast Open connection as a failure (Linux's
    /// `tcp_fastopen_active_detect_blackhole`).
    pub(crate) fn third_timeout_of_fast_open(&mut self) {
        self.counters.tcp_fastopen_active_fail += 1;
        self.blackhole_suspected();
    }

    /// Begins the stack-wide pause of Fast Open, if it is enabled, because a connection met a
    /// probable black hole.
    pub(crate) fn blackhole_suspected(&mut self) {
        if self.blackhole.disable(self.now) {
            self.counters.tcp_fastopen_blackhole += 1;
        }
    }
}

/// SND.* of RFC 9293 §3.3.1, and the queue of data to send.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) iss: SeqNum,
    pub(crate) una: SeqNum,
    pub(crate) nxt: SeqNum,
    /// Highest `nxt` so far.
    pub(crate) max: SeqNum,
    pub(crate) wnd: u32,
    pub(crate) wl1: SeqNum,
    pub(crate) wl2: SeqNum,
    /// Largest window that the peer has offered (RFC 5961's MAX.SND.WND).
    pub(crate) wnd_max: u32,
    /// End of the last small segment sent. Nagle waits for its acknowledgment (Minshall).
    pub(super) small_end: SeqNum,
    pub(crate) nagle: Nagle,
    pub(crate) rules: SendRules,
    pub(crate) fin: Fin,
    /// A window probe is due.
    pub(super) probe_due: bool,
    pub(crate) queue: SendQueue,
}

bitflags::bitflags! {
    /// The FIN behind the queued data.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Fin: u8 {
        /// The application has closed its direction.
        const QUEUED = 0x1;
        /// The FIN was retransmitted. If the device refuses one, an earlier one has left.
        const REPEATED = 0x2;
        /// The FIN was first sent without text.
        const ALONE = 0x4;
    }
}

impl Sender {
    pub(crate) fn new(iss: SeqNum, limit: u32) -> Sender {
        Sender {
            iss,
            una: iss,
            nxt: iss,
            max: iss,
            wnd: 0,
            wl1: SeqNum(0),
            wl2: iss,
            wnd_max: 0,
            small_end: iss,
            nagle: Nagle::empty(),
            rules: SendRules::empty(),
            fin: Fin::empty(),
            probe_due: false,
            queue: SendQueue::new(iss + 1).limited(limit),
        }
    }

    /// Returns SND.UNA and SND.NXT.
    pub(crate) fn span(&self) -> (SeqNum, SeqNum) {
        (self.una, self.nxt)
    }

    /// Returns the bytes in flight, with the FIN. A SYN does not count: it uses neither the
    /// congestion window nor the peer's.
    pub(crate) fn flight_size(&self) -> u32 {
        let first = self.first();
        if self.nxt.after(first) { self.nxt.since(first) } else { 0 }
    }

    /// Returns the number of the FIN, if one is queued.
    pub(crate) fn fin_seq(&self) -> Option<SeqNum> {
        self.fin_queued().then(|| self.queue.end())
    }

    /// Returns whether a FIN that was sent without text is acknowledged.
    pub(crate) fn lone_fin_acked(&self) -> bool {
        self.fin.contains(Fin::ALONE) && self.fin_seq().is_some_and(|fin| self.una.after(fin))
    }

    /// Returns whether the FIN was first sent without text.
    pub(crate) fn fin_alone(&self) -> bool {
        self.fin.contains(Fin::ALONE)
    }

    /// Returns whether a FIN follows the queued data, sent or not.
    pub(crate) fn fin_queued(&self) -> bool {
        self.fin.contains(Fin::QUEUED)
    }

    /// Returns whether the FIN was sent, and not rewound since.
    pub(crate) fn fin_sent(&self) -> bool {
        self.fin_queued() && self.nxt.after(self.queue.end())
    }

    /// Returns whether SND.UNA ≤ SND.NXT ≤ SND.MAX.
    pub(crate) fn is_in_order(&self) -> bool {
        self.una.before_or_eq(self.nxt) && self.nxt.before_or_eq(self.max)
    }

    /// Returns whether the FIN was sent and is not acknowledged.
    pub(crate) fn fin_in_flight(&self) -> bool {
        self.fin_sent() && self.una.before(self.nxt)
    }

    pub(crate) fn advance_nxt(&mut self, to: SeqNum) {
        self.nxt = to;
        self.max = self.max.latest(to);
    }

    /// Makes a FIN unsent that was sent. It is retransmitted behind the data.
    pub(crate) fn unsend_fin(&mut self) {
        if self.fin_in_flight() {
            self.nxt = self.queue.end();
        }
    }

    /// Makes everything from `una` on unsent: it is retransmitted.
    pub(crate) fn rewind(&mut self) {
        self.nxt = self.first();
        self.weigh();
    }

    /// Makes everything sent that was rewound.
    pub(crate) fn skip_to_max(&mut self) {
        self.nxt = self.max;
        self.weigh();
    }

    /// Updates the weight of the data in flight, up to `nxt`.
    pub(crate) fn weigh(&mut self) {
        if self.rules.contains(SendRules::COUNTS_SEGMENTS) {
            self.queue.weigh(self.nxt);
        }
    }

    /// Returns the first unacknowledged byte or FIN. (`iss` cannot tell: after two gigabytes it
    /// seems to be in the future.)
    fn first(&self) -> SeqNum {
        self.una.latest(self.queue.end() - self.queue.len() as u32)
    }
}

/// Event of a Fast Open child for its listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParentEvent {
    Established,
    Reset,
    Closed,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) tuple: FourTuple,
    pub(crate) state: State,
    /// See [`takes_fast_paths`](Self::takes_fast_paths).
    pub(super) plain: bool,
    pub(crate) handshake: Option<Box<Handshake>>,
    /// Listener that counts it as pending, or has it in its accept queue.
    pub(crate) parent: Option<ListenerId>,
    pub(crate) parent_event: Option<ParentEvent>,
    /// It is in the accept queue.
    pub(crate) unaccepted: bool,
    /// The application has closed it.
    pub(crate) orphan: bool,
    pub(crate) options: RareOptions,
    /// State of features that few connections use.
    pub(crate) special: Option<Box<Special>>,
    pub(crate) agreed: Negotiated,
    /// Route to the peer when the connection began.
    pub(super) route: Option<Arc<Route>>,
    /// Largest packet in bytes, by the device, the route and ICMP.
    pub(crate) path_mtu: u16,
    /// See [`smss`](Self::smss).
    pub(super) smss: u16,
    /// MSS that we advertise.
    pub(crate) advmss: u16,
    pub(crate) snd: Sender,
    pub(crate) rcv: Receiver,
    pub(crate) rtt: RttEstimator,
    pub(crate) congestion: Congestion,
    pub(super) window_use: WindowUse,
    /// Memory in bytes that it is charged for.
    pub(crate) charged: u32,
    /// The sender's limit when it was last checked.
    pub(crate) limited_by: LimitedBy,
    pub(super) busy: Busy,
    pub(super) ecn: EcnState,
    pub(crate) recovery: Recovery,
    /// Purpose of the retransmission timer.
    pub(super) purpose: Purpose,
    pub(crate) timers: Timers,
    /// Timeouts in a row without progress.
    pub(super) timeouts: u8,
    pub(crate) ts_recent: u32,
    /// Arrival of `ts_recent`, in [`TS_AGE_UNIT`]s.
    ts_recent_at: u32,
    pub(crate) ts_offset: u32,
    pub(crate) outcome: Outcome,
    pub(crate) syn_data_len: u16,
    pub(crate) syn_data_acked: u16,
    pub(crate) synack_data_len: u16,
    /// Bytes of the stream that came with the SYN, and whether the handshake has completed since.
    pub(crate) early_len: u16,
    pub(crate) early_confirmed: bool,
    /// Fast Open was used (Linux's `syn_fastopen`): later black holes are evidence.
    pub(crate) fast_opened: bool,
    pub(crate) tally: Tally,
    pub(crate) bytes_acked: u64,
    pub(crate) moments: Moments,
    pub(crate) close_reason: Option<CloseReason>,
    /// Last ICMP error of the path since the last progress.
    pub(crate) soft_error: Option<CloseReason>,
    /// A write has found no room since the last [`Events::WRITABLE`].
    pub(crate) writer_waits: bool,
    /// A reset is due. Nothing follows it.
    pub(crate) reset_due: bool,
    pub(crate) events: Events,
    /// It is in the stack's list of connections that may send.
    pub(crate) ready: bool,
    /// Its handle in the stack's timer wheel.
    pub(crate) timer: TimerHandle,
    /// It is in the stack's list of connections whose deadline may have changed.
    pub(crate) deadline_moved: bool,
    /// It is in the stack's list of connections with events.
    pub(crate) listed: bool,
    /// It is in the demultiplexer.
    pub(crate) mapped: bool,
}

impl Connection {
    /// Creates a connection. [`begin`](Self::begin) or [`begin_agreed`](Self::begin_agreed) must
    /// follow, at its final place.
    pub(crate) fn new(
        cx: &Context,
        tuple: FourTuple,
        (state, iss): (State, SeqNum),
        Options { nagle, rare: options }: Options,
        route: Option<Arc<Route>>,
    ) -> Connection {
        let (config, fresh) = (&cx.config, &cx.fresh);
        let shift = fresh.window_shift(config, &options);
        let send_limit = fresh.send_limit(config, &options);
        Connection {
            tuple,
            state,
            plain: false,
            handshake: None,
            parent: None,
            parent_event: None,
            unaccepted: false,
            orphan: false,
            agreed: Negotiated {
                peer_mss: negotiation::default_mss(tuple.peer.is_v4()),
                snd_wscale: None,
                timestamps: false,
                sack: false,
                ecn: EcnMode::Off,
            },
            path_mtu: cx.first_path_mtu(&tuple, route.as_ref().map(|route| &route.metrics)),
            smss: 0,
            advmss: cx.advmss(&tuple, route.as_deref(), &options),
            snd: Sender { nagle, rules: SendRules::new(config), ..Sender::new(iss, send_limit) },
            rcv: Receiver::new(SeqNum(0), fresh.space(config, &options), shift),
            rtt: fresh.rtt,
            congestion: Congestion::new(CongestionControl::Cubic, &Start::default()),
            window_use: WindowUse::new(cx.now),
            charged: 0,
            limited_by: LimitedBy::Idle,
            busy: Busy::default(),
            ecn: EcnState::default(),
            recovery: Recovery::default(),
            purpose: Purpose::default(),
            timers: Timers::default(),
            timeouts: 0,
            ts_recent: 0,
            ts_recent_at: 0,
            ts_offset: 0,
            outcome: Outcome::Pending,
            syn_data_len: 0,
            syn_data_acked: 0,
            synack_data_len: 0,
            early_len: 0,
            early_confirmed: false,
            fast_opened: false,
            tally: Tally::default(),
            bytes_acked: 0,
            moments: Moments::opened(cx.now),
            close_reason: None,
            soft_error: None,
            writer_waits: false,
            reset_due: false,
            events: Events::empty(),
            ready: false,
            timer: TimerHandle::default(),
            deadline_moved: false,
            listed: false,
            mapped: true,
            options,
            special: None,
            route,
        }
    }

    /// Sets the bounds of the retransmission timeout, by the socket's options, the route or the
    /// stack's settings.
    pub(crate) fn bound_rto(&mut self, config: &Config) {
        let routes = self.route.as_ref().and_then(|route| route.metrics.rto_min);
        let least = self.options.rto_min.or(routes).unwrap_or(config.rto_min());
        let greatest = self.options.rto_max.unwrap_or(Duration::from_millis(config.tcp_rto_max_ms.into()));
        self.rtt.set_bounds(least, greatest);
    }

    /// Returns how long FIN-WAIT-2 lasts after the application has closed (Linux's `tcp_fin_time`).
    /// `None`: it ends at once.
    pub(crate) fn fin_wait2_time(&self, config: &Config) -> Option<Duration> {
        if self.options.linger2 == Some(Duration::ZERO) {
            return None;
        }
        let wanted = self.options.linger2.unwrap_or(config.tcp_fin_timeout);
        Some(wanted.max(self.rtt.rto() * 7 / 2))
    }

    pub(crate) fn route_metrics(&self) -> Option<&RouteMetrics> {
        self.route.as_ref().map(|route| &route.metrics)
    }

    /// Returns the route's limit of the congestion window in bytes.
    pub(crate) fn cwnd_clamp(&self) -> u32 {
        let clamp = self.route.as_ref().and_then(|route| route.cwnd_clamp);
        clamp.map_or(u32::MAX, |segments| segments.saturating_mul(self.smss().into()))
    }

    /// Returns TSval of RFC 7323 in ms.
    pub(crate) fn tsval(&self, now: Instant) -> u32 {
        (now.as_millis() as u32).wrapping_add(self.ts_offset)
    }

    /// Sets TS.Recent.
    pub(crate) fn remember_timestamp(&mut self, now: Instant, tsval: u32) {
        self.ts_recent = tsval;
        self.ts_recent_at = ts_age_units(now);
    }

    /// Returns whether TS.Recent is too old to be compared.
    pub(crate) fn ts_recent_expired(&self, now: Instant) -> bool {
        ts_age_units(now).wrapping_sub(self.ts_recent_at) >= TS_RECENT_LIFE
    }

    pub(crate) fn transition(&mut self, event: Transition) {
        if let Some(next) = state::next(self.state, event) {
            self.state = next;
        }
    }

    /// Returns whether the handshake has completed.
    pub(crate) fn is_established(&self) -> bool {
        self.moments.is_established()
    }

    /// Returns when the handshake completed.
    pub(crate) fn established_at(&self) -> Option<Instant> {
        self.moments.established_at()
    }

    /// Returns when the peer last acknowledged something, to the millisecond.
    pub(crate) fn heard_at(&self) -> Option<Instant> {
        self.moments.heard_at(self.window_use.last_sent_at().max(self.rcv.last_data_at()))
    }

    /// Returns the size of the data in the SYN (passive opens).
    pub(crate) fn early_data(&self) -> EarlyData {
        EarlyData { len: self.early_len.into(), confirmed: self.early_confirmed }
    }

    /// Returns whether the peer opened it. Established active opens have an outcome.
    pub(crate) fn opened_passively(&self) -> bool {
        self.is_established() && self.outcome == Outcome::Pending
    }

    /// Returns whether our SYN is acknowledged, or does not matter any more (TIME-WAIT, CLOSED).
    pub(crate) fn synchronized(&self) -> bool {
        self.handshake.is_none() && self.state != State::Closed
    }

    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.state, State::Closed | State::TimeWait)
    }

    /// Ends at once, for `reason`. Sends nothing more, except what `reset_due` asks for.
    pub(crate) fn terminate(&mut self, counters: &mut Counters, reason: CloseReason) {
        if self.state == State::Closed {
            return;
        }
        // Transitions to CLOSED of RFC 4022. An attempt that the application gives up does not
        // count as failed (as in Linux's `tcp_done`).
        match self.state {
            State::Established | State::CloseWait => counters.estab_resets += 1,
            State::SynSent | State::SynReceived if reason != CloseReason::Aborted => {
                counters.attempt_fails += 1
            }
            _ => {}
        }
        self.state = State::Closed;
        self.close_reason.get_or_insert(reason);
        self.timers.stop_all();
        self.rcv.ack_owed = AckOwed::No;
        if !self.reset_due {
            // A reset still reports this data.
            self.rcv.drop_out_of_order();
        }
        self.note_bytes_in_vain();
        self.snd.queue.clear();
        self.snd.probe_due = false;
        self.handshake = None;
        if self.parent.is_some() {
            let event = if reason == CloseReason::Reset { ParentEvent::Reset } else { ParentEvent::Closed };
            self.parent_event.get_or_insert(event);
        }
        self.events |= Events::CLOSED | Events::READABLE | Events::WRITABLE;
    }

    /// Ends a connection whose directions are both closed.
    pub(crate) fn finish(&mut self) {
        self.close_reason.get_or_insert(CloseReason::Finished);
        self.timers.stop_all();
        self.rcv.drop_out_of_order();
        self.handshake = None;
        if self.parent.is_some() {
            self.parent_event.get_or_insert(ParentEvent::Closed);
        }
        self.events |= Events::CLOSED | Events::READABLE;
    }

    /// Sends a reset and ends.
    pub(crate) fn abort(&mut self, counters: &mut Counters) {
        self.reset(counters, CloseReason::Aborted);
    }

    /// Sends a reset and ends for `reason`.
    pub(crate) fn reset(&mut self, counters: &mut Counters, reason: CloseReason) {
        self.reset_due = self.is_open() && !matches!(self.handshake.as_deref(), Some(Handshake::Active(_)));
        self.terminate(counters, reason);
    }

    /// Closes our direction behind the queued data.
    pub(crate) fn queue_fin(&mut self) {
        if !self.snd.fin_queued() {
            self.snd.fin = Fin::QUEUED;
            self.transition(Transition::Close);
        }
    }

    /// Ends FIN-WAIT-2 of a connection that its application has closed. Sends the delayed
    /// acknowledgment. Resets the connection if it must not wait for the peer's FIN.
    pub(crate) fn let_go_in_fin_wait_2(&mut self, cx: &mut Context) {
        if self.rcv.ack_owed == AckOwed::Delayed {
            self.rcv.ack_owed = AckOwed::Now;
        }
        if self.fin_wait2_time(&cx.config).is_none() {
            cx.counters.abort_on_linger += 1;
            self.abort(&mut cx.counters);
        }
    }

    /// Ends the hold of the SYN-ACK: its answer is large enough, or something else needs it now.
    pub(crate) fn release_synack(&mut self) {
        if self.timers.is_set(Timer::SynAckHold)
            && let Some(Handshake::Passive(passive)) = self.handshake.as_deref_mut()
        {
            self.timers.stop(Timer::SynAckHold);
            passive.due = true;
        }
    }

    /// Returns the congestion window, as recovery changes it.
    pub(crate) fn congestion_window(&self) -> u32 {
        let cwnd = self.congestion.cwnd();
        let own = if self.recovery.is_idle() {
            cwnd
        } else {
            self.recovery.window(cwnd, !self.congestion.shapes_recovery())
        };
        own.min(self.cwnd_clamp())
    }

    /// Returns the congestion window as reported: without the allowance for duplicate ACKs.
    pub(crate) fn reported_cwnd(&self) -> u32 {
        self.recovery.shrinking_window().unwrap_or(self.congestion.cwnd()).min(self.cwnd_clamp())
    }

    /// Returns the smaller of the peer's window and the congestion window.
    pub(crate) fn send_window(&self) -> u32 {
        self.snd.wnd.min(self.congestion_window())
    }

    /// Returns how many bytes both windows allow now. The peer's window contains all unacknowledged
    /// data, the congestion window the data in the network.
    pub(crate) fn usable_window(&self) -> u32 {
        let offered = self.snd.wnd.saturating_sub(self.snd.flight_size());
        offered.min(self.congestion_window().saturating_sub(self.pipe()))
    }
}

/// Upper bound of the memory of an idle connection. State that only busy or special connections
/// need belongs into a box.
const _: () = assert!(Slab::<Connection>::SLOT + TupleTable::BYTES_MOST <= 512);
