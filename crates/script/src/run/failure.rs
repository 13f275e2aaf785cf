//! Why a script failed, with what was expected beside what was seen.

use std::fmt;

/// A script that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Line of the event.
    pub line: usize,
    /// The error.
    pub message: String,
    /// The value that the script expects.
    pub expected: Option<String>,
    /// The actual value.
    pub seen: Option<String>,
    /// The script's line, if the text is known ([`in_source`](Self::in_source)).
    pub text: Option<String>,
}

impl Failure {
    pub(crate) fn new(line: usize, message: impl Into<String>) -> Failure {
        Failure { line, message: message.into(), expected: None, seen: None, text: None }
    }

    pub(crate) fn beside(self, expected: impl Into<String>, seen: impl Into<String>) -> Failure {
        Failure { expected: Some(expected.into()), seen: Some(seen.into()), ..self }
    }

    /// With the line of the script it stands in.
    #[must_use]
    pub fn in_source(self, source: &str) -> Failure {
        let text = source.lines().nth(self.line.saturating_sub(1)).map(|text| text.trim().to_owned());
        Failure { text, ..self }
    }
}

/// `line: message`, then the script's line, what was expected and what was seen, one below the other, differences underlined.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)?;
        if let Some(text) = &self.text {
            write!(f, "\n  script    {text}")?;
        }
        let (Some(expected), Some(seen)) = (&self.expected, &self.seen) else { return Ok(()) };
        write!(f, "\n  expected  {expected}\n  seen      {seen}")?;
        let marks = differences(expected, seen);
        if marks.is_empty() { Ok(()) } else { write!(f, "\n            {marks}") }
    }
}

impl std::error::Error for Failure {}

/// Marks below the words of `seen` that `expected` does not have at their place.
fn differences(expected: &str, seen: &str) -> String {
    let mut wanted = expected.split(' ');
    let mut marks = String::new();
    for word in seen.split(' ') {
        let mark = if wanted.next() == Some(word) { " " } else { "^" };
        marks.push_str(&mark.repeat(word.chars().count()));
        marks.push(' ');
    }
    marks.trim_end().to_owned()
}
