//! `firstbyte-bench`: every workload; `idle` and `hostile` run in programs of their own, whose allocators count.

use bench::report::{Failure, Outcome};
use bench::{budgets, hostile, instructions, meter, workload};
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Status for a workload or parameter that does not exist here.
const UNSUPPORTED: u8 = 3;

#[derive(Parser)]
#[command(name = "firstbyte-bench", about = "Measures what the engine costs", version)]
struct Arguments {
    /// Time goes on by so many nanoseconds at each look at the clock, however long that takes: what is counted is the same in every run. Figures
    /// in seconds mean nothing then.
    #[arg(long, global = true, value_name = "NANOS", default_value_t = 0)]
    clock_step: u64,
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
    meter::step_clock(arguments.clock_step);
    let own_program = matches!(arguments.workload, Workload::Idle(_) | Workload::Hostile(_));
    if own_program && arguments.clock_step > 0 {
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
    report(outcome.map(|line| println!("{line}")))
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

/// Becomes a program beside this one that counts allocations: doing so here would burden every other workload.
fn become_program(name: &str) -> Outcome {
    let program = std::env::current_exe()?.with_file_name(name);
    let error = Command::new(&program).args(std::env::args_os().skip(2)).exec();
    Err(format!("{}: {error}", program.display()).into())
}
