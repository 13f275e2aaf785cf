//! A mistake in a file and its place.
//!
//! The code that finds a mistake notes its keys. The lines of the file are looked up in one place,
//! when the mistake is shown.

use core::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A mistake.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mistake {
    text: String,
    /// Keys that lead to it, outermost first; an element of a list by its index, from 0.
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
    /// Formats a mistake that is in no file.
    fn from(mistake: Mistake) -> String {
        mistake.text
    }
}

impl Mistake {
    /// Adds the key that contains the mistake.
    pub(super) fn within(mut self, key: impl ToString) -> Mistake {
        self.keys.insert(0, key.to_string());
        self
    }

    /// Adds a prefix that names the owner.
    pub(super) fn of(self, whose: &str) -> Mistake {
        Mistake { text: format!("{whose}: {}", self.text), ..self }
    }

    /// Returns whether the mistake is inside a run, whichever run it was found in.
    pub(super) fn is_of_a_run(&self) -> bool {
        self.keys.first().is_some_and(|key| key == "run")
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// Adds places to the mistakes of a result.
pub(super) trait Within<T> {
    /// Adds the key that contains the mistake.
    fn within(self, key: impl ToString) -> Result<T, Mistake>;
}

impl<T, E: Into<Mistake>> Within<T> for Result<T, E> {
    fn within(self, key: impl ToString) -> Result<T, Mistake> {
        self.map_err(|mistake| mistake.into().within(key))
    }
}

/// A file, for looking up lines.
pub(super) struct Lines<'a> {
    text: &'a str,
    table: Option<Spanned<DeTable<'a>>>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Lines<'a> {
        Lines { text, table: DeTable::parse(text).ok() }
    }

    /// Returns whether the file contains exactly the keys of the mistake.
    pub(super) fn has(&self, mistake: &Mistake) -> bool {
        !mistake.keys.is_empty() && self.find(mistake).0 == mistake.keys.len()
    }

    /// Formats the mistake below its line, or below the line of its closest container.
    pub(super) fn told(&self, mistake: &Mistake) -> String {
        match self.find(mistake).1 {
            Some(span) => below_its_line(self.text, &span, &mistake.text),
            None => mistake.text.clone(),
        }
    }

    /// Returns how many of the keys the file contains, nested in each other, and the place of the
    /// last one.
    fn find(&self, mistake: &Mistake) -> (usize, Option<Range<usize>>) {
        let Some(table) = &self.table else { return (0, None) };
        let mut place = None;
        let mut inner = Inner::Table(table.get_ref());
        for (depth, key) in mistake.keys.iter().enumerate() {
            let found = match inner {
                Inner::Table(table) => table.get_key_value(key.as_str()).map(|(key, value)| {
                    // The span includes the key, unless the value is a table below its own header.
                    let end = if value.get_ref().is_table() { key.span().end } else { value.span().end };
                    (key.span().start..end.max(key.span().end), value.get_ref())
                }),
                Inner::Value(DeValue::Array(list)) => {
                    let part = key.parse().ok().and_then(|number: usize| list.get(number));
                    part.map(|value| (value.span(), value.get_ref()))
                }
                // A list of one element may be written without brackets.
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

/// Formats a mistake in a part of a text, below the line in which that part begins.
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
