//! Pages: headings, paragraphs, tables and ladders, as text of a given width, with or without
//! color.

use super::chart::Chart;
use super::ladder::LadderLines;
use super::paint::Paint;
use super::table::Table;
use super::wrap::wrapped;
use crate::ladder::Ladder;

/// The style of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageStyle {
    /// Available columns; ladders and paragraphs use all of them.
    pub width: usize,
    /// True for ANSI colors.
    pub color: bool,
}

impl Default for PageStyle {
    /// Returns 100 columns without color, for pipes.
    fn default() -> PageStyle {
        PageStyle { width: 100, color: false }
    }
}

/// Minimum width of the layout.
const WIDTH_MIN: usize = 72;
/// Maximum width of the layout: longer lines are hard to read.
const WIDTH_MAX: usize = 140;

/// A part of a page.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// A paragraph that is wrapped.
    Paragraph(String),
    /// A line that is not wrapped.
    Line(String),
    /// A check and its result.
    Verdict {
        /// Whether the check passed.
        holds: bool,
        /// Its description.
        text: String,
    },
    /// An empty line.
    Gap,
    /// A table.
    Table(Table),
    /// Checks as a table, and which of them passed.
    Judged(Table, Vec<bool>),
    /// A ladder under its title.
    Ladder(Ladder),
    /// A chart under its title.
    Chart(Chart),
}

/// A page under construction.
#[derive(Clone, Debug)]
pub struct Page {
    style: PageStyle,
    blocks: Vec<Block>,
}

impl Page {
    /// Creates an empty page.
    pub fn new(style: PageStyle) -> Page {
        let style = PageStyle { width: style.width.clamp(WIDTH_MIN, WIDTH_MAX), ..style };
        Page { style, blocks: Vec::new() }
    }

    /// Adds a heading, with an empty line before it unless it is first.
    pub fn heading(&mut self, text: &str) {
        self.blocks.push(Block::Heading(text.into()));
    }

    /// Adds a paragraph that is wrapped.
    pub fn paragraph(&mut self, text: &str) {
        self.blocks.push(Block::Paragraph(text.into()));
    }

    /// Adds a line that is not wrapped.
    pub fn line(&mut self, text: &str) {
        self.blocks.push(Block::Line(text.into()));
    }

    /// Adds a check and its result.
    pub fn verdict(&mut self, holds: bool, text: &str) {
        self.blocks.push(Block::Verdict { holds, text: text.into() });
    }

    /// Adds an empty line, unless the page is empty or ends with one.
    pub fn gap(&mut self) {
        self.blocks.push(Block::Gap);
    }

    /// Adds checks. The columns are the name, the value, the expectation, and more.
    pub fn judged(&mut self, table: Table, held: Vec<bool>) {
        self.blocks.push(Block::Judged(table, held));
    }

    /// Adds a table.
    pub fn table(&mut self, table: &Table) {
        self.blocks.push(Block::Table(table.clone()));
    }

    /// Adds a ladder under its title.
    pub fn ladder(&mut self, ladder: &Ladder) {
        self.blocks.push(Block::Ladder(ladder.clone()));
    }

    /// Adds a chart under its title.
    pub fn chart(&mut self, chart: &Chart) {
        self.blocks.push(Block::Chart(chart.clone()));
    }

    /// Returns its parts, from top to bottom.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the page as text.
    pub fn into_text(self) -> String {
        let mut writer = Writer { style: self.style, text: String::new() };
        self.blocks.iter().for_each(|block| writer.block(block));
        writer.text
    }
}

/// Writes blocks as text.
struct Writer {
    style: PageStyle,
    text: String,
}

impl Writer {
    fn block(&mut self, block: &Block) {
        match block {
            Block::Heading(text) => self.heading(text),
            Block::Paragraph(text) => self.paragraph(text),
            Block::Line(text) => self.line(text),
            Block::Verdict { holds, text } => self.verdict(*holds, text),
            Block::Judged(table, held) => self.judged(table, held),
            Block::Gap => self.gap(),
            Block::Table(table) => self.table(table),
            Block::Ladder(ladder) => self.ladder(ladder),
            Block::Chart(chart) => {
                self.heading(&chart.heading());
                chart.lines(self.style.width).iter().for_each(|line| self.line(line));
            }
        }
    }

