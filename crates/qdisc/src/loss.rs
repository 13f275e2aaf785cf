//! Which packets are lost on the way.
use crate::{Probability, Rng};

/// The loss model of a link.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Loss {
    /// It does not.
    #[default]
    None,
    /// Each packet for itself (netem `loss random`).
    Random(Probability),
    /// Every n-th packet: the n-th, the 2n-th, …; 0 loses nothing.
    Every(u64),
    /// In bursts (netem `loss gemodel`).
    Bursts(GilbertElliott),
}

/// Gilbert and Elliott's two-state model of bursts: the state may change with each packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability of going from good to bad.
    pub good_to_bad: Probability,
    /// Probability of going from bad to good; a burst lasts 1 / this many packets on average.
    pub bad_to_good: Probability,
    /// Loss while good.
    pub loss_good: Probability,
    /// Loss while bad.
    pub loss_bad: Probability,
}

/// Where a [`Loss`] stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossState {
    /// Packets offered so far.
    pub(crate) offered: u64,
    bursts: GilbertState,
}

/// Where Gilbert's and Elliott's model stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct GilbertState {
    bad: bool,
}

impl GilbertState {
    /// Is the next packet lost? As in netem the present state decides, and may then change (`loss_gilb_ell`).
    pub(crate) fn is_lost(&mut self, model: &GilbertElliott, rng: &mut Rng) -> bool {
        let (change, loss) = match self.bad {
            false => (model.good_to_bad, model.loss_good),
            true => (model.bad_to_good, model.loss_bad),
        };
        self.bad ^= rng.chance(change);
        rng.chance(loss)
    }
}

impl LossState {
    /// Counts one more packet and says whether it is lost.
    pub(crate) fn is_lost(&mut self, loss: &Loss, rng: &mut Rng) -> bool {
        self.offered += 1;
        match loss {
            Loss::None => false,
            Loss::Random(p) => rng.chance(*p),
            Loss::Every(n) => *n != 0 && self.offered.is_multiple_of(*n),
            Loss::Bursts(model) => self.bursts.is_lost(model, rng),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn lost(loss: &Loss, count: u64) -> Vec<u64> {
        let (mut state, mut rng) = (LossState::default(), Rng::new(42));
        (1..=count).filter(|_| state.is_lost(loss, &mut rng)).collect()
    }

    #[test]
    fn every_third() {
        assert_eq!(lost(&Loss::Every(3), 10), [3, 6, 9]);
        assert!(lost(&Loss::Every(0), 10).is_empty());
        assert!(lost(&Loss::None, 10).is_empty());
    }

    #[test]
    fn bursts_have_the_models_length_and_rate() {
        let model = GilbertElliott {
            good_to_bad: Probability::percent(1.0),
            bad_to_good: Probability::percent(20.0),
            loss_good: Probability::ZERO,
            loss_bad: Probability::ONE,
        };
        let lost = lost(&Loss::Bursts(model), 200_000);
        let bursts = 1 + lost.windows(2).filter(|w| w[1] != w[0] + 1).count();
        // Stationary share of bad: 1 / (1 + 20) = 4.76 %; mean burst: 5 packets.
        let share = lost.len() as f64 / 200_000.0;
        assert!((0.043..0.052).contains(&share), "{share}");
        let mean = lost.len() as f64 / bursts as f64;
        assert!((4.6..5.4).contains(&mean), "{mean}");
    }
}
