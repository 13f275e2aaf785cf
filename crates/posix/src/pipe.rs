//! `pipe` and `splice`: bytes from a socket into a pipe and back.

use crate::errno::{Errno, Stop};
use crate::files::{File, Open};
use crate::readiness::Ready;
use crate::receive::Receive;
use crate::send::{Destination, Send, Source};
use crate::sockets::Sockets;
use proto::Instant;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Linux's default: 16 pages.
const CAPACITY: usize = 65_536;

/// One end of a pipe; the other end shares the bytes.
#[derive(Debug)]
pub(crate) struct PipeEnd {
    shared: Arc<Mutex<Shared>>,
    writes: bool,
    pub(crate) nonblocking: bool,
}

#[derive(Debug, Default)]
struct Shared {
    bytes: VecDeque<u8>,
    reader_gone: bool,
    writer_gone: bool,
}

impl PipeEnd {
    /// `O_RDONLY` or `O_WRONLY`.
    pub(crate) fn mode(&self) -> i32 {
        if self.writes { libc::O_WRONLY } else { libc::O_RDONLY }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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

    /// Is this a pipe's end?
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

    /// Writes to a pipe what fits.
    ///
    /// # Errors
    /// `EBADF`, `EPIPE`, `EAGAIN`; [`Stop::Wait`].
    pub fn write_pipe(&mut self, now: Instant, fd: i32, data: &[u8]) -> Result<usize, Stop> {
        let end = self.pipe_end(fd, true)?;
        let mut shared = end.lock();
        if shared.reader_gone {
            return Err(Errno::EPIPE.into());
        }
        let room = CAPACITY - shared.bytes.len().min(CAPACITY);
        if room == 0 && !data.is_empty() {
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

    /// `splice`: from a socket into a pipe, or from a pipe into a socket.
    ///
    /// # Errors
    /// `EINVAL` if neither is a pipe, `ESPIPE` for an offset; those of reading and writing; [`Stop::Wait`].
    pub fn splice(
        &mut self,
        now: Instant,
        from: i32,
        to: i32,
        len: usize,
        flags: i32,
    ) -> Result<usize, Stop> {
        let mut buf = vec![0; len.min(CAPACITY)];
        let nonblocking = flags & SPLICE_F_NONBLOCK != 0;
        if self.is_pipe(to) {
            let room = CAPACITY - self.pipe_end(to, true)?.lock().bytes.len().min(CAPACITY);
            buf.truncate(room);
            if room == 0 {
                return crate::sockets::wait(nonblocking, now, None);
            }
            let flags = if nonblocking { libc::MSG_DONTWAIT } else { 0 };
            let got = Receive::before_urgent(from, flags).attempt(self, now, &mut buf)?;
            return self.write_pipe(now, to, &buf[..got]);
        }
        let queued: Vec<u8> =
            self.pipe_end(from, false)?.lock().bytes.iter().copied().take(buf.len()).collect();
        if queued.is_empty() {
            return self.read_pipe(now, from, &mut buf);
        }
        let source = Source { data: &queued, faulty: false };
        let more = if flags & SPLICE_F_MORE != 0 { libc::MSG_MORE } else { 0 };
        let sent = Send::new(to, source, libc::MSG_DONTWAIT | more, Destination::None).attempt(self, now)?;
        self.pipe_end(from, false)?.lock().bytes.drain(..sent);
        self.stir_pipes();
        Ok(sent)
    }
}

/// Linux's `SPLICE_F_NONBLOCK`.
const SPLICE_F_NONBLOCK: i32 = 2;
/// Linux's `SPLICE_F_MORE`: as `MSG_MORE` where the bytes go to a socket.
const SPLICE_F_MORE: i32 = 4;
