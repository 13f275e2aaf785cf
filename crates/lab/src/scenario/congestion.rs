//! `congestion`: one download through one bottleneck under each congestion control, and its window
//! over time.

use super::pair::{Pair, PairPlan, Run, answering, visit};
use super::record::ms;
use crate::apps::Opening;
use crate::ladder::milliseconds;
use crate::middlebox::Direction;
use crate::network::{Profile, Route};
use crate::report::{Align, Chart, Finding, Page, Recording, Report, Table};
use core::time::Duration;
use proto::{CongestionControl, Instant, Traced};
use qdisc::{Limit, LinkConfig, Loss, Probability};
use serde_json::json;

/// Parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The algorithms, one run each.
    pub algorithms: Vec<CongestionControl>,
    /// Round-trip time of the path with empty queues.
    pub rtt: Duration,
    /// Rate of the bottleneck, bits per second.
    pub rate: u64,
    /// Length of the queue, in percent of the bandwidth-delay product.
    pub queue_percent: u32,
    /// Queueing discipline in `tc`'s words; `None` for drop-tail.
    pub qdisc: Option<String>,
    /// Random loss before the queue, percent.
    pub loss_percent: f64,
    /// Length of the download, bytes.
    pub len: usize,
    /// Seed of all randomness.
    pub seed: u64,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            algorithms: vec![CongestionControl::Cubic, CongestionControl::Bbr],
            rtt: Duration::from_millis(40),
            rate: 10_000_000,
            queue_percent: 100,
            qdisc: None,
            loss_percent: 0.0,
            len: 5_000_000,
            seed: 1,
        }
    }
}

/// Minimum queue in bytes: two packets.
const QUEUE_MIN: u64 = 3000;
/// Length of the request, bytes.
const REQUEST: usize = 100;

impl Params {
    /// Returns the bandwidth-delay product in bytes.
    pub fn bdp(&self) -> u64 {
        let bits = u128::from(self.rate) * self.rtt.as_micros() / 1_000_000;
        u64::try_from(bits / 8).unwrap_or(u64::MAX)
    }

    fn queue(&self) -> u64 {
        (self.bdp().saturating_mul(self.queue_percent.into()) / 100).max(QUEUE_MIN)
    }

    fn route(&self) -> Route {
        let half = u64::try_from(self.rtt.as_nanos() / 2).unwrap_or(u64::MAX);
        let back = LinkConfig::new()
            .rate(self.rate)
            .delay(half)
            .limit(Limit::bytes(self.queue()))
            .loss(Loss::Random(Probability::percent(self.loss_percent)));
        let route = Route::new().wire(LinkConfig::new().delay(half), back);
        match &self.qdisc {
            Some(words) => route.qdisc(Direction::Backward, words).expect("the caller checked it"),
            None => route,
        }
    }
}

/// A congestion window and its start.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct WindowAt {
    /// Milliseconds since the first SYN.
    pub ms: f64,
    /// Bytes.
    pub cwnd: u32,
}

/// One download.
#[derive(Clone, Debug)]
pub struct Download {
    /// The algorithm.
    pub algorithm: CongestionControl,
    /// The capture and the state of the ends.
    pub run: Run,
    /// From the first SYN to the last byte at the client; `None` if it did not arrive.
    pub took: Option<Duration>,
    /// The sender's window after each change.
    pub windows: Vec<WindowAt>,
    /// Retransmitted segments.
    pub again: usize,
    /// Timeouts and tail loss probes.
    pub timeouts: u64,
    /// Mean of the sender's smoothed round-trip time.
    pub srtt_mean: Option<Duration>,
}

impl Download {
    /// Returns bytes per second.
    pub fn goodput(&self, len: usize) -> Option<f64> {
        self.took.map(|took| len as f64 / took.as_secs_f64())
    }
}

/// All downloads.
#[derive(Clone, Debug)]
pub struct Results {
    /// The parameters.
    pub params: Params,
    /// The downloads, in the order of the algorithms.
    pub downloads: Vec<Download>,
}

/// Runs the downloads.
pub fn run(params: &Params) -> Results {
    let downloads = params
        .algorithms
        .iter()
        .enumerate()
        .map(|(run, algorithm)| download(params, run, *algorithm))
        .collect();
    Results { params: params.clone(), downloads }
}

/// Returns the mean over time of values that hold from their time to the next; the last holds until
/// `end`.
fn mean_over_time(values: &[(Instant, Duration)], end: Instant) -> Option<Duration> {
    let ends = values.iter().skip(1).map(|(at, _)| *at).chain([end]);
    let spans = values
        .iter()
        .zip(ends)
        .map(|((at, value), until)| (value.as_secs_f64(), until.since(*at).as_secs_f64()));
    let (sum, whole) =
        spans.fold((0.0, 0.0), |(sum, whole), (value, span)| (sum + value * span, whole + span));
    (whole > 0.0).then(|| Duration::from_secs_f64(sum / whole))
}

fn download(params: &Params, run: usize, algorithm: CongestionControl) -> Download {
    let program = answering(None, REQUEST, params.len);
    let mut plan = PairPlan::new(params.seed, run, Profile::Firstbyte, program, params.route());
    plan.server.config = plan.server.config.tcp_congestion_control(algorithm);
    let mut pair = Pair::new(plan);
    let exchange = pair.visit(visit(Opening::ConnectThenWrite, REQUEST, params.len));
    let (begun, run) = (exchange.started_at, pair.finish());
    let end = run.ends.first().copied().flatten().filter(|end| end.is_exact);
    let of_server = || run.capture.traced().iter().filter(|(host, _)| *host == run.server);
    let again = of_server().filter(|(_, event)| matches!(event.what, Traced::Retransmitted { .. }));
    let srtt = of_server().filter_map(|(_, event)| match event.what {
        Traced::Rtt { srtt, .. } => Some((event.at, srtt)),
        _ => None,
    });
    let srtt_mean = end.and_then(|end| mean_over_time(&srtt.collect::<Vec<_>>(), end.at));
    Download {
        algorithm,
        took: end.map(|end| end.at.since(begun)),
        windows: windows(&run, begun),
        again: again.count(),
        timeouts: run.counted.timeouts + run.counted.loss_probes,
        srtt_mean,
        run,
    }
}

