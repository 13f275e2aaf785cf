//! Reconciles fixes: one value for each setting, and one command for each route.
//!
//! A rule knows only its own condition. Its command alone could undo the fix of another finding,
//! leave a file that has the old value, or make another rule fire. The values are therefore chosen
//! for all findings together, and tried on a copy of the sample before they are printed.
use super::cwnd::change;
use super::settings::set_to;
use super::trial::Trial;
use super::{Rule, lines, own};
use crate::change::{Act, Change, Want};
use crate::finding::{Finding, Step};
use crate::sample::{RouteMetrics, Sample};
use crate::show::routes::changed;
use crate::window::Window;
use std::collections::BTreeMap;

/// Rules that ask for a default of the kernel. If their value is chosen, lines of files are removed
/// instead of rewritten.
const DEFAULTS: [&str; 5] = ["ACC-11", "CC-08", "ST-10", "WIN-13", "WIN-15"];

/// Most rounds of choosing values. A fix may make another rule fire, and its fix may do so again.
const ROUNDS: usize = 4;

/// The values that findings want for each setting, with the id of the rule.
type Wants = BTreeMap<String, Vec<(String, Want)>>;
type Values = BTreeMap<String, String>;

/// Rewrites the steps of all findings so that they can be run alone or together, in any order.
pub(crate) fn agree(findings: &mut [Finding], window: &Window<'_>) {
    let acts = |findings: &[Finding]| {
        findings.iter().flat_map(|finding| &finding.fix.steps).any(|step| step.act != Act::Own)
    };
    if !acts(findings) {
        return;
    }
    let trial = Trial::of(window);
    let mut wants = Wants::new();
    findings.iter().for_each(|finding| note(&mut wants, finding, window.now));
    let mut values = chosen(&mut wants, &trial, window.now);
    let names: Vec<Vec<String>> =
        findings.iter().map(|finding| needed(finding, &mut wants, &mut values, &trial, window.now)).collect();
    let routes = routes(findings, window.now);
    for (finding, names) in findings.iter_mut().zip(names) {
        let mut steps: Vec<Step> = Vec::new();
        let of_settings =
            names.iter().filter_map(|name| Some(setting(name, values.get(name)?, &wants, window.now)));
        let mut of_settings = of_settings.flatten().peekable();
        for step in finding.fix.steps.drain(..) {
            match &step.act {
                Act::Own => steps.push(step),
                // All settings, in place of the first one.
                Act::Set(..) => steps.extend(of_settings.by_ref()),
                Act::Route(present, _) => steps.extend(routes.get(present).cloned()),
            }
        }
        steps.extend(of_settings);
        finding.fix.steps = Vec::new();
        for step in steps {
            if !finding.fix.steps.contains(&step) {
                finding.fix.steps.push(step);
            }
        }
    }
}

/// Collects the values that a finding wants for settings that this host has.
fn note(wants: &mut Wants, finding: &Finding, now: &Sample) {
    let declared = Rule::by_id(&finding.id).map(|rule| rule.settings).unwrap_or_default();
    let declared = declared.iter().map(|(name, change)| ((*name).to_owned(), Want::Change(*change)));
    let computed = finding.fix.steps.iter().filter_map(|step| match &step.act {
        Act::Set(name, want) => Some((name.clone(), want.clone())),
        _ => None,
    });
    for (name, want) in declared.chain(computed).filter(|(name, _)| now.settings.contains_key(name)) {
        let asked = wants.entry(name).or_default();
        let want = (finding.id.clone(), want);
        if !asked.contains(&want) {
            asked.push(want);
        }
    }
}

/// Chooses the value of each setting that findings want to change.
fn chosen(wants: &mut Wants, trial: &Trial<'_>, now: &Sample) -> Values {
    let mut values: Values = wants
        .iter()
        .map(|(name, asked)| (name.clone(), folded(now.setting(name).unwrap_or_default(), asked)))
        .collect();
    // Prefer the file's value, unless a rule calls it too small or fires only with it.
    for (name, asked) in &*wants {
        let configured = asked.iter().find_map(|(_, want)| match want {
            Want::Configured(value) => Some(folded(value, asked)),
            _ => None,
        });
        let is_lowered = asked.iter().any(|(_, want)| matches!(want, Want::Nth(..)));
        let Some(configured) = configured.filter(|_| !is_lowered) else { continue };
        let with = Values::from_iter(values.clone().into_iter().chain([(name.clone(), configured.clone())]));
        let present = trial.provoked(&values);
        let is_known = |found: &Finding| {
            present.iter().any(|other| (&other.id, &other.scope) == (&found.id, &found.scope))
        };
        if trial.provoked(&with).iter().all(is_known) {
            values = with;
        }
    }
    for _ in 0..ROUNDS {
        let before = wants.clone();
        trial.provoked(&values).iter().for_each(|finding| note(wants, finding, now));
        if *wants == before {
            break;
        }
        for (name, asked) in &*wants {
            let present =
                values.get(name).map_or_else(|| now.setting(name).unwrap_or_default(), String::as_str);
            let value = folded(present, asked);
            values.insert(name.clone(), value);
        }
    }
    values
}

