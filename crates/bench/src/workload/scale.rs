//! `scale`: one busy connection among many idle ones, or a random one each time.

use super::{NAGLE, describe};
use crate::crowd::{Answerer, Asker, config, establish};
use crate::meter::{Meter, now};
use crate::pair::Pair;
use crate::report::{Failure, Line, Outcome};
use clap::{Args, ValueEnum};
use core::fmt;
use core::time::Duration;
use proto::ConnId;

const MTU: usize = 1500;
/// Requests between two looks at the clock for the end.
const REQUESTS_PER_LOOK: usize = 16;
/// Requests that warm up.
const WARM_UP: u64 = 1000;

/// One busy connection among idle ones.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Idle connections.
    #[arg(long, default_value_t = 1000)]
    pub conns: usize,
    /// Seconds.
    #[arg(long, default_value_t = 1.0)]
    pub secs: f64,
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
    let mut choice = Choice { pattern: options.pattern.unwrap_or(Pattern::Fixed), state: 1 };
    for _ in 0..WARM_UP {
        request(&mut pair, &mut asker, &mut answerer, &mut choice)?;
    }
    let (packets, before) = (pair.packets(), asker.answers());
    let meter = Meter::start();
    let end = now() + Duration::from_secs_f64(options.secs);
    // The clock is not read for the loop's sake alone more often than necessary.
    while now() < end {
        for _ in 0..REQUESTS_PER_LOOK {
            request(&mut pair, &mut asker, &mut answerer, &mut choice)?;
        }
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

/// One request and its answer.
fn request(
    pair: &mut Pair,
    asker: &mut Asker,
    answerer: &mut Answerer,
    choice: &mut Choice,
) -> Result<(), Failure> {
    let id = choice.next(asker.connections());
    let answers = asker.answers();
    let mut at = now();
    asker.ask(&mut pair.client.stack, at, id)?;
    while asker.answers() == answers {
        pair.round(at, asker, answerer)?;
        at = now();
    }
    Ok(())
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
                // A linear congruential generator (Knuth's MMIX); its upper bits are good enough to spread accesses.
                self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                connections[(self.state >> 32) as usize % connections.len()]
            }
        }
    }
}
