//! Pages and pictures of what packets did: ladders and graphs over time, as one HTML file or as SVG.
//!
//! ```text
//!   Document ──► page: one HTML file, no network, light and dark      book: an index over pages
//!    ├ Block       words, tables
//!    └ Run         what happened once ──► graph, ladder: SVG ──► sheet: one SVG file
//! ```
//!
//! The drawings are made here and are complete without a script; the page's small script adds what moves: zoom and pan over all graphs
//! at once, and a slider that walks ladders and graphs through time. Nothing here knows where the packets come from: the lab and the
//! reader of captures fill a [`Document`].
//!
//! ```
//! use firstbyte_picture::{BYTES, Document, Graph, Run, Series, Style, Tone};
//!
//! let window = Series::new("cwnd", Style::Step, Tone::Blue, vec![(0.0, 10e3), (40.0, 20e3)]);
//! let graph = Graph::new("Congestion window", "window", BYTES).with(window);
//! let mut document = Document::new("Slow start", "How fast does a window grow?");
//! document.runs.push(Run { graphs: vec![graph], ..Run::new("reno") });
//! assert!(document.to_html().contains("Congestion window"));
//! ```
#![forbid(unsafe_code)]

mod book;
mod document;
mod frame;
mod graph;
mod ladder;
mod markup;
mod page;
mod scale;
mod series;
mod sheet;

pub use book::{Chapter, Leaf, book};
pub use document::{Block, Document, Place, Run, Table, Verdict};
pub use graph::{Axis, BYTES, Graph};
pub use ladder::{Kind, Ladder, Rung, Way};
pub use series::{Series, Style, Tone};