    /// Writes a result; continuation lines align with its text.
    fn verdict(&mut self, holds: bool, text: &str) {
        let (paint, word) = verdict(holds);
        let margin = word.len() + 2;
        let painted = self.paint(paint, word);
        let mut before = format!("{painted}  ");
        for line in wrapped(text, self.style.width - margin) {
            self.line(&format!("{before}{line}"));
            before = " ".repeat(margin);
        }
    }

    /// Writes a table with a result before each row. If the page is too narrow, writes a result
    /// with the value, and the other columns below it.
    fn judged(&mut self, table: &Table, held: &[bool]) {
        if table.width() + VERDICT <= self.style.width {
            let mut lines = table.lines().into_iter();
            let names = lines.next().unwrap_or_default();
            let names = self.paint(Paint::Dim, &names);
            self.line(&format!("{:VERDICT$}{names}", ""));
            for (line, holds) in lines.zip(held) {
                let (paint, word) = verdict(*holds);
                let word = self.paint(paint, &format!("{word:VERDICT$}"));
                self.line(&format!("{word}{line}"));
            }
            return;
        }
        for (row, holds) in table.rows().zip(held) {
            let [what, here, expected, others @ ..] = row else { continue };
            let text = if expected == here { String::new() } else { format!(" ({expected})") };
            let colon = if what.ends_with('?') { "" } else { ":" };
            self.verdict(*holds, &format!("{what}{colon} {here}{text}"));
            for (name, cell) in table.names().skip(3).zip(others).filter(|(_, cell)| !cell.is_empty()) {
                self.paragraph_in(&format!("{name}: {cell}"), "      ");
            }
        }
    }

    fn heading(&mut self, text: &str) {
        self.gap();
        for line in wrapped(text, self.style.width) {
            let painted = self.paint(Paint::Heading, &line);
            self.line(&painted);
        }
    }

    fn paragraph(&mut self, text: &str) {
        self.paragraph_in(text, "");
    }

    /// Writes wrapped text, each line behind a margin.
    fn paragraph_in(&mut self, text: &str, margin: &str) {
        for line in wrapped(text, self.style.width - margin.len()) {
            self.line(&format!("{margin}{line}"));
        }
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    fn table(&mut self, table: &Table) {
        let (names, rows) = table.lines_within(self.style.width);
        for line in names {
            let line = self.paint(Paint::Dim, &line);
            self.line(&line);
        }
        rows.iter().for_each(|line| self.line(line));
    }

    fn ladder(&mut self, ladder: &Ladder) {
        self.heading(&ladder.title);
        for pieces in LadderLines::new(ladder, self.style.width).lines() {
            let mut line = String::new();
            for (paint, piece) in pieces {
                match paint {
                    Some(paint) => line.push_str(&self.paint(paint, &piece)),
                    None => line.push_str(&piece),
                }
            }
            self.line(&line);
        }
    }

    fn paint(&self, paint: Paint, text: &str) -> String {
        if !self.style.color || text.trim().is_empty() {
            return text.into();
        }
        let code = match paint {
            Paint::Heading => "1",
            Paint::Dim => "2",
            Paint::Good => "32",
            Paint::Bad => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Columns of the longest result.
const VERDICT: usize = 5;

fn verdict(holds: bool) -> (Paint, &'static str) {
    if holds { (Paint::Good, "ok") } else { (Paint::Bad, "FAILS") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_and_verdicts_do_not_run_over_the_edge() {
        let mut page = Page::new(PageStyle { width: 72, color: false });
        let text = "word ".repeat(30);
        page.heading(&text);
        page.verdict(true, &text);
        let text = page.into_text();
        assert!(text.lines().all(|line| line.len() <= 72), "{text}");
        assert!(text.contains("\nok  word") && text.contains("\n    word"), "{text}");
    }
}
