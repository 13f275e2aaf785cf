//! Hosts from records.
use crate::apply::apply;
use crate::cases::{CASES, host};
use crate::{Random, commands, judged, places, restarts};
use doctor::sample::{Configured, Memory, state};
use doctor::{Finding, RULES, Report, Sample, Window};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// Returns the host after these fixes: commands applied, programs restarted where a fix requires
/// it, and five seconds without new faults.
fn after(now: &Sample, fixes: &[&Finding]) -> (Sample, Sample) {
    let mut fixed = now.clone();
    for finding in fixes {
        commands(finding).into_iter().for_each(|command| apply(command, &mut fixed));
    }
    let restarts = fixes.iter().any(|finding| restarts(finding));
    if restarts && fixed.setting("net.core.somaxconn") != now.setting("net.core.somaxconn") {
        let most: u32 = fixed.settings["net.core.somaxconn"].parse().unwrap();
        for listener in fixed.sockets.iter_mut().filter(|socket| socket.state == state::LISTEN) {
            // The program had asked for more than its limited backlog.
            let asked = if listener.local_port == 80 { 4095 } else { 65_535 };
            listener.send_queue = most.min(asked);
            listener.memory = Some(Memory::default());
            listener.recv_queue = 0;
        }
    }
    // Half-open connections end after fewer retries. A connection keeps its initial threshold.
    if fixes.iter().any(|finding| ["ACC-07", "ACC-12"].contains(&finding.id.as_str())) {
        fixed.sockets.retain(|socket| socket.state != state::SYN_RECEIVED);
    }
    if fixes.iter().any(|finding| ["CC-01", "CC-02", "CC-03"].contains(&finding.id.as_str())) {
        fixed.sockets.retain(|socket| socket.info.is_none_or(|info| info.snd_ssthresh != 20));
        fixed.paths.retain(|path| path.ssthresh == 0);
    }
    fixed.queues.iter_mut().for_each(|queue| queue.backlog = 0);
    let later = Sample { uptime: fixed.uptime + 5.0, ..fixed.clone() };
    (fixed, later)
}

/// Adds a line with the host's value for each setting that a fix changes.
fn with_lines(before: &mut Sample, now: &mut Sample) {
    let steps = judged(before, now).into_iter().flat_map(|finding| finding.fix.steps);
    let names = steps.filter_map(|step| {
        let set = step.command.strip_prefix("sysctl -w ")?.split_once('=')?.0.to_owned();
        Some(set)
    });
    for (at, name) in names.collect::<BTreeSet<_>>().into_iter().enumerate() {
        let Some(value) = now.setting(&name) else { continue };
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = u32::try_from(at).unwrap() + 1;
        let line = Configured { file: "/etc/sysctl.d/70-host.conf".to_owned(), line, name, value };
        // Files are read in the order of their names, and /etc/sysctl.conf last.
        before.configured.insert(0, line.clone());
        now.configured.insert(0, line);
    }
}

/// Lists the findings that remain after these fixes, or that are new.
fn wrong(before: &[Finding], now: &Sample, fixes: &[&Finding]) -> Vec<String> {
    let (fixed, later) = after(now, fixes);
    let found = judged(&fixed, &later);
    let known = places(before);
    let gone = fixes.iter().filter(|finding| !commands(finding).is_empty());
    let gone: BTreeSet<(String, String)> =
        gone.map(|finding| (finding.id.clone(), finding.scope.to_string())).collect();
    let mut wrong = Vec::new();
    for finding in &found {
        let place = (finding.id.clone(), finding.scope.to_string());
        if !known.contains(&place) {
            wrong.push(format!("new: {} [{}] {}", finding.id, finding.scope, finding.formula));
        } else if gone.contains(&place) {
            wrong.push(format!("still there: {} [{}] {}", finding.id, finding.scope, finding.formula));
        }
    }
    wrong
}

#[track_caller]
fn assert_fixed(what: &str, before: &[Finding], now: &Sample, fixes: &[&Finding]) {
    let wrong = wrong(before, now, fixes);
    let done: Vec<&str> = fixes.iter().flat_map(|finding| commands(finding)).collect();
    assert!(wrong.is_empty(), "{what}: {wrong:#?} after {done:#?}");
}

