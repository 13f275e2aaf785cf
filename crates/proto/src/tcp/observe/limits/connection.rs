//! What limits a connection, looked at after each change.

use super::{LimitedBy, SenderLimits, timed};
use crate::Instant;
use crate::tcp::connection::Connection;
use crate::tcp::rare::special::Special;
use crate::tcp::timers::Timer;

impl SenderLimits {
    pub(crate) fn of(connection: &Connection) -> SenderLimits {
        SenderLimits {
            by: connection.limited_by,
            busy: connection.busy,
            clocks: connection.special.as_ref().map(|special| special.clocks.clone()).unwrap_or_default(),
            established_at: connection.established_at(),
        }
    }
}

impl Connection {
    /// To be called when nothing more can be sent now.
    #[inline(always)]
    pub(crate) fn note_limit(&mut self, now: Instant) {
        let by = self.limited_by();
        if by != self.limited_by {
            self.switch_limit(by, now);
        }
    }

    /// Records what limits the sender after an ordinary segment: all that was written is in flight.
    pub(crate) fn note_all_has_left(&mut self, now: Instant) {
        if self.limited_by == LimitedBy::Idle && !self.writer_waits {
            self.limited_by = LimitedBy::Application;
            self.busy.switch(LimitedBy::Idle, LimitedBy::Application, now);
        } else {
            self.note_limit(now);
        }
    }

    #[inline]
    fn switch_limit(&mut self, by: LimitedBy, now: Instant) {
        let before = core::mem::replace(&mut self.limited_by, by);
        self.busy.switch(before, by, now);
        if timed(before).is_some() || timed(by).is_some() {
            self.switch_clocks(before, now);
        }
    }

    #[inline(never)]
    fn switch_clocks(&mut self, before: LimitedBy, now: Instant) {
        Special::of(&mut self.special, now).clocks.switch(before, now);
    }

    #[inline]
    fn limited_by(&self) -> LimitedBy {
        if self.snd.queue.is_empty() && !self.snd.fin_queued() {
            return LimitedBy::Idle;
        }
        let unsent = self.snd.unsent();
        if unsent == 0 && self.snd.flight_size() == 0 {
            return LimitedBy::Idle;
        }
        if unsent == 0 && self.handshake.is_none() && !self.writer_waits && self.recovery.is_idle() {
            return LimitedBy::Application;
        }
        self.held_back_by(unsent)
    }

    /// By what, if anything is unsent or unacknowledged?
    #[inline(never)]
    fn held_back_by(&self, unsent: u32) -> LimitedBy {
        if self.handshake.is_some() {
            return LimitedBy::Handshake;
        }
        if unsent == 0 && !self.writer_waits && !self.recovery.resending_waits() {
            return LimitedBy::Application;
        }
        let segment = u32::from(self.segment_max());
        let next = if unsent == 0 { segment } else { unsent.min(segment) };
        let small = if unsent < segment { unsent } else { 0 };
        let waits = if unsent == 0 { self.recovery.resending_waits() } else { self.small_may_go(small) };
        if self.timers.is_set(Timer::Pace) || self.congestion_window().saturating_sub(self.pipe()) < next {
            LimitedBy::Congestion
        } else if self.snd.wnd.saturating_sub(self.snd.flight_size()) < next {
            LimitedBy::Receiver
        } else if waits && self.is_held_back() {
            LimitedBy::Device
        } else if unsent == 0 {
            LimitedBy::SendBuffer
        } else {
            LimitedBy::Application
        }
    }
}
