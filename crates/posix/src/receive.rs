//! `read`, `recv`, `recvfrom`, `recvmsg` (Linux's `tcp_recvmsg_locked`).

use crate::errno::{Errno, Stop};
use crate::socket::{Queue, Role};
use crate::sockets::{Sockets, peer_has_finished};
use proto::{ConnId, Instant, Queues, ReadError, State, UrgentError};

/// One call that receives.
#[derive(Debug)]
pub struct Receive {
    fd: i32,
    flags: i32,
    copied: usize,
    /// What was received into other buffers before.
    before: usize,
    deadline: Option<Option<Instant>>,
    /// An urgent byte that is not in the stream ends what is given, instead of being passed over (`tcp_read_sock`).
    stops_at_urgent: bool,
}

impl Receive {
    /// Creates a call. `flags`: `MSG_DONTWAIT`, `MSG_PEEK`, `MSG_WAITALL`, `MSG_TRUNC`, `MSG_OOB`;
    /// others are ignored. For `MSG_ERRQUEUE` use [`Sockets::receive_error`].
    pub fn new(fd: i32, flags: i32) -> Receive {
        Receive { fd, flags, copied: 0, before: 0, deadline: None, stops_at_urgent: false }
    }

    /// As [`new`](Self::new), for `splice`.
    pub(crate) fn before_urgent(fd: i32, flags: i32) -> Receive {
        Receive { stops_at_urgent: true, ..Receive::new(fd, flags) }
    }

    /// Makes an attempt. Returns the number of bytes in `buf`, or 0 at the end of the stream.
    ///
    /// # Errors
    /// Returns `EAGAIN`, `ENOTCONN`, `EINVAL` (`MSG_OOB` without an urgent byte), `ECONNRESET` …,
    /// once; `EPERM` in repair mode; or [`Stop::Wait`].
    pub fn attempt(&mut self, sockets: &mut Sockets, now: Instant, buf: &mut [u8]) -> Result<usize, Stop> {
        let socket = sockets.files.socket(self.fd)?;
        let listens = matches!(socket.role, Role::Listener(_));
        if socket.repair.on && !listens && self.flags & libc::MSG_OOB == 0 {
            if self.flags & libc::MSG_PEEK == 0 {
                return Err(Errno::EPERM.into());
            }
            match socket.repair.queue {
                Queue::None => return Err(Errno::EINVAL.into()),
                Queue::Receive => {}
                Queue::Send => return Ok(sockets.look_at_sent(self.fd, buf)?),
            }
        }
        let id = match socket.role {
            Role::Connection(id) => id,
            Role::Fresh if self.flags & libc::MSG_OOB != 0 => return Err(Errno::EINVAL.into()),
            Role::Fresh => return Ok(sockets.nothing_to_receive(self.fd)?),
            Role::Listener(_) => return Err(Errno::ENOTCONN.into()),
        };
        if self.flags & libc::MSG_OOB != 0 {
            return Ok(sockets.take_urgent(self.fd, id, buf, self.flags & libc::MSG_PEEK == 0)?);
        }
        if self.stops_at_urgent && sockets.is_at_urgent(id) {
            return Ok(0);
        }
        let deadline = self.deadline(sockets, now)?;
        if buf.is_empty() && sockets.stack.queues(id).is_some_and(|queues| queues.received > 0) {
            // To read nothing waits for something all the same.
            return Ok(0);
        }
        // `splice` takes what there is (Linux's `tcp_splice_read`).
        let target = if self.stops_at_urgent { 1 } else { sockets.target(self.fd, self.flags, buf.len())? };
        loop {
            let skip = sockets.peek_offset(self.fd, self.flags)?;
            if self.flags & libc::MSG_PEEK != 0 {
                self.copied = 0;
            }
            let got = sockets.take(now, id, &mut buf[self.copied..], self.flags, skip)?;
            self.copied += got;
            sockets.move_peek_offset(self.fd, self.flags, got)?;
            let ahead = if self.flags & libc::MSG_PEEK != 0 { skip + self.copied } else { 0 };
            let at_mark = self.copied > 0 && sockets.stack.urgent_mark(id) == Some(ahead);
            if self.copied >= target || at_mark {
                // No call goes over the mark, whatever it waits for.
                return Ok(self.copied);
            }
            if got > 0 && self.flags & libc::MSG_PEEK == 0 {
                continue;
            }
            return match sockets.nothing_more(now, self.fd, id, self.copied + self.before, deadline) {
                Err(Stop::Errno(_)) if self.copied + self.before > 0 => Ok(self.copied),
                Ok(()) => Ok(self.copied),
                Err(stop) => Err(stop),
            };
        }
    }

