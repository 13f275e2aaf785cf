//! Numbers with units as tc (iproute2 6) reads and writes them.

use alloc::borrow::ToOwned;
use alloc::string::String;

/// tc's clock in the kernel's units: 64 ns a tick (`/proc/net/psched`).
const TICKS_PER_MICRO: f64 = 15.625;
const MICROS_PER_SECOND: f64 = 1_000_000.0;
/// Nanoseconds of a tick, as a shift.
const TICK_SHIFT: u32 = 6;

/// Splits `12.5mbit` into its number and its suffix; as C's `strtod` does, the number is the longest that can be read.
fn split(word: &str) -> Option<(f64, &str)> {
    let end = |text: &str| {
        let mut end = 0;
        let (mut dot, mut digits) = (false, false);
        for (at, c) in text.char_indices() {
            match c {
                '+' | '-' if at == 0 => {}
                '0'..='9' => digits = true,
                '.' if !dot => dot = true,
                _ => break,
            }
            end = at + c.len_utf8();
        }
        digits.then_some(end)
    };
    let (number, suffix) = word.split_at(end(word)?);
    Some((number.parse().ok()?, suffix))
}

/// What a suffix multiplies by.
type Suffix = (&'static str, f64);

fn scaled(word: &str, bare: f64, suffixes: &[Suffix]) -> Option<f64> {
    let (number, suffix) = split(word)?;
    if suffix.is_empty() {
        return Some(number * bare);
    }
    let (_, factor) = suffixes.iter().find(|(name, _)| name.eq_ignore_ascii_case(suffix))?;
    Some(number * factor)
}

const RATES: &[Suffix] = &[
    ("bit", 1.0),
    ("kibit", 1024.0),
    ("kbit", 1e3),
    ("mibit", 1024.0 * 1024.0),
    ("mbit", 1e6),
    ("gibit", 1024.0 * 1024.0 * 1024.0),
    ("gbit", 1e9),
    ("tibit", 1024.0 * 1024.0 * 1024.0 * 1024.0),
    ("tbit", 1e12),
    ("bps", 8.0),
    ("kibps", 8.0 * 1024.0),
    ("kbps", 8e3),
    ("mibps", 8.0 * 1024.0 * 1024.0),
    ("mbps", 8e6),
    ("gibps", 8.0 * 1024.0 * 1024.0 * 1024.0),
    ("gbps", 8e9),
    ("tibps", 8.0 * 1024.0 * 1024.0 * 1024.0 * 1024.0),
    ("tbps", 8e12),
];

/// A rate, bytes per second; a bare number is bit/s.
pub(super) fn rate(word: &str) -> Option<u64> {
    let bits = scaled(word, 1.0, RATES)?;
    (bits >= 0.0).then_some((bits / 8.0) as u64)
}

const SIZES: &[Suffix] = &[
    ("kb", 1024.0),
    ("k", 1024.0),
    ("mb", 1024.0 * 1024.0),
    ("m", 1024.0 * 1024.0),
    ("gb", 1024.0 * 1024.0 * 1024.0),
    ("g", 1024.0 * 1024.0 * 1024.0),
    ("kbit", 1024.0 / 8.0),
    ("mbit", 1024.0 * 1024.0 / 8.0),
    ("gbit", 1024.0 * 1024.0 * 1024.0 / 8.0),
    ("b", 1.0),
];

/// A size, bytes.
pub(super) fn size(word: &str) -> Option<u32> {
    let bytes = scaled(word, 1.0, SIZES)?;
    (0.0..=f64::from(u32::MAX)).contains(&bytes).then_some(bytes as u32)
}

/// A size and the width of its cells: `15k` or `15k/8`. The cells concern only kernels that used rate tables.
pub(super) fn size_and_cell(word: &str) -> Option<u32> {
    match word.split_once('/') {
        None => size(word),
        Some((bytes, cell)) => size(cell).filter(|cell| cell.is_power_of_two()).and_then(|_| size(bytes)),
    }
}

/// A time, microseconds; so is a bare number.
pub(super) fn time(word: &str) -> Option<u32> {
    const TIMES: &[Suffix] = &[
        ("s", 1e6),
        ("sec", 1e6),
        ("secs", 1e6),
        ("ms", 1e3),
        ("msec", 1e3),
        ("msecs", 1e3),
        ("us", 1.0),
        ("usec", 1.0),
        ("usecs", 1.0),
    ];
    let micros = scaled(word, 1.0, TIMES)?;
    (0.0..=f64::from(u32::MAX)).contains(&micros).then_some(micros as u32)
}

/// A time, nanoseconds; so is a bare number.
pub(super) fn time64(word: &str) -> Option<i64> {
    const TIMES: &[Suffix] = &[
        ("s", 1e9),
        ("sec", 1e9),
        ("secs", 1e9),
        ("ms", 1e6),
        ("msec", 1e6),
        ("msecs", 1e6),
        ("us", 1e3),
        ("usec", 1e3),
        ("usecs", 1e3),
        ("ns", 1.0),
        ("nsec", 1.0),
        ("nsecs", 1.0),
    ];
    Some(scaled(word, 1.0, TIMES)? as i64)
}

/// A share, as a fraction: `1%`, or `0.01`.
pub(super) fn percent(word: &str) -> Option<f64> {
    let (number, suffix) = split(word)?;
    let fraction = match suffix {
        "%" => number / 100.0,
        "" => number,
        _ => return None,
    };
    (0.0..=1.0).contains(&fraction).then_some(fraction)
}

/// A whole number, decimal, or hexadecimal after `0x`.
pub(super) fn number<T: TryFrom<u64>>(word: &str) -> Option<T> {
    let number = match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => word.parse::<u64>().ok()?,
    };
    T::try_from(number).ok()
}

