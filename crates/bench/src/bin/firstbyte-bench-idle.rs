//! The workload `idle`, with an allocator that counts what is in use. `firstbyte-bench idle` runs
//! it.

use bench::workload::idle::{Options, run};
use cap::Cap;
use clap::Parser;
use std::alloc::System;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    options: Options,
}

fn main() -> ExitCode {
    match run(&Arguments::parse().options, || ALLOCATOR.allocated()).and_then(|line| line.text()) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("firstbyte-bench-idle: {failure}");
            ExitCode::FAILURE
        }
    }
}
