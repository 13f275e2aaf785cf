//! Captures written packet by packet, and their analysis.
#![expect(clippy::unwrap_used, reason = "tests")]
extern crate firstbyte_capture as capture;

mod blocks;
mod fast_open;
mod files;
mod hostile;
mod judging;
mod layers;
mod limits;
mod openings;
mod streams;
mod written;
