//! Acknowledgments of a peer with SACK: which segments have arrived, which are lost, when recovery
//! begins and ends.

use super::Segment;
use crate::Instant;
use crate::tcp::congestion::{Controller, Lost, Signal};
use crate::tcp::connection::Sender;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::rare::special::Counts;
use crate::tcp::recovery::{
    Arrived, LostTransmission, Phase, Purpose, RACK, ReoWindow, Spurious, Undo, dsack, probe_timeout,
};
use crate::tcp::send::rules::SendRules;
use crate::tcp::timers::{NEVER, Timer};
use alloc::vec::Vec;
use core::time::Duration;
use wire::SeqNum;

/// Value of `tcp_early_retrans` from which loss probes are sent.
const TLP: u32 = 3;

/// Least time in which a peer may show that it still holds reported data.
const RENEGING_WAIT_MIN: Duration = Duration::from_millis(10);

impl Connection {
    /// Reads the SACK blocks of an ACK. Returns `None` while everything is in order.
    pub(super) fn read_sack(
        &mut self,
        cx: &mut Context,
        segment: &Segment,
        window_updated: bool,
    ) -> Option<Arrived> {
        let options = &segment.header.options;
        if !self.agreed.sack || (options.sack.is_empty() && self.recovery.board().is_none()) {
            return None;
        }
        let echo = options.timestamps.filter(|_| self.agreed.timestamps);
        let echo = echo.map(|timestamps| timestamps.tsecr.wrapping_sub(self.ts_offset));
        let min_rtt = self.rtt.min_rtt().unwrap_or_default();
        let smss = u32::from(self.smss());
        let in_flight = self.snd.in_flight();
        let span = self.snd.span();
        let board = self.recovery.make_board(span.0, self.agreed.sack, || cx.first_reordering(&self.tuple));
        let mut arrived = board.arrival(
            (cx.now, echo, min_rtt),
            (span.0, span.1, in_flight),
            (smss, cx.config.loss_rules.rtt_of_last()),
        );
        let reported = dsack(&options.sack, segment.header.ack);
        let blocks_of_missing = &options.sack[usize::from(reported.is_some())..];
        let fits = |part: &(SeqNum, SeqNum)| part.1.since(part.0) <= self.snd.wnd_max;
        arrived.duplicate = reported.filter(fits);
        let duplicate = reported.filter(|part| {
            *match part.0.before(segment.header.ack) {
                true => &mut cx.counters.dsack_recv,
                false => &mut cx.counters.dsack_ofo_recv,
            } += 1;
            let segments = part.1.since(part.0).div_ceil(smss.max(1));
            let counts = Counts::of(&mut self.special, cx.now);
            let fits = fits(part);
            counts.dsack_dups += if fits { segments } else { 0 };
            // More data arrived twice than was retransmitted: the network duplicated it.
            let ours = fits && counts.dsack_dups <= counts.total_retrans;
            *match ours {
                true => &mut cx.counters.dsack_recv_segs,
                false => &mut cx.counters.dsack_ignored_dubious,
            } += if ours { u64::from(segments) } else { 1 };
            ours
        });
        if let Some(part) = duplicate {
            board.on_dsack(&cx.config, span.1, part);
            let ack = segment.header.ack;
            let known = part.0.after(ack) || !part.1.after(ack);
            if let Some(seq) = self.snd.queue.repeated_in_vain(part).filter(|_| known) {
                arrived.came_late(seq, false);
            }
            // Data that is known to be sent once and arrived twice was duplicated by the network.
            arrived.duplicate_bytes = match () {
                () if !part.1.after(span.0) => part.1.since(part.0),
                () if known => self.snd.queue.repeated_within(part),
                () => 0,
            };
            if cx.config.loss_rules.dsack_delivers() {
                let delivered = part.1.since(part.0).div_ceil(smss.max(1)) * smss;
                arrived.delivered += delivered;
                self.snd.queue.delivered_besides(cx.now, delivered);
            }
        }
        arrived.overtaken = segment.header.ack.before(span.0);
        arrived.bare = options.sack.is_empty() && segment.len() == 0 && !window_updated;
        let senseless = board.read(&mut self.snd.queue, blocks_of_missing, self.snd.max, &mut arrived);
        cx.counters.sack_discard += u64::from(senseless);
        // A block that begins with the first missing byte says nothing about the FIN either.
        let has_fin = |block: &(SeqNum, SeqNum)| block.1 == self.snd.max && block.0.after(span.0);
        if self.snd.fin_sent() && blocks_of_missing.iter().any(has_fin) {
            self.fin_is_reported(&arrived);
        }
        Some(arrived)
    }

