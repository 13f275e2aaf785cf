//! A check: a measured value beside its expectation.

use super::{Align, Page, Table};
use crate::experiment::units::{in_unit_of, quantity};
use core::fmt::Display;
use serde_json::json;

/// One check.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The name of the measured value.
    pub what: String,
    /// The measured value, formatted.
    pub ours: String,
    /// The measured value as a number, if it is one: seconds, bytes, bytes per second, or plain.
    pub value: Option<f64>,
    /// The value in the literature.
    pub source: String,
    /// The value measured on Linux.
    pub linux: String,
    /// The expected value or range.
    pub criterion: String,
    /// Whether the check passed.
    pub holds: bool,
}

impl Finding {
    /// Expects a quantity near `expected`, e.g. `340 ms`, with a tolerance of `percent` of it.
    pub fn near(what: &str, value: Option<f64>, expected: &str, percent: f64) -> Finding {
        let is = quantity(expected).unwrap_or(f64::NAN);
        // Times of a simulation are exact to the nanosecond; sums are exact to the precision of a
        // float.
        let room = (percent / 100.0).max(1e-9) * is.abs() + 1e-12;
        let criterion =
            if percent > 0.0 { format!("{expected} ± {percent} %") } else { expected.to_owned() };
        Finding {
            what: what.to_owned(),
            ours: value.map_or("none".into(), |value| in_unit_of(value, expected)),
            value,
            source: String::new(),
            linux: String::new(),
            criterion,
            holds: value.is_some_and(|value| (value - is).abs() <= room),
        }
    }

    /// Expects a quantity of at least `least`.
    pub fn at_least(what: &str, value: Option<f64>, least: &str) -> Finding {
        let bound = quantity(least).unwrap_or(f64::NAN);
        Finding {
            criterion: format!("at least {least}"),
            holds: value.is_some_and(|value| value >= bound),
            ..Finding::near(what, value, least, 0.0)
        }
    }

    /// Expects equal words or whole numbers.
    pub fn same(what: &str, ours: impl Display, expected: impl Display) -> Finding {
        let (ours, criterion) = (ours.to_string(), expected.to_string());
        Finding {
            what: what.to_owned(),
            value: ours.parse().ok(),
            holds: ours == criterion,
            ours,
            criterion,
            source: String::new(),
            linux: String::new(),
        }
    }

    /// Adds the value in the literature.
    pub fn source(mut self, words: &str) -> Finding {
        words.clone_into(&mut self.source);
        self
    }

    /// Adds the value measured on Linux.
    pub fn linux(mut self, words: &str) -> Finding {
        words.clone_into(&mut self.linux);
        self
    }

    /// Returns the check as JSON.
    pub fn json(&self) -> serde_json::Value {
        json!({
            "what": self.what, "value": self.value, "here": self.ours, "expected": self.criterion,
            "source": self.source, "linux": self.linux, "holds": self.holds,
        })
    }
}

/// Writes the checks with their results.
pub(super) fn render(page: &mut Page, findings: &[Finding]) {
    if findings.is_empty() {
        return;
    }
    page.gap();
    page.judged(table(findings), findings.iter().map(|finding| finding.holds).collect());
}

fn table(findings: &[Finding]) -> Table {
    // A column without any values is omitted.
    let columns = [
        ("", Align::Left, true),
        ("here", Align::Right, true),
        ("expected", Align::Left, true),
        ("literature", Align::Left, findings.iter().any(|finding| !finding.source.is_empty())),
        ("Linux", Align::Left, findings.iter().any(|finding| !finding.linux.is_empty())),
    ];
    let shown = columns.iter().filter(|(.., is_shown)| *is_shown);
    let mut table = Table::new(shown.map(|(name, align, _)| (*name, *align)));
    for Finding { what, ours, criterion, source, linux, .. } in findings {
        let shown = [what, ours, criterion, source, linux].into_iter().zip(&columns);
        table.row(shown.filter(|(_, (.., is_shown))| *is_shown).map(|(cell, _)| cell.as_str()));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::PageStyle;

    #[test]
    fn a_table_that_is_too_wide_becomes_lines_below_the_verdicts() {
        let long = "Error: Cannot delete the qdisc";
        let finding = Finding::same("tc qdisc del dev eth0 root", long, long).linux("cannot be deleted");
        let text = |width| {
            let mut page = Page::new(PageStyle { width, color: false });
            render(&mut page, core::slice::from_ref(&finding));
            page.into_text()
        };
        assert_eq!(
            text(80),
            format!("ok  tc qdisc del dev eth0 root: {long}\n      Linux: cannot be deleted\n")
        );
        let lines: Vec<String> = text(140).lines().map(str::to_owned).collect();
        assert!(lines.len() == 2 && lines[0].contains("expected"), "{lines:?}");
        assert!(lines[1].starts_with("ok     tc qdisc del dev eth0 root  Error: Cannot"), "{lines:?}");
    }

    #[test]
    fn a_figure_holds_within_its_room_only() {
        assert!(Finding::near("time", Some(0.343), "340 ms", 1.0).holds);
        assert!(!Finding::near("time", Some(0.3435), "340 ms", 1.0).holds);
        assert!(!Finding::near("time", None, "340 ms", 1.0).holds, "what was not measured does not hold");
        assert!(Finding::at_least("share", Some(0.9), "90 %").holds);
        assert!(!Finding::at_least("share", Some(0.899), "90 %").holds);
        assert!(!Finding::same("words", "refused", "accepted").holds);
    }
}