fn windows(run: &Run, begun: Instant) -> Vec<WindowAt> {
    let changes = run.capture.traced().iter().filter(|(host, _)| *host == run.server);
    let window = changes.filter_map(|(_, event)| match event.what {
        Traced::Cwnd { to, .. } => Some(WindowAt { ms: milliseconds(event.at.since(begun)), cwnd: to }),
        _ => None,
    });
    window.collect()
}

impl Report for Results {
    fn render(&self, page: &mut Page) {
        let Params { rtt, rate, loss_percent, len, seed, .. } = self.params;
        page.heading("A download under each congestion control");
        page.paragraph(&format!(
            "{} kB through a bottleneck of {} Mbit/s with a queue of {} kB, round trip {}, {loss_percent} % random loss, seed {seed}. The bandwidth-delay product is {} kB.",
            len / 1000,
            rate as f64 / 1e6,
            self.params.queue() / 1000,
            ms(Some(milliseconds(rtt))),
            self.params.bdp() / 1000,
        ));
        if let Some(words) = &self.params.qdisc {
            page.paragraph(&format!("The queue is {words}."));
        }
        page.gap();
        page.table(&self.table());
        for download in &self.downloads {
            let points = download.windows.iter().map(|at| (at.ms / 1000.0, f64::from(at.cwnd) / 1000.0));
            let end = download.took.map_or(0.0, |took| took.as_secs_f64());
            page.chart(&Chart {
                title: format!("{}: congestion window, kB, over seconds", name(download.algorithm)),
                points: points.collect(),
                end,
                mark: Some((self.params.bdp() as f64 / 1000.0, "the bandwidth-delay product")),
            });
        }
    }

    fn findings(&self) -> Vec<Finding> {
        if self.params != (Params { seed: self.params.seed, ..Params::default() }) {
            return Vec::new();
        }
        let params = &self.params;
        let rtt = |algorithm| {
            let download = self.downloads.iter().find(|download| download.algorithm == algorithm)?;
            Some(download.srtt_mean?.as_secs_f64())
        };
        let share = |download: &Download| {
            let share = download.goodput(params.len).map(|goodput| goodput * 8.0 / params.rate as f64);
            Finding::at_least(&format!("{}: share of the rate", proper(download.algorithm)), share, "90 %")
        };
        let mut findings: Vec<Finding> = self.downloads.iter().map(share).collect();
        let less =
            rtt(CongestionControl::Cubic).zip(rtt(CongestionControl::Bbr)).map(|(cubic, bbr)| cubic - bbr);
        findings.push(Finding::at_least("round trip of BBR below CUBIC's by", less, "5 ms"));
        findings
    }

    fn json(&self) -> serde_json::Value {
        let Params { rtt, rate, queue_percent, loss_percent, len, seed, .. } = self.params;
        let downloads = self.downloads.iter().map(|download| {
            json!({
                "algorithm": name(download.algorithm),
                "took_ms": download.took.map(milliseconds),
                "goodput_bytes_per_s": download.goodput(len).map(f64::round),
                "sent_again": download.again,
                "timeouts_and_probes": download.timeouts,
                "srtt_mean_ms": download.srtt_mean.map(milliseconds),
                "windows": download.windows,
            })
        });
        json!({
            "scenario": "congestion",
            "parameters": {
                "rtt_ms": milliseconds(rtt), "rate_bits_per_s": rate, "queue_percent": queue_percent, "qdisc": self.params.qdisc,
                "loss_percent": loss_percent, "len": len, "seed": seed,
            },
            "downloads": downloads.collect::<Vec<_>>(),
        })
    }

    fn recordings(&self) -> Vec<Recording<'_>> {
        self.downloads.iter().map(|download| download.run.recording(name(download.algorithm))).collect()
    }
}

impl Results {
    fn table(&self) -> Table {
        let mut table = Table::new([
            ("algorithm", Align::Left),
            ("time", Align::Right),
            ("goodput", Align::Right),
            ("of the rate", Align::Right),
            ("retransmitted", Align::Right),
            ("time-outs, probes", Align::Right),
            ("mean round trip", Align::Right),
        ]);
        for download in &self.downloads {
            let goodput = download.goodput(self.params.len);
            table.row([
                name(download.algorithm),
                ms(download.took.map(milliseconds)),
                goodput.map_or("-".into(), |rate| format!("{:.0} kB/s", rate / 1000.0)),
                goodput.map_or("-".into(), |rate| format!("{:.1} %", rate * 800.0 / self.params.rate as f64)),
                download.again.to_string(),
                download.timeouts.to_string(),
                ms(download.srtt_mean.map(milliseconds)),
            ]);
        }
        table
    }
}

/// Returns the spelling of the algorithm's papers.
fn proper(algorithm: CongestionControl) -> String {
    match algorithm {
        CongestionControl::Cubic => "CUBIC".into(),
        CongestionControl::Bbr => "BBR".into(),
        algorithm => format!("{algorithm:?}"),
    }
}

/// Returns the name in `tcp_congestion_control`.
fn name(algorithm: CongestionControl) -> String {
    format!("{algorithm:?}").to_lowercase()
}

#[cfg(test)]
mod tests;
