//! `poll` and `epoll`.

use super::{at_once, count, deadline, descriptor, value};
use crate::ast::{Call, Expr};
use crate::run::Runner;
use crate::run::values::{field, fields_of, int, number, size};
use crate::run::world::{Answer, Attempt, Told};
use posix::{Control, Errno, Interest, PollFd, Ready};

impl Runner<'_> {
    pub(super) fn readiness_call(&mut self, call: &Call) -> Option<Result<Attempt, String>> {
        Some(match (call.name.as_str(), call.arguments.as_slice()) {
            ("poll", [fds, number, timeout]) => self.poll(fds, number, timeout),
            ("epoll_create", [size]) => epoll_create(size),
            ("epoll_ctl", [epoll, operation, fd, event]) => self.epoll_ctl(epoll, operation, fd, event),
            ("epoll_wait", [epoll, events, most, timeout]) => self.epoll_wait(epoll, events, most, timeout),
            _ => return None,
        })
    }

    fn poll(&mut self, fds: &Expr, how_many: &Expr, timeout: &Expr) -> Result<Attempt, String> {
        let Expr::List(list) = fds else {
            return Err(format!("`{fds}`: descriptors in brackets are expected"));
        };
        if size(how_many)? != list.len() {
            return Err(format!("{how_many} descriptors are said, and {} are there", list.len()));
        }
        let mut entries = Vec::new();
        let mut expected = Vec::new();
        for entry in list {
            let entry = fields_of(entry, &["fd", "events", "revents"], &[])?;
            let script = field(entry, "fd").ok_or("fd is missing")?;
            let events = number(field(entry, "events").ok_or("events is missing")?)?;
            let events = Ready::from_bits_truncate(events as u32);
            entries.push(PollFd { fd: self.fd(script)?, events, found: Ready::empty() });
            let revents = field(entry, "revents").map_or(Ok(0), number)?;
            expected.push((format!("revents of {script}:"), revents));
        }
        let timeout = int(timeout)?;
        let mut until = None;
        Ok(Box::new(move |sockets, now| {
            let until = *until.get_or_insert_with(|| deadline(now, timeout));
            let found = sockets.poll(now, &mut entries, until)?;
            let told = expected.iter().zip(&entries).map(|((what, expected), entry)| Told {
                what: what.clone(),
                expected: *expected,
                seen: entry.found.bits().into(),
            });
            Ok(Answer { told: told.collect(), ..value(count(found)) })
        }))
    }

    fn epoll_ctl(
        &mut self,
        epoll: &Expr,
        operation: &Expr,
        fd: &Expr,
        event: &Expr,
    ) -> Result<Attempt, String> {
        let (epoll, fd, operation) = (self.fd(epoll)?, self.fd(fd)?, int(operation)?);
        let control = match operation {
            libc::EPOLL_CTL_DEL => Control::Delete,
            libc::EPOLL_CTL_ADD => Control::Add(self.interest(event)?),
            libc::EPOLL_CTL_MOD => Control::Modify(self.interest(event)?),
            other => return Err(format!("{other} is no operation of epoll_ctl")),
        };
        Ok(at_once(move |sockets, _| sockets.epoll_ctl(epoll, fd, control).map(|()| Answer::default())))
    }

    /// `{events=…, fd=…}`, or `ptr`, `u32`, `u64` as data.
    fn interest(&self, event: &Expr) -> Result<Interest, String> {
        let fields = fields_of(event, &["events", "fd", "ptr", "u32", "u64"], &[])?;
        let events = number(field(fields, "events").ok_or("events is missing")?)?;
        let data = match field(fields, "fd") {
            Some(fd) => i64::from(self.fd(fd)?),
            None => {
                let data = ["ptr", "u32", "u64"].iter().find_map(|name| field(fields, name));
                number(data.ok_or("fd, ptr, u32 or u64 is missing")?)?
            }
        };
        Ok(Interest { events: events as u32, data: data.cast_unsigned() })
    }

    /// One event, or several in brackets. What was not found is zeros, as in the memory that packetdrill offers.
    fn epoll_wait(
        &mut self,
        epoll: &Expr,
        events: &Expr,
        most: &Expr,
        timeout: &Expr,
    ) -> Result<Attempt, String> {
        let (epoll, most, timeout) = (self.fd(epoll)?, size(most)?, int(timeout)?);
        let entries = match events {
            Expr::Ellipsis => &[],
            Expr::List(list) => list.as_slice(),
            one => std::slice::from_ref(one),
        };
        let expected: Vec<Interest> =
            entries.iter().map(|entry| self.interest(entry)).collect::<Result<_, _>>()?;
        let mut until = None;
        Ok(Box::new(move |sockets, now| {
            let until = *until.get_or_insert_with(|| deadline(now, timeout));
            let found = sockets.epoll_wait(now, epoll, most, until)?;
            let mut told = Vec::new();
            let nothing = Interest { events: 0, data: 0 };
            for (wanted, seen) in expected.iter().zip(found.iter().chain(std::iter::repeat(&nothing))) {
                let (expected, events) = (i64::from(wanted.events), i64::from(seen.events));
                told.push(Told { what: "events:".into(), expected, seen: events });
                let (expected, seen) = (wanted.data.cast_signed(), seen.data.cast_signed());
                told.push(Told { what: "data:".into(), expected, seen });
            }
            Ok(Answer { told, ..value(count(found.len())) })
        }))
    }
}

fn epoll_create(size: &Expr) -> Result<Attempt, String> {
    let size = int(size)?;
    Ok(at_once(move |sockets, _| match size {
        ..=0 => Err(Errno::EINVAL),
        _ => sockets.epoll_create(false).map(descriptor),
    }))
}
