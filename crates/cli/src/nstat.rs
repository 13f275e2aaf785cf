//! `firstbyte nstat`: counters in the words of nstat(8), of the kernel or of a stack of ours.
use crate::control::ask;
use crate::failure::{Failure, warn};
use crate::terminal::print;
use crate::values;
use crate::whom::WhomArgs;
use clap::Args;
use control::Request;
use doctor::show::counters::{self, View};
use doctor::{Report, Sample, Source, Window, sources};
use std::process::ExitCode;
use std::time::Duration;

/// Show counters of IP and TCP as nstat(8) does: since boot, or what is added within a time.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  firstbyte nstat\n  firstbyte nstat --interval 5s retrans timeouts --explain\n  firstbyte nstat -z listen --json\n  firstbyte nstat --stack --interval 1s\n\n\
                  The columns: the name, what was added, and that a second."
)]
pub(crate) struct NstatArgs {
    /// Only names that contain one of these, in any case.
    #[arg(value_name = "PATTERN")]
    patterns: Vec<String>,
    /// Look twice, so long apart, and show what is added between.
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    interval: Option<Duration>,
    /// Those too that have not moved.
    #[arg(short, long)]
    zeros: bool,
    /// Below the list, what each counter is, what is usual, and which rules of `firstbyte doctor` look at it.
    #[arg(long, conflicts_with = "json")]
    explain: bool,
    /// JSON instead of columns.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    whom: WhomArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &NstatArgs) -> Result<ExitCode, Failure> {
    let view = View { patterns: args.patterns.clone(), zeros: args.zeros };
    // An explanation says which rules fire, for which everything is read.
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
        let named = args.patterns.join(" or ");
        warn(match args.zeros {
            true => format!("no counter has {named} in its name"),
            false => format!("no counter with {named} in its name has moved; -z shows the others, too"),
        });
    }
    if !args.explain {
        return print(&text);
    }
    // The rules are about a host; of a stack of ours, the words alone.
    let findings = if args.whom.stack().is_some() { Vec::new() } else { Report::of(&window).findings };
    print(&format!("{text}\n{}", counters::explained(&view, &window, &findings)))
}

fn sample(args: &NstatArgs, read: fn() -> Sample) -> Result<Sample, Failure> {
    if let Some(control) = args.whom.stack() {
        return of_stack(&ask(control, &Request::Counters)?);
    }
    let sample = args.whom.read(read)?;
    match sample.unread.iter().find(|unread| unread.source == Source::Counters) {
        Some(unread) => Err(Failure::failed(format!("counters could not be read: {}", unread.reason))),
        None => Ok(sample),
    }
}

/// `seconds N`, then a counter a line.
pub(crate) fn of_stack(text: &str) -> Result<Sample, Failure> {
    let mut sample = Sample::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(' ') else { continue };
        let wrong = || Failure::failed(format!("the stack says `{line}`, which is no counter"));
        match name {
            "seconds" => sample.uptime = value.parse().map_err(|_| wrong())?,
            _ => drop(sample.counters.insert(name.to_owned(), value.parse().map_err(|_| wrong())?)),
        }
    }
    Ok(sample)
}
