//! Quantities with units, as people write them: `35ms`, `20 MB`, `64 KiB`, `100mbit`, `2 %`, `1.87
//! MB/s`.

use super::nearest;
use core::time::Duration;

/// Splits a quantity into number and unit.
pub(crate) fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let at = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    Some((text[..at].parse().ok()?, text[at..].trim()))
}

/// Suggests the nearest unit.
fn meant(text: &str, units: &[&str]) -> String {
    let unit = split(magnitude(text)).map_or("", |(_, unit)| unit);
    if unit.is_empty() { String::new() } else { nearest(unit, units) }
}

const TIMES: [&str; 5] = ["ns", "us", "ms", "s", "min"];
const BYTES: [&str; 6] = ["B", "kB", "MB", "GB", "KiB", "MiB"];
const RATES: [&str; 4] = ["bit", "kbit", "mbit", "gbit"];
const GOODPUTS: [&str; 4] = ["B/s", "kB/s", "MB/s", "GB/s"];

/// Parses a time.
///
/// # Errors
/// The expected form.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time{}; write e.g. 35ms, 1.5s or 30us", meant(text, &TIMES));
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let seconds = number * time_unit(unit).ok_or_else(wrong)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

fn time_unit(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        _ => return None,
    })
}

fn byte_unit(unit: &str) -> Option<f64> {
    Some(match unit {
        "" | "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        _ => return None,
    })
}

/// Parses a number of bytes.
///
/// # Errors
/// The expected form.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let wrong =
        || format!("`{text}` is not a number of bytes{}; write e.g. 500, 20MB or 64KiB", meant(text, &BYTES));
    let (number, unit) = split(text).ok_or_else(wrong)?;
    Ok((number * byte_unit(unit).ok_or_else(wrong)?).round() as u64)
}

/// Parses bits per second.
///
/// # Errors
/// The expected form.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    let wrong =
        || format!("`{text}` is not a rate{}; write e.g. 100mbit, 5kbit or 1gbit", meant(text, &RATES));
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let factor = match unit {
        "bit" => 1.0,
        "kbit" => 1e3,
        "mbit" => 1e6,
        "gbit" => 1e9,
        _ => return Err(wrong()),
    };
    match (number * factor).round() as u64 {
        0 => Err(format!("`{text}`: nothing passes at a rate of 0; remove the rate if there is no limit")),
        rate => Ok(rate),
    }
}

/// Parses a share, in percent.
///
/// # Errors
/// The expected form.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    match split(text) {
        Some((number, "%")) if number <= 100.0 => Ok(number),
        _ => Err(format!("`{text}` is not a share; write e.g. 2% or 0.5%")),
    }
}

/// The dimension of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    Plain,
    Share,
    Answer,
    Time,
    Bytes,
    BytesPerSecond,
}

impl Dimension {
    /// Returns the dimension of a unit in which results are shown.
    pub(crate) fn of_unit(unit: &str) -> Option<Dimension> {
        Some(match unit {
            "" => Dimension::Plain,
            "%" => Dimension::Share,
            unit if time_unit(unit).is_some() => Dimension::Time,
            unit => match unit.strip_suffix("/s") {
                Some(unit) => byte_unit(unit).map(|_| Dimension::BytesPerSecond)?,
                None => byte_unit(unit).map(|_| Dimension::Bytes)?,
            },
        })
    }

    /// Returns whether it is a number without a unit of time. Only the author knows the meaning of
    /// a quotient or product of such numbers.
    fn counts(self) -> bool {
        !matches!(self, Dimension::Time | Dimension::BytesPerSecond)
    }

    /// Returns the dimension in words, with an example.
    fn told(self) -> &'static str {
        match self {
            Dimension::Plain => "a plain number, such as 5",
            Dimension::Share => "a share, such as 45 %",
            Dimension::Answer => "yes or no",
            Dimension::Time => "a time, such as 340 ms",
            Dimension::Bytes => "a number of bytes, such as 20 kB",
            Dimension::BytesPerSecond => "bytes per second, such as 1.87 MB/s",
        }
    }
}

/// Checks that a result in `unit` can be compared with the quantity `text`. Times and rates need
/// units of their dimension. Numbers may be shares, answers, or the bytes they count. Zero needs no
/// unit.
///
/// # Errors
/// The dimension of each.
pub(crate) fn comparable(text: &str, unit: &str) -> Result<(), String> {
    let (value, given) = quantity_and_dimension(text)?;
    let Some(wanted) = Dimension::of_unit(unit) else { return Ok(()) };
    let is_nothing = given == Dimension::Plain && value == 0.0;
    if is_nothing || given == wanted || given.counts() && wanted.counts() {
        return Ok(());
    }
    Err(format!("`{text}` is {}; the formula is {}", kind(given), wanted.told()))
}

/// Returns the dimension in words, without an example.
fn kind(dimension: Dimension) -> &'static str {
    let told = dimension.told();
    told.split_once(", such as").map_or(told, |(kind, _)| kind)
}

/// Parses a quantity of any dimension: seconds, bytes, bytes per second or a plain number. Shares
/// are fractions of one; `yes` is 1 and `no` is 0.
///
/// # Errors
/// The expected form.
pub(crate) fn quantity(text: &str) -> Result<f64, String> {
    quantity_and_dimension(text).map(|(value, _)| value)
}

