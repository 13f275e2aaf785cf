//! What a page says and shows.

use crate::{Graph, Ladder};

/// A question, its answer in words, and what was seen.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Name of the page.
    pub title: String,
    /// What is asked.
    pub question: String,
    /// The answer: words and tables.
    pub answer: Vec<Block>,
    /// Graphs about all runs together, over no common time: distributions, sweeps.
    pub summary: Vec<Graph>,
    /// What happened, run by run; these share one axis of time.
    pub runs: Vec<Run>,
}

/// A piece of the answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A line whose spaces count.
    Line(String),
    /// A table.
    Table(Table),
    /// Whether something is as it should be.
    Verdict(Verdict),
}

/// Something that was expected, and whether it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// It did.
    pub holds: bool,
    /// What.
    pub text: String,
}

/// Rows under headings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Heading of each column, and whether it holds numbers.
    pub columns: Vec<(String, bool)>,
    /// Cells; missing ones are empty.
    pub rows: Vec<Vec<String>>,
}

/// What happened once.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Its name.
    pub name: String,
    /// Quantities over time, milliseconds since the run began.
    pub graphs: Vec<Graph>,
    /// Its packets.
    pub ladder: Option<Ladder>,
}

impl Document {
    /// A page without an answer yet.
    pub fn new(title: impl Into<String>, question: impl Into<String>) -> Document {
        Document { title: title.into(), question: question.into(), ..Document::default() }
    }

    /// Where the common axis of time ends, milliseconds.
    pub(crate) fn end(&self) -> f64 {
        let graphs = self.runs.iter().flat_map(|run| &run.graphs).map(Graph::last_x);
        let ladders = self.runs.iter().filter_map(|run| run.ladder.as_ref()).map(Ladder::last_time);
        graphs.chain(ladders).fold(0.0, f64::max)
    }
}

impl Run {
    /// A run of which nothing is shown yet.
    pub fn new(name: impl Into<String>) -> Run {
        Run { name: name.into(), ..Run::default() }
    }
}
