//! The bands of an fq: each with its new and old flows, served by weighted deficit round robin.
use crate::pfifo_fast::{PRIOMAP, TC_PRIO_MAX};
use alloc::collections::VecDeque;

const BANDS: usize = 3;
/// Bytes a band sends in its turn (`FQ_MIN_WEIGHT` and its multiples in `fq_init`).
const WEIGHTS: [i64; BANDS] = [589_824, 196_608, 65_536];

#[derive(Clone, Debug)]
pub(super) struct Bands {
    bands: [Band; BANDS],
    /// Whose turn it is.
    turn: usize,
}

#[derive(Clone, Debug, Default)]
struct Band {
    new_flows: VecDeque<u32>,
    old_flows: VecDeque<u32>,
    credit: i64,
    packets: usize,
}

impl Default for Bands {
    fn default() -> Bands {
        let band = |weight| Band { credit: weight, ..Band::default() };
        Bands { bands: WEIGHTS.map(band), turn: 0 }
    }
}

impl Bands {
    /// Linux's priomap, the same as pfifo_fast's.
    pub(super) fn of_priority(priority: u32) -> usize {
        usize::from(PRIOMAP[(priority & TC_PRIO_MAX) as usize])
    }

    pub(super) fn packets(&self, band: usize) -> usize {
        self.bands[band].packets
    }

    pub(super) fn count(&mut self, band: usize, change: isize) {
        let packets = &mut self.bands[band].packets;
        *packets = packets.saturating_add_signed(change);
    }

    pub(super) fn add_new(&mut self, band: usize, flow: u32) {
        self.bands[band].new_flows.push_back(flow);
    }

    pub(super) fn add_old(&mut self, band: usize, flow: u32) {
        self.bands[band].old_flows.push_back(flow);
    }

    /// The flow whose turn it is, and whether it is a new one. A band without flows, or that has sent its share, passes on.
    pub(super) fn next(&mut self) -> Option<(u32, bool)> {
        // Twice round: once for bands that must be given credit first.
        for _ in 0..=2 * BANDS {
            let band = &mut self.bands[self.turn];
            if band.credit > 0 {
                if let Some(flow) = band.new_flows.front() {
                    return Some((*flow, true));
                }
                if let Some(flow) = band.old_flows.front() {
                    return Some((*flow, false));
                }
            }
            self.turn = (self.turn + 1) % BANDS;
            let weight = WEIGHTS[self.turn];
            let band = &mut self.bands[self.turn];
            band.credit = (band.credit + weight).min(weight);
        }
        None
    }

    /// Takes the flow whose turn it is out of its list.
    pub(super) fn remove_head(&mut self, new: bool) {
        let band = &mut self.bands[self.turn];
        if new {
            band.new_flows.pop_front()
        } else {
            band.old_flows.pop_front()
        };
    }

    /// A packet of the band whose turn it is has been sent.
    pub(super) fn spend(&mut self, bytes: u32) {
        self.bands[self.turn].credit -= i64::from(bytes);
    }
}
