//! Conversations of the engine in virtual time.
//!
//! `pair` joins two stacks by a wire; `peer` puts one stack opposite hand-made segments.
//!
//! | module | what |
//! |---|---|
//! | `opening`, `queues`, `closing` | handshakes, a listener's queues, every way to end |
//! | `arrival`, `icmp` | which segments and errors count |
//! | `data`, `flow`, `loss`, `wrap` | sending and receiving, windows, retransmission, what two gigabytes make old |
//! | `fast_open` | RFC 7413, both ends |
//! | `simulation`, `mutation` | random applications on a bad wire (`FIRSTBYTE_SEED`), hostile input (`FIRSTBYTE_MUTATIONS`) |
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod pair;
mod peer;

mod arrival;
mod closing;
mod data;
mod fast_open;
mod flow;
mod handshake;
mod icmp;
mod loss;
mod lossy;
mod mutation;
mod opening;
mod queues;
mod sack;
mod simulation;
mod undo;
mod wrap;
