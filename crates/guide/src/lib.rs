//! The guide's examples in Rust, compiled as documentation tests. `tests/guide` runs its commands.
//!
//! Lists each page of `docs/guide` that contains Rust; a test compares the list with the pages.

/// The project's front page.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub mod readme {}
