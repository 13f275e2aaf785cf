//! The guide and README.md: every command prints what the page shows, every example compiles.
//!
//! `PAGE=operators` runs one page; `BLESS=1` writes what the commands print into the pages.
#![expect(clippy::unwrap_used, reason = "tests")]
mod clone;
mod code;
mod compare;
mod page;
mod parallel;
mod run;
mod session;

use page::Page;
use parallel::each;
use run::Outcome;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Blocks that are not run, each with a reason. A command that can run should run.
const SHOWN_MAX: usize = 16;

/// Pages at once: most of them wait for network paths.
const AT_ONCE: usize = 4;

/// Attempts of a section: on a busy machine a packet may be late.
const TRIES: usize = 3;

/// Root of the project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// README.md and every page of the guide, or those whose name contains `PAGE`.
fn pages() -> Vec<Page> {
    let root = root();
    let mut names = Vec::new();
    for folder in ["docs/guide", "docs/guide/lessons"] {
        let entries = fs::read_dir(root.join(folder)).into_iter().flatten();
        let files = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.extend(files.filter(|name| name.ends_with(".md")).map(|name| format!("{folder}/{name}")));
    }
    names.sort();
    names.insert(0, "README.md".to_owned());
    let only = std::env::var("PAGE").unwrap_or_default();
    let pages = names.iter().filter(|name| name.contains(&only)).map(|name| Page::read(&root, name));
    pages.collect::<Result<_, _>>().unwrap_or_else(|problem| panic!("{problem}"))
}

/// A folder that any user can read, with the command in it.
fn programs() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("firstbyte-guide-").tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let built = testnet::built("firstbyte-cli").join("firstbyte");
    // An ordinary user may not be able to enter the folder of the build. A link costs no space.
    let here = folder.path().join("firstbyte");
    fs::hard_link(&built, &here).or_else(|_| fs::copy(&built, &here).map(drop)).unwrap();
    folder
}

#[test]
fn every_command_prints_what_its_page_shows() {
    let programs = programs();
    let pages = pages();
    // What is accepted must be the first output.
    let tries = if is_blessing() { 1 } else { TRIES };
    let outcomes = each(AT_ONCE, &pages, |page| {
        let folder = programs.path().join(page.name.replace(['/', '.'], "-"));
        fs::create_dir(&folder).unwrap();
        run::run(page, &folder, programs.path(), tries)
    });
    let _ = writeln!(
        std::io::stderr(),
        "{} commands of the guide ran",
        outcomes.iter().map(|of| of.ran).sum::<usize>()
    );
    if is_blessing() {
        pages.iter().zip(&outcomes).for_each(|(page, outcome)| bless(page, outcome));
    }
    let failures: Vec<&str> =
        outcomes.iter().flat_map(|outcome| &outcome.failures).map(String::as_str).collect();
    assert!(
        failures.is_empty(),
        "{} failures (BLESS=1 accepts other output):\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn is_blessing() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// Writes what was printed into the page.
fn bless(page: &Page, outcome: &Outcome) {
    if outcome.changes.is_empty() {
        return;
    }
    let mut lines: Vec<String> = page.text.lines().map(str::to_owned).collect();
    for (range, new) in outcome.changes.iter().rev() {
        lines.splice(range.clone(), new.iter().cloned());
    }
    fs::write(root().join(&page.name), lines.join("\n") + "\n").unwrap();
}

#[test]
fn every_example_is_valid() {
    let programs = programs();
    let pages = pages();
    let problems = each(AT_ONCE, &pages, |page| code::check(page, programs.path())).concat();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn examples_in_rust_are_compiled() {
    let listed = include_str!("../../src/lib.rs");
    for page in pages().iter().filter(|page| page.blocks.iter().any(|block| block.language == "rust")) {
        let line = format!("include_str!(\"../../../{}\")", page.name);
        assert!(listed.contains(&line), "crates/guide/src/lib.rs does not list {}", page.name);
    }
}

#[test]
fn few_blocks_are_only_shown() {
    let pages = pages();
    let shown: Vec<String> = pages
        .iter()
        .flat_map(|page| page.blocks.iter().map(move |block| (page, block)))
        .filter_map(|(page, block)| {
            let reason = block.needs.shown.as_ref()?;
            Some(format!("{}:{}: {reason}", page.name, block.line))
        })
        .collect();
    assert!(shown.len() <= SHOWN_MAX, "{} of at most {SHOWN_MAX}:\n{}", shown.len(), shown.join("\n"));
}

/// The table of contents names every page, and every link within the project leads to a file.
#[test]
fn links_lead_somewhere() {
    let root = root();
    let mut problems = Vec::new();
    for page in pages() {
        let folder = root.join(&page.name).parent().unwrap().to_owned();
        for link in links(&page.text) {
            let file = link.split('#').next().unwrap_or_default();
            if !file.is_empty() && !link.contains("://") && !folder.join(file).exists() {
                problems.push(format!("{}: {link}: no such file", page.name));
            }
        }
    }
    let contents = fs::read_to_string(root.join("docs/guide/SUMMARY.md")).unwrap();
    for page in pages().iter().filter_map(|page| page.name.strip_prefix("docs/guide/")) {
        if page != "SUMMARY.md" && !contents.contains(&format!("({page})")) {
            problems.push(format!("docs/guide/SUMMARY.md does not name {page}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Targets of Markdown links and images outside fenced blocks.
fn links(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut links = Vec::new();
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        if !is_code {
            links.extend(line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next()));
        }
    }
    links
}
