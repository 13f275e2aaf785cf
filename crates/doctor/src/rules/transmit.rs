//! TX: queueing disciplines and the traffic through them.
use super::devices::other_discipline;
use super::{Change, Found, Kernels, Rule, setting};
use crate::finding::{Confidence, Evidence, Scope, Severity, Step};
use crate::limit::Limit;
use crate::sample::Queue;
use crate::sample::Source::{Queues, Settings};
use crate::window::Window;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "TX-01",
        symptom: "this host's own queue drops packets",
        condition: "the drop counter of a queueing discipline grows",
        why: "The packets are dropped before they reach the wire, and TCP treats them as lost.",
        advice: "Raise the limit, use an AQM instead of a FIFO, or correct the rate of the shaper.",
        settings: &[],
        needs: &[Queues],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| {
            queues(window, |grown, seconds| {
                (grown.drops > 0)
                    .then(|| (format!("+{} packets in {seconds:.1} s > 0", grown.drops), Vec::new()))
            })
        },
    },
    Rule {
        id: "TX-02",
        symptom: "standing queue",
        condition: "bytes wait in both samples, and at the shaper's rate or the measured rate the queue takes more than 20 ms to drain; or nothing was sent between the samples",
        why: "Every later packet waits that long.",
        advice: "Use a discipline that keeps its queue short if the kernel has one, else a smaller limit. If there is a shaper, attach the discipline below it.",
        settings: &[],
        needs: &[Queues],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[STANDING],
        judge: |window| {
            queues(window, |grown, seconds| {
                let sent = grown.bytes as f64 / seconds;
                let rate = grown.rate.map_or(sent, |rate| rate as f64);
                let milliseconds = f64::from(grown.backlog) * 1000.0 / rate.max(1.0);
                if grown.bytes == 0 {
                    let stands = grown.backlog > 0 && seconds * 1000.0 > window.limit(&STANDING);
                    return stands.then(|| {
                        let formula =
                            format!("{} bytes wait, and nothing was sent in {seconds:.1} s", grown.backlog);
                        (formula, other_discipline(window.now, grown))
                    });
                }
                (milliseconds > window.limit(&STANDING)).then(|| {
                    let formula = format!(
                        "{} bytes / {rate:.0} bytes a second = {milliseconds:.0} ms > {} ms",
                        grown.backlog,
                        window.limit(&STANDING)
                    );
                    (formula, other_discipline(window.now, grown))
                })
            })
        },
    },
    Rule {
        id: "TX-06",
        symptom: "TCP small queues limit changed",
        condition: "tcp_limit_output_bytes < 65536 or > 16 MiB",
        why: "A small value throttles each connection. A large one fills the queues below TCP.",
        advice: "Set it to 1 MiB, the default before Linux 6.16 (since then 4 MiB).",
        settings: &[("net.ipv4.tcp_limit_output_bytes", Change::To("1048576"))],
        needs: &[Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| {
            let usual = 65536..=16 << 20;
            setting(window, "net.ipv4.tcp_limit_output_bytes", Severity::Info, |value| {
                !usual.contains(&value)
            })
        },
    },
];

const STANDING: Limit = Limit { rule: "TX-02", name: "milliseconds", value: 20.0, unit: "ms" };

/// Judges each queue by the change between two samples: added drops, added bytes, and the smaller
/// backlog.
fn queues(window: &Window<'_>, judge: impl Fn(&Queue, f64) -> Option<(String, Vec<Step>)>) -> Vec<Found> {
    let Some(before) = window.needs_before() else { return Vec::new() };
    let found = window.now.queues.iter().filter_map(|now| {
        let same = |other: &&Queue| {
            (&other.device, other.handle, &other.kind) == (&now.device, now.handle, &now.kind)
        };
        let then = before.queues.iter().find(same)?;
        let grown = Queue {
            drops: now.drops.saturating_sub(then.drops),
            bytes: now.bytes.saturating_sub(then.bytes),
            backlog: now.backlog.min(then.backlog),
            ..now.clone()
        };
        let (formula, steps) = judge(&grown, window.seconds())?;
        let counted =
            |name: &str, value: String| Evidence { name: name.to_owned(), value, window: window.name() };
        let evidence = vec![
            counted(&format!("{} drops", now.kind), format!("+{}", grown.drops)),
            counted(&format!("{} bytes sent", now.kind), format!("+{}", grown.bytes)),
            window.shown(format!("{} backlog", now.kind), format!("{} bytes", now.backlog)),
        ];
        Some(Found {
            severity: Severity::Warning,
            scope: Scope::Device(now.device.clone()),
            evidence,
            formula,
            steps,
            ..Found::default()
        })
    });
    found.collect()
}
