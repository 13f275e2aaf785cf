//! Queries about one connection or listener: state, addresses, queues, sequence numbers, and values
//! kept on request (reports of sent data, arrival times, the last ICMP error).
//! [`ConnectionInfo`](crate::ConnectionInfo) has everything about a connection at once.

use crate::stack::Stack;
use crate::tcp::connection::Connection;
use crate::{ConnId, IcmpReport, Instant, ListenerId, Queues, ReportKinds, SendReport, State, WriteError};
use core::net::{IpAddr, SocketAddr};
use wire::{Addr, SeqNum};

impl Stack {
    /// Returns the state of a connection; `None` if it is unknown.
    pub fn state(&self, id: ConnId) -> Option<State> {
        self.connection(id).map(|c| c.state)
    }

    /// Returns the local and the peer's address of a connection.
    pub fn names(&self, id: ConnId) -> Option<(SocketAddr, SocketAddr)> {
        self.connection(id).map(|c| (c.tuple.local_addr(), c.tuple.peer_addr()))
    }

    /// Returns whether an orphan or a TIME-WAIT entry has this local address and port. Visits all
    /// of them, so it is for binding, not for sending.
    pub fn is_port_parting(&self, local: IpAddr, port: u16) -> bool {
        let local = Addr::from(local);
        let named = |connection: &Connection| {
            connection.orphan && connection.tuple.local_port == port && connection.tuple.local == local
        };
        self.time_wait.has_local(local, port)
            || self.connections.iter().any(|(_, connection)| named(connection))
    }

    /// Returns the bytes received in order and not read; 0 for an unknown connection.
    pub fn recv_queue(&self, id: ConnId) -> usize {
        self.connection(id).map_or(0, |c| c.rcv.buffer.len())
    }

    /// Returns the fill levels of a connection's buffers.
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
            unsent: c.snd.never_sent(),
            send_buffer: c.snd.queue.limit,
            send_buffer_used: c.send_buffer_used(self.config()),
            writable: c.is_writable(self.config(), self.shared.send_share()),
        })
    }

    /// For scripts in virtual time: reports how many of the received TCP packets a tap (a capturing
    /// socket) has read. The tap shares unread packets with the stack, so payloads cannot be merged
    /// where buffers are counted by packets. `None` if there is no tap.
    #[doc(hidden)]
    pub fn tap_has_read(&mut self, packets: Option<u64>) {
        self.shared.tap_read = packets.map(|packets| packets as u32);
    }

    /// Returns the number of connections that can be accepted.
    pub fn accept_queue(&self, id: ListenerId) -> usize {
        self.listener(id).map_or(0, |listener| listener.accept_queue.len())
    }

    /// Returns the first unacknowledged sequence number, and the one after the last written byte.
    pub fn send_span(&self, id: ConnId) -> Option<(SeqNum, SeqNum)> {
        self.connection(id).map(|c| (c.snd.una, c.snd.queue.end()))
    }

    /// Returns the sequence number of the next expected byte.
    pub fn rcv_nxt(&self, id: ConnId) -> Option<SeqNum> {
        self.connection(id).map(|c| c.rcv.nxt)
    }

    /// Returns the MSS option of the peer's SYN, bytes.
    pub fn peer_mss(&self, id: ConnId) -> Option<u16> {
        self.connection(id).map(|c| c.agreed.peer_mss)
    }

    /// Requests a report about the last written byte ([`Events::REPORT`](crate::Events::REPORT),
    /// [`take_report`](Self::take_report)). If several share a segment, only the last is reported.
    ///
    /// # Errors
    /// [`WriteError::NotFound`].
    pub fn report_last(&mut self, id: ConnId, kinds: ReportKinds) -> Result<(), WriteError> {
        self.owned(id).ok_or(WriteError::NotFound)?.report_last(kinds);
        Ok(())
    }

    /// Requests an event for the time when no data written so far is held any more. Returns
    /// `Ok(false)` if none is held now.
    ///
    /// # Errors
    /// [`WriteError::NotFound`].
    pub fn report_released(&mut self, id: ConnId) -> Result<bool, WriteError> {
        Ok(self.owned(id).ok_or(WriteError::NotFound)?.report_released())
    }

    /// Returns the oldest pending report.
    pub fn take_report(&mut self, id: ConnId) -> Option<SendReport> {
        self.owned(id)?.take_report()
    }

    /// Returns whether the last urgent byte has arrived and was neither read nor skipped.
    pub fn urgent_has_come(&self, id: ConnId) -> bool {
        self.connection(id).is_some_and(|c| c.urgent_has_come())
    }

    /// Returns the arrival time of the last read byte, or of the one `ahead` bytes after it, with
    /// [`receive_times`](field@crate::SocketOptions::receive_times).
    pub fn arrived_at(&self, id: ConnId, ahead: usize) -> Option<Instant> {
        self.connection(id)?.arrived_at(ahead)
    }

    /// Returns the last accepted ICMP error, except about the path MTU; each is reported once.
    pub fn take_icmp_report(&mut self, id: ConnId) -> Option<IcmpReport> {
        self.owned(id)?.special.as_mut()?.icmp.take().map(|report| *report)
    }
}
