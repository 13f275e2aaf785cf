//! Judges the rules on the same host with other values of some settings.
//!
//! Sockets other than listeners are left out. There may be hundreds of thousands, and no setting
//! changes open sockets.
use super::RULES;
use crate::finding::Finding;
use crate::sample::{Sample, state};
use crate::window::Window;
use std::collections::BTreeMap;

/// A copy of a host whose settings can be changed.
pub(super) struct Trial<'a> {
    of: &'a Window<'a>,
    before: Option<Sample>,
    now: Sample,
    /// The findings with the present settings.
    present: Vec<Finding>,
}

impl<'a> Trial<'a> {
    pub(super) fn of(window: &'a Window<'a>) -> Trial<'a> {
        let (before, now) = (window.before().map(without_connections), without_connections(window.now));
        let mut trial = Trial { of: window, before, now, present: Vec::new() };
        trial.present = trial.findings(&trial.now);
        trial
    }

    /// Returns the findings that only these values cause.
    pub(super) fn provoked(&self, values: &BTreeMap<String, String>) -> Vec<Finding> {
        let mut now = self.now.clone();
        now.settings.extend(values.iter().map(|(name, value)| (name.clone(), value.clone())));
        let known = |found: &Finding| {
            self.present.iter().any(|other| (&other.id, &other.scope) == (&found.id, &found.scope))
        };
        self.findings(&now).into_iter().filter(|found| !known(found)).collect()
    }

    fn findings(&self, now: &Sample) -> Vec<Finding> {
        let window = match &self.before {
            Some(before) => Window::between(before, now),
            None => Window::since_boot(now),
        };
        let window = window.by(self.of.limits());
        let rules = RULES.iter().filter(|rule| !now.of_stack || rule.elsewhere().is_none());
        rules.filter_map(|rule| rule.judge(&window).ok()).flatten().collect()
    }
}

/// Copies a sample without connections and without lines of files. The value in a file is known
/// without a trial.
fn without_connections(sample: &Sample) -> Sample {
    let sockets = sample.in_state(state::LISTEN).cloned().collect();
    let unread = sample.unread.clone();
    Sample {
        of_stack: sample.of_stack,
        kernel: sample.kernel.clone(),
        uptime: sample.uptime,
        sockets,
        counters: sample.counters.clone(),
        settings: sample.settings.clone(),
        softnet: sample.softnet.clone(),
        queues: sample.queues.clone(),
        queue_kinds: sample.queue_kinds.clone(),
        devices: sample.devices.clone(),
        routes: sample.routes.clone(),
        source_rules: sample.source_rules,
        paths: sample.paths.clone(),
        sockstat: sample.sockstat.clone(),
        conntrack: sample.conntrack,
        unread,
        ..Sample::default()
    }
}
