//! System calls: each becomes an attempt that is made until it has a result. Sockets and descriptors are here, the rest is in `calls/`.

mod messages;
mod options;
mod readiness;
mod transfer;

use crate::ast::{Call, Expr};
use crate::run::Runner;
use crate::run::constants::constant;
use crate::run::files::OpenFile;
use crate::run::flow::Flow;
use crate::run::values::{int, is_null, number, only, size};
use crate::run::world::{Answer, Attempt, Told};
use core::net::SocketAddr;
use core::time::Duration;
use posix::{Accept, Close, Connect, Destination, Errno, Sockets, Splice};
use proto::Instant;

/// How many bytes `[{..., 100}, {..., 20}]` names.
fn total(vector: &Expr) -> Result<Expr, String> {
    let Expr::List(entries) = vector else {
        return Err(format!("`{vector}`: buffers in brackets are expected"));
    };
    let mut sum = 0_usize;
    for entry in entries {
        match entry {
            Expr::Tuple(pair) if pair.len() == 2 && pair[0] == Expr::Ellipsis => {
                sum = sum.saturating_add(size(&pair[1])?);
            }
            other => return Err(format!("`{other}`: a buffer is `{{..., length}}`")),
        }
    }
    Ok(Expr::Int(count(sum)))
}

/// An attempt that never waits.
fn at_once(mut call: impl FnMut(&mut Sockets, Instant) -> Result<Answer, Errno> + 'static) -> Attempt {
    Box::new(move |sockets, now| Ok(call(sockets, now)?))
}

/// The address of an argument is read once the socket is found (Linux's `move_addr_to_kernel`, `copy_from_sockptr`).
fn bad_address(fd: i32) -> Attempt {
    at_once(move |sockets, _| sockets.local_name(fd).and(Err(Errno::EFAULT)))
}

fn zero(result: Result<(), Errno>) -> Result<Answer, Errno> {
    result.map(|()| Answer::default())
}

fn value(value: impl Into<i64>) -> Answer {
    Answer { value: value.into(), ..Answer::default() }
}

fn descriptor(new: i32) -> Answer {
    Answer { descriptor: Some(new), ..value(new) }
}

