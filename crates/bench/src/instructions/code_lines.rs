//! How much code an exchange runs through: the cache lines that hold its instructions.
//!
//! Code that is not in the first-level cache (32 KB, 512 lines of 64 bytes, on most machines) has
//! to be brought there, which the count of instructions does not show. What counts are the lines of
//! both ends, their applications and the link between them; what only some exchanges run through (a
//! table that grows, a timer's turn) does not.
//!
//! What holds the number: a plain exchange runs through 12,000 different instructions, 52 KB, which
//! would be 810 lines if nothing lay between them, and are 1,225 with the branches that are not
//! taken. It is not inlining: optimised for size (`opt-level = "s"` for `proto` and `wire`) the
//! same exchange runs through 1,220 lines and 14 % more instructions. Some 540 of the lines serve
//! opening and closing alone.

use super::{CLOCK_STEP, callgrind_into};
use crate::report::Failure;
use std::collections::{HashMap, HashSet};

/// Bytes of a cache line, as a power of two.
const LINE_BITS: u32 = 6;

/// Exchanges that are looked at.
const EXCHANGES: u64 = 200;

/// The exchanges of `xchg-mem` that are measured, not those that warm up.
const MEASURED: &str = "--toggle-collect=*exchange_measured*";

/// Cache lines of code that one exchange with these arguments runs through.
pub(super) fn count(arguments: &[&str]) -> Result<f64, Failure> {
    let name = format!("firstbyte-bench-callgrind-{}{}", std::process::id(), arguments.concat());
    let profile = std::env::temp_dir().join(name);
    let exchanges = EXCHANGES.to_string();
    let workload = [&["xchg-mem"], arguments, &["--n", &exchanges, "--clock-step", CLOCK_STEP]].concat();
    let ran = callgrind_into(&profile, &["--dump-instr=yes", "--compress-pos=no", MEASURED], &workload);
    let text = ran.and_then(|_| Ok(std::fs::read_to_string(&profile)?));
    let _ = std::fs::remove_file(&profile);
    let text = text?;
    let lines = lines_run_through(&text, EXCHANGES / 2);
    if lines == 0 {
        return Err("callgrind found no instruction of an exchange".into());
    }
    Ok(lines as f64)
}

/// Lines that have an instruction which ran at least so often, in callgrind's format: below `ob=`,
/// the number and name of an object file whose addresses follow, `0xADDRESS line times`. What
/// stands behind `calls=` is the cost of a call, no instruction's own.
fn lines_run_through(profile: &str, times_min: u64) -> usize {
    let mut times: HashMap<(&str, u64), u64> = HashMap::new();
    let (mut object, mut is_call) = ("", false);
    for line in profile.lines() {
        if let Some(named) = line.strip_prefix("ob=") {
            // The name stands beside the number only once.
            object = named.split_ascii_whitespace().next().unwrap_or_default();
        }
        if let Some((address, count)) = instruction(line).filter(|_| !is_call) {
            *times.entry((object, address)).or_default() += count;
        }
        is_call = line.starts_with("calls=");
    }
    let often = times.iter().filter(|(_, times)| **times >= times_min);
    let lines: HashSet<(&str, u64)> =
        often.map(|((object, address), _)| (*object, address >> LINE_BITS)).collect();
    lines.len()
}

/// The address of an instruction, and how often it ran.
fn instruction(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split_ascii_whitespace();
    let address = u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok()?;
    let count = fields.nth(1)?.parse().ok()?;
    Some((address, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "\
positions: instr line
events: Ir

ob=(3) firstbyte-bench
fn=(12) exchange
0x109040 12 100
0x109044 12 100
0x109080 13 99
cfn=(13)
calls=100 0x10a000 7
0x1090c0 14 5000
0x1090c4 14 60
fn=(12)
0x1090c4 15 40
ob=(4) libc.so.6
fn=(14) memcpy
0x109044 0 100
ob=(3)
fn=(12)
0x109048 16 100
totals: 599
";

    #[test]
    fn a_line_counts_once_for_each_object_file_and_a_call_is_no_instruction() {
        assert_eq!(lines_run_through(PROFILE, 100), 3, "one, with 60 and 40 another, and one of libc's");
        assert_eq!(lines_run_through(PROFILE, 50), 4);
        assert_eq!(lines_run_through(PROFILE, 101), 0);
    }
}