    /// How many bytes are in the buffer so far, for a call that is interrupted.
    pub(crate) fn copied(&self) -> usize {
        self.copied
    }

    /// Goes on with another buffer.
    pub(crate) fn use_another_buffer(&mut self) {
        self.before += std::mem::take(&mut self.copied);
    }

    fn deadline(&mut self, sockets: &Sockets, now: Instant) -> Result<Option<Instant>, Errno> {
        let socket = sockets.files.socket(self.fd)?;
        let at_once = socket.nonblocking || self.flags & libc::MSG_DONTWAIT != 0;
        let timeout = socket.options.rcvtimeo.map(|timeout| now + timeout);
        Ok(*self.deadline.get_or_insert(if at_once { Some(now) } else { timeout }))
    }
}

fn wait_to_receive<T>(now: Instant, deadline: Option<Instant>) -> Result<T, Stop> {
    match deadline {
        Some(deadline) if now >= deadline => Err(Errno::EAGAIN.into()),
        deadline => Err(Stop::Wait(deadline)),
    }
}

impl Sockets {
    /// Of a socket that is not connected: an error that waits to be told, the end that was asked for, or that there is nobody.
    fn nothing_to_receive(&mut self, fd: i32) -> Result<usize, Errno> {
        let socket = self.files.socket_mut(fd)?;
        match socket.take_error() {
            Some(error) => Err(error),
            None if socket.shut.read => Ok(0),
            None => Err(Errno::ENOTCONN),
        }
    }

    /// What was written and is not acknowledged, as far as there is room, and how much that is (Linux's `tcp_peek_sndq`).
    ///
    /// # Errors
    /// `EBADF`, `ENOTSOCK`.
    fn look_at_sent(&self, fd: i32, buf: &mut [u8]) -> Result<usize, Errno> {
        let id = self.files.socket(fd)?.connection();
        let all = id.and_then(|id| self.stack.unacknowledged(id)).unwrap_or_default();
        let told = all.len().min(buf.len());
        buf[..told].copy_from_slice(&all[..told]);
        Ok(all.len())
    }

    /// How many bytes a call waits for (`sock_rcvlowat`).
    fn target(&self, fd: i32, flags: i32, len: usize) -> Result<usize, Errno> {
        let lowat = self.files.socket(fd)?.options.rcvlowat;
        let lowat = usize::try_from(lowat).unwrap_or(usize::MAX).max(1);
        Ok(if flags & libc::MSG_WAITALL != 0 { len } else { lowat.min(len) }.max(1))
    }

    /// Returns the size of the buffer that a read of at most `room` bytes can fill.
    pub fn worth_reading(&self, fd: i32, room: usize) -> usize {
        let socket = self.files.socket(fd);
        let queues = socket.ok().and_then(|socket| self.stack.queues(socket.connection()?));
        // Whoever waits for more than there is waits for no more than the buffer may come to hold, twice.
        let most =
            |queues: Queues| queues.received.max(queues.recv_buffer as usize).max(queues.unacknowledged);
        queues.map_or(room, |queues| most(queues).saturating_mul(2))
    }

    /// Bytes that `TCP_ZEROCOPY_RECEIVE` could map.
    ///
    /// # Errors
    /// `ENOTCONN` for a listener, `EIO` at the end of the stream, `EBADF`, `ENOTSOCK`.
    pub(crate) fn bytes_to_map(&mut self, fd: i32) -> Result<usize, Errno> {
        let socket = self.files.socket(fd)?;
        let id = match socket.role {
            Role::Connection(id) => id,
            Role::Listener(_) => return Err(Errno::ENOTCONN),
            Role::Fresh => return Ok(0),
        };
        let waiting = self.readable_now(socket, id);
        let finished = socket.peer_finished || peer_has_finished(self.state(id));
        if waiting == 0 && finished { Err(Errno::EIO) } else { Ok(waiting) }
    }

    /// Bytes left; the end of the stream counts as one (`tcp_inq_hint`).
    pub(crate) fn inq_hint(&self, fd: i32) -> Result<i32, Errno> {
        let socket = self.files.socket(fd)?;
        let queues = socket.connection().and_then(|id| self.stack.queues(id));
        Ok(queues.map_or(0, |queues| {
            let finished = socket.peer_finished || peer_has_finished(queues.state);
            i32::try_from(queues.received).unwrap_or(i32::MAX).saturating_add(finished.into())
        }))
    }

