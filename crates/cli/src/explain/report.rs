//! What was seen and what it means.
use super::Verdict;
use probe::{Answer, Visit};
use serde_json::json;
use std::fmt::Write;
use std::net::SocketAddr;

/// Of one address of a server.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) server: SocketAddr,
    pub(super) by: String,
    pub(super) visits: Vec<Visit>,
    pub(super) verdict: Verdict,
    /// Who answered SYNs with data of a small hop limit.
    pub(super) hops: Vec<(u8, Answer)>,
    /// Packets that were sent, where they were counted.
    pub(super) packets: Option<usize>,
}

impl Report {
    pub(super) fn new(server: SocketAddr, by: String, visits: Vec<Visit>) -> Report {
        let verdict = Verdict::of(&visits);
        Report { server, by, visits, verdict, hops: Vec::new(), packets: None }
    }

    /// Does Fast Open work?
    pub(super) fn works(&self) -> bool {
        self.verdict.cause.works()
    }

    /// For a person.
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
            text += "\nWhat speaks for it:\n";
        }
        verdict.evidence.iter().for_each(|line| text += &format!("  {line}\n"));
        if !self.hops.is_empty() {
            text += "\nSYNs with data, by their hop limit:\n";
        }
        for (limit, answer) in &self.hops {
            text += &format!("  {limit}: {}\n", hop(answer));
        }
        if !verdict.deduced.is_empty() {
            text += "\nWhat follows from it:\n";
        }
        verdict.deduced.iter().for_each(|line| text += &format!("  {line}\n"));
        if let Some(packets) = self.packets {
            let _ = writeln!(text, "\n{packets} packets were sent.");
        }
        text
    }

    /// For a program, on one line.
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

/// How far a SYN of a small hop limit came.
pub(super) fn hop(answer: &Answer) -> String {
    match answer {
        Answer::Expired(router) => format!("{router} has seen it"),
        Answer::Nothing => "lost before, or at a router that says nothing".to_owned(),
        _ => "the server has answered".to_owned(),
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

/// What answered, in two words.
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
