//! `firstbyte nic`: the kernel's network devices, healthy or not: what `ip link`, `ethtool` and /proc show of them.
use crate::failure::Failure;
use crate::terminal::print;
use crate::whom::KernelArgs;
use clap::Args;
use doctor::show::nics;
use doctor::sources;
use std::process::ExitCode;

/// Show network devices with their rings, queues, offloads and drops, and what lies between them and TCP: queueing disciplines, the CPUs'
/// backlogs (softnet), bonds, connection tracking.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  firstbyte nic\n  firstbyte nic eth0 --json")]
pub(crate) struct NicArgs {
    /// Only this device.
    #[arg(value_name = "DEVICE")]
    device: Option<String>,
    /// JSON instead of lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    whom: KernelArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &NicArgs) -> Result<ExitCode, Failure> {
    let now = args.whom.read(sources::nics)?;
    let now = now
        .map_err(|error| Failure::failed(format!("cannot read network devices from the kernel: {error}")))?;
    let device = args.device.as_deref();
    if let Some(name) = device.filter(|name| now.device(name).is_none()) {
        let names: Vec<&str> = now.devices.iter().map(|device| device.name.as_str()).collect();
        let message =
            format!("cannot show device `{name}`: there is none of that name, only {}", names.join(", "));
        return Err(Failure::failed(message));
    }
    match args.json {
        true => print(&format!("{}\n", nics::json(device, &now))),
        false => print(&nics::text(device, &now)),
    }
}
