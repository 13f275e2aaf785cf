//! Which rules mean something over a stack of ours, and their fixes in the words of its commands.
//!
//! A stack has sockets, counters, settings, routes and remembered paths as a kernel has, under the same names. It has no devices, queues and
//! interrupts of its own, and no files that are read at boot.
use super::Rule;
use crate::finding::Step;
use crate::sample::{Sample, Source};

/// What can be read of a stack.
const SOURCES: [Source; 7] = [
    Source::Sockets,
    Source::Counters,
    Source::Settings,
    Source::Key,
    Source::Routes,
    Source::Paths,
    Source::Sockstat,
];

/// Rules that would have what they read, and mean nothing all the same.
const REASONS: [(&str, &str); 7] = [
    ("ACC-11", "what is usual for tcp_max_syn_backlog is judged by the kernel's version"),
    ("CC-10", "every socket may have every congestion control"),
    ("RX-09", "a stack lists the value for all devices alone"),
    (
        "ST-02",
        "what waits to be accepted is the process's already; `ss -li` counts clients that gave up (closed_before_accept)",
    ),
    ("TX-06", "there is no such setting: below a stack is the queue of its device"),
    ("TX-08", "a stack has no bonds"),
    ("WIN-13", "such settings are refused, with the reason, when they are set"),
];

impl Rule {
    /// Why it is not judged over a stack of ours; `None`: it is.
    pub fn elsewhere(&self) -> Option<String> {
        if let Some((_, reason)) = REASONS.iter().find(|(id, _)| *id == self.id) {
            return Some((*reason).to_owned());
        }
        let missing: Vec<&str> =
            self.needs.iter().filter(|need| !SOURCES.contains(need)).map(|need| need.name()).collect();
        (!missing.is_empty()).then(|| format!("a stack has none of its own: {}", missing.join(", ")))
    }
}

/// A step in the words of the commands that change what was read: as it is, or over a running stack.
pub(super) fn words(step: Step, now: &Sample) -> Step {
    if !now.of_stack {
        return step;
    }
    let lasts = match step.command.starts_with(CHANGE_ROUTE) {
        true => "the same in the --route options of firstbyte serve",
        false => "a line in the file of --settings",
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
    // A stack has no gateways: a destination of which nothing is left to say is taken back.
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
