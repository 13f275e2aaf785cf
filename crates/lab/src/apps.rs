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

use crate::network::Sys;
use core::any::Any;
use proto::{Events, Instant, SocketId};

/// A program on a host.
pub trait App: Any {
    /// The host is up.
    fn start(&mut self, sys: &mut Sys<'_>) {
        let _ = sys;
    }

    /// Something may have happened to a socket.
    fn handle_event(&mut self, sys: &mut Sys<'_>, socket: SocketId, events: Events);

    /// When the program wants to act on its own.
    fn next_wake(&self) -> Option<Instant> {
        None
    }

    /// That time has come.
    fn handle_wake(&mut self, sys: &mut Sys<'_>) {
        let _ = sys;
    }
}

/// A host without a program, such as one whose address others borrow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Idle;

impl App for Idle {
    fn handle_event(&mut self, _sys: &mut Sys<'_>, _socket: SocketId, _events: Events) {}
}

/// Which end closes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closer {
    /// The client, as soon as it has the whole reply (or at once, where it sends its FIN with the request).
    Client,
    /// The server, right behind its reply.
    Server,
}
