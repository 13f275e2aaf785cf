//! Tables with aligned columns.

/// Which side of its column a cell keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows of text under headings.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
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

    /// The names of its columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    /// Its rows.
    pub fn rows(&self) -> impl Iterator<Item = &[String]> {
        self.rows.iter().map(Vec::as_slice)
    }

    /// Columns of text that its longest line takes.
    pub fn width(&self) -> usize {
        self.lines().iter().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    /// The lines: the headings first.
    pub fn lines(&self) -> Vec<String> {
        let headings: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let all: Vec<&Vec<String>> = core::iter::once(&headings).chain(&self.rows).collect();
        let width_of = |column: usize| {
            all.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> =
            (0..self.columns.len()).map(|column| width_of(column).unwrap_or(0)).collect();
        all.iter().map(|row| self.line(row, &widths)).collect()
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
