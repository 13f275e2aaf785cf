//! Steps that change sysctl(8) settings.
use crate::change::{Act, Change, Want};
use crate::escape;
use crate::finding::Step;
use crate::sample::Sample;

impl Change {
    /// Returns the step that makes the change, or `None` if the setting needs none.
    pub(super) fn step(self, name: &str, now: &Sample) -> Option<Step> {
        let Some(present) = now.setting(name) else {
            let value = match self {
                Change::To(value) => value.to_owned(),
                Change::AtLeast(number) | Change::AtMost(number) => number.to_string(),
                Change::Set(_) | Change::Clear(_) => return None,
            };
            // A setting that the kernel does not have needs no change.
            let obstacle = Some(obstacle(name, now)?);
            return Some(Step { command: command(name, &value), obstacle, ..Step::default() });
        };
        self.apply(present)?;
        Some(wanted(name, Want::Change(self), now))
    }
}

/// Returns the step that gives a setting the value that a finding wants.
pub(super) fn wanted(name: &str, want: Want, now: &Sample) -> Step {
    let value = want.apply(now.setting(name).unwrap_or_default());
    Step { act: Act::Set(name.to_owned(), want), ..set_to(name, &value, now) }
}

/// Returns the step that sets this value.
pub(super) fn set_to(name: &str, value: &str, now: &Sample) -> Step {
    Step {
        command: command(name, value),
        persist: Some(format!("a line in /etc/sysctl.d/: {name} = {value}")),
        undo: Some(command(name, now.setting(name).unwrap_or_default())),
        obstacle: obstacle(name, now),
        effect: EFFECTS.iter().find(|(known, _)| *known == name).map(|(_, effect)| (*effect).to_owned()),
        act: Act::Own,
    }
}

/// Settings that do not affect sockets or devices in use, and when they take effect.
const EFFECTS: [(&str, &str); 6] = [
    ("net.core.default_qdisc", "for devices created later"),
    ("net.core.somaxconn", "when the program calls listen() again: restart it"),
    ("net.ipv4.tcp_rto_max_ms", "for sockets opened later: restart the program"),
    ("net.ipv4.tcp_sack", "for new connections"),
    ("net.ipv4.tcp_timestamps", "for new connections"),
    ("net.ipv4.tcp_window_scaling", "for new connections"),
];

/// Returns the command that sets this value.
pub(super) fn command(name: &str, value: &str) -> String {
    format!("sysctl -w {}={}", escape::word(name), escape::value(value))
}

fn obstacle(name: &str, now: &Sample) -> Option<String> {
    let whole_host =
        !now.of_stack && !now.is_first_namespace() && WHOLE_HOST.iter().any(|known| name.starts_with(known));
    whole_host.then(|| "a setting of the whole host: change it in its first network namespace".to_owned())
}

/// Settings that only the initial network namespace can change. Other namespaces do not show them,
/// or show them read-only.
const WHOLE_HOST: [&str; 7] = [
    "net.core.rmem_",
    "net.core.wmem_",
    "net.core.netdev_",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_allowed_congestion_control",
    "net.netfilter.nf_conntrack_max",
];

#[cfg(test)]
mod tests {
    use crate::{Report, Sample, Window};

    #[test]
    fn what_several_findings_ask_of_one_setting_is_one_value() {
        let mut sample = Sample { kernel: "6.18.0".into(), ..Sample::default() };
        sample.settings.insert("net.ipv4.tcp_fastopen".into(), "1799".into());
        let commands = |sample: &Sample| {
            let report = Report::of(&Window::since_boot(sample));
            let of_switch = report.findings.iter().filter(|finding| finding.id.starts_with("TFO-1"));
            of_switch.map(|finding| finding.fix.steps[0].command.clone()).collect::<Vec<_>>()
        };
        assert_eq!(commands(&sample), ["sysctl -w net.ipv4.tcp_fastopen=\"3\""; 3]);
        sample.of_stack = true;
        assert_eq!(commands(&sample), ["firstbyte sysctl --stack -w net.ipv4.tcp_fastopen=\"3\""; 3]);
    }
}
