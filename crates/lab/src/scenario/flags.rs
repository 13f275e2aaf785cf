//! `flags`: the bits of `net.ipv4.tcp_fastopen`, client by server, and the reach of a spoofed
//! source with each.
//!
//! The data of a SYN counts as delivered before the handshake if the SYN-ACK acknowledges it.

use super::pair::{Pair, PairPlan, Run, SERVER, answering, in_run, visit};
use super::record::{VisitRecord, first_byte, ms, short};
use super::texts;
use crate::apps::Opening;
use crate::capture::{Capture, HostId};
use crate::exchange::{Exchange, Verdict};
use crate::ladder::milliseconds;
use crate::middlebox::Direction;
use crate::network::Idle;
use crate::network::{HostPlan, PathId, Profile, Route};
use crate::report::{Align, Finding, Page, Recording, Report, Table};
use crate::segment::Segment;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use proto::FastOpen;
use serde::Serialize;
use serde_json::json;
use wire::{Addr, Cookie, FastOpenKind, FastOpenOption, Flags, IpHeader, SeqNum, TcpHeader, protocol};

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Round-trip time of the path.
    pub rtt: Duration,
    /// Profile of both ends.
    pub profile: Profile,
    /// Seed of all randomness.
    pub seed: u64,
}

impl Default for Params {
    fn default() -> Params {
        Params { rtt: Duration::from_millis(40), profile: Profile::Firstbyte, seed: 1 }
    }
}

const REQUEST_LEN: usize = 200;
const REPLY_LEN: usize = 500;
/// The host whose address the attacker spoofs, in the first run.
const VICTIM: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 66));
/// Long enough for the server to give up on an unacknowledged SYN-ACK.
const SPOOF_SPAN: Duration = Duration::from_secs(200);

/// Values of `tcp_fastopen` at the client.
pub const CLIENT_BITS: [u32; 3] = [0x0, 0x1, 0x5];
/// Values of `tcp_fastopen` at the server, and whether its listener enables Fast Open.
pub const SERVERS: [(u32, bool); 6] =
    [(0x1, true), (0x3, false), (0x3, true), (0x203, true), (0x403, false), (0x603, false)];

/// One combination.
#[derive(Clone, Debug)]
pub struct Combination {
    /// The client's bits.
    pub client_bits: u32,
    /// The server's bits.
    pub server_bits: u32,
    /// True if the listener set a queue length.
    pub listener_asks: bool,
    /// The client's first visit.
    pub first: Exchange,
    /// Its second.
    pub second: Exchange,
}

/// The result of a spoofed SYN with data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Spoof {
    /// The server's bits.
    pub server_bits: u32,
    /// True if the listener set a queue length.
    pub listener_asks: bool,
    /// True if data of a SYN with an invented cookie was accepted.
    pub wrong_cookie_delivered: bool,
    /// True if data of a SYN without the option was accepted.
    pub no_option_delivered: bool,
}

/// The whole matrix.
#[derive(Clone, Debug)]
pub struct Results {
    /// The parameters.
    pub params: Params,
    /// Combinations, client by server.
    pub combinations: Vec<Combination>,
    /// Results by server.
    pub spoofs: Vec<Spoof>,
    /// Captures: of the combinations, then of the spoofed SYNs.
    runs: Vec<(String, Run)>,
}

