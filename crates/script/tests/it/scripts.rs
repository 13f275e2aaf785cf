//! Our own scripts, all of them, at several places: other ports, seeds and initial sequence numbers, and sockets of IPv6 that speak IPv4.

use script::{Script, Setup, run};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn scripts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(scripts(&path));
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn places() -> Vec<Setup> {
    let usual = Setup::default();
    let other = |seed, remote_isn, port| Setup {
        seed,
        remote_isn,
        bind_port: port,
        connect_port: port + 1,
        first_peer_port: port + 2,
        ..usual.clone()
    };
    let mapped = Setup { mapped: true, ..other(5, 0, 8080) };
    vec![
        usual.clone(),
        other(2, 1_234_567, 80),
        other(3, u32::MAX - 50, 40_000),
        other(4, 0x7fff_ffff, 5000),
        mapped,
    ]
}

/// The comment a script opens with, on one line.
fn opening(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//"));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_script_says_what_it_shows_and_follows() {
    for path in scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts")) {
        let said = opening(&std::fs::read_to_string(&path).unwrap());
        assert!(said.len() > 30 && said.ends_with(['.', ')']), "{}: say what it shows", path.display());
        let follows = ["RFC ", "Linux"].iter().any(|word| said.contains(word));
        assert!(follows, "{}: name the RFC section, or what Linux does: {said}", path.display());
    }
}

#[test]
fn no_script_is_another_once_more() {
    let mut seen = BTreeMap::new();
    for path in scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts")) {
        let source = std::fs::read_to_string(&path).unwrap();
        let conversation: Vec<&str> =
            source.lines().filter(|line| !line.starts_with("//") && !line.is_empty()).collect();
        let before = seen.insert(conversation.join("\n"), path.clone());
        assert_eq!(before, None, "{} is the same", path.display());
    }
}

#[test]
fn every_script_holds_everywhere() {
    let found = scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts"));
    assert!(found.len() >= 150, "{found:?}");
    let mut failures = String::new();
    for path in &found {
        let source = std::fs::read_to_string(path).unwrap();
        let script = Script::parse(&source).unwrap_or_else(|problem| panic!("{}:{problem}", path.display()));
        assert_eq!(Script::parse(&script.to_string()).as_ref(), Ok(&script), "{}", path.display());
        for place in places() {
            let seed = place.seed;
            if let Err(failure) = run(&script, place) {
                failures += &format!("{}:{} (seed {seed})\n", path.display(), failure.in_source(&source));
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
