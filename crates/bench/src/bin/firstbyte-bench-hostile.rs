//! The workload `hostile`, with an allocator that counts what is in use. `firstbyte-bench hostile`
//! runs it.

use bench::hostile::{Options, run};
use cap::Cap;
use clap::Parser;
use std::alloc::System;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

#[derive(Parser)]
#[command(name = "firstbyte-bench hostile")]
struct Arguments {
    #[command(flatten)]
    options: Options,
}

fn main() -> ExitCode {
    match run(&Arguments::parse().options, || ALLOCATOR.allocated()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("firstbyte-bench hostile: {failure}");
            ExitCode::FAILURE
        }
    }
}