    /// Notes that the peer holds the FIN, behind missing data.
    #[cold]
    fn fin_is_reported(&mut self, arrived: &Arrived) {
        let Some(board) = self.recovery.board_mut() else { return };
        if self.snd.fin_alone() {
            let again = self.timeouts > 0 || board.probe.is_some();
            board.fin_arrived(self.snd.max, self.window_use.last_sent_at(), again, arrived);
        }
    }

    /// Reads an ACK that later ones have overtaken. Its blocks may still be new (RFC 2883 §4, and
    /// as in Linux).
    pub(super) fn read_old_ack(&mut self, cx: &mut Context, segment: &Segment) {
        if segment.header.options.sack.is_empty() {
            return;
        }
        if let Some(arrived) = self.read_sack(cx, segment, true) {
            self.recover(cx, &arrived);
        }
    }

    /// Acts on an acknowledgment: whether a recovery is over, more is lost, and how much may be
    /// sent.
    pub(super) fn recover(&mut self, cx: &mut Context, arrived: &Arrived) {
        let una = self.snd.una;
        let progress = una.after(arrived.snd_una);
        let Some(board) = self.recovery.board_mut() else { return };
        if let Some(delivered) = self.snd.queue.delivered_and_before().filter(|_| !arrived.overtaken) {
            board.widen(delivered);
        }
        for _ in 0..board.note_reordering(&cx.config, arrived) {
            self.count_reordering(cx);
        }
        let Some(board) = self.recovery.board_mut() else { return };
        if progress && board.reneges(&self.snd.queue, una) {
            self.suspect_reneging(cx.now);
            self.reduce_window(arrived.delivered, true);
            return;
        }
        (board.new_data_first, board.refused) = (false, false);
        if progress && cx.config.loss_rules.undo_needs_quiet() && self.was_late(cx, arrived) {
            // The recovery is not undone yet, but nothing is marked lost or retransmitted any more.
            self.reduce_window(arrived.delivered, true);
            return self.recovery.forget();
        }
        let Some(board) = self.recovery.board_mut() else { return };
        match board.spurious(arrived, una) {
            Some(why) => self.undo(cx, why),
            None => self.watch_forward(arrived),
        }
        let Some(board) = self.recovery.board_mut() else { return };
        let repairs = board.repairs();
        if progress {
            board.on_progress(una, self.snd.nxt);
        } else if let Some((sent_at, last)) = arrived.sacked_sent_at {
            self.note_min_rtt(cx, cx.now.nanos_since(last), |_| false);
            self.rtt.on_delayed_sample(cx.now.since(sent_at), self.snd.span());
            if self.snd.queue.oldest_sent_at().is_some_and(|head| head > sent_at) {
                // Restarts the timer of the first segment, but not by data sent after its
                // retransmission. Otherwise reports could postpone it indefinitely (Linux's
                // `tcp_clean_rtx_queue`).
                self.resume_rto(cx.now);
            }
        }
        self.judge_probe(cx, arrived, progress);
        let advanced = self.recovery.board_mut().is_some_and(|board| board.take_advanced());
        let look = advanced || !cx.config.loss_rules.rtt_of_last();
        let more_lost = self.find_losses(cx, arrived.prior_pipe, look);
        let nothing_sent = arrived.snd_una == self.snd.max;
        if !(arrived.overtaken && repairs || nothing_sent) {
            // In a recovery an old ACK leaves the window unchanged, so that its report makes room
            // (as in Linux). So does an ACK without progress.
            self.reduce_window(arrived.delivered, progress && !more_lost);
        }
        self.recovery.forget();
    }

