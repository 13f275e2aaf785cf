//! `qlen`: more connections at once than the listener's Fast Open queue holds
//! (`PendingFastOpenRequests`, RFC 7413 §4.2).

use super::pair::{Pair, PairPlan, Run, answering, visit};
use super::record::{VisitRecord, first_byte, first_bytes, ms, wording};
use crate::apps::{Opening, Visit};
use crate::exchange::{Exchange, Verdict};
use crate::ladder::milliseconds;
use crate::network::{Profile, Route};
use crate::report::{Align, Finding, Page, Recording, Report, Table};
use core::time::Duration;
use proto::FastOpen;
use serde_json::json;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Round-trip time of the path.
    pub rtt: Duration,
    /// Number of connections opened at the same time.
    pub clients: usize,
    /// The listener's queue length.
    pub qlen: u32,
    /// Seed of all randomness.
    pub seed: u64,
}

impl Default for Params {
    fn default() -> Params {
        Params { rtt: Duration::from_millis(200), clients: 6, qlen: 1, seed: 1 }
    }
}

const REQUEST_LEN: usize = 200;
const REPLY_LEN: usize = 500;

/// One profile's run.
#[derive(Clone, Debug)]
pub struct Case {
    /// Profile of both ends.
    pub profile: Profile,
    /// Connections opened together.
    pub together: Vec<Exchange>,
    /// One more connection, after they are over.
    pub after: Exchange,
    /// The server's `TCPFastOpenListenOverflow`, for comparison with the packets.
    pub listen_overflow: u64,
    /// The capture and the state of the ends.
    pub run: Run,
}

impl Case {
    /// Returns the number of connections whose SYN data was rejected.
    pub fn refused(&self) -> usize {
        let refused = |exchange: &&Exchange| matches!(exchange.verdict, Verdict::NotAcknowledged { .. });
        self.together.iter().filter(refused).count()
    }
}

/// Both profiles.
#[derive(Clone, Debug)]
pub struct Results {
    /// The parameters.
    pub params: Params,
    /// Firstbyte's, then Linux's.
    pub cases: Vec<Case>,
}

/// Runs both profiles.
pub fn run(params: &Params) -> Results {
    let cases =
        [(0, Profile::Firstbyte), (1, Profile::Linux)].map(|(run, profile)| case(params, run, profile));
    Results { params: *params, cases: cases.into() }
}

fn case(params: &Params, run: usize, profile: Profile) -> Case {
    let program = answering(Some(params.qlen), REQUEST_LEN, REPLY_LEN);
    let mut pair = Pair::new(PairPlan::new(params.seed, run, profile, program, Route::with_rtt(params.rtt)));
    let request: Visit = visit(Opening::FirstBytes(FastOpen::Auto), REQUEST_LEN, REPLY_LEN);
    pair.visit(request.clone());
    let together = pair.visits(vec![request.clone(); params.clients]);
    let after = pair.visit(request);
    let listen_overflow = pair.network.stack(pair.server).counters().tcp_fastopen_listen_overflow;
    Case { profile, together, after, listen_overflow, run: pair.finish() }
}

impl Report for Results {
    fn render(&self, page: &mut Page) {
        let Params { rtt, clients, qlen, seed } = self.params;
        page.heading("More connections than the Fast Open queue holds");
        page.paragraph(&format!(
            "{clients} connections at the same time, all with a cookie, queue length {qlen}, round trip {}, seed {seed}.",
            ms(Some(milliseconds(rtt)))
        ));
        for case in &self.cases {
            page.heading(&format!("{}: {} rejected, queue full", case.profile.name(), case.refused()));
            let mut table = Table::new([
                ("connection", Align::Right),
                ("first byte", Align::Right),
                ("what happened", Align::Left),
            ]);
            for (index, exchange) in case.together.iter().enumerate() {
                table.row([(index + 1).to_string(), first_byte(exchange), wording(exchange)]);
            }
            table.row(["later".into(), first_byte(&case.after), wording(&case.after)]);
            page.table(&table);
        }
        page.gap();
        page.paragraph(
            "A rejection loses nothing: the handshake continues as without Fast Open. A rejection with the cookie tells the client that the server was busy. Without the cookie the client cannot distinguish a full queue from a server without Fast Open.",
        );
    }

    fn findings(&self) -> Vec<Finding> {
        if self.params != (Params { seed: self.params.seed, ..Params::default() }) {
            return Vec::new();
        }
        let of = |case: &Case| {
            let times = first_bytes(&case.together);
            let expected = "200.0 ms, 400.0 ms, 400.0 ms, 400.0 ms, 400.0 ms, 400.0 ms";
            let name = case.profile.name();
            [
                Finding::same(&format!("{name}: overflows of six at once"), case.listen_overflow, 5)
                    .linux("5"),
                Finding::same(&format!("{name}: first bytes"), times, expected)
                    .linux("1 x 201 ms, 5 x 401 ms"),
            ]
        };
        self.cases.iter().flat_map(of).collect()
    }

    fn json(&self) -> serde_json::Value {
        let cases = self.cases.iter().map(|case| {
            let together: Vec<VisitRecord> = case.together.iter().map(VisitRecord::from).collect();
            json!({
                "profile": case.profile, "together": together, "after": VisitRecord::from(&case.after),
                "refused": case.refused(), "listen_overflow": case.listen_overflow,
            })
        });
        let Params { rtt, clients, qlen, seed } = self.params;
        json!({
            "scenario": "qlen",
            "parameters": { "rtt_ms": milliseconds(rtt), "clients": clients, "qlen": qlen, "seed": seed },
            "cases": cases.collect::<Vec<_>>(),
        })
    }

    fn recordings(&self) -> Vec<Recording<'_>> {
        self.cases.iter().map(|case| case.run.recording(case.profile.name())).collect()
    }
}

#[cfg(test)]
mod tests;
