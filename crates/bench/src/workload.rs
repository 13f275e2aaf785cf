//! The workloads, one file each: `Options` are its parameters, `run` gives its line.
pub mod bulk_mem;
pub mod bulk_tun;
pub mod idle;
pub mod scale;
pub mod ttfb_tun;
pub mod xchg_mem;
pub mod xchg_tun;

use proto::Config;

/// Every workload sends small segments at once, and says what else is particular about it.
const NAGLE: &str = "off";

/// What the figures must be read with.
fn describe(config: &Config) -> String {
    format!(
        "timestamps {}, sack {}, window scale {}, rmem {}, wmem {}",
        config.tcp_timestamps,
        config.tcp_sack,
        config.tcp_window_scaling,
        config.tcp_rmem[1],
        config.tcp_wmem[1]
    )
}

/// How long to measure: some time, and no more than a clock can tell.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|error| format!("{error}"))?;
    let is_time = seconds > 0.0 && seconds <= SECONDS_MAX;
    if is_time { Ok(seconds) } else { Err(format!("give more than 0, and at most {SECONDS_MAX}")) }
}

/// A day.
const SECONDS_MAX: f64 = 86_400.0;

/// How many there are at a time: none would never end.
fn one_or_more(text: &str) -> Result<usize, String> {
    let number = text.parse().map_err(|error| format!("{error}"))?;
    if number > 0 { Ok(number) } else { Err("give 1 or more".into()) }
}

/// A switch as the contract writes it.
fn zero_or_one(text: &str) -> Result<bool, String> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("neither 0 nor 1".into()),
    }
}
