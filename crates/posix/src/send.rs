//! `write`, `send`, `sendto`, `sendmsg` (Linux's `tcp_sendmsg_locked`).

use crate::connect::Waiting;
use crate::destination::Destination;
use crate::errno::{Errno, Stop};
use crate::socket::{Opening, Queue, Role};
use crate::sockets::{Sockets, peer_has_finished};
use proto::{ConnId, Instant, Repair, SeqNum, State, WriteError, WriteFlags};

/// Where the bytes come from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The bytes.
    pub data: &'a [u8],
    /// More was asked for behind them, from a place that cannot be read (`EFAULT`).
    pub faulty: bool,
}

/// One call that sends.
#[derive(Debug)]
pub struct Send<'a> {
    fd: i32,
    source: Source<'a>,
    flags: i32,
    to: Destination,
    sent: usize,
    /// Of those, on the SYN.
    sent_with_syn: usize,
    begun: bool,
    deadline: Option<Instant>,
    handshake: Option<Waiting>,
    zerocopy: Option<Zerocopy>,
    stamps: Option<u32>,
}

/// `MSG_ZEROCOPY`, of a socket with `SO_ZEROCOPY`.
#[derive(Clone, Copy, Debug)]
struct Zerocopy {
    /// What waited before it, sent so too.
    joins: Option<SeqNum>,
}

impl<'a> Send<'a> {
    /// Creates a call. `flags`: `MSG_DONTWAIT`, `MSG_MORE`, `MSG_EOR`, `MSG_OOB`, `MSG_FASTOPEN`,
    /// `MSG_ZEROCOPY`; others are ignored.
    pub fn new(fd: i32, source: Source<'a>, flags: i32, to: Destination) -> Send<'a> {
        Send {
            fd,
            source,
            flags,
            to,
            sent: 0,
            sent_with_syn: 0,
            begun: false,
            deadline: None,
            handshake: None,
            zerocopy: None,
            stamps: None,
        }
    }

    /// With these stamps (`SOF_TIMESTAMPING_TX_…`) instead of those the socket asks for.
    #[must_use]
    pub fn stamped(self, stamps: Option<u32>) -> Send<'a> {
        Send { stamps, ..self }
    }

    /// Makes an attempt. Returns the number of bytes accepted, which is all of them if the call may
    /// wait.
    ///
    /// # Errors
    /// Returns `EAGAIN`, `EPIPE` (with `SIGPIPE` unless `MSG_NOSIGNAL`, where there are signals),
    /// `ECONNRESET` …, once; `EFAULT`; with `MSG_FASTOPEN` the errors of `connect`, and
    /// `EOPNOTSUPP`; or [`Stop::Wait`].
    pub fn attempt(&mut self, sockets: &mut Sockets, now: Instant) -> Result<usize, Stop> {
        if !self.begun {
            self.begin(sockets, now)?;
            self.begun = true;
        }
        match self.go_on(sockets, now) {
            Err(Stop::Errno(_)) if self.sent > 0 => self.ended(sockets),
            Ok(_) => self.ended(sockets),
            Err(stop) => Err(stop),
        }
    }

    /// How many bytes were taken so far, for a call that is interrupted.
    pub(crate) fn sent(&self) -> usize {
        self.sent
    }

    /// A signal ended it: what was taken is sent.
    pub(crate) fn interrupted(&mut self, sockets: &mut Sockets) -> Result<usize, Errno> {
        match self.ended(sockets) {
            Err(Stop::Errno(errno)) => Err(errno),
            _ => Ok(self.sent),
        }
    }

    /// Something was taken, or there was nothing to send.
    fn ended(&mut self, sockets: &mut Sockets) -> Result<usize, Stop> {
        if let Some(Zerocopy { joins }) = self.zerocopy.take().filter(|_| self.sent > 0) {
            sockets.zerocopy_sent(self.fd, self.sent, joins)?;
        }
        if self.sent > self.sent_with_syn {
            sockets.stamp_sent(self.fd, self.stamps)?;
        }
        Ok(self.sent)
    }

