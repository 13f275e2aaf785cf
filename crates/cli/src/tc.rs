//! `firstbyte tc`: the kernel's queueing disciplines in the words of tc(8).
use crate::failure::Failure;
use crate::terminal::print;
use crate::whom::KernelArgs;
use clap::Args;
use doctor::show::queues;
use doctor::{Report, Window, sources};
use std::process::ExitCode;

/// Show the kernel's queueing disciplines as `tc -s qdisc show` does: what they sent, dropped and hold back.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  firstbyte tc\n  firstbyte tc eth0 --explain")]
pub(crate) struct TcArgs {
    /// Only of this device.
    #[arg(value_name = "DEVICE")]
    device: Option<String>,
    /// Below the list, what each kind and figure is, what is usual, and which rules of `firstbyte doctor` look at it.
    #[arg(long, conflicts_with = "json")]
    explain: bool,
    /// JSON instead of lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    whom: KernelArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &TcArgs) -> Result<ExitCode, Failure> {
    let now = args.whom.read(sources::queues)?;
    let now =
        now.map_err(|error| Failure::failed(format!("queueing disciplines could not be read: {error}")))?;
    let device = args.device.as_deref();
    if let Some(name) = device.filter(|name| now.device(name).is_none()) {
        let names: Vec<&str> = now.devices.iter().map(|device| device.name.as_str()).collect();
        return Err(Failure::failed(format!("there is no device {name}, only {}", names.join(", "))));
    }
    if args.json {
        return print(&format!("{}\n", queues::json(device, &now)));
    }
    let text = queues::text(device, &now);
    if !args.explain {
        return print(&text);
    }
    let all = args.whom.read(sources::here)?;
    let findings = Report::of(&Window::since_boot(&all)).findings;
    print(&format!("{text}\n{}", queues::explained(device, &now, &findings)))
}
