//! Manual pages and completions: they say what `--help` says.
use crate::{firstbyte, run, skipped_without, stderr, stdout};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Writes the pages, and returns their folder.
fn pages() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let written = run(&["man", folder.path().join("man1").to_str().unwrap()]);
    assert_eq!(written.status.code(), Some(0), "{}", stderr(&written));
    folder
}

/// Long options that a text lists. Descriptions, which may begin a line with an option, are
/// indented by more than `indent`, or stand behind two spaces.
fn options(text: &str, indent: usize) -> BTreeSet<String> {
    let is_listed = |line: &&str| {
        line.starts_with("  ")
            && line.trim_start().starts_with('-')
            && line.len() - line.trim_start().len() <= indent
    };
    let names = text.lines().filter(is_listed).filter_map(|line| line.trim_start().split("  ").next());
    names
        .flat_map(|line| line.split([' ', ',']))
        // Help shows an option that may be repeated as `--statistics...`.
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| word.starts_with("--") && word.ends_with(|c: char| c.is_ascii_alphanumeric()))
        .map(str::to_owned)
        .collect()
}

/// The page of a verb, as plain text.
fn rendered(page: &Path) -> String {
    let mut man = Command::new("man");
    man.args(["--warnings", "-l"]).arg(page).env("MANWIDTH", "100").env("MANPAGER", "cat");
    let output = man.env("LC_ALL", "C.UTF-8").output().unwrap();
    assert_eq!(stderr(&output), "", "{}", page.display());
    stdout(&output).to_owned()
}

#[test]
fn each_page_has_the_options_of_its_help() {
    if skipped_without("man") {
        return;
    }
    let folder = pages();
    let entries: Vec<_> = std::fs::read_dir(folder.path().join("man1")).unwrap().flatten().collect();
    assert!(entries.len() > 40, "{}", entries.len());
    for entry in entries {
        let name = entry.file_name().into_string().unwrap();
        let page = rendered(&entry.path());
        // The file name `firstbyte-lab-fast-open` does not say where a verb ends.
        let synopsis = page.lines().skip_while(|line| *line != "SYNOPSIS").nth(1).unwrap();
        let verbs: Vec<&str> = synopsis
            .split_whitespace()
            .skip(1)
            .take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase()))
            .collect();
        let help = firstbyte().args(&verbs).arg("--help").output().unwrap();
        assert_eq!(help.status.code(), Some(0), "{name}: {verbs:?}");
        assert_eq!(options(&page, 7), options(stdout(&help), 6), "{name}");
        for section in ["NAME", "DESCRIPTION", "EXIT STATUS"] {
            assert!(page.lines().any(|line| line == section), "{name} has no {section}");
        }
    }
}

#[test]
fn a_page_has_the_sections_of_its_verb() {
    if skipped_without("man") {
        return;
    }
    let folder = pages();
    let page = rendered(&folder.path().join("man1/firstbyte-serve.1"));
    for part in ["PRIVILEGES", "CAP_NET_ADMIN", "/dev/net/tun", "EXAMPLES", "SEE ALSO", "XDG_RUNTIME_DIR"] {
        assert!(page.contains(part), "no {part} in\n{page}");
    }
    let page = rendered(&folder.path().join("man1/firstbyte-doctor.1"));
    assert!(page.contains("\n       3   "), "each exit code is an item:\n{page}");
}

#[test]
fn pages_that_cannot_be_written_are_a_failure() {
    let output = run(&["man", "/proc/firstbyte"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot create /proc/firstbyte"), "{}", stderr(&output));
    assert_eq!(run(&["man"]).status.code(), Some(2));
}

#[test]
fn each_shell_has_its_completions() {
    for (shell, part) in
        [("bash", "complete -F _firstbyte"), ("zsh", "#compdef firstbyte"), ("fish", "complete -c firstbyte")]
    {
        let output = run(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        assert!(stdout(&output).contains(part) && stdout(&output).contains("completions"), "{shell}");
    }
    let output = run(&["completions", "tcsh"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("[possible values: bash, zsh, fish]"), "{}", stderr(&output));
    assert_eq!(run(&["completions"]).status.code(), Some(2));
}
