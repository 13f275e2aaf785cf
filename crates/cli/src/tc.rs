//! `firstbyte tc`: the kernel's queueing disciplines in the format of tc(8).
use crate::failure::Failure;
use crate::source::KernelArgs;
use crate::terminal::print;
use clap::Args;
use doctor::show::queues;
use doctor::{Report, Window, sources};
use std::process::ExitCode;

/// Show the kernel's queueing disciplines as `tc -s qdisc show` does: bytes sent, drops and
/// backlog.
#[derive(Args, Debug)]
#[command(
    override_usage = "firstbyte tc [OPTIONS] [qdisc] [show] [[dev] DEVICE]",
    after_help = "Examples:\n  firstbyte tc\n  firstbyte tc eth0 --explain\n  firstbyte tc -s qdisc show dev eth0"
)]
pub(crate) struct TcArgs {
    /// Show only this device; tc's words `qdisc show dev DEVICE` are accepted, too.
    #[arg(value_name = "DEVICE")]
    words: Vec<String>,
    /// Show statistics, as tc -s does: always on.
    #[arg(short, long, action = clap::ArgAction::Count)]
    statistics: u8,
    /// Show details, as tc -d does: always on.
    #[arg(short, long, hide = true)]
    details: bool,
    /// Explain each kind and number below the list: its meaning, usual values, and the rules of
    /// `firstbyte doctor` that read it.
    #[arg(long, conflicts_with = "json")]
    explain: bool,
    /// Print JSON instead of lines.
    #[arg(short, long)]
    json: bool,
    #[command(flatten)]
    source: KernelArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &TcArgs) -> Result<ExitCode, Failure> {
    let device = device(&args.words)?;
    let now = args.source.read(sources::queues)?;
    let now =
        now.map_err(|error| Failure::failed(format!("cannot read the queueing disciplines: {error}")))?;
    if let Some(name) = device.filter(|name| now.device(name).is_none()) {
        let names: Vec<&str> = now.devices.iter().map(|device| device.name.as_str()).collect();
        return Err(Failure::failed(format!(
            "cannot find device `{name}`: this host has {}",
            names.join(", ")
        )));
    }
    if args.json {
        return print(&format!("{}\n", queues::json(device, &now)));
    }
    let text = queues::text(device, &now);
    if !args.explain {
        return print(&text);
    }
    let all = args.source.read(sources::here)?;
    let findings = Report::of(&Window::since_boot(&all)).findings;
    print(&format!("{text}\n{}", queues::explained(device, &now, &findings)))
}

/// Reads tc's own words, `[qdisc] [show] [[dev] DEVICE]`; tc accepts the beginnings of its
/// keywords.
fn device(words: &[String]) -> Result<Option<&str>, Failure> {
    let mut rest: Vec<&str> = words.iter().map(String::as_str).collect();
    if let Some(object @ ("class" | "filter" | "chain" | "action" | "actions" | "monitor" | "exec")) =
        rest.first().copied()
    {
        return Err(Failure::usage(format!(
            "cannot show `tc {object}`: only queueing disciplines are read; run tc(8) itself, or `firstbyte tc qdisc show`"
        )));
    }
    let named = rest.first().is_some_and(|word| "qdisc".starts_with(word));
    if named {
        rest.remove(0);
    }
    if let Some(verb @ ("add" | "del" | "delete" | "replace" | "change" | "link")) = rest.first().copied() {
        return Err(Failure::usage(format!(
            "cannot `{verb}` a queueing discipline: this command only shows them; run tc(8) itself, as root"
        )));
    }
    if let Some("show" | "list" | "ls" | "lst" | "s" | "sh" | "l") = rest.first().copied() {
        rest.remove(0);
    }
    match rest[..] {
        [] => Ok(None),
        ["dev", device] => Ok(Some(device)),
        ["dev"] => Err(Failure::usage("write a device after `dev`, e.g. `firstbyte tc qdisc show dev eth0`")),
        [device] => Ok(Some(device)),
        ["dev", _, extra, ..] | [_, extra, ..] => Err(Failure::usage(format!(
            "cannot read `{extra}`: write at most one device, e.g. `firstbyte tc -s qdisc show dev eth0`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Option<String>, Failure> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        device(&words).map(|device| device.map(str::to_owned))
    }

    #[test]
    fn the_words_of_tc_are_understood() {
        for line in ["", "qdisc", "qdisc show", "show", "q ls", "qdisc list"] {
            assert_eq!(read(line).unwrap(), None, "{line}");
        }
        for line in ["eth0", "dev eth0", "qdisc show dev eth0", "qdisc show eth0", "qdisc eth0"] {
            assert_eq!(read(line).unwrap().as_deref(), Some("eth0"), "{line}");
        }
    }

    #[test]
    fn what_it_does_not_do_is_answered_with_what_does() {
        for (line, part) in [
            ("qdisc add dev eth0 root fq", "only shows"),
            ("class show dev eth0", "only queueing disciplines"),
            ("qdisc show dev", "write a device after `dev`"),
            ("qdisc show dev eth0 root", "cannot read `root`"),
        ] {
            let failure = read(line).unwrap_err();
            assert!(failure.message().contains(part), "{line}: {failure:?}");
        }
    }
}
