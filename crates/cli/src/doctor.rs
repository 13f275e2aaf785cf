//! `firstbyte doctor`: what this host's own TCP does, why, and the command that mends it.
//!
//! - `doctor/reading.rs`: where samples come from;
//! - `doctor/watch.rs`: window after window, on a terminal, as lines or as JSON;
//! - `doctor/endpoint.rs`: metrics over HTTP.
mod endpoint;
mod reading;
mod watch;

use crate::control::ControlArgs;
use crate::failure::Failure;
use crate::input;
use crate::output::write_whole;
use crate::terminal::print;
use crate::values;
use crate::whom::StackOnly;
use clap::{Args, Subcommand};
use doctor::{Mask, Policy, RULES, Record, Report, Rule, Window};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Read the kernel's TCP of this host and say what is wrong, by which numbers, and what mends it. Nothing is changed.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example:\n  firstbyte doctor\n  firstbyte doctor --interval 1s --json\n  firstbyte doctor --record host.json --mask    then elsewhere: firstbyte doctor host.json\n  firstbyte doctor --watch --interval 10s\n  firstbyte doctor --stack                        a running firstbyte serve\n  firstbyte doctor explain ACC-01\n\n\
                  An ordinary user sees almost everything; what only root could read is named, and the rules that need it are \
                  listed as not judged. Thresholds can be set, and rules silenced, in a file (--policy): a table for each rule, with \
                  names of `firstbyte doctor explain` and silent = \"the reason\".\n\n\
                  Exit codes: 0 nothing above info, 1 a warning, 2 something critical; 3 it could not be done, or the arguments are wrong."
)]
pub(crate) struct DoctorArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// A record (--record) to judge instead of this host.
    #[arg(value_name = "FILE", conflicts_with_all = ["root", "netns", "stack", "control", "interval", "since_boot", "record"])]
    file: Option<PathBuf>,
    /// The time between the two samples.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::duration)]
    interval: Duration,
    /// One sample: counters are judged since boot.
    #[arg(long, conflicts_with = "interval")]
    since_boot: bool,
    /// Read a copy of /proc below this folder, once, instead of the running kernel.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["netns", "interval", "stack", "control"])]
    root: Option<PathBuf>,
    /// Read this network namespace of `ip netns` (needs root).
    #[arg(long, value_name = "NAME", conflicts_with_all = ["stack", "control"])]
    netns: Option<String>,
    /// Judge a running stack of ours (--stack, --control) by those rules that mean something there.
    #[command(flatten)]
    stack: StackOnly,
    /// Save all that was read, to be judged elsewhere.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Put other addresses in place of real ones.
    #[arg(long)]
    mask: bool,
    /// Print a shell script of the fixes, for a person to read and run.
    #[arg(long, conflicts_with_all = ["json", "prometheus"])]
    fix: bool,
    /// Write a page for a browser: findings, their evidence over ten looks within --interval, the path of a packet. A FILE to judge may be
    /// a series of `firstbyte watch --record`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["watch", "listen", "record", "fix", "json", "prometheus"])]
    html: Option<PathBuf>,
    /// JSON; its layout is described in docs/doctor.md.
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,
    /// Metrics, as Prometheus and OpenMetrics read them.
    #[arg(long)]
    prometheus: bool,
    /// Thresholds and silenced rules, in TOML.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Judge window after window, until Ctrl-C: on a terminal the whole report, else a line for what comes and goes.
    #[arg(long, conflicts_with_all = ["file", "root", "since_boot", "record", "fix", "prometheus"])]
    watch: bool,
    /// End --watch after so many windows.
    #[arg(long, value_name = "N", requires = "watch", allow_negative_numbers = true, value_parser = values::whole(1..=u32::MAX))]
    times: Option<u32>,
    /// Of --watch and --listen: look less often than --interval where looking would take more than this share of a core.
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = values::percent)]
    budget: f64,
    /// Serve metrics at http://ADDRESS/metrics, of windows of --interval, until Ctrl-C.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = values::listening_address, conflicts_with_all = ["file", "root", "since_boot", "record", "fix", "json", "prometheus", "watch"])]
    listen: Option<SocketAddr>,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List the rules.
    Rules,
    /// Explain a rule: when it fires, why it matters, what mends it.
    Explain {
        /// Its id, as `firstbyte doctor rules` lists it.
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Runs the verb.
pub(crate) fn run(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    match &args.verb {
        Some(Verb::Rules) => print(&listed()),
        Some(Verb::Explain { id }) => print(&explained(id)?),
        None => {
            let policy = policy(args)?;
            match args.listen {
                Some(address) => endpoint::serve(args, &policy, address),
                None if args.watch => watch::run(args, &policy),
                None if args.html.is_some() => page(args, &policy),
                None => examine(args, &policy),
            }
        }
    }
}

fn policy(args: &DoctorArgs) -> Result<Policy, Failure> {
    let Some(path) = &args.policy else { return Ok(Policy::default()) };
    let text = input::text(path, input::WRITTEN_MAX).map_err(not_done)?;
    Policy::parse(&text).map_err(|error| not_done(Failure::failed(format!("{}: {error}", path.display()))))
}

fn examine(args: &DoctorArgs, policy: &Policy) -> Result<ExitCode, Failure> {
    let mut record = match &args.file {
        Some(path) => {
            let text = input::text(path, input::RECORDED_MAX).map_err(not_done)?;
            Record::parse(&text)
                .map_err(|error| not_done(Failure::failed(format!("{}: {error}", path.display()))))?
        }
        None => reading::record(args)?,
    };
    if args.mask {
        record.mask();
    }
    if let Some(path) = &args.record {
        write_whole(path, record.text()).map_err(not_done)?;
    }
    let report = judged(args, policy, &record.window()).look_back(&record.now, policy);
    let text = match () {
        () if args.fix => report.script(),
        () if args.prometheus => report.prometheus(),
        () if args.json => {
            serde_json::to_string_pretty(&report)
                .map_err(|error| not_done(Failure::failed(error.to_string())))?
                + "\n"
        }
        () => report.text(),
    };
    print(&text)?;
    Ok(ExitCode::from(report.exit_code()))
}

/// The report of a window. Commands that change a stack of ours name the one that was read.
fn judged(args: &DoctorArgs, policy: &Policy, window: &Window<'_>) -> Report {
    let mut report = Report::by(&window.clone().by(policy.limits()), policy);
    let Some(option) = args.stack.named().map(ControlArgs::option) else { return report };
    for step in report.findings.iter_mut().flat_map(|finding| &mut finding.fix.steps) {
        for command in std::iter::once(&mut step.command).chain(&mut step.undo) {
            *command = command.replacen("--stack", &option, 1);
        }
    }
    report
}

fn page(args: &DoctorArgs, policy: &Policy) -> Result<ExitCode, Failure> {
    let Some(path) = &args.html else { return Ok(ExitCode::SUCCESS) };
    let mut samples = reading::series(args)?;
    if args.mask {
        let mut mask = Mask::default();
        samples.iter_mut().for_each(|sample| mask.apply(sample));
    }
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return Err(not_done(Failure::failed("the file has no sample")));
    };
    let window = if samples.len() == 1 { Window::since_boot(last) } else { Window::between(first, last) };
    let report = judged(args, policy, &window);
    write_whole(path, report.page(&samples)).map_err(not_done)?;
    print(&format!(
        "{}written to {}\n",
        report.text().lines().take(2).fold(String::new(), |text, line| text + line + "\n"),
        path.display()
    ))?;
    Ok(ExitCode::from(report.exit_code()))
}

