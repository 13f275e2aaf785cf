//! Conversations of the engine in virtual time.
//!
//! `pair` joins two stacks by a wire; `peer` puts one stack opposite hand-made segments.
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
