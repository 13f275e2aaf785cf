//! `ttfb-tun`: time to the first byte of an answer from a kernel some way off.

use super::describe;
use crate::exchange::{Client, Mode, Plan};
use crate::meter::now;
use crate::report::{Failure, Line, Outcome};
use crate::tun::{Place, TunEnd};
use clap::Args;
use core::time::Duration;
use proto::Config;

/// Longest exchange.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Time to first byte through a path with delay, the kernel at the other end.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    place: Place,
    /// Handshake.
    #[arg(long, value_enum, default_value_t = Mode::Plain)]
    mode: Mode,
    /// Exchanges, one at a time, after one that brings the cookie.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    n: u64,
    /// The path's round-trip time in ms: only told to the reader.
    #[arg(long)]
    rtt: u32,
    /// Bytes of a request.
    #[arg(long, default_value_t = 100)]
    req: usize,
    /// Bytes of an answer.
    #[arg(long, default_value_t = 100)]
    resp: usize,
}

/// Runs it.
///
/// # Errors
/// A byte or connection was lost, or an exchange was of another mode.
pub fn run(options: &Options) -> Outcome {
    let config = Config::default();
    let mut end = TunEnd::open(&options.place, false, &config)?;
    let mut client = Client::new(Plan {
        mode: options.mode,
        fin_in_syn: false,
        request_len: options.req,
        response_len: options.resp,
        servers: Place::ports(options.place.peer),
    });
    exchange(&mut end, &mut client)?;
    let mut times = Vec::new();
    let mut accepted = 0.0;
    for _ in 0..options.n {
        times.push(exchange(&mut end, &mut client)?.as_secs_f64() * 1e3);
        accepted += client.tfo_share();
    }
    let tfo_share = accepted / options.n as f64;
    if options.mode == Mode::Tfo && tfo_share < 1.0 {
        return Err(format!("only {tfo_share} of the exchanges were Fast Open").into());
    }
    times.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (times.first(), times.last()) else { return Err("--n 0".into()) };
    Ok(Line::new("ttfb")
        .param("link", "delay+tun-client")
        .param("mode", options.mode)
        .param("rtt_ms", options.rtt)
        .figure("ttfb_ms", median(&times))
        .figure("ttfb_min_ms", *least)
        .figure("ttfb_max_ms", *most)
        .figure("tfo_share", tfo_share)
        .info("n", options.n)
        .info("settings", describe(&config)))
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    } else {
        sorted[middle]
    }
}

/// One exchange; from the call that connects to the first byte of the answer.
fn exchange(end: &mut TunEnd, client: &mut Client) -> Result<Duration, Failure> {
    let begun = now();
    client.start(&mut end.stack, begun, 1, 1)?;
    while !client.is_finished() {
        end.step(client)?;
        if now().since(begun) > TIMEOUT {
            return Err(format!("no answer after {TIMEOUT:?}").into());
        }
    }
    client.first_byte().map(|at| at.since(begun)).ok_or_else(|| "no byte of an answer".into())
}
