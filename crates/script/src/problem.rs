//! An error in a script, and its place.

use std::fmt;

/// A place in a script's text: both count from 1; columns count characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

/// A script that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it was noticed.
    pub place: Place,
    /// The error, or the expected token.
    pub message: String,
    /// The line of the script.
    pub text: String,
}

impl Problem {
    pub(crate) fn new(source: &str, place: Place, message: impl Into<String>) -> Problem {
        let text = source.lines().nth(place.line.saturating_sub(1)).unwrap_or_default().to_owned();
        Problem { place, message: message.into(), text }
    }
}

/// `line:column: message`, the line, and a caret below the place.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column } = self.place;
        writeln!(f, "{line}:{column}: {}", self.message)?;
        let number = line.to_string();
        writeln!(f, "  {number} | {}", self.text)?;
        // Tabs stay tabs, so that the caret stands right whatever their width is.
        let before = self.text.chars().take(column.saturating_sub(1));
        let blank: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        write!(f, "  {:width$} | {blank}^", "", width = number.len())
    }
}

impl std::error::Error for Problem {}
