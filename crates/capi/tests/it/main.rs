//! The C library as C programs see it: header, symbols, the programs in `c/`, and the examples
//! with the kernel as peer.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod compile;
mod header;
mod kernel;
mod programs;
