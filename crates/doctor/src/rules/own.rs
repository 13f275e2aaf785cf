//! Selects the rules that apply to a Firstbyte stack, and translates fixes into commands for it.
//!
//! A stack has sockets, counters, settings, routes and remembered paths under the kernel's names.
//! It has no devices, queues or interrupts of its own, and reads no files at boot.
use super::Rule;
use crate::finding::Step;
use crate::sample::{Sample, Source};

/// Sources that a stack provides.
const SOURCES: [Source; 7] = [
    Source::Sockets,
    Source::Counters,
    Source::Settings,
    Source::Key,
    Source::Routes,
    Source::Paths,
    Source::Sockstat,
];

/// Rules whose sources exist, but that do not apply to a stack, with the reason.
const REASONS: [(&str, &str); 7] = [
    ("ACC-11", "the rule compares tcp_max_syn_backlog with the default of a kernel version"),
    ("CC-10", "every socket can use every congestion control"),
    ("RX-09", "a stack has only the value for all devices"),
    (
        "ST-02",
        "a connection that waits in accept() already belongs to the process; `ss -li` counts clients that gave up (closed_before_accept)",
    ),
    ("TX-06", "a stack has no such setting: below it is the queue of its device"),
    ("TX-08", "a stack has no bonds"),
    ("WIN-13", "a stack refuses such settings with an error"),
];

impl Rule {
    /// Returns the reason why it is not judged for a Firstbyte stack, or `None` if it is judged.
    pub fn elsewhere(&self) -> Option<String> {
        if let Some((_, reason)) = REASONS.iter().find(|(id, _)| *id == self.id) {
            return Some((*reason).to_owned());
        }
        let missing: Vec<&str> =
            self.needs.iter().filter(|need| !SOURCES.contains(need)).map(|need| need.name()).collect();
        (!missing.is_empty()).then(|| format!("a stack does not have: {}", missing.join(", ")))
    }
}

/// Translates a step into the commands for the target: unchanged for a kernel, `firstbyte` commands
/// for a running stack.
pub(super) fn words(step: Step, now: &Sample) -> Step {
    if !now.of_stack {
        return step;
    }
    let lasts = match step.command.starts_with(CHANGE_ROUTE) {
        true => "the same route in the --route options of firstbyte serve",
        false => "a line in the --settings file of firstbyte serve",
    };
    Step {
        command: command(&step.command),
        persist: step.persist.map(|_| lasts.to_owned()),
        undo: step.undo.map(|undo| command(&undo)),
        ..step
    }
}

const CHANGE_ROUTE: &str = "ip route change ";

fn command(of_kernel: &str) -> String {
    // A stack has no gateways. A destination without metrics left is deleted.
    if let Some(prefix) = of_kernel.strip_prefix(CHANGE_ROUTE).filter(|rest| !rest.contains(' ')) {
        return format!("firstbyte route del --stack {prefix}");
    }
    let words = [
        ("sysctl -w ", "firstbyte sysctl --stack -w "),
        (CHANGE_ROUTE, "firstbyte route set --stack "),
        ("ip tcp_metrics delete address ", "firstbyte metrics delete --stack "),
        ("ip tcp_metrics flush all", "firstbyte metrics flush --stack"),
    ];
    let ours = words
        .iter()
        .find_map(|(kernel, ours)| of_kernel.strip_prefix(kernel).map(|rest| format!("{ours}{rest}")));
    ours.unwrap_or_else(|| of_kernel.to_owned())
}
