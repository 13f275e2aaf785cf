//! TX: queueing disciplines and what is sent through them.
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
        symptom: "packets dropped by our own queue",
        condition: "drops of a queueing discipline grow",
        why: "They die before the wire, and TCP sees loss.",
        advice: "A larger limit, an AQM instead of a FIFO, or the right rate of the shaper.",
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
        condition: "bytes wait in both samples, and at the shaper's rate, or that of the time between, they wait for more than 20 ms; or none was sent between",
        why: "Everything behind waits that long.",
        advice: "A discipline that keeps its queue short where the kernel has one, else a smaller limit. Below a shaper it belongs under the shaper.",
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
                            format!("{} bytes wait, and none was sent in {seconds:.1} s", grown.backlog);
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
        symptom: "limit of small queues changed",
        condition: "tcp_limit_output_bytes < 65536 or > 16 MiB",
        why: "Tiny values throttle each connection, huge ones fill the queues below.",
        advice: "Set it to 1 MiB, the default before Linux 6.16; since then it is 4 MiB.",
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

/// Judges what each queue did between two samples: its drops and bytes are what was added, its backlog is the smaller one.
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
