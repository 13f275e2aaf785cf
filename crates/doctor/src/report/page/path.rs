//! The path of a packet through the host: each place with its numbers and its findings.
use super::text;
use crate::finding::Severity;
use crate::report::{Report, counted};
use crate::sample::{Sample, state};
use std::fmt::Write;

/// A place on the path.
struct Place {
    name: &'static str,
    /// Numbers in words. Zeros are left out.
    numbers: Vec<String>,
    /// Rules whose findings belong here: ids, or a prefix of them.
    rules: &'static [&'static str],
}

/// Draws both directions, receiving and sending.
pub(super) fn drawing(report: &Report, first: &Sample, last: &Sample) -> String {
    let span = Span { first, last, alone: std::ptr::eq(first, last) };
    let mut out = String::from("<h2>The path of a packet through this host</h2>\n<div class=\"path\">\n");
    for (name, places) in [("Receiving", span.receiving()), ("Sending", span.sending())] {
        let _ = writeln!(out, "<ol><li class=\"way\">{name}</li>");
        places.iter().for_each(|place| out += &drawn(place, report));
        out += "</ol>\n";
    }
    out + "</div>\n"
}

fn drawn(place: &Place, report: &Report) -> String {
    let found = report
        .findings
        .iter()
        .enumerate()
        .filter(|(_, finding)| place.rules.iter().any(|rule| belongs(&finding.id, rule)));
    let found: Vec<_> = found.collect();
    let worst = found.iter().map(|(_, finding)| finding.severity).max();
    let class =
        worst.filter(|worst| *worst > Severity::Info).map_or(String::new(), |worst| worst.to_string());
    let mut out = format!("<li class=\"place {class}\"><b>{}</b>", place.name);
    for number in &place.numbers {
        let _ = write!(out, "<span>{}</span>", text(number));
    }
    for (at, finding) in found {
        let _ = write!(out, "<a class=\"{}\" href=\"#f{at}\">{}</a>", finding.severity, finding.id);
    }
    out + "</li>\n"
}

/// Returns whether a rule is this one, or belongs to this family.
fn belongs(id: &str, rule: &str) -> bool {
    id == rule || (rule.ends_with('-') && id.starts_with(rule))
}

/// A named total over a whole sample.
type Total = (&'static str, fn(&Sample) -> u64);

/// The first and last sample. A single sample counts since boot.
struct Span<'a> {
    first: &'a Sample,
    last: &'a Sample,
    alone: bool,
}

