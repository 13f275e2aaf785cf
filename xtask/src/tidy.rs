//! Rules of CONTRIBUTING.md that a program can check.

mod english;

use crate::circles::{Imports, before_tests};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a source file, tests included, beyond which it has surely become two things.
const FILE_MAX: usize = 700;
/// Crates without clock, OS, lock, thread or runtime.
const SANS_IO: &[&str] = &["crates/wire/src", "crates/proto/src", "crates/qdisc/src"];
/// Names that crates without a clock and an operating system must not use.
const BANNED: &[&str] = &[
    "Instant::now",
    "SystemTime",
    "thread::",
    "std::net::Tcp",
    "std::net::Udp",
    "std::fs",
    "tokio",
    "Mutex",
    "RefCell",
];

/// Beginnings of doc comments that say nothing without their neighbour.
const LEANING: &[&str] = &["The same", "As before", "Likewise", "Ditto", "See above"];

/// Runs `cargo xtask tidy` with its arguments.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    match arguments {
        [] => check(),
        ["--write"] => english::write(root()?),
        ["--english", paths @ ..] => english::list(root()?, paths),
        _ => Err("expected `tidy`, `tidy --write` or `tidy --english [PATH…]`".into()),
    }
}

fn root() -> Result<&'static Path, String> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or_else(|| "xtask has no parent folder".into())
}

/// Checks every rule.
pub(crate) fn check() -> Result<(), String> {
    println!("\n=== tidy");
    let root = root()?;
    let mut problems = Vec::new();
    let scripts = files(&root.join("crates/script/scripts"), "pkt")?;
    let names: BTreeSet<&str> = scripts.iter().filter_map(|path| path.file_stem()?.to_str()).collect();
    for file in sources(&root.join("crates"))?.into_iter().chain(sources(&root.join("xtask"))?) {
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        check_file(&name, &text, &mut problems);
        if name.contains("/src/") {
            problems.extend(named_scripts(&names, &text).map(|script| {
                format!("{name}: `{script}`: the name of a script: no code may know which one it runs")
            }));
        }
    }
    check_circles(&root.join("crates"), &mut problems)?;
    english::check(root, &mut problems)?;
    if problems.is_empty() { Ok(()) } else { Err(format!("untidy:\n  {}", problems.join("\n  "))) }
}

/// No files of a crate import one another in a circle.
fn check_circles(crates: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    let folders = fs::read_dir(crates).map_err(|error| format!("{}: {error}", crates.display()))?;
    let mut folders: Vec<PathBuf> = folders.flatten().map(|folder| folder.path().join("src")).collect();
    folders.sort();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        let read = |path: PathBuf| fs::read_to_string(&path).map(|text| (path, text));
        let texts = sources(folder)?.into_iter().map(read).collect::<Result<Vec<_>, _>>();
        let texts = texts.map_err(|error| format!("{}: {error}", folder.display()))?;
        let files: Vec<(&Path, &str)> = texts
            .iter()
            .filter(|(path, _)| !path.ends_with("tests.rs"))
            .filter_map(|(path, text)| Some((path.strip_prefix(folder).ok()?, text.as_str())))
            .collect();
        let name = folder.parent().and_then(Path::file_name).unwrap_or_default().display().to_string();
        for circle in Imports::new(&files).circles() {
            problems.push(format!(
                "crates/{name}/src: {} import one another: move what they share",
                circle.join(", ")
            ));
        }
    }
    Ok(())
}

fn check_file(name: &str, text: &str, problems: &mut Vec<String>) {
    let lines = text.lines().count();
    if lines > FILE_MAX {
        problems.push(format!("{name}: {lines} lines (at most {FILE_MAX}): split it by subject"));
    }
    if name.contains("/src/") && !name.ends_with("tests.rs") && !text.starts_with("//!") {
        problems.push(format!("{name}: no module documentation (`//!`) at its top"));
    }
    check_docs(name, text, problems);
    let lines =
        before_tests(text).lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    let sans_io = SANS_IO.iter().any(|folder| name.starts_with(folder));
    let settings = ["config.rs", "config/tests.rs"].iter().any(|end| name.ends_with(end));
    let profiled = name.starts_with("crates/proto/src") && !settings;
    for (number, line) in lines {
        if let Some(word) = BANNED.iter().find(|word| sans_io && line.contains(**word)) {
            problems.push(format!("{name}:{}: `{word}`: in a sans-IO crate the caller owns it", number + 1));
        }
        if profiled && line.contains("linux") {
            problems.push(format!("{name}:{}: profiles are told apart in config.rs only", number + 1));
        }
    }
}

/// Each doc comment stands alone.
fn check_docs(name: &str, text: &str, problems: &mut Vec<String>) {
    let doc = |line: &str| {
        let line = line.trim_start();
        line.strip_prefix("///").or(line.strip_prefix("//!")).map(|text| text.trim().to_owned())
    };
    let mut before = None;
    for (number, line) in text.lines().enumerate() {
        let here = doc(line);
        let begins = before.as_deref().is_none_or(str::is_empty);
        if let Some(words) = LEANING
            .iter()
            .find(|words| begins && here.as_deref().is_some_and(|here| here.starts_with(**words)))
        {
            problems.push(format!(
                "{name}:{}: `{words}`: say what it is; the comment before it may be read by nobody",
                number + 1
            ));
        }
        before = here;
    }
}

/// The scripts that a source names: by file, or by a string that is its stem, of three words and
/// more (one or two may be anything's name).
fn named_scripts<'a>(names: &'a BTreeSet<&str>, text: &'a str) -> impl Iterator<Item = &'a str> {
    let of_a_stem = |sign: char| sign.is_ascii_alphanumeric() || sign == '-' || sign == '_';
    let files = text
        .match_indices(".pkt")
        .filter_map(move |(end, _)| text[..end].rsplit(|sign| !of_a_stem(sign)).next());
    let strings = text.split('"').filter(|part| part.matches('-').count() > 1);
    files.chain(strings).filter(|name| names.contains(name))
}

/// Every `.rs` file below `folder`.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, String> {
    files(folder, "rs")
}

/// Every file below `folder` with this extension.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            found.extend(files(&path, extension)?);
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_behind_what_only_tests_have_is_checked() {
        let told = |between: &str| {
            let mut problems = Vec::new();
            let text = format!(
                "//! A file.\nstruct A {{\n    #[cfg(test)]\n    b: u8,\n}}\n{between}fn now() {{ Instant::now() }}\n"
            );
            check_file("crates/wire/src/a.rs", &text, &mut problems);
            problems.len()
        };
        assert_eq!(told(""), 1);
        assert_eq!(told("#[cfg(test)]\nmod tests {}\n"), 0, "tests may");
    }
}
