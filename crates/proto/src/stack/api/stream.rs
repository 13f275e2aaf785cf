//! Calls on a stream of bytes: write, push, read, peek.

use crate::slab::Slab;
use crate::stack::demux::replies::Replies;
use crate::stack::timers::settle::{settle_open, settle_ordinary};
use crate::stack::{Shared, Stack};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::open::handshake::Handshake;
use crate::tcp::recv::receiver::AckOwed;
use crate::tcp::send::nagle::Nagle;
use crate::tcp::send::send_queue::blocks::SendBlocks;
use crate::tcp::send::send_queue::{Goal, SendQueue};
use crate::tcp::send::write::Meanwhile;
use crate::{
    CloseReason, ConnId, Instant, OptionError, ReadError, SocketOption, SocketOptions, UrgentError,
    WriteError, WriteFlags,
};
use bytes::Bytes;
use core::ops::Range;

impl Stack {
    /// Writes as many bytes as fit.
    ///
    /// # Errors
    /// [`WriteError::Blocked`] if nothing fits: wait for
    /// [`Events::WRITABLE`](crate::Events::WRITABLE).
    pub fn write(&mut self, now: Instant, id: ConnId, data: &[u8]) -> Result<usize, WriteError> {
        if self.write_small(now, id, data) {
            return Ok(data.len());
        }
        self.write_with(now, id, data, WriteFlags::empty())
    }

    /// A fast path for requests and answers (see `tcp/send/write`). False: this is none, and nothing has happened.
    #[inline(never)]
    fn write_small(&mut self, now: Instant, id: ConnId, data: &[u8]) -> bool {
        if self.trace.is_some() {
            return false;
        }
        let Ok(connection) = open_for_writing(&mut self.connections, id) else { return false };
        let taken = connection.take_small(&mut self.shared, data);
        if taken && connection.handshake.is_some() {
            settle_open(&mut self.shared, &mut self.work, now, id, connection);
        } else if taken {
            self.shared.charge(now, connection);
            self.work.note_ready(id, connection);
        }
        taken
    }

    /// Writes like [`write`](Stack::write). The flags apply only if all of `data` was written.
    ///
    /// # Errors
    /// See [`write`](Stack::write).
    pub fn write_with(
        &mut self,
        now: Instant,
        id: ConnId,
        data: &[u8],
        flags: WriteFlags,
    ) -> Result<usize, WriteError> {
        self.write_from(now, id, data.len(), flags, |queue, part, goal, blocks| {
            queue.write(&data[part], goal, blocks);
        })
    }

    /// Writes bytes without copying them. Bytes that do not fit stay in `data`.
    ///
    /// # Errors
    /// See [`write`](Stack::write).
    pub fn write_bytes(&mut self, now: Instant, id: ConnId, data: &mut Bytes) -> Result<usize, WriteError> {
        self.write_from(now, id, data.len(), WriteFlags::empty(), |queue, part, goal, blocks| {
            queue.write_bytes(data.split_to(part.len()), goal, blocks);
        })
    }

    /// Takes what fits of `len` bytes; `append` puts parts of them into the queue, one after the other.
    fn write_from(
        &mut self,
        now: Instant,
        id: ConnId,
        len: usize,
        flags: WriteFlags,
        mut append: impl FnMut(&mut SendQueue, Range<usize>, Goal, &mut SendBlocks),
    ) -> Result<usize, WriteError> {
        let (connection, mut goal, mut room) = writable(&mut self.connections, &self.shared, id)?;
        if connection.special.is_some() {
            connection.doubt_path_mtu(self.shared.context(now));
            connection.hear_of_route(self.shared.context(now));
            goal.segment = connection.size_goal(&self.shared.capabilities);
        }
        if room == 0 && len > 0 {
            connection.writer_waits = true;
            return Err(WriteError::Blocked);
        }
        connection.before_write(&self.shared.config, goal.segment);
        let mut moments = None;
        let mut taken = 0;
        loop {
            let part = taken..len.min(taken + room);
            taken = part.end;
            append(&mut connection.snd.queue, part, goal, &mut self.shared.blocks);
            if taken == len || !self.shared.config.write_rules.are_by_segment() {
                break;
            }
            if !flags.contains(WriteFlags::URGENT) {
                let moments = moments.get_or_insert_with(|| connection.moments_of_write(now, len));
                let moment = moments.next().unwrap_or(now);
                send_meanwhile(connection, self.shared.context(moment), &mut self.replies);
            }
            room = connection.send_room(&self.shared.config, goal.segment, self.shared.send_share());
            if room == 0 {
                break;
            }
        }
        connection.after_write(if taken < len { WriteFlags::empty() } else { flags });
        connection.writer_waits |= taken < len;
        connection.written(self.shared.context(now));
        if self.trace.is_some() || !settle_ordinary(&mut self.shared, &mut self.work, now, id, connection) {
            self.settle_turn(now, id);
        }
        Ok(taken)
    }