    fn begin(&mut self, sockets: &mut Sockets, now: Instant) -> Result<(), Stop> {
        let socket = sockets.files.socket(self.fd)?;
        let deferred = socket.opening == Opening::Deferred;
        let at_once = self.flags & libc::MSG_DONTWAIT != 0;
        let zerocopy = self.flags & libc::MSG_ZEROCOPY != 0 && socket.options.zerocopy;
        if zerocopy && !self.source.data.is_empty() {
            self.zerocopy = Some(Zerocopy { joins: sockets.zerocopy_begin(self.fd)? });
        }
        self.deadline = if at_once { Some(now) } else { sockets.send_deadline(now, self.fd)? };
        if self.flags & libc::MSG_FASTOPEN == 0 && !deferred || sockets.files.socket(self.fd)?.repair.on {
            return Ok(());
        }
        if self.to == Destination::Unspecified {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let (sent, waiting) = sockets.send_with_syn(now, self.fd, self.to, self.source.data)?;
        (self.sent, self.sent_with_syn) = (sent, sent);
        self.handshake = Some(Waiting { deadline: self.deadline, ..waiting });
        Ok(())
    }

    fn go_on(&mut self, sockets: &mut Sockets, now: Instant) -> Result<usize, Stop> {
        if let Some(waiting) = self.handshake {
            self.handshake_over(sockets, now, waiting)?;
            self.handshake = None;
        }
        while self.sent < self.source.data.len() {
            self.write(sockets, now)?;
        }
        if self.source.faulty {
            sockets.may_send(now, self.fd, (self.sent, self.deadline))?;
            return Err(Errno::EFAULT.into());
        }
        if self.source.data.is_empty() {
            sockets.may_send(now, self.fd, (self.sent, self.deadline))?;
            sockets.repaired_queue(self.fd)?;
        }
        Ok(self.sent)
    }

    /// An error of the handshake is the call's, even if the SYN carried data; that it is under way is none then.
    fn handshake_over(&mut self, sockets: &mut Sockets, now: Instant, waiting: Waiting) -> Result<(), Stop> {
        let over = sockets.await_handshake(now, self.fd, waiting);
        if let Err(Stop::Wait(_)) = over {
            self.queue_rest(sockets, now);
        }
        if let Err(Stop::Errno(errno)) = over
            && errno != Errno::EINPROGRESS
        {
            self.sent = 0;
        }
        over
    }

    /// A call that waits for the handshake has the rest ready for it, so that it goes with the ACK (Linux's `sk_write_pending`).
    fn queue_rest(&mut self, sockets: &mut Sockets, now: Instant) {
        let Some(id) = sockets.files.socket(self.fd).ok().and_then(|socket| socket.connection()) else {
            return;
        };
        let rest = &self.source.data[self.sent..];
        if !rest.is_empty() {
            // What does not fit is written when the handshake is over.
            self.sent += sockets.stack.write_with(now, id, rest, write_flags(self.flags)).unwrap_or(0);
        }
    }

    fn write(&mut self, sockets: &mut Sockets, now: Instant) -> Result<(), Stop> {
        sockets.may_send(now, self.fd, (self.sent, self.deadline))?;
        let id = sockets.files.socket(self.fd)?.connection().ok_or(Errno::EPIPE)?;
        let rest = &self.source.data[self.sent..];
        if let Some(queue) = sockets.repaired_queue(self.fd)? {
            return match sockets.put_into(now, self.fd, id, (queue, rest))? {
                0 => wait_to_send(now, self.deadline),
                taken => {
                    self.sent += taken;
                    Ok(())
                }
            };
        }
        match sockets.stack.write_with(now, id, rest, write_flags(self.flags)) {
            Ok(taken) => {
                self.sent += taken;
                Ok(())
            }
            Err(WriteError::Blocked) => wait_to_send(now, self.deadline),
            Err(WriteError::Shutdown | WriteError::NotFound) => Err(Errno::EPIPE.into()),
            Err(WriteError::Closed(_)) => {
                sockets.notice_state(self.fd, id);
                Err(sockets.broken(self.fd, self.sent).into())
            }
        }
    }
}

pub(crate) fn wait_to_send<T>(now: Instant, deadline: Option<Instant>) -> Result<T, Stop> {
    match deadline {
        Some(deadline) if now >= deadline => Err(Errno::EAGAIN.into()),
        deadline => Err(Stop::Wait(deadline)),
    }
}

fn write_flags(flags: i32) -> WriteFlags {
    let mut write = WriteFlags::empty();
    write.set(WriteFlags::MORE, flags & libc::MSG_MORE != 0);
    write.set(WriteFlags::END_OF_RECORD, flags & libc::MSG_EOR != 0);
    write.set(WriteFlags::URGENT, flags & libc::MSG_OOB != 0);
    write
}

impl Sockets {
    /// Is the socket in a state to send? Otherwise what there is to say, or to wait for.
    fn may_send(
        &mut self,
        now: Instant,
        fd: i32,
        (sent, deadline): (usize, Option<Instant>),
    ) -> Result<(), Stop> {
        let socket = self.files.socket(fd)?;
        let id = match socket.role {
            Role::Connection(id) => id,
            Role::Fresh | Role::Listener(_) => return Err(self.broken(fd, sent).into()),
        };
        self.notice_state(fd, id);
        let socket = self.files.socket(fd)?;
        if socket.error.is_some() || socket.shut.write || socket.ended {
            return Err(self.broken(fd, sent).into());
        }
        // A Fast Open child may answer before its handshake is over; who connects may not.
        let connecting = matches!(socket.opening, Opening::Connecting | Opening::Unconnected);
        if connecting && matches!(self.state(id), State::SynSent | State::SynReceived) {
            return wait_to_send(now, deadline);
        }
        Ok(())
    }

