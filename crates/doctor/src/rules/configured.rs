//! Settings that files apply at the next boot: WIN-15, ST-11, ST-12.
use super::settings::wanted;
use super::{Found, Kernels, Rule, lines};
use crate::change::Want;
use crate::finding::{Confidence, Scope, Severity};
use crate::sample::Configured;
use crate::sample::Source::{Files, Settings};
use crate::window::Window;
use std::collections::BTreeMap;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "WIN-15",
        symptom: "\"tuning\" that lowers a default",
        condition: "a file sets somaxconn, rmem_max, wmem_max or the maximum of tcp_rmem or tcp_wmem below this kernel's default",
        why: "The tuning recipe is older than the kernel. The default has grown since.",
        advice: "Remove the line.",
        settings: &[],
        needs: &[Files, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[],
        judge: lowered,
    },
    Rule {
        id: "ST-11",
        symptom: "configured setting does not exist",
        condition: "a file sets a name in net.core or net.ipv4 that this kernel does not have",
        why: "Old recipes name settings that are gone (tcp_tw_recycle was removed in 4.12). Such lines have no effect except an error in the log.",
        advice: "Remove the line.",
        settings: &[],
        needs: &[Files, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: missing,
    },
    Rule {
        id: "ST-12",
        symptom: "running value differs from the configured one",
        condition: "the last line that sets a name has another value than the kernel",
        why: "At the next boot the configured value replaces the running one.",
        advice: "Write the intended value into the file, or apply the file: sysctl --system.",
        settings: &[],
        needs: &[Files, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: differs,
    },
];

/// Defaults that have grown: name, index of the number, first kernel with the new default, and the
/// new default. 5.4 raised SOMAXCONN (19f92a030ca6), 6.16 tcp_rmem, 6.17 rmem_max and wmem_max.
const GROWN: [(&str, usize, (u32, u32), i64); 5] = [
    ("net.core.somaxconn", 0, (5, 4), 4096),
    ("net.core.rmem_max", 0, (6, 17), 4 << 20),
    ("net.core.wmem_max", 0, (6, 17), 4 << 20),
    ("net.ipv4.tcp_rmem", 2, (6, 16), 32 << 20),
    ("net.ipv4.tcp_wmem", 2, (2, 6), 4 << 20),
];

/// Notes that the settings of the next boot are unknown outside the host's first network namespace.
fn ask_files(window: &Window<'_>) {
    if window.now.configured.is_empty() && !window.now.is_first_namespace() {
        window
            .lacks("files in sysctl.d apply to the host's first network namespace, and this is another one");
    }
}

fn lowered(window: &Window<'_>) -> Vec<Found> {
    ask_files(window);
    let Some(version) = window.now.version() else { return Vec::new() };
    let lines = last(window).into_values().filter_map(|line| {
        let (_, nth, _, default) =
            GROWN.iter().find(|(name, _, since, _)| *name == line.name && version >= *since)?;
        let value: i64 = line.value.split_whitespace().nth(*nth)?.parse().ok()?;
        (value < *default).then(|| {
            let mut found = of_line(window, line, Severity::Warning, format!("{value} < {default}"));
            if window.now.settings.contains_key(&line.name) {
                found.steps = vec![wanted(&line.name, Want::Nth(*nth, *default), window.now)];
            }
            found
        })
    });
    lines.collect()
}

fn missing(window: &Window<'_>) -> Vec<Found> {
    ask_files(window);
    // Longer names belong to directories that are not read.
    let is_read = |line: &&Configured| {
        ["net.core.", "net.ipv4."].iter().any(|folder| line.name.starts_with(folder))
            && line.name.split('.').count() == 3
    };
    let known = |line: &&Configured| {
        window.now.settings.contains_key(&line.name)
            || window.now.unreadable.contains(&line.name)
            // A copy of /proc made by an ordinary user lacks it.
            || line.name.ends_with("tcp_fastopen_key")
    };
    let lines = window.now.configured.iter().filter(is_read).filter(|line| !known(line));
    lines
        .map(|line| of_line(window, line, Severity::Info, format!("{} is not in /proc/sys", line.name)))
        .collect()
}

fn differs(window: &Window<'_>) -> Vec<Found> {
    ask_files(window);
    let lines = last(window).into_values().filter_map(|line| {
        let running = window.now.setting(&line.name).filter(|_| !line.name.ends_with("tcp_fastopen_key"))?;
        let same = running.split_whitespace().eq(line.value.split_whitespace());
        (!same).then(|| {
            let formula = format!("running {}, configured {}", running.replace('\t', " "), line.value);
            let mut found = of_line(window, line, Severity::Warning, formula);
            found.evidence.push(window.set(&line.name));
            found.steps = vec![wanted(&line.name, Want::Configured(line.value.clone()), window.now)];
            found
        })
    });
    lines.collect()
}

/// Returns the effective line for each name.
fn last<'a>(window: &Window<'a>) -> BTreeMap<&'a str, &'a Configured> {
    window.now.configured.iter().map(|line| (line.name.as_str(), line)).collect()
}

fn of_line(window: &Window<'_>, line: &Configured, severity: Severity, formula: String) -> Found {
    let Configured { file, line: number, name, value } = line;
    Found {
        severity,
        scope: Scope::Host,
        evidence: vec![window.shown(format!("{file}, line {number}"), format!("{name} = {value}"))],
        formula,
        steps: lines::take_out_line(line),
        ..Found::default()
    }
}