impl Span<'_> {
    fn grown(&self, counter: &str) -> u64 {
        let of = |sample: &Sample| sample.counters.get(counter).copied().unwrap_or(0);
        of(self.last).saturating_sub(if self.alone { 0 } else { of(self.first) })
    }

    fn sum(&self, of: impl Fn(&Sample) -> u64) -> u64 {
        of(self.last).saturating_sub(if self.alone { 0 } else { of(self.first) })
    }

    /// Returns the growth of counters under their short names. Counters without growth are left
    /// out.
    fn counters(&self, names: &[&str]) -> Vec<String> {
        let line = |name: &&str| {
            let grown = self.grown(name);
            (grown > 0).then(|| format!("{} +{grown}", name.trim_start_matches("TcpExt")))
        };
        names.iter().filter_map(line).collect()
    }

    fn devices(&self, names: &[Total]) -> Vec<String> {
        let line = |(name, of): &Total| {
            let grown = self.sum(of);
            (grown > 0).then(|| format!("{name} +{grown}"))
        };
        names.iter().filter_map(line).collect()
    }

    fn sockets(&self, of: impl Fn(&crate::sample::Socket) -> u32) -> u64 {
        let others = self.last.sockets.iter().filter(|socket| socket.state != state::LISTEN);
        total(others.map(|socket| u64::from(of(socket))))
    }

    fn receiving(&self) -> Vec<Place> {
        let accepted = total(self.last.listeners().map(|listener| u64::from(listener.recv_queue)));
        let mut listeners = vec![counted(self.last.listeners().count(), "listener")];
        if accepted > 0 {
            listeners.push(format!("{accepted} wait for accept()"));
        }
        listeners.extend(self.counters(&[
            "TcpExtListenOverflows",
            "TcpExtListenDrops",
            "TcpExtTCPReqQFullDoCookies",
            "TcpExtTCPReqQFullDrop",
            "TcpExtSyncookiesSent",
        ]));
        let mut queue = vec![format!("{} bytes wait to be read", self.sockets(|socket| socket.recv_queue))];
        queue.extend(self.counters(&[
            "TcpExtTCPToZeroWindowAdv",
            "TcpExtPruneCalled",
            "TcpExtTCPRcvCollapsed",
            "TcpExtTCPRcvQDrop",
            "TcpExtTCPBacklogDrop",
            "TcpExtTCPOFOQueue",
        ]));
        vec![
            Place {
                name: "Device and its ring",
                numbers: self.devices(&[
                    ("packets", |sample| total(sample.devices.iter().map(|device| device.rx_packets))),
                    ("dropped", |sample| total(sample.devices.iter().map(|device| device.rx_dropped))),
                    ("missed", |sample| total(sample.devices.iter().map(|device| device.rx_missed_errors))),
                ]),
                rules: &["RX-04", "RX-05", "RX-06", "RX-10"],
            },
            Place {
                name: "Backlog of the CPU",
                numbers: self.devices(&[
                    ("dropped", |sample| total(sample.softnet.iter().map(|row| row.dropped))),
                    ("squeezed", |sample| total(sample.softnet.iter().map(|row| row.squeezed))),
                ]),
                rules: &["RX-01", "RX-02", "RX-03"],
            },
            Place {
                name: "IP",
                numbers: self.counters(&["IpInReceives", "IpInDelivers", "TcpExtIPReversePathFilter"]),
                rules: &["RX-07", "RX-08", "RX-09", "RX-11", "RX-12", "RX-13"],
            },
            Place {
                name: "Listeners",
                numbers: listeners,
                rules: &[
                    "ACC-", "TFO-02", "TFO-03", "TFO-06", "TFO-07", "TFO-08", "TFO-09", "TFO-10", "TFO-11",
                    "TFO-12", "TFO-14",
                ],
            },
            Place {
                name: "Receive queues",
                numbers: queue,
                rules: &[
                    "WIN-03", "WIN-04", "WIN-07", "WIN-08", "WIN-09", "WIN-10", "WIN-11", "WIN-14", "WIN-15",
                    "WIN-17",
                ],
            },
            Place { name: "Programs", numbers: self.programs(), rules: &["ST-"] },
        ]
    }

    fn programs(&self) -> Vec<String> {
        let states = [
            (state::ESTABLISHED, "established"),
            (state::CLOSE_WAIT, "in CLOSE-WAIT"),
            (state::TIME_WAIT, "in TIME-WAIT"),
        ];
        let line = |(number, name): &(u8, &str)| {
            let count = self.last.in_state(*number).count();
            (count > 0).then(|| format!("{count} {name}"))
        };
        states.iter().filter_map(line).collect()
    }

    fn sending(&self) -> Vec<Place> {
        let waiting = total(self.last.queues.iter().map(|queue| u64::from(queue.backlog)));
        let mut queues = vec![format!("{waiting} bytes wait")];
        queues.extend(self.devices(&[
            ("dropped", |sample| total(sample.queues.iter().map(|queue| u64::from(queue.drops)))),
            ("delayed by shapers", |sample| {
                total(sample.queues.iter().map(|queue| u64::from(queue.overlimits)))
            }),
        ]));
        vec![
            Place {
                name: "Send buffers",
                numbers: vec![format!("{} bytes unacknowledged", self.sockets(|socket| socket.send_queue))],
                rules: &["WIN-05", "WIN-06", "WIN-16"],
            },
            Place {
                name: "TCP",
                numbers: self.counters(&[
                    "TcpOutSegs",
                    "TcpRetransSegs",
                    "TcpExtTCPTimeouts",
                    "TcpExtTCPSynRetrans",
                    "TcpExtTCPFastOpenActive",
                    "TcpExtTCPFastOpenActiveFail",
                ]),
                rules: &[
                    "CC-", "WIN-01", "WIN-02", "WIN-12", "WIN-13", "TFO-01", "TFO-04", "TFO-05", "TFO-13",
                ],
            },
            Place {
                name: "IP",
                numbers: self.counters(&["IpOutRequests", "IpOutNoRoutes"]),
                rules: &["TX-09"],
            },
            Place {
                name: "Queueing disciplines",
                numbers: queues,
                rules: &["TX-01", "TX-02", "TX-03", "TX-06", "TX-07"],
            },
            Place {
                name: "Device and its ring",
                numbers: self.devices(&[("dropped", |sample| {
                    total(sample.devices.iter().map(|device| device.tx_dropped))
                })]),
                rules: &["TX-04", "TX-05", "TX-08"],
            },
        ]
    }
}

/// Returns the sum, without overflow. A record may contain any numbers.
fn total(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::RULES;

    #[test]
    fn every_rule_has_one_place() {
        let sample = Sample::default();
        let span = Span { first: &sample, last: &sample, alone: true };
        let places: Vec<Place> = span.receiving().into_iter().chain(span.sending()).collect();
        for rule in RULES.iter() {
            let here = places.iter().flat_map(|place| place.rules).filter(|known| belongs(rule.id, known));
            assert_eq!(here.count(), 1, "{}", rule.id);
        }
    }
}
