//! `fast-open`: the same requests without and with Fast Open (RFC 7413), cookie cold.

use super::pair::{CLIENT, CLIENT_V6, Pair, PairPlan, Run, SERVER, SERVER_V6, answering_at, in_run, visit};
use super::record::{VisitRecord, first_byte, ms, wording};
use crate::apps::{Opening, Visit};
use crate::exchange::Exchange;
use crate::ladder::{Ladder, milliseconds};
use crate::network::{HostPlan, Profile, Route};
use crate::report::{Align, Finding, Page, Recording, Report, Table};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use proto::FastOpen;
use serde_json::json;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Round-trip time of the path.
    pub rtt: Duration,
    /// Number of requests, one after the other, each on its own connection.
    pub count: usize,
    /// Length of a request, bytes.
    pub request_len: usize,
    /// Length of a reply, bytes.
    pub reply_len: usize,
    /// Profile of both ends.
    pub profile: Profile,
    /// True for IPv6.
    pub ipv6: bool,
    /// True if the client forgets cookie and path before each request (`ip tcp_metrics flush`).
    pub forget: bool,
    /// Seed of all randomness.
    pub seed: u64,
}

impl Default for Params {
    fn default() -> Params {
        let rtt = Duration::from_millis(170);
        Params {
            rtt,
            count: 10,
            request_len: 200,
            reply_len: 500,
            profile: Profile::Firstbyte,
            ipv6: false,
            forget: false,
            seed: 1,
        }
    }
}

impl Params {
    fn addresses(&self) -> (IpAddr, SocketAddr) {
        if self.ipv6 { (CLIENT_V6, SERVER_V6) } else { (CLIENT, SERVER) }
    }
}

/// The requests of one kind.
#[derive(Clone, Debug)]
pub struct Series {
    /// The capture and the state of the ends.
    pub run: Run,
    /// The connections, in order.
    pub exchanges: Vec<Exchange>,
}

/// Minimum, mean and maximum time to first byte, ms.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Summary {
    /// Minimum.
    pub min_ms: f64,
    /// Mean.
    pub avg_ms: f64,
    /// Maximum.
    pub max_ms: f64,
}

impl Series {
    /// Returns the times to first byte of the answered requests.
    pub fn round_trips_ms(&self) -> Vec<f64> {
        self.exchanges.iter().filter_map(Exchange::time_to_first_byte).map(milliseconds).collect()
    }

    /// Returns minimum, mean and maximum; `None` if nothing was answered.
    pub fn summary(&self) -> Option<Summary> {
        let times = self.round_trips_ms();
        let min_ms = times.iter().copied().reduce(f64::min)?;
        let max_ms = times.iter().copied().reduce(f64::max)?;
        Some(Summary { min_ms, avg_ms: times.iter().sum::<f64>() / times.len() as f64, max_ms })
    }
}

/// Longer tables merge equal neighboring rows.
const ROWS_MAX: usize = 20;

/// Both series.
#[derive(Clone, Debug)]
pub struct Results {
    /// The parameters.
    pub params: Params,
    /// Without Fast Open: `connect`, then `write`.
    pub plain: Series,
    /// With Fast Open: `connect_with(first_bytes)`.
    pub fast_open: Series,
}

impl Results {
    /// Returns the share of the mean time to first byte that Fast Open saves, percent.
    pub fn saving_percent(&self) -> Option<f64> {
        let (plain, fast_open) = (self.plain.summary()?, self.fast_open.summary()?);
        Some(100.0 * (1.0 - fast_open.avg_ms / plain.avg_ms))
    }

    /// Returns the ladders of the first and a repeat visit with Fast Open, and of a plain one.
    pub fn ladders(&self) -> Vec<Ladder> {
        let shown = [
            ("With Fast Open, first visit", self.fast_open.exchanges.first()),
            ("With Fast Open, repeat visit", self.fast_open.exchanges.get(1)),
            ("Without Fast Open, every visit", self.plain.exchanges.first()),
        ];
        let title = |name: &str, exchange: &Exchange| {
            let time = ms(exchange.time_to_first_byte().map(milliseconds));
            format!("{name}: first byte after {time}, {} packets", exchange.packets())
        };
        let ladder =
            |(name, exchange): (&str, Option<&Exchange>)| Some(Ladder::of(title(name, exchange?), exchange?));
        shown.into_iter().filter_map(ladder).collect()
    }
}

/// Makes the requests without and with Fast Open.
pub fn run(params: &Params) -> Results {
    Results {
        params: *params,
        plain: series(params, 1, Opening::ConnectThenWrite),
        fast_open: series(params, 0, Opening::FirstBytes(FastOpen::Auto)),
    }
}

fn series(params: &Params, run: usize, opening: Opening) -> Series {
    let (client, server) = params.addresses();
    let program = answering_at(server, Some(256), params.request_len, params.reply_len);
    let mut pair = Pair::new(PairPlan {
        seed: params.seed,
        client: HostPlan::new(params.profile, in_run(run, client)),
        server: HostPlan::new(params.profile, server.ip()),
        program,
        route: Route::with_rtt(params.rtt),
    });
    let request = Visit { peer: server, ..visit(opening, params.request_len, params.reply_len) };
    let mut exchanges = Vec::new();
    for _ in 0..params.count {
        if params.forget {
            let client = pair.client;
            pair.network.with_stack(client, |stack, _| stack.path_cache_mut().clear());
        }
        exchanges.push(pair.visit(request.clone()));
    }
    Series { run: pair.finish(), exchanges }
}

