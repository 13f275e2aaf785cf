//! A page: headings, paragraphs, tables and ladders; as text at a given width, with or without colour.

use super::chart::Chart;
use super::ladder::LadderLines;
use super::paint::Paint;
use super::table::Table;
use crate::ladder::Ladder;

/// How a page is to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageStyle {
    /// Columns available; ladders and paragraphs fill them.
    pub width: usize,
    /// ANSI colours.
    pub color: bool,
}

impl Default for PageStyle {
    /// 100 columns, no colour: what a pipe gets.
    fn default() -> PageStyle {
        PageStyle { width: 100, color: false }
    }
}

/// Narrower pages than this are laid out as this wide.
const WIDTH_MIN: usize = 72;
/// Lines longer than this are hard to follow; wider terminals leave the rest empty.
const WIDTH_MAX: usize = 140;

/// What stands on a page, from top to bottom.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// A paragraph, to be wrapped.
    Paragraph(String),
    /// A line as it is.
    Line(String),
    /// Something expected, and whether it came.
    Verdict {
        /// It did.
        holds: bool,
        /// What.
        text: String,
    },
    /// An empty line.
    Gap,
    /// A table.
    Table(Table),
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
    /// An empty page.
    pub fn new(style: PageStyle) -> Page {
        let style = PageStyle { width: style.width.clamp(WIDTH_MIN, WIDTH_MAX), ..style };
        Page { style, blocks: Vec::new() }
    }

    /// A heading, with an empty line before it unless it is the first thing on the page.
    pub fn heading(&mut self, text: &str) {
        self.blocks.push(Block::Heading(text.into()));
    }

    /// A paragraph, wrapped.
    pub fn paragraph(&mut self, text: &str) {
        self.blocks.push(Block::Paragraph(text.into()));
    }

    /// A line as it is.
    pub fn line(&mut self, text: &str) {
        self.blocks.push(Block::Line(text.into()));
    }

    /// Whether something expected came.
    pub fn verdict(&mut self, holds: bool, text: &str) {
        self.blocks.push(Block::Verdict { holds, text: text.into() });
    }

    /// An empty line, unless there is one or the page is empty.
    pub fn gap(&mut self) {
        self.blocks.push(Block::Gap);
    }

    /// A table.
    pub fn table(&mut self, table: &Table) {
        self.blocks.push(Block::Table(table.clone()));
    }

    /// A ladder under its title.
    pub fn ladder(&mut self, ladder: &Ladder) {
        self.blocks.push(Block::Ladder(ladder.clone()));
    }

    /// A chart under its title.
    pub fn chart(&mut self, chart: &Chart) {
        self.blocks.push(Block::Chart(chart.clone()));
    }

    /// What stands on it.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The page as text.
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
            Block::Verdict { holds, text } => {
                let (paint, word) = if *holds { (Paint::Good, "ok") } else { (Paint::Bad, "FAILS") };
                let word = self.paint(paint, word);
                self.line(&format!("{word}  {text}"));
            }
            Block::Gap => self.gap(),
            Block::Table(table) => self.table(table),
            Block::Ladder(ladder) => self.ladder(ladder),
            Block::Chart(chart) => {
                self.heading(&chart.heading());
                chart.lines(self.style.width).iter().for_each(|line| self.line(line));
            }
        }
    }

    fn heading(&mut self, text: &str) {
        self.gap();
        let painted = self.paint(Paint::Heading, text);
        self.line(&painted);
    }

    fn paragraph(&mut self, text: &str) {
        let mut line = String::new();
        for word in text.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > self.style.width {
                self.line(&line);
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        if !line.is_empty() {
            self.line(&line);
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
        for (index, line) in table.lines().into_iter().enumerate() {
            let line = if index == 0 { self.paint(Paint::Dim, &line) } else { line };
            self.line(&line);
        }
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
