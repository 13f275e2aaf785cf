//! `pipe` and `splice`: bytes from a socket into a pipe and back.

pub(crate) mod end;

use crate::destination::Destination;
use crate::errno::{Errno, Stop};
use crate::files::File;
use crate::files::open::Open;
use crate::ready::Ready;
use crate::receive::Receive;
use crate::send::{Send, Source, wait_to_send};
use crate::sockets::Sockets;
use end::{PipeEnd, Shared};
use proto::Instant;
use std::sync::{Arc, Mutex};

/// Linux's: a page.
const PIPE_BUF: usize = 4096;
/// Linux's default: 16 pages.
const CAPACITY: usize = 65_536;

impl Sockets {
    /// `pipe`: the end to read from, the end to write to.
    ///
    /// # Errors
    /// `EMFILE`.
    pub fn pipe(&mut self) -> Result<(i32, i32), Errno> {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let end = |writes| PipeEnd { shared: Arc::clone(&shared), writes, nonblocking: false };
        let read = self.files.insert(File::Pipe(end(false)), false)?;
        match self.files.insert(File::Pipe(end(true)), false) {
            Ok(write) => Ok((read, write)),
            Err(errno) => {
                self.files.remove(read)?;
                Err(errno)
            }
        }
    }

    pub(crate) fn close_pipe(&mut self, end: &PipeEnd) {
        let mut shared = end.lock();
        if end.writes {
            shared.writer_gone = true
        } else {
            shared.reader_gone = true
        }
        drop(shared);
        self.stir_pipes();
    }

    pub(crate) fn pipe_readiness(&self, end: &PipeEnd) -> Ready {
        let shared = end.lock();
        let mut ready = Ready::empty();
        if end.writes {
            ready.set(Ready::OUT | Ready::WRNORM, shared.bytes.len() < CAPACITY);
            ready.set(Ready::ERR, shared.reader_gone);
        } else {
            ready.set(Ready::IN | Ready::RDNORM, !shared.bytes.is_empty());
            ready.set(Ready::HUP, shared.writer_gone);
        }
        ready
    }

