//! A graph of quantities over time, or over another quantity.
//!
//! ```text
//!   kB ┌──────────────────────────┐
//!   40 ┤         ┌────────        │   title above, legend below it; y axis on the left,
//!   20 ┤    ┌────┘                │   unit over it, x axis with its unit below
//!    0 └────┴───────┬─────────────┘
//!      0           20          40 ms
//! ```

use crate::frame::{Frame, trimmed};
use crate::markup::escape;
use crate::scale::{number, round_up, ticks};
use crate::series::{Series, Style};
use std::fmt::Write as _;

/// Unit of a y axis in bytes. The axis uses kB or MB for large values, and only as many digits as
/// needed.
pub const BYTES: &str = "bytes";

/// The y axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Axis {
    /// A quantity and its unit.
    Number {
        /// Name of the quantity.
        label: String,
        /// Its unit.
        unit: String,
    },
    /// Names, from the bottom up.
    Names(Vec<String>),
}

/// Quantities that share axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// Title.
    pub title: String,
    /// A hint at what to look for; may be empty.
    pub note: String,
    /// The y axis.
    pub y: Axis,
    /// Label of the x axis: the unit of time, or another quantity.
    pub x: String,
    /// True for a graph over time, which is zoomed together with the others on the page.
    pub over_time: bool,
    /// The quantities, the last one drawn on top.
    pub series: Vec<Series>,
}

/// Ends of the axes of a drawing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// Start of the x axis: 0, or less if there are negative values.
    pub(crate) left: f64,
    pub(crate) right: f64,
    /// Start of the y axis: 0, or less if there are negative values.
    pub(crate) bottom: f64,
    pub(crate) top: f64,
}

impl Ends {
    /// Returns axes that start at zero.
    pub(crate) fn from_zero(right: f64, top: f64) -> Ends {
        Ends { left: 0.0, right, bottom: 0.0, top }
    }

    /// Returns the share of the x axis to the left of a value.
    fn across(self, x: f64) -> f64 {
        (x - self.left) / (self.right - self.left)
    }

    /// Returns the share of the y axis above a value.
    fn down(self, y: f64) -> f64 {
        (self.top - y) / (self.top - self.bottom)
    }
}

/// Space left of the data, for the numbers of the y axis.
pub(crate) const LEFT: f64 = 58.0;
/// Space left and right of the data together.
const MARGINS: f64 = 72.0;
/// Space above the data, for the unit.
const ABOVE: f64 = 22.0;
/// Space below the data, for numbers and the name of the axis.
const BELOW: f64 = 38.0;
/// Height of the data.
const HEIGHT: f64 = 190.0;
/// Height of a row of names.
const ROW: f64 = 20.0;
/// Length from which a time axis shows seconds, milliseconds; the script uses the same value.
const IN_SECONDS: f64 = 10_000.0;
/// Value from which an axis shows kB, bytes.
const IN_KB: f64 = 10e3;
const IN_MB: f64 = 10e6;
/// Space above and below the data, so that a line at the edge is not cut; the script uses the same
/// value.
const EDGE: f64 = 3.0;
/// Extension of an x axis that is not time beyond the last value, as a factor, for distributions
/// that rise at their end.
const BEYOND: f64 = 1.03;
/// Number of parts into which the axis is divided if a series has more points than can be seen.
const PARTS: usize = 1500;

impl Graph {
    /// Creates an empty graph over time in milliseconds.
    pub fn new(title: impl Into<String>, label: impl Into<String>, unit: impl Into<String>) -> Graph {
        Graph {
            title: title.into(),
            note: String::new(),
            y: Axis::Number { label: label.into(), unit: unit.into() },
            x: "time, ms".into(),
            over_time: true,
            series: Vec::new(),
        }
    }

    /// Creates an empty graph that shows which of several names applies at each time.
    pub fn of_names(title: impl Into<String>, names: impl IntoIterator<Item = String>) -> Graph {
        Graph { y: Axis::Names(names.into_iter().collect()), ..Graph::new(title, "", "") }
    }

    /// Changes the x axis to another quantity than time.
    pub fn over(self, x: impl Into<String>) -> Graph {
        Graph { x: x.into(), over_time: false, ..self }
    }

    /// Adds a hint at what to look for.
    pub fn with_note(self, note: impl Into<String>) -> Graph {
        Graph { note: note.into(), ..self }
    }

    /// Adds a quantity, unless it has no points.
    pub fn with(mut self, series: Series) -> Graph {
        if !series.points.is_empty() {
            self.series.push(series);
        }
        self
    }

