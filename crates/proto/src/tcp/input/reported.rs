//! What an ACK tells a sender whose peer has no SACK: duplicates, progress, and whether a recovery was spurious (RFC 6582, RFC 5682; Linux's
//! `tcp_fastretrans_alert` in the words of `recovery`).

use super::Segment;
use crate::tcp::congestion::Controller;
use crate::tcp::connection::Sender;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::rare::special::Counts;
use crate::tcp::recovery::{Arrived, Phase, Timeout};
use wire::Flags;

impl Connection {
    /// Any ACK of such a peer. `window_updated`: it is new enough to set the window.
    pub(super) fn read_reporting_ack(&mut self, cx: &mut Context, segment: &Segment, window_updated: bool) {
        let prior_una = self.snd.una;
        let progress = segment.header.ack.after(prior_una);
        let duplicate = !progress && self.snd.is_duplicate_ack(segment, window_updated);
        if !progress {
            // What answers a probe with text that was in flight looks like a duplicate.
            self.probes_answered(&cx.config);
            if !duplicate {
                return;
            }
        }
        if progress && self.recovery.is_idle() {
            let acked = self.acknowledge_amid_trouble(cx, segment, None);
            return self.grow(cx, acked);
        }
        let was_recovering = self.recovery.is_recovering();
        let echo = segment.header.options.timestamps.filter(|_| self.agreed.timestamps);
        let echo = echo.map(|timestamps| timestamps.tsecr.wrapping_sub(self.ts_offset));
        let min_rtt = self.rtt.min_rtt().unwrap_or_default();
        let (in_flight, span, smss) = (self.snd.in_flight(), self.snd.span(), u32::from(self.smss()));
        let board = self.recovery.make_board(prior_una, false, || cx.first_reordering(&self.tuple));
        (board.new_data_first, board.refused) = (false, false);
        if progress {
            board.count_partial(segment.header.ack);
        }
        let mut arrived = board.arrival((cx.now, echo, min_rtt), (span.0, span.1, in_flight), (smss, false));
        let acked = progress.then(|| self.acknowledge_amid_trouble(cx, segment, Some(&mut arrived)));
        let lost_more = self.judge_reports(cx, &mut arrived, duplicate);
        if let Some(acked) = acked {
            self.reduce_window(acked.delivered, !lost_more);
            if lost_more && cx.config.newreno_rules.retransmits_at_once() {
                self.let_head_go();
            }
            self.grow(cx, acked);
        } else {
            self.reduce_window(arrived.delivered, false);
        }
        self.recovery.forget();
        if was_recovering && !self.recovery.is_recovering() {
            self.congestion.on_recovered();
        }
        self.note_end_of_loss(cx.now);
        self.note_window_rate(self.window_rate_now(&cx.config));
    }

    fn let_head_go(&mut self) {
        let (in_flight, smss) = (self.snd.in_flight(), u32::from(self.smss()));
        if let Some(board) = self.recovery.board_mut().filter(|board| board.shrinks()) {
            board.let_head_go(in_flight, smss);
        }
    }

    /// Of `acked` bytes, what duplicates had not reported before.
    pub(super) fn reported_is_acknowledged(&mut self, cx: &mut Context, acked: u32) -> u32 {
        let (in_flight, measure) =
            (self.snd.in_flight(), (u32::from(self.smss()), cx.config.tcp_max_reordering));
        let Some(board) = self.recovery.board_mut() else { return acked };
        if acked == 0 {
            return 0;
        }
        let (delivered, reordered) = board.reported_is_acknowledged(acked, in_flight, measure);
        self.snd.queue.was_delivered_before(acked - delivered, measure.0);
        self.count_reno_reordering(cx, reordered);
        delivered
    }

    fn count_reno_reordering(&mut self, cx: &mut Context, reordered: bool) {
        if reordered {
            cx.counters.reno_reorder += 1;
            Counts::of(&mut self.special, cx.now).reord_seen += 1;
        }
    }

    fn hear_duplicate(&mut self, cx: &mut Context, arrived: &mut Arrived) {
        let (in_flight, measure) = (self.snd.in_flight(), (arrived.smss, cx.config.tcp_max_reordering));
        let Some(board) = self.recovery.board_mut() else { return };
        let (delivered, reordered) = board.hear_duplicate(in_flight, measure);
        arrived.delivered += delivered;
        self.snd.queue.delivered_besides(cx.now, delivered);
        cx.counters.delivered += u64::from(delivered / arrived.smss.max(1));
        self.count_reno_reordering(cx, reordered);
    }

    /// Is a recovery over, or spurious, or does one begin? True if more is lost.
    fn judge_reports(&mut self, cx: &mut Context, arrived: &mut Arrived, duplicate: bool) -> bool {
        let (una, nxt) = (self.snd.una, self.snd.nxt);
        let progress = una.after(arrived.snd_una);
        let delayed = self.was_delayed(arrived);
        let Some(board) = self.recovery.board_mut() else { return false };
        let held = board.is_held(una);
        if board.phase == Phase::Recovery && board.ends_by(una) {
            board.forget_reported();
            if delayed {
                cx.counters.full_undo += 1;
                self.take_back(false);
                if cx.config.newreno_rules.end_what_was_spurious() {
                    return self.was_all_late(cx, arrived);
                }
            }
        }
        let Some(board) = self.recovery.board_mut() else { return false };
        match board.phase {
            Phase::Recovery if held => return false,
            Phase::Recovery if !board.ends_by(una) => {
                if duplicate {
                    self.hear_duplicate(cx, arrived);
                } else if progress && delayed {
                    // A segment was late, not lost: the path reorders.
                    let behind = if board.sums().0 > 0 { nxt } else { una };
                    let measure = (arrived.smss, cx.config.tcp_max_reordering);
                    board.is_late(arrived.snd_una, behind, measure);
                    cx.counters.ts_reorder += 1;
                    Counts::of(&mut self.special, cx.now).reord_seen += 1;
                    if board.any_resent() {
                        return false;
                    }
                    cx.counters.partial_undo += 1;
                    self.take_back(true);
                    self.reopen();
                }
            }
            Phase::Loss => {
                self.judge_time_out(cx, arrived, duplicate, delayed);
                if self.recovery.board().is_some_and(|board| board.phase == Phase::Loss) {
                    return false;
                }
                self.count_reports(cx, arrived, duplicate);
            }
            _ => {
                board.on_progress(una, nxt);
                self.count_reports(cx, arrived, duplicate);
            }
        }
        self.find_reported_loss(cx, arrived, progress)
    }

