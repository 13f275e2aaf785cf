//! `firstbyte sysctl`: settings as sysctl(8) shows them, of the kernel or of a running stack, where
//! they can be changed.
use crate::control::{ControlArgs, ask};
use crate::failure::{Failure, warn};
use crate::serve::key;
use crate::source::SourceArgs;
use crate::terminal::print;
use crate::values;
use clap::Args;
use control::Request;
use doctor::show::settings;
use doctor::{Report, Sample, Window, sources};
use std::path::PathBuf;
use std::process::ExitCode;

/// Show TCP settings like sysctl(8), explain them, and change those of a running stack
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    firstbyte sysctl net.ipv4.tcp_rmem\n  \
    firstbyte sysctl tcp_fastopen\n  \
    firstbyte sysctl --explain somaxconn tcp_tw_reuse\n  \
    firstbyte sysctl --stack -w net.ipv4.tcp_fin_timeout=30\n  \
    firstbyte sysctl --stack --key-file keys\n\n\
    A name may be complete, a prefix (net.ipv4.tcp) or its last word (tcp_rmem).\n\
    The kernel's settings are never changed. The value of tcp_fastopen_key is never shown, only \
    whether it is set.")]
pub(crate) struct SysctlArgs {
    /// Names of settings [default: all in net.core and net.ipv4]
    #[arg(value_name = "NAME", required_if_eq("explain", "true"))]
    names: Vec<String>,
    /// Change a setting of a running stack (--stack or --control); repeatable
    #[arg(short = 'w', long = "write", value_name = "NAME=VALUE", value_parser = values::setting, conflicts_with_all = ["names", "explain", "json"])]
    write: Vec<(String, String)>,
    /// Set the cookie key of a running stack from this file (`-`: standard input), and its backup
    /// if there is one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "explain", "json"])]
    key_file: Option<PathBuf>,
    /// Explain each setting in this kernel: its effect and limits, its default, related settings,
    /// and the rules that use it
    #[arg(long, conflicts_with = "json")]
    explain: bool,
    /// Print JSON instead of lines
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: SourceArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &SysctlArgs) -> Result<ExitCode, Failure> {
    if let Some((name, _)) = args.write.iter().find(|(name, _)| key::is_setting(name)) {
        return Err(key::given_openly(&format!("-w {name}")));
    }
    if let Some(control) = args.source.stack() {
        return of_stack(args, control);
    }
    if let Some(file) = &args.key_file {
        return Err(Failure::usage(format!(
            "the kernel's key cannot be changed here; as root, run: cat {} > \
            /proc/sys/net/ipv4/tcp_fastopen_key; for a running stack add --stack",
            file.display()
        )));
    }
    if let Some((name, value)) = args.write.first() {
        return Err(Failure::usage(format!(
            "the kernel's settings cannot be changed here; as root, run: sysctl -w \
            {name}=\"{value}\"; for a running stack add --stack"
        )));
    }
    if args.explain {
        let now = args.source.read(sources::here)?;
        let findings = Report::of(&Window::since_boot(&now)).findings;
        return print(&settings::explained(&args.names, &now, &findings).map_err(unknown(&now))?);
    }
    let now = args.source.read(sources::procfs)?;
    if args.json {
        return print(&format!("{}\n", settings::json(&args.names, &now).map_err(unknown(&now))?));
    }
    print(&settings::text(&args.names, &now).map_err(unknown(&now))?)
}

fn unknown(now: &Sample) -> impl Fn(String) -> Failure {
    |name| {
        if settings::is_unreadable(&name, now) {
            return Failure::failed(format!("cannot read {name}: this needs root"));
        }
        let known: Vec<&str> = now.settings.keys().map(String::as_str).collect();
        let meant = values::meant_setting(&name, &known);
        Failure::failed(format!("there is no setting {name}; {meant}leave out the name to list all"))
    }
}

fn of_stack(args: &SysctlArgs, control: &ControlArgs) -> Result<ExitCode, Failure> {
    if let Some(file) = &args.key_file {
        let keys = key::read_or_stdin(file)?;
        ask(control, &Request::Set { name: key::SETTING.to_owned(), value: keys.to_string() })?;
        print(&format!("{} is set\n", key::SETTING))?;
    }
    for (name, value) in &args.write {
        let name = whole(name, control)?;
        let warning = ask(control, &Request::Set { name: name.clone(), value: value.clone() })?;
        if !warning.is_empty() {
            warn(warning.trim_end());
        }
        print(&format!("{name} = {value}\n"))?;
    }
    if !args.write.is_empty() || args.key_file.is_some() {
        return Ok(ExitCode::SUCCESS);
    }
    let settings = pairs(&ask(control, &Request::Settings)?).collect();
    let now = Sample { settings, ..Sample::default() };
    print(&match () {
        () if args.explain => settings::explained(&args.names, &now, &[]).map_err(unknown(&now))?,
        () if args.json => format!("{}\n", settings::json(&args.names, &now).map_err(unknown(&now))?),
        () => settings::text(&args.names, &now).map_err(unknown(&now))?,
    })
}

fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = text.lines().filter_map(|line| line.split_once(" = "));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned()))
}

/// Completes the last word of a setting, for changes as for queries.
fn whole(name: &str, control: &ControlArgs) -> Result<String, Failure> {
    let dotted = name.replace('/', ".");
    if dotted.contains('.') {
        return Ok(dotted);
    }
    let text = ask(control, &Request::Settings)?;
    let mut alike =
        pairs(&text).map(|(known, _)| known).filter(|known| known.rsplit('.').next() == Some(name));
    // If two match, the stack reports the error.
    Ok(alike.next().filter(|_| alike.next().is_none()).unwrap_or(dotted))
}
