//! System calls: each becomes an attempt that is made until it has a result. Sockets and descriptors are here, the rest is in `calls/`.

mod messages;
mod options;
mod readiness;
mod transfer;

use crate::ast::{Call, Expr};
use crate::run::Runner;
use crate::run::flow::Flow;
use crate::run::values::{int, is_null, number, only, size};
use crate::run::world::{Answer, Attempt, Told};
use core::net::SocketAddr;
use core::time::Duration;
use posix::{Accept, Close, Connect, Destination, Errno, Sockets};
use proto::Instant;

/// An attempt that never waits.
fn at_once(mut call: impl FnMut(&mut Sockets, Instant) -> Result<Answer, Errno> + 'static) -> Attempt {
    Box::new(move |sockets, now| Ok(call(sockets, now)?))
}

fn zero(result: Result<(), Errno>) -> Result<Answer, Errno> {
    result.map(|()| Answer::default())
}

fn value(value: impl Into<i64>) -> Answer {
    Answer { value: value.into(), ..Answer::default() }
}

/// How many.
fn count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Runner<'_> {
    /// What to do for a call. An error is a sentence about the script.
    pub(super) fn attempt(&mut self, call: &Call) -> Result<Attempt, String> {
        match (call.name.as_str(), call.arguments.as_slice()) {
            ("socket", [domain, kind, protocol]) => self.socket(domain, kind, protocol),
            ("bind", [fd, address, _]) => self.bind(fd, address),
            ("listen", [fd, backlog]) => {
                let (fd, backlog) = (self.fd(fd)?, int(backlog)?);
                Ok(at_once(move |sockets, now| zero(sockets.listen(now, fd, backlog))))
            }
            ("accept", [fd, _, _]) => self.accept(fd, 0),
            ("accept4", [fd, _, _, flags]) => self.accept(fd, int(flags)?),
            ("connect", [fd, address, _]) => self.connect(fd, address),
            ("shutdown", [fd, how]) => {
                let (fd, how) = (self.fd(fd)?, int(how)?);
                Ok(at_once(move |sockets, now| zero(sockets.shutdown(now, fd, how))))
            }
            ("close", [fd]) => {
                if self.zero_files.contains(&number(fd)?) {
                    return Ok(at_once(|_, _| Ok(Answer::default())));
                }
                let mut close = Close::new(self.fd(fd)?);
                Ok(Box::new(move |sockets, now| close.attempt(sockets, now).map(|()| Answer::default())))
            }
            ("fcntl", [fd, command, rest @ ..]) => self.fcntl(fd, command, rest.first()),
            ("ioctl", [fd, request, argument]) => self.ioctl(fd, request, argument),
            ("open", [Expr::Text(_), _]) => Ok(at_once(|_, _| Ok(Answer::default()))),
            ("pipe", [ends]) => pipe(ends),
            ("splice", [from, off_in, to, off_out, len, flags]) => {
                if !is_null(off_in) || !is_null(off_out) {
                    return Err("the offsets must be NULL".into());
                }
                let (from, to, len, flags) = (self.fd(from)?, self.fd(to)?, size(len)?, int(flags)?);
                Ok(Box::new(move |sockets, now| Ok(value(count(sockets.splice(now, from, to, len, flags)?)))))
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

    fn socket(&mut self, domain: &Expr, kind: &Expr, protocol: &Expr) -> Result<Attempt, String> {
        let usual = if self.setup.local.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let domain = if *domain == Expr::Ellipsis { usual } else { int(domain)? };
        let (kind, protocol) = (int(kind)?, int(protocol)?);
        Ok(at_once(move |sockets, _| sockets.socket(domain, kind, protocol).map(value)))
    }

    fn bind(&mut self, fd: &Expr, address: &Expr) -> Result<Attempt, String> {
        let fd = self.fd(fd)?;
        let usual = SocketAddr::new(self.setup.local, self.setup.bind_port);
        let Destination::Address(address) = self.address(address, usual)? else {
            return Ok(at_once(|_, _| Err(Errno::EAFNOSUPPORT)));
        };
        Ok(at_once(move |sockets, _| zero(sockets.bind(fd, address))))
    }

    fn accept(&mut self, fd: &Expr, flags: i32) -> Result<Attempt, String> {
        let fd = self.fd(fd)?;
        let mut accept = Accept::new(fd, flags);
        Ok(Box::new(move |sockets, now| {
            let (new, peer) = accept.attempt(sockets, now)?;
            Ok(Answer { peer: Some(peer), ..value(new) })
        }))
    }

    fn connect(&mut self, fd: &Expr, address: &Expr) -> Result<Attempt, String> {
        let fd = self.fd(fd)?;
        let usual = SocketAddr::new(self.setup.remote, self.setup.connect_port);
        let peer = match self.address(address, usual)? {
            Destination::Address(peer) => Some(peer),
            _ => None,
        };
        self.connects_to(fd, peer);
        let mut connect = Connect::new(fd, peer);
        Ok(Box::new(move |sockets, now| connect.attempt(sockets, now).map(|()| Answer::default())))
    }

    /// Packets of this socket go there from now on.
    fn connects_to(&mut self, fd: i32, peer: Option<SocketAddr>) {
        if let Some(flow) = self.flows.iter_mut().find(|flow| flow.fd == Some(fd) && !flow.listening) {
            flow.connects = true;
            flow.remote = peer.unwrap_or(flow.remote);
        }
    }

    fn fcntl(&mut self, fd: &Expr, command: &Expr, argument: Option<&Expr>) -> Result<Attempt, String> {
        let (fd, command) = (self.fd(fd)?, int(command)?);
        let argument = argument.map(int).transpose()?.unwrap_or(0);
        Ok(at_once(move |sockets, _| match command {
            libc::F_GETFL => sockets.flags(fd).map(value),
            libc::F_SETFL => zero(sockets.set_flags(fd, argument)),
            libc::F_GETFD => sockets.flags(fd).map(|_| value(libc::FD_CLOEXEC)),
            libc::F_SETFD => sockets.flags(fd).map(|_| value(0)),
            _ => Err(Errno::EINVAL),
        }))
    }

    fn ioctl(&mut self, fd: &Expr, request: &Expr, argument: &Expr) -> Result<Attempt, String> {
        let fd = self.fd(fd)?;
        let request = number(request)?.cast_unsigned();
        let expected = match argument {
            Expr::Ellipsis => None,
            argument => Some(i64::from(int(only(argument)?)?)),
        };
        Ok(at_once(move |sockets, _| {
            let seen = i64::from(sockets.ioctl(fd, request)?);
            let told = expected.map(|expected| Told { what: "value".into(), expected, seen });
            Ok(Answer { told: told.into_iter().collect(), ..Answer::default() })
        }))
    }

    /// Is this what the script says the call returns? A descriptor is, whatever its number.
    pub(super) fn is_expected(&self, call: &Call, result: &Result<Answer, Errno>) -> Result<bool, String> {
        if call.result == Expr::Ellipsis {
            return Ok(true);
        }
        let expected = number(&call.result)?;
        Ok(match result {
            Err(errno) => expected == -1 && call.errno.as_deref() == Some(format!("{errno:?}").as_str()),
            Ok(_) if gives_descriptor(&call.name) => expected >= 0,
            Ok(_) if matches!(call.name.as_str(), "pipe" | "open") => expected >= 0,
            Ok(answer) => expected == answer.value && call.errno.is_none(),
        })
    }

    /// Remembers what later events are about.
    pub(super) fn learn(&mut self, call: &Call, answer: Option<Answer>) {
        let Some(answer) = answer else { return };
        let first = call.arguments.first().and_then(|fd| number(fd).ok());
        let live = i32::try_from(answer.value).unwrap_or(-1);
        if gives_descriptor(&call.name)
            && let Ok(script) = number(&call.result)
        {
            self.fds.insert(script, live);
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
            "pipe" => self.learn_pipe(call, answer.value),
            "open" => self.zero_files.extend(number(&call.result)),
            "close" => {
                if let Some(script) = first {
                    self.zero_files.remove(&script);
                }
                if let Some(live) = first.and_then(|script| self.fds.remove(&script)) {
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

    fn learn_pipe(&mut self, call: &Call, ends: i64) {
        if let Some(Expr::List(names)) = call.arguments.first()
            && let [read, write] = names.as_slice()
            && let (Ok(read), Ok(write)) = (number(read), number(write))
        {
            self.fds.insert(read, (ends >> 32) as i32);
            self.fds.insert(write, ends as i32);
        }
    }
}

/// Do scripts name the descriptor this call returns?
fn gives_descriptor(name: &str) -> bool {
    matches!(name, "socket" | "accept" | "accept4" | "epoll_create")
}

/// What it gives has both ends in one number: the one to read from in the upper half.
fn pipe(ends: &Expr) -> Result<Attempt, String> {
    match ends {
        Expr::List(list) if list.len() == 2 => Ok(at_once(|sockets, _| {
            let (read, write) = sockets.pipe()?;
            Ok(value(i64::from(read) << 32 | i64::from(write)))
        })),
        other => Err(format!("`{other}`: two descriptors in brackets are expected")),
    }
}

/// Milliseconds of `poll`: negative is for ever.
fn deadline(now: Instant, timeout_ms: i32) -> Option<Instant> {
    u64::try_from(timeout_ms).ok().map(|ms| now + Duration::from_millis(ms))
}
