//! The memory of paths: what connections leave behind for later ones, and how it outlives the process.
//!
//! | file | subject |
//! |---|---|
//! | `metrics` | which values a connection leaves when it ends, and what a new one makes of them (Linux's `tcp_metrics`) |
//! | `record` | the memory as plain values with ages instead of times, to list and to carry over a restart |
//! | `text` | those as text, one line each |
//!
//! Where the values lie is [`PathCache`](crate::fast_open::PathCache): per pair of addresses, bounded, the path used least recently
//! forgotten first. Reading and writing files is the caller's.

mod metrics;
mod record;
mod text;

pub use record::{PathRecord, Paths, VerdictRecord};
pub use text::PathsError;
