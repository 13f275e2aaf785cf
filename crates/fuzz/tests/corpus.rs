//! Replays every corpus entry and seeded mutations of it through its target.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use targets::TARGETS;

/// Mutations of each target, spread over its entries.
const MUTATIONS: usize = 2_000;

/// xorshift64*, so that a failure is found again.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end.max(1)
    }

    fn mutate(&mut self, entry: &[u8]) -> Vec<u8> {
        let mut bytes = entry.to_vec();
        for _ in 0..=self.below(6) {
            let at = self.below(bytes.len());
            match self.below(5) {
                0 => bytes.insert(at, self.below(256) as u8),
                1 if !bytes.is_empty() => drop(bytes.remove(at)),
                2 => bytes.truncate(at),
                3 => {
                    let end = (at + self.below(16)).min(bytes.len());
                    bytes.extend_from_within(at..end);
                }
                _ if !bytes.is_empty() => bytes[at] = self.below(256) as u8,
                _ => {}
            }
        }
        bytes
    }
}

fn replay(name: &str) {
    let (_, body) = TARGETS.iter().find(|(target, _)| *target == name).expect("a target");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut entries: Vec<_> =
        fs::read_dir(&folder).expect("a corpus").flatten().map(|entry| entry.path()).collect();
    entries.sort();
    assert!(!entries.is_empty(), "{} is empty", folder.display());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for path in &entries {
        let entry = fs::read(path).expect("an entry");
        eprintln!("{}", path.display());
        body(&entry);
        for _ in 0..MUTATIONS.div_ceil(entries.len()) {
            let bytes = random.mutate(&entry);
            // Shown only if what follows panics.
            eprintln!("mutated: {:?}", bytes.escape_ascii().to_string());
            body(&bytes);
        }
    }
}

macro_rules! replayed {
    ($($name:ident),+) => { $( #[test] fn $name() { replay(stringify!($name)); } )+ };
}

replayed!(packets, hostile, streams, settings, routes, paths, scripts, requests, frames, captures);

#[test]
fn every_target_has_a_corpus() {
    let folders = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")).expect("the corpora");
    let mut folders: Vec<_> = folders.flatten().map(|entry| entry.file_name()).collect();
    folders.sort();
    let mut names = TARGETS.map(|(name, _)| name);
    names.sort_unstable();
    assert_eq!(folders, names);
}

/// The fuzzer makes its inputs of those: a row that none names is not met.
#[test]
fn one_entry_names_every_setting() {
    let entry = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/settings/all");
    let text = fs::read_to_string(entry).expect("the entry");
    let names: BTreeSet<_> =
        text.lines().filter_map(|line| line.split_once(' ')).map(|(name, _)| name).collect();
    let rows: BTreeSet<_> = proto::Config::rows().iter().map(|row| row.name).collect();
    assert_eq!(rows.difference(&names).collect::<Vec<_>>(), Vec::<&&str>::new());
}