/// Runs the matrix.
pub fn run(params: &Params) -> Results {
    let mut results =
        Results { params: *params, combinations: Vec::new(), spoofs: Vec::new(), runs: Vec::new() };
    for (server_bits, listener_asks) in SERVERS {
        for client_bits in CLIENT_BITS {
            let mut pair = build(params, results.runs.len(), client_bits, server_bits, listener_asks);
            let request = visit(Opening::FirstBytes(FastOpen::Auto), REQUEST_LEN, REPLY_LEN);
            let (first, second) = (pair.visit(request.clone()), pair.visit(request));
            results.combinations.push(Combination { client_bits, server_bits, listener_asks, first, second });
            results.runs.push((format!("client {client_bits:#x}, server {server_bits:#x}"), pair.finish()));
        }
        let (wrong_cookie, first_run) =
            spoof(params, results.runs.len(), server_bits, listener_asks, Cookie::new(&[0xde; 8]));
        let (no_option, second_run) = spoof(params, results.runs.len() + 1, server_bits, listener_asks, None);
        results.spoofs.push(Spoof {
            server_bits,
            listener_asks,
            wrong_cookie_delivered: wrong_cookie,
            no_option_delivered: no_option,
        });
        results.runs.push((format!("spoofed, wrong cookie, server {server_bits:#x}"), first_run));
        results.runs.push((format!("spoofed, no option, server {server_bits:#x}"), second_run));
    }
    results
}

fn build(params: &Params, run: usize, client_bits: u32, server_bits: u32, listener_asks: bool) -> Pair {
    let program = answering(listener_asks.then_some(256), REQUEST_LEN, REPLY_LEN);
    let mut plan = PairPlan::new(params.seed, run, params.profile, program, Route::with_rtt(params.rtt));
    plan.client.config.tcp_fastopen = client_bits;
    plan.server.config.tcp_fastopen = server_bits;
    Pair::new(plan)
}

/// Sends one SYN with data from the victim's address. Returns whether the server accepted the data.
fn spoof(
    params: &Params,
    run: usize,
    server_bits: u32,
    listener_asks: bool,
    cookie: Option<Cookie>,
) -> (bool, Run) {
    let mut pair = build(params, run, 0x1, server_bits, listener_asks);
    let address = in_run(run, VICTIM);
    let victim = pair.network.add_host(HostPlan::new(params.profile, address), Idle);
    let path: PathId = pair.network.join(victim, pair.server, Route::with_rtt(params.rtt));
    let syn = spoofed_syn(address, cookie);
    pair.network.inject("attacker", path, Direction::Forward, syn.emit());
    pair.network.run_for(SPOOF_SPAN);
    let delivered = is_data_accepted(pair.network.capture(), pair.server, &syn);
    (delivered, pair.finish())
}

fn spoofed_syn(victim: IpAddr, cookie: Option<Cookie>) -> Segment {
    let mut tcp = TcpHeader::new(40_000, SERVER.port());
    tcp.seq = SeqNum(0x1000_0000);
    tcp.flags = Flags::SYN;
    tcp.window = 64_240;
    tcp.options.mss = Some(1460);
    tcp.options.fast_open =
        cookie.map(|cookie| FastOpenOption { kind: FastOpenKind::Standard, cookie: Some(cookie) });
    let ip = IpHeader::new(Addr::from(victim), Addr::from(SERVER.ip()), protocol::TCP);
    Segment { ip, tcp, payload: texts::request(REQUEST_LEN) }
}

/// Returns whether a SYN-ACK of `server` acknowledged the data of `syn`.
fn is_data_accepted(capture: &Capture, server: HostId, syn: &Segment) -> bool {
    let end = syn.text_seq() + syn.text_len();
    let peer: SocketAddr = syn.src();
    let sent = capture.journeys().into_iter().filter(|journey| journey.sent.host == Some(server));
    sent.filter_map(|journey| journey.segment())
        .any(|segment| segment.is_syn_ack() && segment.dst() == peer && segment.tcp.ack == end)
}

impl Report for Results {
    fn render(&self, page: &mut Page) {
        let Params { rtt, profile, seed } = self.params;
        page.heading("The bits of net.ipv4.tcp_fastopen");
        page.paragraph(&format!(
            "0x1 client, 0x2 server, 0x4 client sends data without a cookie, 0x200 server accepts data without a cookie, 0x400 every listener. Two visits each, round trip {}, {} settings, seed {seed}.",
            ms(Some(milliseconds(rtt))),
            profile.name(),
        ));
        page.gap();
        page.table(&self.matrix());
        page.heading("A SYN with data from a spoofed source: does its data reach the program?");
        page.table(&self.spoof_table());
    }

