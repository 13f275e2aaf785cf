//! `middlebox`: paths that break Fast Open, and the cost of each following visit, Firstbyte beside
//! Linux.

use super::pair::{CLIENT, Pair, PairPlan, Run, SERVER, answering, in_run, visit};
use super::record::{VisitRecord, first_byte, first_bytes, ms, wording};
use crate::apps::Opening;
use crate::exchange::Exchange;
use crate::ladder::{Ladder, milliseconds};
use crate::middlebox::{DropNthSynAck, DropSynData, StripFastOpen, Switched};
use crate::network::{Profile, Route};
use crate::report::{Align, Finding, Page, Recording, Report, Table};
use core::any::Any;
use core::time::Duration;
use proto::{Addr, FastOpen};
use serde_json::json;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Round-trip time of the path.
    pub rtt: Duration,
    /// Number of visits through the middlebox.
    pub count: usize,
    /// Seed of all randomness.
    pub seed: u64,
}

impl Default for Params {
    fn default() -> Params {
        Params { rtt: Duration::from_millis(40), count: 5, seed: 1 }
    }
}

const REQUEST_LEN: usize = 200;
const REPLY_LEN: usize = 500;

/// The fault of the middlebox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// SYNs with data are lost.
    DropsSynData,
    /// The option is removed from SYNs and SYN-ACKs.
    StripsOption,
    /// The first SYN-ACK of every connection is lost.
    DropsSynAck,
}

/// The client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Client {
    /// Firstbyte, with the path's round-trip time remembered from the visit that fetched the
    /// cookie.
    Firstbyte,
    /// Firstbyte, with the cookie but without a round-trip time.
    FirstbyteWithoutRtt,
    /// Linux.
    Linux,
}

impl Client {
    const ALL: [Client; 3] = [Client::Firstbyte, Client::FirstbyteWithoutRtt, Client::Linux];

    fn profile(self) -> Profile {
        if self == Client::Linux { Profile::Linux } else { Profile::Firstbyte }
    }

    fn title(self) -> &'static str {
        match self {
            Client::Firstbyte => "Firstbyte",
            Client::FirstbyteWithoutRtt => "Firstbyte, RTT unknown",
            Client::Linux => "Linux",
        }
    }
}

impl Fault {
    /// All faults.
    pub const ALL: [Fault; 3] = [Fault::DropsSynData, Fault::StripsOption, Fault::DropsSynAck];

    fn title(self) -> &'static str {
        match self {
            Fault::DropsSynData => "SYNs with data are lost",
            Fault::StripsOption => "Fast Open options are stripped",
            Fault::DropsSynAck => "SYN-ACKs are lost the first time",
        }
    }

    fn route(self, rtt: Duration) -> Route {
        match self {
            Fault::DropsSynData => Route::through(rtt, Switched::off(DropSynData)),
            Fault::StripsOption => Route::through(rtt, Switched::off(StripFastOpen)),
            Fault::DropsSynAck => Route::through(rtt, Switched::off(DropNthSynAck::new(1))),
        }
    }

    fn turn_on(self, pair: &mut Pair) {
        for middlebox in pair.network.middleboxes(pair.path) {
            let middlebox: &mut dyn Any = middlebox;
            if let Some(switch) = middlebox.downcast_mut::<Switched<DropSynData>>() {
                switch.turn_on();
            } else if let Some(switch) = middlebox.downcast_mut::<Switched<StripFastOpen>>() {
                switch.turn_on();
            } else if let Some(switch) = middlebox.downcast_mut::<Switched<DropNthSynAck>>() {
                switch.turn_on();
            }
        }
    }
}

/// One fault and one client.
#[derive(Clone, Debug)]
pub struct Case {
    /// The fault.
    pub fault: Fault,
    /// The client.
    pub client: Client,
    /// A visit without Fast Open through the middlebox, for comparison.
    pub plain: Exchange,
    /// The visits with Fast Open.
    pub exchanges: Vec<Exchange>,
    /// The capture and the state of the ends.
    pub run: Run,
}

impl Case {
    /// Returns the times to first byte of the visits with Fast Open, ms.
    pub fn times_ms(&self) -> Vec<Option<f64>> {
        self.exchanges.iter().map(|exchange| exchange.time_to_first_byte().map(milliseconds)).collect()
    }
}

/// Every fault and client.
#[derive(Clone, Debug)]
pub struct Results {
    /// The parameters.
    pub params: Params,
    /// The cases, in the order of the faults.
    pub cases: Vec<Case>,
}

impl Results {
    /// Returns one case.
    pub fn case(&self, fault: Fault, client: Client) -> Option<&Case> {
        self.cases.iter().find(|case| case.fault == fault && case.client == client)
    }
}

/// Runs every case.
pub fn run(params: &Params) -> Results {
    let kinds = Fault::ALL.iter().flat_map(|fault| Client::ALL.map(|client| (*fault, client)));
    let cases = kinds.enumerate().map(|(run, (fault, client))| case(params, run, fault, client));
    Results { params: *params, cases: cases.collect() }
}

