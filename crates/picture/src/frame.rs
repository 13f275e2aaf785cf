//! The size of a drawing: as wide as the page, or a fixed number of pixels.

/// Units across the data of a graph without a fixed width.
const UNITS: f64 = 10_000.0;

/// Width of a drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Frame {
    /// The full width of its container; the script may zoom.
    Fluid,
    /// A fixed width, pixels.
    Fixed(f64),
}

impl Frame {
    /// Returns the position of `share` (0 to 1) of the width inside the margins, for text and lines
    /// with a fixed size.
    pub(crate) fn across(self, share: f64, margins: f64) -> String {
        match self {
            Frame::Fluid => format!("{}%", trimmed(share * 100.0)),
            Frame::Fixed(width) => trimmed(share * (width - margins)),
        }
    }

    /// Returns a share of the frame in the units of the data, as an SVG coordinate.
    pub(crate) fn data(self, share: f64, margins: f64) -> String {
        match self {
            Frame::Fluid => trimmed(share * UNITS),
            Frame::Fixed(width) => trimmed(share * (width - margins)),
        }
    }

    /// Returns the size attributes of the element around the data, with `edge` more above and
    /// below.
    pub(crate) fn viewport(self, margins: f64, height: f64, edge: f64) -> String {
        let outer = height + 2.0 * edge;
        let (width, units) = match self {
            Frame::Fluid => ("100%".to_owned(), UNITS),
            Frame::Fixed(width) => (trimmed(width - margins), width - margins),
        };
        format!(
            "width=\"{width}\" y=\"-{edge}\" height=\"{outer}\" viewBox=\"0 -{edge} {units} {outer}\" preserveAspectRatio=\"none\""
        )
    }
}

/// Formats a number with two decimals at most.
pub(crate) fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
