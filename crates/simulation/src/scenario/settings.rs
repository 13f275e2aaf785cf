//! Random values for the rows of the engine's table of settings.

use crate::Random;
use proto::{Config, SettingKind, SettingRow};

/// Rows off their defaults that a stack takes, `wanted` of them at most; all are tried if that is
/// `None`.
pub(super) fn draw(random: &mut Random, base: &Config, wanted: Option<usize>) -> Vec<(String, String)> {
    let rows = Config::rows();
    let mut config = base.clone();
    let mut drawn = Vec::new();
    let order: Vec<usize> = match wanted {
        Some(wanted) => (0..wanted).map(|_| random.below(rows.len() as u64) as usize).collect(),
        None => (0..rows.len()).collect(),
    };
    for row in order.into_iter().map(|at| &rows[at]) {
        drawn.extend(one(random, &mut config, row));
    }
    drawn
}

/// A value of this row that `config` takes, and that it did not have.
pub(super) fn one(random: &mut Random, config: &mut Config, row: &SettingRow) -> Option<(String, String)> {
    let before = config.get(row.name)?;
    for _ in 0..TRIES {
        let value = value(random, row, &before);
        if value != before && config.set(row.name, &value).is_ok() {
            return Some((row.name.to_owned(), value));
        }
    }
    None
}

/// Most values of a row are in range; of one with a narrow range its ends are drawn often enough.
const TRIES: usize = 4;

fn value(random: &mut Random, row: &SettingRow, before: &str) -> String {
    match row.kind {
        SettingKind::Switch => random.pick(&["0", "1"]).to_owned(),
        SettingKind::Choice(words) => random.pick(words).to_owned(),
        SettingKind::Number => number(random, row.range, before).to_string(),
        SettingKind::Time => time(random),
        SettingKind::Sizes => {
            let mut sizes = [0; 3].map(|_| random.magnitude(1 << 26));
            sizes.sort_unstable();
            sizes.map(|size| size.to_string()).join(" ")
        }
        SettingKind::Ports => {
            let low = 1 + random.below(65_535);
            format!("{low}-{}", low + random.below(65_536 - low))
        }
        ref other => panic!("{other:?}: a kind of setting that cannot be drawn yet"),
    }
}

fn number(random: &mut Random, range: &str, before: &str) -> u64 {
    let ends = |text: &str| text.replace('_', "").trim().parse::<u64>().ok();
    let (low, high) = match range.split_once("..") {
        Some((low, high)) => {
            (ends(low).unwrap_or(0), ends(high.trim_start_matches('=')).unwrap_or(u64::from(u32::MAX)))
        }
        None => (0, u64::from(u32::MAX)),
    };
    let before: u64 = before.parse().unwrap_or(0);
    let any = low + random.magnitude(high - low);
    let near = [before.saturating_sub(1), before + 1, before / 2, before.saturating_mul(2)];
    match random.below(5) {
        0 => random.pick(&[low, high, low + 1, high.saturating_sub(1)]),
        1 => random.pick(&near).clamp(low, high),
        _ => any,
    }
}

fn time(random: &mut Random) -> String {
    let usual = ["0", "1ns", "1us", "1ms", "10ms", "40ms", "200ms", "1s", "3s", "60s", "600s", "7200s"];
    if random.chance(50) {
        return random.pick(&usual).to_owned();
    }
    format!("{}ns", random.magnitude(3_600_000_000_000))
}
