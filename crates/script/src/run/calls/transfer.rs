//! Calls that send and receive. What is sent is zeros, as many as the script says.

use super::messages::{Expected, compare};
use super::{count, value};
use crate::ast::{Call, Expr};
use crate::run::Runner;
use crate::run::values::{field, fields, int, is_null, number, size};
use crate::run::world::Attempt;
use core::net::SocketAddr;
use posix::{Destination, Receive, Send, Source};

/// What can be sent in one call.
static ZEROS: [u8; 1 << 24] = [0; 1 << 24];

impl Runner<'_> {
    pub(super) fn transfer(&mut self, call: &Call) -> Option<Result<Attempt, String>> {
        let none = &Expr::Word("NULL".into());
        let zero = &Expr::Int(0);
        Some(match (call.name.as_str(), call.arguments.as_slice()) {
            ("write", [fd, data, len]) => self.send(fd, (data, len), zero, none),
            ("send", [fd, data, len, flags]) => self.send(fd, (data, len), flags, none),
            ("sendto", [fd, data, len, flags, to, _]) => self.send(fd, (data, len), flags, to),
            ("writev", [fd, vector, _]) => {
                total(vector).and_then(|len| self.send(fd, (&Expr::Ellipsis, &len), zero, none))
            }
            ("sendmsg", [fd, message, flags]) => self.sendmsg(fd, message, flags),
            ("read", [fd, data, len]) => self.receive(fd, (data, len), zero, Vec::new()),
            ("recv", [fd, data, len, flags]) => self.receive(fd, (data, len), flags, Vec::new()),
            ("recvfrom", [fd, data, len, flags, _, _]) => self.receive(fd, (data, len), flags, Vec::new()),
            ("readv", [fd, vector, _]) => {
                total(vector).and_then(|len| self.receive(fd, (&Expr::Ellipsis, &len), zero, Vec::new()))
            }
            ("sendfile", [to, file, _, len]) => self.sendfile(to, file, len),
            _ => return None,
        })
    }

    fn send(
        &mut self,
        fd: &Expr,
        (data, len): (&Expr, &Expr),
        flags: &Expr,
        to: &Expr,
    ) -> Result<Attempt, String> {
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

    fn sendmsg(&mut self, fd: &Expr, message: &Expr, flags: &Expr) -> Result<Attempt, String> {
        let fields = fields(message)?;
        let len = total(field(fields, "msg_iov").ok_or("msg_iov is missing")?)?;
        let to = field(fields, "msg_name").unwrap_or(&Expr::Ellipsis);
        self.send(fd, (&Expr::Ellipsis, &len), flags, to)
    }

    /// Files hold zeros, as many as anybody asks for: nothing of the system is read.
    fn sendfile(&mut self, to: &Expr, file: &Expr, len: &Expr) -> Result<Attempt, String> {
        if !self.zero_files.contains(&number(file)?) {
            return Err(format!("`{file}` was not opened"));
        }
        self.send(to, (&Expr::Ellipsis, len), &Expr::Int(0), &Expr::Word("NULL".into()))
    }

    /// `expected`: what the call must tell beside the bytes, if that is asked.
    pub(super) fn receive(
        &mut self,
        fd: &Expr,
        (data, len): (&Expr, &Expr),
        flags: &Expr,
        expected: Vec<Expected>,
    ) -> Result<Attempt, String> {
        let (fd, flags) = (self.fd(fd)?, int(flags)?);
        if is_null(data) && flags & libc::MSG_TRUNC == 0 {
            return Err("receiving into NULL is not understood here".into());
        }
        let mut buf = vec![0; size(len)?.min(ZEROS.len())];
        let mut receive = Receive::new(fd, flags);
        let (peeked, tolerance) = (flags & libc::MSG_PEEK != 0, self.setup.tolerance_usecs);
        Ok(Box::new(move |sockets, now| {
            let got = if sockets.is_pipe(fd) {
                sockets.read_pipe(now, fd, &mut buf)?
            } else {
                receive.attempt(sockets, now, &mut buf)?
            };
            let mut answer = value(count(got));
            if !expected.is_empty() {
                answer.told = compare(&expected, &sockets.ancillary(fd, got, peeked)?, tolerance);
            }
            Ok(answer)
        }))
    }
}

/// How many bytes `[{..., 100}, {..., 20}]` names.
pub(super) fn total(vector: &Expr) -> Result<Expr, String> {
    let Expr::List(entries) = vector else {
        return Err(format!("`{vector}`: buffers in brackets are expected"));
    };
    let mut sum = 0_usize;
    for entry in entries {
        match entry {
            Expr::Tuple(pair) if pair.len() == 2 => sum = sum.saturating_add(size(&pair[1])?),
            other => return Err(format!("`{other}`: a buffer is `{{..., length}}`")),
        }
    }
    Ok(Expr::Int(count(sum)))
}
