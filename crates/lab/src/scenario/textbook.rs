//! `textbook`: the figure of every TCP course. A congestion window in segments, round by round,
//! through a timeout and three duplicate ACKs.
//!
//! The sender starts with a window of one segment and a given threshold. It uses no SACK and does
//! not detect spurious timeouts. The path only adds delay, and each segment is acknowledged. A
//! round is all data that leaves at one instant. Losses strike the rounds whose window has reached
//! a given size. These rounds are not known in advance, so the download is repeated for each loss
//! until all are placed.

mod rounds;

pub use rounds::{Cause, Round};

use super::pair::{Pair, PairPlan, Run, answering, visit};
use super::record::ms;
use crate::apps::Opening;
use crate::ladder::milliseconds;
use crate::middlebox::{LoseAt, Share};
use crate::network::{Calls, Profile, Route};
use crate::report::{Align, Chart, Finding, Page, Recording, Report, Table};
use ::picture::{Graph, Series, Style, Tone};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use proto::{Config, CongestionControl, Instant};
use qdisc::LinkConfig;
use serde_json::json;

/// Parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The sender's congestion control.
    pub algorithm: CongestionControl,
    /// Round-trip time of the path.
    pub rtt: Duration,
    /// Initial slow-start threshold, segments.
    pub ssthresh: u32,
    /// Losses, in order.
    pub losses: Vec<Loss>,
    /// Number of rounds to show.
    pub rounds: usize,
    /// Seed of all randomness.
    pub seed: u64,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            algorithm: CongestionControl::Reno,
            rtt: Duration::from_millis(100),
            ssthresh: 16,
            losses: vec![Loss { window: 24, share: Share::All }, Loss { window: 16, share: Share::First }],
            rounds: 25,
            seed: 1,
        }
    }
}

/// A loss in the next round whose window has reached this size. Written `all:24` or `first:16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Segments.
    pub window: u32,
    /// The lost share of the round.
    pub share: Share,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = match self.share {
            Share::All => "all",
            Share::First => "first",
        };
        write!(f, "{share}:{}", self.window)
    }
}

/// The form of a loss.
const FORM: &str = "write all:N or first:N, where N is a window in segments, from 1 to 1000";

impl FromStr for Loss {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Loss, &'static str> {
        let (share, window) = text.split_once(':').ok_or(FORM)?;
        let share = match share {
            "all" => Share::All,
            "first" => Share::First,
            _ => return Err(FORM),
        };
        let window = window.parse().ok().filter(|window| (1..=1000).contains(window)).ok_or(FORM)?;
        Ok(Loss { window, share })
    }
}

/// The download with all losses placed.
#[derive(Clone, Debug)]
pub struct Results {
    /// The parameters.
    pub params: Params,
    /// The capture and the state of the ends.
    pub run: Run,
    /// The requested number of rounds, and the repairs between them.
    pub rounds: Vec<Round>,
    /// Losses whose window was never reached.
    pub missed: Vec<Loss>,
}

/// Runs the download once for each loss and once more.
pub fn run(params: &Params) -> Results {
    let mut placed: Vec<(Instant, Share)> = Vec::new();
    let mut run = download(params, &placed);
    let mut missed = Vec::new();
    for loss in &params.losses {
        let earlier = placed.last().map(|(at, _)| *at);
        let strikes = |round: &&Round| {
            round.again == 0 && earlier.is_none_or(|at| round.at > at) && round.window >= loss.window.into()
        };
        let Some(struck) =
            rounds::rounds(params, &run).iter().take(params.rounds).find(strikes).map(|round| round.at)
        else {
            missed.push(*loss);
            continue;
        };
        placed.push((struck, loss.share));
        run = download(params, &placed);
    }
    let mut rounds = rounds::rounds(params, &run);
    let mut shown = 0;
    rounds.retain(|round| {
        shown += usize::from(!round.is_recovering());
        shown <= params.rounds
    });
    Results { params: params.clone(), run, rounds, missed }
}

/// Length of the request, bytes.
const REQUEST: usize = 100;
/// Bytes of a segment: an Ethernet packet without timestamps.
const MSS: u32 = 1460;
/// Buffer in bytes, larger than any window here.
const BUFFER: usize = 8 << 20;

fn download(params: &Params, losses: &[(Instant, Share)]) -> Run {
    // No round is larger than slow start or the losses allow, plus one segment per round.
    let largest = params.losses.iter().map(|loss| loss.window).fold(params.ssthresh, u32::max) as usize;
    let len = params.rounds * (2 * largest + params.rounds) * MSS as usize;
    let half = u64::try_from(params.rtt.as_nanos() / 2).unwrap_or(u64::MAX);
    let wire = || LinkConfig::new().delay(half);
    // At the sender, so that losses apply when a round leaves.
    let route = Route::new().wire(wire(), wire()).middlebox(LoseAt::new(losses.iter().copied()));
    let mut plan = PairPlan::new(params.seed, 0, Profile::Firstbyte, answering(None, REQUEST, len), route);
    for host in [&mut plan.client, &mut plan.server] {
        host.calls = Calls::OneByOne;
        host.config = config(params);
    }
    let mut pair = Pair::new(plan);
    pair.network.with_stack(pair.client, |client, now| {
        let everywhere = "0.0.0.0/0".parse().expect("a prefix");
        client.set_route(now, everywhere, "quickack 1".parse().expect("values of a route"))
    });
    pair.visit(visit(Opening::ConnectThenWrite, REQUEST, len));
    pair.finish()
}

