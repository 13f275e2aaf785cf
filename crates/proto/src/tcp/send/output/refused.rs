//! What was handed over and could not leave: it is taken back, and the refusal is a sign of congestion (Linux's `tcp_enter_cwr` in
//! `__tcp_transmit_skb`).
//!
//! ```text
//!  new text, FIN      not sent. With something in flight its acknowledgement brings the next attempt; else a timer does, like that of window
//!                     probes: the first after the time-out, then every 500 ms (`tcp_send_probe0`), until the user time-out is over
//!  text sent again    still to be sent again. What the time-out was for goes after 500 ms, and the time-out does not double
//!                     (`tcp_retransmit_timer`); the rest with the next acknowledgement
//!  loss probe         not sent: the time-out goes on (`tcp_send_loss_probe`)
//!  window probe       another after 500 ms, and the wait does not double
//!  keepalive          the same, and it does not count (`tcp_keepalive_timer`)
//!  acknowledgement, SYN-ACK   lost
//!  SYN                lost; what the time-out sends again goes after 500 ms
//! ```

use crate::Instant;
use crate::tcp::congestion::{Controller, Lost, Signal};
use crate::tcp::connection::{Connection, Context, Fin};
use crate::tcp::observe::tcp_info::{CaState, ca_state};
use crate::tcp::open::handshake::{Excuse, Handshake};
use crate::tcp::rare::room::Waiting;
use crate::tcp::rare::special::Special;
use crate::tcp::recovery::{Phase, Purpose};
use crate::tcp::send::retry_limits::BASE;
use crate::tcp::timers::Timer;
use core::time::Duration;
use wire::{Flags, SeqNum, TxPacket};

/// A packet that could not leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    pub(crate) seq: SeqNum,
    /// Bytes of text.
    pub(crate) len: u32,
    pub(crate) flags: Flags,
    /// It would have been so many on the wire.
    pub(crate) segments: u32,
}

/// Linux's `TCP_RESOURCE_PROBE_INTERVAL`.
const AGAIN: Duration = Duration::from_millis(500);

impl Connection {
    /// Linux's `tcp_transmit_skb` has failed.
    #[cold]
    pub(crate) fn could_not_leave(&mut self, cx: &mut Context, refused: &Refused) {
        let Refused { seq, len, flags, .. } = *refused;
        if flags.contains(Flags::RST) {
            return;
        }
        if flags.contains(Flags::SYN) {
            return self.syn_refused(cx);
        }
        let end = seq + len + u32::from(flags.contains(Flags::FIN));
        match () {
            () if seq == end => self.bare_refused(cx.now, seq),
            // It left late (`TCP_TX_DELAY`): what it brings has arrived by another packet.
            () if seq.before(self.snd.una) => return,
            () if self.went_before(seq, end) => self.repetition_refused(cx, refused, end),
            () => self.new_data_refused(cx, refused, end),
        }
        self.meet_local_congestion(cx);
    }

    /// The first SYN has a time-out of its own; what that sends again waits less. With `TCP_TX_DELAY` what is refused may be an earlier SYN than
    /// the last, whose time-out runs already.
    fn syn_refused(&mut self, cx: &Context) {
        if let Some(Handshake::Active(active)) = self.handshake.as_deref_mut() {
            active.excuse.get_or_insert(Excuse::NeverLeft);
        }
        if self.timeouts > 0
            && self.options.tx_delay.is_zero()
            && matches!(self.handshake.as_deref(), Some(Handshake::Active(_)))
        {
            self.timers.set(Timer::Retransmit, cx.now + AGAIN);
        }
    }

    /// A SYN, or SYN-ACK, is to go, and is none that was refused: while `TCP_TX_DELAY` kept that back its time-out came, which has no timer but
    /// the one that this transmission sets.
    pub(crate) fn is_opening_due(&self) -> bool {
        match self.handshake.as_deref() {
            Some(Handshake::Active(active)) => active.due,
            Some(Handshake::Passive(passive)) => passive.due,
            None => false,
        }
    }

