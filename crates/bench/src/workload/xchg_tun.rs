//! `xchg-tun`: short exchanges with the kernel over a TUN device, as its server or its client.

use super::{NAGLE, describe};
use crate::exchange::{Client, Mode, Plan, Server};
use crate::meter::{Meter, Spent, now};
use crate::report::{Failure, Line, Outcome};
use crate::tun::{BATCH, Place, TunEnd};
use clap::{Args, ValueEnum};
use core::time::Duration;
use proto::Config;

/// Longest run.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The last connections close within this.
const AFTERMATH: Duration = Duration::from_millis(50);
/// Exchanges that warm up a client.
const WARM_UP: u64 = 64;

/// Short exchanges, the kernel at the other end.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    place: Place,
    /// Our part.
    #[arg(long, value_enum, default_value_t = Role::Server)]
    role: Role,
    /// Handshake.
    #[arg(long, value_enum, default_value_t = Mode::Plain)]
    mode: Mode,
    /// Exchanges in flight.
    #[arg(long, default_value_t = 1, value_parser = super::one_or_more)]
    conc: usize,
    /// Exchanges; as the server those from the first answer on are measured.
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..))]
    n: u64,
    /// Bytes of a request.
    #[arg(long, default_value_t = 100)]
    req: usize,
    /// Bytes of an answer.
    #[arg(long, default_value_t = 100)]
    resp: usize,
}

/// Our part in the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// We answer.
    Server,
    /// We ask.
    Client,
}

/// What was measured.
struct Measured {
    exchanges: u64,
    spent: Spent,
    packets: u64,
    tfo_share: f64,
}

/// Runs it.
///
/// # Errors
/// A byte or connection was lost, or (as client) an exchange was of another mode.
pub fn run(options: &Options) -> Outcome {
    let config = config(options.n);
    let mut end = TunEnd::open(&options.place, false, &config)?;
    let measured = match options.role {
        Role::Server => serve(&mut end, options)?,
        Role::Client => ask(&mut end, options)?,
    };
    let begun = now();
    while now().since(begun) < AFTERMATH {
        end.step(&mut ())?;
    }
    let Measured { exchanges, spent, packets, tfo_share } = measured;
    let n = exchanges as f64;
    let line = Line::new("xchg-tun")
        .param("link", "tun")
        .param("role", if options.role == Role::Server { "server" } else { "client" })
        .param("mode", options.mode)
        .param("conc", options.conc)
        .param("cores", 1)
        .figure("n", n)
        .figure("cpu_us_per_xchg", spent.cpu / n * 1e6)
        .figure("user_us_per_xchg", spent.user / n * 1e6)
        .figure("sys_us_per_xchg", spent.system / n * 1e6)
        .figure("xchg_per_s", n / spent.wall)
        .figure("pkts_per_xchg", packets as f64 / n)
        .figure("wall_s", spent.wall)
        .info("batch", BATCH)
        .info("nagle", NAGLE)
        .info("time_wait", format!("{:?}", config.time_wait))
        .info("settings", describe(&config));
    Ok(if options.mode == Mode::Tfo { line.figure("tfo_share", tfo_share) } else { line })
}

/// Ours, with a replay guard that remembers every SYN of the run.
fn config(exchanges: u64) -> Config {
    let ours = Config::default();
    let guard = u32::try_from(exchanges).unwrap_or(u32::MAX).max(ours.replay_guard_entries);
    ours.replay_guard_entries(guard)
}

/// From the first answer to the last.
fn serve(end: &mut TunEnd, options: &Options) -> Result<Measured, Failure> {
    let begun = now();
    let addresses = Place::ports(options.place.ip);
    let mut server =
        Server::new(&mut end.stack, begun, options.mode, &addresses, (options.req, options.resp))?;
    while server.answered() == 0 {
        end.step(&mut server)?;
        give_up_after(begun)?;
    }
    let packets = end.packets();
    let (answered, early) = (server.answered(), server.early());
    let meter = Meter::start();
    while server.answered() < options.n {
        end.step(&mut server)?;
        give_up_after(begun)?;
    }
    let spent = meter.spent();
    let packets = end.packets() - packets;
    let answered = server.answered() - answered;
    let tfo_share = (server.early() - early) as f64 / answered.max(1) as f64;
    let begun = now();
    while now().since(begun) < AFTERMATH {
        end.step(&mut server)?;
    }
    Ok(Measured { exchanges: answered, spent, packets, tfo_share })
}

fn ask(end: &mut TunEnd, options: &Options) -> Result<Measured, Failure> {
    let mut client = Client::new(Plan {
        mode: options.mode,
        fin_in_syn: false,
        request_len: options.req,
        response_len: options.resp,
        servers: Place::ports(options.place.peer),
    });
    let mut exchange = |end: &mut TunEnd, count, concurrency| -> Result<f64, Failure> {
        let begun = now();
        client.start(&mut end.stack, begun, count, concurrency)?;
        while !client.is_finished() {
            end.step(&mut client)?;
            give_up_after(begun)?;
        }
        Ok(client.tfo_share())
    };
    exchange(end, 1, 1)?;
    exchange(end, WARM_UP - 1, options.conc)?;
    let packets = end.packets();
    let meter = Meter::start();
    let tfo_share = exchange(end, options.n, options.conc)?;
    let spent = meter.spent();
    if options.mode == Mode::Tfo && tfo_share < 1.0 {
        return Err(format!("only {tfo_share} of the exchanges were Fast Open").into());
    }
    Ok(Measured { exchanges: options.n, spent, packets: end.packets() - packets, tfo_share })
}

fn give_up_after(begun: proto::Instant) -> Result<(), Failure> {
    if now().since(begun) > TIMEOUT { Err(format!("not done after {TIMEOUT:?}").into()) } else { Ok(()) }
}
