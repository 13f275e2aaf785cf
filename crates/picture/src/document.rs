//! What a page says and shows.

use crate::graph::Ends;
use crate::{Graph, Ladder};

/// Runs share the upright axis of a quantity, unless one reaches so many times as high as another, which would be a flat line then.
const SHARED_WITHIN: f64 = 10.0;

/// Runs share the axis of time, unless one is over in so small a part of it that it would be a line at the left edge.
const SEEN_WITHIN: f64 = 30.0;

/// A question, its answer in words, and what was seen.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Name of the page.
    pub title: String,
    /// What is asked.
    pub question: String,
    /// Where it stands in a book.
    pub place: Option<Place>,
    /// The answer: words and tables.
    pub answer: Vec<Block>,
    /// Graphs about all runs together, over no common time: distributions, sweeps.
    pub summary: Vec<Graph>,
    /// What happened, run by run; these share one axis of time.
    pub runs: Vec<Run>,
}

/// The pages around one of a book: of each its file and what it asks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// The one before.
    pub previous: Option<(String, String)>,
    /// The one behind.
    pub next: Option<(String, String)>,
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
    /// An answer to a question: whether it is yes, and the words. Nothing was expected.
    Answer(bool, String),
    /// Rows of which each is as it should be, or is not.
    Judged(Table, Vec<bool>),
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
    /// Its name; empty if it needs none beside the question.
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
        self.runs.iter().map(Run::end).fold(0.0, f64::max)
    }

    /// Where the axes of a run's graph end: run beside run is compared by eye, which needs one scale.
    pub(crate) fn ends(&self, run: &Run, graph: &Graph) -> Ends {
        let twins = self.runs.iter().flat_map(|run| &run.graphs).filter(|other| other.is_twin(graph));
        let own = graph.top();
        let (least, greatest) = twins
            .map(Graph::top)
            .fold((own, own), |(least, greatest), top| (least.min(top), greatest.max(top)));
        let top = if greatest <= SHARED_WITHIN * least { greatest } else { own };
        Ends { right: self.end_of(run), top, ..graph.ends() }
    }

    /// Where a run's axis of time ends. One that is over so early that it would be a line at the left edge has an axis of its own, which
    /// others as short share.
    pub(crate) fn end_of(&self, run: &Run) -> f64 {
        let whole = self.end();
        if self.is_whole(run) {
            return whole;
        }
        self.runs.iter().filter(|other| !self.is_whole(other)).map(Run::end).fold(0.0, f64::max)
    }

    /// Does the run share the axis of the longest?
    pub(crate) fn is_whole(&self, run: &Run) -> bool {
        let end = run.end();
        end <= 0.0 || self.end() <= SEEN_WITHIN * end
    }
}

impl Run {
    /// A run of which nothing is shown yet.
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

    /// A document of runs whose queue reaches these heights.
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
