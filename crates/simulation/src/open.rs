//! Worlds of the test command that are known to fail: faults of the engine, or of a rule, that are
//! found and not fixed yet.

use crate::world::Failure;
use std::collections::BTreeMap;

/// Seeds, and how they fail.
#[derive(Clone, Debug, Default)]
pub struct Open(BTreeMap<u64, &'static str>);

impl Open {
    /// The list of `open.txt`: worlds with all intensities in turn and an attacker in every fifth.
    pub fn listed() -> Open {
        let lines = include_str!("../open.txt").lines().filter(|line| !line.starts_with('#'));
        let entry = |line: &'static str| {
            let (seed, kind) = line.split_once(' ')?;
            Some((seed.parse().ok()?, kind))
        };
        Open(lines.filter_map(entry).collect())
    }

    /// Is this failure listed?
    pub fn has(&self, seed: u64, failure: &Failure) -> bool {
        self.0.get(&seed).is_some_and(|kind| *kind == failure.kind)
    }

    /// Listed seeds among these that are not among the failures: they hold, or fail otherwise.
    pub fn gone<'a>(
        &'a self,
        seeds: std::ops::Range<u64>,
        failures: &'a [(u64, Failure)],
    ) -> impl Iterator<Item = u64> + 'a {
        let fails = |seed: &u64| {
            failures.iter().any(|(failed, failure)| failed == seed && self.has(*failed, failure))
        };
        self.0.range(seeds).map(|(seed, _)| *seed).filter(move |seed| !fails(seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::{ATTACKED_EVERY, Campaign, attempt};
    use crate::scenario::{Intensity, Scenario};

    const MENDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/mended");

    /// A line of `mended.txt`.
    struct Mended {
        seed: u64,
        hash: &'static str,
        compared: bool,
    }

    fn mended() -> impl Iterator<Item = Mended> {
        let lines = include_str!("../mended.txt").lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| match *line.splitn(3, ' ').collect::<Vec<_>>() {
            [seed, hash, sentence] => Mended {
                seed: seed.parse().expect("a seed"),
                hash,
                compared: sentence.starts_with("compared: "),
            },
            _ => panic!("not a seed, a hash and a sentence: {line}"),
        })
    }

    impl Mended {
        fn drawn(&self) -> Scenario {
            let campaign = Campaign {
                seeds: 0..0,
                intensities: Intensity::ALL.map(|(_, intensity)| intensity).to_vec(),
                attacked_every: ATTACKED_EVERY,
                differential: self.compared,
                threads: 1,
                open: Open::default(),
                most_failures: 1,
            };
            campaign.scenario(self.seed)
        }

        /// The world that failed: as it is drawn, or as it was kept.
        fn scenario(&self) -> Scenario {
            let drawn = self.drawn();
            if drawn.hash() == self.hash {
                return drawn;
            }
            let file = format!("{MENDED}/{}.json", self.seed);
            let text = std::fs::read_to_string(&file).unwrap_or_else(|error| {
                panic!("seed {} draws another world now ({}), and {file}: {error}", self.seed, drawn.hash())
            });
            serde_json::from_str(&text).expect("a scenario")
        }
    }

    /// What `mended.txt` lists holds, and is what it was.
    #[test]
    fn mended_worlds_hold() {
        for entry in mended() {
            let scenario = entry.scenario();
            assert_eq!(scenario.hash(), entry.hash, "seed {}", entry.seed);
            let played = attempt(&scenario, false);
            assert!(played.is_ok(), "seed {}: {:?}", entry.seed, played.err());
        }
    }

    #[test]
    fn only_worlds_that_are_not_drawn_any_more_are_kept() {
        let kept = mended().filter(|entry| entry.drawn().hash() != entry.hash).count();
        assert_eq!(std::fs::read_dir(MENDED).expect("the folder").count(), kept);
    }

    #[test]
    fn every_line_is_a_comment_or_an_entry() {
        let lines = include_str!("../open.txt").lines().filter(|line| !line.starts_with('#'));
        assert_eq!(
            lines.count(),
            Open::listed().0.len(),
            "a line that is no `SEED SYMPTOM`, or a seed twice"
        );
    }
}
