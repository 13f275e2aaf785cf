//! Observations and verdict.
use super::Verdict;
use probe::{Answer, Visit};
use serde_json::json;
use std::fmt::Write;
use std::net::SocketAddr;

/// The report on one address of a server.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) server: SocketAddr,
    pub(super) by: String,
    pub(super) visits: Vec<Visit>,
    pub(super) verdict: Verdict,
    /// The answers to SYNs with data and a small hop limit.
    pub(super) hops: Vec<(u8, Answer)>,
    /// Number of packets sent, if known.
    pub(super) packets: Option<usize>,
}

impl Report {
    pub(super) fn new(server: SocketAddr, by: String, visits: Vec<Visit>) -> Report {
        let verdict = Verdict::of(&visits);
        Report { server, by, visits, verdict, hops: Vec::new(), packets: None }
    }

    /// True if Fast Open works.
    pub(super) fn works(&self) -> bool {
        self.verdict.cause.works()
    }

    /// Formats the report for a person.
    pub(super) fn text(&self) -> String {
        let Report { server, by, verdict, .. } = self;
        let mut text = format!("{server}, by {by}\n\n{}\n", verdict.sentence);
        if !verdict.fix.is_empty() {
            let _ = writeln!(text, "{}", verdict.fix);
        }
        let _ = writeln!(
            text,
            "\nprobe            SYNs  answer      after      taken  cookie            first byte"
        );
        self.visits.iter().for_each(|visit| text += &row(visit));
        if !verdict.evidence.is_empty() {
            text += "\nEvidence:\n";
        }
        verdict.evidence.iter().for_each(|line| text += &format!("  {line}\n"));
        if !self.hops.is_empty() {
            text += "\nSYNs with data, by their hop limit:\n";
        }
        for (limit, answer) in &self.hops {
            text += &format!("  {limit}: {}\n", hop(answer));
        }
        if !verdict.deduced.is_empty() {
            text += "\nAdvice:\n";
        }
        verdict.deduced.iter().for_each(|line| text += &format!("  {line}\n"));
        if let Some(packets) = self.packets {
            let _ = writeln!(text, "\n{packets} packets were sent.");
        }
        text
    }

    /// Formats the report as one line of JSON.
    pub(super) fn json(&self) -> String {
        let hops: Vec<_> =
            self.hops.iter().map(|(limit, answer)| json!({ "limit": limit, "answer": answer })).collect();
        json!({
            "version": 1, "server": self.server, "by": self.by, "verdict": self.verdict, "visits": self.visits,
            "hops": hops, "packets": self.packets,
        })
        .to_string()
    }
}

/// Describes how far a SYN with a small hop limit came.
pub(super) fn hop(answer: &Answer) -> String {
    match answer {
        Answer::Expired(router) => format!("{router} forwarded it"),
        Answer::Nothing => "lost before this hop, or at a router that does not answer".to_owned(),
        _ => "the server answered".to_owned(),
    }
}

fn row(visit: &Visit) -> String {
    let millis = |time: Option<f64>| time.map_or("-".to_owned(), |time| format!("{time:.1} ms"));
    let answer = answer(visit);
    let taken =
        if visit.sent > 0 { format!("{}/{}", visit.acknowledged, visit.sent) } else { "-".to_owned() };
    let line = format!(
        "{:<16} {:>4}  {answer:<10} {:>9} {taken:>9}  {:<17} {}",
        visit.probe.to_string(),
        visit.syns,
        millis(visit.answered_ms),
        visit.cookie.as_deref().unwrap_or("-"),
        first_byte(visit),
    );
    line.trim_end().to_owned() + "\n"
}

/// Formats the time at which the reply began, or the event that came in its place.
pub(super) fn first_byte(visit: &Visit) -> String {
    match visit.first_byte_ms {
        Some(time) => format!("{time:.1} ms"),
        None if visit.reset => "reset".to_owned(),
        None => "-".to_owned(),
    }
}

/// Names the answer in two words.
pub(super) fn answer(visit: &Visit) -> &'static str {
    match visit.answer {
        Answer::SynAck if visit.fell_back => "plain only",
        Answer::SynAck => "SYN-ACK",
        Answer::Reset => "reset",
        Answer::Nothing => "none",
        Answer::TooBig(..) => "too big",
        Answer::Unreachable(_) | Answer::Expired(_) => "ICMP",
    }
}