/// A failure's exit code must not read as a verdict.
fn not_done(failure: Failure) -> Failure {
    failure.with_exit_code(NOT_DONE)
}

/// The exit code of whatever is no verdict.
pub(crate) const NOT_DONE: u8 = 3;

fn listed() -> String {
    RULES.iter().map(|rule| format!("{}  {}\n", rule.id, rule.symptom)).collect()
}

fn explained(id: &str) -> Result<String, Failure> {
    let rule = Rule::by_id(id).ok_or_else(|| {
        not_done(Failure::failed(format!("no rule is called {id}; `firstbyte doctor rules` lists them")))
    })?;
    let mut text = format!(
        "{}  {}\n\nfires when  {}\nwhy         {}\nfix         {}\n",
        rule.id, rule.symptom, rule.condition, rule.why, rule.advice
    );
    for (name, change) in rule.settings {
        text += &format!("            {name} {change}\n");
    }
    let needs: Vec<&str> = rule.needs.iter().map(|source| source.name()).collect();
    text += &format!("reads       {}\n", needs.join("; "));
    for limit in rule.limits {
        text += &format!("threshold   {} = {} {}\n", limit.name, limit.value, limit.unit);
    }
    Ok(text + &format!("kernels     {}\nsure        {}\n", rule.kernels, rule.confidence))
}
