//! The language and its runner.
#![expect(clippy::unwrap_used, reason = "tests")]

extern crate firstbyte_script as script;

mod connections;
mod errors;
mod failures;
mod judging;
mod mtu;
mod round_trip;
mod scripts;
