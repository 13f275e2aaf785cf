//! What a page says and shows.

use crate::graph::Ends;
use crate::{Graph, Ladder};

/// Runs share the upright axis of a quantity, unless one reaches so many times as high as another, which would be a flat line then.
const SHARED_WITHIN: f64 = 10.0;

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

    /// Where the axes of a run's graph end: run beside run is compared by eye, which needs one scale.
    pub(crate) fn ends(&self, graph: &Graph) -> Ends {
        let twins = self.runs.iter().flat_map(|run| &run.graphs).filter(|other| other.is_twin(graph));
        let own = graph.top();
        let (least, greatest) = twins
            .map(Graph::top)
            .fold((own, own), |(least, greatest), top| (least.min(top), greatest.max(top)));
        let top = if greatest <= SHARED_WITHIN * least { greatest } else { own };
        Ends { right: self.end(), top }
    }
}

impl Run {
    /// A run of which nothing is shown yet.
    pub fn new(name: impl Into<String>) -> Run {
        Run { name: name.into(), ..Run::default() }
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
        document.runs.iter().map(|run| document.ends(&run.graphs[0]).top).collect()
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
    fn graphs_of_other_things_share_nothing() {
        let mut document = queues(&[120.0, 20.0]);
        document.runs[1].graphs[0].title = "Other queue".into();
        assert_eq!(tops(&document), [120.0, 20.0]);
    }
}
