//! Conversations with `tc`: commands for one device, one after the other, and their expected
//! answers.

use super::file::TcPart;
use crate::report::Finding;
use qdisc::{Device, Packet};

/// A packet type for queues that never carry packets.
#[derive(Clone)]
struct NoPacket;

impl Packet for NoPacket {}

/// Compares the answer of each command with the expected one.
pub(super) fn findings(parts: &[TcPart]) -> Vec<Finding> {
    let mut device: Device<NoPacket> = Device::new("eth0");
    let answer = |part: &TcPart| {
        let said = device.tc(0, &part.command, &mut Vec::new());
        let said = said.unwrap_or_else(|error| error.to_string());
        let lines = |text: &str| {
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
        };
        let or_nothing = |text: String| if text.is_empty() { "nothing".to_owned() } else { text };
        let [said, expected] = [said.as_str(), part.says.as_str()].map(|text| or_nothing(lines(text)));
        Finding::same(&format!("tc {}", part.command), said, expected).source(&part.source).linux(&part.linux)
    };
    parts.iter().map(answer).collect()
}
