//! `replay`: an exact copy of a SYN with data (RFC 7413 §6.1). The question is whether the request
//! reaches the program twice.

use super::pair::{Pair, PairPlan, Run, answering_until, visit};
use super::record::ms;
use crate::apps::{Closer, Opening, Server, Visit};
use crate::capture::{Capture, HostId, Journey, Place};
use crate::exchange::{Exchange, exchanges};
use crate::ladder::{Ladder, milliseconds};
use crate::middlebox::Direction;
use crate::network::{Profile, Route};
use crate::report::{Align, Finding, Page, Recording, Report, Table};
use crate::segment::Segment;
use bytes::Bytes;
use core::time::Duration;
use proto::{FastOpen, Instant};
use serde_json::json;
use std::collections::BTreeSet;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Round-trip time of the path.
    pub rtt: Duration,
    /// Seed of all randomness.
    pub seed: u64,
}

impl Default for Params {
    fn default() -> Params {
        Params { rtt: Duration::from_millis(40), seed: 1 }
    }
}

const REQUEST_LEN: usize = 200;
const REPLY_LEN: usize = 500;
/// Time for which the network is watched after the replay.
const WATCHED: Duration = Duration::from_secs(5);

/// Time of the copy's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// While the server waits for the last ACK of the handshake.
    BeforeAck,
    /// After a connection that the client closed first: the server has no TIME-WAIT.
    AfterClientClosed,
    /// After a connection that the server closed first: the server keeps it in TIME-WAIT.
    AfterServerClosed,
}

impl Moment {
    /// All times of arrival.
    pub const ALL: [Moment; 3] = [Moment::BeforeAck, Moment::AfterClientClosed, Moment::AfterServerClosed];

    fn title(self) -> &'static str {
        match self {
            Moment::BeforeAck => "before the final ACK",
            Moment::AfterClientClosed => "after the client closed first",
            Moment::AfterServerClosed => "after the server closed first",
        }
    }

    fn closer(self) -> Closer {
        if self == Moment::AfterClientClosed { Closer::Client } else { Closer::Server }
    }
}

/// One time of arrival with one profile.
#[derive(Clone, Debug)]
pub struct Case {
    /// Profile of both ends.
    pub profile: Profile,
    /// Time of the copy's arrival.
    pub moment: Moment,
    /// Connections on which the server sent a reply, identified by its sequence numbers: one per
    /// delivery of the request.
    pub deliveries: usize,
    /// Deliveries of the request according to the server's program.
    pub program_deliveries: usize,
    /// The original exchange.
    pub original: Exchange,
    /// Time at which the copy was sent.
    replayed_at: Instant,
    aftermath: Vec<Journey>,
    /// The capture and the state of the ends.
    pub run: Run,
}

/// Every time of arrival with both profiles.
#[derive(Clone, Debug)]
pub struct Results {
    /// The parameters.
    pub params: Params,
    /// Times in order; Firstbyte before Linux.
    pub cases: Vec<Case>,
}

impl Results {
    /// Returns one case.
    pub fn case(&self, moment: Moment, profile: Profile) -> Option<&Case> {
        self.cases.iter().find(|case| case.moment == moment && case.profile == profile)
    }
}

/// Runs every case.
pub fn run(params: &Params) -> Results {
    let profiles = [Profile::Firstbyte, Profile::Linux];
    let kinds = Moment::ALL.iter().flat_map(|moment| profiles.map(|profile| (*moment, profile)));
    let cases = kinds.enumerate().map(|(run, (moment, profile))| case(params, run, moment, profile));
    Results { params: *params, cases: cases.collect() }
}

fn case(params: &Params, run: usize, moment: Moment, profile: Profile) -> Case {
    let program = answering_until(Some(256), REQUEST_LEN, REPLY_LEN, moment.closer());
    let mut pair = Pair::new(PairPlan::new(params.seed, run, profile, program, Route::with_rtt(params.rtt)));
    let opening = Opening::FirstBytes(FastOpen::Auto);
    let request = Visit { closer: moment.closer(), ..visit(opening, REQUEST_LEN, REPLY_LEN) };
    pair.visit(request.clone());
    let (mark, served_before) = (pair.network.capture().mark(), delivered(&pair));
    let server = pair.server;
    match moment {
        Moment::BeforeAck => {
            pair.begin(request);
            // The copy leaves right after the original, so it arrives while the server waits for
            // the ACK.
            pair.network.run_for(params.rtt / 4);
        }
        Moment::AfterClientClosed | Moment::AfterServerClosed => drop(pair.visit(request)),
    }
    let syn = first_syn(&pair.network.capture().since(mark), pair.client).expect("the client sent a SYN");
    let (replayed_at, replay_mark) = (pair.network.now(), pair.network.capture().mark());
    pair.network.inject("replayer", pair.path, Direction::Forward, syn);
    pair.network.run_for(WATCHED);
    let seen = pair.network.capture().since(mark);
    Case {
        profile,
        moment,
        deliveries: replies(&seen, server),
        program_deliveries: delivered(&pair) - served_before,
        original: exchanges(&seen, pair.client).swap_remove(0),
        replayed_at,
        aftermath: pair.network.capture().since(replay_mark).journeys(),
        run: pair.finish(),
    }
}

