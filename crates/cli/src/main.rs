//! The `firstbyte` command: one module per verb.
//!
//! - [`lab`]: scenarios in virtual time;
//! - [`serve`]: an HTTP and echo server;
//! - [`get`]: one HTTP request, or a series, timed and explained;
//! - [`metrics`]: cached paths of these two and of the kernel;
//! - [`bdp`]: windows and buffers for a path;
//! - [`pcap`]: Fast Open and limits of the connections in a capture;
//! - [`doctor`]: findings about this host's TCP, and fixes;
//! - [`explain`]: whether Fast Open works to a server, and what breaks it;
//! - [`watch`]: connections, counters and findings on a terminal, live;
//! - [`key`] and [`fleet`]: cookie keys in files and on servers;
//! - [`script`](mod@script): packetdrill scripts in virtual time;
//! - [`link`]: a path of the lab between two network namespaces, in real time;
//! - [`ss`] and [`route`]: sockets and routes of the kernel or of a running stack;
//! - [`nstat`], [`sysctl`] and [`tc`]: the kernel's counters, settings and queues;
//! - [`completions`] and [`man`]: shell completions and manual pages.
//!
//! Shared by the verbs: [`backend`] (the kernel's sockets or our stack), [`stack`] (arguments to a
//! running stack on a TUN device), [`recorder`] (recorded packets), [`control`] (the control socket
//! of a running stack), [`source`] (the kernel or a running stack), [`values`] (values of
//! arguments), [`backlog`] (work for a thread that may block), [`input`] (reads whole files),
//! [`output`] (replaces whole files), [`secret`] (files with keys and passwords), [`terminal`]
//! (width and colour), [`failure`] (messages and exit codes). TCP and Fast Open are decided in the
//! library, not here.
#![forbid(unsafe_code)]
#[cfg(any(test, not(all(feature = "fleet", feature = "parquet", feature = "watch"))))]
mod absent;
mod backend;
mod backlog;
mod bdp;
mod color;
mod completions;
mod control;
mod doctor;
mod escape;
mod explain;
mod failure;
mod fleet;
mod get;
mod input;
mod key;
mod lab;
mod link;
mod man;
mod metrics;
mod nic;
mod nstat;
mod output;
mod pcap;
mod recorder;
mod route;
mod script;
mod secret;
mod serve;
mod signals;
mod source;
mod ss;
mod stack;
mod sysctl;
mod tc;
mod terminal;
mod values;
#[cfg(feature = "watch")]
mod watch;

#[cfg(not(feature = "watch"))]
use absent::watch;
use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;
use std::io::Write;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// TCP Fast Open on the command line: get the first byte of a reply in one round trip
#[derive(Parser, Debug)]
#[command(
    name = "firstbyte",
    version,
    disable_help_subcommand = true,
    after_help = "Start with (none needs root):\n  \
        firstbyte lab fast-open --rtt 170ms --count 10      a comparison in virtual time\n  \
        firstbyte explain example.org                       does Fast Open work there?\n  \
        firstbyte serve --backend kernel --root . --listing\n  \
        firstbyte get http://127.0.0.1:8080/\n\n\
        On Firstbyte's own stack, as root:\n  \
        firstbyte serve                                     then: curl --tcp-fastopen \
        http://10.77.0.2/\n  \
        firstbyte get http://10.78.0.1/ -c 5 --explain\n\n\
        Exit codes: 0 done, 1 the job failed, 2 wrong arguments (doctor's say more: firstbyte \
        doctor --help)."
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    Lab(lab::LabArgs),
    Link(link::LinkArgs),
    Serve(Box<serve::ServeArgs>),
    Get(Box<get::GetArgs>),
    Metrics(metrics::MetricsArgs),
    Bdp(bdp::BdpArgs),
    Pcap(pcap::PcapArgs),
    Script(script::ScriptArgs),
    Doctor(doctor::DoctorArgs),
    Explain(explain::ExplainArgs),
    Watch(watch::WatchArgs),
    Key(key::KeyArgs),
    Fleet(fleet::FleetArgs),
    Ss(ss::SsArgs),
    Nstat(nstat::NstatArgs),
    Sysctl(sysctl::SysctlArgs),
    Tc(tc::TcArgs),
    Nic(nic::NicArgs),
    Route(route::RouteArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

fn main() -> ExitCode {
    let verb = match Cli::try_parse() {
        Ok(cli) => cli.verb,
        Err(error) => {
            let printed = error.print().and_then(|()| std::io::stdout().flush());
            let wrong = error.use_stderr();
            if let Err(why) = printed
                && !wrong
            {
                return Failure::failed(format!("cannot write to standard output: {why}")).report();
            }
            return ExitCode::from(match std::env::args_os().nth(1) {
                // The doctor's exit code 2 is a verdict.
                Some(verb) if wrong && verb == "doctor" => doctor::NOT_DONE,
                _ if wrong => 2,
                _ => 0,
            });
        }
    };
    let done = match verb {
        Verb::Lab(args) => lab::run(args),
        Verb::Link(args) => link::run(&args),
        Verb::Serve(args) => serve::run(*args),
        Verb::Get(args) => get::run(*args),
        Verb::Metrics(args) => metrics::run(args),
        Verb::Bdp(args) => bdp::run(&args),
        Verb::Pcap(args) => pcap::run(&args),
        Verb::Script(args) => script::run(&args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::Explain(args) => explain::run(&args),
        Verb::Watch(args) => watch::run(&args),
        Verb::Key(args) => key::run(&args),
        Verb::Fleet(args) => fleet::run(&args),
        Verb::Ss(args) => ss::run(&args),
        Verb::Nstat(args) => nstat::run(&args),
        Verb::Sysctl(args) => sysctl::run(&args),
        Verb::Tc(args) => tc::run(&args),
        Verb::Nic(args) => nic::run(&args),
        Verb::Route(args) => route::run(&args),
        Verb::Completions(args) => completions::run(&args, Cli::command()),
        Verb::Man(args) => man::run(&args, Cli::command()),
    };
    done.unwrap_or_else(|failure| failure.report())
}
