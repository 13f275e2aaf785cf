//! `firstbyte script`: runs packetdrill scripts in virtual time.
use crate::failure::Failure;
use crate::input;
use crate::output::write_with;
use crate::terminal::print;
use ::script::{Passed, Script, Setup, ast};
use clap::Args;
use firstbyte::device::tap::{Captured, Direction, PcapngWriter};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Run packetdrill scripts on the stack with Linux's profile, in virtual time
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    firstbyte script crates/script/scripts/fast-open/*.pkt\n\n\
    Needs no root and no network. A failed script is shown with the expected packet beside the \
    actual one.")]
pub(crate) struct ScriptArgs {
    /// Script files
    #[arg(required = true)]
    file: Vec<PathBuf>,
    /// Replace NAME in scripts by VALUE; repeatable
    #[arg(short = 'D', long, value_name = "NAME=VALUE", value_parser = definition)]
    define: Vec<(String, String)>,
    /// Use these addresses and sockets: ipv4, ipv6 or ipv4-mapped-ipv6; options inside a script
    /// override this one and the following
    #[arg(long, alias = "ip_version", value_name = "VERSION")]
    ip_version: Option<String>,
    /// Use this address for the stack
    #[arg(long, alias = "local_ip", value_name = "ADDRESS")]
    local_ip: Option<String>,
    /// Use this address for the other end
    #[arg(long, alias = "remote_ip", value_name = "ADDRESS")]
    remote_ip: Option<String>,
    /// Set the MTU, bytes
    #[arg(long, value_name = "BYTES")]
    mtu: Option<String>,
    /// Accept events that are off by at most this time, microseconds
    #[arg(long, alias = "tolerance_usecs", value_name = "MICROSECONDS")]
    tolerance_usecs: Option<String>,
    /// Seed for the stack's random numbers: ports, initial sequence numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only parse the scripts, and report errors
    #[arg(long)]
    check: bool,
    /// Write every packet of the script to FILE (pcapng), with the script's times; for a single
    /// script
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    pcap: Option<PathBuf>,
    /// Print nothing about scripts that pass
    #[arg(short, long)]
    quiet: bool,
}

fn definition(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    if name.is_empty() || value.is_empty() {
        return Err("expected NAME=VALUE, both not empty".into());
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Runs the verb. The exit code is 1 if a script fails.
pub(crate) fn run(args: &ScriptArgs) -> Result<ExitCode, Failure> {
    let setup = setup(args).map_err(Failure::usage)?;
    if args.pcap.is_some() && args.file.len() > 1 {
        return Err(Failure::usage("--pcap captures one script; run the scripts one by one"));
    }
    let mut failed = 0;
    for file in &args.file {
        let source = input::text(file, input::WRITTEN_MAX)?;
        let name = file.display();
        match outcome(args, &setup, file, &source)? {
            Ok(()) if args.quiet => {}
            Ok(()) => {
                print(&format!("ok    {name}\n"))?;
            }
            Err(message) => {
                failed += 1;
                print(&format!("FAIL  {name}:{message}\n"))?;
            }
        }
    }
    let count = args.file.len();
    match failed {
        0 => Ok(ExitCode::SUCCESS),
        failed => Err(Failure::failed(format!("{failed} of {count} scripts failed"))),
    }
}

/// Returns the setup of scripts, which they may override.
fn setup(args: &ScriptArgs) -> Result<Setup, String> {
    let mut setup = Setup { seed: args.seed, ..Setup::default() };
    for (name, value) in [
        ("ip_version", &args.ip_version),
        ("local_ip", &args.local_ip),
        ("remote_ip", &args.remote_ip),
        ("mtu", &args.mtu),
        ("tolerance_usecs", &args.tolerance_usecs),
    ] {
        if let Some(value) = value {
            setup.set(name, Some(value))?;
        }
    }
    Ok(setup)
}

/// Runs a script. The outer error is ours, the inner one the script's.
fn outcome(
    args: &ScriptArgs,
    setup: &Setup,
    file: &Path,
    source: &str,
) -> Result<Result<(), String>, Failure> {
    let script = match Script::parse_with(source, &args.define) {
        Ok(script) => script,
        Err(problem) => return Ok(Err(problem.to_string())),
    };
    let folder = file.parent().unwrap_or(Path::new("")).to_owned();
    let setup = Setup { folder, ..setup.clone() };
    let outcome = match &args.pcap {
        _ if args.check => ::script::check(&script, setup),
        None => ::script::run(&script, setup),
        Some(pcap) => {
            let (outcome, passed) = ::script::run_captured(&script, setup);
            write_with(pcap, |out| capture(out, &passed))?;
            outcome
        }
    };
    Ok(outcome.map_err(|failure| failure.in_source(source).to_string()))
}

fn capture(out: impl Write, passed: &[Passed]) -> std::io::Result<()> {
    let mut writer = PcapngWriter::new(out)?;
    let interface = writer.add_interface("tun0", "the script's device, seen from the stack")?;
    for Passed { at, direction, packet } in passed {
        let direction = match direction {
            ast::Direction::In => Direction::Inbound,
            ast::Direction::Out => Direction::Outbound,
        };
        writer.write_packet(&Captured {
            interface,
            at: u64::try_from(*at).unwrap_or(0) * 1000,
            direction: Some(direction),
            data: packet,
            comments: &[],
        })?;
    }
    writer.flush()
}
