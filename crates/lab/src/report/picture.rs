//! A report as a picture: its words and tables, and of each run what packets, senders and queues did over time.
//!
//! - `sequence`: the time-sequence graph of tcptrace;
//! - `sender`: windows, round trips, and what a sender waited for, from what its stack told;
//! - `held`: what a receiver has beyond its acknowledgement;
//! - `queue`: how long queues were, and what waiting in them took;
//! - `ladder`: the packets between both ends.

mod held;
mod ladder;
mod queue;
mod sender;
mod sequence;

use super::page::{Block, Page, PageStyle};
use super::trace::each_once;
use super::{Recording, Report};
pub use ladder::drawing;

use crate::capture::Journey;
use crate::exchange::{Exchange, exchanges, spoofed};
use crate::ladder::milliseconds;
use crate::segment::Segment;
use ::picture::{Document, Graph, Run};
use proto::Instant;
use wire::SeqNum;

/// More runs than this make no page to look at; those that are left out are told.
const RUNS_MAX: usize = 8;

/// A report as a document: `name` of the scenario, and what it asks.
pub fn document(name: &str, question: &str, report: &dyn Report) -> Document {
    let mut document = Document::new(format!("firstbyte lab {name}"), question);
    let mut page = Page::new(PageStyle::default());
    report.render_with_findings(&mut page);
    // The question stands over the page already.
    let is_question = |block: &&Block| matches!(block, Block::Heading(text) if text == question);
    document.answer =
        page.blocks().iter().filter(|block| !is_question(block)).filter_map(block_words).collect();
    document.summary = report.graphs();
    let recordings = report.recordings();
    let mut runs: Vec<&Recording<'_>> = each_once(&recordings).collect();
    let left_out = runs.len().saturating_sub(RUNS_MAX);
    runs.truncate(RUNS_MAX);
    document.runs = runs.into_iter().map(run).collect();
    if let [single] = &mut document.runs[..] {
        single.name.clear();
    }
    if left_out > 0 {
        let are = if left_out == 1 { "run is" } else { "runs are" };
        let text = format!("{left_out} more {are} not drawn; `--json` and `--pcap` have all.");
        document.answer.push(::picture::Block::Text(text));
    }
    document
}

/// The words and tables of a page, for a picture's answer.
pub fn picture_words(page: &Page) -> Vec<::picture::Block> {
    page.blocks().iter().filter_map(block_words).collect()
}

/// Words and tables; ladders and charts are drawn from the runs.
fn block_words(block: &Block) -> Option<::picture::Block> {
    match block {
        Block::Heading(text) => Some(::picture::Block::Heading(text.clone())),
        Block::Paragraph(text) => Some(::picture::Block::Text(text.clone())),
        Block::Line(text) => Some(::picture::Block::Line(text.clone())),
        Block::Table(table) => Some(::picture::Block::Table(table.into())),
        Block::Verdict { holds, text } => {
            let verdict = ::picture::Verdict { holds: *holds, text: text.clone() };
            Some(::picture::Block::Verdict(verdict))
        }
        Block::Judged(table, held) => Some(::picture::Block::Judged(table.into(), held.clone())),
        Block::Gap | Block::Ladder(_) | Block::Chart(_) => None,
    }
}

fn run(recording: &Recording<'_>) -> Run {
    let connections = exchanges(recording.capture, recording.client());
    let graphs = [sequence::graph(recording, &connections)]
        .into_iter()
        .chain(sender::graphs(recording, &connections))
        .chain(queue::graphs(recording.capture))
        .chain(queue::of_cards(recording));
    Run {
        name: recording.name.clone(),
        graphs: graphs.filter(Graph::shows).collect(),
        ladder: match connections.is_empty() {
            true => ladder::ladder("spoofed address", &spoofed(recording.capture)),
            false => ladder::ladder("client", &connections),
        },
    }
}

/// Which client's packets are drawn, where there are several.
fn of_clients(recording: &Recording<'_>) -> String {
    match recording.clients.len() {
        1 => String::new(),
        count => format!("the first of {count} clients, "),
    }
}

/// Milliseconds since the run began.
fn ms(at: Instant) -> f64 {
    milliseconds(at.since(Instant::ZERO))
}

/// How far into the stream of one end a number lies. A server that answers a copy of a SYN after its connection is over begins another stream, from
/// another first number: the closest one before it counts.
struct Offsets(Vec<SeqNum>);

impl Offsets {
    fn new(exchange: &Exchange, of_client: bool) -> Offsets {
        if of_client {
            return Offsets(vec![exchange.client_isn]);
        }
        let syn_acks = exchange.journeys.iter().filter_map(Journey::segment).filter(Segment::is_syn_ack);
        let mut firsts: Vec<SeqNum> =
            exchange.server_isn.into_iter().chain(syn_acks.map(|segment| segment.tcp.seq)).collect();
        firsts.dedup();
        Offsets(firsts)
    }

    /// None of what lies before all of them.
    fn of(&self, number: SeqNum) -> Option<u32> {
        self.0.iter().map(|first| number.since(*first + 1)).min().filter(|offset| *offset <= u32::MAX / 2)
    }
}

/// The connection that moved most: windows of several on one graph are a tangle.
fn busiest(connections: &[Exchange]) -> Option<usize> {
    (0..connections.len()).max_by_key(|n| (connections[*n].bytes_on_wire, core::cmp::Reverse(*n)))
}

#[cfg(test)]
mod tests;
