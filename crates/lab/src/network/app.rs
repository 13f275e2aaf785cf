//! What a host runs: a program that the network calls when something happens to its sockets, or when its time has come.

use super::sys::Sys;
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