    /// Notes the acknowledgment of the rest of a packet from `rest` on, whose beginning was
    /// acknowledged before. It counts as late, because it lies behind data acknowledged by then
    /// (`loss_rules`, Linux's `tcp_clean_rtx_queue`).
    #[cold]
    pub(super) fn rest_arrived(&mut self, cx: &mut Context, rest: SeqNum, arrived: Option<&mut Arrived>) {
        if !cx.config.loss_rules.partial_ack_reorders() || !self.agreed.sack {
            return;
        }
        let Some(arrived) = arrived else {
            self.recovery
                .make_board(rest, self.agreed.sack, || cx.first_reordering(&self.tuple))
                .saw_reordering();
            // The fast path also acknowledges here.
            self.leave_fast_paths();
            return self.count_reordering(cx);
        };
        arrived.came_late(rest, true);
    }

    /// Handles a partial acknowledgment in fast recovery by a late segment: the path reorders.
    /// Returns true if a retransmission is still on its way (Linux's `tcp_try_undo_partial`).
    fn was_late(&mut self, cx: &mut Context, arrived: &Arrived) -> bool {
        let una = self.snd.una;
        let Some(board) = self.recovery.board_mut() else { return false };
        let amid = board.phase == Phase::Recovery && !board.ends_by(una);
        if !amid || !board.undo.is_some_and(|undo| undo.was_delayed(arrived.echo, true)) {
            return false;
        }
        let measure = (arrived.smss, cx.config.tcp_max_reordering);
        let late = board.is_late(arrived.snd_una, board.reported_end(una), measure);
        board.new_data_first = board.any_resent();
        let waits = board.new_data_first;
        if late {
            cx.counters.ts_reorder += 1;
            Counts::of(&mut self.special, cx.now).reord_seen += 1;
        }
        waits
    }

    fn count_reordering(&mut self, cx: &mut Context) {
        cx.counters.sack_reorder += 1;
        Counts::of(&mut self.special, cx.now).reord_seen += 1;
    }

    /// Handles an ACK up to data that the peer had reported, but without it. The peer may have
    /// dropped that data (RFC 2018 §8). If no more ACKs come, the timer fires soon, and the report
    /// is forgotten (as in Linux).
    fn suspect_reneging(&mut self, now: Instant) {
        let wait = (self.rtt.srtt().unwrap_or_default() / 2).max(RENEGING_WAIT_MIN);
        self.purpose = Purpose::Timeout;
        self.timers.set(Timer::Retransmit, now + wait);
    }

    /// Undoes the reduction of a spurious recovery (RFC 4015 §3).
    fn undo(&mut self, cx: &mut Context, why: Spurious) {
        let una = self.snd.una;
        let Some(board) = self.recovery.board_mut() else { return };
        let Some(undo) = board.undo else { return };
        let full = board.ends_by(una);
        if board.phase == Phase::Loss {
            // A spurious recovery does not count, even if nothing is acknowledged (Linux's
            // `tcp_try_undo_loss`).
            self.timeouts = 0;
        }
        *match (board.phase, why) {
            (Phase::Loss, _) => &mut cx.counters.loss_undo,
            (_, Spurious::Duplicates) => &mut cx.counters.dsack_undo,
            (_, _) if full => &mut cx.counters.full_undo,
            _ => &mut cx.counters.partial_undo,
        } += 1;
        cx.counters.spurious_rtos += u64::from(why == Spurious::ForwardProgress);
        if let Some((cwnd, ssthresh)) = undo.windows {
            self.congestion.on_undo(cwnd, ssthresh);
            self.ecn.on_undo();
        }
        if why == Spurious::Duplicates {
            board.counts_on();
        }
        board.reopen(&mut self.snd.queue, una);
        if self.snd.nxt == self.snd.queue.end() {
            // A FIN that was marked lost with the rest is not lost either. It may be all that is in
            // flight.
            self.snd.skip_to_max();
            if self.snd.flight_size() > 0 && !self.timers.is_set(Timer::Retransmit) {
                self.arm_rto(cx.now);
            }
        }
    }

