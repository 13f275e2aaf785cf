//! `firstbyte nic`: the kernel's network devices, as `ip link`, `ethtool` and /proc show them.
use crate::failure::Failure;
use crate::source::KernelArgs;
use crate::terminal::print;
use clap::Args;
use doctor::show::nics;
use doctor::sources;
use std::process::ExitCode;

/// Show network devices: rings, queues, offloads, drops, and the path from them to TCP
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    firstbyte nic\n  \
    firstbyte nic eth0 --json\n\n\
    The path from a device to TCP has queueing disciplines, the backlogs of the CPUs (softnet), \
    bonds and connection tracking.")]
pub(crate) struct NicArgs {
    /// Show only this device
    #[arg(value_name = "DEVICE")]
    device: Option<String>,
    /// Print JSON instead of lines
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: KernelArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &NicArgs) -> Result<ExitCode, Failure> {
    let now = args.source.read(sources::nics)?;
    let now = now
        .map_err(|error| Failure::failed(format!("cannot read network devices from the kernel: {error}")))?;
    let device = args.device.as_deref();
    if let Some(name) = device.filter(|name| now.device(name).is_none()) {
        let names: Vec<&str> = now.devices.iter().map(|device| device.name.as_str()).collect();
        let message =
            format!("cannot show device `{name}`: it does not exist; the devices are {}", names.join(", "));
        return Err(Failure::failed(message));
    }
    match args.json {
        true => print(&format!("{}\n", nics::json(device, &now))),
        false => print(&nics::text(device, &now)),
    }
}
