//! The cases as a table, for a terminal or as Markdown.

use super::case::Case;
use super::measured::Measured;
use core::fmt::Write as _;

/// A case with what was measured.
pub struct Row {
    case: Case,
    nanos: f64,
    /// What a packet costs, in ordinary data packets.
    cost: f64,
    /// Nanoseconds in Linux.
    linux: Option<f64>,
    pinned: usize,
    sent_back: f64,
}

impl Row {
    /// `linux`: nanoseconds there.
    pub fn new(case: &Case, measured: &Measured, linux: Option<f64>) -> Row {
        let Measured { nanos, pinned, sent_back, .. } = *measured;
        Row { case: *case, nanos, cost: measured.cost(), linux, pinned, sent_back }
    }

    /// Which bounds were not kept, in words.
    pub fn exceeded(&self) -> Vec<String> {
        let Row { case, cost, pinned, sent_back, .. } = self;
        let mut exceeded = Vec::new();
        if *cost > case.most_cost {
            exceeded.push(format!("{}: a packet costs {cost:.2}, of at most {}", case.name, case.most_cost));
        }
        if *pinned > case.most_pinned {
            exceeded.push(format!("{}: {pinned} bytes are held, of at most {}", case.name, case.most_pinned));
        }
        if *sent_back > case.most_sent_back {
            exceeded.push(format!(
                "{}: {sent_back:.2} bytes are sent for each that comes, of at most {}",
                case.name, case.most_sent_back
            ));
        }
        exceeded
    }

    fn linux(&self) -> String {
        self.linux.map_or("–".to_string(), |nanos| format!("{nanos:.0}"))
    }
}

/// For a terminal.
pub fn text(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.case.name.chars().count()).max().unwrap_or(0);
    let mut text = format!(
        "{:<width$} {:>8} {:>8} {:>14} {:>22} {:>14}\n",
        "case", "ns", "Linux ns", "cost (at most)", "memory (at most)", "sent (at most)"
    );
    for row in rows {
        let Row { case, nanos, cost, pinned, sent_back, .. } = row;
        let costs = format!("{cost:.1} ({})", case.most_cost);
        let memory = format!("{} ({})", bytes(*pinned), bytes(case.most_pinned));
        let sent = format!("{sent_back:.1} ({})", case.most_sent_back);
        let mark = if row.exceeded().is_empty() { "" } else { "  EXCEEDED" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<width$} {nanos:>8.0} {:>8} {costs:>14} {memory:>22} {sent:>14}{mark}",
            case.name,
            row.linux()
        );
    }
    text
}

/// For `docs/hostile.md`.
pub fn markdown(rows: &[Row]) -> String {
    let mut text =
        "| case | ns a packet | Linux, ns | cost (at most) | memory (at most) | sent back (at most) | bounded by |\n"
            .to_string();
    text.push_str("|---|---|---|---|---|---|---|\n");
    for row in rows {
        let Row { case, nanos, cost, pinned, sent_back, .. } = row;
        let _ = writeln!(
            text,
            "| {} | {nanos:.0} | {} | {cost:.1} ({}) | {} ({}) | {sent_back:.1} ({}) | {} |",
            case.name,
            row.linux(),
            case.most_cost,
            bytes(*pinned),
            bytes(case.most_pinned),
            case.most_sent_back,
            case.bounded_by
        );
    }
    text
}

fn bytes(count: usize) -> String {
    const KIB: usize = 1024;
    match count {
        0..KIB => format!("{count} B"),
        KIB..1_048_576 => format!("{} KiB", count / KIB),
        _ => format!("{:.1} MiB", count as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::cases;

    fn row(nanos: f64, pinned: usize, sent_back: f64) -> Row {
        let case = Case { most_cost: 2.0, most_pinned: 1000, most_sent_back: 1.5, ..cases()[0] };
        Row::new(&case, &Measured { nanos, ordinary: Some(100.0), pinned, sent_back }, Some(1250.0))
    }

    #[test]
    fn what_exceeds_its_bounds_is_told() {
        assert!(row(200.0, 1000, 1.5).exceeded().is_empty());
        assert!(row(201.0, 0, 0.0).exceeded()[0].contains("a packet costs 2.01, of at most 2"));
        assert!(row(0.0, 1001, 0.0).exceeded()[0].contains("1001 bytes are held, of at most 1000"));
        assert!(row(0.0, 0, 1.6).exceeded()[0].contains("1.60 bytes are sent"));
        assert!(
            text(&[row(201.0, 0, 0.0)]).contains("2.0 (2)")
                && text(&[row(201.0, 0, 0.0)]).contains("EXCEEDED")
        );
        assert!(
            markdown(&[row(100.0, 2048, 1.0)])
                .contains("| 100 | 1250 | 1.0 (2) | 2 KiB (1000 B) | 1.0 (1.5) |")
        );
    }
}
