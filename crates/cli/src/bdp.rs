//! `firstbyte bdp`: windows and buffers that fill a path of a given rate and round-trip time.
use crate::failure::Failure;
use crate::terminal::print;
use crate::values;
use clap::Args;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

/// Compute the bandwidth-delay product of a path, and the windows and buffers that fill it.
#[derive(Args, Debug)]
#[command(
    override_usage = "firstbyte bdp [OPTIONS] <RATE> <RTT>",
    after_help = "Examples:\n  firstbyte bdp 100mbit 20ms\n  firstbyte bdp 12.5MB/s 10ms --json"
)]
pub(crate) struct BdpArgs {
    /// Rate of the slowest link, e.g. 100mbit, 100Mbit/s, 1Gbps or 12.5MB/s (b: bits, B: bytes),
    /// then round-trip time, e.g. 20ms.
    #[arg(required = true, value_names = ["RATE", "RTT"], num_args = 2..)]
    path: Vec<String>,
    /// Payload of a segment in bytes; 1448 fits an MTU of 1500 with IPv4 and timestamps.
    #[arg(long, default_value_t = 1448, allow_negative_numbers = true, value_parser = values::whole(8..=65_535))]
    mss: u32,
    /// Initial congestion window, in segments.
    #[arg(long, default_value_t = 10, allow_negative_numbers = true, value_parser = values::whole(1..=1000))]
    initcwnd: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The largest window without scaling, bytes.
const UNSCALED: u128 = 65_535;

/// The rate and round-trip time of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Path {
    /// Bits per second.
    rate: u64,
    rtt: Duration,
}

impl Path {
    /// Reads two quantities. A shell splits `10 ms` into two words, so a number without a unit
    /// takes the next word.
    fn parse(words: &[String]) -> Result<Path, Failure> {
        let mut parts: Vec<String> = Vec::new();
        for word in words {
            match parts.last_mut() {
                Some(last) if last.parse::<f64>().is_ok() && word.starts_with(char::is_alphabetic) => {
                    last.push_str(word);
                }
                _ => parts.push(word.clone()),
            }
        }
        let wrong = |what: &str, part: &str, told: String| {
            Failure::usage(format!("cannot read `{part}` as a {what}: {told}"))
        };
        match &parts[..] {
            [rate, rtt] => Ok(Path {
                rate: values::rate(rate).map_err(|told| wrong("rate", rate, told))?,
                rtt: values::positive_duration(rtt).map_err(|told| wrong("round-trip time", rtt, told))?,
            }),
            _ => Err(Failure::usage(format!(
                "cannot read `{}`: expected a rate and a round-trip time, e.g. `firstbyte bdp 100mbit 20ms`",
                words.join(" ")
            ))),
        }
    }
}

/// Values derived from a path.
#[derive(Debug, PartialEq, Eq)]
struct Needs {
    /// Bandwidth-delay product, bytes.
    bdp: u128,
    segments: u128,
    /// Bits per second with a window of 65535 bytes.
    unscaled_rate: u128,
    /// The smallest window scale that covers the product; TCP allows at most 14.
    shift: u32,
    /// Round trips of slow start until the path is full.
    rounds: u32,
}

impl Needs {
    fn new(path: Path, args: &BdpArgs) -> Needs {
        let nanos = path.rtt.as_nanos();
        // Rounded up: a product below one byte would leave the path idle.
        let bdp = (u128::from(path.rate) * nanos).div_ceil(8_000_000_000);
        let segments = bdp.div_ceil(args.mss.into());
        let shift = (0..).find(|shift| UNSCALED << shift >= bdp).unwrap_or(u32::MAX);
        let first = u128::from(args.initcwnd);
        let rounds = (0..).find(|rounds| first << rounds >= segments).unwrap_or(u32::MAX);
        Needs { bdp, segments, unscaled_rate: UNSCALED * 8_000_000_000 / nanos.max(1), shift, rounds }
    }

    fn text(&self, path: Path, args: &BdpArgs) -> String {
        let rtt = path.rtt;
        let mut text = format!(
            "{} × {rtt:?} = {} in flight: {} of {} bytes\n",
            values::show_rate(path.rate.into()),
            values::counted(self.bdp, "byte", "bytes"),
            values::counted(self.segments, "segment", "segments"),
            args.mss
        );
        text += &match self.shift {
            0 => "window: 65535 bytes suffice, even without window scaling\n".to_owned(),
            1..=14 => format!(
                "window: scale {} or more; without window scaling at most {}\n",
                self.shift,
                values::show_rate(self.unscaled_rate)
            ),
            _ => "window: larger than TCP's maximum of 1 GiB; use several connections\n".to_owned(),
        };
        text += &format!(
            "send buffer: {} (SO_SNDBUF, or the last value of net.ipv4.tcp_wmem); more has no effect\n\
             receive buffer: {} bytes (the last value of net.ipv4.tcp_rmem; about half holds payload)\n\
             slow start: {}, starting with {}\n",
            values::counted(self.bdp, "byte", "bytes"),
            2 * self.bdp,
            match self.rounds {
                0 => "not needed, the initial window fills the path".to_owned(),
                rounds => format!(
                    "{} ({:?}) until the path is full",
                    values::counted(rounds, "round trip", "round trips"),
                    rtt.saturating_mul(rounds)
                ),
            },
            values::counted(args.initcwnd, "segment", "segments")
        );
        text
    }

