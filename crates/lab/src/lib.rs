//! A virtual-time network of stacks, links and middleboxes, and the scenarios run on it.
//!
//! ```text
//!   scenario ──► network ──► capture ──► exchange ──► ladder, report
//!   the cases     hosts with   every       connections   text, JSON,
//!   to compare    proto::Stack, packet at  and their     pcapng
//!                 paths        both ends   times
//! ```
//!
//! - [`network`]: hosts (a stack and a program each), paths of wires ([`qdisc::Link`]) and
//!   [`middlebox`]es, the virtual clock;
//! - [`apps`]: the programs, a client and a server;
//! - [`capture`], [`segment`]: observed packets, and packets as values;
//! - [`exchange`]: connections found in a capture, and their measurements. **Every measured value
//!   comes from here**;
//! - [`ladder`], [`report`]: packet ladders, tables, JSON, pcapng;
//! - [`scenario`]: the scenarios that are code; [`experiment`]: those that are files; [`catalog`]:
//!   all of them.
//!
//! This crate reads no clock, does not call the operating system and needs no privileges. It does
//! not simulate TCP: the same engine that runs on a TUN device sends and receives the segments.
//!
//! ```
//! use firstbyte_lab::scenario::fast_open;
//! use std::time::Duration;
//!
//! let result = fast_open::run(&fast_open::Params { rtt: Duration::from_millis(170), ..Default::default() });
//! assert_eq!(result.fast_open.round_trips_ms()[..2], [340.0, 170.0]);
//! ```
#![forbid(unsafe_code)]

pub mod apps;
pub mod capture;
pub mod catalog;
pub mod exchange;
pub mod experiment;
pub mod ladder;
pub mod middlebox;
pub mod network;
pub mod report;
pub mod scenario;
pub mod segment;
#[cfg(test)]
mod testing;
