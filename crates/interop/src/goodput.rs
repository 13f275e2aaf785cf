//! Goodput beside Linux: the same lossy, delayed path with Linux → Linux, ours → Linux and Linux →
//! ours.
//!
//! - [`bottleneck`]: the path. [`run`]: one transfer of one pairing.
//! - [`plan`]: which cells, how often, how many side by side.
//! - [`table`]: `docs/goodput.md`, written from runs, and read back by the test that keeps it true.
//!
//! The program is `cargo run --profile dist -p firstbyte-interop --bin goodput`. Time is real,
//! because a kernel is one of the peers: figures vary a little from run to run, and only side by
//! side do they say something.
pub mod bottleneck;
pub mod plan;
pub mod run;
pub mod table;