    fn watch_forward(&mut self, arrived: &Arrived) {
        let can_send = self.new_data_fits();
        let una = self.snd.una;
        if let Some(board) = self.recovery.board_mut()
            && board.phase == Phase::Loss
        {
            board.watch_forward(arrived, una, can_send);
            if board.new_data_first {
                self.snd.push_queued();
            }
        }
    }

    /// Sends new data in the second step of F-RTO (RFC 5682 §2.1), even a small segment (as in
    /// Linux's `tcp_xmit_recovery`).
    pub(super) fn new_data_fits(&self) -> bool {
        let first = self.snd.unsent().min(self.segment_max().into());
        first > 0 && first <= self.usable_window()
    }

    /// Handles the answer to a loss probe. If the probe repaired a loss, the congestion window is
    /// reduced (RFC 8985 §7.4).
    fn judge_probe(&mut self, cx: &mut Context, arrived: &Arrived, progress: bool) {
        let una = self.snd.una;
        let Some(board) = self.recovery.board_mut() else { return };
        let Some(probe) = &board.probe else { return };
        let judged = probe.judge(una, arrived.duplicate, arrived.bare && !progress);
        let Some(lost) = judged else { return };
        board.probe = None;
        if lost {
            let smss = u32::from(self.smss());
            let in_flight = self.reduction_base(cx, arrived.prior_pipe);
            let lost = Lost { in_flight, smss, timeout: false, left: 0, again: false };
            self.congestion.on_signal(&lost, Signal::Repaired);
            self.ecn.on_reduction(self.snd.max);
            cx.counters.loss_probe_recovery += 1;
        }
    }

    /// Marks a segment lost that was possibly reordered and did not come in time.
    pub(crate) fn reordering_timeout(&mut self, cx: &mut Context) {
        let pipe = self.pipe();
        let repairs = self.recovery.board().is_some_and(|board| board.repairs());
        self.purpose = Purpose::Reordering;
        self.find_losses(cx, pipe, true);
        // The data delivered since then allows one segment (as in Linux).
        let delivered = if repairs { 0 } else { self.smss().into() };
        self.reduce_window(delivered, false);
        if !self.timers.is_set(Timer::Retransmit) {
            self.resume_rto(cx.now);
        }
    }

    fn reo_window(&self, cx: &Context) -> ReoWindow {
        ReoWindow {
            min_rtt: self.rtt.min_rtt().unwrap_or_default(),
            srtt: self.rtt.srtt().unwrap_or_default(),
            smss: u32::from(self.smss()),
            flags: cx.config.tcp_recovery | if cx.config.loss_rules.rack_always() { RACK } else { 0 },
        }
    }

    /// Marks lost data if there is reason to `look`, and enters recovery for it. Returns whether
    /// there was more.
    fn find_losses(&mut self, cx: &mut Context, prior_pipe: u32, look: bool) -> bool {
        let how = self.reo_window(cx);
        let in_flight = self.snd.in_flight();
        let Some(board) = self.recovery.board_mut() else { return false };
        let before = board.pipe(in_flight);
        let span = (self.snd.una, self.snd.nxt);
        let wait = if look { board.detect(&mut self.snd.queue, span, cx.now, &how) } else { None };
        let lost_again = board.take_lost_again(how.smss);
        cx.counters.lost_retransmit += lost_again;
        let more = board.pipe(in_flight) < before;
        let lost = board.take_lost();
        let has_fin = board.has_fin();
        // Data that was first sent in a recovery that is over, and is lost, is another loss (RFC
        // 5681 §4.3).
        let goes_on = board.repairs()
            && !(board.phase == Phase::Loss && lost_again > 0 && cx.config.loss_rules.lost_again_recovers());
        if (more || board.any_lost()) && !goes_on {
            let reducing = board.shrinks();
            if reducing || !self.repairs_lost_probe(cx) {
                self.enter_recovery(cx, prior_pipe);
            }
        }
        self.segments_lost(lost);
        if more && self.snd.fin_sent() && !has_fin && self.snd.queue.ends_lost() {
            // The FIN was in the lost segment.
            self.snd.unsend_fin();
        }
        let wait = if look { wait.max(self.find_fin_lost(cx, &how)) } else { wait };
        if let Some(wait) = wait {
            self.wait_for_reordered(cx.now, wait + cx.config.reo_timer_slack);
        }
        more
    }

