//! `scale`: one busy connection among many idle ones, or a random one each time.

use super::{NAGLE, describe};
use crate::crowd::{Answerer, Asker, config, establish};
use crate::meter::{Meter, now};
use crate::pair::Pair;
use crate::report::{Failure, Line, Outcome};
use clap::{Args, ValueEnum};
use core::fmt;
use core::time::Duration;
use proto::{ConnId, Instant};

const MTU: usize = 1500;
/// Requests that warm up a run by the clock.
const WARM_UP: u64 = 1000;

/// One busy connection among idle ones.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Idle connections.
    #[arg(long, default_value_t = 1000)]
    pub conns: usize,
    /// Seconds.
    #[arg(long, default_value_t = 1.0, value_parser = super::seconds)]
    pub secs: f64,
    /// So many requests instead, after a tenth of them to warm up.
    #[arg(long, conflicts_with = "secs", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// Bytes of a request.
    #[arg(long, default_value_t = 100)]
    pub req: usize,
    /// Bytes of an answer.
    #[arg(long, default_value_t = 100)]
    pub resp: usize,
    /// Which connection asks next.
    #[arg(long, value_enum)]
    pub pattern: Option<Pattern>,
}

/// Which connection asks next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pattern {
    /// The one in the middle of the order of creation, always.
    Fixed,
    /// Any.
    Random,
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Pattern::Fixed => "fixed",
            Pattern::Random => "random",
        })
    }
}

/// Runs it.
///
/// # Errors
/// A request, an answer or a connection was lost.
pub fn run(options: &Options) -> Outcome {
    let count = options.conns + 1;
    let config = config(count)?;
    let mut pair = Pair::new(&config, &config, MTU, true);
    let mut answerer = Answerer::new(&mut pair.server.stack, options.req, options.resp)?;
    let mut asker = Asker::new(count, options.req, options.resp);
    establish(&mut pair, &mut asker, &mut answerer, count, false)?;
    let mut run = Run {
        choice: Choice { pattern: options.pattern.unwrap_or(Pattern::Fixed), state: 1 },
        at: now(),
        pair: &mut pair,
        asker: &mut asker,
        answerer: &mut answerer,
    };
    run.requests(options.requests.map_or(WARM_UP, |requests| requests / 10))?;
    let (packets, before) = (run.pair.packets(), run.asker.answers());
    let meter = Meter::start();
    match options.requests {
        Some(requests) => run.requests(requests)?,
        None => run.requests_until(now() + Duration::from_secs_f64(options.secs))?,
    }
    let spent = meter.spent();
    let packets = (pair.packets() - packets) as f64;
    let requests = (asker.answers() - before) as f64;
    let line = Line::new("scale")
        .param("link", "mem")
        .param("conns", options.conns)
        .figure("cpu_ns_per_pkt", spent.cpu / packets * 1e9)
        .figure("cpu_us_per_rr", spent.cpu / requests * 1e6)
        .figure("pkts_per_rr", packets / requests)
        .info("nagle", NAGLE)
        .info("settings", describe(&config));
    Ok(match options.pattern {
        Some(pattern) => line.param("pattern", pattern),
        None => line,
    })
}

/// The hosts, their applications, and the clock as an event loop reads it: once in each round.
struct Run<'a> {
    choice: Choice,
    at: Instant,
    pair: &'a mut Pair,
    asker: &'a mut Asker,
    answerer: &'a mut Answerer,
}

impl Run<'_> {
    fn requests_until(&mut self, end: Instant) -> Result<(), Failure> {
        while self.at < end {
            self.request()?;
        }
        Ok(())
    }

    fn requests(&mut self, count: u64) -> Result<(), Failure> {
        (0..count).try_for_each(|_| self.request())
    }

    /// One request and its answer.
    fn request(&mut self) -> Result<(), Failure> {
        let id = self.choice.next(self.asker.connections());
        let answers = self.asker.answers();
        self.asker.ask(&mut self.pair.client.stack, self.at, id)?;
        while self.asker.answers() == answers {
            self.pair.round(self.at, self.asker, self.answerer)?;
            self.at = now();
        }
        Ok(())
    }
}

/// The next connection.
struct Choice {
    pattern: Pattern,
    state: u64,
}

impl Choice {
    fn next(&mut self, connections: &[ConnId]) -> ConnId {
        match self.pattern {
            Pattern::Fixed => connections[connections.len() / 2],
            Pattern::Random => {
                // A linear congruential generator (Knuth's MMIX); its upper bits are good enough to
                // spread accesses.
                self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                connections[(self.state >> 32) as usize % connections.len()]
            }
        }
    }
}