    /// An error for the next call, or `SO_ERROR`, to tell.
    pub(crate) fn leave_errno(&mut self, fd: i32, errno: Errno) {
        if let Ok(socket) = self.files.socket_mut(fd) {
            socket.error = Some(errno);
        }
    }

    /// The error that waits to be told.
    pub(crate) fn take_errno(&mut self, fd: i32) -> Result<Option<Errno>, Errno> {
        if let Some(id) = self.files.socket(fd)?.connection() {
            self.notice_state(fd, id);
        }
        Ok(self.files.socket_mut(fd)?.take_error())
    }

    /// Returns the value of `TCP_INQ` for `recvmsg`: bytes left, plus one for the end of the
    /// stream.
    ///
    /// # Errors
    /// Returns `EBADF` or `ENOTSOCK`.
    pub fn left_to_read(&self, fd: i32) -> Result<Option<i32>, Errno> {
        let socket = self.files.socket(fd)?;
        let wanted = socket.options.inq && socket.connection().is_some();
        wanted.then(|| self.inq_hint(fd)).transpose()
    }

    /// What is there, up to an urgent byte that is not in the stream.
    fn take(
        &mut self,
        now: Instant,
        id: ConnId,
        buf: &mut [u8],
        flags: i32,
        skip: usize,
    ) -> Result<usize, Errno> {
        if buf.is_empty() {
            return Ok(0);
        }
        let got = if flags & libc::MSG_PEEK != 0 {
            self.stack.peek_from(now, id, skip, buf)
        } else {
            self.stack.read(now, id, buf)
        };
        match got {
            Ok(got) => Ok(got),
            Err(ReadError::Blocked | ReadError::Closed(_)) => Ok(0),
            Err(ReadError::NotFound) => Err(Errno::ENOTCONN),
        }
    }

    /// Where `MSG_PEEK` begins (`SO_PEEK_OFF`).
    fn peek_offset(&self, fd: i32, flags: i32) -> Result<usize, Errno> {
        let offset = self.files.socket(fd)?.options.peek_off;
        Ok(if flags & libc::MSG_PEEK != 0 { usize::try_from(offset).unwrap_or(0) } else { 0 })
    }

    /// It goes on with what is peeked at, and back with what is read.
    fn move_peek_offset(&mut self, fd: i32, flags: i32, got: usize) -> Result<(), Errno> {
        let offset = &mut self.files.socket_mut(fd)?.options.peek_off;
        let got = i32::try_from(got).unwrap_or(i32::MAX);
        if *offset >= 0 {
            let peeked = flags & libc::MSG_PEEK != 0;
            *offset = if peeked { offset.saturating_add(got) } else { (*offset - got).max(0) };
        }
        Ok(())
    }

    fn is_at_urgent(&self, id: ConnId) -> bool {
        self.stack.options(id).is_some_and(|options| options.urgent_apart)
            && self.stack.urgent_mark(id) == Some(0)
    }

    /// `MSG_OOB` (Linux's `tcp_recv_urg`).
    fn take_urgent(&mut self, fd: i32, id: ConnId, buf: &mut [u8], take: bool) -> Result<usize, Errno> {
        if self.stack.urgent_mark(id).is_none() {
            // There is none, or reads have gone on behind it.
            return Err(Errno::EINVAL);
        }
        match self.stack.read_urgent(id, take) {
            Ok(byte) => {
                if let Some(first) = buf.first_mut() {
                    *first = byte;
                }
                Ok(buf.len().min(1))
            }
            Err(UrgentError::None) => Err(Errno::EINVAL),
            Err(UrgentError::Blocked) => Err(Errno::EAGAIN),
            Err(UrgentError::Closed(_) | UrgentError::NotFound) => {
                let socket = self.files.socket(fd)?;
                if socket.ended && !socket.peer_finished { Err(Errno::ENOTCONN) } else { Ok(0) }
            }
        }
    }

    /// Less came than the call waits for: the end of the stream (`Ok`), an error, or waiting.
    fn nothing_more(
        &mut self,
        now: Instant,
        fd: i32,
        id: ConnId,
        copied: usize,
        deadline: Option<Instant>,
    ) -> Result<(), Stop> {
        self.notice_state(fd, id);
        let state = self.state(id);
        let socket = self.files.socket_mut(fd)?;
        if socket.peer_finished || peer_has_finished(state) {
            return Ok(());
        }
        if socket.error.is_some() && copied > 0 {
            return Ok(());
        }
        if let Some(error) = socket.take_error() {
            return Err(error.into());
        }
        if socket.ended || socket.shut.read || state == State::Closed {
            return Ok(());
        }
        wait_to_receive(now, deadline)
    }
}