    /// Returns the number of bytes that [`write`](Stack::write) would accept now, at least 1.
    ///
    /// # Errors
    /// See [`write`](Stack::write); after `Blocked`, [`Events::WRITABLE`](crate::Events::WRITABLE)
    /// follows here, too.
    pub fn send_capacity(&mut self, id: ConnId) -> Result<usize, WriteError> {
        let (connection, _, room) = writable(&mut self.connections, &self.shared, id)?;
        if room == 0 {
            connection.writer_waits = true;
            return Err(WriteError::Blocked);
        }
        Ok(room)
    }

    /// Requests [`Events::WRITABLE`](crate::Events::WRITABLE) although there is some room, as after
    /// a blocked write. It has no effect before the end of the handshake.
    pub fn await_room(&mut self, id: ConnId) {
        let Some(connection) = self.owned(id) else { return };
        let fast =
            |handshake: &Handshake| matches!(handshake, Handshake::Passive(passive) if passive.fast_open);
        if connection.handshake.as_deref().is_none_or(fast) {
            connection.writer_waits = true;
        }
    }

    /// Declares that no more data follows soon: data held for a SYN-ACK, by Nagle or by a cork is
    /// sent now. (A `flush` of a buffered writer is different.)
    pub fn push(&mut self, now: Instant, id: ConnId) {
        if let Some(connection) = self.owned(id) {
            connection.snd.push_queued();
            connection.release_synack();
            self.settle(now, id.index);
        }
    }

    /// Reads into `buf`. `Ok(0)` is the end of the stream, unless `buf` is empty.
    ///
    /// # Errors
    /// [`ReadError::Blocked`] if there is no data yet: wait for
    /// [`Events::READABLE`](crate::Events::READABLE).
    #[inline]
    pub fn read(&mut self, now: Instant, id: ConnId, buf: &mut [u8]) -> Result<usize, ReadError> {
        let at_end = match self.connections.find(id.index, id.generation) {
            Some(connection) if connection.has_nothing_to_read() && !buf.is_empty() => {
                if !connection.is_at_end()? {
                    return Err(ReadError::Blocked);
                }
                connection.rcv.space.counts_payload()
            }
            _ => false,
        };
        if at_end { Ok(0) } else { self.read_some(now, id, buf) }
    }

    #[inline(never)]
    fn read_some(&mut self, now: Instant, id: ConnId, buf: &mut [u8]) -> Result<usize, ReadError> {
        let found = self.connections.find_mut(id.index, id.generation);
        let connection = found.filter(|connection| !connection.orphan).ok_or(ReadError::NotFound)?;
        if connection.special.is_some() && !buf.is_empty() {
            connection.pass_urgent();
        }
        if connection.rcv.buffer.is_empty() {
            if !buf.is_empty() && !connection.rcv.space.counts_payload() {
                self.pass_packets(now, id.index);
                return self.nothing_to_read(now, id).map(|()| 0);
            }
            if buf.is_empty() || connection.is_at_end()? {
                return Ok(0);
            }
            if connection.handshake.is_some() {
                self.reader_waits(now, id.index);
            }
            return Err(ReadError::Blocked);
        }
        let most = if connection.special.is_some() { connection.up_to_mark(0, buf.len()) } else { buf.len() };
        let read = connection.rcv.buffer.read(&mut buf[..most], &mut self.shared.spare);
        if was_read(&mut self.shared, now, connection) {
            self.settle(now, id.index);
        }
        Ok(read)
    }

    /// Copies the data that [`read`](Stack::read) would return into `buf`, without consuming it.
    /// `Ok(0)` is the end of the stream, unless `buf` is empty.
    ///
    /// # Errors
    /// See [`read`](Stack::read).
    pub fn peek(&mut self, now: Instant, id: ConnId, buf: &mut [u8]) -> Result<usize, ReadError> {
        self.peek_from(now, id, 0, buf)
    }

