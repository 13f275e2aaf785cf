//! Reports as pictures: the text and tables, and for each run the packets, senders and queues over
//! time.
//!
//! - `sequence`: the time-sequence graph of tcptrace;
//! - `sender`: windows, round trips, and the reasons for waiting, as reported by the stack;
//! - `held`: data that a receiver holds beyond its acknowledgment;
//! - `queue`: lengths of queues and waiting times;
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

use crate::capture::{HostId, Journey};
use crate::exchange::{Exchange, exchanges_of, spoofed};
use crate::ladder::milliseconds;
use crate::segment::Segment;
use ::picture::{Document, Graph, Run};
use proto::Instant;
use std::collections::BTreeMap;
use wire::SeqNum;

/// Maximum runs on a page; the page says how many are omitted.
const RUNS_MAX: usize = 8;
/// Maximum clients of one run on a page.
const CLIENTS_MAX: usize = 8;
/// Maximum clients of all runs together.
const SECTIONS_MAX: usize = 24;

/// Builds the document of a report: `name` of the scenario, and its question.
pub fn document(name: &str, question: &str, report: &dyn Report) -> Document {
    let mut document = Document::new(format!("firstbyte lab {name}"), question);
    let mut page = Page::new(PageStyle::default());
    report.render_with_findings(&mut page);
    // The question is already the page's title.
    let is_question = |block: &&Block| matches!(block, Block::Heading(text) if text == question);
    document.answer =
        page.blocks().iter().filter(|block| !is_question(block)).filter_map(block_words).collect();
    document.summary = report.graphs();
    let recordings = report.recordings();
    let runs: Vec<&Recording<'_>> = each_once(&recordings).collect();
    let shown = &runs[..runs.len().min(RUNS_MAX)];
    let clients_max = (SECTIONS_MAX / shown.len().max(1)).clamp(1, CLIENTS_MAX);
    let mut clients_left_out = 0;
    for recording in shown {
        let name = if shown.len() == 1 { "" } else { &recording.name };
        let (sections, left_out) = sections(recording, name, clients_max);
        document.runs.extend(sections);
        clients_left_out += left_out;
    }
    document.answer.extend(left_out(runs.len() - shown.len(), "run"));
    document.answer.extend(left_out(clients_left_out, "client"));
    document
}

/// Converts the text and tables of a page for a picture.
pub fn picture_words(page: &Page) -> Vec<::picture::Block> {
    page.blocks().iter().filter_map(block_words).collect()
}

/// Converts text and tables; ladders and charts are drawn from the runs.
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

/// Explains how many runs or clients are not drawn.
fn left_out(count: usize, what: &str) -> Option<::picture::Block> {
    let are = if count == 1 { format!("{what} is") } else { format!("{what}s are") };
    let text = format!("{count} more {are} not drawn; `--pcap` writes the packets of all.");
    (count > 0).then_some(::picture::Block::Text(text))
}

/// Builds a section for each of the first clients of a run, and counts the omitted clients. Queues
/// are in the first section, because clients share them.
fn sections(recording: &Recording<'_>, name: &str, clients_max: usize) -> (Vec<Run>, usize) {
    let mut by_client: BTreeMap<HostId, Vec<Exchange>> = BTreeMap::new();
    for exchange in exchanges_of(recording.capture, recording.clients) {
        // A connection starts with the SYN that its client sent.
        if let Some(client) = exchange.journeys.first().and_then(|syn| syn.sent.host) {
            by_client.entry(client).or_default().push(exchange);
        }
    }
    let mut shared = queue::graphs(recording.capture);
    shared.extend(queue::of_cards(recording, |host| !recording.is_client(host)));
    if by_client.is_empty() {
        let ladder = ladder::ladder("spoofed address", &spoofed(recording.capture));
        let graphs = shared.into_iter().filter(Graph::shows).collect();
        return (vec![Run { name: name.into(), graphs, ladder }], 0);
    }
    let count = by_client.len();
    let mut sections = Vec::new();
    for (n, (client, connections)) in by_client.into_iter().take(clients_max).enumerate() {
        let which = if count == 1 { String::new() } else { format!("client {}", n + 1) };
        let graphs = [sequence::graph(&connections)]
            .into_iter()
            .chain(sender::graphs(recording, client, &connections))
            .chain(core::mem::take(&mut shared))
            .chain(queue::of_cards(recording, |host| host == client));
        let gap = if name.is_empty() || which.is_empty() { "" } else { ", " };
        sections.push(Run {
            name: format!("{name}{gap}{which}"),
            graphs: graphs.filter(Graph::shows).collect(),
            ladder: ladder::ladder("client", &connections),
        });
    }
    (sections, count.saturating_sub(clients_max))
}

/// Returns milliseconds since the start of the run.
fn ms(at: Instant) -> f64 {
    milliseconds(at.since(Instant::ZERO))
}

/// Offsets in the stream of one end. A server that answers a copy of a SYN after its connection is
/// over starts another stream with another initial sequence number: the closest one before a number
/// counts.
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

    /// Returns `None` for numbers before all of them.
    fn of(&self, number: SeqNum) -> Option<u32> {
        self.0.iter().map(|first| number.since(*first + 1)).min().filter(|offset| *offset <= u32::MAX / 2)
    }
}

/// Returns the connection that transferred most; the windows of several on one graph are hard to
/// read.
fn busiest(connections: &[Exchange]) -> Option<usize> {
    (0..connections.len()).max_by_key(|n| (connections[*n].bytes_on_wire, core::cmp::Reverse(*n)))
}

#[cfg(test)]
mod tests;
