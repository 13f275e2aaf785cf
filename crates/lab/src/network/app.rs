//! Applications: programs that the network calls on events of their sockets and at requested times.

use super::sys::Sys;
use core::any::Any;
use proto::{Events, Instant, SocketId};

/// A program on a host.
pub trait App: Any {
    /// Called when the host is up.
    fn start(&mut self, sys: &mut Sys<'_>) {
        let _ = sys;
    }

    /// Called when something may have happened to a socket.
    fn handle_event(&mut self, sys: &mut Sys<'_>, socket: SocketId, events: Events);

    /// Returns the time at which the program wants to be woken.
    fn next_wake(&self) -> Option<Instant> {
        None
    }

    /// Called at that time.
    fn handle_wake(&mut self, sys: &mut Sys<'_>) {
        let _ = sys;
    }
}

/// A host without a program, for example one whose address others spoof.
#[derive(Clone, Copy, Debug, Default)]
pub struct Idle;

impl App for Idle {
    fn handle_event(&mut self, _sys: &mut Sys<'_>, _socket: SocketId, _events: Events) {}
}