    /// Of window and keepalive probes nothing is kept but the time of the next.
    fn bare_refused(&mut self, now: Instant, seq: SeqNum) {
        if seq == self.snd.una - 1 {
            self.probe_refused(now);
        }
    }

    /// A probe that is due would be refused as the packet before it was: it is tried again when its own would be.
    pub(crate) fn put_off_probe(&mut self, now: Instant) {
        if core::mem::take(&mut self.snd.probe_due) {
            self.probe_refused(now);
        }
    }

    /// The connection has lost its turn. What is refused may have been acknowledged before (`TCP_TX_DELAY` kept it back for so long), and then
    /// nothing was taken back whose timer would give the rest another.
    pub(crate) fn time_what_lost_its_turn(&mut self, now: Instant) {
        let fin_waits = self.snd.fin_queued() && !self.snd.fin_sent();
        let waits = self.snd.unsent() > 0 || self.snd.flight_size() > 0 || fin_waits;
        let timed = self.timers.is_set(Timer::Retransmit) || self.timers.is_set(Timer::Pace);
        if waits && !timed && self.handshake.is_none() && self.is_open() {
            self.arm_rto(now);
        }
    }

    fn probe_refused(&mut self, now: Instant) {
        if self.snd.unsent() > 0 && self.timers.is_set(Timer::Retransmit) {
            self.rtt.take_back_timeout();
            self.timers.set(Timer::Retransmit, now + AGAIN);
            return self.hasten_probe(now);
        }
        if let Some(special) = self.special.as_mut().filter(|special| special.unanswered > 0)
            && self.timers.is_set(Timer::Life)
        {
            special.unanswered -= 1;
            self.timers.set(Timer::Life, now + AGAIN);
        }
    }

    /// Had it been sent before this?
    fn went_before(&self, seq: SeqNum, end: SeqNum) -> bool {
        let probes = |probe: &crate::tcp::recovery::Probe| probe.again && probe.end == end;
        let of_probe = self.recovery.board().and_then(|board| board.probe.as_ref()).is_some_and(probes);
        let text = self.snd.queue.starting(seq).next().filter(|first| first.seq == seq);
        of_probe || text.map_or_else(|| self.fin_went_before(end), |first| first.transmissions > 1)
    }

    /// Had the FIN been sent before this one, which goes without text?
    fn fin_went_before(&self, end: SeqNum) -> bool {
        self.snd.fin.contains(Fin::REPEATED) || self.timeouts > 0 || self.snd.max.after(end)
    }

    fn new_data_refused(&mut self, cx: &mut Context, refused: &Refused, end: SeqNum) {
        let seq = refused.seq;
        if end != self.snd.nxt {
            // Others have left behind it.
            return;
        }
        cx.counters.orig_data_sent -= u64::from(refused.segments).min(cx.counters.orig_data_sent);
        if self.is_mtu_probe(seq, refused.len) {
            self.forget_mtu_probe();
        }
        let weight = self.snd.queue.take_back((seq, seq + refused.len));
        let (max, una) = (self.snd.max, self.snd.una);
        (self.snd.nxt, self.snd.max) = (seq, if max == end { seq } else { max });
        if self.snd.small_end == end {
            // No other was waited for, or the application does not care.
            self.snd.small_end = una;
        }
        let probe_was_it = self.loss_probe_refused(cx, end);
        if let Some(board) = self.recovery.board_mut() {
            board.take_back_sent(weight);
        }
        if self.snd.flight_size() == 0 {
            self.wait_for_room(cx);
        } else if !probe_was_it && self.purpose == Purpose::Probe {
            self.arm_as_before(cx);
        }
    }

