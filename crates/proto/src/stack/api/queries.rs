//! Queries about one connection or listener: its state, names, queues and sequence numbers, and what is kept only on demand (reports of what was
//! sent, arrival times, the last ICMP error). Everything about a connection at once is [`ConnectionInfo`](crate::ConnectionInfo).

use crate::stack::Stack;
use crate::tcp::connection::Connection;
use crate::{ConnId, IcmpReport, Instant, ListenerId, Queues, ReportKinds, SendReport, State, WriteError};
use core::net::{IpAddr, SocketAddr};
use wire::{Addr, SeqNum};

impl Stack {
    /// State of a connection; `None`: no such connection.
    pub fn state(&self, id: ConnId) -> Option<State> {
        self.connection(id).map(|c| c.state)
    }

    /// Local and remote name of a connection.
    pub fn names(&self, id: ConnId) -> Option<(SocketAddr, SocketAddr)> {
        self.connection(id).map(|c| (c.tuple.local_addr(), c.tuple.peer_addr()))
    }

    /// Is there a connection with this local name whose application has let go of it, be it in TIME-WAIT? All of them are looked at: a
    /// question for who takes a name, not for who sends.
    pub fn is_port_parting(&self, local: IpAddr, port: u16) -> bool {
        let local = Addr::from(local);
        let named = |connection: &Connection| {
            connection.orphan && connection.tuple.local_port == port && connection.tuple.local == local
        };
        self.time_wait.has_local(local, port)
            || self.connections.iter().any(|(_, connection)| named(connection))
    }

    /// Bytes received in order and not read; 0 where there is no such connection.
    pub fn recv_queue(&self, id: ConnId) -> usize {
        self.connection(id).map_or(0, |c| c.rcv.buffer.len())
    }

    /// How full a connection's buffers are.
    pub fn queues(&self, id: ConnId) -> Option<Queues> {
        let c = self.connection(id)?;
        let (recv_memory, recv_set_aside) = c.rcv.charged();
        Some(Queues {
            state: c.state,
            received: c.rcv.buffer.len(),
            recv_buffer: c.rcv.space.rcvbuf(),
            recv_memory,
            recv_set_aside,
            unacknowledged: c.snd.queue.len(),
            left_behind: c.left_behind() as usize,
            unsent: c.never_sent(),
            send_buffer: c.snd.queue.limit,
            send_buffer_used: c.send_buffer_used(self.config()),
            writable: c.is_writable(self.config(), self.shared.send_share()),
        })
    }

    /// For the scripts' process in virtual time: a tap beside the stack (a capturing socket) has read so many of the TCP packets that came. It
    /// shares each with the stack until then, so that nothing is copied behind its payload where buffers are counted by packets; `None`: there
    /// is no tap.
    #[doc(hidden)]
    pub fn tap_has_read(&mut self, packets: Option<u64>) {
        self.shared.tap_read = packets.map(|packets| packets as u32);
    }

    /// Connections that can be accepted.
    pub fn accept_queue(&self, id: ListenerId) -> usize {
        self.listener(id).map_or(0, |listener| listener.accept_queue.len())
    }

    /// First sequence number that is not acknowledged, and the one behind the last byte written.
    pub fn send_span(&self, id: ConnId) -> Option<(SeqNum, SeqNum)> {
        self.connection(id).map(|c| (c.snd.una, c.snd.queue.end()))
    }

    /// Number of the next byte that is to come.
    pub fn rcv_nxt(&self, id: ConnId) -> Option<SeqNum> {
        self.connection(id).map(|c| c.rcv.nxt)
    }

    /// The MSS that the peer's SYN announced, bytes.
    pub fn peer_mss(&self, id: ConnId) -> Option<u16> {
        self.connection(id).map(|c| c.agreed.peer_mss)
    }

    /// Asks for a report about the last byte that was written ([`Events::REPORT`](crate::Events::REPORT), [`take_report`](Self::take_report)). Of
    /// several that share a segment only the last is reported.
    ///
    /// # Errors
    /// [`WriteError::NotFound`].
    pub fn report_last(&mut self, id: ConnId, kinds: ReportKinds) -> Result<(), WriteError> {
        self.owned(id).ok_or(WriteError::NotFound)?.report_last(kinds);
        Ok(())
    }

    /// Asks for an event when nothing is held any more of what has been written until now. `Ok(false)`: nothing is.
    ///
    /// # Errors
    /// [`WriteError::NotFound`].
    pub fn report_released(&mut self, id: ConnId) -> Result<bool, WriteError> {
        Ok(self.owned(id).ok_or(WriteError::NotFound)?.report_released())
    }

    /// The oldest report that was not taken.
    pub fn take_report(&mut self, id: ConnId) -> Option<SendReport> {
        self.owned(id)?.take_report()
    }

    /// The last urgent byte has come, and was neither read apart nor passed over.
    pub fn urgent_has_come(&self, id: ConnId) -> bool {
        self.connection(id).is_some_and(|c| c.urgent_has_come())
    }

    /// With [`receive_times`](field@crate::SocketOptions::receive_times): when the last byte read had come, or one that lies `ahead` bytes
    /// behind it.
    pub fn arrived_at(&self, id: ConnId, ahead: usize) -> Option<Instant> {
        self.connection(id)?.arrived_at(ahead)
    }

    /// The last ICMP error that was believed, other than of the path's MTU; it is reported once.
    pub fn take_icmp_report(&mut self, id: ConnId) -> Option<IcmpReport> {
        self.owned(id)?.special.as_mut()?.icmp.take().map(|report| *report)
    }
}
