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
        // Less than a byte in flight would leave the path idle.
        let bdp = (u128::from(args.rate) * nanos).div_ceil(8_000_000_000);
        let segments = bdp.div_ceil(args.mss.into());
        let shift = (0..).find(|shift| UNSCALED << shift >= bdp).unwrap_or(u32::MAX);
        let first = u128::from(args.initcwnd);
        let rounds = (0..).find(|rounds| first << rounds >= segments).unwrap_or(u32::MAX);
        Needs { bdp, segments, unscaled_rate: UNSCALED * 8_000_000_000 / nanos.max(1), shift, rounds }
    }

    fn text(&self, args: &BdpArgs) -> String {
        let rtt = args.rtt;
        let mut text = format!(
            "{} × {rtt:?} = {} in flight: {} of {} bytes\n",
            values::show_rate(args.rate.into()),
            values::counted(self.bdp, "byte", "bytes"),
            values::counted(self.segments, "segment", "segments"),
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
            "send buffer: {} (SO_SNDBUF, or the last of net.ipv4.tcp_wmem); more brings nothing\n\
             receive buffer: {} bytes (the last of net.ipv4.tcp_rmem; about half of it is room for payload)\n\
             slow start: {}, from {} on\n",
            values::counted(self.bdp, "byte", "bytes"),
            2 * self.bdp,
            match self.rounds {
                0 => "none is needed: the first flight fills the path".to_owned(),
                rounds => format!(
                    "{} ({:?}) until so much is in flight",
                    values::counted(rounds, "round trip", "round trips"),
                    rtt.saturating_mul(rounds)
                ),
            },
            values::counted(args.initcwnd, "segment", "segments")
        );
        text
    }

    /// The least shift; `None` where not even the greatest reaches (RFC 7323 section 2.3).
    fn window_scale(&self) -> Option<u32> {
        Some(self.shift).filter(|shift| *shift <= 14)
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
            "window_scale": needs.window_scale(),
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
            "100 Mbit/s × 20ms = 250000 bytes in flight: 173 segments of 1448 bytes\n",
            "a scale of 2 or more; without window scaling 26.214 Mbit/s at most",
            "send buffer: 250000 bytes",
            "receive buffer: 500000 bytes",
            "slow start: 5 round trips (100ms) until so much is in flight, from 10 segments on",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn little_is_said_in_the_singular_and_never_nothing() {
        let text = |rate, rtt| {
            let args = args(rate, rtt);
            Needs::new(&args).text(&args)
        };
        let least = text("1bit", "1ms");
        assert!(least.starts_with("1 bit/s × 1ms = 1 byte in flight: 1 segment of 1448 bytes\n"), "{least}");
        assert!(least.contains("slow start: none is needed: the first flight fills the path"), "{least}");
        let twice = text("2mbit", "100ms");
        assert!(twice.contains("slow start: 1 round trip (100ms) until"), "{twice}");
    }

    #[test]
    fn no_window_scale_is_named_that_tcp_does_not_have() {
        assert_eq!(Needs::new(&args("100mbit", "20ms")).window_scale(), Some(2));
        assert_eq!(Needs::new(&args("100gbit", "100ms")).window_scale(), None);
    }
}
