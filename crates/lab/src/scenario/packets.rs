//! `packets`: number of packets per exchange (connect, request, reply, close), for different ends.

use super::pair::{CLIENT, Pair, PairPlan, Run, SERVER, answering, in_run, visit};
use super::record::{VisitRecord, first_byte, ms, short};
use crate::apps::Opening;
use crate::exchange::Exchange;
use crate::ladder::{Ladder, milliseconds};
use crate::network::{HostPlan, Profile, Route};
use crate::report::{Align, Finding, Page, Recording, Report, Table};
use core::time::Duration;
use proto::FastOpen;
use serde_json::json;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Round-trip time of the path.
    pub rtt: Duration,
    /// Length of the request, bytes.
    pub request_len: usize,
    /// Length of the reply, bytes.
    pub reply_len: usize,
    /// Seed of all randomness.
    pub seed: u64,
}

impl Default for Params {
    fn default() -> Params {
        Params { rtt: Duration::from_millis(40), request_len: 27, reply_len: 43, seed: 1 }
    }
}

/// The ends, and the way the client opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Profile of the client.
    pub client: Profile,
    /// Profile of the server.
    pub server: Profile,
    /// The way the client opens.
    pub opening: Opening,
}

/// A repeat visit between two ends.
#[derive(Clone, Debug)]
pub struct Case {
    /// The ends.
    pub ends: Ends,
    /// The title.
    pub title: &'static str,
    /// The connection.
    pub exchange: Exchange,
    /// The capture and the state of the ends.
    pub run: Run,
}

/// All cases.
#[derive(Clone, Debug)]
pub struct Results {
    /// The parameters.
    pub params: Params,
    /// The cases, roughly from most to fewest packets.
    pub cases: Vec<Case>,
}

impl Results {
    /// Returns the number of packets of one case.
    pub fn packets(&self, title: &str) -> Option<usize> {
        Some(self.cases.iter().find(|case| case.title == title)?.exchange.packets())
    }
}

/// Linux to Linux without Fast Open.
pub const LINUX_PLAIN: &str = "Linux to Linux, plain";
/// Linux to Linux with Fast Open.
pub const LINUX_FAST_OPEN: &str = "Linux to Linux, Fast Open";
/// Linux client to Firstbyte server, plain.
pub const LINUX_TO_OURS_PLAIN: &str = "Linux to Firstbyte, plain";
/// Linux client to Firstbyte server.
pub const LINUX_TO_OURS: &str = "Linux to Firstbyte, Fast Open";
/// Firstbyte client to Linux server.
pub const OURS_TO_LINUX: &str = "Firstbyte to Linux, Fast Open";
/// Firstbyte to Firstbyte, plain.
pub const OURS_PLAIN: &str = "Firstbyte to Firstbyte, plain";
/// Firstbyte to Firstbyte.
pub const OURS: &str = "Firstbyte to Firstbyte, Fast Open";
/// Firstbyte to Firstbyte, with the FIN on the SYN.
pub const OURS_SYN_FIN: &str = "Firstbyte to Firstbyte, FIN on the SYN";

const FAST_OPEN: Opening = Opening::FirstBytes(FastOpen::Auto);
const CASES: [(&str, Profile, Profile, Opening); 8] = [
    (LINUX_PLAIN, Profile::Linux, Profile::Linux, Opening::ConnectThenWrite),
    (LINUX_FAST_OPEN, Profile::Linux, Profile::Linux, FAST_OPEN),
    (LINUX_TO_OURS_PLAIN, Profile::Linux, Profile::Firstbyte, Opening::ConnectThenWrite),
    (LINUX_TO_OURS, Profile::Linux, Profile::Firstbyte, FAST_OPEN),
    (OURS_TO_LINUX, Profile::Firstbyte, Profile::Linux, FAST_OPEN),
    (OURS_PLAIN, Profile::Firstbyte, Profile::Firstbyte, Opening::ConnectThenWrite),
    (OURS, Profile::Firstbyte, Profile::Firstbyte, FAST_OPEN),
    (OURS_SYN_FIN, Profile::Firstbyte, Profile::Firstbyte, Opening::FirstBytesAndFin(FastOpen::Auto)),
];

