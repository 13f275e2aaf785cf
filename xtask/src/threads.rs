//! `cargo xtask threads`: plays many orders of events (`tests/orders.rs` of the crates below),
//! built with the checker's locks.

use crate::unexpected;
use std::process::Command;

const USAGE: &str = "cargo xtask threads [--times N]";
const CRATES: [&str; 3] = ["firstbyte-sync", "firstbyte-host", "firstbyte-posix"];
/// Crates that take longer to optimise than their tests take unoptimised. The engine has no locks,
/// so its ordinary build is used.
const UNOPTIMISED: [&str; 2] = ["firstbyte-device", "firstbyte-host"];
/// The variable that `sync::model::check` reads.
const TIMES: &str = "FIRSTBYTE_ORDERS";

/// Makes the orders the same in each run, so that only a change of the code changes the result.
/// The environment may set another seed (shuttle's own variable).
const SEED: (&str, &str) = ("SHUTTLE_RANDOM_SEED", "1");

/// Runs `cargo xtask threads` with its arguments.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let times = match arguments {
        [] => "1",
        ["--times", times] => times,
        ["--times"] => {
            return Err(format!("cannot run threads: --times needs a number; usage: {USAGE}"));
        }
        ["--times", _, first, ..] | [first, ..] => return Err(unexpected("threads", first, USAGE)),
    };
    if !times.parse::<usize>().is_ok_and(|times| times > 0) {
        return Err(format!(
            "cannot run threads: `--times {times}`: not a whole number from 1 on; usage: {USAGE}"
        ));
    }
    let mut cargo = Command::new(env!("CARGO"));
    for name in UNOPTIMISED {
        cargo.args(["--config", &format!("profile.dev.package.{name}.opt-level=0")]);
    }
    // The whole workspace, though only these crates have such tests: all other crates are then
    // those of the ordinary build.
    cargo.args(["test", "--workspace", "--locked", "--test", "orders", "--features"]);
    cargo.arg(CRATES.map(|name| format!("{name}/shuttle")).join(","));
    cargo.env("CARGO_INCREMENTAL", "0").env(TIMES, times);
    if std::env::var_os(SEED.0).is_none() {
        cargo.env(SEED.0, SEED.1);
    }
    println!("\n=== {cargo:?}");
    let status = cargo.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("an order of events failed ({status}); the output above has its seed"))
    }
}
