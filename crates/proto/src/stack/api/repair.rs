//! Calls that move a connection to another stack without its peer, and that assemble one by hand.

use super::ports::Claim;
use crate::socket_options::Options;
use crate::stack::Stack;
use crate::tcp::connection::Connection;
use crate::{
    ConnId, ConnectError, ConnectOptions, Instant, Repair, SavedConnection, SocketOptions, State, Windows,
    WriteError,
};
use bytes::Bytes;
use core::net::SocketAddr;
use wire::SeqNum;

impl Stack {
    /// Saves the state with which another stack continues an established connection. The connection
    /// itself is unchanged. The caller [discards](Self::discard) it before the other stack restores
    /// it. In between, the caller must keep the peer's packets from both stacks, because a stack
    /// resets unknown connections.
    ///
    /// `None` if the connection is unknown, or one end has closed or reset it.
    /// ```
    /// use firstbyte_proto::*;
    /// use core::net::SocketAddr;
    ///
    /// let wire = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
    /// let host = |address: &str, seed| {
    ///     let mut stack = Stack::new(Config::default(), wire, [seed; 32]);
    ///     stack.add_address(address.parse().unwrap(), 24);
    ///     stack
    /// };
    /// let now = Instant::ZERO;
    /// let exchange = |one: &mut Stack, other: &mut Stack| loop {
    ///     let (there, back) = (one.poll_transmit(now), other.poll_transmit(now));
    ///     if there.is_none() && back.is_none() {
    ///         break;
    ///     }
    ///     let packets = |sent: Option<TxPacket>| sent.into_iter().flat_map(|packet| packet.segments());
    ///     packets(there).for_each(|packet| drop(other.handle_packet(now, RxPacket::new(packet))));
    ///     packets(back).for_each(|packet| drop(one.handle_packet(now, RxPacket::new(packet))));
    /// };
    ///
    /// let (mut client, mut old, mut new) = (host("10.0.0.1", 1), host("10.0.0.2", 2), host("10.0.0.2", 3));
    /// let name: SocketAddr = "10.0.0.2:80".parse().unwrap();
    /// let listener = old.listen(now, name, ListenOptions::default()).unwrap();
    /// let to_server = client.connect(now, name, ConnectOptions::default()).unwrap();
    /// exchange(&mut client, &mut old);
    /// let (to_client, _) = old.accept(now, listener).unwrap();
    ///
    /// let saved = old.save_connection(now, to_client).unwrap();
    /// old.discard(now, to_client);
    /// let to_client = new.restore_connection(now, &saved, SocketOptions::default()).unwrap();
    /// new.write(now, to_client, b"hello").unwrap();
    /// exchange(&mut client, &mut new);
    ///
    /// let mut buf = [0; 10];
    /// assert_eq!(client.read(now, to_server, &mut buf), Ok(5));
    /// ```
    pub fn save_connection(&mut self, now: Instant, id: ConnId) -> Option<SavedConnection> {
        let connection = self.connections.find_mut(id.index, id.generation)?;
        let whole = connection.state == State::Established && connection.handshake.is_none();
        (whole && !connection.orphan).then(|| connection.saved(self.shared.context(now)))
    }

    /// Restores a connection that another stack saved. Requests an acknowledgment from the peer,
    /// which shows its state.
    ///
    /// # Errors
    /// See [`connect`](Self::connect): the local address must be the stack's, and the four-tuple
    /// must be free.
    pub fn restore_connection(
        &mut self,
        now: Instant,
        saved: &SavedConnection,
        options: SocketOptions,
    ) -> Result<ConnId, ConnectError> {
        let sent = saved.unacknowledged.len().saturating_sub(saved.unsent);
        let (sent, unsent) = saved.unacknowledged.split_at(sent);
        let read = saved.rcv_nxt - saved.unread.len() as u32;
        let id = self.open_repaired(now, (saved.local, saved.peer), (saved.snd_una, read), options)?;
        let mut pieces = vec![Repair::Mss(saved.peer_mss)];
        pieces.extend(saved.window_scale.map(|(peers, ours)| Repair::WindowScale(peers, ours)));
        pieces.extend(saved.sack.then_some(Repair::Sack));
        if let Some((tsval, ts_recent)) = saved.timestamps {
            pieces.extend([Repair::Timestamps, Repair::TsVal(tsval), Repair::TsRecent(ts_recent)]);
        }
        pieces.extend([Repair::Received(&saved.unread), Repair::Sent(sent), Repair::Windows(saved.windows)]);
        pieces.retain(|piece| !matches!(piece, Repair::Sent([]) | Repair::Received([])));
        for piece in pieces {
            // It has just been made.
            let _ = self.repair(now, id, piece);
        }
        if let Some(connection) = self.connections.get_mut(id.index) {
            let goal = connection.size_goal(&self.shared.capabilities);
            connection.snd.queue.write(unsent, goal, &mut self.shared.blocks);
            connection.snd.queue.mark_push();
        }
        self.probe_window(now, id);
        Ok(id)
    }

