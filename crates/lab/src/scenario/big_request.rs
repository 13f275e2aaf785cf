//! `big-request`: a request larger than a SYN can carry, to a server that needs all of it and to
//! one that echoes.

use super::pair::{Pair, PairPlan, Run, SERVER, answering, visit};
use super::record::{VisitRecord, first_byte, ms};
use super::texts;
use crate::apps::{Closer, Opening, Server, Service, Visit};
use crate::exchange::Exchange;
use crate::ladder::{Ladder, milliseconds};
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
    /// Length of the request, bytes.
    pub request_len: usize,
    /// Maximum IP packet of both hosts, bytes.
    pub mtu: usize,
    /// Seed of all randomness.
    pub seed: u64,
}

impl Default for Params {
    fn default() -> Params {
        Params { rtt: Duration::from_millis(100), request_len: 10_000, mtu: 1500, seed: 1 }
    }
}

const REPLY_LEN: usize = 500;

/// The server's handling of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Habit {
    /// Answers once it has the whole request.
    NeedsAll,
    /// Echoes each byte as it arrives.
    Echoes,
}

/// One server behavior with one profile.
#[derive(Clone, Debug)]
pub struct Case {
    /// Profile of both ends.
    pub profile: Profile,
    /// The server's behavior.
    pub habit: Habit,
    /// A visit without Fast Open.
    pub plain: Exchange,
    /// A repeat visit with Fast Open.
    pub fast_open: Exchange,
    /// The capture and the state of the ends.
    pub run: Run,
}

/// All cases.
#[derive(Clone, Debug)]
pub struct Results {
    /// The parameters.
    pub params: Params,
    /// Firstbyte's and Linux's, for both behaviors.
    pub cases: Vec<Case>,
}

/// Runs every case.
pub fn run(params: &Params) -> Results {
    let mut cases = Vec::new();
    for habit in [Habit::NeedsAll, Habit::Echoes] {
        for profile in [Profile::Firstbyte, Profile::Linux] {
            cases.push(case(params, cases.len(), profile, habit));
        }
    }
    Results { params: *params, cases }
}

fn case(params: &Params, run: usize, profile: Profile, habit: Habit) -> Case {
    let (program, reply, closer) = match habit {
        Habit::NeedsAll => {
            (answering(Some(256), params.request_len, REPLY_LEN), texts::reply(REPLY_LEN), Closer::Server)
        }
        Habit::Echoes => {
            let echo = Server::new(SERVER, Some(256), Service::Echo, Closer::Client);
            (echo, texts::request(params.request_len), Closer::Client)
        }
    };
    let mut plan = PairPlan::new(params.seed, run, profile, program, Route::with_rtt(params.rtt));
    plan.client.mtu = params.mtu;
    plan.server.mtu = params.mtu;
    let mut pair = Pair::new(plan);
    let request =
        |opening| Visit { closer, reply: reply.clone(), ..visit(opening, params.request_len, REPLY_LEN) };
    let plain = pair.visit(request(Opening::ConnectThenWrite));
    pair.visit(request(Opening::FirstBytes(FastOpen::Auto)));
    let fast_open = pair.visit(request(Opening::FirstBytes(FastOpen::Auto)));
    Case { profile, habit, plain, fast_open, run: pair.finish() }
}

impl Report for Results {
    fn render(&self, page: &mut Page) {
        let Params { rtt, request_len, mtu, seed } = self.params;
        page.heading("A request larger than a SYN can carry");
        page.paragraph(&format!(
            "{request_len} bytes at an MTU of {mtu}, round trip {}, seed {seed}. The SYN carries what fits beside its options; the rest follows the SYN-ACK.",
            ms(Some(milliseconds(rtt)))
        ));
        page.gap();
        let mut table = Table::new([
            ("server", Align::Left),
            ("settings", Align::Left),
            ("in the SYN", Align::Right),
            ("acked", Align::Right),
            ("plain", Align::Right),
            ("Fast Open", Align::Right),
        ]);
        for case in &self.cases {
            table.row([
                case.habit.title().to_string(),
                case.profile.name().to_string(),
                format!("{} B", case.fast_open.syn_data_len),
                format!("{} B", case.fast_open.syn_data_acked),
                first_byte(&case.plain),
                first_byte(&case.fast_open),
            ]);
        }
        page.table(&table);
        page.gap();
        page.paragraph("A server that needs the whole request gains nothing. A server that handles bytes as they arrive does.");
        if let Some(case) = self.cases.first() {
            page.ladder(&Ladder::of(
                "Firstbyte, repeat visit, server that needs all of the request",
                &case.fast_open,
            ));
        }
    }

    fn findings(&self) -> Vec<Finding> {
        if self.params != (Params { seed: self.params.seed, ..Params::default() }) {
            return Vec::new();
        }
        let case =
            |profile, habit| self.cases.iter().find(|case| (case.profile, case.habit) == (profile, habit));
        let on_syn = |profile| case(profile, Habit::NeedsAll).map_or(0, |case| case.fast_open.syn_data_len);
        let time = |habit| {
            let took = case(Profile::Linux, habit)?.fast_open.time_to_first_byte()?;
            Some(took.as_secs_f64())
        };
        vec![
            Finding::same("request bytes on Linux's SYN", on_syn(Profile::Linux), 1420)
                .source("1420")
                .linux("1420"),
            Finding::same(
                "request bytes on Firstbyte's SYN, with shorter options",
                on_syn(Profile::Firstbyte),
                1428,
            ),
            Finding::near(
                "first byte from a server that needs the whole request",
                time(Habit::NeedsAll),
                "200 ms",
                1.0,
            ),
            Finding::near("first byte from a server that echoes", time(Habit::Echoes), "100 ms", 1.0),
        ]
    }

    fn json(&self) -> serde_json::Value {
        let cases = self.cases.iter().map(|case| {
            json!({
                "profile": case.profile, "server": case.habit,
                "plain": VisitRecord::from(&case.plain), "fast_open": VisitRecord::from(&case.fast_open),
            })
        });
        let Params { rtt, request_len, mtu, seed } = self.params;
        json!({
            "scenario": "big-request",
            "parameters": { "rtt_ms": milliseconds(rtt), "request_len": request_len, "mtu": mtu, "seed": seed },
            "cases": cases.collect::<Vec<_>>(),
        })
    }

    fn recordings(&self) -> Vec<Recording<'_>> {
        let name = |case: &Case| format!("{}: {}", case.profile.name(), case.habit.title());
        self.cases.iter().map(|case| case.run.recording(name(case))).collect()
    }
}

impl Habit {
    fn title(self) -> &'static str {
        match self {
            Habit::NeedsAll => "needs the whole request",
            Habit::Echoes => "echoes bytes as they arrive",
        }
    }
}

#[cfg(test)]
mod tests;
