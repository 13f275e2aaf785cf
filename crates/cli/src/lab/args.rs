//! Arguments of `firstbyte lab` and its scenarios.

use crate::values::whole;
use ::lab::experiment::{Axis, Limits, Whose};
use ::lab::network::Profile;
use ::lab::scenario::CATALOGUE;
use ::lab::scenario::textbook::Loss;
use clap::{Args, Subcommand, ValueEnum};
use firstbyte::CongestionControl;
use std::path::PathBuf;
use std::time::Duration;

/// Run a network scenario in virtual time: no root, no network, the same result every time
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  \
        firstbyte lab fast-open --rtt 170ms --count 10\n  \
        firstbyte lab packets\n  \
        firstbyte lab middlebox --pcap middlebox.pcapng --json\n  \
        firstbyte lab bufferbloat --html bufferbloat.html\n  \
        firstbyte lab round-trips --host kernel\n  \
        firstbyte lab all --html lab",
    subcommand_value_name = "SCENARIO",
    subcommand_help_heading = "Scenarios",
    disable_help_subcommand = true
)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(super) scenario: Option<Scenario>,
}

#[derive(Subcommand, Debug)]
pub(super) enum Scenario {
    #[command(about = about("fast-open"))]
    FastOpen(FastOpenArgs),
    #[command(about = about("packets"))]
    Packets(PacketsArgs),
    #[command(about = about("fallback"))]
    Fallback(FallbackArgs),
    #[command(about = about("middlebox"))]
    Middlebox(MiddleboxArgs),
    #[command(about = about("qlen"))]
    Qlen(QlenArgs),
    #[command(about = about("big-request"))]
    BigRequest(BigRequestArgs),
    #[command(about = about("flags"))]
    Flags(FlagsArgs),
    #[command(about = about("replay"))]
    Replay(ReplayArgs),
    #[command(about = about("congestion"))]
    Congestion(CongestionArgs),
    #[command(about = about("textbook"))]
    Textbook(TextbookArgs),
    /// Run every scenario, and write a page for each with --html
    All(AllArgs),
    /// Search scenarios by keyword
    #[command(after_help = "Examples:\n  firstbyte lab find TIME_WAIT\n  \
                      firstbyte lab find queue latency\n  firstbyte lab find L-TFO-4")]
    Find {
        /// Words that must all occur in the names, ids, texts or options of a scenario; case, `_`
        /// and `-` do not matter
        #[arg(required = true, value_name = "WORD")]
        words: Vec<String>,
    },
    /// Check scenario files, and report each error with its line
    Check {
        /// Scenario files in TOML (format: docs/experiments.md)
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Limit the resources of a run, such as packets=20000000,hosts=100000,memory=8GB
        #[arg(long, value_name = "WHAT=N,…")]
        limit: Option<Limits>,
    },
    /// Run a scenario file
    Run {
        /// Scenario file in TOML (format: docs/experiments.md)
        file: PathBuf,
        #[command(flatten)]
        changes: ChangeArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Run a scenario with several values of its parameters, and with many seeds
    Sweep(SweepArgs),
    #[command(external_subcommand)]
    Unknown(Vec<String>),
}

impl Scenario {
    /// Returns the name in the catalog.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Scenario::FastOpen(_) => "fast-open",
            Scenario::Packets(_) => "packets",
            Scenario::Fallback(_) => "fallback",
            Scenario::Middlebox(_) => "middlebox",
            Scenario::Qlen(_) => "qlen",
            Scenario::BigRequest(_) => "big-request",
            Scenario::Flags(_) => "flags",
            Scenario::Replay(_) => "replay",
            Scenario::Congestion(_) => "congestion",
            Scenario::Textbook(_) => "textbook",
            Scenario::All(_) => "all",
            Scenario::Find { .. } => "find",
            Scenario::Check { .. } => "check",
            Scenario::Run { .. } => "run",
            Scenario::Sweep(_) => "sweep",
            Scenario::Unknown(_) => "unknown",
        }
    }
}