    /// Creates a connection in ESTABLISHED without a packet. The arguments are the next sequence
    /// numbers to send and to receive. Nothing is negotiated with the peer, and its window is zero,
    /// until [`repair`](Self::repair) changes that.
    ///
    /// # Errors
    /// See [`connect`](Self::connect), except that listeners with this address are allowed. Port 0
    /// selects a port.
    pub fn open_repaired(
        &mut self,
        now: Instant,
        (local, peer): (SocketAddr, SocketAddr),
        (snd_nxt, rcv_nxt): (SeqNum, SeqNum),
        socket: SocketOptions,
    ) -> Result<ConnId, ConnectError> {
        let options = ConnectOptions { local: Some(local), ..ConnectOptions::default() };
        let (name, is_free) = self.choose_tuple(now, peer, &options, Claim::Takes)?;
        if self.too_many_connections() {
            return Err(ConnectError::TooMany);
        }
        if !is_free {
            self.recycle(&name);
        }
        let ts_offset = self.timestamp_offset(&name.tuple);
        let socket = Options::from(socket);
        self.enable_hooks(&socket.rare);
        let begin = (State::Established, snd_nxt - 1);
        let id = self.begin_connection(now, name, begin, socket, None);
        let cx = self.shared.context(now);
        if let Some(connection) = self.connections.get_mut(id.index) {
            connection.ts_offset = ts_offset;
            connection.begin_repaired(cx, snd_nxt, rcv_nxt);
        }
        self.settle(now, id.index);
        Ok(id)
    }

    /// Sets a part of a connection. It sends no packet by itself, but pending output leaves when a
    /// part allows it: data as soon as the [windows](Repair::Windows) have room.
    ///
    /// # Errors
    /// [`WriteError::NotFound`], also if the connection has ended or its handshake is incomplete
    /// (except for [`Repair::TsVal`]); [`WriteError::Shutdown`] for data after a FIN of either end.
    pub fn repair(&mut self, now: Instant, id: ConnId, piece: Repair<'_>) -> Result<(), WriteError> {
        let connection =
            self.connections.find_mut(id.index, id.generation).filter(|connection| !connection.orphan);
        let connection = connection.ok_or(WriteError::NotFound)?;
        let begins = connection.handshake.is_some() && !matches!(piece, Repair::TsVal(_));
        if !connection.is_open() || begins {
            return Err(WriteError::NotFound);
        }
        let has_place = connection.repair(self.shared.context(now), piece);
        self.settle(now, id.index);
        if has_place { Ok(()) } else { Err(WriteError::Shutdown) }
    }

    /// Returns the windows of both ends of a connection.
    pub fn windows(&self, id: ConnId) -> Option<Windows> {
        self.connection(id).map(Connection::windows)
    }

    /// Returns a copy of the written data that is not acknowledged.
    pub fn unacknowledged(&self, id: ConnId) -> Option<Bytes> {
        self.connection(id).map(Connection::unacknowledged)
    }

    /// Requests an acknowledgment with a segment without data, and accepts the window that it
    /// advertises.
    pub fn probe_window(&mut self, now: Instant, id: ConnId) {
        if let Some(connection) = self.owned(id)
            && connection.state == State::Established
        {
            connection.ask_window();
            self.settle(now, id.index);
        }
    }

    /// Removes a connection silently, because another stack continues it.
    pub fn discard(&mut self, now: Instant, id: ConnId) {
        if self.owned(id).is_some() {
            self.orphan(id.index);
            if let Some(connection) = self.connections.get_mut(id.index) {
                connection.terminate(&mut self.shared.counters, crate::CloseReason::Aborted);
            }
            self.settle(now, id.index);
        }
    }
}
