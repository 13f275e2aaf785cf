//! A connection asks when its next segment may leave.

use super::UNPACED_SEGMENTS;
use crate::tcp::congestion::Controller;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::rare::special::Special;
use crate::tcp::timers::Timer;
use crate::{Config, Instant};

impl Connection {
    /// Bytes per second at which data leaves; `None`: as fast as the window allows.
    #[inline]
    pub(crate) fn pacing_rate(&self, config: &Config) -> Option<u64> {
        if !config.pacing && self.options.max_pacing_rate.is_none() {
            return self.congestion.pacing_rate().map(|rate| rate.max(1));
        }
        self.paced_rate(config)
    }

    #[inline(never)]
    fn paced_rate(&self, config: &Config) -> Option<u64> {
        let most = self.options.max_pacing_rate.map_or(u64::MAX, u64::from);
        if let Some(rate) = self.congestion.pacing_rate() {
            return Some(rate.min(most).max(1));
        }
        let Some(rate) = self.window_rate(config) else { return (most != u64::MAX).then_some(most) };
        Some(rate.min(most).max(1))
    }

    /// Is the gate open? If not, its timer is set.
    pub(in crate::tcp) fn pacing_allows(&mut self, cx: &Context) -> bool {
        if self.is_held_back() {
            return false;
        }
        let pacer = self.special.as_ref().map(|special| &special.pacer);
        let Some(at) = pacer.and_then(|pacer| pacer.closed_until(cx.now)) else { return true };
        if self.pacing_rate(&cx.config).is_none() {
            return true;
        }
        self.timers.set(Timer::Pace, at);
        false
    }

    /// Is the gate closed because of what waits below the stack?
    pub(in crate::tcp) fn is_held_back(&self) -> bool {
        self.special.as_ref().is_some_and(|special| special.pacer.is_held) && self.snd.flight_size() > 0
    }

    /// Closes the gate for as long as something is in flight, or opens it again.
    pub(crate) fn hold_back(&mut self, now: Instant, held: bool) {
        if held || self.special.is_some() {
            Special::of(&mut self.special, now).pacer.is_held = held;
        }
    }

    /// The first segments are not paced (as in Linux).
    #[inline]
    pub(in crate::tcp) fn pace(&mut self, cx: &Context, bytes: u32) {
        if let Some(rate) = self.pacing_rate(&cx.config) {
            self.pace_at(cx, bytes, rate);
        }
    }

    #[inline(never)]
    fn pace_at(&mut self, cx: &Context, bytes: u32, rate: u64) {
        let segments = bytes.div_ceil(self.segment_max().into());
        let initial = self.tally.data_segs_out.wrapping_add(segments) < UNPACED_SEGMENTS;
        if !initial {
            // Not more than a quarter of the window at once.
            let slack = cx.config.pacing_slack.min(self.rtt.srtt().unwrap_or_default() / 4);
            // What left before there was a rate, or unpaced, did not leave the gate open.
            let moments = (self.window_use.last_sent_at().min(cx.now), cx.now);
            Special::of(&mut self.special, cx.now).pacer.on_sent(moments, bytes, rate, slack);
        }
    }
}