/// Changes to a scenario file.
#[derive(Args, Debug)]
pub(super) struct ChangeArgs {
    /// Put this queueing discipline, in tc's words, before the bottleneck of each run without one,
    /// such as 'fq_codel target 5ms' or 'cake bandwidth 20mbit'
    #[arg(long, value_name = "WORDS", value_parser = discipline, conflicts_with = "host")]
    pub(super) qdisc: Option<String>,
    /// Run in real time with the kernel's TCP: at both ends (`kernel`), or at one end with our
    /// stack at the other, client first (`kernel,firstbyte` or `firstbyte,kernel`). Shows the
    /// results beside those of virtual time. Needs root
    #[arg(long, value_name = "WHOSE", conflicts_with_all = ["pcap", "pcap_server", "csv", "html", "svg", "trace"])]
    pub(super) host: Option<Hosts>,
    /// Limit the resources of all runs, such as packets=20000000,hosts=100000,memory=8GB [default:
    /// packets=5000000,hosts=20000,memory=4GB]
    #[arg(long, value_name = "WHAT=N,…")]
    pub(super) limit: Option<Limits>,
}

/// The stacks at both ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hosts(pub(super) [Whose; 2]);

impl core::str::FromStr for Hosts {
    type Err = String;

    fn from_str(text: &str) -> Result<Hosts, String> {
        let whose = |word: &str| match word {
            "kernel" => Ok(Whose::Kernel),
            "firstbyte" => Ok(Whose::Firstbyte),
            _ => Err(format!("`{word}` is not a TCP; write kernel, kernel,firstbyte or firstbyte,kernel")),
        };
        let (client, server) = text.split_once(',').unwrap_or((text, text));
        match [whose(client)?, whose(server)?] {
            [Whose::Firstbyte, Whose::Firstbyte] => {
                Err("--host needs the kernel at one end at least, such as kernel,firstbyte; for our \
                stack at both ends, leave it out"
                    .to_owned())
            }
            whose => Ok(Hosts(whose)),
        }
    }
}

/// Options of every scenario.
#[derive(Args, Debug)]
pub(super) struct OutputArgs {
    /// Use this seed for everything random; the same seed gives the same packets [default: 1, or
    /// the file's]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seed)]
    pub(super) seed: Option<u64>,
    /// Print the results as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Write the packets to FILE as the client saw them (pcapng, with packet comments)
    #[arg(long, value_name = "FILE")]
    pub(super) pcap: Option<PathBuf>,
    /// Write the packets to FILE as the server saw them, with its own times
    #[arg(long, value_name = "FILE")]
    pub(super) pcap_server: Option<PathBuf>,
    /// Write windows, thresholds and round trips to FILE as CSV, one row per change
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Write the pictures to FILE as an HTML page: ladder, time-sequence graph, windows, queues,
    /// with a time slider
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Write the pictures to FILE as SVG, with the first 40 packets of each ladder
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// Print the events inside both ends, packet by packet: states, windows, round trips, the
    /// sender's limits, retransmissions
    #[arg(long)]
    pub(super) trace: bool,
}

impl OutputArgs {
    /// Returns the seed of a scenario that has no file.
    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }
}

