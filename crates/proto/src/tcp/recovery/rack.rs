//! RACK (RFC 8985 §6): what was sent well before something that has been delivered is lost.

use super::arrived::Arrived;
use super::marks::Marks;
use crate::Instant;
use crate::tcp::send::send_queue::{Kind, SendQueue, TxSegment};
use core::time::Duration;
use wire::SeqNum;

/// Recoveries that a widened reordering window lasts (RFC 8985 §6.2 step 4).
const REO_WND_PERSIST: u8 = 16;
/// `tcp_recovery`: the window stays a quarter of the least RTT.
const STATIC_REO_WND: u32 = 0x2;
/// `tcp_recovery`: three segments beyond a hole do not make it a loss by themselves.
const NO_DUPTHRESH: u32 = 0x4;

/// The most recently sent segment that was delivered, and how far the path reorders.
#[derive(Debug)]
pub(super) struct Rack {
    xmit_at: Instant,
    end: SeqNum,
    rtt: Duration,
    /// A round trip was measured since last asked.
    pub(super) advanced: bool,
    /// End of the highest segment delivered (RACK.fack).
    pub(super) fack: SeqNum,
    pub(super) reordering_seen: bool,
    reo_wnd_mult: u16,
    reo_wnd_persist: u8,
    /// Until this is acknowledged, further D-SACKs tell of the same round.
    dsack_round: Option<SeqNum>,
    /// `loss_rules`: a D-SACK came since; and bytes delivered when the window last widened.
    dsack_seen: bool,
    widened_at: Option<u32>,
    /// Segments delivered beyond a hole that make it a loss (`tcp_reordering`, raised when reordering was farther).
    pub(super) dup_thresh: u32,
}

/// What the reordering window is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReoWindow {
    pub(in crate::tcp) min_rtt: Duration,
    pub(in crate::tcp) srtt: Duration,
    pub(in crate::tcp) smss: u32,
    /// `tcp_recovery`.
    pub(in crate::tcp) flags: u32,
}

impl Rack {
    pub(super) fn new(dup_thresh: u32, snd_una: SeqNum) -> Rack {
        Rack {
            xmit_at: Instant::ZERO,
            end: snd_una,
            rtt: Duration::ZERO,
            advanced: false,
            fack: snd_una,
            reordering_seen: false,
            reo_wnd_mult: 1,
            reo_wnd_persist: 0,
            dsack_round: None,
            dsack_seen: false,
            widened_at: None,
            dup_thresh,
        }
    }

    /// Steps 1 to 3: a segment was acknowledged or selectively acknowledged just now.
    pub(super) fn on_delivered(&mut self, segment: &TxSegment, arrived: &Arrived) {
        let last =
            Delivered { sent_at: segment.sent_at, end: segment.end(), again: segment.transmissions > 1 };
        self.hear_of(last, arrived);
    }

    /// Steps 1 to 3 for any transmission that was delivered, a FIN's too.
    pub(super) fn hear_of(&mut self, Delivered { sent_at, end, again }: Delivered, arrived: &Arrived) {
        if end.after(self.fack) {
            self.fack = end;
        }
        let rtt = arrived.now.since(sent_at);
        if again && (arrived.echoes_before(sent_at) || rtt < arrived.min_rtt) {
            // An earlier transmission was delivered: this says nothing about the last.
            return;
        }
        self.advanced = true;
        let later = sent_after((sent_at, end), (self.xmit_at, self.end));
        if later || arrived.rtt_of_last {
            self.rtt = rtt;
        }
        if later {
            (self.xmit_at, self.end) = (sent_at, end);
        }
    }

    /// Something of ours was delivered twice: perhaps the window was too small. Once per round.
    pub(super) fn on_dsack(&mut self, snd_nxt: SeqNum) {
        if self.dsack_round.is_none() {
            self.dsack_round = Some(snd_nxt);
            self.reo_wnd_mult = self.reo_wnd_mult.saturating_add(1);
            self.reo_wnd_persist = REO_WND_PERSIST;
        }
    }

    /// A D-SACK arrived: the next ACK that delivers something widens the reordering window.
    pub(super) fn note_dsack(&mut self) {
        self.dsack_seen = true;
    }

    /// An ACK reported something that had been sent when `before` bytes were delivered; `delivered` are by now (Linux's
    /// `tcp_rack_update_reo_wnd`).
    pub(super) fn widen(&mut self, (delivered, before): (u32, u32)) {
        // Dropped with its round: two gigabytes later it would seem to lie ahead.
        self.widened_at = self.widened_at.filter(|at| (before.wrapping_sub(*at) as i32) < 0);
        if core::mem::take(&mut self.dsack_seen) && self.widened_at.is_none() {
            self.reo_wnd_mult = self.reo_wnd_mult.saturating_add(1);
            self.reo_wnd_persist = REO_WND_PERSIST;
            self.widened_at = Some(delivered);
        }
    }

    /// D-SACKs show that a recovery was spurious which has counted for the window already.
    pub(super) fn on_spurious(&mut self) {
        self.reo_wnd_persist = (self.reo_wnd_persist + 1).min(REO_WND_PERSIST);
    }

    pub(super) fn on_progress(&mut self, snd_una: SeqNum) {
        self.dsack_round = self.dsack_round.filter(|round| snd_una.before(*round));
    }

