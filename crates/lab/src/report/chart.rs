//! A quantity over time, drawn with block characters.
//!
//! ```text
//!  100 ┤      ██
//!      │  █▅▇██████▄
//!   50 ┤▂████████████▆▆▆┄┄┄
//!      │████████████████
//!    0 ┼────────────────
//!      0               2
//! ```

/// A chart of one quantity over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The title above it.
    pub title: String,
    /// Points (time, value from then on), in order of time.
    pub points: Vec<(f64, f64)>,
    /// End of the time axis.
    pub end: f64,
    /// A value marked with a line, and its name.
    pub mark: Option<(f64, &'static str)>,
}

/// Lines of the drawing.
const ROWS: usize = 12;
/// Columns of the margin on the left.
const MARGIN: usize = 8;
/// Block characters for eighths of a line.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

impl Chart {
    /// Returns the title and the meaning of the mark.
    pub(super) fn heading(&self) -> String {
        let mark = self.mark.map(|(value, name)| format!(" (┄ {}: {name})", number(value)));
        format!("{}{}", self.title, mark.unwrap_or_default())
    }

    /// Returns the lines, at most `width` columns wide.
    pub(super) fn lines(&self, width: usize) -> Vec<String> {
        let columns = width.saturating_sub(MARGIN).max(1);
        let values = self.sampled(columns);
        let most = self.points.iter().map(|(_, value)| *value);
        let most = most.chain(self.mark.map(|(value, _)| value)).fold(0.0, f64::max);
        let top = round_up(most);
        let mark_row = self.mark.map(|(value, _)| row_of(value, top));
        let mut lines: Vec<String> = (0..ROWS)
            .map(|line| {
                let row = ROWS - 1 - line;
                let label = if (row + 1).is_multiple_of(ROWS / 4) {
                    format!("{:>6} ┤", number(top * (row + 1) as f64 / ROWS as f64))
                } else {
                    format!("{:>6} │", "")
                };
                let marked = mark_row == Some(row);
                label + &values.iter().map(|value| cell(*value, top, row, marked)).collect::<String>()
            })
            .collect();
        lines.push(format!("{:>6} ┼{}", 0, "─".repeat(columns)));
        let end = number(self.end);
        lines.push(format!("{:>6}  0{end:>width$}", "", width = columns - 1));
        lines
    }

    /// Returns the maximum in each column's time, or the last earlier value.
    fn sampled(&self, columns: usize) -> Vec<f64> {
        let span = if self.end > 0.0 { self.end } else { 1.0 };
        let mut values = Vec::with_capacity(columns);
        let (mut next, mut held) = (0, 0.0);
        for column in 0..columns {
            let until = span * (column + 1) as f64 / columns as f64;
            let mut most: Option<f64> = None;
            while let Some((at, value)) = self.points.get(next).filter(|(at, _)| *at < until) {
                debug_assert!(*at >= 0.0);
                most = Some(most.map_or(*value, |most| most.max(*value)));
                held = *value;
                next += 1;
            }
            values.push(most.unwrap_or(held));
        }
        values
    }
}

fn row_of(value: f64, top: f64) -> usize {
    ((value / top * ROWS as f64) as usize).min(ROWS - 1)
}

fn cell(value: f64, top: f64, row: usize, marked: bool) -> char {
    let eighths = (value / top * (ROWS * 8) as f64).round() as usize;
    match BLOCKS[eighths.saturating_sub(row * 8).min(8)] {
        ' ' if marked => '┄',
        block => block,
    }
}

/// Rounds up to a number whose quarters are easy to read.
fn round_up(value: f64) -> f64 {
    let mut power = 1.0;
    while power < value / 10.0 {
        power *= 10.0;
    }
    let step = [1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0]
        .into_iter()
        .find(|step| step * power >= value);
    step.unwrap_or(10.0) * power
}

fn number(value: f64) -> String {
    if value >= 100.0 || value.fract().abs() < 0.05 { format!("{value:.0}") } else { format!("{value:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_as_high_and_as_wide_as_it_should_be() {
        let points = vec![(0.0, 5.5), (0.5, 12.0)];
        let chart = Chart { title: String::new(), points, end: 1.0, mark: Some((9.0, "nine")) };
        let lines = chart.lines(MARGIN + 10);
        assert_eq!(lines.len(), ROWS + 2);
        let column =
            |at: usize| lines.iter().map(|line| line.chars().nth(MARGIN + at).unwrap()).collect::<String>();
        assert_eq!(column(0), "  ┄   ▄█████─0");
        assert_eq!(column(9), "████████████─1");
        assert_eq!(lines[2], "       │┄┄┄┄┄█████");
        assert!(lines[0].starts_with("    12 ┤"));
    }

    #[test]
    fn the_top_is_a_round_number() {
        let tops = [0.3, 1.0, 1.1, 29.0, 31.0, 79.0, 154.0, 999.0].map(round_up);
        assert_eq!(tops, [1.0, 1.0, 1.2, 30.0, 40.0, 80.0, 160.0, 1000.0]);
    }
}
