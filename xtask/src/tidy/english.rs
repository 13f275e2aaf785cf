//! Checks the English of comments, messages and pages: banned words, beginnings of doc comments,
//! width.
//!
//! `prose` finds the texts of a file, `rules` judges one text, `record` compares the counts with
//! the recorded ones, which may only fall.

mod prose;
mod record;
mod rules;
mod rust;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Number of violations of each area, such as `crates/cli internal`.
type Counts = BTreeMap<String, usize>;

/// One line of prose that breaks a rule.
struct Violation {
    area: String,
    place: String,
    message: String,
}

/// Compares the violations of every area with the record; a record of zero forbids any.
pub(super) fn check(root: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    let found = violations(root, &[])?;
    let recorded = record::read(root)?;
    for (area, count) in counts(&found) {
        let most = recorded.get(&area).copied().unwrap_or(0);
        if count <= most {
            continue;
        }
        let folder = area.split(' ').next().unwrap_or_default();
        if most == 0 {
            let here = found.iter().filter(|violation| violation.area == area);
            problems.extend(here.map(|violation| format!("{}: {}", violation.place, violation.message)));
        } else {
            problems.push(format!(
                "{area}: {count} violations of plain English, at most {most} are recorded: \
                 `cargo xtask tidy --english {folder}` lists them"
            ));
        }
    }
    let fallen = recorded.iter().filter(|(area, most)| counts(&found).get(*area).unwrap_or(&0) < most);
    match fallen.count() {
        0 => {}
        fallen => println!("english: {fallen} counts have fallen: `cargo xtask tidy --write` records them"),
    }
    Ok(())
}

/// Lowers the recorded counts to the present ones.
pub(super) fn write(root: &Path) -> Result<(), String> {
    record::lower(root, &counts(&violations(root, &[])?))
}

/// Prints each violation below these paths with its place and the rule, then the counts.
pub(super) fn list(root: &Path, paths: &[&str]) -> Result<(), String> {
    let found = violations(root, paths)?;
    for violation in &found {
        println!("{}: {} [{}]", violation.place, violation.message, violation.area);
    }
    for (area, count) in counts(&found) {
        println!("{count:>6}  {area}");
    }
    Ok(())
}

fn counts(found: &[Violation]) -> Counts {
    let mut counts = Counts::new();
    for violation in found {
        *counts.entry(violation.area.clone()).or_default() += 1;
    }
    counts
}

/// Checks the files below these paths (all without any), each relative to the root.
fn violations(root: &Path, paths: &[&str]) -> Result<Vec<Violation>, String> {
    let mut files = Vec::new();
    for path in if paths.is_empty() { &["."][..] } else { paths } {
        let path = root.join(path);
        if path.is_dir() {
            collect(&path, &mut files)?;
        } else if path.is_file() {
            files.push(path);
        } else {
            return Err(format!("cannot check `{}`: no such file or folder", path.display()));
        }
    }
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        let name = name.trim_start_matches("./").to_owned();
        let Some(language) = prose::Language::of(&name) else { continue };
        let text = fs::read_to_string(&file).map_err(|error| format!("cannot read `{name}`: {error}"))?;
        found.extend(check_text(&name, language, &text));
    }
    Ok(found)
}

fn check_text(name: &str, language: prose::Language, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for passage in prose::passages(name, language, text) {
        let area = format!("{} {}", owner(name), passage.scope);
        for (line, message) in rules::check(&passage) {
            found.push(Violation { area: area.clone(), place: format!("{name}:{line}"), message });
        }
    }
    found
}

/// The crate or page that a file belongs to.
fn owner(name: &str) -> String {
    let mut folders = name.split('/');
    match (folders.next(), folders.next()) {
        (Some("crates"), Some(name)) => format!("crates/{name}"),
        (Some("docs"), Some(_)) => name.to_owned(),
        (Some(first), _) => first.to_owned(),
        (None, _) => String::new(),
    }
}

/// Folders of files that this project does not write, or that a program writes.
const SKIPPED_FOLDERS: &[&str] = &["target", "docs/guide/book", "node_modules", "corpus", "docs/api"];

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') && name != "." || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            if !SKIPPED_FOLDERS.iter().any(|skipped| path.ends_with(skipped)) {
                collect(&path, files)?;
            }
        } else {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