/// `5Mbit`: bytes per second in the largest unit that loses nothing, or from a thousand of it on.
pub(super) fn show_rate(bytes_per_second: u64) -> String {
    let mut rate = u128::from(bytes_per_second) * 8;
    let units = ["", "K", "M", "G", "T"];
    let mut unit = 0;
    while unit + 1 < units.len() && rate >= 1000 && (rate % 1000 == 0 || rate >= 1_000_000) {
        rate /= 1000;
        unit += 1;
    }
    format!("{rate}{}bit", units[unit])
}

/// `15Kb`: rounded to the unit if it is within 16 bytes of a kilobyte, or a kilobyte of a megabyte.
pub(super) fn show_size(bytes: u32) -> String {
    let size = f64::from(bytes);
    for (unit, name, near) in [(1024.0 * 1024.0, "Mb", 1024.0), (1024.0, "Kb", 16.0)] {
        let whole = libm::roundeven(size / unit);
        if size >= unit && (whole * unit - size).abs() < near {
            return format!("{}{name}", g(whole, 6));
        }
    }
    format!("{bytes}b")
}

/// `50ms`: microseconds with three digits.
pub(super) fn show_time(micros: f64) -> String {
    let micros = libm::trunc(micros.max(0.0));
    match micros {
        _ if micros >= MICROS_PER_SECOND => format!("{}s", g(micros / MICROS_PER_SECOND, 3)),
        _ if micros >= 1000.0 => format!("{}ms", g(micros / 1000.0, 3)),
        _ => format!("{micros}us"),
    }
}

/// `10ms`: nanoseconds with three digits.
pub(super) fn show_time64(nanos: i64) -> String {
    let value = nanos as f64;
    match value {
        _ if value >= 1e9 => format!("{}s", g(value / 1e9, 3)),
        _ if value >= 1e6 => format!("{}ms", g(value / 1e6, 3)),
        _ if value >= 1e3 => format!("{}us", g(value / 1e3, 3)),
        _ => format!("{nanos}ns"),
    }
}