    /// Returns the window scale, or `None` if it exceeds TCP's maximum (RFC 7323 section 2.3).
    fn window_scale(&self) -> Option<u32> {
        Some(self.shift).filter(|shift| *shift <= 14)
    }
}

/// Runs the verb.
pub(crate) fn run(args: &BdpArgs) -> Result<ExitCode, Failure> {
    let path = Path::parse(&args.path)?;
    let needs = Needs::new(path, args);
    if args.json {
        let figures = json!({
            "rate_bps": path.rate,
            "rtt_ms": path.rtt.as_secs_f64() * 1e3,
            "bdp_bytes": needs.bdp as u64,
            "segments": needs.segments as u64,
            "window_scale": needs.window_scale(),
            "unscaled_rate_bps": needs.unscaled_rate as u64,
            "send_buffer_bytes": needs.bdp as u64,
            "receive_buffer_bytes": 2 * needs.bdp as u64,
            "slow_start_rounds": needs.rounds,
        });
        return print(&format!("{figures:#}\n"));
    }
    print(&needs.text(path, args))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(rate: &str, rtt: &str) -> BdpArgs {
        BdpArgs { path: vec![rate.to_owned(), rtt.to_owned()], mss: 1448, initcwnd: 10, json: false }
    }

    fn needs(rate: &str, rtt: &str) -> Needs {
        let args = args(rate, rtt);
        Needs::new(Path::parse(&args.path).unwrap(), &args)
    }

    fn text(rate: &str, rtt: &str) -> String {
        let args = args(rate, rtt);
        let path = Path::parse(&args.path).unwrap();
        Needs::new(path, &args).text(path, &args)
    }

    fn path(line: &str) -> Result<Path, Failure> {
        Path::parse(&line.split('|').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn rates_and_times_are_read_as_people_write_them() {
        let ten_ms = |rate| Path { rate, rtt: Duration::from_millis(10) };
        for (line, rate) in [
            ("100MB/s|10ms", 800_000_000),
            ("100Mbit/s|10ms", 100_000_000),
            ("12.5MB/s|10 ms", 100_000_000),
            ("1Gbps|10|ms", 1_000_000_000),
            ("100|mbit|10|ms", 100_000_000),
        ] {
            assert_eq!(path(line), Ok(ten_ms(rate)), "{line}");
        }
        for (line, part) in [
            ("100|20ms", "expected a rate with a unit"),
            ("100mbit|20", "cannot read `20` as a round-trip time"),
            ("100mbit|20ms|5", "expected a rate and a round-trip time"),
            ("100mbit|0ms", "expected a time above 0"),
        ] {
            assert!(path(line).unwrap_err().message().contains(part), "{line}: {:?}", path(line));
        }
    }

    /// 0.02 s × 100 Mbit/s / 8 = 250 KB, and 65535 bytes in 35 ms are 1.87 MB/s.
    #[test]
    fn the_figures_of_the_textbook() {
        assert_eq!(
            needs("100mbit", "20ms"),
            Needs { bdp: 250_000, segments: 173, unscaled_rate: 26_214_000, shift: 2, rounds: 5 }
        );
        assert_eq!(needs("1gbit", "35ms").unscaled_rate / 8, 1_872_428);
        let small = needs("1mbit", "20ms");
        assert_eq!((small.bdp, small.shift, small.rounds), (2500, 0, 0));
        assert_eq!(needs("100gbit", "100ms").shift, 15, "1.25 GB");
    }

    #[test]
    fn the_text_says_what_to_set() {
        let text = text("100mbit", "20ms");
        for part in [
            "100 Mbit/s × 20ms = 250000 bytes in flight: 173 segments of 1448 bytes\n",
            "scale 2 or more; without window scaling at most 26.214 Mbit/s",
            "send buffer: 250000 bytes",
            "receive buffer: 500000 bytes",
            "slow start: 5 round trips (100ms) until the path is full, starting with 10 segments",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn little_is_said_in_the_singular_and_never_nothing() {
        let least = text("1bit", "1ms");
        assert!(least.starts_with("1 bit/s × 1ms = 1 byte in flight: 1 segment of 1448 bytes\n"), "{least}");
        assert!(least.contains("slow start: not needed, the initial window fills the path"), "{least}");
        let twice = text("2mbit", "100ms");
        assert!(twice.contains("slow start: 1 round trip (100ms) until"), "{twice}");
    }

    #[test]
    fn no_window_scale_is_named_that_tcp_does_not_have() {
        assert_eq!(needs("100mbit", "20ms").window_scale(), Some(2));
        assert_eq!(needs("100gbit", "100ms").window_scale(), None);
    }
}
