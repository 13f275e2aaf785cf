//! What an ACK tells a sender whose peer has SACK: which segments are there, which are lost, and when recovery begins and ends.

use super::Segment;
use crate::Instant;
use crate::tcp::congestion::{Controller, Lost};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::recovery::{Arrived, Phase, Purpose, ReoWindow, dsack};
use crate::tcp::timers::Timer;
use core::time::Duration;

impl Connection {
    /// Reads the blocks of an ACK. `None` while everything is in order: then there is nothing to keep.
    pub(super) fn read_sack(&mut self, cx: &mut Context<'_>, segment: &Segment) -> Option<Arrived> {
        let options = &segment.header.options;
        if !self.agreed.sack || (options.sack.is_empty() && self.recovery.board.is_none()) {
            return None;
        }
        let echo = options.timestamps.filter(|_| self.agreed.timestamps);
        let echo = echo.map(|timestamps| timestamps.tsecr.wrapping_sub(self.ts_offset));
        let min_rtt = self.rtt.min_rtt().unwrap_or_default();
        let smss = u32::from(self.smss());
        let span = (self.snd.una, self.snd.nxt);
        let board = self.recovery.board(cx.config, span.0);
        let mut arrived = board.arrival((cx.now, echo, min_rtt), span, smss);
        let duplicate = dsack(&options.sack, segment.header.ack);
        let blocks = &options.sack[usize::from(duplicate.is_some())..];
        if let Some((_, end)) = duplicate {
            cx.counters.dsack_recv += 1;
            cx.counters.dsack_ofo_recv += u64::from(end.after(segment.header.ack));
            board.on_dsack(span.1);
        }
        let senseless = board.read(&mut self.snd.queue, blocks, &mut arrived);
        cx.counters.sack_discard += u64::from(senseless);
        Some(arrived)
    }

    /// After the cumulative acknowledgement: is a recovery over, is more lost, how much may go?
    pub(super) fn recover(&mut self, cx: &mut Context<'_>, arrived: &Arrived) {
        let una = self.snd.una;
        let progress = una.after(arrived.snd_una);
        let Some(board) = &mut self.recovery.board else { return };
        if board.note_reordering(cx.config, arrived) {
            cx.counters.sack_reorder += 1;
        }
        if progress {
            board.on_progress(una);
        } else if let Some(sent_at) = arrived.sacked_sent_at {
            self.rtt.on_sample(cx.now.since(sent_at));
        }
        let more_lost = self.find_losses(cx, arrived.prior_pipe);
        self.reduce_window(arrived.delivered, progress && !more_lost);
        self.recovery.board.take_if(|board| board.is_over());
    }

    /// A segment that might only have been reordered did not come in time.
    pub(crate) fn reordering_timeout(&mut self, cx: &mut Context<'_>) {
        let pipe = self.pipe();
        self.find_losses(cx, pipe);
        self.reduce_window(0, false);
        if !self.timers.is_set(Timer::Retransmit) {
            self.arm_rto(cx.now);
        }
    }

    /// Marks what is lost by now, and enters recovery for it. True if there was more.
    fn find_losses(&mut self, cx: &mut Context<'_>, prior_pipe: u32) -> bool {
        let how = ReoWindow {
            min_rtt: self.rtt.min_rtt().unwrap_or_default(),
            srtt: self.rtt.srtt().unwrap_or_default(),
            smss: u32::from(self.smss()),
            flags: cx.config.tcp_recovery,
        };
        let Some(board) = &mut self.recovery.board else { return false };
        let before = board.pipe(self.snd.flight_size());
        let wait = board.detect(&mut self.snd.queue, (self.snd.una, self.snd.nxt), cx.now, &how);
        cx.counters.lost_retransmit += u64::from(board.take_lost_retransmits());
        let more = board.pipe(self.snd.flight_size()) < before;
        if more && board.phase == Phase::Open {
            self.enter_recovery(cx, prior_pipe);
        }
        if more && self.snd.fin_sent() && self.snd.queue.ends_lost() {
            // It was in the segment that is lost.
            self.snd.unsend_fin();
        }
        if let Some(wait) = wait {
            self.wait_for_reordered(cx.now, wait);
        }
        more
    }

    /// RFC 6675 §5 step 4; the window shrinks by proportional rate reduction.
    fn enter_recovery(&mut self, cx: &mut Context<'_>, in_flight: u32) {
        let smss = u32::from(self.smss());
        self.congestion.on_loss(&Lost { in_flight, smss, timeout: false });
        cx.counters.sack_recovery += 1;
        if let Some(board) = &mut self.recovery.board {
            board.begin_recovery(self.snd.nxt, in_flight, self.congestion.cwnd());
        }
    }

    fn reduce_window(&mut self, delivered: u32, safe: bool) {
        let (flight_size, smss) = (self.snd.flight_size(), u32::from(self.smss()));
        if let Some(board) = &mut self.recovery.board
            && board.phase == Phase::Recovery
        {
            board.reduce(delivered, flight_size, safe, smss);
        }
    }

    fn wait_for_reordered(&mut self, now: Instant, wait: Duration) {
        let at = now + wait;
        if at < self.timers.deadline(Timer::Retransmit) {
            self.timers.set(Timer::Retransmit, at);
            self.recovery.purpose = Purpose::Reordering;
        }
    }

    /// Whatever is in flight is held to be lost, and goes again: after a time-out, or when it was too big for the path.
    pub(crate) fn lose_everything(&mut self, cx: &mut Context<'_>) {
        if !self.agreed.sack {
            self.recovery.on_timeout(self.snd.max);
            return self.snd.rewind();
        }
        self.snd.unsend_fin();
        let (una, nxt) = (self.snd.una, self.snd.nxt);
        if self.recovery.board(cx.config, una).on_timeout(&mut self.snd.queue, una, nxt) {
            cx.counters.sack_reneging += 1;
        }
    }

    /// Bytes thought to be in the network.
    pub(crate) fn pipe(&self) -> u32 {
        self.recovery.pipe(self.snd.flight_size())
    }

    /// Starts the retransmission timer anew (RFC 6298 §5).
    pub(crate) fn arm_rto(&mut self, now: Instant) {
        self.recovery.purpose = Purpose::Timeout;
        self.timers.set(Timer::Retransmit, now + self.rtt.rto());
    }
}
