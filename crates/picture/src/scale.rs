//! Axes: positions of ticks, and formatting of numbers.

/// Returns the next number whose quarters are easy to read.
pub(crate) fn round_up(value: f64) -> f64 {
    if !value.is_finite() || value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps
        .into_iter()
        .map(|step| step * power)
        .find(|top| *top >= value * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// Returns round values within `from..=to`, about `count` of them.
pub(crate) fn ticks(from: f64, to: f64, count: usize) -> Vec<f64> {
    let span = to - from;
    if !span.is_finite() || span <= 0.0 {
        return vec![from];
    }
    let rough = span / count.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * power).into_iter().find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let first = (from / step).ceil() as i64;
    let last = (to / step + 1e-9).floor() as i64;
    (first..=last).map(|n| n as f64 * step).collect()
}

/// Formats a number with only the digits that are useful.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tops_are_round_and_not_too_high() {
        let tops = [0.0, 0.3, 1.0, 29.0, 31.0, 154.0, 999.0].map(round_up);
        assert_eq!(tops.map(number), ["1", "0.3", "1", "30", "40", "160", "1000"]);
    }

    #[test]
    fn ticks_are_round_numbers_inside_the_range() {
        assert_eq!(ticks(0.0, 340.0, 5), [0.0, 100.0, 200.0, 300.0]);
        assert_eq!(ticks(0.0, 1.0, 5).len(), 6);
        assert_eq!(ticks(3.0, 3.0, 5), [3.0]);
    }

    #[test]
    fn numbers_lose_what_nobody_reads() {
        assert_eq!([0.0, 0.25, 1.5, 12.34, 1234.5].map(number), ["0", "0.25", "1.5", "12.3", "1234"]);
    }
}