    /// Peeks like [`peek`](Stack::peek), after skipping `skip` bytes (`SO_PEEK_OFF`).
    ///
    /// # Errors
    /// See [`read`](Stack::read); [`ReadError::Blocked`] if there are at most `skip` bytes.
    pub fn peek_from(
        &mut self,
        now: Instant,
        id: ConnId,
        skip: usize,
        buf: &mut [u8],
    ) -> Result<usize, ReadError> {
        if buf.is_empty() {
            return self.owned(id).map(|_| 0).ok_or(ReadError::NotFound);
        }
        let connection = self.owned(id).ok_or(ReadError::NotFound)?;
        let first = connection.place_of(skip);
        if connection.rcv.buffer.len() <= first {
            return self.nothing_to_read(now, id).map(|()| 0);
        }
        let most = connection.up_to_mark(skip, buf.len());
        Ok(connection.rcv.buffer.peek(first, &mut buf[..most]))
    }

    /// Reads at most `max` bytes without copying. `Ok(None)` is the end of the stream.
    ///
    /// # Errors
    /// See [`read`](Stack::read).
    pub fn read_chunk(&mut self, now: Instant, id: ConnId, max: usize) -> Result<Option<Bytes>, ReadError> {
        let connection = self.owned(id).ok_or(ReadError::NotFound)?;
        connection.pass_urgent();
        if connection.rcv.buffer.is_empty() {
            self.pass_packets(now, id.index);
            return self.nothing_to_read(now, id).map(|()| None);
        }
        let most = connection.up_to_mark(0, max.max(1));
        let chunk = connection.rcv.buffer.pop(most);
        if let Some(connection) = self.connections.get_mut(id.index)
            && was_read(&mut self.shared, now, connection)
        {
            self.settle(now, id.index);
        }
        Ok(chunk)
    }

    /// There is nothing to read, but packets may be left of what a read goes over: an urgent byte, the end.
    fn pass_packets(&mut self, now: Instant, index: u32) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        self.shared.charge(now, connection);
        if connection.packets_were_passed(self.shared.context(now)) {
            self.settle(now, index);
        }
    }

    /// The end of the stream, or why there is nothing.
    fn nothing_to_read(&mut self, now: Instant, id: ConnId) -> Result<(), ReadError> {
        if self.owned(id).ok_or(ReadError::NotFound)?.is_at_end()? {
            return Ok(());
        }
        self.reader_waits(now, id.index);
        Err(ReadError::Blocked)
    }

    /// The application has written, or has read a SYN that was full, and now waits for the peer: the SYN-ACK has nothing more to wait
    /// for.
    fn reader_waits(&mut self, now: Instant, index: u32) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        if let Some(Handshake::Passive(passive)) = connection.handshake.as_deref()
            && (passive.wrote || passive.request_goes_on)
        {
            connection.release_synack();
            self.settle(now, index);
        }
    }

    /// Changes one option of a connection.
    ///
    /// # Errors
    /// See [`OptionError`].
    pub fn set_option(&mut self, now: Instant, id: ConnId, option: SocketOption) -> Result<(), OptionError> {
        self.owned(id).ok_or(OptionError::NotFound)?;
        let cx = self.shared.context(now);
        let connection = self.connections.get_mut(id.index).ok_or(OptionError::NotFound)?;
        connection.set_option(cx, option)?;
        let options = connection.options.clone();
        self.enable_hooks(&options);
        self.settle(now, id.index);
        Ok(())
    }

    /// Returns the number of bytes before the last urgent byte announced by the peer, 0 if it is
    /// next (`SIOCATMARK`); `None` if there is none. Urgent bytes stay in the stream
    /// (`SO_OOBINLINE`, as RFC 6093 §6 advises), unless the socket has
    /// [`urgent_apart`](field@SocketOptions::urgent_apart). A read stops before the mark.
    pub fn urgent_mark(&self, id: ConnId) -> Option<usize> {
        self.connection(id)?.urgent_mark()
    }

    /// Returns the last urgent byte of a socket with
    /// [`urgent_apart`](field@SocketOptions::urgent_apart) (`recv` with `MSG_OOB`), as soon as it
    /// has arrived, even if earlier data is missing. With `take` it can be read once.
    ///
    /// # Errors
    /// See [`UrgentError`].
    pub fn read_urgent(&mut self, id: ConnId, take: bool) -> Result<u8, UrgentError> {
        self.owned(id).ok_or(UrgentError::NotFound)?.read_urgent(take)
    }

    /// Returns the options of a connection; `None` if it is unknown.
    pub fn options(&self, id: ConnId) -> Option<SocketOptions> {
        self.connection(id).map(Connection::socket_options)
    }

    /// A connection its application still holds.
    pub(in crate::stack) fn owned(&mut self, id: ConnId) -> Option<&mut Connection> {
        self.connections.find_mut(id.index, id.generation).filter(|connection| !connection.orphan)
    }
}