    /// The loss probe, if the packet that ends here was it: none has gone.
    fn loss_probe_refused(&mut self, cx: &mut Context, end: SeqNum) -> bool {
        let Some(board) = self.recovery.board_mut() else { return false };
        if board.probe.take_if(|probe| probe.end == end).is_none() {
            return false;
        }
        cx.counters.loss_probes -= 1;
        self.purpose = Purpose::Probe;
        self.resume_rto(cx.now);
        true
    }

    /// The timer of a probe is what it was before the last segment: by the one before that, or what was delivered since.
    fn arm_as_before(&mut self, cx: &mut Context) {
        let now = cx.now;
        let sent_at = self.snd.queue.newest_sent_at(self.snd.nxt).unwrap_or(now);
        self.timers.stop(Timer::Retransmit);
        let in_flight = self.snd.in_flight();
        if !self.arm_probe(cx.context(sent_at.max(self.snd.queue.delivered_at(now))), in_flight, true) {
            self.arm_rto(cx.now);
        }
        cx.now = now;
        if self.timers.deadline(Timer::Retransmit) <= now {
            self.timers.set(Timer::Retransmit, now.plus_nanos(1));
        }
    }

    fn repetition_refused(&mut self, cx: &mut Context, refused: &Refused, end: SeqNum) {
        let seq = refused.seq;
        cx.counters.retrans_fail += u64::from(refused.segments);
        let of_timer = self.timeouts > 0 && seq == self.snd.una && self.snd.wnd > 0;
        match self.recovery.board_mut() {
            Some(board) => {
                board.take_back_resent(&mut self.snd.queue, (seq, end));
                let phase = board.phase;
                if seq == self.snd.queue.end() {
                    self.snd.unsend_fin();
                }
                if self.loss_probe_refused(cx, end) {
                    return;
                }
                let counted = match phase {
                    Phase::Loss if of_timer => return self.timeout_refused(cx),
                    Phase::Loss => &mut cx.counters.slow_start_retrans,
                    _ => &mut cx.counters.fast_retrans,
                };
                *counted = counted.saturating_sub(refused.segments.into());
            }
            None if end == self.snd.nxt && seq.before(self.snd.nxt) => {
                // Everything is sent again from the start.
                self.snd.nxt = seq;
                if of_timer {
                    self.timeout_refused(cx);
                    self.keep_room_timer(cx.now);
                }
            }
            None => {}
        }
    }

    /// What the time-out was for is not lost once more: it is tried again soon.
    fn timeout_refused(&mut self, cx: &Context) {
        self.rtt.take_back_timeout();
        self.purpose = Purpose::Timeout;
        self.timers.set(Timer::Retransmit, cx.now + AGAIN);
    }

    /// Where it is sent again with whatever else happens, that timer stays as it is.
    fn keep_room_timer(&mut self, now: Instant) {
        let next_at = self.timers.deadline(Timer::Retransmit);
        let fresh = Waiting { probes: 0, probed_at: Instant::ZERO, due: false, next_at };
        let waiting = Special::of(&mut self.special, now).refused.get_or_insert(fresh);
        if waiting.next_at <= now {
            waiting.next_at = next_at;
        }
        self.timers.set(Timer::Retransmit, waiting.next_at);
    }

    /// Linux's `tcp_enter_cwr`: a queue before the device is as good as one on the way. It is no loss, so that nothing proves it spurious.
    fn meet_local_congestion(&mut self, cx: &mut Context) {
        self.recovery.keep_windows();
        let reduces = matches!(ca_state(self), CaState::Open | CaState::Disorder);
        if !reduces || self.handshake.is_some() || self.congestion.shapes_recovery() {
            return;
        }
        let in_phases = cx.config.reduction_rules.ecn_by_prr();
        if !in_phases && (self.snd.flight_size() == 0 || self.ecn.is_reduced_for(self.snd.una, self.snd.max))
        {
            return;
        }
        let window = self.reported_cwnd();
        let in_flight = self.reduction_base(cx, self.snd.in_flight());
        let lost = Lost { in_flight, smss: u32::from(self.smss()), timeout: false, left: 0, again: false };
        self.congestion.on_signal(&lost, Signal::Mark);
        self.ecn.on_reduction(self.snd.max);
        if in_phases {
            let ssthresh = self.congestion.cwnd();
            let board =
                self.recovery.make_board(self.snd.una, self.agreed.sack, || cx.first_reordering(&self.tuple));
            board.begin_reduction_between(self.snd.nxt, window, ssthresh);
        }
    }

