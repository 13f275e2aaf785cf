//! `xchg-mem`: short exchanges between two stacks of this process.

use super::{NAGLE, describe};
use crate::exchange::{Client, Mode, Plan, Server};
use crate::meter::{Meter, now};
use crate::pair::{Pair, SERVER};
use crate::report::{Failure, Line, Outcome};
use clap::{Args, ValueEnum};
use core::net::SocketAddr;
use core::time::Duration;
use proto::Config;

const PORT: u16 = 7000;
const MTU: usize = 1500;
/// TIME-WAIT here: long enough to be entered and left in the usual way.
const TIME_WAIT: Duration = Duration::from_millis(1);

/// Short exchanges, two hosts in one process.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Handshake.
    #[arg(long, value_enum, default_value_t = Mode::Plain)]
    pub mode: Mode,
    /// Exchanges in flight.
    #[arg(long, default_value_t = 1, value_parser = super::one_or_more)]
    pub conc: usize,
    /// Exchanges measured; a tenth and 64 more warm up.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub n: u64,
    /// Bytes of a request.
    #[arg(long, default_value_t = 100)]
    pub req: usize,
    /// Bytes of an answer.
    #[arg(long, default_value_t = 100)]
    pub resp: usize,
    /// `syn`: the client's FIN travels in its SYN, the server's in its SYN-ACK (with `--mode tfo`).
    #[arg(long, value_enum)]
    pub close: Option<Close>,
}

/// When the client closes, if not behind the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Close {
    /// In its SYN.
    Syn,
}

/// Runs it.
///
/// # Errors
/// A byte or connection was lost, or an exchange was of another mode.
pub fn run(options: &Options) -> Outcome {
    if options.close.is_some() && options.mode == Mode::Plain {
        return Err("--close syn needs --mode tfo".into());
    }
    let warm_up = options.n / 10 + 64;
    let config = config(options.n + warm_up);
    let servers = vec![SocketAddr::new(SERVER, PORT)];
    let mut pair = Pair::new(&config, &config, MTU, true);
    let begun = now();
    let mut server =
        Server::new(&mut pair.server.stack, begun, options.mode, &servers, (options.req, options.resp))?;
    let mut client = Client::new(Plan {
        mode: options.mode,
        fin_in_syn: options.close.is_some(),
        request_len: options.req,
        response_len: options.resp,
        servers,
    });
    // The first exchange alone brings the cookie.
    exchange(&mut pair, &mut client, &mut server, 1, 1)?;
    exchange(&mut pair, &mut client, &mut server, warm_up - 1, options.conc)?;
    let packets = pair.packets();
    let meter = Meter::start();
    exchange_measured(&mut pair, &mut client, &mut server, options)?;
    let spent = meter.spent();
    let packets = pair.packets() - packets;
    check(&pair, &client, &server, options)?;
    let n = options.n as f64;
    let mut line = Line::new("xchg-mem")
        .param("link", "mem")
        .param("mode", options.mode)
        .param("conc", options.conc)
        .param("cores", 1)
        .figure("cpu_us_per_xchg", spent.cpu / n * 1e6)
        .figure("xchg_per_s", n / spent.wall)
        .figure("xchg_per_cpu_s", n / spent.cpu)
        .figure("pkts_per_xchg", packets as f64 / n)
        .figure("wall_s", spent.wall)
        .info("n", options.n)
        .info("nagle", NAGLE)
        .info("time_wait", format!("cut to {TIME_WAIT:?}"))
        .info("settings", describe(&config));
    if options.close.is_some() {
        line = line.param("close", "syn");
    }
    if options.mode == Mode::Tfo {
        line = line
            .figure("tfo_share", client.tfo_share())
            .info("replay_guard", format!("on, {} entries per generation", config.replay_guard_entries));
    }
    Ok(line)
}

/// Ours, with a short TIME-WAIT, and a replay guard that remembers every SYN of the run.
fn config(exchanges: u64) -> Config {
    let ours = Config::default();
    let guard = u32::try_from(exchanges).unwrap_or(u32::MAX).max(ours.replay_guard_entries);
    ours.time_wait(TIME_WAIT).replay_guard_entries(guard)
}

fn exchange(
    pair: &mut Pair,
    client: &mut Client,
    server: &mut Server,
    count: u64,
    concurrency: usize,
) -> Result<(), Failure> {
    client.start(&mut pair.client.stack, now(), count, concurrency)?;
    while !client.is_finished() {
        pair.round(now(), client, server)?;
    }
    Ok(())
}

/// The exchanges that are measured; callgrind finds them by this name.
#[inline(never)]
fn exchange_measured(
    pair: &mut Pair,
    client: &mut Client,
    server: &mut Server,
    options: &Options,
) -> Result<(), Failure> {
    exchange(pair, client, server, options.n, options.conc)
}

/// The applications have checked the bytes; here, that nothing else happened.
fn check(pair: &Pair, client: &Client, server: &Server, options: &Options) -> Result<(), Failure> {
    if options.mode == Mode::Tfo && client.tfo_share() < 1.0 {
        return Err(format!("only {} of the exchanges were Fast Open", client.tfo_share()).into());
    }
    let warm_up = options.n / 10 + 64;
    if server.answered() != options.n + warm_up {
        return Err(format!("{} answers", server.answered()).into());
    }
    for end in [&pair.client.stack, &pair.server.stack] {
        let counters = end.counters();
        if counters.out_rsts != 0 || counters.retrans_segs != 0 {
            return Err(format!("{counters:?}").into());
        }
    }
    Ok(())
}
