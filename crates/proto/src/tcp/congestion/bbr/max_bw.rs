//! The bandwidth: the highest delivery rate of this probing cycle and the one before.

use super::{Bbr, Sample};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBw {
    this_cycle: u64,
    last_cycle: u64,
}

impl MaxBw {
    pub(super) fn get(&self) -> u64 {
        self.this_cycle.max(self.last_cycle)
    }

    fn update(&mut self, rate: u64) {
        self.this_cycle = self.this_cycle.max(rate);
    }

    /// A cycle is over. One without a sample is forgotten, not what was known.
    pub(super) fn advance(&mut self) {
        if self.this_cycle > 0 {
            (self.last_cycle, self.this_cycle) = (self.this_cycle, 0);
        }
    }
}

impl Bbr {
    /// UpdateMaxBw. What the application limited counts only if it is more than was known.
    pub(super) fn update_max_bw(&mut self, sample: &Sample) {
        if let Some(rate) = sample.rate.rate()
            && (!rate.app_limited || rate.per_second() >= self.max_bw.get())
        {
            self.max_bw.update(rate.per_second());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_of_two_cycles_counts() {
        let mut bw = MaxBw::default();
        [3, 9, 5].into_iter().for_each(|rate| bw.update(rate));
        bw.advance();
        bw.update(4);
        assert_eq!(bw.get(), 9);
        bw.advance();
        assert_eq!(bw.get(), 4);
        bw.advance();
        assert_eq!(bw.get(), 4, "a cycle without samples");
    }
}
