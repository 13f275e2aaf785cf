//! Streams and listeners between two stacks in one process, joined in memory.
//!
//! Tests use real time, so none asserts a duration; every test ends by itself or after a limit.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
mod basics;
mod both;
mod deferred;
mod errors;
mod fast_open;
mod flags;
mod http;
mod https;
mod lifecycle;
mod options;
mod pair;
mod parallel;
mod parity;
mod servers;
mod tls;
