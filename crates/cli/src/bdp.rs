//! `firstbyte bdp`: what a path of a rate and a round trip needs of windows and buffers.
use crate::failure::Failure;
use crate::terminal::print;
use crate::values;
use clap::Args;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

/// Say how much must be in flight to fill a path, and which windows and buffers that takes.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  firstbyte bdp 100mbit 20ms")]
pub(crate) struct BdpArgs {
    /// Rate of its slowest link, as `100mbit`, `2.5gbit` or `512kbit`.
    #[arg(value_parser = values::rate)]
    rate: u64,
    /// Its round trip, as `20ms`.
    #[arg(value_parser = values::positive_duration)]
    rtt: Duration,
    /// Payload of a segment, bytes: 1448 is what 1500 leave beside IPv4 and timestamps.
    #[arg(long, default_value_t = 1448, allow_negative_numbers = true, value_parser = values::whole(8..=65_535))]
    mss: u32,
    /// Segments of the first flight.
    #[arg(long, default_value_t = 10, allow_negative_numbers = true, value_parser = values::whole(1..=1000))]
    initcwnd: u32,
    /// The figures as JSON.
    #[arg(long)]
    json: bool,
}

/// The largest window without scaling, bytes.
const UNSCALED: u128 = 65_535;

/// What follows from rate and round trip.
#[derive(Debug, PartialEq, Eq)]
struct Needs {
    /// Bandwidth-delay product, bytes.
    bdp: u128,
    segments: u128,
    /// Bits per second of a window of 65535 bytes.
    unscaled_rate: u128,
    /// Least shift whose windows reach that far; more than 14 are none.
    shift: u32,
    /// Round trips of slow start until so much is in flight.
    rounds: u32,
}

impl Needs {
    fn new(args: &BdpArgs) -> Needs {
        let nanos = args.rtt.as_nanos();
        let bdp = u128::from(args.rate) * nanos / 8_000_000_000;
        let segments = bdp.div_ceil(args.mss.into());
        let shift = (0..).find(|shift| UNSCALED << shift >= bdp).unwrap_or(u32::MAX);
        let first = u128::from(args.initcwnd);
        let rounds = (0..).find(|rounds| first << rounds >= segments).unwrap_or(u32::MAX);
        Needs { bdp, segments, unscaled_rate: UNSCALED * 8_000_000_000 / nanos.max(1), shift, rounds }
    }

    fn text(&self, args: &BdpArgs) -> String {
        let rtt = args.rtt;
        let mut text = format!(
            "{} × {rtt:?} = {} bytes in flight: {} segments of {}\n",
            values::show_rate(args.rate.into()),
            self.bdp,
            self.segments,
            args.mss
        );
        text += &match self.shift {
            0 => "window: 65535 bytes reach, even without window scaling\n".to_owned(),
            1..=14 => format!(
                "window: a scale of {} or more; without window scaling {} at most\n",
                self.shift,
                values::show_rate(self.unscaled_rate)
            ),
            _ => "window: more than TCP's largest, 1 GiB: several connections are needed\n".to_owned(),
        };
        text += &format!(
            "send buffer: {} bytes (SO_SNDBUF, or the last of net.ipv4.tcp_wmem); more brings nothing\n\
             receive buffer: {} bytes (the last of net.ipv4.tcp_rmem; about half of it is room for payload)\n\
             slow start: {} round trips ({:?}) until so much is in flight, from {} segments on\n",
            self.bdp,
            2 * self.bdp,
            self.rounds,
            rtt.saturating_mul(self.rounds),
            args.initcwnd
        );
        text
    }
}

/// Runs the verb.
pub(crate) fn run(args: &BdpArgs) -> Result<ExitCode, Failure> {
    let needs = Needs::new(args);
    if args.json {
        let figures = json!({
            "rate_bps": args.rate,
            "rtt_ms": args.rtt.as_secs_f64() * 1e3,
            "bdp_bytes": needs.bdp as u64,
            "segments": needs.segments as u64,
            "window_scale": needs.shift,
            "unscaled_rate_bps": needs.unscaled_rate as u64,
            "send_buffer_bytes": needs.bdp as u64,
            "receive_buffer_bytes": 2 * needs.bdp as u64,
            "slow_start_rounds": needs.rounds,
        });
        return print(&format!("{figures:#}\n"));
    }
    print(&needs.text(args))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(rate: &str, rtt: &str) -> BdpArgs {
        BdpArgs {
            rate: values::rate(rate).unwrap(),
            rtt: values::duration(rtt).unwrap(),
            mss: 1448,
            initcwnd: 10,
            json: false,
        }
    }

    /// 0.02 s × 100 Mbit/s / 8 = 250 KB, and 65535 bytes in 35 ms are 1.87 MB/s.
    #[test]
    fn the_figures_of_the_textbook() {
        let needs = Needs::new(&args("100mbit", "20ms"));
        assert_eq!(
            needs,
            Needs { bdp: 250_000, segments: 173, unscaled_rate: 26_214_000, shift: 2, rounds: 5 }
        );
        assert_eq!(Needs::new(&args("1gbit", "35ms")).unscaled_rate / 8, 1_872_428);
        let small = Needs::new(&args("1mbit", "20ms"));
        assert_eq!((small.bdp, small.shift, small.rounds), (2500, 0, 0));
        assert_eq!(Needs::new(&args("100gbit", "100ms")).shift, 15, "1.25 GB");
    }

    #[test]
    fn the_text_says_what_to_set() {
        let args = args("100mbit", "20ms");
        let text = Needs::new(&args).text(&args);
        for part in [
            "100 Mbit/s × 20ms = 250000 bytes in flight: 173 segments of 1448",
            "a scale of 2 or more; without window scaling 26.214 Mbit/s at most",
            "send buffer: 250000 bytes",
            "receive buffer: 500000 bytes",
            "slow start: 5 round trips (100ms) until so much is in flight, from 10 segments on",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
