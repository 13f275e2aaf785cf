//! Quantities with units, as people write them: `35ms`, `20 MB`, `64 KiB`, `100mbit`, `2 %`, `1.87 MB/s`.

use core::time::Duration;

/// Number and unit.
pub(crate) fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let at = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    Some((text[..at].parse().ok()?, text[at..].trim()))
}

/// A time.
///
/// # Errors
/// What would be one.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time; write 35ms, 1.5s or 30us");
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

/// A number of bytes.
///
/// # Errors
/// What would be one.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no number of bytes; write 500, 20MB or 64KiB");
    let (number, unit) = split(text).ok_or_else(wrong)?;
    Ok((number * byte_unit(unit).ok_or_else(wrong)?).round() as u64)
}

/// Bits per second.
///
/// # Errors
/// What would be a rate.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no rate; write 100mbit, 5kbit or 1gbit");
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let factor = match unit {
        "bit" => 1.0,
        "kbit" => 1e3,
        "mbit" => 1e6,
        "gbit" => 1e9,
        _ => return Err(wrong()),
    };
    Ok((number * factor).round() as u64)
}

/// A share, in percent.
///
/// # Errors
/// What would be one.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    match split(text) {
        Some((number, "%")) if number <= 100.0 => Ok(number),
        _ => Err(format!("`{text}` is no share; write 2% or 0.5%")),
    }
}

/// A quantity of any kind: seconds, bytes, bytes per second, or a plain number; shares are of one, `yes` is 1 and `no` 0.
///
/// # Errors
/// What would be one.
pub(crate) fn quantity(text: &str) -> Result<f64, String> {
    if let Some(answer) = ANSWERS.iter().position(|answer| *answer == text.trim()) {
        return Ok(answer as f64);
    }
    let wrong = || format!("`{text}` is no quantity; write 5, 340 ms, 1.87 MB/s, 500 B, 45 %, yes or no");
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let factor = match unit {
        "%" => Some(0.01),
        unit => match unit.strip_suffix("/s") {
            Some(unit) => byte_unit(unit),
            None => byte_unit(unit).or(time_unit(unit)),
        },
    };
    Ok(number * factor.ok_or_else(wrong)?)
}

/// What 0 and 1 are, where a question is answered.
const ANSWERS: [&str; 2] = ["no", "yes"];

/// The unit of a quantity, and how much one of it is.
pub(crate) fn unit(like: &str) -> (&str, f64) {
    let unit = split(like).map_or("", |(_, unit)| unit);
    (unit, quantity(&format!("1{unit}")).unwrap_or(1.0))
}

/// A quantity in the unit of another, for people.
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
    fn a_question_is_answered_with_yes_or_no() {
        assert_eq!((quantity("yes"), quantity("no")), (Ok(1.0), Ok(0.0)));
        assert_eq!([1.0, 0.0, 3.0].map(|value| in_unit_of(value, "yes")), ["yes", "no", "3"]);
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