    /// Marks a FIN lost that was sent alone and is followed only by retransmissions. Otherwise
    /// returns how long to wait for its report.
    fn find_fin_lost(&mut self, cx: &mut Context, how: &ReoWindow) -> Option<Duration> {
        let span = (self.snd.una, self.snd.nxt);
        let is_lone = self.snd.fin_in_flight() && self.snd.fin_alone();
        let board = self.recovery.board_mut().filter(|_| is_lone)?;
        let remaining = board.fin_remaining(&self.snd.queue, span, cx.now, how)?;
        if remaining > Duration::ZERO {
            return Some(remaining);
        }
        board.lose_fin();
        *match board.phase {
            Phase::Loss => &mut cx.counters.slow_start_retrans,
            _ => &mut cx.counters.fast_retrans,
        } += 1;
        self.snd.unsend_fin();
        None
    }

    /// Begins fast recovery. RFC 6675 §5, step 4: "Invoke fast retransmit and enter loss recovery".
    /// The window shrinks by proportional rate reduction (RFC 6937).
    pub(super) fn enter_recovery(&mut self, cx: &mut Context, in_flight: u32) {
        let smss = u32::from(self.smss());
        // A batch takes segments out of flight before any can follow. So the present flight is not
        // the one that filled the window.
        let was_full = self.snd.queue.round().was_full();
        let window = self.congestion.cwnd().min(self.cwnd_clamp());
        let in_flight = if was_full { window.max(in_flight) } else { in_flight };
        let in_flight = self.reduction_base(cx, in_flight);
        let undo = match self.is_congestion_echoed() {
            true => Undo::of_congestion(self.snd.una),
            false => Undo::new(self.congestion.cwnd(), self.congestion.ssthresh(), self.snd.una),
        };
        let reducing = self.recovery.is_reducing();
        if reducing {
            self.congestion.on_recovery();
        } else {
            self.recovery_begins(cx, &Lost { in_flight, smss, timeout: false, left: 0, again: false });
        }
        *match self.agreed.sack {
            true => &mut cx.counters.sack_recovery,
            false => &mut cx.counters.reno_recovery,
        } += 1;
        if self.congestion.starts_over() {
            return self.lose_everything(cx);
        }
        match self.recovery.board_mut() {
            Some(board) if reducing => board.begin_recovery_reduced(self.snd.una),
            Some(board) => board.begin_recovery(self.snd.nxt, in_flight, self.congestion.cwnd(), undo),
            None => {}
        }
    }

    /// Returns the flight from which a reduction starts (`reduction_rules`). `in_flight` is in the
    /// network.
    pub(in crate::tcp) fn reduction_base(&self, cx: &Context, in_flight: u32) -> u32 {
        if cx.config.reduction_rules.start_at_cwnd() { self.reported_cwnd() } else { in_flight }
    }

    /// Begins a reduction because an ACK echoed congestion. It reported `delivered` bytes.
    /// `progress`: it acknowledged something.
    pub(in crate::tcp) fn begin_reduction(
        &mut self,
        cx: &Context,
        in_flight: u32,
        delivered: u32,
        progress: bool,
    ) {
        let board =
            self.recovery.make_board(self.snd.una, self.agreed.sack, || cx.first_reordering(&self.tuple));
        board.begin_reduction(self.snd.nxt, in_flight, self.congestion.cwnd());
        self.reduce_window(delivered, progress);
    }

    /// Reduces the window, unless it was already reduced for the data in flight (RFC 3168 §6.1.2,
    /// RFC 5681 §4.3). If a reduction is a phase of its own, it cannot begin in another. A lost
    /// probe does not begin a phase (as in Linux).
    pub(super) fn recovery_begins(&mut self, cx: &Context, lost: &Lost) {
        self.congestion.on_recovery();
        if cx.config.reduction_rules.ecn_by_prr() || !self.ecn.is_reduced_for(self.snd.una, self.snd.max) {
            self.congestion.on_loss(lost);
            self.ecn.on_reduction(self.snd.max);
        }
    }

