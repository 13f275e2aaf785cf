//! Prints queueing disciplines like `tc -s qdisc`.
use super::glossary;
use crate::finding::Finding;
use crate::sample::{Queue, Sample};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

fn shown<'a>(device: Option<&'a str>, sample: &'a Sample) -> impl Iterator<Item = &'a Queue> {
    sample.queues.iter().filter(move |queue| device.is_none_or(|device| queue.device == device))
}

/// Returns three lines per discipline, as tc does, for one device or for all.
pub fn text(device: Option<&str>, sample: &Sample) -> String {
    let mut text = String::new();
    for queue in shown(device, sample) {
        let place = if queue.root { "root".to_owned() } else { format!("parent {}", handle(queue.parent)) };
        let _ = write!(text, "qdisc {} {:x}: dev {} {place}", queue.kind, queue.handle.0, queue.device);
        if queue.references != 1 {
            let _ = write!(text, " refcnt {}", queue.references);
        }
        for (name, value) in &queue.options {
            let _ = write!(text, " {}", format!("{name} {value}").trim_end());
        }
        let Queue { bytes, packets, drops, overlimits, requeues, backlog, length, .. } = queue;
        let _ = writeln!(
            text,
            "\n Sent {bytes} bytes {packets} pkt (dropped {drops}, overlimits {overlimits} requeues {requeues})\n backlog {backlog}b {length}p requeues {requeues}"
        );
    }
    text
}

/// Formats major and minor number in hexadecimal, as tc does.
fn handle((major, minor): (u16, u16)) -> String {
    match minor {
        0 => format!("{major:x}:"),
        _ if major == 0 => format!(":{minor:x}"),
        _ => format!("{major:x}:{minor:x}"),
    }
}

/// Returns the disciplines as JSON. `delay_ms` is the time that a shaper needs to drain its queue.
pub fn json(device: Option<&str>, sample: &Sample) -> Value {
    let queues = shown(device, sample).map(|queue| {
        let options: Map<String, Value> = queue
            .options
            .iter()
            .map(|(name, value)| {
                let value = if value.is_empty() { true.into() } else { value.as_str().into() };
                (name.clone(), value)
            })
            .collect();
        json!({
            "kind": queue.kind, "handle": format!("{:x}:", queue.handle.0), "dev": queue.device, "root": queue.root,
            "options": options, "bytes": queue.bytes, "packets": queue.packets, "drops": queue.drops,
            "overlimits": queue.overlimits, "requeues": queue.requeues, "backlog": queue.backlog,
            "qlen": queue.length, "delay_ms": delay(queue).map(|delay| delay * 1000.0),
        })
    });
    queues.collect()
}

fn delay(queue: &Queue) -> Option<f64> {
    queue.rate.filter(|rate| *rate > 0).map(|rate| f64::from(queue.backlog) / rate as f64)
}

/// Explains each value and each kind, and names its rules that fired.
pub fn explained(device: Option<&str>, sample: &Sample, findings: &[Finding]) -> String {
    let mut text = String::new();
    for queue in shown(device, sample) {
        if let Some(delay) = delay(queue) {
            let _ = writeln!(
                text,
                "{} of {}: {} bytes wait {:.1} ms at its rate\n",
                queue.kind,
                queue.device,
                queue.backlog,
                delay * 1000.0
            );
        }
    }
    let kinds: BTreeSet<&str> = shown(device, sample).map(|queue| queue.kind.as_str()).collect();
    let figures = ["Sent", "dropped", "overlimits", "requeues", "backlog"];
    let options: BTreeSet<&str> =
        shown(device, sample).flat_map(|queue| &queue.options).map(|(name, _)| name.as_str()).collect();
    text + &glossary::explain(&glossary::QUEUES, kinds.into_iter().chain(figures).chain(options), findings)
}
