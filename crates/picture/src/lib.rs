//! Draws ladder diagrams and graphs over time, as one HTML file or as SVG.
//!
//! ```text
//!   Document ──► page: one HTML file, no network, light and dark      book: an index over pages
//!    ├ Block       words, tables
//!    └ Run         what happened once ──► graph, ladder: SVG ──► sheet: one SVG file
//! ```
//!
//! Drawings are complete without a script. The page's small script adds interaction: zoom and pan
//! of all graphs at once, and a time slider for ladders and graphs. This crate does not know the
//! source of the packets: the lab and the capture reader fill a [`Document`].
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
