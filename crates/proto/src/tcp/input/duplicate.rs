//! What an ACK tells a sender whose peer has no SACK: duplicates, and whether a recovery was spurious.

use super::Segment;
use crate::tcp::congestion::{Controller, Lost};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::recovery::{Duplicate, Spurious, Verdict};
use wire::Flags;

impl Connection {
    /// RFC 5681 §2's five conditions.
    pub(super) fn is_duplicate_ack(&self, segment: &Segment, window_changed: bool) -> bool {
        self.snd.flight_size() > 0
            && segment.payload.is_empty()
            && !segment.has(Flags::SYN)
            && !segment.has(Flags::FIN)
            && segment.header.ack == self.snd.una
            && !window_changed
    }

    pub(super) fn on_duplicate_ack(&mut self, cx: &mut Context) {
        let duplicate = Duplicate {
            snd_una: self.snd.una,
            snd_max: self.snd.max,
            cwnd: self.congestion.cwnd(),
            smss: u32::from(self.smss()),
            max_reordering: cx.config.tcp_max_reordering,
        };
        let before = (self.congestion.cwnd(), self.congestion.ssthresh());
        let (verdict, reordered) =
            self.recovery.on_duplicate(&duplicate, || cx.first_reordering(&self.tuple));
        cx.counters.reno_reorder += u64::from(reordered);
        match verdict {
            Verdict::Loss if self.mtu_probe_is_lost(cx) => {}
            Verdict::Loss => {
                cx.counters.reno_recovery += 1;
                // RFC 5681 §3.2, step 2: "additional data sent in limited transmit MUST NOT be included in this calculation."
                let in_flight = self.reduction_base(cx, self.in_flight().min(before.0));
                self.recovery_begins(
                    cx,
                    &Lost { in_flight, smss: duplicate.smss, timeout: false, left: 0, again: false },
                );
                if self.congestion.starts_over() {
                    return self.lose_everything(cx);
                }
                let head = self.snd.queue.sent_in(self.snd.una, self.snd.una + duplicate.smss);
                self.segments_lost(head);
                self.recovery.remember(before, self.snd.una);
            }
            Verdict::Resend => self.snd.rewind(),
            Verdict::Open | Verdict::Recovering => {}
        }
    }

    /// An ACK makes progress: does it show that the recovery was spurious? Then the windows of before it come back (RFC 4015 §3), and
    /// what a time-out was about to repeat is not retransmitted.
    pub(super) fn undo_without_sack(&mut self, cx: &mut Context, segment: &Segment) {
        let echo = segment.header.options.timestamps.filter(|_| self.agreed.timestamps);
        let echo = echo.map(|timestamps| timestamps.tsecr.wrapping_sub(self.ts_offset));
        let una = self.snd.una;
        let Some(why) = self.recovery.spurious_without_sack(una, echo) else { return };
        let most = cx.config.tcp_max_reordering;
        let Some((undo, resending, reordered)) = self.recovery.reopen_without_sack(una, most) else {
            return;
        };
        *match resending {
            true => &mut cx.counters.loss_undo,
            false if segment.header.ack.after_or_eq(self.snd.nxt) => &mut cx.counters.full_undo,
            false => &mut cx.counters.partial_undo,
        } += 1;
        cx.counters.spurious_rtos += u64::from(why == Spurious::ForwardProgress);
        cx.counters.ts_reorder += u64::from(reordered);
        if let Some((cwnd, ssthresh)) = undo.windows {
            self.congestion.on_undo(cwnd, ssthresh);
            self.ecn.on_undo();
        }
        self.snd.skip_to_max();
    }

    /// After an ACK that made progress: F-RTO's second step, if something new may go (RFC 5682 §2.1 step 2). A window that takes less than a
    /// segment would leave the lost ones waiting for the next time-out.
    pub(super) fn try_forward(&mut self, cx: &Context) {
        let (end, max) = (self.snd.queue.end(), self.snd.max);
        let new = if end.after(max) { end.since(max) } else { 0 };
        let room = self.snd.wnd.saturating_sub(self.snd.max.since(self.snd.una));
        let segment = u32::from(self.segment_max());
        let fits = room >= segment.min(new) && (new >= segment || self.small_may_go(new));
        if self.recovery.tries_forward(self.snd.una, new > 0 && fits) {
            self.snd.skip_to_max();
            self.arm_rto(cx.now);
        }
    }
}
