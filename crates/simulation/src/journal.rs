//! Progress of a long campaign, a line of JSON for each part, so that it can be stopped at any
//! time and goes on where it was.

use crate::campaign::{Campaign, Outcome};
use core::ops::Range;
use core::time::Duration;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Worlds of one part: what is lost if the campaign is ended in the middle of it.
const PART: u64 = 10_000;

/// Worlds with consecutive seeds that have been played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// First seed.
    pub from: u64,
    /// Behind the last seed.
    pub to: u64,
    /// Rows off the defaults, and the number of worlds with an attacker: the same seed of another
    /// kind is another world.
    pub kind: String,
    /// Worlds.
    pub worlds: u64,
    /// Packets of those that held.
    pub packets: u64,
    /// Bytes that applications have read in them.
    pub bytes: u64,
    /// Processor time.
    pub core_seconds: f64,
    /// Seeds that failed, and how.
    pub failures: Vec<(u64, String)>,
}

impl Part {
    /// Describes worlds that were played.
    pub fn new(campaign: &Campaign, outcome: &Outcome) -> Part {
        let failures = outcome.failures.iter().map(|(seed, failure)| (*seed, failure.to_string()));
        Part {
            from: campaign.seeds.start,
            to: campaign.seeds.end,
            kind: campaign.kind(),
            worlds: outcome.worlds,
            packets: outcome.totals.packets,
            bytes: outcome.totals.bytes,
            core_seconds: outcome.core.as_secs_f64(),
            failures: failures.collect(),
        }
    }
}

/// A file with the parts that have been played.
#[derive(Debug)]
pub struct Journal {
    file: PathBuf,
    parts: Vec<Part>,
}

impl Journal {
    /// Reads a file; one that is not there begins empty.
    ///
    /// # Errors
    /// A sentence that names the file, and the line that is not a part.
    pub fn open(file: &Path) -> Result<Journal, String> {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("{}: {error}", file.display())),
        };
        let part = |(nth, line): (usize, &str)| {
            serde_json::from_str(line)
                .map_err(|error| format!("{}, line {}: {error}", file.display(), nth + 1))
        };
        Ok(Journal {
            file: file.to_owned(),
            parts: text.lines().enumerate().map(part).collect::<Result<_, _>>()?,
        })
    }

    /// The next part of `campaign` that has not been played.
    pub fn next(&self, campaign: &Campaign) -> Option<Range<u64>> {
        let kind = campaign.kind();
        let mut from = campaign.seeds.start;
        while let Some(part) =
            self.parts.iter().find(|part| part.kind == kind && (part.from..part.to).contains(&from))
        {
            from = part.to;
        }
        let played =
            self.parts.iter().filter(|part| part.kind == kind && part.from > from).map(|part| part.from);
        let end = played.min().unwrap_or(u64::MAX).min(campaign.seeds.end).min(from.saturating_add(PART));
        (from < end).then_some(from..end)
    }

    /// Seeds of `campaign` that have not been played.
    pub fn missing(&self, campaign: &Campaign) -> u64 {
        let mut rest = campaign.clone();
        let mut missing = 0;
        while let Some(part) = self.next(&rest) {
            missing += part.end - part.start;
            rest.seeds.start = part.end;
        }
        missing
    }

    /// Writes down a part.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn add(&mut self, part: Part) -> Result<(), String> {
        let line = serde_json::to_string(&part).map_err(|error| error.to_string())?;
        let written = OpenOptions::new().create(true).append(true).open(&self.file);
        written
            .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
            .map_err(|error| format!("{}: {error}", self.file.display()))?;
        self.parts.push(part);
        Ok(())
    }

    /// All parts in one sentence.
    pub fn sum(&self) -> String {
        let count = |of: fn(&Part) -> u64| self.parts.iter().map(of).sum::<u64>();
        let core: Duration = self.parts.iter().map(|part| Duration::from_secs_f64(part.core_seconds)).sum();
        format!(
            "{} worlds in {:.2} core hours, {} packets, {} bytes read, {} failed",
            count(|part| part.worlds),
            core.as_secs_f64() / 3600.0,
            count(|part| part.packets),
            count(|part| part.bytes),
            count(|part| part.failures.len() as u64),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Intensity;
    use crate::open::Open;

    fn campaign(seeds: Range<u64>) -> Campaign {
        Campaign {
            seeds,
            intensities: vec![Intensity::Defaults],
            attacked_every: 5,
            differential: false,
            open: Open::default(),
            threads: 1,
            most_failures: 1,
        }
    }

    fn part(seeds: Range<u64>) -> Part {
        Part::new(&campaign(seeds), &Outcome::default())
    }

    #[test]
    fn what_was_played_is_left_out_and_nothing_else() {
        let file = PathBuf::from("nothing is written");
        let parts = vec![part(0..PART), part(PART + 500..PART + 600)];
        let journal = Journal { file, parts };
        let next = |seeds| journal.next(&campaign(seeds));
        assert_eq!(next(0..100_000), Some(PART..PART + 500), "up to what was played");
        assert_eq!(next(PART + 550..100_000), Some(PART + 600..2 * PART + 600), "a whole part behind it");
        assert_eq!(next(5..PART), None, "all of it was played");
        assert_eq!(journal.missing(&campaign(0..2 * PART)), PART - 100);
        let other = Campaign { attacked_every: 0, ..campaign(0..10) };
        assert_eq!(journal.next(&other), Some(0..10), "the same seeds of another kind are other worlds");
    }

    #[test]
    fn a_journal_is_read_as_it_was_written() {
        let file = std::env::temp_dir().join(format!("firstbyte-journal-{}", std::process::id()));
        let mut journal = Journal::open(&file).expect("it is not there");
        for seeds in [0..10, 10..30] {
            journal.add(part(seeds)).expect("it is written");
        }
        let again = Journal::open(&file).expect("it is there");
        assert_eq!(again.parts, journal.parts);
        std::fs::write(&file, "{}\n").expect("it is written");
        let refused = Journal::open(&file).expect_err("no part");
        assert!(refused.contains("line 1"), "{refused}");
        std::fs::remove_file(&file).expect("it is there");
    }
}
