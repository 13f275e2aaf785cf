//! packetdrill's language.
//!
//! A script is a sequence of events with times: packets that come and packets that are expected, system calls with their results,
//! assertions. [`Script::parse`] reads one, `Display` prints it back, [`run()`] runs it on the engine in virtual time.
//!
//! | module | what |
//! |---|---|
//! | [`ast`] | a script as values |
//! | `lex`, `parse` | from text to values; a [`Problem`] says what is wrong and where |
//! | `print` | from values to text |
//! | [`options`] | TCP options between values and bytes |
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
