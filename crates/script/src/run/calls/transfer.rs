//! Calls that send and receive. What is sent is zeros, as many as the script says.

use super::messages::Wanted;
use super::{at_once, count, total, value};
use crate::ast::{Call, Expr};
use crate::run::Runner;
use crate::run::values::{int, is_null, number, only, size};
use crate::run::world::Attempt;
use core::net::SocketAddr;
use posix::{Destination, Errno, Receive, Send, Source};

/// What can be sent in one call.
static ZEROS: [u8; 1 << 24] = [0; 1 << 24];

impl Runner<'_> {
    pub(super) fn transfer(&mut self, call: &Call) -> Option<Result<Attempt, String>> {
        let none = &Expr::Word("NULL".into());
        let zero = &Expr::Int(0);
        Some(match (call.name.as_str(), call.arguments.as_slice()) {
            ("write", [fd, data, len]) => self.send(fd, (data, len), zero, none),
            ("send", [fd, data, len, flags]) => self.send(fd, (data, len), flags, none),
            ("sendto", [fd, data, len, flags, to, Expr::Ellipsis]) => self.send(fd, (data, len), flags, to),
            ("writev" | "readv", [fd, vector, number]) if is_null(vector) => self.null_vector(fd, number),
            ("writev", [fd, vector, number]) => {
                vectors(vector, number).and_then(|len| self.send(fd, (&Expr::Ellipsis, &len), zero, none))
            }
            ("read", [fd, data, len]) => self.receive(fd, (data, len), zero, None),
            ("recv", [fd, data, len, flags]) => self.receive(fd, (data, len), flags, None),
            ("recvfrom", [fd, data, len, flags, Expr::Ellipsis, Expr::Ellipsis]) => {
                self.receive(fd, (data, len), flags, None)
            }
            ("readv", [fd, vector, number]) => {
                vectors(vector, number).and_then(|len| self.receive(fd, (&Expr::Ellipsis, &len), zero, None))
            }
            ("sendfile", [to, file, offset, len]) => self.sendfile(to, file, offset, len),
            _ => return None,
        })
    }

    pub(super) fn send(
        &mut self,
        fd: &Expr,
        (data, len): (&Expr, &Expr),
        flags: &Expr,
        to: &Expr,
    ) -> Result<Attempt, String> {
        is_buffer(data)?;
        if self.open_files.contains_key(&number(fd)?) {
            return Err("files are only read here".into());
        }
        let (fd, len, flags) = (self.fd(fd)?, size(len)?, int(flags)?);
        let to = self.address(to, SocketAddr::new(self.setup.remote, self.setup.connect_port))?;
        if flags & libc::MSG_FASTOPEN != 0 {
            let peer = match to {
                Destination::Address(peer) => Some(peer),
                _ => None,
            };
            self.connects_to(fd, peer);
        }
        let zeros = ZEROS.get(..len).ok_or("at most 16 MiB can be sent in one call")?;
        let faulty = is_null(data) && len > 0;
        let source = Source { data: if faulty { &[] } else { zeros }, faulty };
        let mut send = Send::new(fd, source, flags, to);
        Ok(Box::new(move |sockets, now| {
            let sent = if sockets.is_pipe(fd) {
                sockets.write_pipe(now, fd, zeros)?
            } else {
                send.attempt(sockets, now)?
            };
            Ok(value(count(sent)))
        }))
    }

    /// Where the buffers are is read before anything else (Linux's `import_iovec`).
    fn null_vector(&self, fd: &Expr, number: &Expr) -> Result<Attempt, String> {
        let (fd, number) = (self.fd(fd)?, size(number)?);
        Ok(at_once(move |sockets, _| match sockets.flags(fd) {
            Ok(_) if number > 0 => Err(Errno::EFAULT),
            open => open.map(|_| value(0)),
        }))
    }

    /// From where `[offset]` says, or else from where the file was read to: that goes on by what was sent, which
    /// [`learn`](Self::learn) sees.
    fn sendfile(&mut self, to: &Expr, file: &Expr, offset: &Expr, len: &Expr) -> Result<Attempt, String> {
        let most = size(len)?;
        let Some(opened) = self.open_files.get(&number(file)?) else {
            return Err(format!("`{file}` was not opened"));
        };
        let len = match offset {
            null if is_null(null) => opened.ahead(most),
            offset => opened.has(size(only(offset)?)? as u64, most),
        };
        let len = Expr::Int(count(len));
        self.send(to, (&Expr::Ellipsis, &len), &Expr::Int(0), &Expr::Word("NULL".into()))
    }

    /// `expected`: what the call must tell beside the bytes, if that is asked.
    pub(super) fn receive(
        &mut self,
        fd: &Expr,
        (data, len): (&Expr, &Expr),
        flags: &Expr,
        expected: Option<Wanted>,
    ) -> Result<Attempt, String> {
        is_buffer(data)?;
        let (script, flags) = (number(fd)?, int(flags)?);
        let fd = self.fd(fd)?;
        let mut buf = vec![0; size(len)?.min(ZEROS.len())];
        let faulty = is_null(data) && flags & libc::MSG_TRUNC == 0 && !buf.is_empty();
        if let Some(file) = self.open_files.get_mut(&script) {
            let got = file.read(if faulty { 0 } else { buf.len() });
            return Ok(at_once(move |_, _| if faulty { Err(Errno::EFAULT) } else { Ok(value(count(got))) }));
        }
        if faulty {
            // That there is something for a bad place is an error; that there is nothing comes first.
            let mut receive = Receive::new(fd, flags | libc::MSG_PEEK);
            return Ok(Box::new(move |sockets, now| match receive.attempt(sockets, now, &mut [0])? {
                0 => Ok(value(0)),
                _ => Err(Errno::EFAULT.into()),
            }));
        }
        let mut receive = Receive::new(fd, flags);
        let peeked = flags & libc::MSG_PEEK != 0;
        Ok(Box::new(move |sockets, now| {
            let got = if sockets.is_pipe(fd) {
                sockets.read_pipe(now, fd, &mut buf)?
            } else {
                receive.attempt(sockets, now, &mut buf)?
            };
            let mut answer = value(count(got));
            if let Some(expected) = &expected {
                answer.told = expected.compare(flags & libc::MSG_OOB, &sockets.ancillary(fd, got, peeked)?);
            }
            Ok(answer)
        }))
    }
}

/// A buffer holds zeros, or is at no good address: scripts cannot say what is in it.
fn is_buffer(data: &Expr) -> Result<(), String> {
    match data {
        Expr::Ellipsis => Ok(()),
        null if is_null(null) => Ok(()),
        other => Err(format!("`{other}`: a buffer is `...` or NULL")),
    }
}

/// How many bytes the buffers of `writev` and `readv` are, of which there are so many.
fn vectors(vector: &Expr, number: &Expr) -> Result<Expr, String> {
    let len = total(vector)?;
    match vector {
        Expr::List(entries) if size(number)? != entries.len() => {
            Err(format!("{number} buffers are said, and {} are there", entries.len()))
        }
        _ => Ok(len),
    }
}
