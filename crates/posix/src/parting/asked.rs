//! What who binds asks of them.

use super::{Asks, Parted};
use crate::sockets::Sockets;

impl Sockets {
    /// Does the connection of a socket that is closed keep another one from this name? `shares`: it may be shared where both allow it.
    pub(crate) fn is_parting(&self, asks: Asks, port: u16, shares: bool) -> bool {
        let Some(names) = self.parting.names.get(&port) else { return false };
        let conflicts = |parted: &&Parted| {
            let both = asks.reuse_addr && parted.reuse_addr || asks.reuse_port && parted.reuse_port;
            asks.overlaps(parted.ip) && !(shares && both)
        };
        names.iter().filter(conflicts).any(|parted| self.stack.is_port_parting(parted.ip, port))
    }

    /// Those that are gone by now need not be minded.
    pub(crate) fn forget_parted(&mut self, port: u16) {
        let stack = &self.stack;
        if let Some(names) = self.parting.names.get_mut(&port) {
            names.retain(|parted| stack.is_port_parting(parted.ip, port));
            if names.is_empty() {
                self.parting.names.remove(&port);
            }
        }
    }
}
