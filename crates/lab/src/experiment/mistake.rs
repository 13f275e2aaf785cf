//! A mistake in a file: what is wrong, and where that stands.
//!
//! Whoever finds one says under which keys; the lines of the file are looked up in one place, when it is told.

use core::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mistake {
    text: String,
    /// Under which keys, the outermost first; a part of a list by its number, from 0.
    keys: Vec<String>,
}

impl From<String> for Mistake {
    fn from(text: String) -> Mistake {
        Mistake { text, keys: Vec::new() }
    }
}

impl From<&str> for Mistake {
    fn from(text: &str) -> Mistake {
        text.to_owned().into()
    }
}

impl From<Mistake> for String {
    /// Where there is no file.
    fn from(mistake: Mistake) -> String {
        mistake.text
    }
}

impl Mistake {
    /// A mistake as it is seen from outside of `key`.
    pub(super) fn within(mut self, key: impl ToString) -> Mistake {
        self.keys.insert(0, key.to_string());
        self
    }

    /// With words before it that say whose it is.
    pub(super) fn of(self, whose: &str) -> Mistake {
        Mistake { text: format!("{whose}: {}", self.text), ..self }
    }

    /// Does it stand in a run whichever it was found in?
    pub(super) fn is_of_a_run(&self) -> bool {
        self.keys.first().is_some_and(|key| key == "run")
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// Says where the mistakes of a result are.
pub(super) trait Within<T> {
    /// Under `key`, that is.
    fn within(self, key: impl ToString) -> Result<T, Mistake>;
}

impl<T, E: Into<Mistake>> Within<T> for Result<T, E> {
    fn within(self, key: impl ToString) -> Result<T, Mistake> {
        self.map_err(|mistake| mistake.into().within(key))
    }
}

/// A file, to find lines in.
pub(super) struct Lines<'a> {
    text: &'a str,
    table: Option<Spanned<DeTable<'a>>>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Lines<'a> {
        Lines { text, table: DeTable::parse(text).ok() }
    }

    /// Does the file say exactly what the mistake is in?
    pub(super) fn has(&self, mistake: &Mistake) -> bool {
        !mistake.keys.is_empty() && self.find(mistake).0 == mistake.keys.len()
    }

    /// The mistake below its line, or that of what it stands in.
    pub(super) fn told(&self, mistake: &Mistake) -> String {
        match self.find(mistake).1 {
            Some(span) => below_its_line(self.text, &span, &mistake.text),
            None => mistake.text.clone(),
        }
    }

    /// How many of its keys the file has, one in the other, and where the last of those stands.
    fn find(&self, mistake: &Mistake) -> (usize, Option<Range<usize>>) {
        let Some(table) = &self.table else { return (0, None) };
        let mut place = None;
        let mut inner = Inner::Table(table.get_ref());
        for (depth, key) in mistake.keys.iter().enumerate() {
            let found = match inner {
                Inner::Table(table) => table.get_key_value(key.as_str()).map(|(key, value)| {
                    // With its key, unless it is a table of its own below a line with its name.
                    let end = if value.get_ref().is_table() { key.span().end } else { value.span().end };
                    (key.span().start..end.max(key.span().end), value.get_ref())
                }),
                Inner::Value(DeValue::Array(list)) => {
                    let part = key.parse().ok().and_then(|number: usize| list.get(number));
                    part.map(|value| (value.span(), value.get_ref()))
                }
                // A list of one may be written without brackets.
                Inner::Value(value) => place.clone().filter(|_| key == "0").map(|span| (span, value)),
            };
            let Some((span, value)) = found else { return (depth, place) };
            place = Some(span);
            inner = match value {
                DeValue::Table(table) => Inner::Table(table),
                value => Inner::Value(value),
            };
        }
        (mistake.keys.len(), place)
    }
}

enum Inner<'t, 'a> {
    Table(&'t DeTable<'a>),
    Value(&'t DeValue<'a>),
}

/// What is wrong with a part of a text, below the line that it begins in.
pub(super) fn below_its_line(text: &str, span: &Range<usize>, wrong: &str) -> String {
    let before = text.get(..span.start).unwrap_or(text);
    let (number, begin) = (before.matches('\n').count() + 1, before.rfind('\n').map_or(0, |at| at + 1));
    let line = text[begin..].lines().next().unwrap_or_default();
    let column = text[begin..before.len()].chars().count();
    let marked = text.get(before.len()..span.end.min(begin + line.len())).unwrap_or_default();
    let (margin, marks) = (number.to_string().len(), marked.chars().count().max(1));
    format!(
        "line {number}, column {}\n{:margin$} |\n{number} | {line}\n{:margin$} | {:column$}{}\n{wrong}",
        column + 1,
        "",
        "",
        "",
        "^".repeat(marks),
    )
}
