//! `docs/goodput.md`: how it is written, read back and judged.
//!
//! The figures are medians in Mbit/s; a ratio is the quotient of the figures as printed. A cell
//! below the [`goal`] must be listed under [`MISSED`] with its reason; reasons of a table that is
//! written anew are kept.
use super::plan::{Cell, Effort, Measured, median};
use super::run::Pairing;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The heading over the cells that miss their goal.
pub const MISSED: &str = "## Missed";
/// Placeholder for a reason that nobody has written yet.
pub const UNEXPLAINED: &str = "not explained yet";
const HEADER: &str = "| algorithm | RTT, ms | rate, Mbit/s | loss, % | Linux → Linux | ours → Linux | ratio | Linux → ours | ratio |";

/// Least share of Linux's goodput that ours is to reach. Linux has the first version of BBR, which
/// does not yield to loss.
pub fn goal(algorithm: &str) -> f64 {
    if algorithm == "bbr" { 0.90 } else { 0.95 }
}

/// One line of the table, Mbit/s as printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Which cell.
    pub cell: Cell,
    /// Linux → Linux, ours → Linux, Linux → ours.
    pub goodput: [f64; 3],
    /// Ratios of the second and third to the first, as printed.
    pub ratios: [f64; 2],
}

impl Line {
    fn new(cell: Cell, goodput: [f64; 3]) -> Line {
        let goodput = goodput.map(|mbit| (mbit * 100.0).round() / 100.0);
        let ratio = |ours: f64| (ours / goodput[0] * 100.0).round() / 100.0;
        Line { cell, goodput, ratios: [ratio(goodput[1]), ratio(goodput[2])] }
    }

    /// The pairings below the goal, each as it is named under [`MISSED`].
    pub fn missed(&self) -> Vec<String> {
        let ours = Pairing::ALL.into_iter().skip(1).zip(self.ratios);
        // What is no number is missed.
        let reached = |ratio: f64| ratio >= goal(&self.cell.algorithm);
        let missed = ours.filter(|(_, ratio)| !reached(*ratio));
        missed.map(|(pairing, _)| name(&self.cell, pairing)).collect()
    }

    /// Are there figures, and ratios of them? Where nothing arrived there are none.
    pub fn is_sound(&self) -> bool {
        self.goodput.iter().chain(&self.ratios).all(|number| number.is_finite() && *number > 0.0)
    }

    fn parse(line: &str) -> Option<Line> {
        let fields: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
        let [algorithm, rtt, rate, loss, rest @ ..] = &fields[..] else { return None };
        let numbers: Vec<f64> = rest.iter().map(|text| text.parse().ok()).collect::<Option<_>>()?;
        let [linux, sends, sends_ratio, receives, receives_ratio] = numbers[..] else { return None };
        if numbers.iter().any(|number| !number.is_finite()) {
            return None;
        }
        let cell = Cell {
            algorithm: (*algorithm).to_owned(),
            rtt_ms: rtt.parse().ok()?,
            rate_mbit: rate.parse().ok()?,
            loss_permille: (loss.parse::<f64>().ok()? * 10.0).round() as u64,
        };
        Some(Line { cell, goodput: [linux, sends, receives], ratios: [sends_ratio, receives_ratio] })
    }

    fn write(&self, text: &mut String) {
        let Cell { algorithm, rtt_ms, rate_mbit, loss_permille } = &self.cell;
        let ([linux, sends, receives], [sends_ratio, receives_ratio]) = (self.goodput, self.ratios);
        let loss = *loss_permille as f64 / 10.0;
        let _ = writeln!(
            text,
            "| {algorithm} | {rtt_ms} | {rate_mbit} | {loss} | {linux:.2} | {sends:.2} | {sends_ratio:.2} | {receives:.2} | {receives_ratio:.2} |"
        );
    }
}

