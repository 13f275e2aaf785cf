//! Draws a ladder: one line per packet, an arrow between two columns of time.

use super::paint::{Paint, Piece};
use crate::ladder::{Ladder, Rung, Way};

/// Columns of a time with its unit and the space around it.
const TIME: usize = 12;

pub(super) struct LadderLines<'a> {
    ladder: &'a Ladder,
    lane: usize,
    decimals: usize,
}

impl<'a> LadderLines<'a> {
    pub(super) fn new(ladder: &'a Ladder, width: usize) -> LadderLines<'a> {
        let lane = width.saturating_sub(2 * TIME).max(48);
        let times = ladder.rungs.iter().flat_map(|rung| [rung.sent_ms, rung.received_ms]);
        let longest = times.flatten().fold(0.0, f64::max);
        LadderLines { ladder, lane, decimals: if longest < 10.0 { 3 } else { 1 } }
    }

    pub(super) fn lines(&self) -> Vec<Vec<Piece>> {
        let Ladder { left, right, .. } = self.ladder;
        let head = format!("{left:>width$} {:lane$} {right:>9}", "", width = TIME - 1, lane = self.lane);
        let mut lines = vec![vec![(Some(Paint::Dim), head)]];
        lines.extend(self.ladder.rungs.iter().map(|rung| self.rung(rung)));
        lines
    }

    fn rung(&self, rung: &Rung) -> Vec<Piece> {
        let cell = |time: Option<f64>| time.map(|at| self.time(at)).unwrap_or_default();
        let (sent, arrived) = (cell(rung.sent_ms), cell(rung.received_ms));
        let outsider = rung.remarks.iter().find_map(|remark| remark.strip_prefix("sent by "));
        let label = self.label(rung);
        let (left, right) = match rung.way {
            Way::ToServer => (outsider.map_or(sent, |by| by.to_string()), arrived),
            Way::ToClient => (arrived, outsider.map_or(sent, |by| by.to_string())),
        };
        let mut line = vec![(Some(Paint::Dim), format!("{left:>width$} ", width = TIME - 1))];
        line.extend(self.arrow(rung, label));
        line.push((Some(Paint::Dim), format!(" {right:>9}")));
        line
    }

    /// Draws the lane between the two columns, `self.lane` wide: `├─ label ───▶`.
    fn arrow(&self, rung: &Rung, label: String) -> Vec<Piece> {
        let tail = rung.lost_by.as_ref().map_or(String::new(), |by| match rung.way {
            Way::ToServer => format!("× {by}"),
            Way::ToClient => format!("{by} ×"),
        });
        let taken = label.chars().count() + tail.chars().count() + 4 + usize::from(tail.is_empty());
        let line = "─".repeat(self.lane.saturating_sub(taken));
        let paint = is_fast_open(rung).then_some(Paint::Good);
        let tail_piece = |arrow: &str| match tail.is_empty() {
            true => (None, arrow.to_string()),
            false => (Some(Paint::Bad), tail.clone()),
        };
        match rung.way {
            Way::ToServer => {
                vec![(None, "├─ ".into()), (paint, label), (None, format!(" {line}")), tail_piece("▶")]
            }
            Way::ToClient => {
                vec![tail_piece("◀"), (None, format!("{line} ")), (paint, label), (None, " ─┤".into())]
            }
        }
    }

    /// Describes the packet, cut to the lane. Drops options first, from the last, then remarks.
    fn label(&self, rung: &Rung) -> String {
        let lost = rung.lost_by.as_ref().map_or(0, |by| by.chars().count() + 2);
        let room = self.lane.saturating_sub(8 + lost);
        let mut options: Vec<String> = rung.options.iter().map(|option| shortened(option)).collect();
        let mut remarks: Vec<String> = rung
            .remarks
            .iter()
            .filter(|remark| !remark.starts_with("sent by "))
            .map(|remark| format!("({remark})"))
            .collect();
        loop {
            let label = joined(rung, options.iter().chain(&remarks));
            if label.chars().count() <= room {
                return label;
            }
            if options.pop().or_else(|| remarks.pop()).is_none() {
                return label.chars().take(room.saturating_sub(1)).chain(['…']).collect();
            }
        }
    }

    fn time(&self, ms: f64) -> String {
        format!("{ms:.decimals$} ms", decimals = self.decimals)
    }
}

fn is_fast_open(rung: &Rung) -> bool {
    rung.flags.contains("SYN")
        && (rung.len > 0 || rung.options.iter().any(|option| option.starts_with("cookie")))
}

/// Shortens a cookie to its first eight digits.
fn shortened(option: &str) -> String {
    match option.strip_prefix("cookie ") {
        Some(rest) if rest.chars().take(9).all(|digit| digit.is_ascii_hexdigit()) && rest.len() > 8 => {
            let (digits, kind) = rest.split_once(' ').unwrap_or((rest, ""));
            format!("cookie {}… {kind}", &digits[..8]).trim_end().into()
        }
        _ => option.into(),
    }
}

fn joined<'e>(rung: &Rung, extras: impl Iterator<Item = &'e String>) -> String {
    let mut label = format!("{:<7} seq {}", rung.flags, rung.seq);
    if let Some(ack) = rung.ack {
        label.push_str(&format!(" ack {ack}"));
    }
    if rung.len > 0 {
        label.push_str(&format!(" len {}", rung.len));
    }
    for extra in extras {
        label.push_str("  ");
        label.push_str(extra);
    }
    label
}

#[cfg(test)]
mod tests;