/// The connection, if its application may still write.
#[inline]
pub(in crate::stack) fn open_for_writing(
    connections: &mut Slab<Connection>,
    id: ConnId,
) -> Result<&mut Connection, WriteError> {
    let found = connections.find_mut(id.index, id.generation).filter(|connection| !connection.orphan);
    let connection = found.ok_or(WriteError::NotFound)?;
    match connection.close_reason {
        Some(CloseReason::Finished) => Err(WriteError::Shutdown),
        Some(reason) => Err(WriteError::Closed(reason)),
        None if connection.is_shut() => Err(WriteError::Shutdown),
        None => Ok(connection),
    }
}

/// The connection, how what it takes is cut, and the bytes it takes now.
pub(in crate::stack) fn writable<'a>(
    connections: &'a mut Slab<Connection>,
    shared: &Shared,
    id: ConnId,
) -> Result<(&'a mut Connection, Goal, usize), WriteError> {
    let connection = open_for_writing(connections, id)?;
    let segment = connection.size_goal(&shared.capabilities);
    let goal = Goal { segment, push_span: connection.snd.wnd_max / 2 };
    let room = connection.send_room(&shared.config, segment, shared.send_share());
    Ok((connection, goal, room))
}

/// The application has read. Room in the buffer is advertised when it is worth a packet (RFC 9293 §3.8.6.2.2): true if so.
fn was_read(shared: &mut Shared, now: Instant, connection: &mut Connection) -> bool {
    shared.charge(now, connection);
    if connection.special.is_some() {
        connection.forget_passed_mark();
    }
    if let Some(tells) = connection.packets_were_read(shared.context(now)) {
        return tells;
    }
    if connection.rcv.is_tuned() && !shared.memory.is_under_pressure() {
        connection.rcv.fit_buffer(now, &shared.config);
    }
    if connection.rcv.refuses() && connection.rcv.ends_refusal(&shared.config, &shared.memory) {
        connection.rcv.ack_owed = AckOwed::Now;
        return true;
    }
    if connection.rcv.acknowledge_what_was_read(&shared.config) {
        return true;
    }
    // While the peer may send more than half of the buffer there is nothing to tell.
    if connection.rcv.is_window_ample() || !connection.synchronized() || connection.rcv.fin_received {
        return false;
    }
    let opened = connection.rcv.window_opened(u32::from(connection.advmss));
    if opened {
        connection.rcv.ack_owed = AckOwed::Now;
    }
    opened
}

/// What a write sends while it goes on waits with the replies, so that its packets leave in their order.
fn send_meanwhile(connection: &mut Connection, cx: &mut Context, replies: &mut Replies) {
    let what = connection.leaves_meanwhile();
    connection.snd.nagle.set(Nagle::AT_ONCE, what == Meanwhile::Burst);
    while what != Meanwhile::Nothing
        && let Some(packet) = replies.push()
    {
        if !connection.poll_transmit(cx, packet) {
            replies.unpush();
            break;
        }
        connection.sign_ahead(packet);
        if what == Meanwhile::Burst {
            break;
        }
    }
    connection.snd.nagle.remove(Nagle::AT_ONCE);
}

impl Connection {
    /// The application has ended its direction.
    fn is_shut(&self) -> bool {
        let waits =
            || matches!(self.handshake.as_deref(), Some(Handshake::Passive(passive)) if passive.fin_waits);
        self.snd.fin_queued() || waits()
    }

    /// Nothing is buffered, and that a reader asks for it tells nobody anything.
    fn has_nothing_to_read(&self) -> bool {
        self.rcv.buffer.is_empty() && !self.orphan && self.special.is_none() && self.handshake.is_none()
    }

    /// Where nothing is buffered: is that the end of the stream?
    fn is_at_end(&self) -> Result<bool, ReadError> {
        match self.close_reason {
            None => Ok(self.rcv.fin_received),
            Some(CloseReason::Finished) => Ok(true),
            Some(reason) => Err(ReadError::Closed(reason)),
        }
    }

    /// The answer may now fill the SYN-ACK that waits for it.
    fn written(&mut self, cx: &Context) {
        if let Some(Handshake::Active(active)) = self.handshake.as_deref_mut() {
            active.writer_waits = true;
        }
        if let Some(Handshake::Passive(passive)) = self.handshake.as_deref_mut() {
            passive.wrote = true;
            if self.answer_fills_syn_ack(cx) {
                self.release_synack();
            }
        }
        self.arm_persist(cx);
    }
}
