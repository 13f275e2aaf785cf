//! The C library as C programs see it: header, symbols, programs of `c/` that need no rights, and the examples beside the real kernel.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod compile;
mod header;
mod kernel;
mod programs;
