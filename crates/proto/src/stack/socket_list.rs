//! The socket listing: every socket of a stack, as `ss` lists them.

use super::Stack;
use crate::{ConnectionInfo, SocketInfo, State};
use alloc::boxed::Box;

impl Stack {
    /// Listeners, half-open requests, connections (those too whose application has let go, as long as they exchange packets) and TIME-WAIT, in
    /// this order. Made as it is asked for.
    pub fn sockets(&self) -> impl Iterator<Item = SocketInfo> {
        let listeners = self.listeners.iter().map(|(_, listener)| SocketInfo::Listener(listener.info()));
        let requests = self.requests.iter().map(|(_, request)| SocketInfo::Numbers {
            state: State::SynReceived,
            local: request.tuple.local_addr(),
            peer: request.tuple.peer_addr(),
        });
        let live = self.connections.iter().filter(|(_, connection)| connection.mapped);
        let connections = live.map(|(_, connection)| {
            SocketInfo::Connection(Box::new(ConnectionInfo::of(connection, self.config())))
        });
        let parting = self.time_wait.iter().map(|entry| SocketInfo::Numbers {
            state: if entry.fin_awaited { State::FinWait2 } else { State::TimeWait },
            local: entry.tuple.local_addr(),
            peer: entry.tuple.peer_addr(),
        });
        listeners.chain(requests).chain(connections).chain(parting)
    }
}
