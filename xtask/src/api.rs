//! `cargo xtask api`: compares the public interface of each library with its record in `docs/api`.
//!
//! syn reads the interface from the sources, so the stable compiler is enough. A macro call is
//! shown with its arguments, not expanded.

mod modules;
mod shown;

use crate::unexpected;
use modules::Modules;
use std::collections::BTreeMap;
use std::path::Path;

/// Folders of `crates` whose interface is recorded.
const CRATES: [&str; 7] = ["capture", "device", "firstbyte", "host", "proto", "qdisc", "wire"];

/// Compares, or renews the record with `--write`.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let write = match arguments {
        [] => false,
        ["--write"] => true,
        [first, ..] => return Err(unexpected("api", first, "cargo xtask api [--write]")),
    };
    println!("\n=== api");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask has no parent folder")?;
    let mut changed = Vec::new();
    for name in CRATES {
        let text = shown::text(&Modules::read(&root.join("crates").join(name).join("src"))?);
        let record = root.join("docs/api").join(format!("{name}.txt"));
        if write {
            std::fs::write(&record, text).map_err(|error| told(&record, &error))?;
            continue;
        }
        let recorded = std::fs::read_to_string(&record).map_err(|error| told(&record, &error))?;
        changed.extend(differences(&recorded, &text).into_iter().map(|line| format!("{name}: {line}")));
    }
    if changed.is_empty() {
        return Ok(());
    }
    Err(format!(
        "public interfaces differ from the record in docs/api; if the change is intended, run \
         `cargo xtask api --write` and add a line to CHANGELOG.md:\n  {}",
        changed.join("\n  ")
    ))
}

fn told(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// Returns the lines that only one of the texts has; those of the first have a minus.
fn differences(before: &str, after: &str) -> Vec<String> {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    before.lines().for_each(|line| *counts.entry(line).or_default() -= 1);
    after.lines().for_each(|line| *counts.entry(line).or_default() += 1);
    let signed = |(line, count): (&str, i64)| match count {
        0 => None,
        1.. => Some(format!("+ {line}")),
        _ => Some(format!("- {line}")),
    };
    let mut found: Vec<String> = counts.into_iter().filter_map(signed).collect();
    if found.is_empty() && before != after {
        found.push("the order of lines differs".to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_and_added_lines_are_shown() {
        assert_eq!(differences("a\nb\n", "b\nc\n"), ["- a", "+ c"]);
        assert_eq!(differences("a\n", "a\n"), Vec::<String>::new());
        assert_eq!(differences("a\nb\n", "b\na\n"), ["the order of lines differs"]);
    }
}