fn quantity_and_dimension(text: &str) -> Result<(f64, Dimension), String> {
    if let Some(answer) = ANSWERS.iter().position(|answer| *answer == text.trim()) {
        return Ok((answer as f64, Dimension::Answer));
    }
    let wrong = || {
        let units = [&TIMES[..], &BYTES, &GOODPUTS].concat();
        let near = match split(magnitude(text)) {
            Some(_) => meant(text, &units),
            None => nearest(text, &ANSWERS),
        };
        format!("`{text}` is not a quantity{near}; write e.g. 5, 340 ms, 1.87 MB/s, 500 B, 45 %, yes or no")
    };
    let (size, unit) = split(magnitude(text)).ok_or_else(wrong)?;
    let number = if magnitude(text) == text { size } else { -size };
    let dimension = Dimension::of_unit(unit).ok_or_else(wrong)?;
    let factor = match dimension {
        Dimension::Share => Some(0.01),
        Dimension::Time => time_unit(unit),
        _ => byte_unit(unit.strip_suffix("/s").unwrap_or(unit)),
    };
    Ok((number * factor.ok_or_else(wrong)?, dimension))
}

/// Returns a quantity without its minus sign.
fn magnitude(text: &str) -> &str {
    text.trim().strip_prefix('-').unwrap_or(text)
}

/// Answers of questions, for 0 and 1.
const ANSWERS: [&str; 2] = ["no", "yes"];

/// Returns the unit of a quantity, and its size.
pub(crate) fn unit(like: &str) -> (&str, f64) {
    let unit = split(magnitude(like)).map_or("", |(_, unit)| unit);
    (unit, quantity(&format!("1{unit}")).unwrap_or(1.0))
}

/// Formats a quantity in the unit of another.
pub(crate) fn in_unit_of(value: f64, like: &str) -> String {
    if ANSWERS.contains(&like) {
        let answer = (0..ANSWERS.len()).find(|answer| value == *answer as f64);
        return answer.map_or_else(|| value.to_string(), |answer| ANSWERS[answer].to_owned());
    }
    let (unit, factor) = unit(like);
    let scaled = value / factor;
    let decimals =
        like.split_once('.').map_or(0, |(_, rest)| rest.chars().take_while(char::is_ascii_digit).count());
    let digits = match scaled.abs() {
        size if size >= 100.0 || (size - size.round()).abs() < 1e-9 => 0,
        size if size >= 10.0 => 1,
        _ => decimals.max(2),
    };
    let number = format!("{scaled:.digits$}");
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_carry_their_units() {
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!((bytes("64KiB"), rate("100mbit"), percent("2 %")), (Ok(65_536), Ok(100_000_000), Ok(2.0)));
        assert_eq!(
            (quantity("1.87 MB/s"), quantity("340 ms"), quantity("5")),
            (Ok(1_870_000.0), Ok(0.34), Ok(5.0))
        );
        assert_eq!(in_unit_of(0.1875, "187 ms"), "188 ms");
        assert_eq!(in_unit_of(1_812_345.0, "1.8 MB/s"), "1.81 MB/s");
    }

    #[test]
    fn a_quantity_may_be_below_nothing() {
        assert_eq!((quantity("-5"), quantity(" -1.5 s")), (Ok(-5.0), Ok(-1.5)));
        assert_eq!((in_unit_of(-0.44, "-1 ms"), comparable("-1 s", "ms")), ("-440 ms".into(), Ok(())));
        assert!(quantity("--5").is_err() && duration("-1s").is_err() && bytes("-1").is_err());
    }

    #[test]
    fn a_question_is_answered_with_yes_or_no() {
        assert_eq!((quantity("yes"), quantity("no")), (Ok(1.0), Ok(0.0)));
        assert_eq!([1.0, 0.0, 3.0].map(|value| in_unit_of(value, "yes")), ["yes", "no", "3"]);
    }

    #[test]
    fn a_time_is_not_compared_with_bytes() {
        for (text, unit) in
            [("340 ms", "ms"), ("1 s", "ms"), ("0", "ms"), ("5", "B"), ("45 %", "B"), ("1500 B", "")]
        {
            assert_eq!(comparable(text, unit), Ok(()), "{text}");
        }
        for (text, unit, told) in [
            ("10 MB", "ms", "`10 MB` is a number of bytes; the formula is a time, such as 340 ms"),
            ("5", "ms", "is a plain number; the formula is a time"),
            ("5 ms", "", "is a time; the formula is a plain number"),
            ("5 MB", "MB/s", "is a number of bytes; the formula is bytes per second"),
            ("yes", "ms", "is yes or no; the formula is a time"),
        ] {
            assert!(comparable(text, unit).is_err_and(|error| error.contains(told)), "{text} {unit}");
        }
    }

    #[test]
    fn a_rate_of_nothing_is_refused() {
        assert!(["0mbit", "0.1bit"].map(rate).iter().all(Result::is_err));
    }

    #[test]
    fn a_figure_is_as_exact_as_what_is_expected_of_it() {
        assert_eq!(in_unit_of(0.9992, "0.999"), "0.999");
        assert_eq!(in_unit_of(0.9992, "0.9"), "1.00");
    }

    #[test]
    fn what_has_no_unit_is_no_time() {
        assert!(duration("35").is_err_and(|error| error.contains("35ms")));
    }
}