    pub(super) fn reduce_window(&mut self, delivered: u32, safe: bool) {
        let (in_flight, smss) = (self.snd.in_flight(), u32::from(self.smss()));
        if let Some(board) = self.recovery.board_mut()
            && board.shrinks()
        {
            board.reduce(delivered, in_flight, safe, smss);
        }
    }

    /// The timer continues when the first segment is retransmitted (as in Linux's
    /// `tcp_xmit_retransmit_queue`).
    pub(in crate::tcp) fn waits_for_reordered(&self) -> bool {
        self.purpose == Purpose::Reordering && self.timers.is_set(Timer::Retransmit)
    }

    fn wait_for_reordered(&mut self, now: Instant, wait: Duration) {
        self.timers.set(Timer::Retransmit, now + wait);
        self.purpose = Purpose::Reordering;
    }

    /// Marks segments lost that are larger than the path allows now. `packet` was the largest
    /// payload before.
    pub(crate) fn lose_too_long(&mut self, cx: &mut Context, packet: u16) {
        // The limit leaves room for SACK blocks, as it did when the segments were sent.
        let (in_flight, most) = ((self.snd.una, self.snd.nxt), u32::from(self.segment_max()));
        let (una, sack) = (in_flight.0, self.agreed.sack);
        let board = self.recovery.make_board(una, sack, || cx.first_reordering(&self.tuple));
        board.lose_longer(&mut self.snd.queue, in_flight, (packet.into(), most));
        if self.snd.queue.ends_lost() {
            self.snd.unsend_fin();
            board.ends_before_fin(self.snd.queue.end());
        }
        cx.counters.lost_retransmit += board.take_lost_again(most);
        let lost = board.take_lost();
        self.segments_lost(lost);
    }

    /// Marks everything in flight lost. It is retransmitted.
    pub(crate) fn lose_everything(&mut self, cx: &mut Context) {
        let lost = self.mark_lost(cx, None);
        self.segments_lost(lost);
    }

    /// Marks the data lost by a retransmission timeout.
    pub(crate) fn mark_timed_out(&mut self, cx: &mut Context) -> Vec<LostTransmission> {
        let how = self.agreed.sack.then(|| self.reo_window(cx));
        let (least, smss) = (cx.config.tcp_reordering, u32::from(self.smss()));
        if let Some(board) = self.recovery.board_mut() {
            board.doubt_reordering(least, smss);
        }
        self.mark_lost(cx, how.as_ref())
    }

    fn mark_lost(&mut self, cx: &mut Context, spare: Option<&ReoWindow>) -> Vec<LostTransmission> {
        let (span, smss) = ((self.snd.una, self.snd.nxt), u32::from(self.smss()));
        let board = self.recovery.make_board(span.0, self.agreed.sack, || cx.first_reordering(&self.tuple));
        if board.on_timeout(&mut self.snd.queue, span, spare.map(|how| (cx.now, how))) {
            cx.counters.sack_reneging += 1;
        }
        if !self.snd.queue.ends_in_flight() {
            // It was sent with the lost data, or not later than data that has arrived.
            self.snd.unsend_fin();
            board.ends_before_fin(self.snd.queue.end());
        }
        cx.counters.lost_retransmit += board.take_lost_again(smss);
        board.take_lost()
    }

    /// Returns the estimated bytes in the network.
    pub(crate) fn pipe(&self) -> u32 {
        self.recovery.pipe(self.snd.in_flight())
    }

    /// Returns the weight of `len` bytes: a multiple of the unit of segments.
    pub(in crate::tcp) fn segment_unit(&self) -> u32 {
        if self.snd.counts_segments() { self.smss().into() } else { 1 }
    }

