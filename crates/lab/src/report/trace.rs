//! Events at both ends of a run, line by line: packets, and the reactions of the stacks.
//!
//! ```text
//!      0.000 client #1 out [S] seq 0 len 200 win 65535 wscale 7
//!     85.000 server #1 in  [S] seq 0 len 200 win 65535 wscale 7
//!    100.000        lost by firewall
//! ```

use super::Recording;
use super::connections::Connections;
use crate::capture::{Capture, Place};
use crate::ladder::milliseconds;
use core::net::SocketAddr;
use proto::{Instant, SegmentSummary, SeqNum, TraceEvent, Traced};
use std::collections::BTreeMap;
use wire::Flags;

/// Returns the lines of all runs of a report.
pub fn traces(recordings: &[Recording<'_>]) -> Vec<(String, Vec<String>)> {
    each_once(recordings).map(|recording| (recording.name.clone(), lines(recording))).collect()
}

/// Returns every run once; one that is shown from both ends occurs only the first time.
pub(super) fn each_once<'a>(recordings: &'a [Recording<'a>]) -> impl Iterator<Item = &'a Recording<'a>> {
    let mut told: Vec<&Capture> = Vec::new();
    recordings.iter().filter(move |recording| {
        let again = told.iter().any(|capture| std::ptr::eq(*capture, recording.capture));
        told.push(recording.capture);
        !again
    })
}

fn lines(recording: &Recording<'_>) -> Vec<String> {
    let capture = recording.capture;
    let mut view = View::default();
    let mut lines: Vec<(Instant, String)> = Vec::new();
    for (host, event) in capture.traced() {
        let end = if recording.is_client(*host) { "client" } else { "server" };
        let what = view.tell(event);
        lines.push((event.at, format!("{:>12.3} {end} {what}", milliseconds(event.at.since(Instant::ZERO)))));
    }
    for seen in capture.observations() {
        let what = match &seen.place {
            Place::Lost { by } => format!("lost by {by}"),
            Place::Injected { by } => format!("injected by {by}"),
            Place::Left(_) | Place::Arrived(_) => continue,
        };
        lines.push((seen.at, format!("{:>12.3}        {what}", milliseconds(seen.at.since(Instant::ZERO)))));
    }
    // The sort is stable: events of a stack at one time stay in order, followed by the fate of its
    // packets.
    lines.sort_by_key(|(at, _)| *at);
    lines.into_iter().map(|(_, line)| line).collect()
}

/// The state that shortens names of connections and makes numbers relative to the first of their
/// direction.
#[derive(Default)]
struct View {
    connections: Connections,
    /// Initial sequence numbers, by (from, to).
    isns: BTreeMap<(SocketAddr, SocketAddr), SeqNum>,
}

impl View {
    fn tell(&mut self, event: &TraceEvent) -> String {
        let Some(ends) = event.ends else { return format!("   {}", event.what) };
        let number = self.connections.number(ends);
        let (there, back) = (ends, (ends.1, ends.0));
        let what = match &event.what {
            Traced::Sent(segment) => Traced::Sent(self.relative(segment, there, back)),
            Traced::Received(segment) => Traced::Received(self.relative(segment, back, there)),
            Traced::Retransmitted { seq, len, why } => {
                Traced::Retransmitted { seq: self.number_of(*seq, there), len: *len, why: *why }
            }
            other => other.clone(),
        };
        format!("#{number} {what}")
    }

    fn relative(
        &mut self,
        segment: &SegmentSummary,
        way: (SocketAddr, SocketAddr),
        back: (SocketAddr, SocketAddr),
    ) -> SegmentSummary {
        if segment.flags.contains(Flags::SYN) {
            self.isns.insert(way, segment.seq);
        }
        let (seq, ack) = (self.number_of(segment.seq, way), self.number_of(segment.ack, back));
        SegmentSummary { seq, ack, ..*segment }
    }

    fn number_of(&self, number: SeqNum, way: (SocketAddr, SocketAddr)) -> SeqNum {
        let isn = self.isns.get(&way).copied().unwrap_or(SeqNum(0));
        SeqNum(number.0.wrapping_sub(isn.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Report;
    use crate::scenario::{middlebox, packets};

    #[test]
    fn packets_and_what_came_of_them_are_told_in_the_order_of_time() {
        let results = packets::run(&packets::Params::default());
        let traces = traces(&results.recordings());
        let (_, lines) = traces.last().expect("several runs");
        let repeat: Vec<&str> =
            lines.iter().map(|line| line.trim()).filter(|line| line.contains("#2")).collect();
        assert_eq!(
            repeat[..6],
            [
                "100.000 client #2 state SynSent",
                "100.000 client #2 limited by nothing -> the handshake",
                "100.000 client #2 out [SF] seq 0 len 27 win 64240 wscale 7",
                "120.000 server #2 in  [SF] seq 0 len 27 win 64240 wscale 7",
                "120.000 server #2 state CloseWait",
                "120.000 server #2 state CloseWait -> LastAck",
            ]
        );
    }

    #[test]
    fn losses_are_told_too() {
        let results = middlebox::run(&middlebox::Params::default());
        let told: Vec<String> =
            traces(&results.recordings()).into_iter().flat_map(|(_, lines)| lines).collect();
        assert!(told.iter().any(|line| line.contains("lost by")));
        assert!(told.iter().any(|line| line.contains("again seq 0 len 0: no answer to the handshake")));
    }
}
