//! Programs that run on the lab's hosts: small state machines over a stack's verbs.
//!
//! They do what a program would and measure nothing: figures come from the capture.

mod client;
mod program;
mod server;
mod steps;

pub use client::{Client, Opening, Visit, VisitEnd};
pub use program::{Program, Rounds, Told};
pub use server::{Delivery, Server, Service};
pub use steps::Step;

/// Which end closes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closer {
    /// The client, as soon as it has the whole reply (or at once, where it sends its FIN with the request).
    Client,
    /// The server, right behind its reply.
    Server,
}
