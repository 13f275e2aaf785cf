//! Tables with aligned columns.

use super::wrap::wrapped;

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// Rows of text under headings.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with these columns.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Align)>) -> Table {
        Table {
            columns: columns.into_iter().map(|(name, align)| (name.into(), align)).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; missing cells are empty.
    pub fn row<I: IntoIterator<Item = S>, S: Into<String>>(&mut self, cells: I) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Returns the names of its columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    /// Returns its rows.
    pub fn rows(&self) -> impl Iterator<Item = &[String]> {
        self.rows.iter().map(Vec::as_slice)
    }

    /// Returns the width of its longest line.
    pub fn width(&self) -> usize {
        self.lines().iter().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    /// Returns the lines, headings first.
    pub fn lines(&self) -> Vec<String> {
        let (mut names, rows) = self.lines_within(usize::MAX);
        names.extend(rows);
        names
    }

    /// Returns the lines of the headings and those of the rows, at most `room` columns wide if
    /// possible: headings and columns of words are wrapped then.
    pub fn lines_within(&self, room: usize) -> (Vec<String>, Vec<String>) {
        let widths = self.widths(room);
        let names: Vec<String> = self.names().map(str::to_owned).collect();
        (self.row_lines(&names, &widths), self.rows().flat_map(|row| self.row_lines(row, &widths)).collect())
    }

    /// Returns the widths of the columns. If they exceed the room, the widest are narrowed, but not
    /// below their longest word.
    fn widths(&self, room: usize) -> Vec<usize> {
        let len = |text: &str| text.chars().count();
        let longest_word = |text: &str| text.split_whitespace().map(len).max().unwrap_or(0);
        let (mut widths, mut least) = (Vec::new(), Vec::new());
        for (column, (name, align)) in self.columns.iter().enumerate() {
            let cells = || self.rows.iter().filter_map(|row| row.get(column)).map(String::as_str);
            let whole = cells().map(len).max().unwrap_or(0);
            let words = cells().map(longest_word).max().unwrap_or(0);
            widths.push(whole.max(len(name)));
            least.push(longest_word(name).max(if *align == Align::Left { words } else { whole }));
        }
        let taken = |widths: &[usize]| widths.iter().map(|width| width + 2).sum::<usize>();
        while taken(&widths) > room {
            let narrower = (0..widths.len()).filter(|column| widths[*column] > least[*column]);
            let Some(widest) = narrower.max_by_key(|column| widths[*column]) else { break };
            widths[widest] -= 1;
        }
        widths
    }

    fn row_lines(&self, row: &[String], widths: &[usize]) -> Vec<String> {
        let cells: Vec<Vec<String>> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| match cell.chars().count() <= *width {
                true => vec![cell.clone()],
                false => wrapped(cell, *width),
            })
            .collect();
        let count = cells.iter().map(Vec::len).max().unwrap_or(0);
        let piece = |cell: &Vec<String>, n: usize| cell.get(n).cloned().unwrap_or_default();
        let nth = |n: usize| cells.iter().map(|cell| piece(cell, n)).collect::<Vec<_>>();
        (0..count).map(|n| self.line(&nth(n), widths)).collect()
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let mut line = String::from(" ");
        for (column, (width, (_, align))) in widths.iter().zip(&self.columns).enumerate() {
            let cell = row.get(column).map_or("", String::as_str);
            match align {
                Align::Left => line.push_str(&format!(" {cell:<width$} ")),
                Align::Right => line.push_str(&format!(" {cell:>width$} ")),
            }
        }
        line.trim_end().into()
    }
}

impl From<&Table> for picture::Table {
    fn from(table: &Table) -> picture::Table {
        let columns = table.columns.iter().map(|(name, align)| (name.clone(), *align == Align::Right));
        picture::Table { columns: columns.collect(), rows: table.rows.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_too_wide_has_its_words_in_several_lines() {
        let mut table = Table::new([("mean time", Align::Right), ("what happened", Align::Left)]);
        table.row(["340.0 ms", "a new cookie comes back"]);
        let (names, rows) = table.lines_within(26);
        assert_eq!(names, ["  mean time  what happened"]);
        assert_eq!(rows, ["   340.0 ms  a new cookie", "             comes back"]);
        assert!(table.lines_within(20).1.iter().all(|line| line.len() <= 20), "{:?}", table.lines_within(20));
        assert_eq!(table.lines()[1], "   340.0 ms  a new cookie comes back");
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new([("visit", Align::Right), ("time", Align::Right), ("what", Align::Left)]);
        table.row(["1", "340.0 ms", "cookie"]);
        table.row(["10", "70.0 ms"]);
        assert_eq!(
            table.lines(),
            ["  visit      time  what", "      1  340.0 ms  cookie", "     10   70.0 ms"]
        );
    }
}
