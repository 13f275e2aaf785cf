//! TX: queueing disciplines and what is sent through them.
use super::{Change, Found, Rule, setting};
use crate::finding::{Evidence, Scope, Severity};
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
        judge: |window| {
            queues(window, |grown, seconds| {
                (grown.drops > 0).then(|| format!("+{} packets in {seconds:.1} s > 0", grown.drops))
            })
        },
    },
    Rule {
        id: "TX-02",
        symptom: "standing queue",
        condition: "bytes wait in both samples, and at the rate sent between them they wait for more than 20 ms",
        why: "Everything behind waits that long.",
        advice: "tc qdisc replace dev DEVICE root fq_codel where the kernel has it; else a smaller limit.",
        settings: &[],
        needs: &[Queues],
        judge: |window| {
            queues(window, |grown, seconds| {
                let milliseconds =
                    f64::from(grown.backlog) * seconds * 1000.0 / (grown.bytes as f64).max(1.0);
                (grown.bytes > 0 && milliseconds > 20.0).then(|| {
                    format!(
                        "{} bytes / ({} bytes / {seconds:.1} s) = {milliseconds:.0} ms > 20 ms",
                        grown.backlog, grown.bytes
                    )
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
        judge: |window| {
            let usual = 65536..=16 << 20;
            setting(window, "net.ipv4.tcp_limit_output_bytes", Severity::Info, |value| {
                !usual.contains(&value)
            })
        },
    },
];

/// Judges what each queue did between two samples: its drops and bytes are what was added, its backlog is the smaller one.
fn queues(window: &Window<'_>, judge: impl Fn(&Queue, f64) -> Option<String>) -> Vec<Found> {
    let Some(before) = window.before() else { return Vec::new() };
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
        let formula = judge(&grown, window.seconds())?;
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
        })
    });
    found.collect()
}
