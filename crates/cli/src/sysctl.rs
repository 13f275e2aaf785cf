//! `firstbyte sysctl`: the kernel's settings in the words of sysctl(8).
use crate::failure::Failure;
use crate::terminal::print;
use crate::whom::KernelArgs;
use clap::Args;
use doctor::show::settings;
use doctor::{Report, Window, sources};
use std::process::ExitCode;

/// Show the kernel's settings of TCP as sysctl(8) does, and say what each does and does not do. Nothing is changed.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  firstbyte sysctl net.ipv4.tcp_rmem\n  firstbyte sysctl tcp_fastopen\n  firstbyte sysctl --explain somaxconn tcp_tw_reuse\n\n\
                  A name may be whole, a part from its beginning (net.ipv4.tcp) or its last word (tcp_rmem).\n\
                  Of tcp_fastopen_key it is only said whether it is set."
)]
pub(crate) struct SysctlArgs {
    /// Which; without, all in net.core and net.ipv4.
    #[arg(value_name = "NAME", required_if_eq("explain", "true"))]
    names: Vec<String>,
    /// What each does in this kernel, its default, what it does not do, what else takes part, and which rules look at it.
    #[arg(long, conflicts_with = "json")]
    explain: bool,
    /// JSON instead of lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    whom: KernelArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &SysctlArgs) -> Result<ExitCode, Failure> {
    let unknown = |name: String| {
        Failure::failed(format!(
            "{name}: there is no such setting in net.core or net.ipv4 of this kernel and namespace"
        ))
    };
    if args.explain {
        let now = args.whom.read(sources::here)?;
        let findings = Report::of(&Window::since_boot(&now)).findings;
        return print(&settings::explained(&args.names, &now, &findings).map_err(unknown)?);
    }
    let now = args.whom.read(sources::procfs)?;
    if args.json {
        return print(&format!("{}\n", settings::json(&args.names, &now).map_err(unknown)?));
    }
    print(&settings::text(&args.names, &now).map_err(unknown)?)
}
