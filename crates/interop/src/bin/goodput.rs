//! `goodput`: measures `docs/goodput.md` anew.
use clap::Parser;
use interop::goodput::plan::{ALGORITHMS, Cell, Effort, LOSSES, RATES, RTTS, measure};
use interop::goodput::run::{Pairing, Run, kernel_knows};
use interop::goodput::table::{self, Made};
use proto::Config;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// The setting that chooses ours; an algorithm it does not know is left out.
const ALGORITHM: &str = "net.ipv4.tcp_congestion_control";

/// Goodput of the library beside Linux, over the same emulated paths in real time.
///
/// Needs root and /dev/net/tun; everything happens in network namespaces of its own. The whole
/// table takes about 14 minutes, and wants a machine that does nothing else.
#[derive(Parser)]
#[command(
    name = "goodput",
    after_help = "Examples:\n  goodput --quick\n  goodput --only cubic --rate 100 --rtt 100 --runs 3\n  goodput --write"
)]
struct Arguments {
    /// One run of 4 to 6 s for each cell: about 2 minutes, and only a hint.
    #[arg(long)]
    quick: bool,
    /// Only this algorithm: cubic, reno or bbr; may be repeated.
    #[arg(long, value_name = "ALGORITHM", value_parser = ALGORITHMS)]
    only: Vec<String>,
    /// Only this round-trip time, ms.
    #[arg(long)]
    rtt: Option<u64>,
    /// Only this rate, Mbit/s.
    #[arg(long)]
    rate: Option<u64>,
    /// Only this loss, %.
    #[arg(long)]
    loss: Option<f64>,
    /// Runs of each cell, with the seeds 1 to this.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    runs: Option<u64>,
    /// Seconds of each run; otherwise 12, and 40 where loss limits.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// Sum of the rates of the cells that run at once, Mbit/s.
    #[arg(long, default_value_t = 140, value_parser = clap::value_parser!(u64).range(1..))]
    capacity: u64,
    /// A setting of our stack by its name, as in net.ipv4.tcp_sack=0; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "write")]
    set: Vec<String>,
    /// A setting of the kernel at its ends, as in net.ipv4.tcp_sack=0; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "write")]
    kernel: Vec<String>,
    /// Our stack does what Linux does, but for what --set changes.
    #[arg(long, conflicts_with = "write")]
    linux: bool,
    /// Write docs/goodput.md; needs every cell.
    #[arg(long)]
    write: bool,
}

impl Arguments {
    /// Those that are asked for, if there are any, and the kernel has what they need.
    fn cells(&self) -> Result<Vec<Cell>, String> {
        let cells = self.wanted();
        if cells.is_empty() {
            return Err(format!(
                "no cell of the table is like that: --rtt is one of {RTTS:?}, --rate of {RATES:?}, --loss of {:?}",
                LOSSES.map(|permille| permille as f64 / 10.0)
            ));
        }
        for algorithm in ALGORITHMS {
            if cells.iter().any(|cell| cell.algorithm == algorithm) {
                kernel_knows(algorithm)?;
            }
        }
        Ok(cells)
    }

    fn wanted(&self) -> Vec<Cell> {
        let wanted = |cell: &Cell| {
            (self.only.is_empty() || self.only.contains(&cell.algorithm))
                && self.rtt.is_none_or(|rtt| rtt == cell.rtt_ms)
                && self.rate.is_none_or(|rate| rate == cell.rate_mbit)
                && self.loss.is_none_or(|loss| (loss * 10.0 - cell.loss_permille as f64).abs() < 1e-6)
        };
        let known = |cell: &Cell| Config::default().set(ALGORITHM, &cell.algorithm).is_ok();
        Cell::all().into_iter().filter(|cell| wanted(cell) && known(cell)).collect()
    }

    fn effort(&self) -> Result<Effort, String> {
        let mut config = if self.linux { Config::linux() } else { Config::default() };
        for text in &self.set {
            let (name, value) = name_and_value(text)?;
            config.set(name, value).map_err(|error| format!("{text}: {error:?}"))?;
        }
        let mut sysctls = Vec::new();
        for text in &self.kernel {
            let (name, value) = name_and_value(text)?;
            sysctls.push((name.to_owned(), value.to_owned()));
        }
        let (runs, seconds, lossy) = if self.quick { (1, 4, 6) } else { (5, 12, 40) };
        Ok(Effort {
            config,
            sysctls,
            runs: self.runs.unwrap_or(runs),
            duration: Duration::from_secs(self.seconds.unwrap_or(seconds)),
            lossy_duration: Duration::from_secs(self.seconds.unwrap_or(lossy)),
            capacity_mbit: self.capacity,
        })
    }
}

fn name_and_value(text: &str) -> Result<(&str, &str), String> {
    text.split_once('=').ok_or_else(|| format!("{text}: not NAME=VALUE"))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Err(reason) = testnet::can() {
        eprintln!("goodput: no network namespaces here: {reason}");
        return ExitCode::FAILURE;
    }
    let asked = arguments.effort().and_then(|effort| Ok((effort, arguments.cells()?)));
    let (effort, cells) = match asked {
        Ok(asked) => asked,
        Err(problem) => {
            eprintln!("goodput: {problem}");
            return ExitCode::FAILURE;
        }
    };
    let begun = Instant::now();
    let lines = table::lines(&measure(&cells, &effort, tell));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/goodput.md");
    let previous = std::fs::read_to_string(&file).unwrap_or_default();
    let typed: Vec<String> = std::env::args().skip(1).collect();
    let (arguments_typed, when, kernel) = (typed.join(" "), output("date", &["-u", "+%Y-%m-%d"]), kernel());
    let made = Made { arguments: &arguments_typed, when: &when, kernel: &kernel };
    let text = table::render(&lines, &effort, made, &previous);
    print!("{text}");
    eprintln!("goodput: {} cells in {} s", lines.len(), begun.elapsed().as_secs());
    if let Some(line) = lines.iter().find(|line| !line.is_sound()) {
        eprintln!("goodput: nothing arrived, so that there is no ratio: {:?}", line.cell);
        return ExitCode::FAILURE;
    }
    if !arguments.write {
        return ExitCode::SUCCESS;
    }
    if lines.len() != Cell::all().len() {
        eprintln!("goodput: not written: only a run of every cell makes the file");
        return ExitCode::FAILURE;
    }
    if let Err(error) = std::fs::write(&file, &text) {
        eprintln!("goodput: {}: {error}", file.display());
        return ExitCode::FAILURE;
    }
    for problem in table::problems(&text) {
        eprintln!("goodput: to be seen to in {}: {problem}", file.display());
    }
    ExitCode::SUCCESS
}

/// One line for each run, on stderr.
fn tell(cell: &Cell, seed: u64, runs: &[Run; 3]) {
    let Cell { algorithm, rtt_ms, rate_mbit, loss_permille } = cell;
    let loss = *loss_permille as f64 / 10.0;
    let mut line = format!("{algorithm:5} {rtt_ms:3} ms {rate_mbit:3} Mbit/s {loss:3} % seed {seed}:");
    for (pairing, run) in Pairing::ALL.into_iter().zip(runs) {
        let Run { goodput, retransmitted, crossed } = run;
        line += &format!(
            "  {} {:.2} (again {retransmitted}, lost {} + {} of {})",
            pairing.name(),
            goodput / 1e6,
            crossed.lost,
            crossed.forward.drops_queue,
            crossed.data_segments
        );
    }
    // Nobody is left to tell when stderr is closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn kernel() -> String {
    format!("Linux {}", output("uname", &["-r"]).split('-').next().unwrap_or_default())
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or_else(|_| "?".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
