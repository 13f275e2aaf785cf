//! What worlds have been given since their draws were first written down: it is drawn apart, so
//! that the others are the worlds they were.

use super::{Connection, End, Intensity, Opt, Scenario, Step};
use crate::Random;
use proto::CongestionControl;

/// Keeps it apart from what every world draws.
const ADDED: u64 = 0x2545_f491_4f6c_dd1d;

impl Scenario {
    /// A world of all that is drawn.
    pub(super) fn with_additions(mut self, intensity: Intensity) -> Scenario {
        let random = &mut Random(self.seed ^ ADDED);
        let listener_asks = asks_for_much(&self.listener.options);
        for plan in &mut self.connections {
            if random.chance(15) && !listener_asks && can_converse(plan) {
                converse(random, plan);
            }
        }
        if intensity == Intensity::Defaults {
            return self;
        }
        for host in &mut self.hosts {
            if random.chance(5) {
                let congestion = random.pick(CongestionControl::ALL);
                host.route.push(format!("congctl {congestion:?}").to_lowercase());
            }
            if random.chance(1) {
                host.route.push(random.pick(&["blackhole", "unreachable", "prohibit"]).to_owned());
            }
        }
        self.signed = random.chance(3);
        self
    }
}

/// `SO_RCVLOWAT`: the application is not told of less, and waits for ever if the other end waits
/// for its answer.
fn asks_for_much(options: &[Opt]) -> bool {
    options.iter().any(asks)
}

fn asks(option: &Opt) -> bool {
    option.0 == "recv_lowat" && option.1 > 1
}

fn can_converse(plan: &Connection) -> bool {
    let asks_later =
        |end: &End| end.steps.iter().any(|step| matches!(step, Step::Set(option) if asks(option)));
    !plan.fin && !asks_for_much(&plan.ends[0].options) && !plan.ends.iter().any(asks_later)
}

/// Both ends take turns: before an end writes on, it reads all that the other has written before.
fn converse(random: &mut Random, plan: &mut Connection) {
    let mut left = plan.ends.each_mut().map(|end| {
        end.steps.retain(|step| !matches!(step, Step::Await(_)));
        std::mem::take(&mut end.steps).into_iter().peekable()
    });
    let mut said = [u64::from(plan.first_bytes), 0];
    while left.iter_mut().any(|steps| steps.peek().is_some()) {
        let side = random.below(2) as usize;
        let turn: Vec<Step> = left[side].by_ref().take(1 + random.below(6) as usize).collect();
        let written = turn.iter().map(Step::len).sum::<u64>();
        if written > 0 && said[1 - side] > 0 {
            plan.ends[side].steps.push(Step::Await(said[1 - side]));
        }
        said[side] += written;
        plan.ends[side].steps.extend(turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Conversations, routes of every kind and signatures are drawn.
    #[test]
    fn every_addition_is_met() {
        let worlds: Vec<Scenario> =
            (0..2000).map(|seed| Scenario::draw(seed, Intensity::Few, false)).collect();
        let routes = |word: &str| {
            worlds
                .iter()
                .flat_map(|world| &world.hosts)
                .flat_map(|host| &host.route)
                .any(|words| words.starts_with(word))
        };
        for word in ["congctl reno", "congctl cubic", "congctl bbr", "blackhole", "unreachable", "prohibit"] {
            assert!(routes(word), "{word}");
        }
        assert!(worlds.iter().any(|world| world.signed));
        let waits = |end: &End| end.steps.iter().filter(|step| matches!(step, Step::Await(_))).count();
        let turns = worlds
            .iter()
            .flat_map(|world| &world.connections)
            .map(|plan| plan.ends.iter().map(waits).sum::<usize>())
            .max();
        assert!(turns.is_some_and(|turns| turns > 5), "{turns:?}");
    }
}