/// How many.
fn count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Runner<'_> {
    /// What to do for a call. An error is a sentence about the script.
    pub(super) fn attempt(&mut self, call: &Call) -> Result<Attempt, String> {
        if let Some(errno) = &call.errno {
            errno_named(errno)?;
            if number(&call.result) != Ok(-1) {
                return Err(format!("`{} {errno}`: what fails returns -1", call.result));
            }
        }
        match (call.name.as_str(), call.arguments.as_slice()) {
            ("socket", [domain, kind, protocol]) => self.socket(domain, kind, protocol),
            ("bind", [fd, address, Expr::Ellipsis]) => self.bind(fd, address),
            ("listen", [fd, backlog]) => {
                let (fd, backlog) = (self.fd(fd)?, int(backlog)?);
                Ok(at_once(move |sockets, now| zero(sockets.listen(now, fd, backlog))))
            }
            ("accept", [fd, Expr::Ellipsis, Expr::Ellipsis]) => self.accept(fd, 0),
            ("accept4", [fd, Expr::Ellipsis, Expr::Ellipsis, flags]) => self.accept(fd, int(flags)?),
            ("connect", [fd, address, Expr::Ellipsis]) => self.connect(fd, address),
            ("shutdown", [fd, how]) => {
                let (fd, how) = (self.fd(fd)?, int(how)?);
                Ok(at_once(move |sockets, now| zero(sockets.shutdown(now, fd, how))))
            }
            ("close", [fd]) => {
                if self.open_files.contains_key(&number(fd)?) {
                    return Ok(at_once(|_, _| Ok(Answer::default())));
                }
                let mut close = Close::new(self.fd(fd)?);
                Ok(Box::new(move |sockets, now| close.attempt(sockets, now).map(|()| Answer::default())))
            }
            ("fcntl", [fd, command]) => self.fcntl(fd, command, None),
            ("fcntl", [fd, command, argument]) => self.fcntl(fd, command, Some(argument)),
            ("ioctl", [fd, request]) => self.ioctl(fd, request, None),
            ("ioctl", [fd, request, argument]) => self.ioctl(fd, request, Some(argument)),
            ("open", [Expr::Text(name), flags]) => {
                let file = self.open(name, int(flags)?);
                Ok(at_once(move |_, _| {
                    file.clone().map(|file| Answer { file: Some(file), ..Answer::default() })
                }))
            }
            ("pipe", [ends]) => pipe(ends),
            ("splice", [from, off_in, to, off_out, len, flags]) => {
                if !is_null(off_in) || !is_null(off_out) {
                    return Err("the offsets must be NULL".into());
                }
                let (from, to, len, flags) = (self.fd(from)?, self.fd(to)?, size(len)?, int(flags)?);
                let mut splice = Splice::new(from, to, len, flags);
                Ok(Box::new(move |sockets, now| Ok(value(count(splice.attempt(sockets, now)?)))))
            }
            _ => match self
                .transfer(call)
                .or_else(|| self.message_call(call))
                .or_else(|| self.option_call(call))
                .or_else(|| self.readiness_call(call))
            {
                Some(attempt) => attempt,
                None => Err("no such system call with so many arguments is known here".into()),
            },
        }
    }

    /// Is it understood? What it would open is taken for open by the calls behind it.
    pub(super) fn check_call(&mut self, call: &Call) -> Result<(), String> {
        self.attempt(call).map(drop)?;
        if call.result == Expr::Ellipsis {
            return Ok(());
        }
        let result = int(&call.result)?;
        if call.name == "open" && result >= 0 {
            self.open_files.insert(result.into(), OpenFile::default());
        }
        Ok(())
    }

    fn socket(&mut self, domain: &Expr, kind: &Expr, protocol: &Expr) -> Result<Attempt, String> {
        let v4 = self.setup.of_calls(self.setup.local).is_ipv4();
        let usual = if v4 { libc::AF_INET } else { libc::AF_INET6 };
        let domain = if *domain == Expr::Ellipsis { usual } else { int(domain)? };
        let (kind, protocol) = (int(kind)?, int(protocol)?);
        Ok(at_once(move |sockets, _| sockets.socket(domain, kind, protocol).map(descriptor)))
    }

    fn bind(&mut self, fd: &Expr, address: &Expr) -> Result<Attempt, String> {
        let fd = self.fd(fd)?;
        let usual = SocketAddr::new(self.setup.local, self.setup.bind_port);
        let address = match self.address(address, usual)? {
            Destination::Address(address) => address,
            Destination::None => return Ok(bad_address(fd)),
            Destination::Unspecified | Destination::Unusable(_) => {
                return Ok(at_once(|_, _| Err(Errno::EAFNOSUPPORT)));
            }
        };
        Ok(at_once(move |sockets, _| zero(sockets.bind(fd, address))))
    }

    fn accept(&mut self, fd: &Expr, flags: i32) -> Result<Attempt, String> {
        let fd = self.fd(fd)?;
        let mut accept = Accept::new(fd, flags);
        Ok(Box::new(move |sockets, now| {
            let (new, peer) = accept.attempt(sockets, now)?;
            Ok(Answer { peer: Some(peer), ..descriptor(new) })
        }))
    }

    fn connect(&mut self, fd: &Expr, address: &Expr) -> Result<Attempt, String> {
        let fd = self.fd(fd)?;
        let usual = SocketAddr::new(self.setup.remote, self.setup.connect_port);
        let peer = match self.address(address, usual)? {
            Destination::Address(peer) => Some(peer),
            Destination::None => return Ok(bad_address(fd)),
            Destination::Unspecified | Destination::Unusable(_) => None,
        };
        self.connects_to(fd, peer);
        let mut connect = Connect::new(fd, peer);
        Ok(Box::new(move |sockets, now| connect.attempt(sockets, now).map(|()| Answer::default())))
    }

    /// Packets of this socket go there from now on.
    fn connects_to(&mut self, fd: i32, peer: Option<SocketAddr>) {
        if let Some(flow) = self.flows.iter_mut().find(|flow| flow.fd == Some(fd) && !flow.listening) {
            flow.connects = true;
            let canonical = |peer: SocketAddr| SocketAddr::new(peer.ip().to_canonical(), peer.port());
            flow.remote = peer.map_or(flow.remote, canonical);
        }
    }

    fn fcntl(&mut self, fd: &Expr, command: &Expr, argument: Option<&Expr>) -> Result<Attempt, String> {
        let (fd, command) = (self.fd(fd)?, int(command)?);
        let argument = argument.map(int).transpose()?.unwrap_or(0);
        let known = [
            libc::F_GETFL,
            libc::F_SETFL,
            libc::F_GETFD,
            libc::F_SETFD,
            libc::F_DUPFD,
            libc::F_DUPFD_CLOEXEC,
            libc::F_GETOWN,
        ];
        if !known.contains(&command) {
            return Err(format!("command {command} is not understood here"));
        }
        Ok(at_once(move |sockets, _| match command {
            libc::F_GETFL => sockets.flags(fd).map(value),
            libc::F_SETFL => zero(sockets.set_flags(fd, argument)),
            libc::F_GETFD => {
                sockets.closes_on_exec(fd).map(|closes| value(i32::from(closes) * libc::FD_CLOEXEC))
            }
            libc::F_SETFD => zero(sockets.set_close_on_exec(fd, argument & libc::FD_CLOEXEC != 0)),
            // Nobody is told by signals.
            libc::F_GETOWN => sockets.flags(fd).map(|_| value(0)),
            _ => sockets.duplicate(fd, argument, command == libc::F_DUPFD_CLOEXEC).map(descriptor),
        }))
    }

    fn ioctl(&mut self, fd: &Expr, request: &Expr, argument: Option<&Expr>) -> Result<Attempt, String> {
        let fd = self.fd(fd)?;
        let request = number(request)?.cast_unsigned();
        let expected = match argument {
            None | Some(Expr::Ellipsis) => None,
            Some(argument) => Some(i64::from(int(only(argument)?)?)),
        };
        Ok(at_once(move |sockets, _| {
            let seen = i64::from(sockets.ioctl(fd, request)?);
            let told = expected.map(|expected| Told { what: "value".into(), expected, seen });
            Ok(Answer { told: told.into_iter().collect(), ..Answer::default() })
        }))
    }

    /// Is this what the script says the call returns? A descriptor is, whatever its number; an error is, whatever its name, where none is
    /// given.
    pub(super) fn is_expected(&self, call: &Call, result: &Result<Answer, Errno>) -> Result<bool, String> {
        let errno = call.errno.as_deref().map(errno_named).transpose()?;
        if call.result == Expr::Ellipsis {
            return Ok(true);
        }
        let expected = i64::from(int(&call.result)?);
        Ok(match result {
            Err(seen) => expected == -1 && errno.is_none_or(|errno| errno == seen.0),
            Ok(_) if errno.is_some() => false,
            Ok(answer) if answer.is_descriptor() => expected >= 0,
            Ok(answer) => expected == answer.value,
        })
    }

    /// Remembers what later events are about.
    pub(super) fn learn(&mut self, call: &Call, answer: Option<Answer>) {
        let Some(answer) = answer else { return };
        let first = call.arguments.first().and_then(|fd| number(fd).ok());
        let live = answer.descriptor.unwrap_or(-1);
        if answer.descriptor.is_some()
            && let Ok(script) = number(&call.result)
        {
            self.fds.insert(script, live);
        }
        if let Some(file) = answer.file
            && let Ok(script) = number(&call.result)
        {
            self.open_files.insert(script, file);
        }
        match call.name.as_str() {
            "socket" => {
                let local = SocketAddr::new(self.setup.local, self.setup.bind_port);
                let remote = SocketAddr::new(self.setup.remote, self.setup.connect_port);
                self.under_test = self.flows.len();
                self.flows.push(Flow::new(Some(live), local, remote));
            }
            "accept" | "accept4" => self.accepted(live, answer.peer),
            "listen" => self.listens(first),
            "pipe" => self.learn_pipe(call, answer.ends),
            "sendfile" => self.learn_sent(call, answer.value),
            "close" => {
                if let Some(script) = first {
                    self.open_files.remove(&script);
                }
                if let Some(live) = first.and_then(|script| self.fds.remove(&script))
                    && !self.fds.values().any(|other| *other == live)
                {
                    self.flows
                        .iter_mut()
                        .filter(|flow| flow.fd == Some(live))
                        .for_each(|flow| flow.fd = None);
                }
            }
            _ => {}
        }
    }

    fn accepted(&mut self, live: i32, peer: Option<SocketAddr>) {
        let Some(peer) = peer else { return };
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        if let Some(flow) = self.flows.iter_mut().rfind(|flow| flow.fd.is_none() && flow.remote == peer) {
            flow.fd = Some(live);
        }
    }

    fn listens(&mut self, script: Option<i64>) {
        let Some(live) = script.and_then(|script| self.fds.get(&script)).copied() else { return };
        let port = self.world.sockets.local_name(live).map_or(self.setup.bind_port, |name| name.port());
        if let Some(flow) = self.flows.iter_mut().find(|flow| flow.fd == Some(live)) {
            flow.listening = true;
            flow.local.set_port(port);
        }
    }

    /// Without an offset of its own `sendfile` reads on in the file.
    fn learn_sent(&mut self, call: &Call, sent: i64) {
        if let [_, file, offset, _] = call.arguments.as_slice()
            && is_null(offset)
            && let Some(opened) = number(file).ok().and_then(|file| self.open_files.get_mut(&file))
        {
            opened.read(usize::try_from(sent).unwrap_or(0));
        }
    }

    fn learn_pipe(&mut self, call: &Call, ends: Option<(i32, i32)>) {
        if let Some(Expr::List(names)) = call.arguments.first()
            && let [read, write] = names.as_slice()
            && let (Ok(read), Ok(write)) = (number(read), number(write))
            && let Some((reads, writes)) = ends
        {
            self.fds.insert(read, reads);
            self.fds.insert(write, writes);
        }
    }

    /// Sockets that connect have a name from then on, by which their packets are told from those of others.
    pub(super) fn learn_local_ends(&mut self) {
        for flow in self.flows.iter_mut().filter(|flow| flow.connects) {
            let name = flow.fd.and_then(|fd| self.world.sockets.local_name(fd).ok());
            if let Some(name) = name.filter(|name| name.port() != 0) {
                flow.bound = Some(SocketAddr::new(name.ip().to_canonical(), name.port()));
            }
        }
    }
}

/// The number of an error's name.
pub(super) fn errno_named(name: &str) -> Result<i32, String> {
    let known = name.starts_with('E').then(|| constant(name)).flatten();
    known
        .and_then(|errno| i32::try_from(errno).ok())
        .ok_or_else(|| format!("`{name}` is the name of no error"))
}

fn pipe(ends: &Expr) -> Result<Attempt, String> {
    match ends {
        Expr::List(list) if list.len() == 2 => {
            Ok(at_once(|sockets, _| Ok(Answer { ends: Some(sockets.pipe()?), ..Answer::default() })))
        }
        other => Err(format!("`{other}`: two descriptors in brackets are expected")),
    }
}

/// Milliseconds of `poll`: negative is for ever.
fn deadline(now: Instant, timeout_ms: i32) -> Option<Instant> {
    u64::try_from(timeout_ms).ok().map(|ms| now + Duration::from_millis(ms))
}