/// C's `%g` with that many digits.
pub(super) fn g(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{value:.*e}", digits.saturating_sub(1));
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    trim(&format!("{value:.decimals$}"))
}

/// How long `bytes` take, in ticks: what tc tells the kernel. It cuts to whole microseconds first.
pub(super) fn xmit_ticks(bytes_per_second: u64, bytes: u32) -> u32 {
    let micros = libm::trunc(MICROS_PER_SECOND * (f64::from(bytes) / bytes_per_second as f64));
    (micros * TICKS_PER_MICRO) as u32
}

/// The bytes that leave in so many ticks.
pub(super) fn xmit_size(bytes_per_second: u64, ticks: u32) -> u32 {
    (bytes_per_second as f64 * tick_micros(ticks) / MICROS_PER_SECOND) as u32
}

/// Whole microseconds of so many ticks.
pub(super) fn tick_micros(ticks: u32) -> f64 {
    libm::trunc(f64::from(ticks) / TICKS_PER_MICRO)
}

/// Ticks as the kernel keeps them.
pub(super) fn tick_nanos(ticks: u32) -> u64 {
    u64::from(ticks) << TICK_SHIFT
}

/// The kernel's time in ticks as tc sees it.
pub(super) fn ticks(nanos: i64) -> i64 {
    nanos >> TICK_SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        assert_eq!(rate("5mbit"), Some(625_000));
        assert_eq!(rate("5Mbit"), Some(625_000));
        assert_eq!(rate("800"), Some(100));
        assert_eq!(rate("1.5kbps"), Some(1500));
        assert_eq!(rate("1kibit"), Some(128));
        assert_eq!((rate("x"), rate("5mb"), rate("-1mbit"), rate("")), (None, None, None, None));
        assert_eq!(show_rate(625_000), "5Mbit");
        assert_eq!(show_rate(187_500), "1500Kbit");
        assert_eq!(show_rate(12_500_000_000), "100Gbit");
        assert_eq!(show_rate(1), "8bit");
    }

    #[test]
    fn sizes() {
        assert_eq!(
            (size("15k"), size("15kb"), size("1514"), size("1m")),
            (Some(15360), Some(15360), Some(1514), Some(1 << 20))
        );
        assert_eq!((size("8kbit"), size("1x"), size("-1")), (Some(1024), None, None));
        assert_eq!((size_and_cell("15k/8"), size_and_cell("15k/7")), (Some(15360), None));
        assert_eq!(
            (show_size(15_360), show_size(1023), show_size(32 << 20)),
            ("15Kb".into(), "1023b".into(), "32Mb".into())
        );
    }

    #[test]
    fn times() {
        assert_eq!(
            (time("50ms"), time("50"), time("1.5s"), time("1m")),
            (Some(50_000), Some(50), Some(1_500_000), None)
        );
        assert_eq!((time64("10ms"), time64("10"), time64("3us")), (Some(10_000_000), Some(10), Some(3000)));
        assert_eq!(
            (show_time(50_000.0), show_time(137_216.0), show_time(4999.0), show_time(7.9)),
            ("50ms".into(), "137ms".into(), "5ms".into(), "7us".into())
        );
        assert_eq!(
            (show_time64(10_000_000), show_time64(1_234_567), show_time64(12)),
            ("10ms".into(), "1.23ms".into(), "12ns".into())
        );
    }

    #[test]
    fn the_general_format_of_c() {
        assert_eq!(
            (g(0.02, 6), g(100.0, 6), g(1e6, 6), g(0.000_01, 6), g(33.333_333_3, 6)),
            ("0.02".into(), "100".into(), "1e+06".into(), "1e-05".into(), "33.3333".into())
        );
        assert_eq!((g(999.9, 3), g(1500.0, 3)), ("1e+03".into(), "1.5e+03".into()));
    }

    #[test]
    fn shares() {
        assert_eq!(
            (percent("1%"), percent("0.5"), percent("101%"), percent("1x")),
            (Some(0.01), Some(0.5), None, None)
        );
    }
}