    fn findings(&self) -> Vec<Finding> {
        if self.params != (Params { seed: self.params.seed, ..Params::default() }) {
            return Vec::new();
        }
        // (server's bits, listener asks, client's bits) with data on the first visit, and on the
        // second.
        let with_data = |of: fn(&Combination) -> &Exchange| {
            let taken = self.combinations.iter().filter(|one| of(one).verdict == Verdict::Accepted);
            let name = |one: &Combination| format!("{:#x}/{:#x}", one.server_bits, one.client_bits);
            taken.map(name).collect::<Vec<_>>().join(" ")
        };
        let spoofed = |of: fn(&Spoof) -> bool| {
            let taken = self.spoofs.iter().filter(|one| of(one));
            taken.map(|one| format!("{:#x}", one.server_bits)).collect::<Vec<_>>().join(" ")
        };
        vec![
            Finding::same(
                "server's bits/client's bits that accept data from the first SYN",
                with_data(|one| &one.first),
                "0x203/0x5 0x603/0x5",
            ),
            Finding::same(
                "from the second",
                with_data(|one| &one.second),
                "0x3/0x1 0x203/0x5 0x403/0x1 0x603/0x5",
            ),
            Finding::same(
                "servers that accept data with an invented cookie from a spoofed source",
                spoofed(|one| one.wrong_cookie_delivered),
                "0x203 0x603",
            )
            .source("those that need no cookie"),
            Finding::same("without the option", spoofed(|one| one.no_option_delivered), "0x203 0x603"),
        ]
    }

    fn json(&self) -> serde_json::Value {
        let combinations = self.combinations.iter().map(|combination| {
            json!({
                "client_bits": combination.client_bits, "server_bits": combination.server_bits,
                "listener_asks": combination.listener_asks,
                "first": VisitRecord::from(&combination.first), "second": VisitRecord::from(&combination.second),
            })
        });
        let Params { rtt, profile, seed } = self.params;
        json!({
            "scenario": "flags",
            "parameters": { "rtt_ms": milliseconds(rtt), "profile": profile, "seed": seed },
            "combinations": combinations.collect::<Vec<_>>(),
            "spoofed": self.spoofs,
        })
    }

    fn recordings(&self) -> Vec<Recording<'_>> {
        self.runs.iter().map(|(name, run)| run.recording_at_server(name)).collect()
    }
}

impl Results {
    fn matrix(&self) -> Table {
        let mut table = Table::new([
            ("server", Align::Right),
            ("listener", Align::Left),
            ("client", Align::Right),
            ("visit 1", Align::Right),
            ("Fast Open", Align::Left),
            ("visit 2", Align::Right),
            ("Fast Open", Align::Left),
        ]);
        for combination in &self.combinations {
            table.row([
                format!("{:#x}", combination.server_bits),
                listener(combination.listener_asks).to_string(),
                format!("{:#x}", combination.client_bits),
                first_byte(&combination.first),
                short(&combination.first).to_string(),
                first_byte(&combination.second),
                short(&combination.second).to_string(),
            ]);
        }
        table
    }

    fn spoof_table(&self) -> Table {
        let mut table = Table::new([
            ("server", Align::Right),
            ("listener", Align::Left),
            ("invented cookie", Align::Left),
            ("no option", Align::Left),
        ]);
        let delivered = |yes: bool| if yes { "DELIVERED" } else { "no" };
        for spoof in &self.spoofs {
            table.row([
                format!("{:#x}", spoof.server_bits),
                listener(spoof.listener_asks).to_string(),
                delivered(spoof.wrong_cookie_delivered).to_string(),
                delivered(spoof.no_option_delivered).to_string(),
            ]);
        }
        table
    }
}

fn listener(asks: bool) -> &'static str {
    if asks { "qlen 256" } else { "no qlen" }
}

#[cfg(test)]
mod tests;
