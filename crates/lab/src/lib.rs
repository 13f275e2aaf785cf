//! A virtual-time network of stacks, links and middleboxes, and the experiments run on it.
//!
//! ```text
//!   scenario ──► network ──► capture ──► exchange ──► ladder, report
//!   what is       hosts with   every       connections   text, JSON,
//!   compared      proto::Stack, packet at  and their     pcapng
//!                 paths        both ends   times
//! ```
//!
//! - [`network`]: hosts (a stack and a program each), paths of wires ([`qdisc::Link`]) and [`middlebox`]es, the virtual clock;
//! - [`apps`]: the programs, a client and a server;
//! - [`capture`], [`segment`]: what was seen, and packets as values;
//! - [`exchange`]: connections found in a capture, and their measures. **Every figure comes from here**;
//! - [`ladder`], [`report`]: packet ladders, tables, JSON, pcapng;
//! - [`scenario`]: the experiments that are code; [`experiment`]: those that are files.
//!
//! Nothing here reads a clock, touches the operating system or needs rights. It is no simulator of TCP: the segments are made and
//! read by the same engine that runs on a TUN device.
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