    pub(super) fn on_recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// Has anything been learnt that outlasts a recovery?
    pub(super) fn is_plain(&self) -> bool {
        !self.reordering_seen && self.reo_wnd_mult == 1
    }

    /// Step 4: how much later than expected a segment may come.
    pub(super) fn reo_wnd(
        &self,
        queue: &SendQueue,
        snd_una: SeqNum,
        recovering: bool,
        how: &ReoWindow,
    ) -> Duration {
        if !self.reordering_seen {
            let enough =
                || how.flags & NO_DUPTHRESH == 0 && self.dup_thresh_reached(queue, snd_una, how.smss);
            if recovering || enough() {
                return Duration::ZERO;
            }
        }
        let mult = if how.flags & STATIC_REO_WND != 0 { 1 } else { u32::from(self.reo_wnd_mult) };
        (how.min_rtt / 4).saturating_mul(mult).min(how.srtt)
    }

    /// At a time-out: was this sent so lately that its acknowledgement may still come (RFC 8985 §6.3)?
    pub(super) fn may_come(
        &self,
        segment: &TxSegment,
        now: Instant,
        reo_wnd: Duration,
        srtt: Duration,
    ) -> bool {
        let rtt = if self.rtt.is_zero() { srtt } else { self.rtt };
        segment.sent_at + rtt + reo_wnd > now
    }

    fn dup_thresh_reached(&self, queue: &SendQueue, snd_una: SeqNum, smss: u32) -> bool {
        let mut segments = 0;
        queue.of_kind(Kind::Sacked, snd_una).any(|segment| {
            segments += segment.len.div_ceil(smss);
            segments >= self.dup_thresh
        })
    }

    /// Step 5 of RFC 8985 §6.2: "RACK considers that segment lost if another segment that was sent later has been delivered and the reordering
    /// window has passed." Returns how long to wait until something else would be.
    pub(super) fn detect(
        &self,
        queue: &mut SendQueue,
        marks: &mut Marks,
        (snd_una, snd_nxt): (SeqNum, SeqNum),
        recovering: bool,
        (now, how): (Instant, &ReoWindow),
    ) -> Option<Duration> {
        let reo_wnd = self.reo_wnd(queue, snd_una, recovering, how);
        let remaining = |sent| self.remaining(sent, reo_wnd, now);
        let is_late = |sent| remaining(sent) == Some(Duration::ZERO);
        let is_late_in_flight =
            |segment: &TxSegment| segment.seq.before(snd_nxt) && is_late(segment.transmission());
        queue.mark_each(Kind::Fresh, snd_una, is_late_in_flight, |segment| marks.lose(segment));
        queue.lose_resent(is_late, |segment| marks.lose(segment));
        // The last sent of those that were overtaken and are not late yet.
        let is_overtaken =
            |segment: &TxSegment| segment.seq.before(snd_nxt) && remaining(segment.transmission()).is_some();
        let once = queue.last_overtaken(is_overtaken).map(TxSegment::transmission);
        let again = queue.last_resent_before((self.xmit_at, self.end));
        once.and_then(remaining).max(again.and_then(remaining))
    }

    /// How long that transmission, which ended there, may yet take to be reported. Zero: it is lost. `None`: nothing sent after it was delivered.
    pub(super) fn remaining(
        &self,
        sent: (Instant, SeqNum),
        reo_wnd: Duration,
        now: Instant,
    ) -> Option<Duration> {
        let overtaken = sent_after((self.xmit_at, self.end), sent);
        overtaken.then(|| (sent.0 + self.rtt + reo_wnd).since(now))
    }
}

/// The last transmission of something that was delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    pub(super) sent_at: Instant,
    /// The number behind it.
    pub(super) end: SeqNum,
    /// It was not the first.
    pub(super) again: bool,
}

/// Was the first sent after the second? What was sent at the same time went in order.
fn sent_after(first: (Instant, SeqNum), second: (Instant, SeqNum)) -> bool {
    first.0 > second.0 || (first.0 == second.0 && second.1.before(first.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// `loss_rules`: 5000 bytes are delivered when a D-SACK widens the window. The next counts if an ACK tells of what was sent
    /// later, and else not at all. Otherwise a round lasts until what was outstanding is acknowledged.
    #[test]
    fn the_window_widens_once_a_round() {
        const FAR: u32 = 9000 + (1 << 31) + 1;
        let mut rack = Rack::new(3, SeqNum(0));
        let mut widths = Vec::new();
        for (dsack, delivered, before) in [
            (true, 5000, 1000),
            (true, 6000, 4999),
            (false, 9000, 6000),
            (true, 9000, 5000),
            (false, 9500, 9000),
            (true, FAR, FAR),
        ] {
            if dsack {
                rack.note_dsack();
            }
            rack.widen((delivered, before));
            widths.push(rack.reo_wnd_mult);
        }
        assert_eq!(widths, [2, 2, 2, 3, 3, 4], "the last two gigabytes later");
        let mut rack = Rack::new(3, SeqNum(0));
        let widths = [0, 9_999, 10_000].map(|una| {
            rack.on_progress(SeqNum(una));
            rack.on_dsack(SeqNum(10_000));
            rack.reo_wnd_mult
        });
        assert_eq!(widths, [2, 2, 3]);
    }
}