fn name(cell: &Cell, pairing: Pairing) -> String {
    let Cell { algorithm, rtt_ms, rate_mbit, loss_permille } = cell;
    let loss = *loss_permille as f64 / 10.0;
    format!("{algorithm}, {rtt_ms} ms, {rate_mbit} Mbit/s, {loss} %, {}", pairing.name())
}

/// The lines of what was measured, in the table's order.
pub fn lines(measured: &Measured) -> Vec<Line> {
    let of = |cell: &Cell| {
        let medians = Pairing::ALL.map(|pairing| {
            let runs = measured.get(&(cell.clone(), pairing))?;
            Some(median(runs.iter().map(|run| run.goodput / 1e6).collect()))
        });
        Some(Line::new(cell.clone(), [medians[0]?, medians[1]?, medians[2]?]))
    };
    Cell::all().iter().filter_map(of).collect()
}

/// Origin of a table.
#[derive(Clone, Copy, Debug)]
pub struct Made<'a> {
    /// The arguments of the program.
    pub arguments: &'a str,
    /// The day.
    pub when: &'a str,
    /// The kernel beside which ours was measured.
    pub kernel: &'a str,
}

/// The whole file. `previous` is the file as it was, for its reasons; how the table was made goes
/// into the method.
pub fn render(lines: &[Line], effort: &Effort, made: Made<'_>, previous: &str) -> String {
    let mut text = format!(
        "# Goodput, compared with Linux\n\n{}\n\n{HEADER}\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        method(effort, made)
    );
    lines.iter().for_each(|line| line.write(&mut text));
    let reasons = reasons(previous);
    let missed: Vec<String> = lines.iter().flat_map(Line::missed).collect();
    let _ = writeln!(text, "\n{MISSED}\n");
    if missed.is_empty() {
        text.push_str("None: every cell reaches its goal.\n");
    }
    for name in missed {
        let reason = reasons.get(&name).map_or(UNEXPLAINED, String::as_str);
        let _ = writeln!(text, "- {name}: {reason}");
    }
    text
}

fn method(effort: &Effort, Made { arguments, when, kernel }: Made<'_>) -> String {
    let runs = effort.runs;
    let (seconds, lossy) = (effort.duration.as_secs(), effort.lossy_duration.as_secs());
    format!(
        "\
Goodput in Mbit/s as read by the receiving application {seconds} s after the sender's `connect`
returned ({lossy} s where loss limits CUBIC or Reno), slow start included. Each value is the median
of {runs} runs with the seeds 1 to {runs}. Measured on {when} beside {kernel} by

    cargo run --profile dist -p firstbyte-interop --bin goodput -- {arguments}

Each end is a network namespace. The path between their TUN devices has the rate in both directions,
half the round-trip time each way, and a drop-tail queue of one bandwidth-delay product. A seeded
draw per segment number decides which data segments are lost, so a seed loses the same segments for
every sender. Acknowledgments are not lost. Packets on the path have at most 1500 bytes, as on a
wire.

The Firstbyte end (\"ours\") is the library with `Config::default()` behind a TUN device with
offloads; its namespace forwards. Linux's end has its own defaults (`tcp_rmem` 4096 131072 6291456,
`tcp_wmem` 4096 16384 4194304). The three pairings of a cell and seed run side by side. A ratio is
Firstbyte's value divided by Linux's. The goal is 0.95 for CUBIC and Reno, and 0.90 for BBR, where
Linux has version 1 and Firstbyte version 3."
    )
}

/// Reasons in the file for each missed cell.
pub fn reasons(text: &str) -> BTreeMap<String, String> {
    let missed = text.split_once(MISSED).map_or("", |(_, missed)| missed);
    let entries = missed.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(": "));
    entries.map(|(name, reason)| (name.to_owned(), reason.trim().to_owned())).collect()
}

