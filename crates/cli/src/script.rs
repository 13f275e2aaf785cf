//! `firstbyte script`: runs packetdrill's scripts in virtual time.
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

/// Run scripts in packetdrill's language on the stack with Linux's profile: virtual time, no root, no network.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  firstbyte script crates/script/scripts/fast-open/*.pkt\n\n\
                  A script that fails is shown with the packet it expects beside the one it saw.")]
pub(crate) struct ScriptArgs {
    /// Scripts.
    #[arg(required = true)]
    file: Vec<PathBuf>,
    /// Let a name in scripts mean a value; may be given several times.
    #[arg(short = 'D', long, value_name = "NAME=VALUE", value_parser = definition)]
    define: Vec<(String, String)>,
    /// Addresses and sockets: ipv4, ipv6 or ipv4-mapped-ipv6. What scripts say of themselves comes before this and what follows.
    #[arg(long, alias = "ip_version", value_name = "VERSION")]
    ip_version: Option<String>,
    /// The stack's address.
    #[arg(long, alias = "local_ip", value_name = "ADDRESS")]
    local_ip: Option<String>,
    /// The other end's.
    #[arg(long, alias = "remote_ip", value_name = "ADDRESS")]
    remote_ip: Option<String>,
    /// Largest IP packet, bytes.
    #[arg(long, value_name = "BYTES")]
    mtu: Option<String>,
    /// How far events may be off, microseconds.
    #[arg(long, alias = "tolerance_usecs", value_name = "MICROSECONDS")]
    tolerance_usecs: Option<String>,
    /// Seed of the stack's random numbers: ports, initial sequence numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only read the scripts, and say what cannot be understood.
    #[arg(long)]
    check: bool,
    /// Write every packet of the script to FILE (pcapng), with the script's times; only one script then.
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    pcap: Option<PathBuf>,
    /// Say nothing of scripts that hold.
    #[arg(short, long)]
    quiet: bool,
}

fn definition(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it is NAME=VALUE")?;
    if name.is_empty() || value.is_empty() {
        return Err("neither NAME nor VALUE may be empty".into());
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Runs the verb: exit code 1 if a script does not hold.
pub(crate) fn run(args: &ScriptArgs) -> Result<ExitCode, Failure> {
    let setup = setup(args).map_err(Failure::usage)?;
    if args.pcap.is_some() && args.file.len() > 1 {
        return Err(Failure::usage("--pcap is the capture of one script: run them one by one"));
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

/// Where scripts run, before they say anything of it.
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

/// The outer error is ours, the inner the script's.
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
