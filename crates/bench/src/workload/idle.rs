//! `idle`: what an established connection occupies when nothing happens on it.

use super::{NAGLE, describe};
use crate::crowd::{Answerer, Asker, config, establish};
use crate::meter::{Meter, now};
use crate::pair::Pair;
use crate::report::{Failure, Line, Outcome};
use clap::Args;
use core::time::Duration;

const MTU: usize = 1500;
/// Longest wait for the last timer.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Memory of established, idle connections.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Connections.
    #[arg(long, default_value_t = 1000, value_parser = super::one_or_more)]
    pub conns: usize,
    /// Bytes exchanged each way on every connection first; 0 = none.
    #[arg(long, default_value_t = 100)]
    pub req: usize,
}

/// Runs it. `heap_in_use` tells the bytes of live allocations.
///
/// # Errors
/// A connection or a byte was lost.
pub fn run(options: &Options, heap_in_use: impl Fn() -> usize) -> Outcome {
    let config = config(options.conns)?;
    let mut pair = Pair::new(&config, &config, MTU, true);
    let mut answerer = Answerer::new(&mut pair.server.stack, options.req, options.req)?;
    // The applications' own list of handles is allocated here, before the count begins.
    let mut asker = Asker::new(options.conns, options.req, options.req);
    let (heap, resident) = (heap_in_use(), resident()?);
    let meter = Meter::start();
    establish(&mut pair, &mut asker, &mut answerer, options.conns, options.req > 0)?;
    let spent = meter.spent();
    let waited = settle(&mut pair, &mut asker, &mut answerer)?;
    pair.drop_buffers();
    let endpoints = 2.0 * options.conns as f64;
    let sizes = [&pair.client.stack, &pair.server.stack].map(|stack| stack.table_sizes().connections);
    if sizes != [options.conns; 2] {
        return Err(format!("{sizes:?} connections are left").into());
    }
    Ok(Line::new("idle")
        .param("link", "mem")
        .param("conns", options.conns)
        .param("data", options.req)
        .figure("bytes_per_endpoint", (heap_in_use() as f64 - heap as f64) / endpoints)
        .figure("rss_bytes_per_endpoint", (self::resident()? - resident) / endpoints)
        .figure("cpu_us_per_conn", spent.cpu / options.conns as f64 * 1e6)
        .info("waited", format!("{waited:?} until no timer was set"))
        .info("nagle", NAGLE)
        .info("settings", describe(&config)))
}

/// Lets every timer run out.
fn settle(pair: &mut Pair, asker: &mut Asker, answerer: &mut Answerer) -> Result<Duration, Failure> {
    let begun = now();
    loop {
        let moved = pair.round(now(), asker, answerer)?;
        let waited = now().since(begun);
        let deadline = [pair.client.stack.poll_timeout(), pair.server.stack.poll_timeout()];
        let deadline = deadline.into_iter().flatten().min();
        match deadline {
            None if moved == 0 => return Ok(waited),
            Some(deadline) if moved == 0 => std::thread::sleep(deadline.since(now())),
            _ => {}
        }
        if waited > TIMEOUT {
            return Err(format!("a timer is still set after {waited:?}").into());
        }
    }
}

/// Resident memory of this process, bytes.
fn resident() -> Result<f64, Failure> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split_whitespace().nth(1).and_then(|field| field.parse::<f64>().ok());
    Ok(pages.ok_or("/proc/self/statm has no second field")? * rustix::param::page_size() as f64)
}