/// Faults of a file: cells missing, twice or unknown; ratios that are not their quotients;
/// misses without a reason; reasons without a miss.
pub fn problems(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let rows = text.lines().filter(|line| line.starts_with("| ") && *line != HEADER);
    let lines: Vec<Line> = rows
        .filter_map(|row| {
            let line = Line::parse(row);
            if line.is_none() {
                problems.push(format!("not a line of the table: {row}"));
            }
            line
        })
        .collect();
    if !text.contains(HEADER) {
        problems.push("the table's heading is not there".to_owned());
    }
    let cells: Vec<Cell> = lines.iter().map(|line| line.cell.clone()).collect();
    if cells != Cell::all() {
        problems.push("not every cell once, in order".to_owned());
    }
    for line in &lines {
        let computed = Line::new(line.cell.clone(), line.goodput);
        if computed != *line {
            problems
                .push(format!("ratios {:?}, computed {:?}: {:?}", line.ratios, computed.ratios, line.cell));
        }
    }
    let mut reasons = reasons(text);
    for name in lines.iter().flat_map(Line::missed) {
        match reasons.remove(&name) {
            Some(reason) if !reason.is_empty() && reason != UNEXPLAINED => {}
            _ => problems.push(format!("missed without a reason: {name}")),
        }
    }
    problems.extend(reasons.keys().map(|name| format!("a reason without a miss: {name}")));
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::Config;
    use std::time::Duration;

    fn render(lines: &[Line], previous: &str) -> String {
        let effort = Effort {
            config: Config::default(),
            sysctls: Vec::new(),
            runs: 5,
            duration: Duration::from_secs(12),
            lossy_duration: Duration::from_secs(40),
            capacity_mbit: 130,
        };
        let made = Made { arguments: "--write --seconds 7", when: "a day", kernel: "a kernel" };
        super::render(lines, &effort, made, previous)
    }

    fn good() -> Vec<Line> {
        Cell::all().into_iter().map(|cell| Line::new(cell, [9.0, 9.1, 8.99])).collect()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let text = render(&good(), "");
        assert_eq!(problems(&text), Vec::<String>::new());
        let rows: Vec<Line> = text.lines().filter_map(Line::parse).collect();
        assert_eq!(rows, good());
    }

    #[test]
    fn the_page_says_by_which_arguments_it_came_to_be() {
        assert!(render(&good(), "").contains("--bin goodput -- --write --seconds 7\n"));
    }

    #[test]
    fn what_is_no_ratio_is_no_success() {
        let line = |goodput| Line::new(Cell::all().remove(0), goodput);
        assert!(line([9.0, 9.0, 9.0]).is_sound());
        for goodput in [[0.0, 0.0, 9.0], [0.0; 3], [9.0, 0.0, 9.0], [f64::NAN; 3]] {
            assert!(!line(goodput).is_sound(), "{goodput:?}");
        }
        assert_eq!(line([0.0; 3]).missed().len(), 2);
        assert!(Line::parse("| cubic | 20 | 10 | 0 | 0.00 | 0.00 | NaN | 9.00 | inf |").is_none());
    }

    #[test]
    fn a_miss_needs_a_reason_which_stays() {
        let mut lines = good();
        lines[3] = Line::new(lines[3].cell.clone(), [9.0, 8.0, 9.0]);
        let first = render(&lines, "");
        assert_eq!(
            problems(&first),
            ["missed without a reason: cubic, 20 ms, 100 Mbit/s, 0 %, ours → Linux"]
        );
        let explained = first.replace(UNEXPLAINED, "the moon");
        assert_eq!(problems(&explained), Vec::<String>::new());
        assert_eq!(render(&lines, &explained), explained);
        assert_eq!(problems(&render(&good(), &explained)), Vec::<String>::new());
    }

    #[test]
    fn a_forged_table_is_told() {
        let text = render(&good(), "");
        let row = text.lines().find(|line| line.starts_with("| reno | 20")).expect("a row");
        assert!(!problems(&text.replace(row, "")).is_empty());
        assert!(!problems(&text.replace(row, &row.replace(" 1.01 ", " 1.20 "))).is_empty());
        assert!(!problems(&text.replace(row, &format!("{row}\n{row}"))).is_empty());
    }
}
