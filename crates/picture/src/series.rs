//! One quantity of a graph.

/// Drawing style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Steps: a value holds until the next point.
    Step,
    /// Straight lines between points.
    Line,
    /// Dots.
    Dots,
    /// Crosses.
    Crosses,
    /// Vertical bars: each needs its [`Series::tops`].
    Bars,
    /// Horizontal bars from each point to the next, in the row that the value names; a negative
    /// value is a gap.
    Spans,
}

/// Colour, by meaning or by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Data; the first of several.
    Blue,
    /// Acknowledgements and successes.
    Green,
    /// Retransmissions; the second of several.
    Orange,
    /// Limits: windows, thresholds.
    Purple,
    /// Lost.
    Red,
    /// The third of several.
    Teal,
    /// Background.
    Grey,
}

impl Tone {
    /// Returns the colour of the n-th of several series.
    pub fn nth(n: usize) -> Tone {
        [Tone::Blue, Tone::Orange, Tone::Teal, Tone::Purple, Tone::Green, Tone::Red, Tone::Grey][n % 7]
    }

    pub(crate) fn class(self) -> &'static str {
        match self {
            Tone::Blue => "blue",
            Tone::Green => "green",
            Tone::Orange => "orange",
            Tone::Purple => "purple",
            Tone::Red => "red",
            Tone::Teal => "teal",
            Tone::Grey => "grey",
        }
    }
}

/// A quantity of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Drawing style.
    pub style: Style,
    /// Colour.
    pub tone: Tone,
    /// True if the y axis need not include all values: higher ones are not visible.
    pub aside: bool,
    /// True for a dashed line, to distinguish it without colour.
    pub dashed: bool,
    /// Points (x, y), with x not decreasing. A point whose y is NaN ends a line, and the next
    /// begins another one.
    pub points: Vec<(f64, f64)>,
    /// Upper ends of bars.
    pub tops: Vec<f64>,
}

impl Series {
    /// Creates a series.
    pub fn new(name: impl Into<String>, style: Style, tone: Tone, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), style, tone, aside: false, dashed: false, points, tops: Vec::new() }
    }

    /// Creates vertical bars: (x, from, to).
    pub fn bars(
        name: impl Into<String>,
        tone: Tone,
        bars: impl IntoIterator<Item = (f64, f64, f64)>,
    ) -> Series {
        let (points, tops) = bars.into_iter().map(|(x, from, to)| ((x, from), to)).unzip();
        Series { tops, ..Series::new(name, Style::Bars, tone, points) }
    }

    /// Makes the line dashed.
    pub fn dashed(self) -> Series {
        Series { dashed: true, ..self }
    }

    /// Allows values above the y axis.
    pub fn aside(self) -> Series {
        Series { aside: true, ..self }
    }

    /// Returns the largest value.
    pub fn greatest(&self) -> f64 {
        let values = self.points.iter().map(|(_, y)| *y).chain(self.tops.iter().copied());
        values.filter(|value| value.is_finite()).fold(0.0, f64::max)
    }

    /// True if there is something to see: marks, a line that is not always zero, a bar of some
    /// length.
    pub(crate) fn shows(&self) -> bool {
        let mut steps = self.points.windows(2).filter(|pair| pair[0].0 < pair[1].0);
        match self.style {
            Style::Step | Style::Line => {
                self.greatest() > 0.0 && steps.any(|pair| pair.iter().all(|(_, y)| y.is_finite()))
            }
            Style::Spans => steps.any(|pair| pair[0].1 >= 0.0),
            Style::Dots | Style::Crosses | Style::Bars => !self.points.is_empty(),
        }
    }

    /// Returns the points, each with true if a line begins there.
    pub(crate) fn stretches(&self) -> impl Iterator<Item = (bool, (f64, f64))> {
        let mut begins = true;
        self.points.iter().filter_map(move |(x, y)| {
            let is_first = core::mem::replace(&mut begins, y.is_nan());
            (!y.is_nan()).then_some((is_first, (*x, *y)))
        })
    }

    /// True if it has at most one value at a time, so that the script can show it.
    pub(crate) fn is_one_line(&self) -> bool {
        self.points.is_sorted_by(|a, b| a.0 <= b.0)
    }

    /// Returns a series that looks the same with fewer points: the first, smallest, largest and
    /// last value of each of `parts` of the axis. Adjacent bars in one part are joined.
    pub(crate) fn thinned(&self, end: f64, parts: usize) -> Series {
        if self.points.len() <= 4 * parts || end <= 0.0 {
            return self.clone();
        }
        let part = |x: f64| (x / end * parts as f64) as usize;
        if self.style == Style::Bars {
            return self.joined(part);
        }
        let mut points = Vec::new();
        let alike = |a: &(f64, f64), b: &(f64, f64)| part(a.0) == part(b.0) && a.1.is_nan() == b.1.is_nan();
        for group in self.points.chunk_by(alike) {
            let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
            let mut kept = vec![group[0], group[group.len() - 1]];
            kept.extend(group.iter().min_by(by_value));
            kept.extend(group.iter().max_by(by_value));
            kept.sort_by(|a, b| a.0.total_cmp(&b.0));
            kept.dedup();
            points.extend(kept);
        }
        Series { points, ..self.clone() }
    }

    fn joined(&self, part: impl Fn(f64) -> usize) -> Series {
        let mut bars: Vec<(f64, f64, f64)> = Vec::new();
        for ((x, from), to) in self.points.iter().copied().zip(self.tops.iter().copied()) {
            match bars.last_mut() {
                Some(last) if part(last.0) == part(x) && last.2 == from => last.2 = to,
                _ => bars.push((x, from, to)),
            }
        }
        Series { dashed: self.dashed, ..Series::bars(self.name.clone(), self.tone, bars) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_ends_and_the_peaks_of_each_part() {
        let points: Vec<(f64, f64)> = (0..10_000).map(|n| (f64::from(n), f64::from(n % 100))).collect();
        let thin = Series::new("x", Style::Step, Tone::Blue, points).thinned(10_000.0, 10);
        assert!(thin.points.len() <= 40);
        assert_eq!((thin.points[0], thin.greatest()), ((0.0, 0.0), 99.0));
        assert_eq!(thin.points.last(), Some(&(9999.0, 99.0)));
    }

    #[test]
    fn thinning_keeps_where_lines_begin() {
        let line = (0..1000).map(|n| (f64::from(n), f64::from(n)));
        let two = line.clone().chain([(500.0, f64::NAN)]).chain(line.map(|(x, y)| (x + 500.0, y)));
        let thin = Series::new("x", Style::Step, Tone::Blue, two.collect()).thinned(2000.0, 10);
        assert_eq!(thin.stretches().filter(|(begins, _)| *begins).count(), 2);
        assert!(!thin.is_one_line() && thin.greatest() == 999.0);
    }

    #[test]
    fn bars_that_follow_each_other_become_one() {
        let bars = (0..1000).map(|n| (0.001 * f64::from(n), f64::from(n), f64::from(n + 1)));
        let thin = Series::bars("data", Tone::Blue, bars).thinned(100.0, 10);
        assert_eq!((thin.points.clone(), thin.tops.clone()), (vec![(0.0, 0.0)], vec![1000.0]));
    }
}
