//! What the rules would say of the same host if some of its settings had other values.
//!
//! Sockets other than listeners are left out: there may be hundreds of thousands, and no setting changes those that are open.
use super::RULES;
use crate::finding::Finding;
use crate::sample::{Sample, state};
use crate::window::Window;
use std::collections::BTreeMap;

/// A host whose settings can be changed without changing them.
pub(super) struct Trial<'a> {
    of: &'a Window<'a>,
    before: Option<Sample>,
    now: Sample,
    /// What is found with the settings as they are.
    present: Vec<Finding>,
}

impl<'a> Trial<'a> {
    pub(super) fn of(window: &'a Window<'a>) -> Trial<'a> {
        let (before, now) = (window.before().map(without_connections), without_connections(window.now));
        let mut trial = Trial { of: window, before, now, present: Vec::new() };
        trial.present = trial.findings(&trial.now);
        trial
    }

    /// What is found with these values that is not found without them.
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

/// Lines of files are left out too: what a file says of a setting is known without a trial.
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
