//! `firstbyte doctor`: findings about this host's TCP, the evidence, and the command that fixes
//! each.
//!
//! - `doctor/reading.rs`: sources of samples;
//! - `doctor/watch.rs`: repeated checks, on a terminal, as lines or as JSON;
//! - `doctor/endpoint.rs`: metrics over HTTP.
mod endpoint;
mod reading;
mod watch;

use crate::control::ControlArgs;
use crate::failure::Failure;
use crate::input;
use crate::output::write_whole;
use crate::source::StackOnly;
use crate::terminal::print;
use crate::values;
use clap::{Args, Subcommand};
use doctor::{Mask, Policy, RULES, Record, Report, Rule, Window};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Check this host's TCP: what is wrong, the evidence, and the command that fixes it
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example:\n  \
        firstbyte doctor\n  \
        firstbyte doctor --interval 1s --json\n  \
        firstbyte doctor --record host.json --mask    then elsewhere: firstbyte doctor \
        host.json\n  \
        firstbyte doctor --watch --interval 10s\n  \
        firstbyte doctor --stack                        a running firstbyte serve\n  \
        firstbyte doctor explain ACC-01\n\n\
        Doctor changes nothing. It needs no root for most rules; it names what only root can \
        read and lists the rules that need it as not judged. A policy file (--policy) sets \
        thresholds and silences rules: one table per rule, with the names that `firstbyte \
        doctor explain` shows and silent = \"the reason\".\n\n\
        Exit codes: 0 nothing above info, 1 a warning, 2 something critical, 3 the check failed or \
        the arguments are wrong."
)]
pub(crate) struct DoctorArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Judge this record (see --record) instead of this host
    #[arg(value_name = "FILE", conflicts_with_all = ["root", "netns", "stack", "control", "interval", "since_boot", "record"])]
    file: Option<PathBuf>,
    /// Time between the two samples
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::duration)]
    interval: Duration,
    /// Take one sample and judge counters since boot
    #[arg(long, conflicts_with = "interval")]
    since_boot: bool,
    /// Read a copy of /proc below this folder, once, instead of the running kernel
    #[arg(long, value_name = "DIR", conflicts_with_all = ["netns", "interval", "stack", "control"])]
    root: Option<PathBuf>,
    /// Read this network namespace of `ip netns` (needs root)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["stack", "control"])]
    netns: Option<String>,
    /// Judge a running stack (--stack, --control) by the rules that apply to it
    #[command(flatten)]
    stack: StackOnly,
    /// Save everything that was read to FILE, to judge it elsewhere
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Replace real addresses with placeholders
    #[arg(long)]
    mask: bool,
    /// Print the fixes as a shell script, to review and run
    #[arg(long, conflicts_with_all = ["json", "prometheus"])]
    fix: bool,
    /// Write an HTML page to FILE: findings, their evidence over ten samples within --interval, and
    /// the path of a packet. The input may also be a series from `firstbyte watch --record`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["watch", "listen", "record", "fix", "json", "prometheus"])]
    html: Option<PathBuf>,
    /// Print JSON (format: docs/doctor.md)
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,
    /// Print metrics for Prometheus and OpenMetrics
    #[arg(long)]
    prometheus: bool,
    /// Read thresholds and silenced rules from this TOML file
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Repeat every --interval until Ctrl-C: the whole report on a terminal, otherwise a line per
    /// change
    #[arg(long, conflicts_with_all = ["file", "root", "since_boot", "record", "fix", "prometheus"])]
    watch: bool,
    /// End --watch after N checks
    #[arg(long, value_name = "N", requires = "watch", allow_negative_numbers = true, value_parser = values::whole(1..=u32::MAX))]
    times: Option<u32>,
    /// Lower the frequency of --watch and --listen if sampling takes more than this share of a core
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = values::percent)]
    budget: f64,
    /// Serve metrics at http://ADDRESS/metrics, updated every --interval, until Ctrl-C
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = values::listening_address, conflicts_with_all = ["file", "root", "since_boot", "record", "fix", "json", "prometheus", "watch"])]
    listen: Option<SocketAddr>,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List the rules
    Rules,
    /// Explain a rule: when it fires, why it matters, how to fix it
    Explain {
        /// Id of the rule, as in `firstbyte doctor rules`
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

/// Judges a window. Fixes for a running stack name the stack that was read.
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
        return Err(not_done(Failure::failed("the file contains no sample")));
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

/// Replaces the exit code of a failure, so that it is not read as a verdict.
fn not_done(failure: Failure) -> Failure {
    failure.with_exit_code(NOT_DONE)
}

/// Exit code if there is no verdict.
pub(crate) const NOT_DONE: u8 = 3;

fn listed() -> String {
    RULES.iter().map(|rule| format!("{}  {}\n", rule.id, rule.symptom)).collect()
}

fn explained(id: &str) -> Result<String, Failure> {
    let rule = Rule::by_id(id).ok_or_else(|| {
        not_done(Failure::failed(format!("there is no rule {id}; `firstbyte doctor rules` lists them")))
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