    /// Arms the loss probe, if allowed (RFC 8985 §7.2). Returns false if not. New data may postpone
    /// it, but not past the RTO of the oldest segment.
    pub(crate) fn arm_probe(&mut self, cx: &Context, in_flight: u32, new_data: bool) -> bool {
        if !self.agreed.sack
            || cx.config.tcp_early_retrans < TLP
            || in_flight == 0
            || self.timeouts > 0
            || !self.recovery.may_probe(cx.config.probe_rules.new_data_sets_probe())
        {
            return false;
        }
        // A FIN without text is a segment.
        let lone_fin = self.snd.fin_sent() && self.snd.fin_alone() && in_flight > 1;
        let lone = in_flight <= u32::from(self.smss()) && self.snd.queue.is_lone(self.snd.nxt) && !lone_fin;
        let rto = self.rtt.rto_nanos();
        let mut at = cx.now.plus_nanos(probe_timeout(&self.rtt, rto, lone));
        if (self.purpose == Purpose::Probe || new_data && cx.config.probe_rules.new_data_sets_probe())
            && let Some(oldest) = self.snd.queue.oldest_sent_at()
        {
            let timeout = oldest.plus_nanos(rto);
            at = at.min(match cx.config.probe_rules.counts_from_oldest() {
                false => timeout.max(self.timers.deadline(Timer::Retransmit)),
                true if timeout > cx.now => timeout,
                true => NEVER,
            });
        }
        self.purpose = Purpose::Probe;
        self.timers.set(Timer::Retransmit, at);
        true
    }

    /// Arms the timer of new data that is sent alone, without losses: the loss probe, or
    /// [`arm_rto`](Self::arm_rto). `rto` is in nanoseconds. `lone`: data and FIN are one segment.
    /// The segment carries the owed acknowledgment.
    #[inline(always)]
    pub(in crate::tcp) fn arm_for_lone(&mut self, cx: &Context, rto: u64, lone: bool) {
        let probes = self.agreed.sack && cx.config.tcp_early_retrans >= TLP && self.timeouts == 0;
        self.purpose = if probes { Purpose::Probe } else { Purpose::Timeout };
        let wait = if probes { probe_timeout(&self.rtt, rto, lone) } else { rto };
        self.timers.stop_and_set(Timer::DelayedAck, Timer::Retransmit, cx.now.plus_nanos(wait));
    }

    /// Sends the loss probe now, because nothing was heard of the last segments. The timeout counts
    /// from it.
    pub(crate) fn loss_probe_timeout(&mut self, cx: &mut Context) {
        if self.recovery.sends_probe() {
            let board =
                self.recovery.make_board(self.snd.una, self.agreed.sack, || cx.first_reordering(&self.tuple));
            board.probe_due = true;
        }
        self.purpose = Purpose::Probe;
        self.resume_rto(cx.now);
    }

    /// Arms the RTO. After a loss probe or a reordering timer it counts from the last transmission
    /// of the first segment (Linux's `tcp_rearm_rto`).
    pub(crate) fn resume_rto(&mut self, now: Instant) {
        let instead = self.purpose != Purpose::Timeout;
        self.arm_rto(now);
        if let Some(sent_at) = self.snd.queue.oldest_sent_at().filter(|_| instead) {
            let at = sent_at.plus_nanos(self.rtt.rto_nanos());
            self.timers.set(Timer::Retransmit, at.max(now.plus_nanos(1)));
        }
    }

    /// Restarts the retransmission timer. RFC 6298 §5.3: "When an ACK is received that acknowledges
    /// new data, restart the retransmission timer so that it will expire after RTO seconds".
    pub(crate) fn arm_rto(&mut self, now: Instant) {
        self.purpose = Purpose::Timeout;
        self.timers.set(Timer::Retransmit, now.plus_nanos(self.rtt.rto_nanos()));
    }
}

impl Sender {
    /// Returns FlightSize in the unit of the congestion window: bytes, or those of whole segments
    /// (`window_unit`).
    pub(crate) fn in_flight(&self) -> u32 {
        let flight_size = self.flight_size();
        if self.counts_segments() { self.weight_of(flight_size) } else { flight_size }
    }

    #[cold]
    fn weight_of(&self, flight_size: u32) -> u32 {
        match self.queue.sent_weight() {
            Some(weight) if flight_size > 0 && !self.queue.is_empty() => weight,
            _ => flight_size,
        }
    }

    /// Returns whether the congestion window counts segments (`window_unit`), by the setting when
    /// the connection began.
    #[inline]
    pub(in crate::tcp) fn counts_segments(&self) -> bool {
        self.rules.contains(SendRules::COUNTS_SEGMENTS)
    }
}
