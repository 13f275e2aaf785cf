//! Cost of a hostile peer: for each case the time that a packet of it takes beside an
//! ordinary data packet's of the same run, the memory that it pins, and the bytes it has sent back.
//! Every case has bounds, so that the table is a test.
//!
//! | module | what |
//! |---|---|
//! | [`case`] | a case, and what was measured of it |
//! | [`arena`] | who attacks: packets in, samples out |
//! | [`client`] | one hostile peer: its packets, in the order of its numbers |
//! | [`victim`] | who is attacked: our stack in virtual time; [`kernel`]: Linux behind a TUN device |
//! | `ordinary` | ordinary data in between, the measure of all cases |
//! | [`table`] | the cases as a table, for a terminal or as Markdown |
//! | `opening`, `strangers`, `acknowledging`, `receiving`, `waiting`, `greedy` | the cases, by what they abuse |
//!
//! Times are of the thread's CPU clock, in batches of 64 packets. Nine batches of ten took no
//! longer. After each batch comes one of ordinary data to another stack: a cost is the ratio of
//! both within one run, as other programs on the machine slow both. A packet is one that comes or
//! one that goes.

mod acknowledging;
pub mod arena;
pub mod case;
pub mod client;
mod greedy;
pub mod kernel;
pub mod measured;
mod opening;
mod ordinary;
mod receiving;
mod strangers;
pub mod table;
pub mod victim;
mod waiting;

use crate::report::Failure;
use arena::Arena;
use case::Case;
use clap::Args;
use kernel::Kernel;
use measured::Measured;
use ordinary::Ordinary;
use table::Row;
use victim::Ours;

/// Plays the hostile cases and prints their table.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Only cases whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Prints the table as Markdown.
    #[arg(long)]
    markdown: bool,
    /// Leaves Linux's column out.
    #[arg(long)]
    no_linux: bool,
}

/// Each case is played so often, and its cheapest run counts.
const RUNS: usize = 3;

/// Every case, in the order of the table.
pub fn cases() -> Vec<Case> {
    [opening::CASES, strangers::CASES, acknowledging::CASES, receiving::CASES, waiting::CASES, greedy::CASES]
        .concat()
}

/// Runs them. `heap_in_use` tells the bytes of live allocations.
///
/// # Errors
/// A case could not be played, no case has such a name, or a case has exceeded a bound.
pub fn run(options: &Options, heap_in_use: fn() -> usize) -> Result<(), Failure> {
    let cases: Vec<Case> = cases().into_iter().filter(|case| case.name.contains(&options.only)).collect();
    if cases.is_empty() {
        return Err(
            format!("no case has `{}` in its name; without --only all are played", options.only).into()
        );
    }
    let linux = if options.no_linux { Err("--no-linux".to_string()) } else { testnet::can() };
    let of_linux = linux.is_ok().then(|| kernel(&receiving::ORDINARY)).flatten();
    let linux_basis = of_linux.map(|measured| measured.nanos);
    let (mut rows, mut basis) = (Vec::new(), f64::INFINITY);
    for case in &cases {
        let measured = ours(case, heap_in_use).map_err(|failure| format!("{}: {failure}", case.name))?;
        let of_linux = linux_basis.filter(|_| case.beside_linux).and_then(|_| kernel(case));
        let of_linux = of_linux.map(|measured| measured.nanos);
        basis = measured.ordinary.map_or(basis, |nanos| basis.min(nanos));
        rows.push(Row::new(case, &measured, of_linux));
    }
    print!("{}", if options.markdown { table::markdown(&rows) } else { table::text(&rows) });
    println!("\nAn ordinary data packet of 1,000 bytes took {basis:.0} ns here, at its quickest.");
    match (linux, linux_basis) {
        (Ok(()), Some(basis)) => {
            println!("One took Linux {basis:.0} ns, with the write to the TUN device that brought it.")
        }
        (Ok(()), None) => println!("Linux's column is empty: the ordinary case could not be played."),
        (Err(reason), _) => println!("Linux's column is empty: it needs root and /dev/net/tun ({reason})."),
    }
    let exceeded: Vec<String> = rows.iter().flat_map(Row::exceeded).collect();
    if exceeded.is_empty() { Ok(()) } else { Err(exceeded.join("; ").into()) }
}

/// The cheapest of some runs against our stack.
fn ours(case: &Case, heap_in_use: fn() -> usize) -> Result<Measured, Failure> {
    let mut best: Option<Measured> = None;
    for _ in 0..RUNS {
        let mut ordinary = Ordinary::new()?;
        let mut arena = Arena::beside(Box::new(move || ordinary.play()), Box::new(Ours::new()));
        let before = heap_in_use();
        (case.play)(&mut arena)?;
        let mut measured = arena.measured()?;
        measured.pinned = heap_in_use().saturating_sub(before);
        best = Some(best.map_or(measured, |best| best.cheaper(measured)));
    }
    best.ok_or_else(|| "nothing was played".into())
}

/// The cheapest of some runs against the kernel, each in a network namespace of its own. `None`: it
/// cannot be played there.
fn kernel(case: &Case) -> Option<Measured> {
    let play = || {
        let mut arena = Arena::new(Box::new(Kernel::new().ok()?));
        (case.play)(&mut arena).ok()?;
        arena.measured().ok()
    };
    (0..RUNS).filter_map(|_| testnet::in_namespace(play).flatten()).reduce(Measured::cheaper)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_case_has_a_name_of_its_own_a_reason_and_bounds() {
        let cases = cases();
        let names: BTreeSet<&str> = cases.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), cases.len());
        for case in cases {
            assert!(
                case.bounded_by.ends_with('.') && case.most_cost > 0.0 && case.most_pinned > 0,
                "{}",
                case.name
            );
        }
    }

    #[test]
    fn the_page_has_every_case_once() {
        let page = include_str!("../../../docs/hostile.md");
        for case in cases() {
            let rows = page.lines().filter(|line| line.starts_with(&format!("| {} |", case.name)));
            assert_eq!(rows.count(), 1, "{}: print the table anew with --markdown", case.name);
        }
    }

    /// Those of other crates by file and function.
    #[test]
    fn the_page_names_tests_that_exist() {
        let page = include_str!("../../../docs/hostile.md");
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let named = page.split('`').filter_map(|span| span.split_once(".rs "));
        let mut count = 0;
        for (file, function) in named.filter(|(file, _)| file.starts_with("crates/")) {
            let text = std::fs::read_to_string(root.join(format!("{file}.rs"))).unwrap_or_default();
            assert!(text.contains(&format!("fn {function}(")), "{file}.rs {function}");
            count += 1;
        }
        assert_eq!(count, 8);
    }
}
