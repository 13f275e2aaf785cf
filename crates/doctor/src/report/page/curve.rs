//! Small curves of evidence over the samples.
use crate::finding::{Evidence, Finding, Scope};
use crate::sample::{Sample, Socket, Softnet};
use std::fmt::Write;

const WIDTH: f64 = 160.0;
const HEIGHT: f64 = 28.0;

/// Returns a curve of this evidence, if the samples contain its value and there are at least three.
pub(super) fn of(finding: &Finding, evidence: &Evidence, samples: &[Sample]) -> Option<String> {
    if samples.len() < 3 {
        return None;
    }
    let figures: Option<Vec<f64>> =
        samples.iter().map(|sample| figure(&finding.scope, &evidence.name, sample)).collect();
    let figures = figures?;
    if !grows(&evidence.name, samples) {
        return Some(drawn(&figures, ""));
    }
    let times: Vec<f64> = samples.iter().map(|sample| sample.uptime).collect();
    let rates = figures
        .windows(2)
        .zip(times.windows(2))
        .map(|(figure, time)| (figure[1] - figure[0]).max(0.0) / (time[1] - time[0]).max(0.001));
    Some(drawn(&rates.collect::<Vec<_>>(), " a second"))
}

/// Returns whether the name is a counter, whose growth is drawn.
fn grows(name: &str, samples: &[Sample]) -> bool {
    let counted = samples.iter().any(|sample| sample.counters.contains_key(name));
    counted || name.starts_with("softnet_stat ") || ["sk_drops", "rx_dropped", "rx_nohandler"].contains(&name)
}

/// Returns the value of this name in a sample.
fn figure(scope: &Scope, name: &str, sample: &Sample) -> Option<f64> {
    if let Some(counter) = sample.counters.get(name) {
        return Some(*counter as f64);
    }
    if let Some(gauge) = sample.sockstat.get(name) {
        return Some(*gauge as f64);
    }
    let softnet = |column: fn(&Softnet) -> u64| {
        Some(sample.softnet.iter().map(column).fold(0, u64::saturating_add) as f64)
    };
    match name {
        "softnet_stat dropped" => return softnet(|row| row.dropped),
        "softnet_stat time_squeeze" => return softnet(|row| row.squeezed),
        "softnet_stat flow_limit_count" => return softnet(|row| row.flow_limited),
        "softnet_stat processed" => return softnet(|row| row.processed),
        _ => {}
    }
    match scope {
        Scope::Port(port) => {
            let mut at_port = sample.listeners().filter(|socket| socket.local_port == *port);
            let mut of = |value: fn(&Socket) -> u32| {
                at_port.by_ref().map(|socket| f64::from(value(socket))).reduce(f64::max)
            };
            match name {
                "Recv-Q" => of(|socket| socket.recv_queue),
                "sk_drops" => of(Socket::drops),
                _ => None,
            }
        }
        Scope::Device(device) => {
            let queue = || {
                sample
                    .queues
                    .iter()
                    .filter(|queue| queue.device == *device)
                    .map(|queue| f64::from(queue.backlog))
                    .sum()
            };
            match name {
                "rx_dropped" => sample.device(device).map(|device| device.rx_dropped as f64),
                "rx_nohandler" => sample.device(device).map(|device| device.rx_nohandler as f64),
                name if name.ends_with(" backlog") => Some(queue()),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Draws a line through the values, first to last. The lowest value is at the bottom.
fn drawn(values: &[f64], unit: &str) -> String {
    let most = values.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let step = WIDTH / (values.len().max(2) - 1) as f64;
    let mut points = String::new();
    for (at, value) in values.iter().enumerate() {
        let _ = write!(points, "{:.1},{:.1} ", at as f64 * step, 1.0 + (HEIGHT - 2.0) * (1.0 - value / most));
    }
    let most = if most == f64::MIN_POSITIVE { 0.0 } else { most };
    let words = match (round(least), round(most)) {
        (least, most) if least == most => format!("{most}{unit} throughout"),
        (least, most) => format!("from {least} to {most}{unit}"),
    };
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{words}\"><polyline points=\"{}\"/></svg><small>{words}</small>",
        points.trim_end()
    )
}

fn round(value: f64) -> String {
    if value >= 100.0 || value.fract().abs() < 0.05 { format!("{value:.0}") } else { format!("{value:.1}") }
}