    /// Returns the legend of a series, which also says if values are above the picture.
    pub(crate) fn legend(&self, series: &Series) -> String {
        let lowest = series.points.iter().map(|(_, y)| *y).filter(|y| y.is_finite()).fold(f64::MAX, f64::min);
        match series.aside {
            true if lowest > self.top() => {
                let (one, unit) = self.y_unit(lowest);
                let lowest = format!("{} {unit}", number(lowest / one));
                format!("{}: above the picture, at {} and more", series.name, lowest.trim_end())
            }
            true => format!("{}: rises above the picture", series.name),
            false => series.name.clone(),
        }
    }

    /// Returns the value and the name of the y axis's unit, if the axis ends at `top`.
    pub(crate) fn y_unit(&self, top: f64) -> (f64, &str) {
        match &self.y {
            Axis::Number { unit, .. } if unit == BYTES && top >= IN_MB => (1e6, "MB"),
            Axis::Number { unit, .. } if unit == BYTES && top >= IN_KB => (1e3, "kB"),
            Axis::Number { unit, .. } => (1.0, unit),
            Axis::Names(_) => (1.0, ""),
        }
    }

    /// True if there is something to see: values that are not always zero, over some time.
    pub fn shows(&self) -> bool {
        self.series.iter().any(Series::shows)
    }

    /// True if there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    pub(crate) fn last_x(&self) -> f64 {
        self.series.iter().filter_map(|series| series.points.last()).map(|(x, _)| *x).fold(0.0, f64::max)
    }

    /// Returns the ends of the axes for a single graph.
    pub(crate) fn ends(&self) -> Ends {
        if self.over_time {
            return Ends::from_zero(self.last_x(), self.top());
        }
        let bottom = match &self.y {
            Axis::Number { .. } => down_to(self.drawn().map(|(_, y)| y)),
            Axis::Names(_) => 0.0,
        };
        Ends {
            left: down_to(self.drawn().map(|(x, _)| x)),
            bottom,
            ..Ends::from_zero(self.last_x() * BEYOND, self.top())
        }
    }

    fn drawn(&self) -> impl Iterator<Item = (f64, f64)> {
        self.series.iter().filter(|series| !series.aside).flat_map(|series| series.points.iter().copied())
    }

    /// Returns the value of the x axis's unit and its label, if the axis ends at `end`.
    pub(crate) fn x_axis(&self, end: f64) -> (f64, &str) {
        match self.over_time && end >= IN_SECONDS {
            true => (1000.0, "time, s"),
            false => (1.0, &self.x),
        }
    }

    pub(crate) fn height(&self) -> f64 {
        ABOVE + self.data_height() + BELOW
    }

    fn data_height(&self) -> f64 {
        match &self.y {
            Axis::Number { .. } => HEIGHT,
            Axis::Names(names) => ROW * names.len() as f64,
        }
    }

    /// Returns the top of the y axis for a single graph.
    pub(crate) fn top(&self) -> f64 {
        match &self.y {
            Axis::Number { .. } => round_up(
                self.series.iter().filter(|series| !series.aside).map(Series::greatest).fold(0.0, f64::max),
            ),
            Axis::Names(names) => names.len() as f64,
        }
    }

    /// True if the other graph shows the same quantity of another run.
    pub(crate) fn is_twin(&self, other: &Graph) -> bool {
        (&self.title, &self.note, &self.y, &self.x) == (&other.title, &other.note, &other.y, &other.x)
    }

    /// Draws the graph without title and legend.
    pub(crate) fn draw(&self, frame: Frame, ends: Ends) -> String {
        let ends = Ends { right: if ends.right > ends.left { ends.right } else { ends.left + 1.0 }, ..ends };
        let height = self.data_height();
        let mut svg = String::new();
        self.draw_y(&mut svg, height, ends);
        // Writing to a string cannot fail.
        let _ = write!(svg, "<g class=\"area\" transform=\"translate(0 {ABOVE})\">");
        self.draw_grid(&mut svg, frame, height, ends);
        let _ =
            write!(svg, "<svg class=\"data\" {} overflow=\"hidden\">", frame.viewport(MARGINS, height, EDGE));
        for series in &self.series {
            let place = Place { frame, ends, height };
            place.draw(&mut svg, &series.thinned(ends.right, PARTS));
        }
        svg.push_str("</svg></g>");
        svg
    }

    fn draw_y(&self, svg: &mut String, height: f64, ends: Ends) {
        let mut text = |y: f64, text: &str| {
            let _ = write!(
                svg,
                "<text class=\"tick\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
                -6,
                trimmed(ABOVE + y + 4.0),
                escape(text)
            );
        };
        match &self.y {
            Axis::Number { .. } => {
                let one = self.y_unit(ends.top).0;
                for value in ticks(ends.bottom, ends.top, 4) {
                    text(height * ends.down(value), &number(value / one));
                }
            }
            Axis::Names(names) => {
                for (row, name) in names.iter().enumerate() {
                    text(height - ROW * (row as f64 + 0.5), name);
                }
            }
        }
        if let Axis::Number { label, .. } = &self.y {
            let unit = self.y_unit(ends.top).1;
            let named = if unit.is_empty() { label.clone() } else { format!("{label}, {unit}") };
            let _ =
                write!(svg, "<text class=\"name\" x=\"{}\" y=\"12\">{}</text>", 4.0 - LEFT, escape(&named));
        }
    }

    fn draw_grid(&self, svg: &mut String, frame: Frame, height: f64, ends: Ends) {
        let right = frame.across(1.0, MARGINS);
        let levels = match &self.y {
            Axis::Number { .. } => {
                ticks(ends.bottom, ends.top, 4).into_iter().map(|value| height * ends.down(value)).collect()
            }
            Axis::Names(names) => (0..=names.len()).map(|row| height - ROW * row as f64).collect::<Vec<_>>(),
        };
        for y in levels {
            let y = trimmed(y);
            let _ = write!(svg, "<line class=\"grid\" x1=\"0\" x2=\"{right}\" y1=\"{y}\" y2=\"{y}\"/>");
        }
        let (unit, name) = self.x_axis(ends.right);
        svg.push_str("<g class=\"xticks\">");
        for value in ticks(ends.left, ends.right, 5) {
            let x = frame.across(ends.across(value), MARGINS);
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{x}\" x2=\"{x}\" y1=\"0\" y2=\"{height}\"/>\
                 <text class=\"tick\" x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                height + 15.0,
                number(value / unit)
            );
        }
        svg.push_str("</g>");
        let _ = write!(
            svg,
            "<line class=\"axis\" x1=\"0\" x2=\"{right}\" y1=\"{height}\" y2=\"{height}\"/>\
             <text class=\"name\" x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            height + 32.0,
            escape(name)
        );
    }
}