/// Returns the value after all requested changes.
fn folded(base: &str, asked: &[(String, Want)]) -> String {
    let changes = asked.iter().map(|(_, want)| want).filter(|want| !matches!(want, Want::Configured(_)));
    changes.fold(base.to_owned(), |value, want| want.apply(&value))
}

/// Returns the settings that a finding's fix changes, and those that must follow so that no other
/// rule fires.
fn needed(
    finding: &Finding,
    wants: &mut Wants,
    values: &mut Values,
    trial: &Trial<'_>,
    now: &Sample,
) -> Vec<String> {
    let of = |finding: &Finding| {
        let names = finding.fix.steps.iter().filter_map(|step| match &step.act {
            Act::Set(name, _) if now.settings.contains_key(name) => Some(name.clone()),
            _ => None,
        });
        names.collect::<Vec<_>>()
    };
    let mut names = of(finding);
    names.dedup();
    for _ in 0..ROUNDS {
        let own = values.iter().filter(|(name, _)| names.contains(name));
        let own: Values = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        let provoked = if own.is_empty() { Vec::new() } else { trial.provoked(&own) };
        let mut more = false;
        for other in &provoked {
            note(wants, other, now);
            for name in of(other).into_iter().filter(|name| !names.contains(name)).collect::<Vec<_>>() {
                let asked = wants.get(&name).map(Vec::as_slice).unwrap_or_default();
                let value = || folded(now.setting(&name).unwrap_or_default(), asked);
                values.entry(name.clone()).or_insert_with(value);
                names.push(name);
                more = true;
            }
        }
        if !more {
            break;
        }
    }
    names
}

/// Returns the steps that give a setting a value, now and at the next boot.
fn setting(name: &str, value: &str, wants: &Wants, now: &Sample) -> Vec<Step> {
    let is_named = lines::named(name, now).next().is_some();
    let present = now.setting(name).unwrap_or_default();
    let mut steps = Vec::new();
    if !present.split_whitespace().eq(value.split_whitespace()) {
        let step = own::words(set_to(name, value, now), now);
        let persist = if is_named { None } else { step.persist };
        steps.push(Step { persist, ..step });
    }
    let asked = wants.get(name).map(Vec::as_slice).unwrap_or_default();
    let mut others = asked.iter().filter(|(_, want)| !matches!(want, Want::Configured(_))).peekable();
    let is_default = others.peek().is_some()
        && others.all(|(id, want)| DEFAULTS.contains(&id.as_str()) && is_just(want, value));
    steps.extend(if is_default { lines::take_out(name, now) } else { lines::say(name, value, now) });
    steps
}

/// Returns whether the value is exactly the one that is wanted.
fn is_just(want: &Want, value: &str) -> bool {
    match want {
        Want::Change(Change::To(wanted)) => wanted.split_whitespace().eq(value.split_whitespace()),
        Want::Value(wanted) => wanted.split_whitespace().eq(value.split_whitespace()),
        Want::Nth(n, least) => {
            value.split_whitespace().nth(*n).and_then(|word| word.parse().ok()) == Some(*least)
        }
        Want::Change(_) | Want::Configured(_) => false,
    }
}

/// Returns one step for each route that findings change, with all requested metrics. The key is the
/// command that leaves the route unchanged.
fn routes(findings: &[Finding], now: &Sample) -> BTreeMap<String, Step> {
    let mut steps: BTreeMap<String, Step> = BTreeMap::new();
    for route in &now.routes {
        let present = format!("ip route change {}", changed(route, &route.metrics));
        let asked =
            findings.iter().flat_map(|finding| &finding.fix.steps).filter_map(|step| match &step.act {
                Act::Route(of, metrics) if *of == present => Some(&**metrics),
                _ => None,
            });
        let mut asked = asked.peekable();
        if asked.peek().is_some() {
            let metrics = asked.fold(route.metrics, |metrics, asked| merged(metrics, &route.metrics, asked));
            steps.insert(present, own::words(change(route, &metrics), now));
        }
    }
    steps
}

/// Returns the metrics, with the requested ones where they differ from the present ones.
fn merged(metrics: RouteMetrics, present: &RouteMetrics, asked: &RouteMetrics) -> RouteMetrics {
    fn one<T: PartialEq>(value: T, present: T, asked: T) -> T {
        if asked == present { value } else { asked }
    }
    RouteMetrics {
        mtu: one(metrics.mtu, present.mtu, asked.mtu),
        advmss: one(metrics.advmss, present.advmss, asked.advmss),
        cwnd: one(metrics.cwnd, present.cwnd, asked.cwnd),
        cwnd_locked: one(metrics.cwnd_locked, present.cwnd_locked, asked.cwnd_locked),
        ssthresh: one(metrics.ssthresh, present.ssthresh, asked.ssthresh),
        initcwnd: one(metrics.initcwnd, present.initcwnd, asked.initcwnd),
        initrwnd: one(metrics.initrwnd, present.initrwnd, asked.initrwnd),
        rto_min: one(metrics.rto_min, present.rto_min, asked.rto_min),
        quickack: one(metrics.quickack, present.quickack, asked.quickack),
        locked: one(metrics.locked, present.locked, asked.locked),
    }
}