#[test]
fn every_fix_alone_leaves_nothing_of_its_finding_and_brings_no_other() {
    let (before, now) = host();
    assert_eq!(judged(&before, &now), []);
    let mut table: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for case in CASES {
        for lines in [false, true] {
            let (mut before, mut now) = host();
            (case.spoil)(&mut before, &mut now);
            if lines {
                with_lines(&mut before, &mut now);
            }
            let found = judged(&before, &now);
            let what = format!("{}{}", case.rule, if lines { " with lines" } else { "" });
            let own = found.iter().find(|finding| finding.id == case.rule);
            let own = own.unwrap_or_else(|| panic!("{what} does not fire: {found:#?}"));
            assert!(!commands(own).is_empty(), "{what} has no command");
            for finding in found.iter().filter(|finding| !commands(finding).is_empty()) {
                assert_fixed(&format!("{what}: {} alone", finding.id), &found, &now, &[finding]);
            }
            if !lines {
                let steps = own.fix.steps.iter().map(|step| match &step.effect {
                    Some(effect) => format!("{} (takes effect {effect})", step.command),
                    None => step.command.clone(),
                });
                table.entry(case.rule).or_default().extend(steps);
            }
        }
    }
    show(&table);
}

#[test]
fn all_fixes_together_agree_in_any_order() {
    // First three hosts with every fault at once, then hundreds with some of them.
    let mut fired: BTreeSet<String> = BTreeSet::new();
    for seed in 1..=300_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (mut before, mut now) = host();
        let mut cases: Vec<_> = CASES.iter().collect();
        random.shuffle(&mut cases);
        let count = if seed <= 3 { cases.len() } else { 1 + random.below(12) };
        cases.iter().take(count).for_each(|case| (case.spoil)(&mut before, &mut now));
        if random.below(2) == 0 {
            with_lines(&mut before, &mut now);
        }
        let found = judged(&before, &now);
        fired.extend(found.iter().map(|finding| finding.id.clone()));
        // Includes a finding whose commands are those of another one.
        let script = Report::of(&Window::between(&before, &now)).script();
        assert!(found.iter().all(|finding| script.contains(&format!("\n# {} ", finding.id))), "{script}");
        let mut fixes: Vec<&Finding> = found.iter().collect();
        for order in 1..=3 {
            random.shuffle(&mut fixes);
            assert_fixed(&format!("seed {seed}, order {order}"), &found, &now, &fixes);
        }
    }
    let silent: Vec<&str> =
        CASES.iter().map(|case| case.rule).filter(|rule| !fired.contains(*rule)).collect();
    assert!(silent.is_empty(), "{silent:?} never fired");
}

/// Every rule with a command needs a case here. Otherwise no test would try its command.
#[test]
fn every_rule_with_a_command_has_a_case() {
    let (_, now) = host();
    let has_case = |id: &str| CASES.iter().any(|case| case.rule == id);
    let missing: Vec<&str> = RULES
        .iter()
        .filter(|rule| rule.settings.iter().any(|(name, _)| now.setting(name).is_some()))
        .map(|rule| rule.id)
        .filter(|id| !has_case(id))
        .collect();
    assert_eq!(missing, [""; 0]);
    // Rules whose command another test runs on the kernel.
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md");
    let page = std::fs::read_to_string(page).unwrap();
    let sections = page.split("\n### ").filter(|section| section.contains("fixed by its command:"));
    let ids: Vec<&str> = sections.filter_map(|section| section.split(':').next()).collect();
    assert!(ids.len() > 30, "{ids:?}");
    assert_eq!(ids.into_iter().filter(|id| !has_case(id)).collect::<Vec<_>>(), [""; 0]);
}

/// Prints the fixes of each rule, for `cargo xtask doctor-fixes`.
fn show(table: &BTreeMap<&str, BTreeSet<String>>) {
    if std::env::var_os("FIRSTBYTE_FIXES").is_none() {
        return;
    }
    let mut text = String::from("\nrule    what was tried, alone and together\n");
    for rule in RULES.iter() {
        let tried = match table.get(rule.id) {
            Some(commands) => commands.iter().cloned().collect::<Vec<_>>().join("\n        "),
            None => format!("no command: {}", rule.advice),
        };
        let _ = writeln!(text, "{}  {tried}", rule.id);
    }
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
}
