//! `firstbyte lab`: experiments in virtual time. Parses arguments, runs a scenario of the `lab` crate, prints its report.

use crate::failure::Failure;
use crate::terminal::page_style;
use ::lab::network::Profile;
use ::lab::report::{Page, Report, traces, write_pcapng, write_series};
use ::lab::scenario::{self, CATALOGUE};
use clap::{Args, Subcommand, ValueEnum};
use firstbyte::CongestionControl;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Run an experiment in virtual time: no root, no network, the same result every time.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  firstbyte lab fast-open --rtt 170ms --count 10\n  firstbyte lab packets\n  \
                  firstbyte lab middlebox --pcap middlebox.pcapng --json",
    subcommand_value_name = "SCENARIO",
    subcommand_help_heading = "Scenarios",
    disable_help_subcommand = true
)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    scenario: Option<Scenario>,
}

#[derive(Subcommand, Debug)]
enum Scenario {
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
    #[command(external_subcommand)]
    Unknown(Vec<String>),
}

/// What every scenario takes.
#[derive(Args, Debug)]
struct OutputArgs {
    /// Seed of everything random; the same seed gives the same packets.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
    /// Write the packets to FILE (pcapng, with comments: `frame.comment` in Wireshark and tshark).
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write windows, thresholds and round trips to FILE whenever they change, as comma-separated values.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Tell what happened inside both ends, packet by packet: states, windows, round trips, what limits a sender, what goes again and why.
    #[arg(long)]
    trace: bool,
}

#[derive(Args, Debug)]
struct FastOpenArgs {
    /// Round-trip time of the path, e.g. 170ms, 1.5s, 30us.
    #[arg(long, default_value = "170ms", value_parser = round_trip)]
    rtt: Duration,
    /// Requests, each on a connection of its own.
    #[arg(short = 'c', long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,
    /// Length of a request, bytes.
    #[arg(long, default_value_t = 200, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    request: u32,
    /// Length of a reply, bytes.
    #[arg(long, default_value_t = 500, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    reply: u32,
    /// Whose settings and habits both ends have.
    #[arg(long, value_enum, default_value_t = ProfileArg::Firstbyte)]
    profile: ProfileArg,
    /// IPv6 instead of IPv4.
    #[arg(short = '6', long)]
    ipv6: bool,
    /// Forget cookie and path before each request, as `ip tcp_metrics flush` does.
    #[arg(long)]
    forget: bool,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args, Debug)]