impl Report for Results {
    fn render(&self, page: &mut Page) {
        let Params { rtt, count, request_len, reply_len, profile, forget, seed, .. } = self.params;
        page.heading("Fast Open beside plain TCP");
        page.paragraph(&format!(
            "{count} requests of {request_len} bytes, replies of {reply_len}, round trip {}, both ends with {} settings, seed {seed}. \
             Times run from the first SYN to the first byte of the reply.{}",
            ms(Some(milliseconds(rtt))),
            profile.name(),
            if forget { " The client forgets its cookie before each request." } else { "" },
        ));
        page.gap();
        page.table(&self.table());
        for (name, series) in [("without", &self.plain), ("with", &self.fast_open)] {
            page.gap();
            statistics(page, self.params.addresses().1, name, series);
        }
        if let Some(percent) = self.saving_percent() {
            page.gap();
            page.line(&format!("Fast Open saves {percent:.1} % of the time to first byte."));
        }
        for remembered in &self.fast_open.run.remembered {
            page.paragraph(&format!("The client's cache: {remembered}"));
        }
        for ladder in self.ladders() {
            page.ladder(&ladder);
        }
    }

    fn findings(&self) -> Vec<Finding> {
        if self.params != (Params { seed: self.params.seed, ..Params::default() }) {
            return Vec::new();
        }
        let mean = |series: &Series| Some(series.summary()?.avg_ms / 1e3);
        let (plain, fast) = (mean(&self.plain), mean(&self.fast_open));
        vec![
            Finding::near("mean first byte, plain", plain, "340 ms", 1.0)
                .source("382.6 ms (theory 340)")
                .linux("348.0 ms"),
            Finding::near("mean first byte with Fast Open", fast, "187 ms", 1.0)
                .source("204.9 ms (theory 187)")
                .linux("188.0 ms"),
            Finding::near(
                "remaining share of the time",
                plain.zip(fast).map(|(plain, fast)| fast / plain),
                "55 %",
                1.0,
            )
            .source("54 %")
            .linux("54 %"),
        ]
    }

    fn json(&self) -> serde_json::Value {
        let records = |series: &Series| series.exchanges.iter().map(VisitRecord::from).collect::<Vec<_>>();
        let Params { rtt, count, request_len, reply_len, profile, ipv6, forget, seed } = self.params;
        json!({
            "scenario": "fast-open",
            "parameters": {
                "rtt_ms": milliseconds(rtt), "count": count, "request_len": request_len, "reply_len": reply_len,
                "profile": profile, "ipv6": ipv6, "forget": forget, "seed": seed,
            },
            "plain": { "summary": self.plain.summary(), "visits": records(&self.plain) },
            "fast_open": { "summary": self.fast_open.summary(), "visits": records(&self.fast_open),
                "remembered": self.fast_open.run.remembered },
            "saving_percent": self.saving_percent(),
            "ladders": self.ladders(),
        })
    }

    fn recordings(&self) -> Vec<Recording<'_>> {
        vec![self.fast_open.run.recording("fast-open"), self.plain.run.recording("plain")]
    }
}

impl Results {
    fn table(&self) -> Table {
        let mut table = Table::new([
            ("visit", Align::Right),
            ("plain", Align::Right),
            ("Fast Open", Align::Right),
            ("Fast Open", Align::Left),
        ]);
        let rows: Vec<[String; 3]> = (self.plain.exchanges.iter().zip(&self.fast_open.exchanges))
            .map(|(plain, fast_open)| [first_byte(plain), first_byte(fast_open), wording(fast_open)])
            .collect();
        let is_long = rows.len() > ROWS_MAX;
        let mut number = 1;
        for same in rows.chunk_by(|a, b| is_long && a == b) {
            let last = number + same.len() - 1;
            let visits = if last > number { format!("{number}-{last}") } else { number.to_string() };
            table.row([visits].iter().chain(&same[0]).cloned());
            number = last + 1;
        }
        table
    }
}

/// Writes the statistics in the form of `httping`'s last lines.
fn statistics(page: &mut Page, server: SocketAddr, name: &str, series: &Series) {
    let (all, answered) = (series.exchanges.len(), series.round_trips_ms().len());
    let failed = if all == 0 { 0.0 } else { 100.0 * (all - answered) as f64 / all as f64 };
    let total = ms(Some(series.round_trips_ms().iter().sum()));
    page.line(&format!("--- {server} {name} Fast Open ---"));
    page.line(&format!("{all} connects, {answered} ok, {failed:.2}% failed, time {total}"));
    if let Some(Summary { min_ms, avg_ms, max_ms }) = series.summary() {
        let decimals = if max_ms < 10.0 { 3 } else { 1 };
        page.line(&format!(
            "round-trip min/avg/max = {min_ms:.decimals$}/{avg_ms:.decimals$}/{max_ms:.decimals$} ms"
        ));
    }
}

#[cfg(test)]
mod tests;