fn case(params: &Params, run: usize, fault: Fault, client: Client) -> Case {
    let program = answering(Some(256), REQUEST_LEN, REPLY_LEN);
    let mut pair =
        Pair::new(PairPlan::new(params.seed, run, client.profile(), program, fault.route(params.rtt)));
    let request = |opening| visit(opening, REQUEST_LEN, REPLY_LEN);
    pair.visit(request(Opening::FirstBytes(FastOpen::Auto)));
    if client == Client::FirstbyteWithoutRtt {
        let host = pair.client;
        pair.network.with_stack(host, |stack, now| {
            stack
                .path_cache_mut()
                .entry(now, Addr::from(in_run(run, CLIENT)), Addr::from(SERVER.ip()))
                .set_rtt(None);
        });
    }
    fault.turn_on(&mut pair);
    let exchanges =
        (0..params.count).map(|_| pair.visit(request(Opening::FirstBytes(FastOpen::Auto)))).collect();
    let plain = pair.visit(request(Opening::ConnectThenWrite));
    Case { fault, client, plain, exchanges, run: pair.finish() }
}

impl Report for Results {
    fn render(&self, page: &mut Page) {
        let Params { rtt, count, seed } = self.params;
        page.heading("A path that breaks Fast Open");
        page.paragraph(&format!(
            "The client has a cookie; then the path gets a middlebox. {count} visits, round trip {}, seed {seed}. \
             Time to first byte, and retransmitted request bytes in total.",
            ms(Some(milliseconds(rtt)))
        ));
        for fault in Fault::ALL {
            page.heading(fault.title());
            let cases: Vec<&Case> = self.cases.iter().filter(|case| case.fault == fault).collect();
            page.table(&table(&cases));
            if let Some(first) = cases.first() {
                for (index, exchange) in first.exchanges.iter().enumerate().take(2) {
                    page.line(&format!("  Firstbyte, visit {}: {}", index + 1, wording(exchange)));
                }
            }
        }
        if let Some(exchange) =
            self.case(Fault::DropsSynData, Client::Firstbyte).and_then(|case| case.exchanges.first())
        {
            page.ladder(&Ladder::of("Firstbyte, first visit where SYNs with data are lost", exchange));
        }
    }

    fn findings(&self) -> Vec<Finding> {
        if self.params != (Params { seed: self.params.seed, ..Params::default() }) {
            return Vec::new();
        }
        let of = |fault, client| {
            self.case(fault, client).map_or("none".into(), |case| first_bytes(&case.exchanges))
        };
        let drops = |client| of(Fault::DropsSynData, client);
        vec![
            Finding::same(
                "first bytes where SYNs with data are lost, Firstbyte",
                drops(Client::Firstbyte),
                "180.0 ms, 80.0 ms, 80.0 ms, 80.0 ms, 80.0 ms",
            )
            .source("max(100 ms, 2.5 RTT) + 80 ms, then plain"),
            Finding::same(
                "the same with an unknown round trip",
                drops(Client::FirstbyteWithoutRtt),
                "1080.0 ms, 80.0 ms, 80.0 ms, 80.0 ms, 80.0 ms",
            ),
            Finding::same(
                "the same, Linux",
                drops(Client::Linux),
                "1080.0 ms, 1080.0 ms, 1080.0 ms, 1080.0 ms, 1080.0 ms",
            )
            .linux("81 to 1150 ms"),
            Finding::same(
                "first bytes where options are stripped, Firstbyte",
                of(Fault::StripsOption, Client::Firstbyte),
                "80.0 ms, 80.0 ms, 80.0 ms, 80.0 ms, 80.0 ms",
            ),
            Finding::same(
                "first bytes where SYN-ACKs are lost the first time, Firstbyte",
                of(Fault::DropsSynAck, Client::Firstbyte),
                "180.0 ms, 180.0 ms, 180.0 ms, 180.0 ms, 180.0 ms",
            ),
        ]
    }

    fn json(&self) -> serde_json::Value {
        let cases = self.cases.iter().map(|case| {
            let visits: Vec<VisitRecord> = case.exchanges.iter().map(VisitRecord::from).collect();
            json!({
                "fault": case.fault, "client": case.client, "plain": VisitRecord::from(&case.plain), "visits": visits,
            })
        });
        let Params { rtt, count, seed } = self.params;
        json!({
            "scenario": "middlebox",
            "parameters": { "rtt_ms": milliseconds(rtt), "count": count, "seed": seed },
            "cases": cases.collect::<Vec<_>>(),
        })
    }

    fn recordings(&self) -> Vec<Recording<'_>> {
        let name = |case: &Case| format!("{}: {}", case.client.title(), case.fault.title());
        self.cases.iter().map(|case| case.run.recording(name(case))).collect()
    }
}

fn table(cases: &[&Case]) -> Table {
    let mut table = match cases {
        [a, b, c] => Table::new([
            ("visit", Align::Right),
            (a.client.title(), Align::Right),
            (b.client.title(), Align::Right),
            (c.client.title(), Align::Right),
        ]),
        _ => return Table::new([]),
    };
    let longest = cases.iter().map(|case| case.exchanges.len()).max().unwrap_or(0);
    for index in 0..longest {
        let cells = cases.iter().map(|case| case.exchanges.get(index).map_or("-".into(), first_byte));
        table.row(core::iter::once((index + 1).to_string()).chain(cells));
    }
    let resent = |case: &&Case| {
        format!("{} B", case.exchanges.iter().map(|exchange| exchange.bytes_resent).sum::<u64>())
    };
    table.row(core::iter::once("sent twice".to_string()).chain(cases.iter().map(resent)));
    table.row(core::iter::once("plain".to_string()).chain(cases.iter().map(|case| first_byte(&case.plain))));
    table
}

#[cfg(test)]
mod tests;