    /// With nothing in flight no acknowledgement will come: the timer tries again.
    fn wait_for_room(&mut self, cx: &Context) {
        let (now, rto) = (cx.now, self.rtt.rto().max(BASE));
        let special = Special::of(&mut self.special, now);
        let fresh = Waiting { probes: 0, probed_at: Instant::ZERO, due: false, next_at: now + rto };
        let waiting = special.refused.get_or_insert(fresh);
        let probed = waiting.probed_at == now;
        if probed {
            waiting.next_at = now + AGAIN;
        } else if waiting.next_at <= now {
            *waiting = fresh;
        }
        // The application's attempt in between leaves the timer as it was.
        self.timers.set(Timer::Retransmit, waiting.next_at);
        self.purpose = Purpose::Timeout;
        if probed {
            self.hasten_probe(now);
            let next_at = self.timers.deadline(Timer::Retransmit);
            if let Some(waiting) = self.waiting_mut() {
                waiting.next_at = next_at;
            }
        }
    }

    /// Something was refused with nothing in flight, and nothing has been heard since: the timer is set for that.
    pub(in crate::tcp) fn waits_for_room(&self) -> bool {
        self.special.as_ref().is_some_and(|special| special.refused.is_some())
    }

    fn waiting_mut(&mut self) -> Option<&mut Waiting> {
        self.special.as_mut()?.refused.as_mut()
    }

    /// That timer has fired (Linux's `tcp_probe_timer`).
    pub(super) fn room_timeout(&mut self, cx: &mut Context) {
        let probes = self.probes_for_room().saturating_add(1);
        if self.gives_up_probing(cx, probes) {
            return;
        }
        if let Some(waiting) = self.waiting_mut() {
            *waiting = Waiting { probes, probed_at: cx.now, due: true, ..*waiting };
        }
        self.arm_rto(cx.now);
    }

    /// Attempts of the timer since something waits to be admitted.
    pub(in crate::tcp) fn probes_for_room(&self) -> u8 {
        self.special.as_ref().and_then(|special| special.refused.as_ref()).map_or(0, |waiting| waiting.probes)
    }

    /// One segment tries whether there is room by now, pushed (Linux's `tcp_write_wakeup`).
    #[cold]
    pub(super) fn probe_for_room(&mut self, cx: &mut Context, packet: &mut TxPacket) -> bool {
        if !self.waiting_mut().is_some_and(|waiting| core::mem::take(&mut waiting.due)) {
            return false;
        }
        let fin_waits = self.snd.fin_queued() && !self.snd.fin_sent();
        let unsent = self.snd.unsent();
        let len = unsent.min(self.segment_max().into()).min(self.snd.wnd);
        if self.snd.flight_size() > 0 || len == 0 && !fin_waits {
            return false;
        }
        self.snd.queue.push_before(self.snd.nxt + len);
        self.send_range(cx, self.snd.nxt, len, fin_waits && len == unsent, packet)
    }

    /// That one has just gone: the rest waits for its acknowledgement.
    #[cold]
    pub(super) fn awaits_room(&self, now: Instant) -> bool {
        self.is_probing_for_room(now) && self.snd.flight_size() > 0
    }

    /// The timer has fired at this very moment.
    #[cold]
    pub(super) fn is_probing_for_room(&self, now: Instant) -> bool {
        let waiting = self.special.as_ref().and_then(|special| special.refused.as_ref());
        waiting.is_some_and(|waiting| waiting.probed_at == now)
    }
}
