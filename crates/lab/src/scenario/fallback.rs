//! `fallback`: visits with a useless cookie: the server lost Fast Open or changed its key, or the
//! client's address changed.

use super::pair::{KEY, OTHER_CLIENT, Pair, PairPlan, Run, SERVER, answering, in_run, visit};
use super::record::{VisitRecord, first_byte, first_bytes, short};
use crate::apps::{Opening, Visit};
use crate::exchange::{Exchange, Verdict};
use crate::ladder::milliseconds;
use crate::middlebox::AlternatingNat;
use crate::network::{Profile, Route};
use crate::report::{Align, Finding, Page, Recording, Report, Table};
use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;
use proto::FastOpen;
use proto::fast_open::{Key, KeyRing};
use serde_json::json;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Round-trip time of the path.
    pub rtt: Duration,
    /// Length of a request, bytes.
    pub request_len: usize,
    /// Length of a reply, bytes.
    pub reply_len: usize,
    /// Seed of all randomness.
    pub seed: u64,
}

impl Default for Params {
    fn default() -> Params {
        Params { rtt: Duration::from_millis(20), request_len: 200, reply_len: 500, seed: 1 }
    }
}

/// The fault after the first visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// The server's `tcp_fastopen` loses bit 0x2.
    ServerOff,
    /// The server has a new key.
    KeyChanged,
    /// The server has a new key, and the old one as backup.
    KeyWithBackup,
    /// The client uses its other address.
    OtherAddress,
    /// A NAT alternates between two public addresses.
    AlternatingNat,
}

impl Trouble {
    /// All faults.
    pub const ALL: [Trouble; 5] = [
        Trouble::ServerOff,
        Trouble::KeyChanged,
        Trouble::KeyWithBackup,
        Trouble::OtherAddress,
        Trouble::AlternatingNat,
    ];

    fn title(self) -> &'static str {
        match self {
            Trouble::ServerOff => "server disables Fast Open after visit 1",
            Trouble::KeyChanged => "server changes its key after visit 1",
            Trouble::KeyWithBackup => "server changes its key after visit 1, with the old one as backup",
            Trouble::OtherAddress => "client uses another address from visit 3 on",
            Trouble::AlternatingNat => "a NAT alternates between two public addresses",
        }
    }

    fn visits(self) -> usize {
        if self == Trouble::AlternatingNat { 10 } else { 4 }
    }
}

/// One fault with one profile.
#[derive(Clone, Debug)]
pub struct Case {
    /// The fault.
    pub trouble: Trouble,
    /// Profile of both ends.
    pub profile: Profile,
    /// The visits.
    pub exchanges: Vec<Exchange>,
    /// The capture and the state of the ends.
    pub run: Run,
}

/// Every fault with both profiles.
#[derive(Clone, Debug)]
pub struct Results {
    /// The parameters.
    pub params: Params,
    /// Faults in order; Firstbyte before Linux.
    pub cases: Vec<Case>,
}

impl Results {
    /// Returns one case.
    pub fn case(&self, trouble: Trouble, profile: Profile) -> Option<&Case> {
        self.cases.iter().find(|case| case.trouble == trouble && case.profile == profile)
    }
}

const NEXT_KEY: Key = Key::from_bytes(*b"the other secret");

/// Runs every case.
pub fn run(params: &Params) -> Results {
    let profiles = [Profile::Firstbyte, Profile::Linux];
    let kinds = Trouble::ALL.iter().flat_map(|trouble| profiles.map(|profile| (*trouble, profile)));
    let cases = kinds.enumerate().map(|(run, (trouble, profile))| case(params, run, trouble, profile));
    Results { params: *params, cases: cases.collect() }
}

fn case(params: &Params, run: usize, trouble: Trouble, profile: Profile) -> Case {
    let mut pair = build(params, run, trouble, profile);
    let mut exchanges = Vec::new();
    for number in 1..=trouble.visits() {
        if number == 2 {
            strike(&mut pair, trouble);
        }
        let plain = visit(Opening::FirstBytes(FastOpen::Auto), params.request_len, params.reply_len);
        let local = (trouble == Trouble::OtherAddress && number > 2).then_some(in_run(run, OTHER_CLIENT));
        exchanges.push(pair.visit(Visit { local, ..plain }));
    }
    Case { trouble, profile, exchanges, run: pair.finish() }
}

fn build(params: &Params, run: usize, trouble: Trouble, profile: Profile) -> Pair {
    let route = match trouble {
        Trouble::AlternatingNat => {
            let public = [1, 2].map(|host| IpAddr::V4(Ipv4Addr::new(203, 0, 113, host)));
            Route::through(params.rtt, AlternatingNat::new(public))
        }
        _ => Route::with_rtt(params.rtt),
    };
    let program = answering(Some(256), params.request_len, params.reply_len);
    let mut plan = PairPlan::new(params.seed, run, profile, program, route);
    plan.client.addresses.push(in_run(run, OTHER_CLIENT));
    Pair::new(plan)
}