/// Runs every case.
pub fn run(params: &Params) -> Results {
    Results {
        params: *params,
        cases: CASES
            .iter()
            .enumerate()
            .map(|(run, (title, client, server, opening))| {
                case(params, run, title, Ends { client: *client, server: *server, opening: *opening })
            })
            .collect(),
    }
}

/// Measures the second visit; the first fetches the cookie.
fn case(params: &Params, run: usize, title: &'static str, ends: Ends) -> Case {
    let mut pair = Pair::new(PairPlan {
        seed: params.seed,
        client: HostPlan::new(ends.client, in_run(run, CLIENT)),
        server: HostPlan::new(ends.server, SERVER.ip()),
        program: answering(Some(256), params.request_len, params.reply_len),
        route: Route::with_rtt(params.rtt),
    });
    let request = visit(ends.opening, params.request_len, params.reply_len);
    pair.visit(request.clone());
    let exchange = pair.visit(request);
    Case { ends, title, exchange, run: pair.finish() }
}

impl Report for Results {
    fn render(&self, page: &mut Page) {
        let Params { rtt, request_len, reply_len, seed } = self.params;
        page.heading("Packets per exchange");
        page.paragraph(&format!(
            "Connect, request of {request_len} bytes, reply of {reply_len}, close by the server; repeat visit, round trip {}, seed {seed}. \
             Linux programs send at each system call; Firstbyte's write and shut down in one batch.",
            ms(Some(milliseconds(rtt)))
        ));
        page.gap();
        let mut table = Table::new([
            ("client to server", Align::Left),
            ("packets", Align::Right),
            ("first byte", Align::Right),
            ("on the wire", Align::Right),
            ("Fast Open", Align::Left),
        ]);
        for case in &self.cases {
            table.row([
                case.title.to_string(),
                case.exchange.packets().to_string(),
                first_byte(&case.exchange),
                format!("{} B", case.exchange.bytes_on_wire),
                short(&case.exchange).to_string(),
            ]);
        }
        page.table(&table);
        for case in &self.cases {
            let title = format!("{}: {} packets", case.title, case.exchange.packets());
            page.ladder(&Ladder::of(title, &case.exchange));
        }
    }

    fn findings(&self) -> Vec<Finding> {
        if self.params != (Params { seed: self.params.seed, ..Params::default() }) {
            return Vec::new();
        }
        let count = |title: &str, expected: usize| {
            Finding::same(title, self.packets(title).unwrap_or_default(), expected)
        };
        vec![
            count(LINUX_PLAIN, 10).linux("10"),
            count(LINUX_FAST_OPEN, 8).linux("8"),
            count(LINUX_TO_OURS_PLAIN, 7),
            count(LINUX_TO_OURS, 4),
            count(OURS_TO_LINUX, 6),
            count(OURS_PLAIN, 7),
            count(OURS, 4),
            count(OURS_SYN_FIN, 3),
        ]
    }

    fn json(&self) -> serde_json::Value {
        let cases = self.cases.iter().map(|case| {
            json!({
                "title": case.title, "client": case.ends.client, "server": case.ends.server,
                "visit": VisitRecord::from(&case.exchange), "ladder": Ladder::of(case.title, &case.exchange),
            })
        });
        let Params { rtt, request_len, reply_len, seed } = self.params;
        json!({
            "scenario": "packets",
            "parameters": {
                "rtt_ms": milliseconds(rtt), "request_len": request_len, "reply_len": reply_len, "seed": seed,
            },
            "cases": cases.collect::<Vec<_>>(),
        })
    }

    fn recordings(&self) -> Vec<Recording<'_>> {
        self.cases.iter().map(|case| case.run.recording(case.title)).collect()
    }
}

#[cfg(test)]
mod tests;
