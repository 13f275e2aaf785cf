//! The packetdrill language.
//!
//! A script is a sequence of timed events: packets that arrive and packets that are expected,
//! system calls with their results, and assertions. [`Script::parse`] reads a script, `Display`
//! prints it back, and [`run()`] runs it on the engine in virtual time.
//!
//! | module | subject |
//! |---|---|
//! | [`ast`] | a parsed script |
//! | `lex`, `parse` | parsing; a [`Problem`] reports an error and its place |
//! | `print` | printing |
//! | [`options`] | conversion of TCP options between values and bytes |
//! | [`code`] | the assertions between `%{` and `}%` |
//! | `run` | the runner |
#![forbid(unsafe_code)]

pub mod ast;
pub mod code;
mod lex;
pub mod options;
mod parse;
mod print;
mod problem;
mod run;

pub use ast::Script;
pub use print::Seconds;
pub use problem::{Place, Problem};
pub use run::{Failure, Passed, Setup, check, run, run_captured};
