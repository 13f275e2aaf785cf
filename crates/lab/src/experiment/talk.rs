//! A conversation with `tc`: commands for one device, one after the other, and what they are to answer.

use super::file::TcPart;
use crate::report::Finding;
use qdisc::{Device, Packet};

/// Nothing is sent while one talks about the queue.
#[derive(Clone)]
struct NoPacket;

impl Packet for NoPacket {}

/// What each command answers beside what it is to answer.
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
