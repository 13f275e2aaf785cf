//! `cargo xtask threads`: the tests that play many orders of events (`tests/orders.rs` of the crates below), built over the checker's locks.

use std::process::Command;

const CRATES: [&str; 3] = ["firstbyte-sync", "firstbyte-host", "firstbyte-posix"];
/// They take longer to optimise than the orders take without. The engine has no locks: the one of the ordinary build is taken.
const UNOPTIMISED: [&str; 2] = ["firstbyte-device", "firstbyte-host"];
/// Read by `sync::model::check`.
const TIMES: &str = "FIRSTBYTE_ORDERS";

/// Makes the orders the same each time, so that a change is judged by itself; the environment may name others (shuttle's own variable).
const SEED: (&str, &str) = ("SHUTTLE_RANDOM_SEED", "1");

/// `[--times N]`: so many times the orders that the tests play by themselves.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let times = match arguments {
        [] => "1",
        ["--times", times] => times,
        _ => return Err("usage: cargo xtask threads [--times N]".to_owned()),
    };
    if !times.parse::<usize>().is_ok_and(|times| times > 0) {
        return Err(format!("--times {times}: give a whole number from 1 on"));
    }
    let mut cargo = Command::new(env!("CARGO"));
    for name in UNOPTIMISED {
        cargo.args(["--config", &format!("profile.dev.package.{name}.opt-level=0")]);
    }
    // The whole workspace, though only these have such tests: so that what knows nothing of the checker is that of the ordinary build.
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
        Err(format!("an order of events failed ({status}); its seed is above"))
    }
}
