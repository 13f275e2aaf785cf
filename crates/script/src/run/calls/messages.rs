//! `recvmsg`: what it tells beside the bytes, and the error queue.

use super::{count, total, value};
use crate::ast::{Call, Expr, Field};
use crate::run::Runner;
use crate::run::START;
use crate::run::values::{field, fields, int, number, size};
use crate::run::world::{Answer, Attempt, Told};
use core::time::Duration;
use posix::{Ancillary, QueuedError};

/// One ancillary value that a script expects.
#[derive(Clone, Debug)]
pub(super) enum Expected {
    /// `TCP_CM_INQ`.
    Inq(i64),
    /// A time stamp, microseconds of the script.
    Stamp(i64),
    /// Fields of a `sock_extended_err`, by name.
    Error(Vec<(String, i64)>),
}

impl Runner<'_> {
    pub(super) fn message_call(&mut self, call: &Call) -> Option<Result<Attempt, String>> {
        match (call.name.as_str(), call.arguments.as_slice()) {
            ("recvmsg", [fd, message, flags]) => Some(self.recvmsg(fd, message, flags)),
            _ => None,
        }
    }

    fn recvmsg(&mut self, fd: &Expr, message: &Expr, flags: &Expr) -> Result<Attempt, String> {
        let message = fields(message)?;
        let len = total(field(message, "msg_iov").ok_or("msg_iov is missing")?)?;
        let expected = control(message)?;
        if int(flags)? & libc::MSG_ERRQUEUE == 0 {
            return self.receive(fd, (&Expr::Ellipsis, &len), flags, expected);
        }
        let (fd, room, tolerance) = (self.fd(fd)?, size(&len)?, self.setup.tolerance_usecs);
        let said = match field(message, "msg_flags") {
            None | Some(Expr::Ellipsis) => None,
            Some(flags) => Some(i64::from(int(flags)?)),
        };
        Ok(Box::new(move |sockets, _| {
            let (entry, told) = sockets.receive_error(fd)?;
            let cut = if entry.payload.len() > room { libc::MSG_TRUNC } else { 0 };
            let seen = i64::from(libc::MSG_ERRQUEUE | cut);
            let flags = said.map(|expected| Told { what: "msg_flags:".into(), expected, seen });
            let told = flags.into_iter().chain(compare(&expected, &told, tolerance)).collect();
            Ok(Answer { told, ..value(count(entry.payload.len().min(room))) })
        }))
    }
}

/// `msg_control=[{cmsg_level=…, cmsg_type=…, cmsg_data=…}, …]`.
fn control(message: &[Field]) -> Result<Vec<Expected>, String> {
    let Some(control) = field(message, "msg_control") else { return Ok(Vec::new()) };
    let Expr::List(entries) = control else {
        return Err(format!("`{control}`: values in brackets are expected"));
    };
    entries.iter().map(expected).collect()
}

fn expected(entry: &Expr) -> Result<Expected, String> {
    let entry = fields(entry)?;
    let kind = field(entry, "cmsg_type").ok_or("cmsg_type is missing")?;
    let data = field(entry, "cmsg_data").ok_or("cmsg_data is missing")?;
    let Expr::Word(name) = kind else { return Err(format!("`{kind}` is no name of an ancillary value")) };
    match name.as_str() {
        "TCP_CM_INQ" => Ok(Expected::Inq(int(data)?.into())),
        "SCM_TIMESTAMPING" | "SCM_TIMESTAMP" | "SCM_TIMESTAMPNS" => {
            let part = |name| number(field(fields(data)?, name).ok_or(format!("{name} is missing"))?);
            Ok(Expected::Stamp(part("scm_sec")? * 1_000_000 + part("scm_nsec")? / 1000))
        }
        "IP_RECVERR" | "IPV6_RECVERR" | "CMSG_TYPE_RECVERR" => {
            let all = fields(data)?.iter().map(|field| Ok((field.name.clone(), number(&field.value)?)));
            Ok(Expected::Error(all.collect::<Result<_, String>>()?))
        }
        _ => Err(format!("`{name}` is no ancillary value that is understood here")),
    }
}

/// Times may be off by `tolerance` microseconds.
pub(super) fn compare(expected: &[Expected], told: &[Ancillary], tolerance: i64) -> Vec<Told> {
    let how_many =
        Told { what: "ancillary values:".into(), expected: count(expected.len()), seen: count(told.len()) };
    let pairs = expected.iter().zip(told).flat_map(|(expected, told)| of_pair(expected, told, tolerance));
    std::iter::once(how_many).chain(pairs).collect()
}

fn of_pair(expected: &Expected, told: &Ancillary, tolerance: i64) -> Vec<Told> {
    let one = |what: &str, expected, seen| vec![Told { what: what.into(), expected, seen }];
    match (expected, told) {
        (Expected::Inq(expected), Ancillary::Inq(seen)) => one("TCP_CM_INQ:", *expected, i64::from(*seen)),
        (
            Expected::Stamp(expected),
            Ancillary::Timestamp { at, .. }
            | Ancillary::TimestampNs { at, .. }
            | Ancillary::Timestamping { at, .. },
        ) => {
            let seen = micros(*at);
            let seen = if (seen - expected).abs() <= tolerance { *expected } else { seen };
            one("time stamp, microseconds:", *expected, seen)
        }
        (Expected::Error(all), Ancillary::Error4(entry) | Ancillary::Error6(entry)) => all
            .iter()
            .map(|(name, expected)| {
                let seen = of_error(entry, name).unwrap_or(-1);
                Told { what: format!("{name}:"), expected: *expected, seen }
            })
            .collect(),
        _ => one("an ancillary value of this kind:", 1, 0),
    }
}

/// A time of the stack in the script's.
fn micros(at: Duration) -> i64 {
    i64::try_from(at.saturating_sub(START).as_micros()).unwrap_or(i64::MAX)
}

fn of_error(entry: &QueuedError, name: &str) -> Option<i64> {
    Some(match name {
        "ee_errno" => entry.errno.into(),
        "ee_origin" => entry.origin.into(),
        "ee_type" => entry.kind.into(),
        "ee_code" => entry.code.into(),
        "ee_info" => entry.info.into(),
        "ee_data" => entry.data.into(),
        _ => return None,
    })
}