    /// Everything is acknowledged from before a recovery that was spurious: what seemed lost came late. False: nothing more is lost.
    fn was_all_late(&mut self, cx: &mut Context, arrived: &Arrived) -> bool {
        let una = self.snd.una;
        if let Some(board) = self.recovery.board_mut() {
            board.is_late(arrived.snd_una, una, (arrived.smss, cx.config.tcp_max_reordering));
        }
        cx.counters.ts_reorder += 1;
        Counts::of(&mut self.special, cx.now).reord_seen += 1;
        self.reopen();
        false
    }

    /// No recovery goes on.
    fn count_reports(&mut self, cx: &mut Context, arrived: &mut Arrived, duplicate: bool) {
        let progress = self.snd.una.after(arrived.snd_una);
        if let Some(board) = self.recovery.board_mut().filter(|_| progress) {
            board.forget_reported();
        }
        if duplicate {
            self.hear_duplicate(cx, arrived);
        }
    }

    fn judge_time_out(&mut self, cx: &mut Context, arrived: &mut Arrived, duplicate: bool, delayed: bool) {
        let (una, nxt) = (self.snd.una, self.snd.nxt);
        let progress = una.after(arrived.snd_una);
        if progress && delayed {
            // What is acknowledged need not be all: the recovery is not over yet.
            cx.counters.loss_undo += 1;
            return self.take_back(true);
        }
        let can_send = self.new_data_fits();
        let Some(board) = self.recovery.board_mut() else { return };
        let held = board.is_held(una);
        match board.judge_timeout(arrived, una, duplicate, can_send) {
            Timeout::Forward => {
                cx.counters.loss_undo += 1;
                cx.counters.spurious_rtos += 1;
                self.take_back(true);
            }
            Timeout::TryNew => {
                board.new_data_first = true;
                return self.snd.push_queued();
            }
            Timeout::Ends => {
                if delayed {
                    cx.counters.loss_undo += 1;
                    self.take_back(false);
                }
            }
            Timeout::Goes => {
                // Duplicates tell of new data that followed.
                if duplicate && nxt.after(board.point()) {
                    self.hear_duplicate(cx, arrived);
                } else if progress {
                    board.forget_reported();
                }
                return;
            }
        }
        if !held {
            self.reopen();
        }
    }

    fn was_delayed(&self, arrived: &Arrived) -> bool {
        let una = self.snd.una;
        let board = self.recovery.board();
        board.is_some_and(|board| {
            board.undo.is_some_and(|undo| undo.was_delayed(arrived.echo, !board.ends_by(una)))
        })
    }

    /// The recovery was spurious: the windows of before it come back. `unmark`: nothing is lost after all.
    fn take_back(&mut self, unmark: bool) {
        let una = self.snd.una;
        let Some(board) = self.recovery.board_mut() else { return };
        if unmark {
            board.unmark(&mut self.snd.queue, una);
        }
        if let Some((cwnd, ssthresh)) = board.undo.take().and_then(|undo| undo.windows) {
            self.congestion.on_undo(cwnd, ssthresh);
            self.ecn.on_undo();
        }
    }

    fn reopen(&mut self) {
        if let Some(board) = self.recovery.board_mut() {
            board.open();
        }
    }

    /// Enough duplicates, or a partial acknowledgement, mean that the first segment is lost (RFC 6582 §3.2). True if it is.
    fn find_reported_loss(&mut self, cx: &mut Context, arrived: &Arrived, progress: bool) -> bool {
        let (una, segment) = (self.snd.una, u32::from(self.segment_max()));
        if self.snd.queue.is_empty() {
            return false;
        }
        let Some(board) = self.recovery.board_mut() else { return false };
        let lost = match board.phase {
            Phase::Recovery => progress,
            Phase::Open | Phase::Reducing => board.enough_reported(arrived.smss),
            Phase::Loss => false,
        };
        if lost {
            board.lose_head(&mut self.snd.queue, una, segment);
        }
        let newly = board.take_lost();
        let repairs = board.repairs();
        if board.any_lost() && !repairs && (board.shrinks() || !self.repairs_lost_probe(cx)) {
            self.enter_recovery(cx, arrived.prior_pipe);
        }
        let more = !newly.is_empty();
        self.segments_lost(newly);
        if more && self.snd.fin_sent() && self.snd.queue.ends_lost() {
            // It was in the segment that is lost.
            self.snd.unsend_fin();
        }
        more
    }
}

impl Sender {
    /// RFC 5681 §2's five conditions.
    fn is_duplicate_ack(&self, segment: &Segment, window_changed: bool) -> bool {
        self.flight_size() > 0
            && segment.payload.is_empty()
            && !segment.has(Flags::SYN)
            && !segment.has(Flags::FIN)
            && segment.header.ack == self.una
            && !window_changed
    }
}