fn strike(pair: &mut Pair, trouble: Trouble) {
    let server = pair.server;
    match trouble {
        Trouble::ServerOff => {
            let set =
                pair.network.with_stack(server, |stack, now| stack.set(now, "net.ipv4.tcp_fastopen", "0x1"));
            set.expect("the setting exists");
        }
        Trouble::KeyChanged => {
            pair.network.with_stack(server, |stack, _| stack.set_fast_open_key(KeyRing::new(NEXT_KEY)));
        }
        Trouble::KeyWithBackup => {
            let ring = KeyRing::with_backup(NEXT_KEY, KEY);
            pair.network.with_stack(server, |stack, _| stack.set_fast_open_key(ring));
        }
        Trouble::OtherAddress | Trouble::AlternatingNat => {}
    }
}

impl Report for Results {
    fn render(&self, page: &mut Page) {
        let Params { rtt, request_len, seed, .. } = self.params;
        page.heading("When a cookie is useless");
        page.paragraph(&format!(
            "Visit 1 fetches a cookie; requests of {request_len} bytes, round trip {:.0} ms, seed {seed}. Time to first byte, and retransmitted request bytes.",
            milliseconds(rtt)
        ));
        for trouble in Trouble::ALL {
            let (Some(ours), Some(linux)) =
                (self.case(trouble, Profile::Firstbyte), self.case(trouble, Profile::Linux))
            else {
                continue;
            };
            page.heading(trouble.title());
            page.table(&table(ours, linux));
        }
    }

    fn findings(&self) -> Vec<Finding> {
        if self.params != (Params { seed: self.params.seed, ..Params::default() }) {
            return Vec::new();
        }
        let of = |trouble| {
            let case = self.case(trouble, Profile::Linux);
            case.map_or("none".into(), |case| first_bytes(&case.exchanges))
        };
        let rejected = self.case(Trouble::AlternatingNat, Profile::Linux).map_or(0, |case| {
            let is_refused = |one: &&Exchange| matches!(one.verdict, Verdict::NotAcknowledged { .. });
            case.exchanges.iter().filter(is_refused).count()
        });
        let ours_resent = self
            .case(Trouble::ServerOff, Profile::Firstbyte)
            .map_or(0, |case| case.exchanges.iter().map(|one| one.bytes_resent).sum());
        vec![
            Finding::same(
                "Linux, server without Fast Open after visit 1",
                of(Trouble::ServerOff),
                "40.0 ms, 40.0 ms, 40.0 ms, 40.0 ms",
            )
            .linux("40.6 ms each"),
            Finding::same(
                "Linux, another key after visit 1",
                of(Trouble::KeyChanged),
                "40.0 ms, 40.0 ms, 20.0 ms, 20.0 ms",
            )
            .linux("40.7, 20.3, 20.3 ms"),
            Finding::same(
                "Linux, the old key as backup",
                of(Trouble::KeyWithBackup),
                "40.0 ms, 20.0 ms, 20.0 ms, 20.0 ms",
            )
            .linux("all 20.4 ms"),
            Finding::same(
                "Linux, another address from visit 3",
                of(Trouble::OtherAddress),
                "40.0 ms, 20.0 ms, 40.0 ms, 20.0 ms",
            ),
            Finding::same("cookies rejected of ten behind the NAT", rejected, 9).linux("9 of 10"),
            Finding::same(
                "bytes the Firstbyte client retransmits to a server without Fast Open",
                ours_resent,
                200u64,
            ),
        ]
    }

    fn json(&self) -> serde_json::Value {
        let cases = self.cases.iter().map(|case| {
            let visits: Vec<VisitRecord> = case.exchanges.iter().map(VisitRecord::from).collect();
            json!({ "trouble": case.trouble, "profile": case.profile, "visits": visits })
        });
        let Params { rtt, request_len, reply_len, seed } = self.params;
        json!({
            "scenario": "fallback",
            "parameters": {
                "rtt_ms": milliseconds(rtt), "request_len": request_len, "reply_len": reply_len, "seed": seed,
            },
            "server": SERVER,
            "cases": cases.collect::<Vec<_>>(),
        })
    }

    fn recordings(&self) -> Vec<Recording<'_>> {
        let name = |case: &Case| format!("{}: {}", case.profile.name(), case.trouble.title());
        self.cases.iter().map(|case| case.run.recording(name(case))).collect()
    }
}

fn table(ours: &Case, linux: &Case) -> Table {
    let mut table = Table::new([
        ("visit", Align::Right),
        ("Firstbyte", Align::Right),
        ("twice", Align::Right),
        ("Fast Open", Align::Left),
        ("Linux", Align::Right),
        ("twice", Align::Right),
        ("Fast Open", Align::Left),
    ]);
    for (index, (ours, linux)) in ours.exchanges.iter().zip(&linux.exchanges).enumerate() {
        table.row([
            (index + 1).to_string(),
            first_byte(ours),
            resent(ours),
            short(ours).to_string(),
            first_byte(linux),
            resent(linux),
            short(linux).to_string(),
        ]);
    }
    table
}

fn resent(exchange: &Exchange) -> String {
    format!("{} B", exchange.bytes_resent)
}

#[cfg(test)]
mod tests;