/// Returns the start of an axis for these values: 0, or a round number below it.
fn down_to(values: impl Iterator<Item = f64>) -> f64 {
    let least = values.filter(|value| value.is_finite()).fold(0.0, f64::min);
    if least < 0.0 { -round_up(-least) } else { 0.0 }
}

/// Positions of values on a drawing.
struct Place {
    frame: Frame,
    ends: Ends,
    height: f64,
}

impl Place {
    fn x(&self, value: f64) -> String {
        self.frame.data(self.ends.across(value).clamp(0.0, 1.0), MARGINS)
    }

    fn y(&self, value: f64) -> String {
        trimmed(self.height * self.ends.down(value).min(1.0))
    }

    fn draw(&self, svg: &mut String, series: &Series) {
        let kind = match series.style {
            Style::Step | Style::Line => "line",
            Style::Dots => "dots",
            Style::Crosses => "crosses",
            Style::Bars => "bars",
            Style::Spans => "spans",
        };
        let dashed = if series.dashed { " dashed" } else { "" };
        let _ = write!(
            svg,
            "<path class=\"{kind}{dashed} {}\" vector-effect=\"non-scaling-stroke\" d=\"{}\"/>",
            series.tone.class(),
            self.path(series)
        );
    }

    fn path(&self, series: &Series) -> String {
        let mut path = String::new();
        let points = &series.points;
        match series.style {
            Style::Line => {
                for (begins, (x, y)) in series.stretches() {
                    let letter = if begins { 'M' } else { 'L' };
                    let _ = write!(path, "{letter}{} {}", self.x(x), self.y(y));
                }
            }
            Style::Step => {
                for (begins, (x, y)) in series.stretches() {
                    let _ = match begins {
                        true => write!(path, "M{} {}", self.x(x), self.y(y)),
                        false => write!(path, "H{}V{}", self.x(x), self.y(y)),
                    };
                }
            }
            // A line of zero length with round ends is a dot of the same size at any zoom.
            Style::Dots | Style::Crosses => {
                for (x, y) in points {
                    let _ = write!(path, "M{} {}h0.01", self.x(*x), self.y(*y));
                }
            }
            Style::Bars => {
                for ((x, from), to) in points.iter().zip(&series.tops) {
                    let _ = write!(path, "M{} {}V{}", self.x(*x), self.y(*from), self.y(*to));
                }
            }
            Style::Spans => {
                for (now, next) in points.iter().zip(&points[1.min(points.len())..]) {
                    if now.1 >= 0.0 {
                        let _ = write!(path, "M{} {}H{}", self.x(now.0), self.y(now.1 + 0.5), self.x(next.0));
                    }
                }
            }
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tone;

    fn graph() -> Graph {
        let window = Series::new("cwnd", Style::Step, Tone::Blue, vec![(0.0, 10.0), (40.0, 20.0)]);
        Graph::new("Window", "window", "kB").with(window)
    }

    #[test]
    fn axes_have_numbers_and_units() {
        let svg = graph().draw(Frame::Fluid, Ends::from_zero(100.0, 20.0));
        for part in [">window, kB<", ">time, ms<", ">20<", ">100<"] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
    }

    #[test]
    fn an_axis_of_bytes_has_the_unit_that_leaves_few_digits() {
        let graph = |bytes| {
            let window = Series::new("cwnd", Style::Step, Tone::Blue, vec![(0.0, 0.0), (40.0, bytes)]);
            let graph = Graph::new("Window", "data", BYTES).with(window);
            graph.draw(Frame::Fluid, graph.ends())
        };
        for (bytes, parts) in [
            (500.0, [">data, bytes<", ">200<"]),
            (30e3, [">data, kB<", ">10<"]),
            (40e6, [">data, MB<", ">20<"]),
        ] {
            assert!(parts.iter().all(|part| graph(bytes).contains(part)), "{parts:?}: {}", graph(bytes));
        }
    }

    #[test]
    fn what_is_zero_or_over_at_once_shows_nothing() {
        let shows = |style, points| {
            Graph::new("x", "y", "").with(Series::new("x", style, Tone::Blue, points)).shows()
        };
        assert!(!shows(Style::Step, vec![(0.0, 0.0), (5.0, 0.0)]), "zero all the time");
        assert!(!shows(Style::Step, vec![(3.0, 7.0), (3.0, 8.0)]), "a moment");
        let moments = vec![(3.0, 7.0), (3.0, 8.0), (5.0, f64::NAN), (5.0, 7.0), (5.0, 8.0)];
        assert!(!shows(Style::Step, moments), "moments, one after the other");
        assert!(!shows(Style::Spans, vec![(3.0, 0.0), (3.0, -1.0)]), "no time at all");
        assert!(shows(Style::Step, vec![(0.0, 7.0), (5.0, 0.0)]) && shows(Style::Dots, vec![(0.0, 7.0)]));
        assert!(shows(Style::Spans, vec![(3.0, 0.0), (4.0, -1.0)]), "the lowest row");
    }

    #[test]
    fn the_legend_says_of_a_line_that_is_not_in_the_picture_where_it_is() {
        let far = |points| Series::new("window", Style::Step, Tone::Purple, points).aside();
        let legend = |points| graph().legend(&far(points));
        assert_eq!(legend(vec![(0.0, 64.0), (5.0, 90.0)]), "window: above the picture, at 64 kB and more");
        assert_eq!(legend(vec![(0.0, 14.0), (5.0, 90.0)]), "window: rises above the picture");
        assert_eq!(graph().legend(&graph().series[0]), "cwnd");
    }

    #[test]
    fn a_step_holds_until_the_next_point() {
        let ends = Ends::from_zero(100.0, 20.0);
        assert!(graph().draw(Frame::Fixed(172.0), ends).contains("d=\"M0 95H40V0\""));
    }

    #[test]
    fn a_line_is_broken_where_another_begins() {
        let points = vec![(0.0, 10.0), (40.0, 20.0), (20.0, f64::NAN), (20.0, 0.0), (60.0, 10.0)];
        let series = Series::new("acknowledged", Style::Step, Tone::Green, points);
        let ends = Ends::from_zero(100.0, 20.0);
        let svg = Graph::new("x", "y", "kB").with(series).draw(Frame::Fixed(172.0), ends);
        assert!(svg.contains("d=\"M0 95H40V0M20 190H60V95\""), "{svg}");
    }

    #[test]
    fn axes_reach_down_to_what_is_below_zero() {
        let line =
            Series::new("saved", Style::Line, Tone::Green, vec![(-10.0, 30.0), (0.0, 0.0), (30.0, -60.0)]);
        let graph = Graph::new("x", "saved", "ms").over("path").with(line);
        let ends = Ends { right: 30.0, ..graph.ends() };
        assert_eq!((ends.left, ends.bottom, ends.top), (-10.0, -60.0, 30.0));
        let svg = graph.draw(Frame::Fixed(472.0), ends);
        assert!(svg.contains("d=\"M0 0L100 63.33L400 190\""), "{svg}");
        assert!(svg.contains(">-60<") || svg.contains(">-50<"), "{svg}");
    }

    #[test]
    fn a_long_time_is_in_seconds() {
        let draw = |right| graph().draw(Frame::Fluid, Ends::from_zero(right, 20.0));
        assert!(draw(600_000.0).contains(">time, s<") && draw(600_000.0).contains(">200<"));
        assert!(draw(9000.0).contains(">time, ms<") && draw(9000.0).contains(">2000<"));
    }

    #[test]
    fn series_without_points_are_left_out() {
        assert!(
            Graph::new("x", "", "").with(Series::new("x", Style::Line, Tone::Red, Vec::new())).is_empty()
        );
    }
}
