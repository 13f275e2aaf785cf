//! The content of a page.

use crate::graph::Ends;
use crate::{Graph, Ladder};

/// Runs share the y axis of a quantity, unless the top of one is more than this factor above
/// another, which would then be a flat line.
const SHARED_WITHIN: f64 = 10.0;

/// Runs share the time axis, unless one is shorter than the longest by more than this factor and
/// would be a line at the left edge.
const SEEN_WITHIN: f64 = 30.0;

/// A question, its answer in words, and pictures of the runs.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Name of the page.
    pub title: String,
    /// The question.
    pub question: String,
    /// Neighbouring pages in a book.
    pub place: Option<Place>,
    /// The answer: words and tables.
    pub answer: Vec<Block>,
    /// Graphs of all runs together, without a time axis: distributions, sweeps.
    pub summary: Vec<Graph>,
    /// The runs, which share one time axis.
    pub runs: Vec<Run>,
}

/// Neighbouring pages of a book: file name and question of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// The previous page.
    pub previous: Option<(String, String)>,
    /// The next page.
    pub next: Option<(String, String)>,
}

/// A part of the answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A line with significant spaces.
    Line(String),
    /// A table.
    Table(Table),
    /// The result of a check.
    Verdict(Verdict),
    /// The answer to a question: yes or no, and the words. Not a check.
    Answer(bool, String),
    /// A table with the result of a check per row.
    Judged(Table, Vec<bool>),
}

/// An expectation, and whether it was met.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// True if it was met.
    pub holds: bool,
    /// The expectation.
    pub text: String,
}

/// Rows with headings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Heading of each column, and whether it contains numbers.
    pub columns: Vec<(String, bool)>,
    /// Cells; missing ones are empty.
    pub rows: Vec<Vec<String>>,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Name of the run; empty if the question is enough.
    pub name: String,
    /// Quantities over time, milliseconds since the run began.
    pub graphs: Vec<Graph>,
    /// The packets.
    pub ladder: Option<Ladder>,
}

impl Document {
    /// Creates a page without an answer.
    pub fn new(title: impl Into<String>, question: impl Into<String>) -> Document {
        Document { title: title.into(), question: question.into(), ..Document::default() }
    }

    /// Returns the end of the shared time axis, milliseconds.
    pub(crate) fn end(&self) -> f64 {
        self.runs.iter().map(Run::end).fold(0.0, f64::max)
    }

    /// Returns the ends of the axes of a run's graph. Graphs of different runs have one scale, so
    /// that they can be compared by eye.
    pub(crate) fn ends(&self, run: &Run, graph: &Graph) -> Ends {
        let twins = self.runs.iter().flat_map(|run| &run.graphs).filter(|other| other.is_twin(graph));
        let own = graph.top();
        let (least, greatest) = twins
            .map(Graph::top)
            .fold((own, own), |(least, greatest), top| (least.min(top), greatest.max(top)));
        let top = if greatest <= SHARED_WITHIN * least { greatest } else { own };
        Ends { right: self.end_of(run), top, ..graph.ends() }
    }

    /// Returns the end of a run's time axis. A run that would be a line at the left edge shares an
    /// axis with other short runs.
    pub(crate) fn end_of(&self, run: &Run) -> f64 {
        let whole = self.end();
        if self.is_whole(run) {
            return whole;
        }
        self.runs.iter().filter(|other| !self.is_whole(other)).map(Run::end).fold(0.0, f64::max)
    }

    /// True if the run shares the axis of the longest run.
    pub(crate) fn is_whole(&self, run: &Run) -> bool {
        let end = run.end();
        end <= 0.0 || self.end() <= SEEN_WITHIN * end
    }
}

impl Run {
    /// Creates a run without pictures.
    pub fn new(name: impl Into<String>) -> Run {
        Run { name: name.into(), ..Run::default() }
    }

    fn end(&self) -> f64 {
        let graphs = self.graphs.iter().map(Graph::last_x);
        graphs.chain(self.ladder.iter().map(Ladder::last_time)).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Series, Style, Tone};

    /// Returns a document of runs whose queues reach these heights.
    fn queues(heights: &[f64]) -> Document {
        let mut document = Document::new("name", "Why?");
        for height in heights {
            let queue = Series::new("queue", Style::Line, Tone::Blue, vec![(0.0, 0.0), (5.0, *height)]);
            let graphs = vec![Graph::new("Queue", "packets waiting", "").with(queue)];
            document.runs.push(Run { graphs, ..Run::new("run") });
        }
        document
    }

    fn tops(document: &Document) -> Vec<f64> {
        document.runs.iter().map(|run| document.ends(run, &run.graphs[0]).top).collect()
    }

    #[test]
    fn runs_share_the_scale_of_a_quantity() {
        assert_eq!(tops(&queues(&[120.0, 20.0])), [120.0, 120.0]);
    }

    #[test]
    fn a_quantity_that_would_be_a_flat_line_keeps_its_own_scale() {
        assert_eq!(tops(&queues(&[1000.0, 20.0])), [1000.0, 20.0]);
    }

    #[test]
    fn a_run_that_is_over_early_has_an_axis_of_time_of_its_own() {
        let mut document = queues(&[1.0, 1.0, 1.0]);
        for (run, end) in document.runs.iter_mut().zip([600.0, 60.0, 3.0]) {
            run.graphs[0].series[0].points[1].0 = end;
        }
        let ends: Vec<f64> = document.runs.iter().map(|run| document.end_of(run)).collect();
        assert_eq!(ends, [600.0, 600.0, 3.0]);
    }

    #[test]
    fn graphs_of_other_things_share_nothing() {
        let mut document = queues(&[120.0, 20.0]);
        document.runs[1].graphs[0].title = "Other queue".into();
        assert_eq!(tops(&document), [120.0, 20.0]);
    }
}
