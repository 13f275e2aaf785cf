//! The place of a drawing: as wide as the page lets it be, or so many pixels.

/// Units across the data of a graph that has no width of its own.
const UNITS: f64 = 10_000.0;

/// How wide a drawing is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Frame {
    /// As wide as its place; the script may zoom.
    Fluid,
    /// So many pixels.
    Fixed(f64),
}

impl Frame {
    /// The place of `share` (0 to 1) of the width inside the margins, for text and lines that keep their size.
    pub(crate) fn across(self, share: f64, margins: f64) -> String {
        match self {
            Frame::Fluid => format!("{}%", trimmed(share * 100.0)),
            Frame::Fixed(width) => trimmed(share * (width - margins)),
        }
    }

    /// A share of the frame in the units of the data, as SVG coordinates.
    pub(crate) fn data(self, share: f64, margins: f64) -> String {
        match self {
            Frame::Fluid => trimmed(share * UNITS),
            Frame::Fixed(width) => trimmed(share * (width - margins)),
        }
    }

    /// What the element around the data says of its size: `edge` more above and below them.
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

/// Two decimals at most.
pub(crate) fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
