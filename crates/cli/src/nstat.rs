//! `firstbyte nstat`: counters of the kernel or of a Firstbyte stack, in the format of nstat(8).
use crate::control::ask;
use crate::failure::{Failure, warn};
use crate::source::SourceArgs;
use crate::terminal::print;
use crate::values;
use clap::Args;
use control::Request;
use doctor::show::counters::{self, View};
use doctor::{Report, Sample, Source, Window, sources};
use std::process::ExitCode;
use std::time::Duration;

/// Show counters of IP and TCP as nstat(8) does: since boot, or the increments within a time.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  firstbyte nstat -az\n  firstbyte nstat 'TcpExtTCPFastOpen*'\n  \
                  firstbyte nstat --interval 5s retrans timeouts --explain\n  firstbyte nstat -z listen --json\n  \
                  firstbyte nstat --stack --interval 1s\n\n\
                  Columns: name, increment, increment per second.")]
pub(crate) struct NstatArgs {
    /// Show only matching names: a part of the name in any case, or a shell pattern such as
    /// 'TcpExtTCPFastOpen*'.
    #[arg(value_name = "PATTERN")]
    patterns: Vec<String>,
    /// Read twice, this far apart (e.g. 5s), and show the increments.
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    interval: Option<Duration>,
    /// Show counters that are zero or did not change, too.
    #[arg(short, long)]
    zeros: bool,
    /// Show values since boot, as nstat -a does: the default without --interval.
    #[arg(short, long = "ignore", conflicts_with = "interval")]
    absolute: bool,
    /// Leave nstat's history file alone: always the case, as none is kept.
    #[arg(short = 's', long = "noupdate", hide = true)]
    noupdate: bool,
    /// Explain each counter below the list: its meaning, usual values, and the rules of `firstbyte
    /// doctor` that read it.
    #[arg(long, conflicts_with = "json")]
    explain: bool,
    /// Print JSON instead of columns.
    #[arg(short, long)]
    json: bool,
    #[command(flatten)]
    source: SourceArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &NstatArgs) -> Result<ExitCode, Failure> {
    let view = View { patterns: args.patterns.clone(), zeros: args.zeros };
    // The rules of an explanation need the whole sample.
    let read = if args.explain { sources::here } else { sources::procfs };
    let mut before = None;
    if let Some(interval) = args.interval {
        before = Some(sample(args, read)?);
        std::thread::sleep(interval);
    }
    let now = sample(args, read)?;
    let window =
        before.as_ref().map_or_else(|| Window::since_boot(&now), |before| Window::between(before, &now));
    if args.json {
        return print(&format!("{}\n", counters::json(&view, &window)));
    }
    let text = counters::text(&view, &window);
    if text.is_empty() && !args.patterns.is_empty() {
        let named =
            args.patterns.iter().map(|pattern| format!("`{pattern}`")).collect::<Vec<_>>().join(" or ");
        warn(match args.zeros {
            true => format!("no counter matches {named}"),
            false => format!("every counter that matches {named} is zero, or none does; `-z` shows zeros"),
        });
    }
    if !args.explain {
        return print(&text);
    }
    // The rules judge a host's kernel, not a Firstbyte stack.
    let findings = if args.source.stack().is_some() { Vec::new() } else { Report::of(&window).findings };
    print(&format!("{text}\n{}", counters::explained(&view, &window, &findings)))
}

fn sample(args: &NstatArgs, read: fn() -> Sample) -> Result<Sample, Failure> {
    if let Some(control) = args.source.stack() {
        return of_stack(&ask(control, &Request::Counters)?);
    }
    let sample = args.source.read(read)?;
    match sample.unread.iter().find(|unread| unread.source == Source::Counters) {
        Some(unread) => Err(Failure::failed(format!("cannot read the counters: {}", unread.reason))),
        None => Ok(sample),
    }
}

/// Parses the control socket's answer: `seconds N`, then one counter per line.
pub(crate) fn of_stack(text: &str) -> Result<Sample, Failure> {
    let mut sample = Sample::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(' ') else { continue };
        let wrong = || {
            Failure::failed(format!("cannot read the stack's counters: `{line}` is not a name and a number"))
        };
        match name {
            "seconds" => sample.uptime = value.parse().map_err(|_| wrong())?,
            _ => drop(sample.counters.insert(name.to_owned(), value.parse().map_err(|_| wrong())?)),
        }
    }
    Ok(sample)
}
