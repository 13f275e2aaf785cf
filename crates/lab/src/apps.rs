//! Programs that run on the lab's hosts: small state machines over the verbs of a stack.
//!
//! The programs do not measure anything: measurements come from the capture.

mod client;
mod program;
mod server;
mod steps;

pub use client::{Client, Opening, Visit, VisitEnd};
pub use program::{Program, Rounds, Told};
pub use server::{Delivery, Server, Service};
pub use steps::Step;

/// The end that closes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closer {
    /// The client, once it has the whole reply. If it sends its FIN with the request, at once.
    Client,
    /// The server, right after its reply.
    Server,
}