    fn pipe_end(&self, fd: i32, writes: bool) -> Result<&PipeEnd, Errno> {
        match self.files.get(fd)? {
            File::Pipe(end) if end.writes == writes => Ok(end),
            File::Pipe(_) => Err(Errno::EBADF),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Returns whether this is an end of a pipe.
    pub fn is_pipe(&self, fd: i32) -> bool {
        matches!(self.files.get(fd), Ok(File::Pipe(_)))
    }

    /// Reads from a pipe.
    ///
    /// # Errors
    /// `EBADF`, `EAGAIN`; [`Stop::Wait`].
    pub fn read_pipe(&mut self, now: Instant, fd: i32, buf: &mut [u8]) -> Result<usize, Stop> {
        let end = self.pipe_end(fd, false)?;
        let mut shared = end.lock();
        if shared.bytes.is_empty() && !shared.writer_gone && !buf.is_empty() {
            return crate::sockets::wait(end.nonblocking, now, None);
        }
        let count = buf.len().min(shared.bytes.len());
        for (to, from) in buf.iter_mut().zip(shared.bytes.drain(..count)) {
            *to = from;
        }
        drop(shared);
        self.stir_pipes();
        Ok(count)
    }

    /// Writes to a pipe as much as fits. Up to one page is written completely or not at all
    /// (POSIX's `PIPE_BUF`).
    ///
    /// # Errors
    /// Returns `EBADF`, `EPIPE`, `EAGAIN`, or [`Stop::Wait`].
    pub fn write_pipe(&mut self, now: Instant, fd: i32, data: &[u8]) -> Result<usize, Stop> {
        let end = self.pipe_end(fd, true)?;
        let mut shared = end.lock();
        if shared.reader_gone {
            return Err(Errno::EPIPE.into());
        }
        let room = CAPACITY - shared.bytes.len().min(CAPACITY);
        let least = if data.len() <= PIPE_BUF { data.len() } else { 1 };
        if room < least {
            return crate::sockets::wait(end.nonblocking, now, None);
        }
        let taken = data.len().min(room);
        shared.bytes.extend(&data[..taken]);
        drop(shared);
        self.stir_pipes();
        Ok(taken)
    }

    /// Something has happened to a pipe, which has two ends.
    fn stir_pipes(&mut self) {
        let is_pipe = |(open, file): (Open, &File)| matches!(file, File::Pipe(_)).then_some(open);
        let ends: Vec<Open> = self.files.iter().filter_map(is_pipe).collect();
        ends.into_iter().for_each(|open| self.wake_epolls(open, Ready::all()));
    }

    /// What `splice` looks at before any byte (Linux's `__do_splice` and `do_splice`). Each end is a descriptor, and whether it was given
    /// an offset: neither a pipe nor a socket has one.
    ///
    /// # Errors
    /// As [`Splice::attempt`].
    pub(crate) fn allow_splice(
        &self,
        (from, from_offset): (i32, bool),
        (to, to_offset): (i32, bool),
        len: usize,
        flags: i32,
    ) -> Result<(), Errno> {
        if flags & !SPLICE_F_ALL != 0 {
            return Err(Errno::EINVAL);
        }
        let (reads, writes) = (self.files.get(from)?, self.files.get(to)?);
        let is_pipe = |file: &File| matches!(file, File::Pipe(_));
        if is_pipe(reads) && from_offset || is_pipe(writes) && to_offset {
            return Err(Errno::ESPIPE);
        }
        match (reads, writes) {
            (File::Pipe(end), _) if end.writes => Err(Errno::EBADF),
            (_, File::Pipe(end)) if !end.writes => Err(Errno::EBADF),
            (File::Pipe(one), File::Pipe(other)) if Arc::ptr_eq(&one.shared, &other.shared) => {
                Err(Errno::EINVAL)
            }
            (File::Pipe(_), File::Pipe(_)) => Ok(()),
            _ if from_offset || to_offset || isize::try_from(len).is_err() => Err(Errno::EINVAL),
            (File::Pipe(_), File::Socket(socket)) if socket.status & libc::O_APPEND != 0 => {
                Err(Errno::EINVAL)
            }
            (File::Pipe(_), File::Socket(_)) | (File::Socket(_), File::Pipe(_)) => Ok(()),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Room in a pipe, for which is waited (Linux's `wait_for_space`).
    fn room_in_pipe(&self, now: Instant, fd: i32, at_once: bool) -> Result<usize, Stop> {
        let end = self.pipe_end(fd, true)?;
        let shared = end.lock();
        match CAPACITY.saturating_sub(shared.bytes.len()) {
            _ if shared.reader_gone => Err(Errno::EPIPE.into()),
            0 => crate::sockets::wait(at_once || end.nonblocking, now, None),
            room => Ok(room),
        }
    }

    /// The first bytes in a pipe, for which is waited unless none will come.
    fn first_in_pipe(&self, now: Instant, fd: i32, len: usize, at_once: bool) -> Result<Vec<u8>, Stop> {
        let end = self.pipe_end(fd, false)?;
        let shared = end.lock();
        if shared.bytes.is_empty() && !shared.writer_gone {
            return crate::sockets::wait(at_once || end.nonblocking, now, None);
        }
        Ok(shared.bytes.iter().copied().take(len).collect())
    }

    fn drop_from_pipe(&mut self, fd: i32, count: usize) -> Result<(), Errno> {
        self.pipe_end(fd, false)?.lock().bytes.drain(..count);
        self.stir_pipes();
        Ok(())
    }

    fn splice_pipes(
        &mut self,
        now: Instant,
        from: i32,
        to: i32,
        len: usize,
        at_once: bool,
    ) -> Result<usize, Stop> {
        // One of both that does not wait is enough.
        let at_once =
            at_once || self.pipe_end(from, false)?.nonblocking || self.pipe_end(to, true)?.nonblocking;
        let queued = self.first_in_pipe(now, from, len, at_once)?;
        let room = self.room_in_pipe(now, to, at_once)?;
        let moved = self.write_pipe(now, to, &queued[..queued.len().min(room)])?;
        self.drop_from_pipe(from, moved)?;
        Ok(moved)
    }

    fn splice_to_socket(
        &mut self,
        now: Instant,
        from: i32,
        to: i32,
        len: usize,
        (at_once, more, deadline): (bool, bool, Option<Instant>),
    ) -> Result<usize, Stop> {
        let queued = self.first_in_pipe(now, from, len, at_once)?;
        if queued.is_empty() {
            return Ok(0);
        }
        let source = Source { data: &queued, faulty: false };
        let more = if more { libc::MSG_MORE } else { 0 };
        let mut send = Send::new(to, source, libc::MSG_DONTWAIT | more, Destination::None);
        match send.attempt(self, now) {
            Err(Stop::Errno(Errno::EAGAIN)) => wait_to_send(now, deadline),
            result => {
                let sent = result?;
                self.drop_from_pipe(from, sent)?;
                Ok(sent)
            }
        }
    }
}

/// One call of `splice`: from a socket or a pipe into a pipe, or from a pipe into a socket.
#[derive(Debug)]
pub struct Splice {
    from: i32,
    to: i32,
    len: usize,
    flags: i32,
    /// Where the bytes come from a socket: knows how long they are waited for.
    receive: Receive,
    /// Where they go to a socket: until when it is waited for room.
    deadline: Option<Option<Instant>>,
}

impl Splice {
    /// A call not yet begun.
    pub fn new(from: i32, to: i32, len: usize, flags: i32) -> Splice {
        Splice { from, to, len, flags, receive: Receive::before_urgent(from, 0), deadline: None }
    }

    /// Makes an attempt. Returns the number of bytes moved.
    ///
    /// # Errors
    /// Returns `EBADF`; `EINVAL` if not exactly one of them is a pipe, or the flags are unknown;
    /// errors of reading and writing; or [`Stop::Wait`].
    pub fn attempt(&mut self, sockets: &mut Sockets, now: Instant) -> Result<usize, Stop> {
        let Splice { from, to, len, flags, .. } = *self;
        if len == 0 {
            return Ok(0);
        }
        sockets.allow_splice((from, false), (to, false), len, flags)?;
        let at_once = flags & SPLICE_F_NONBLOCK != 0;
        match (sockets.is_pipe(from), sockets.is_pipe(to)) {
            (true, true) => sockets.splice_pipes(now, from, to, len, at_once),
            (false, _) => self.receive_into_pipe(sockets, now, at_once),
            (true, false) => {
                let deadline = match self.deadline {
                    Some(deadline) => deadline,
                    None => *self.deadline.insert(sockets.send_deadline(now, to)?),
                };
                let more = flags & SPLICE_F_MORE != 0;
                sockets.splice_to_socket(now, from, to, len, (at_once, more, deadline))
            }
        }
    }

    /// Whether, and how long, it waits for bytes is the socket's affair (Linux's `tcp_splice_read`): `SPLICE_F_NONBLOCK` speaks of the pipe.
    fn receive_into_pipe(
        &mut self,
        sockets: &mut Sockets,
        now: Instant,
        at_once: bool,
    ) -> Result<usize, Stop> {
        let room = sockets.room_in_pipe(now, self.to, at_once)?;
        let mut buf = vec![0; self.len.min(room)];
        let got = self.receive.attempt(sockets, now, &mut buf)?;
        sockets.write_pipe(now, self.to, &buf[..got])
    }
}

/// Linux's `SPLICE_F_NONBLOCK`.
const SPLICE_F_NONBLOCK: i32 = 2;
/// Linux's `SPLICE_F_MORE`: as `MSG_MORE` where the bytes go to a socket.
const SPLICE_F_MORE: i32 = 4;
/// Linux's `SPLICE_F_ALL`: those two, and `SPLICE_F_MOVE` and `SPLICE_F_GIFT`, which ask for no copies.
const SPLICE_F_ALL: i32 = 15;