/// The windows in the figure of the textbooks.
const FIGURE: &str = "1 2 4 8 16 17 18 19 20 21 22 23 24 1 2 4 8 12 13 14 15 16 8 9 10";

/// Returns the settings of the textbook's sender.
fn config(params: &Params) -> Config {
    let mut config = Profile::Firstbyte.config();
    let ssthresh = params.ssthresh.to_string();
    let buffer = format!("4096 {BUFFER} {BUFFER}");
    for (name, value) in [
        ("net.ipv4.tcp_sack", "0"),
        ("net.ipv4.tcp_frto", "0"),
        ("net.ipv4.tcp_timestamps", "0"),
        ("net.ipv4.tcp_rmem", &buffer),
        ("net.ipv4.tcp_wmem", &buffer),
        // Each ACK counts as one segment, however much it acknowledges.
        ("firstbyte.abc_limit", "1"),
        ("firstbyte.initcwnd", "1"),
        ("firstbyte.initial_ssthresh", &ssthresh),
    ] {
        config.set(name, value).expect("a Firstbyte setting");
    }
    config.tcp_congestion_control(params.algorithm)
}

/// Formats a number of segments, without decimals if possible.
fn count(segments: f64) -> String {
    if segments.fract() < 0.05 { format!("{segments:.0}") } else { format!("{segments:.1}") }
}

impl Report for Results {
    fn render(&self, page: &mut Page) {
        let Params { algorithm, rtt, ssthresh, losses, seed, .. } = &self.params;
        let losses: Vec<String> = losses.iter().map(Loss::to_string).collect();
        page.heading("Congestion window by round");
        page.paragraph(&format!(
            "{algorithm:?} without SACK, initial window 1, threshold {ssthresh}, every segment acknowledged, round trip {}, losses {}, \
             seed {seed}. Numbers are segments of {MSS} bytes.",
            ms(Some(milliseconds(*rtt))),
            if losses.is_empty() { "none".into() } else { losses.join(" ") },
        ));
        for loss in &self.missed {
            page.paragraph(&format!(
                "In {} rounds no window reached the size of the loss {loss}.",
                self.params.rounds
            ));
        }
        page.gap();
        page.table(&self.table());
        page.chart(&Chart {
            title: "Congestion window in segments, by round".into(),
            points: self.figure().enumerate().map(|(n, round)| (n as f64, round.window)).collect(),
            end: self.figure().count() as f64,
            mark: None,
        });
    }

    fn findings(&self) -> Vec<Finding> {
        if self.params != (Params { seed: self.params.seed, ..Params::default() }) {
            return Vec::new();
        }
        let windows: Vec<String> = self.figure().map(|round| count(round.window)).collect();
        vec![Finding::same("windows, segments", windows.join(" "), FIGURE).source(FIGURE)]
    }

    fn graphs(&self) -> Vec<Graph> {
        let over_rounds = |value: &dyn Fn(&Round) -> Option<f64>| {
            let points = self.figure().zip(1..).map(|(round, number)| (f64::from(number), value(round)));
            points.filter_map(|(number, value)| Some((number, value?))).collect::<Vec<_>>()
        };
        let window = over_rounds(&|round| Some(round.window));
        let threshold = over_rounds(&|round| round.ssthresh);
        let lost = over_rounds(&|round| (round.lost > 0).then_some(round.window));
        let graph = Graph::new("Congestion window by round", "window", "segments")
            .over("round")
            .with(Series::new("slow-start threshold", Style::Step, Tone::Purple, threshold).dashed())
            .with(Series::new("congestion window", Style::Line, Tone::Blue, window.clone()))
            .with(Series::new("a round", Style::Dots, Tone::Blue, window))
            .with(Series::new("segments of it are lost", Style::Crosses, Tone::Red, lost));
        vec![graph]
    }

    fn json(&self) -> serde_json::Value {
        let Params { algorithm, rtt, ssthresh, losses, rounds, seed } = &self.params;
        let texts = |losses: &[Loss]| losses.iter().map(Loss::to_string).collect::<Vec<_>>();
        json!({
            "scenario": "textbook",
            "parameters": {
                "algorithm": format!("{algorithm:?}").to_lowercase(), "rtt_ms": milliseconds(*rtt), "ssthresh": ssthresh,
                "losses": texts(losses), "rounds": rounds, "seed": seed,
            },
            "rounds": self.rounds,
            "missed": texts(&self.missed),
        })
    }

    fn recordings(&self) -> Vec<Recording<'_>> {
        vec![self.run.recording("textbook")]
    }
}

impl Results {
    /// Returns the rounds of the figure.
    pub fn figure(&self) -> impl Iterator<Item = &Round> {
        self.rounds.iter().filter(|round| !round.is_recovering())
    }

    fn table(&self) -> Table {
        let mut table = Table::new([
            ("round", Align::Right),
            ("at", Align::Right),
            ("window", Align::Right),
            ("threshold", Align::Right),
            ("sent", Align::Right),
            ("what happens", Align::Left),
        ]);
        let mut number = 0;
        for round in &self.rounds {
            number += usize::from(!round.is_recovering());
            table.row([
                if round.is_recovering() { String::new() } else { number.to_string() },
                ms(Some(round.ms)),
                count(round.window),
                round.ssthresh.map_or("-".into(), count),
                round.sent.to_string(),
                round.remark().into(),
            ]);
        }
        table
    }
}

#[cfg(test)]
mod tests;
