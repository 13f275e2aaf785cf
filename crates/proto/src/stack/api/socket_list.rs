//! The socket listing: every socket of a stack, as `ss` lists them.

use crate::stack::Stack;
use crate::{ConnectionInfo, RunningTimer, SocketInfo, State, TimerKind};
use alloc::boxed::Box;

impl Stack {
    /// Returns listeners, half-open requests, connections (orphans included) and TIME-WAIT entries,
    /// in this order. The list is built lazily.
    pub fn sockets(&self) -> impl Iterator<Item = SocketInfo> {
        let listeners = self.listeners.iter().map(|(_, listener)| SocketInfo::Listener(listener.info()));
        let firsts = self.request_timers.firsts(&self.requests);
        let requests = self.requests.iter().map(move |(index, request)| {
            let at = firsts.get(&index).copied().or_else(|| self.request_timers.later(request));
            SocketInfo::Numbers {
                state: State::SynReceived,
                local: request.tuple.local_addr(),
                peer: request.tuple.peer_addr(),
                timer: at.map(|expires_at| RunningTimer {
                    kind: TimerKind::Retransmission,
                    expires_at,
                    expirations: request.timeouts,
                }),
            }
        });
        let live = self.connections.iter().filter(|(_, connection)| connection.mapped);
        let connections = live.map(|(_, connection)| {
            SocketInfo::Connection(Box::new(ConnectionInfo::of(connection, &self.shared)))
        });
        let parting = self.time_wait.iter().map(|(entry, expires_at)| SocketInfo::Numbers {
            state: if entry.fin_awaited { State::FinWait2 } else { State::TimeWait },
            local: entry.tuple.local_addr(),
            peer: entry.tuple.peer_addr(),
            timer: Some(RunningTimer { kind: TimerKind::TimeWait, expires_at, expirations: 0 }),
        });
        listeners.chain(requests).chain(connections).chain(parting)
    }
}
