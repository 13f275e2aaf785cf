//! The older HyStart (Ha and Rhee, 2011), as Linux has it: slow start ends at once, when the acknowledgements of a round come in an ACK train
//! as long as half of the least delay (of all of it where pacing spreads them), or when the round's delay has grown by an eighth.

use super::super::{FullPath, RoundTrip};
use wire::SeqNum;

/// From this window on; acknowledgements no further apart are one ACK train; a round's delay needs so many samples, and growth between
/// these bounds (`hystart_low_window`, `hystart_ack_delta_us`, `HYSTART_MIN_SAMPLES`, `HYSTART_DELAY_MIN`, `_MAX`).
const LOW_WINDOW: u32 = 16;
const TRAIN_GAP_MICROS: u32 = 2000;
const MIN_SAMPLES: u8 = 8;
const DELAY_GROWTH_MICROS: (u32, u32) = (4_000, 16_000);
/// What bursts of the device may add to an ACK train (`hystart_ack_delay`, at rates below 2 Gbit/s).
const BURST_MICROS: u32 = 1000;

/// Moments and delays are microseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    begun_at: u32,
    last_at: u32,
    /// The round ends when more than this is acknowledged.
    end: Option<SeqNum>,
    /// Least of the round.
    delay: u32,
    samples: u8,
    /// The path was found to be full.
    found: bool,
}

impl Search {
    /// A round trip, of `delay` where the least was `least_delay`, with such a window in segments.
    pub(super) fn look(&mut self, sample: &RoundTrip, delay: u32, least_delay: u32, window: u32) -> FullPath {
        if self.found {
            return FullPath::default();
        }
        let now = (sample.now.as_nanos() / 1000) as u32;
        // An end of two gigabytes ago seems to lie ahead.
        if self.end.is_none_or(|end| sample.una.after(end) || end.after(sample.nxt)) {
            *self = Search {
                begun_at: now,
                last_at: now,
                end: Some(sample.nxt),
                delay: u32::MAX,
                ..Search::default()
            };
        }
        if window < LOW_WINDOW {
            return FullPath::default();
        }
        let found = self.signs(sample.paced, now, delay, least_delay);
        self.found = found.train || found.delay;
        found
    }

    fn signs(&mut self, paced: bool, now: u32, delay: u32, least_delay: u32) -> FullPath {
        let mut found = FullPath::default();
        if now.wrapping_sub(self.last_at) <= TRAIN_GAP_MICROS {
            self.last_at = now;
            let longest = least_delay.saturating_add(BURST_MICROS) >> u32::from(!paced);
            found.train = now.wrapping_sub(self.begun_at) > longest;
        }
        self.delay = self.delay.min(delay);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return found;
        }
        let (least, most) = DELAY_GROWTH_MICROS;
        found.delay = self.delay > least_delay.saturating_add((least_delay / 8).clamp(least, most));
        found
    }
}