#[derive(Args, Debug)]
pub(super) struct FastOpenArgs {
    /// Round-trip time of the path, such as 170ms, 1.5s or 30us
    #[arg(long, default_value = "170ms", allow_hyphen_values = true, value_parser = round_trip)]
    pub(super) rtt: Duration,
    /// Number of requests, each on a new connection
    #[arg(short = 'c', long, default_value_t = 10, value_name = "N", allow_negative_numbers = true, value_parser = whole(1..=10_000))]
    pub(super) count: u32,
    /// Length of a request, bytes
    #[arg(long, default_value_t = 200, value_name = "BYTES", allow_negative_numbers = true, value_parser = whole(1..=1_000_000))]
    pub(super) request: u32,
    /// Length of a reply, bytes
    #[arg(long, default_value_t = 500, value_name = "BYTES", allow_negative_numbers = true, value_parser = whole(1..=1_000_000))]
    pub(super) reply: u32,
    /// Profile of both ends
    #[arg(long, value_enum, default_value_t = ProfileArg::Firstbyte)]
    pub(super) profile: ProfileArg,
    /// Use IPv6 instead of IPv4
    #[arg(short = '6', long)]
    pub(super) ipv6: bool,
    /// Forget cookie and path metrics before each request, as `ip tcp_metrics flush` does
    #[arg(long)]
    pub(super) forget: bool,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(super) struct PacketsArgs {
    /// Round-trip time of the path
    #[arg(long, default_value = "40ms", allow_hyphen_values = true, value_parser = round_trip)]
    pub(super) rtt: Duration,
    /// Length of the request, bytes
    #[arg(long, default_value_t = 27, value_name = "BYTES", allow_negative_numbers = true, value_parser = whole(1..=1_000_000))]
    pub(super) request: u32,
    /// Length of the reply, bytes
    #[arg(long, default_value_t = 43, value_name = "BYTES", allow_negative_numbers = true, value_parser = whole(1..=1_000_000))]
    pub(super) reply: u32,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(super) struct FallbackArgs {
    /// Round-trip time of the path
    #[arg(long, default_value = "20ms", allow_hyphen_values = true, value_parser = round_trip)]
    pub(super) rtt: Duration,
    /// Length of a request, bytes
    #[arg(long, default_value_t = 200, value_name = "BYTES", allow_negative_numbers = true, value_parser = whole(1..=1_000_000))]
    pub(super) request: u32,
    /// Length of a reply, bytes
    #[arg(long, default_value_t = 500, value_name = "BYTES", allow_negative_numbers = true, value_parser = whole(1..=1_000_000))]
    pub(super) reply: u32,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(super) struct MiddleboxArgs {
    /// Round-trip time of the path
    #[arg(long, default_value = "40ms", allow_hyphen_values = true, value_parser = round_trip)]
    pub(super) rtt: Duration,
    /// Number of visits through the middlebox
    #[arg(short = 'c', long, default_value_t = 5, value_name = "N", allow_negative_numbers = true, value_parser = whole(1..=1000))]
    pub(super) count: u32,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(super) struct QlenArgs {
    /// Round-trip time of the path
    #[arg(long, default_value = "200ms", allow_hyphen_values = true, value_parser = round_trip)]
    pub(super) rtt: Duration,
    /// Number of connections opened at the same time
    #[arg(long, default_value_t = 6, value_name = "N", allow_negative_numbers = true, value_parser = whole(1..=1000))]
    pub(super) clients: u32,
    /// Fast Open queue length of the listener
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true, value_parser = whole(1..=4096))]
    pub(super) qlen: u32,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(super) struct BigRequestArgs {
    /// Round-trip time of the path
    #[arg(long, default_value = "100ms", allow_hyphen_values = true, value_parser = round_trip)]
    pub(super) rtt: Duration,
    /// Length of the request, bytes
    #[arg(long, default_value_t = 10_000, value_name = "BYTES", allow_negative_numbers = true, value_parser = whole(1..=1_000_000))]
    pub(super) request: u32,
    /// MTU of both hosts, bytes
    #[arg(long, default_value_t = 1500, value_name = "BYTES", allow_negative_numbers = true, value_parser = whole(576..=65_535))]
    pub(super) mtu: u32,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(super) struct FlagsArgs {
    /// Round-trip time of the path
    #[arg(long, default_value = "40ms", allow_hyphen_values = true, value_parser = round_trip)]
    pub(super) rtt: Duration,
    /// Profile of both ends
    #[arg(long, value_enum, default_value_t = ProfileArg::Firstbyte)]
    pub(super) profile: ProfileArg,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(super) struct ReplayArgs {
    /// Round-trip time of the path
    #[arg(long, default_value = "40ms", allow_hyphen_values = true, value_parser = round_trip)]
    pub(super) rtt: Duration,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(super) struct CongestionArgs {
    /// Round-trip time of the path with empty queues
    #[arg(long, default_value = "40ms", allow_hyphen_values = true, value_parser = round_trip)]
    pub(super) rtt: Duration,
    /// Congestion control, several separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "cubic,bbr")]
    pub(super) algorithm: Vec<AlgorithmArg>,
    /// Rate of the bottleneck, Mbit/s
    #[arg(long, default_value_t = 10, value_name = "N", allow_negative_numbers = true, value_parser = whole(1..=1000))]
    pub(super) mbit: u32,
    /// Queue of the bottleneck, percent of the bandwidth-delay product
    #[arg(long, default_value_t = 100, value_name = "PERCENT", allow_negative_numbers = true, value_parser = whole(0..=10_000))]
    pub(super) queue: u32,
    /// Queueing discipline of the bottleneck in tc's words, such as 'fq_codel target 5ms', instead
    /// of drop-tail
    #[arg(long, value_name = "WORDS", value_parser = discipline)]
    pub(super) qdisc: Option<String>,
    /// Packets lost at random, per thousand
    #[arg(long, default_value_t = 0, value_name = "PER_THOUSAND", allow_negative_numbers = true, value_parser = whole(0..=500))]
    pub(super) loss: u32,
    /// Length of the download, kB
    #[arg(long, default_value_t = 5000, value_name = "KB", allow_negative_numbers = true, value_parser = whole(1..=100_000))]
    pub(super) size: u32,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(super) struct TextbookArgs {
    /// Round-trip time of the path
    #[arg(long, default_value = "100ms", allow_hyphen_values = true, value_parser = round_trip)]
    pub(super) rtt: Duration,
    /// Congestion control of the sender
    #[arg(long, value_enum, default_value_t = AlgorithmArg::Reno)]
    pub(super) algorithm: AlgorithmArg,
    /// Initial slow-start threshold, segments
    #[arg(long, default_value_t = 16, value_name = "N", allow_negative_numbers = true, value_parser = whole(2..=1000))]
    pub(super) ssthresh: u32,
    /// Lose packets of the next round whose window reaches N segments: all:N (a timeout follows) or
    /// first:N (duplicate ACKs); several separated by commas
    #[arg(long, value_delimiter = ',', num_args = 0..=1, default_value = "all:24,first:16", value_name = "WHAT:N")]
    pub(super) lose: Vec<Loss>,
    /// Number of rounds to show
    #[arg(long, default_value_t = 25, value_name = "N", allow_negative_numbers = true, value_parser = whole(1..=200))]
    pub(super) rounds: u32,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub(super) enum AlgorithmArg {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic,
    /// Delay-based.
    Vegas,
    /// The predecessor of Reno: every loss starts slow start again.
    Tahoe,
    /// Version 3.
    Bbr,
}

impl From<AlgorithmArg> for CongestionControl {
    fn from(algorithm: AlgorithmArg) -> CongestionControl {
        match algorithm {
            AlgorithmArg::Reno => CongestionControl::Reno,
            AlgorithmArg::Cubic => CongestionControl::Cubic,
            AlgorithmArg::Vegas => CongestionControl::Vegas,
            AlgorithmArg::Tahoe => CongestionControl::Tahoe,
            AlgorithmArg::Bbr => CongestionControl::Bbr,
        }
    }
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub(super) enum ProfileArg {
    /// This project's defaults
    Firstbyte,
    /// The behaviour of Linux 6.18
    Linux,
}

impl From<ProfileArg> for Profile {
    fn from(profile: ProfileArg) -> Profile {
        match profile {
            ProfileArg::Firstbyte => Profile::Firstbyte,
            ProfileArg::Linux => Profile::Linux,
        }
    }
}

fn about(name: &str) -> &'static str {
    CATALOGUE.iter().find(|entry| entry.name == name).map_or("", |entry| entry.summary)
}

/// Shortest and longest round trip that is useful here.
const RTT_RANGE: (Duration, Duration) = (Duration::from_micros(1), Duration::from_secs(60));

/// Checks that tc's words describe a queueing discipline.
fn discipline(text: &str) -> Result<String, String> {
    let wire = || ::lab::network::Route::with_rtt(Duration::ZERO);
    let made = wire().qdisc(::lab::middlebox::Direction::Forward, text);
    made.map(|_| text.to_owned()).map_err(|error| error.to_string())
}

fn round_trip(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return Err("a time needs a unit: 30us, 170ms or 1.5s".into()),
    };
    let number: f64 =
        digits.parse().map_err(|_| format!("`{digits}` is not a number; write 30us, 170ms or 1.5s"))?;
    let seconds = number * unit;
    let (least, most) = RTT_RANGE;
    if !(least.as_secs_f64()..=most.as_secs_f64()).contains(&seconds) {
        return Err("expected a round trip from 1us to 60s, such as 170ms".into());
    }
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// Options of `lab all`.
#[derive(clap::Args, Debug)]
pub(super) struct AllArgs {
    /// Write a page for each scenario, and an index, into DIR
    #[arg(long, value_name = "DIR")]
    pub(super) html: Option<PathBuf>,
    /// Run only part I of N, such as 2/5, to use several machines
    #[arg(long, value_name = "I/N", value_parser = part)]
    pub(super) shard: Option<(usize, usize)>,
}

/// Options of `lab sweep`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    firstbyte lab sweep loss-and-rtt --vary path.loss=0.5%,1%,2%,4% --repeat 10 --html \
    loss.html\n  \
    firstbyte lab sweep bufferbloat --vary path.queue=16,64,256 --measure 'wait(fifo, 95)'\n  \
    firstbyte lab sweep mine.toml --vary path.rtt=10ms,100ms --vary \
    server.set.net.ipv4.tcp_sack=0,1 --csv out.csv\n\n\
    Every combination is run with every seed. All parts of a sweep (--shard) have the same \
    columns: combine their CSV or Parquet files with DuckDB, pandas or Spark.")]
pub(super) struct SweepArgs {
    /// Name of a built-in scenario that is a file, or a scenario file
    pub(super) what: String,
    /// Key of the file and its values; `run.NAME.KEY` for a single run. Repeatable
    #[arg(long, value_name = "KEY=VALUES")]
    pub(super) vary: Vec<Axis>,
    /// Run each combination with N seeds, starting at --seed
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true, value_parser = whole(1..=1_000_000))]
    pub(super) repeat: u32,
    /// Measure this, such as 'goodput()' [default: the values that the file checks]. Repeatable
    #[arg(long, value_name = "FORMULA")]
    pub(super) measure: Vec<String>,
    /// Run only part I of N, such as 2/5, to use several machines
    #[arg(long, value_name = "I/N", value_parser = part)]
    pub(super) shard: Option<(usize, usize)>,
    /// Limit the resources of each run, such as packets=20000000,hosts=100000,memory=8GB [default:
    /// packets=5000000,hosts=20000,memory=4GB]
    #[arg(long, value_name = "WHAT=N,…")]
    pub(super) limit: Option<Limits>,
    #[command(flatten)]
    pub(super) output: SweepOutput,
}

/// Output of a sweep.
#[derive(Args, Debug)]
pub(super) struct SweepOutput {
    /// First seed [default: 1, or the file's]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seed)]
    pub(super) seed: Option<u64>,
    /// Print every run as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Write a row for each run to FILE, as CSV
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Write a row for each run to FILE, as Parquet
    #[arg(long, value_name = "FILE")]
    pub(super) parquet: Option<PathBuf>,
    /// Write tables, curves and distributions to FILE as an HTML page
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Write the pictures to FILE as SVG, with the first 40 packets of each ladder
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
}

fn seed(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "expected a whole number, such as 1")
}

fn part(text: &str) -> Result<(usize, usize), String> {
    let numbers = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    numbers.filter(|(i, n)| (1..=*n).contains(i)).ok_or_else(|| "write I/N with 1 ≤ I ≤ N, e.g. 2/5".into())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser, Debug)]
    struct Command {
        #[command(flatten)]
        lab: LabArgs,
    }

    pub(in crate::lab) fn parse(line: &str) -> Result<LabArgs, String> {
        let words = std::iter::once("lab").chain(line.split_whitespace());
        Command::try_parse_from(words).map(|command| command.lab).map_err(|error| error.to_string())
    }

    #[test]
    fn parts_lie_within_the_whole() {
        assert_eq!(part("2/5"), Ok((2, 5)));
        for wrong in ["0/5", "6/5", "5", "a/b", "1/0"] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn round_trips_have_units() {
        assert_eq!(round_trip("170ms"), Ok(Duration::from_millis(170)));
        assert_eq!(round_trip("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(round_trip("30us"), Ok(Duration::from_micros(30)));
        for wrong in ["170", "0ms", "61s", "-1ms", "ms", "1e9s", "nan s", "NaNs"] {
            assert!(round_trip(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_scenario_of_the_catalogue_is_a_subcommand() {
        for entry in CATALOGUE {
            let parsed = parse(&format!("{} --rtt 20ms --seed 7", entry.name)).unwrap();
            assert!(!matches!(parsed.scenario, None | Some(Scenario::Unknown(_))), "{}", entry.name);
            assert!(!about(entry.name).is_empty());
        }
    }

    #[test]
    fn the_kernel_is_at_one_end_at_least_of_what_is_measured() {
        for (words, whose) in [
            ("kernel", Ok([Whose::Kernel; 2])),
            ("kernel,firstbyte", Ok([Whose::Kernel, Whose::Firstbyte])),
            ("firstbyte,kernel", Ok([Whose::Firstbyte, Whose::Kernel])),
            ("firstbyte", Err("needs the kernel")),
            ("firstbyte,firstbyte", Err("needs the kernel")),
            ("kernel,bsd", Err("`bsd` is not a TCP")),
        ] {
            match (words.parse::<Hosts>(), whose) {
                (Ok(Hosts(read)), Ok(whose)) => assert_eq!(read, whose),
                (Err(error), Err(part)) => assert!(error.contains(part), "{words}: {error}"),
                (read, _) => panic!("{words}: {read:?}"),
            }
        }
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for line in [
            "fast-open --count 0",
            "qlen --qlen 0",
            "big-request --mtu 100",
            "packets --rtt 5",
            "textbook --lose last:3",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
