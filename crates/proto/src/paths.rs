//! The cache of paths: values that connections leave for later ones, and their storage.
//!
//! | file | subject |
//! |---|---|
//! | `metrics` | values stored at the end of a connection, and their use by a new one (`tcp_metrics`) |
//! | `record` | the cache as plain values with ages instead of times, to list and to save |
//! | `text` | the same as text, one line each |
//!
//! The values are in [`PathCache`](crate::fast_open::PathCache): bounded, per pair of addresses,
//! the least recently used path evicted first. The caller reads and writes files.

mod metrics;
mod record;
mod text;

pub use record::{PathRecord, Paths, VerdictRecord};
pub use text::PathsError;
