//! Devices and the layers between them and TCP: rings, queues, offloads, queueing disciplines,
//! backlog queues of the CPUs, bonds, connection tracking. Findings show them only if something is
//! wrong.
use crate::sample::{Bond, Conntrack, Device, Pool, Sample};
use serde_json::{Value, json};
use std::fmt::Write;

/// Formats a paragraph for each device, or for one, then the state that all devices share.
pub fn text(device: Option<&str>, sample: &Sample) -> String {
    let mut text = String::new();
    for one in shown(device, sample) {
        paragraph(one, sample, &mut text);
    }
    if device.is_none() {
        shared(sample, &mut text);
    }
    for unread in &sample.unread {
        let _ = writeln!(text, "not read: {}", unread.reason);
    }
    text
}

fn shown<'a>(device: Option<&'a str>, sample: &'a Sample) -> impl Iterator<Item = &'a Device> {
    sample.devices.iter().filter(move |one| device.is_none_or(|name| one.name == name))
}

/// Writes a line: the topic in its column, then the text.
fn line(text: &mut String, name: &str, words: &str) {
    let _ = writeln!(text, "    {name:<11}{words}");
}

fn paragraph(device: &Device, sample: &Sample, text: &mut String) {
    let Device { name, up, mtu, tx_queue_len, kind, parent, speed, .. } = device;
    let mut words = vec![if *up { "up" } else { "down" }.to_owned()];
    words.extend(kind.clone());
    words.extend(parent.clone());
    words.extend(speed.map(|speed| format!("{speed} Mbit/s")));
    words.push(format!("mtu {mtu}"));
    words.push(format!("txqueuelen {tx_queue_len}"));
    let _ = writeln!(text, "{name}: {}", words.join(", "));
    if let Some(rings) = device.rings {
        line(text, "rings", &format!("rx {}, tx {}", of(rings.rx), of(rings.tx)));
    }
    if let Some(channels) = device.channels {
        line(text, "queues", &of(channels));
    }
    if !device.features.is_empty() {
        let on = |on: &bool| if *on { "on" } else { "off" };
        let features: Vec<String> =
            device.features.iter().map(|(name, is)| format!("{name} {}", on(is))).collect();
        line(text, "offloads", &features.join(", "));
    }
    for limit in &device.byte_limits {
        let words = format!(
            "{} {} bytes of at most {}, {} stalls",
            limit.queue, limit.limit, limit.limit_max, limit.stall_cnt
        );
        line(text, "byte limit", &words);
    }
    for interrupt in &device.interrupts {
        line(
            text,
            "interrupt",
            &format!("{} {} to CPU {}", interrupt.number, interrupt.name, interrupt.cpus),
        );
    }
    if device.rps {
        line(text, "steering", "other CPUs help to receive (rps_cpus)");
    }
    for queue in sample.queues.iter().filter(|queue| queue.device == *name) {
        let place = if queue.root { "root" } else { "below" };
        line(
            text,
            "qdisc",
            &format!("{} ({place}), {} bytes wait, {} dropped", queue.kind, queue.backlog, queue.drops),
        );
    }
    let Device {
        rx_packets, rx_dropped, rx_missed_errors, rx_fifo_errors, rx_over_errors, rx_nohandler, ..
    } = device;
    line(
        text,
        "received",
        &format!(
            "{rx_packets} packets; {rx_dropped} dropped, {rx_nohandler} without a protocol; ring: {rx_missed_errors} missed, {rx_fifo_errors} fifo, {rx_over_errors} over"
        ),
    );
    line(text, "sent", &format!("{} dropped", device.tx_dropped));
}

fn of(Pool { now, max }: Pool) -> String {
    format!("{now} of at most {max}")
}

fn shared(sample: &Sample, text: &mut String) {
    for Bond { name, mode, down, partner } in &sample.bonds {
        let down =
            if down.is_empty() { "no member down".to_owned() } else { format!("down: {}", down.join(", ")) };
        let partner = partner.as_ref().map_or(String::new(), |partner| format!(", partner {partner}"));
        let _ = writeln!(text, "bond {name}: {mode}, {down}{partner}");
    }
    for (cpu, row) in sample.softnet.iter().enumerate() {
        let _ = writeln!(
            text,
            "CPU {cpu}: {} packets handled; {} dropped, {} times out of budget, {} over the flow limit",
            row.processed, row.dropped, row.squeezed, row.flow_limited
        );
    }
    if let Some(Conntrack { count, max, drop, early_drop, insert_failed, invalid }) = sample.conntrack {
        let _ = writeln!(
            text,
            "connection tracking: {count} of at most {max}; {drop} dropped, {early_drop} dropped early, {insert_failed} inserts failed, {invalid} invalid"
        );
    }
}

/// Returns the devices as JSON, under the names of the doctor's records.
pub fn json(device: Option<&str>, sample: &Sample) -> Value {
    let devices: Vec<&Device> = shown(device, sample).collect();
    let queues: Vec<_> =
        sample.queues.iter().filter(|queue| device.is_none_or(|name| queue.device == name)).collect();
    json!({
        "devices": devices, "queues": queues, "bonds": sample.bonds, "softnet": sample.softnet,
        "net_rx": sample.net_rx, "conntrack": sample.conntrack, "unread": sample.unread,
    })
}
