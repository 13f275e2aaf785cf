//! Worlds of the test command that are known to fail: faults of the engine, or of a rule, that are found and not mended yet.

use crate::world::Failure;
use std::collections::BTreeMap;

/// Seeds, and how they fail.
#[derive(Clone, Debug, Default)]
pub struct Open(BTreeMap<u64, &'static str>);

impl Open {
    /// What `open.txt` lists. It speaks of worlds with all intensities in turn and an attacker in every fifth.
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
    use crate::scenario::Intensity;

    /// What `mended.txt` lists holds.
    #[test]
    fn mended_worlds_hold() {
        let lines = include_str!("../mended.txt").lines().filter(|line| !line.starts_with('#'));
        let fails = |line: &'static str| {
            let (seed, sentence) = line.split_once(' ').expect("a seed and a sentence");
            let campaign = Campaign {
                seeds: 0..0,
                intensities: Intensity::ALL.map(|(_, intensity)| intensity).to_vec(),
                attacked_every: ATTACKED_EVERY,
                differential: sentence.starts_with("compared: "),
                threads: 1,
                open: Open::default(),
                most_failures: 1,
            };
            attempt(&campaign.scenario(seed.parse().unwrap()), false).err().map(|failure| (line, failure))
        };
        let failed: Vec<_> = lines.filter_map(fails).collect();
        assert!(failed.is_empty(), "{failed:?}");
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
