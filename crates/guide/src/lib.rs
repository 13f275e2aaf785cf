//! Draws the guide's pictures, and compiles its examples in Rust as documentation tests.
//!
//! Each page of `docs/guide` that contains Rust is listed here; a test compares the list with the
//! pages. `tests/guide` runs the commands of the pages.
#![forbid(unsafe_code)]

pub mod pictures;

/// The project's front page.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub mod readme {}

/// The page `embedding.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/embedding.md")]
pub mod embedding {}

/// The page `rust.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/rust.md")]
pub mod rust {}

/// The page `https.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/https.md")]
pub mod https {}