struct PacketsArgs {
    /// Round-trip time of the path.
    #[arg(long, default_value = "40ms", value_parser = round_trip)]
    rtt: Duration,
    /// Length of the request, bytes.
    #[arg(long, default_value_t = 27, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    request: u32,
    /// Length of the reply, bytes.
    #[arg(long, default_value_t = 43, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    reply: u32,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args, Debug)]
struct FallbackArgs {
    /// Round-trip time of the path.
    #[arg(long, default_value = "20ms", value_parser = round_trip)]
    rtt: Duration,
    /// Length of a request, bytes.
    #[arg(long, default_value_t = 200, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    request: u32,
    /// Length of a reply, bytes.
    #[arg(long, default_value_t = 500, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    reply: u32,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args, Debug)]
struct MiddleboxArgs {
    /// Round-trip time of the path.
    #[arg(long, default_value = "40ms", value_parser = round_trip)]
    rtt: Duration,
    /// Visits through the middlebox.
    #[arg(short = 'c', long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    count: u32,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args, Debug)]
struct QlenArgs {
    /// Round-trip time of the path.
    #[arg(long, default_value = "200ms", value_parser = round_trip)]
    rtt: Duration,
    /// Connections opened at the same moment.
    #[arg(long, default_value_t = 6, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: u32,
    /// The listener's Fast Open queue length.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    qlen: u32,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args, Debug)]
struct BigRequestArgs {
    /// Round-trip time of the path.
    #[arg(long, default_value = "100ms", value_parser = round_trip)]
    rtt: Duration,
    /// Length of the request, bytes.
    #[arg(long, default_value_t = 10_000, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    request: u32,
    /// Largest IP packet of both hosts, bytes.
    #[arg(long, default_value_t = 1500, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(576..=65_535))]
    mtu: u32,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args, Debug)]
struct FlagsArgs {
    /// Round-trip time of the path.
    #[arg(long, default_value = "40ms", value_parser = round_trip)]
    rtt: Duration,
    /// Whose settings and habits both ends have.
    #[arg(long, value_enum, default_value_t = ProfileArg::Firstbyte)]
    profile: ProfileArg,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args, Debug)]
struct ReplayArgs {
    /// Round-trip time of the path.
    #[arg(long, default_value = "40ms", value_parser = round_trip)]
    rtt: Duration,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args, Debug)]
struct CongestionArgs {
    /// Round-trip time of the path with empty queues.
    #[arg(long, default_value = "40ms", value_parser = round_trip)]
    rtt: Duration,
    /// Congestion control, several with commas.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "cubic,bbr")]
    algorithm: Vec<AlgorithmArg>,
    /// Rate of the bottleneck, Mbit/s.
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    mbit: u32,
    /// Its queue, percent of what fills the pipe.
    #[arg(long, default_value_t = 100, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    queue: u32,
    /// Packets lost at random, per thousand.
    #[arg(long, default_value_t = 0, value_name = "PER_THOUSAND", value_parser = clap::value_parser!(u32).range(0..=500))]
    loss: u32,
    /// Length of the download, kB.
    #[arg(long, default_value_t = 5000, value_name = "KB", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    size: u32,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum AlgorithmArg {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic,
    /// By delay.
    Vegas,
    /// What came before Reno: every loss starts over.
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
enum ProfileArg {
    /// This project's defaults.
    Firstbyte,
    /// What Linux 6.18 does.
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

/// Runs the verb.
///
/// # Errors
/// A sentence that says what to do: an unknown scenario, a file that cannot be written.
pub(crate) fn run(args: LabArgs) -> Result<ExitCode, Failure> {
    match args.scenario {
        None => print(&list()),
        Some(Scenario::Unknown(words)) => {
            let names: Vec<&str> = CATALOGUE.iter().map(|entry| entry.name).collect();
            let name = words.first().map_or("", String::as_str);
            Err(Failure::usage(format!("there is no scenario `{name}`; choose one of: {}", names.join(", "))))
        }
        Some(scenario) => {
            let (report, output) = perform(scenario);
            show(&*report, &output)
        }
    }
}

fn perform(scenario: Scenario) -> (Box<dyn Report>, OutputArgs) {
    match scenario {
        Scenario::FastOpen(FastOpenArgs { rtt, count, request, reply, profile, ipv6, forget, output }) => {
            let (count, request_len, reply_len) = (size(count), size(request), size(reply));
            let (profile, seed) = (profile.into(), output.seed);
            let params = scenario::fast_open::Params {
                rtt,
                count,
                request_len,
                reply_len,
                profile,
                ipv6,
                forget,
                seed,
            };
            (Box::new(scenario::fast_open::run(&params)), output)
        }
        Scenario::Packets(PacketsArgs { rtt, request, reply, output }) => {
            let (request_len, reply_len) = (size(request), size(reply));
            let params = scenario::packets::Params { rtt, request_len, reply_len, seed: output.seed };
            (Box::new(scenario::packets::run(&params)), output)
        }
        Scenario::Fallback(FallbackArgs { rtt, request, reply, output }) => {
            let (request_len, reply_len) = (size(request), size(reply));
            let params = scenario::fallback::Params { rtt, request_len, reply_len, seed: output.seed };
            (Box::new(scenario::fallback::run(&params)), output)
        }
        Scenario::Middlebox(MiddleboxArgs { rtt, count, output }) => {
            let params = scenario::middlebox::Params { rtt, count: size(count), seed: output.seed };
            (Box::new(scenario::middlebox::run(&params)), output)
        }
        Scenario::Qlen(QlenArgs { rtt, clients, qlen, output }) => {
            let params = scenario::qlen::Params { rtt, clients: size(clients), qlen, seed: output.seed };
            (Box::new(scenario::qlen::run(&params)), output)
        }
        Scenario::BigRequest(BigRequestArgs { rtt, request, mtu, output }) => {
            let (request_len, mtu) = (size(request), size(mtu));
            let params = scenario::big_request::Params { rtt, request_len, mtu, seed: output.seed };
            (Box::new(scenario::big_request::run(&params)), output)
        }
        Scenario::Flags(FlagsArgs { rtt, profile, output }) => {
            let params = scenario::flags::Params { rtt, profile: profile.into(), seed: output.seed };
            (Box::new(scenario::flags::run(&params)), output)
        }
        Scenario::Replay(ReplayArgs { rtt, output }) => {
            let params = scenario::replay::Params { rtt, seed: output.seed };
            (Box::new(scenario::replay::run(&params)), output)
        }
        Scenario::Congestion(CongestionArgs { rtt, algorithm, mbit, queue, loss, size: kb, output }) => {
            let params = scenario::congestion::Params {
                algorithms: algorithm.into_iter().map(CongestionControl::from).collect(),
                rtt,
                rate: u64::from(mbit) * 1_000_000,
                queue_percent: queue,
                loss_percent: f64::from(loss) / 10.0,
                len: size(kb) * 1000,
                seed: output.seed,
            };
            (Box::new(scenario::congestion::run(&params)), output)
        }
        Scenario::Unknown(_) => unreachable!("`run` answers it"),
    }
}

fn show(report: &dyn Report, output: &OutputArgs) -> Result<ExitCode, Failure> {
    if let Some(path) = &output.pcap {
        write_pcap(report, path).map_err(|error| Failure::file("write", path, &error))?;
    }
    if let Some(path) = &output.csv {
        write_csv(report, path).map_err(|error| Failure::file("write", path, &error))?;
    }
    if output.json {
        let mut values = report.json();
        if output.trace {
            values["trace"] = traces(&report.recordings()).into_iter().collect();
        }
        return print(&format!("{values:#}\n"));
    }
    let mut page = Page::new(page_style());
    report.render(&mut page);
    if let Some(path) = &output.pcap {
        page.gap();
        page.line(&format!(
            "Packets are in {}; remarks on them are packet comments (frame.comment).",
            path.display()
        ));
    }
    if let Some(path) = &output.csv {
        page.gap();
        page.line(&format!("Windows and round trips are in {}, a row for each change.", path.display()));
    }
    if output.trace {
        for (name, lines) in traces(&report.recordings()) {
            page.heading(&format!("Trace of {name}: ms, end, connection, what"));
            lines.iter().for_each(|line| page.line(line));
        }
    }
    print(&page.into_text())
}

fn write_pcap(report: &dyn Report, path: &Path) -> io::Result<()> {
    write_pcapng(BufWriter::new(File::create(path)?), &report.recordings())
}

fn write_csv(report: &dyn Report, path: &Path) -> io::Result<()> {
    write_series(BufWriter::new(File::create(path)?), &report.recordings())
}

fn list() -> String {
    let mut text = String::from("Scenarios:\n");
    for entry in CATALOGUE {
        text.push_str(&format!("  {:<12} {}\n", entry.name, entry.summary));
    }
    text.push_str("\nStart with: firstbyte lab fast-open --rtt 170ms --count 10\n");
    text.push_str("Options of one: firstbyte lab SCENARIO --help\n");
    text
}

/// A reader that has gone (`| head`) is no error.
fn print(text: &str) -> Result<ExitCode, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn about(name: &str) -> &'static str {
    CATALOGUE.iter().find(|entry| entry.name == name).map_or("", |entry| entry.summary)
}

fn size(number: u32) -> usize {
    number as usize
}

/// Shortest and longest round trip that makes sense here.
const RTT_RANGE: (Duration, Duration) = (Duration::from_micros(1), Duration::from_secs(60));

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
        return Err("a round trip takes from 1us to 60s".into());
    }
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser, Debug)]
    struct Command {
        #[command(flatten)]
        lab: LabArgs,
    }

    fn parse(line: &str) -> Result<LabArgs, String> {
        let words = std::iter::once("lab").chain(line.split_whitespace());
        Command::try_parse_from(words).map(|command| command.lab).map_err(|error| error.to_string())
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
    fn values_hold_the_trace_where_it_is_asked_for() {
        let (report, output) = perform(parse("packets --json --trace").unwrap().scenario.unwrap());
        assert!(output.trace && output.json);
        assert!(!traces(&report.recordings()).is_empty());
        assert!(report.json().is_object(), "the trace is put in");
    }

    #[test]
    fn an_unknown_scenario_is_answered_with_the_names() {
        let names = CATALOGUE.map(|entry| entry.name).join(", ");
        let failure = Failure::usage(format!("there is no scenario `fast-opne`; choose one of: {names}"));
        assert_eq!(run(parse("fast-opne").unwrap()), Err(failure));
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for line in ["fast-open --count 0", "qlen --qlen 0", "big-request --mtu 100", "packets --rtt 5"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let error = io::Error::from_raw_os_error(2);
        let path = Path::new("/nonexistent/x");
        for option in ["--pcap", "--csv"] {
            assert_eq!(
                run(parse(&format!("qlen {option} /nonexistent/x")).unwrap()),
                Err(Failure::file("write", path, &error))
            );
        }
    }
}
