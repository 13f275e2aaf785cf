//! `firstbyte-bench`: every workload; `idle` and `hostile` run in programs of their own, whose
//! allocators count.

use bench::report::{Failure, Outcome};
use bench::{budgets, hostile, instructions, meter, workload};
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::SystemTime;

/// Status for a workload or parameter that does not exist here.
const UNSUPPORTED: u8 = 3;

#[derive(Parser)]
#[command(name = "firstbyte-bench", about = "Measures what the engine costs", version)]
struct Arguments {
    /// Time goes on by so many nanoseconds at each look at the clock, however long that takes: what
    /// is counted is the same in every run. Figures in seconds mean nothing then.
    #[arg(long, global = true, value_name = "NANOS")]
    clock_step: Option<u64>,
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Subcommand)]
enum Workload {
    XchgMem(workload::xchg_mem::Options),
    BulkMem(workload::bulk_mem::Options),
    Idle(workload::idle::Options),
    Scale(workload::scale::Options),
    BulkTun(workload::bulk_tun::Options),
    XchgTun(workload::xchg_tun::Options),
    TtfbTun(workload::ttfb_tun::Options),
    Instructions(instructions::Options),
    Hostile(hostile::Options),
    Budgets(budgets::Options),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Nothing to be said about it is left when standard error is closed.
            let _ = error.print();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
                ErrorKind::InvalidSubcommand | ErrorKind::InvalidValue => ExitCode::from(UNSUPPORTED),
                _ => ExitCode::FAILURE,
            };
        }
    };
    meter::step_clock(arguments.clock_step.unwrap_or(0));
    let own_program = matches!(arguments.workload, Workload::Idle(_) | Workload::Hostile(_));
    if own_program && arguments.clock_step.is_some() {
        return report(Err(
            "--clock-step: not for workloads that are programs of their own, idle and hostile".into(),
        ));
    }
    let outcome = match arguments.workload {
        Workload::XchgMem(options) => workload::xchg_mem::run(&options),
        Workload::BulkMem(options) => workload::bulk_mem::run(&options),
        Workload::Idle(_) => become_program("firstbyte-bench-idle"),
        Workload::Hostile(_) => become_program("firstbyte-bench-hostile"),
        Workload::Scale(options) => workload::scale::run(&options),
        Workload::BulkTun(options) => workload::bulk_tun::run(&options),
        Workload::XchgTun(options) => workload::xchg_tun::run(&options),
        Workload::TtfbTun(options) => workload::ttfb_tun::run(&options),
        Workload::Instructions(options) => return report(instructions::run(&options)),
        Workload::Budgets(options) => return report(budgets::run(&options)),
    };
    report(outcome.and_then(|line| line.text()).map(|text| println!("{text}")))
}

fn report(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("firstbyte-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Becomes a program beside this one that counts allocations: doing so here would burden every
/// other workload. No option stands before its word.
fn become_program(name: &str) -> Outcome {
    let own = std::env::current_exe()?;
    let program = own.with_file_name(name);
    let build = format!("build it: cargo build {}-p firstbyte-bench --bins", profile_of(&own));
    if !program.is_file() {
        return Err(format!("{} is not there; {build}", program.display()).into());
    }
    if let Some(source) = changed_between(&program, &own) {
        return Err(format!("{} is older than {source}; {build}", program.display()).into());
    }
    let error = Command::new(&program).args(std::env::args_os().skip(2)).exec();
    Err(format!("{}: {error}", program.display()).into())
}

/// The option that makes cargo build into the folder of `program`.
fn profile_of(program: &Path) -> String {
    match program.parent().and_then(|folder| folder.file_name()?.to_str()) {
        Some("debug") | None => String::new(),
        Some(profile) => format!("--profile {profile} "),
    }
}

/// A source that was changed after the one program was built and before the other was. Cargo writes
/// beside a program what it was built from; the programs' own times say little, since those of one
/// build end one after the other.
fn changed_between(older: &Path, newer: &Path) -> Option<String> {
    let time = |path: &Path| path.metadata().and_then(|about| about.modified()).ok();
    let (older_at, newer_at) = (time(older)?, time(newer)?);
    let sources = std::fs::read_to_string(older.with_extension("d")).ok()?;
    let mut sources = sources.split_ascii_whitespace().skip(1);
    let is_between = |at: SystemTime| older_at < at && at < newer_at;
    sources.find(|source| time(Path::new(source)).is_some_and(is_between)).map(str::to_owned)
}