    /// Into which queue a socket in repair puts what it sends, instead of sending it.
    ///
    /// # Errors
    /// `EINVAL` if none was chosen.
    fn repaired_queue(&self, fd: i32) -> Result<Option<Queue>, Errno> {
        let repair = &self.files.socket(fd)?.repair;
        match repair.queue {
            _ if !repair.on => Ok(None),
            Queue::None => Err(Errno::EINVAL),
            queue => Ok(Some(queue)),
        }
    }

    /// What fits is taken (Linux's `tcp_send_rcvq`, and `tcp_write_xmit` where it does not transmit).
    fn put_into(
        &mut self,
        now: Instant,
        fd: i32,
        id: ConnId,
        (queue, data): (Queue, &[u8]),
    ) -> Result<usize, Errno> {
        if queue == Queue::Receive && peer_has_finished(self.state(id)) {
            // Nobody reads behind the end.
            return Ok(data.len());
        }
        let Some(queues) = self.stack.queues(id) else { return Err(Errno::EPIPE) };
        let taken = match queue {
            Queue::Receive if queues.received + data.len() > queues.recv_buffer as usize => {
                return Err(Errno::ENOMEM);
            }
            Queue::Receive => data.len(),
            _ => (queues.send_buffer as usize).saturating_sub(queues.unacknowledged).min(data.len()),
        };
        let part = &data[..taken];
        let piece = if queue == Queue::Receive { Repair::Received(part) } else { Repair::Sent(part) };
        if queue == Queue::Send {
            self.files.socket_mut(fd)?.repair.put += taken as u64;
        }
        if taken > 0 {
            self.stack.repair(now, id, piece).map_err(|_| Errno::EPIPE)?;
        }
        Ok(taken)
    }

    /// Why nothing can be sent: the error that waits to be told, else `EPIPE`. A call that has sent something tells of that: the error waits for the
    /// next one.
    fn broken(&mut self, fd: i32, sent: usize) -> Errno {
        if sent > 0 {
            return Errno::EPIPE;
        }
        let error = self.files.socket_mut(fd).ok().and_then(|socket| socket.take_error());
        error.unwrap_or(Errno::EPIPE)
    }
}
