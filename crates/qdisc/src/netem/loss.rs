//! Which packets are lost, doubled, corrupted or reordered: with a memory of what was drawn before.
use crate::loss::GilbertState;
use crate::{GilbertElliott, Probability, Rng};

/// A probability whose draws are like the ones before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Correlated {
    /// Loss probability.
    pub probability: Probability,
    /// Weight of the previous draw.
    pub correlation: Probability,
}

impl Correlated {
    /// Never.
    pub const NEVER: Correlated =
        Correlated { probability: Probability::ZERO, correlation: Probability::ZERO };
}

/// netem's models of loss.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum NetemLoss {
    /// None.
    #[default]
    None,
    /// Each packet for itself, or like the one before.
    Random(Correlated),
    /// Four states.
    State(FourStates),
    /// Gilbert's and Elliott's two.
    Gemodel(GilbertElliott),
}

/// The four-state model (Salsano, Ludovici, Ordine, Giannuzzi). Its states are: received in a gap
/// (1), received in a burst (2), lost in a burst (3), lost in a gap (4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FourStates {
    /// A burst begins.
    pub p13: Probability,
    /// A burst ends.
    pub p31: Probability,
    /// A packet of a burst is received.
    pub p32: Probability,
    /// After such a packet one is lost.
    pub p23: Probability,
    /// A single packet is lost in a gap.
    pub p14: Probability,
}

/// A correlated draw with its memory (`struct crndstate`).
#[derive(Clone, Debug, Default)]
pub(super) struct Chance {
    probability: Probability,
    correlation: Probability,
    last: u32,
}

impl Chance {
    pub(super) fn new(probability: Probability, correlation: Probability, rng: &mut Rng) -> Chance {
        Chance { probability, correlation, last: rng.next_u32() }
    }

    pub(super) fn of(chance: Correlated, rng: &mut Rng) -> Chance {
        Chance::new(chance.probability, chance.correlation, rng)
    }

    /// 32 bits, a mixture of new ones and the last (`get_crandom`).
    pub(super) fn draw(&mut self, rng: &mut Rng) -> u32 {
        let fresh = rng.next_u32();
        if self.correlation.is_zero() {
            return fresh;
        }
        let (rho, one) = (u128::from(self.correlation.threshold()), u128::from(Probability::ONE.threshold()));
        let mixed = (u128::from(fresh) * (one - rho) + u128::from(self.last) * rho) >> 32;
        self.last = mixed as u32;
        self.last
    }

    pub(super) fn occurs(&mut self, rng: &mut Rng) -> bool {
        !self.probability.is_zero() && u64::from(self.draw(rng)) < self.probability.threshold()
    }
}

/// A model with its state.
#[derive(Clone, Debug, Default)]
pub(super) enum LossModel {
    #[default]
    None,
    Random(Chance),
    State(FourStates, State),
    Gemodel(GilbertElliott, GilbertState),
}

/// Where the four-state model stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    ReceivedInGap,
    ReceivedInBurst,
    LostInBurst,
    LostInGap,
}

impl LossModel {
    pub(super) fn new(loss: NetemLoss, rng: &mut Rng) -> LossModel {
        match loss {
            NetemLoss::None => LossModel::None,
            NetemLoss::Random(chance) => LossModel::Random(Chance::of(chance, rng)),
            NetemLoss::State(model) => LossModel::State(model, State::ReceivedInGap),
            NetemLoss::Gemodel(model) => LossModel::Gemodel(model, GilbertState::default()),
        }
    }

    pub(super) fn is_lost(&mut self, rng: &mut Rng) -> bool {
        match self {
            LossModel::None => false,
            LossModel::Random(chance) => chance.occurs(rng),
            LossModel::Gemodel(model, state) => state.is_lost(model, rng),
            LossModel::State(model, state) => {
                let drawn = u64::from(rng.next_u32());
                *state = model.next(*state, drawn);
                matches!(state, State::LostInBurst | State::LostInGap)
            }
        }
    }
}

impl FourStates {
    /// The next state (`loss_4state`).
    fn next(&self, state: State, drawn: u64) -> State {
        let below = |p: Probability| drawn < p.threshold();
        let either = |a: Probability, b: Probability| drawn < a.threshold() + b.threshold();
        match state {
            State::ReceivedInGap if below(self.p14) => State::LostInGap,
            State::ReceivedInGap if either(self.p14, self.p13) => State::LostInBurst,
            State::ReceivedInGap | State::LostInGap => State::ReceivedInGap,
            State::ReceivedInBurst if below(self.p23) => State::LostInBurst,
            State::ReceivedInBurst => State::ReceivedInBurst,
            State::LostInBurst if below(self.p32) => State::ReceivedInBurst,
            State::LostInBurst if either(self.p32, self.p31) => State::ReceivedInGap,
            State::LostInBurst => State::LostInBurst,
        }
    }
}
