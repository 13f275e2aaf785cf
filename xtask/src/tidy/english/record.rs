//! The recorded number of violations of each area, in a file beside the checker.

use super::Counts;
use std::fs;
use std::path::Path;

/// The record, relative to the root.
const RECORD: &str = "xtask/src/tidy/english-counts.txt";

/// Reads the record. An area that is not in it counts as zero.
pub(super) fn read(root: &Path) -> Result<Counts, String> {
    let text = fs::read_to_string(root.join(RECORD)).map_err(|error| format!("{RECORD}: {error}"))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| parse(line).ok_or(format!("{RECORD}: expected `COUNT AREA SCOPE`, not `{line}`")))
        .collect()
}

fn parse(line: &str) -> Option<(String, usize)> {
    let (count, area) = line.trim_start().split_once(' ')?;
    Some((area.trim().to_owned(), count.parse().ok()?))
}

/// Lowers each recorded count to the present one, never raises it, and drops what has reached zero.
pub(super) fn lower(root: &Path, present: &Counts) -> Result<(), String> {
    let text = lowered(&read(root)?, present);
    fs::write(root.join(RECORD), text).map_err(|error| format!("{RECORD}: {error}"))
}

fn lowered(recorded: &Counts, present: &Counts) -> String {
    let mut text = String::from(
        "# Violations of plain English that are left, by area: these counts may only fall.\n\
         # An area without a line must have none. `cargo xtask tidy --write` lowers the counts,\n\
         # `cargo xtask tidy --english crates/cli` lists the violations.\n\n",
    );
    for (area, most) in recorded {
        let count = present.get(area).unwrap_or(&0).min(most);
        if *count > 0 {
            text.push_str(&format!("{count:>5} {area}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_lowered_and_never_raised() {
        let counts = |list: &[(&str, usize)]| {
            list.iter().map(|(area, count)| ((*area).to_owned(), *count)).collect::<Counts>()
        };
        let recorded = counts(&[("crates/a public", 3), ("crates/b internal", 5), ("crates/c texts", 2)]);
        let present = counts(&[("crates/a public", 4), ("crates/b internal", 1)]);
        let text = lowered(&recorded, &present);
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        assert_eq!(lines, ["    3 crates/a public", "    1 crates/b internal"]);
    }
}