fn delivered(pair: &Pair) -> usize {
    pair.network.app::<Server>(pair.server).deliveries().len()
}

fn first_syn(capture: &Capture, client: HostId) -> Option<Bytes> {
    let mut sent = capture.observations().iter().filter(|seen| seen.place == Place::Left(client));
    sent.find(|seen| Segment::parse(&seen.bytes).is_some_and(|segment| segment.is_syn()))
        .map(|seen| seen.bytes.clone())
}

/// Counts the server connections that sent reply data, identified by the first sequence number of
/// the reply.
fn replies(capture: &Capture, server: HostId) -> usize {
    let sent = capture.journeys().into_iter().filter(|journey| journey.sent.host == Some(server));
    let segments: Vec<Segment> = sent.filter_map(|journey| journey.segment()).collect();
    let isns: BTreeSet<u32> =
        segments.iter().filter(|segment| segment.is_syn_ack()).map(|segment| segment.tcp.seq.0).collect();
    let starts_reply = |isn: &u32| {
        let first = wire::SeqNum(*isn) + 1;
        segments.iter().any(|segment| segment.text_seq() == first && segment.text_len() > 0)
    };
    isns.iter().filter(|isn| starts_reply(isn)).count()
}

impl Report for Results {
    fn render(&self, page: &mut Page) {
        let Params { rtt, seed } = self.params;
        page.heading("A duplicated SYN with data");
        page.paragraph(&format!(
            "A third party sends an exact copy of a repeat visit's SYN. Round trip {}, seed {seed}. How often does the request reach the program?",
            ms(Some(milliseconds(rtt)))
        ));
        page.gap();
        let mut table = Table::new([
            ("the copy arrives", Align::Left),
            ("Firstbyte", Align::Left),
            ("Linux", Align::Left),
        ]);
        for moment in Moment::ALL {
            let times =
                |profile| self.case(moment, profile).map_or("-".into(), |case| times(case.deliveries));
            table.row([moment.title().to_string(), times(Profile::Firstbyte), times(Profile::Linux)]);
        }
        page.table(&table);
        page.gap();
        page.paragraph(
            "The guard covers duplicates made by the network and exact replays, for at least two minutes, on one host. It does not cover a restart, other hosts with the same key, or a holder of a cookie who forges a new SYN.",
        );
        for profile in [Profile::Linux, Profile::Firstbyte] {
            if let Some(case) = self.case(Moment::AfterClientClosed, profile) {
                page.ladder(&case.ladder());
            }
        }
    }

    fn findings(&self) -> Vec<Finding> {
        if self.params != (Params { seed: self.params.seed, ..Params::default() }) {
            return Vec::new();
        }
        let mut findings = Vec::new();
        for (profile, expected) in [(Profile::Firstbyte, [1, 1, 1]), (Profile::Linux, [1, 2, 1])] {
            for (moment, times) in Moment::ALL.into_iter().zip(expected) {
                let delivered = self.case(moment, profile).map_or(0, |case| case.deliveries);
                let what = format!("{}: deliveries, copy {}", profile.name(), moment.title());
                let finding = Finding::same(&what, delivered, times);
                let known = profile == Profile::Linux && moment != Moment::AfterServerClosed;
                findings.push(if known { finding.linux(&times.to_string()) } else { finding });
            }
        }
        findings
    }

    fn json(&self) -> serde_json::Value {
        let cases = self.cases.iter().map(|case| {
            json!({
                "profile": case.profile, "moment": case.moment, "deliveries": case.deliveries, "ladder": case.ladder(),
            })
        });
        let Params { rtt, seed } = self.params;
        json!({
            "scenario": "replay",
            "parameters": { "rtt_ms": milliseconds(rtt), "seed": seed },
            "cases": cases.collect::<Vec<_>>(),
        })
    }

    fn recordings(&self) -> Vec<Recording<'_>> {
        let name = |case: &Case| format!("{}: replay {}", case.profile.name(), case.moment.title());
        self.cases.iter().map(|case| case.run.recording_at_server(name(case))).collect()
    }
}

impl Case {
    /// Returns the ladder of the copy and its consequences.
    fn ladder(&self) -> Ladder {
        let title = format!("{}: the copy, {}", self.profile.name(), self.moment.title());
        Ladder::of_journeys(title, &self.original, self.replayed_at, &self.aftermath)
    }
}

fn times(count: usize) -> String {
    match count {
        0 => "never".into(),
        1 => "once".into(),
        2 => "TWICE".into(),
        n => format!("{n} times"),
    }
}

#[cfg(test)]
mod tests;
