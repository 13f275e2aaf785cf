//! `sendmsg` and `recvmsg`: what is told beside the bytes, and the error queue. What is not said of a message is 0, as in packetdrill.

use super::{count, total, value};
use crate::ast::{Call, Expr, Field};
use crate::run::Runner;
use crate::run::values::{field, fields_of, int, number, size};
use crate::run::world::{Answer, Attempt, Told};
use core::time::Duration;
use posix::scripted::START;
use posix::{Ancillary, QueuedError};

/// What a script expects beside the bytes.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// `msg_flags`; `None`: any.
    flags: Option<i64>,
    /// `msg_control`; `None`: there is no room for it.
    control: Option<Vec<Expected>>,
    /// How far times may be off, microseconds.
    tolerance: i64,
}

/// One ancillary value that a script expects.
#[derive(Clone, Debug)]
struct Expected {
    kind: Kind,
    value: Value,
}

/// What an ancillary value is, by its level and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Inq,
    Timestamp,
    TimestampNs,
    Timestamping,
    Error4,
    Error6,
}

#[derive(Clone, Debug)]
enum Value {
    Number(i64),
    /// A time stamp, microseconds of the script.
    Stamp(i64),
    /// Fields of a `sock_extended_err`, by name.
    Error(Vec<(String, i64)>),
}

/// Their levels and types.
const KINDS: [(Kind, &str, &str); 6] = [
    (Kind::Inq, "SOL_TCP", "TCP_CM_INQ"),
    (Kind::Timestamp, "SOL_SOCKET", "SCM_TIMESTAMP"),
    (Kind::TimestampNs, "SOL_SOCKET", "SCM_TIMESTAMPNS"),
    (Kind::Timestamping, "SOL_SOCKET", "SCM_TIMESTAMPING"),
    (Kind::Error4, "SOL_IP", "IP_RECVERR"),
    (Kind::Error6, "SOL_IPV6", "IPV6_RECVERR"),
];

/// Fields of a message.
const MESSAGE: [&str; 4] = ["msg_name", "msg_iov", "msg_control", "msg_flags"];
/// Fields of a `sock_extended_err`.
const ERROR: [&str; 6] = ["ee_errno", "ee_origin", "ee_type", "ee_code", "ee_info", "ee_data"];

impl Runner<'_> {
    pub(super) fn message_call(&mut self, call: &Call) -> Option<Result<Attempt, String>> {
        match (call.name.as_str(), call.arguments.as_slice()) {
            ("sendmsg", [fd, message, flags]) => Some(self.sendmsg(fd, message, flags)),
            ("recvmsg", [fd, message, flags]) => Some(self.recvmsg(fd, message, flags)),
            _ => None,
        }
    }

    fn sendmsg(&mut self, fd: &Expr, message: &Expr, flags: &Expr) -> Result<Attempt, String> {
        let (message, len) = message_of(message)?;
        if field(message, "msg_flags").is_some_and(|flags| number(flags) != Ok(0)) {
            return Err("sendmsg does not look at msg_flags: leave it out, or 0".into());
        }
        if let Some(control) =
            field(message, "msg_control").filter(|control| **control != Expr::List(Vec::new()))
        {
            return Err(format!(
                "`{control}`: sendmsg takes no ancillary values here; leave msg_control out, or `[]`"
            ));
        }
        let to = field(message, "msg_name").unwrap_or(&Expr::Ellipsis);
        self.send(fd, (&Expr::Ellipsis, &len), flags, to)
    }

    fn recvmsg(&mut self, fd: &Expr, message: &Expr, flags: &Expr) -> Result<Attempt, String> {
        let (message, len) = message_of(message)?;
        if let Some(name) = field(message, "msg_name").filter(|name| **name != Expr::Ellipsis) {
            return Err(format!("`{name}`: TCP tells no name; msg_name is `...`"));
        }
        let expected = self.wanted(message)?;
        if int(flags)? & libc::MSG_ERRQUEUE == 0 {
            return self.receive(fd, (&Expr::Ellipsis, &len), flags, Some(expected));
        }
        let (fd, room) = (self.fd(fd)?, size(&len)?);
        Ok(Box::new(move |sockets, _| {
            let (entry, told) = sockets.receive_error(fd)?;
            let cut = if entry.payload.len() > room { libc::MSG_TRUNC } else { 0 };
            let told = expected.compare(libc::MSG_ERRQUEUE | cut, &told);
            Ok(Answer { told, ..value(count(entry.payload.len().min(room))) })
        }))
    }

    fn wanted(&self, message: &[Field]) -> Result<Wanted, String> {
        let flags = match field(message, "msg_flags") {
            None => Some(0),
            Some(Expr::Ellipsis) => None,
            Some(flags) => Some(i64::from(int(flags)?)),
        };
        let control = match field(message, "msg_control") {
            None => None,
            Some(Expr::List(entries)) => {
                let is_v4 = self.setup.of_calls(self.setup.local).is_ipv4();
                Some(entries.iter().map(|entry| expected(entry, is_v4)).collect::<Result<_, _>>()?)
            }
            Some(other) => return Err(format!("`{other}`: values in brackets are expected")),
        };
        Ok(Wanted { flags, control, tolerance: self.setup.tolerance_usecs })
    }
}

/// The fields of a message, and how many bytes its buffers are.
fn message_of(message: &Expr) -> Result<(&[Field], Expr), String> {
    let fields = fields_of(message, &MESSAGE, &["msg_name", "msg_iov"])?;
    let buffers = field(fields, "msg_iov").ok_or("msg_iov is missing")?;
    let len = total(buffers)?;
    for Field { name, count, .. } in fields {
        let how_many = match (count, buffers) {
            (None | Some(Expr::Ellipsis), _) => continue,
            (Some(count), Expr::List(buffers)) if name == "msg_iov" && size(count)? == buffers.len() => {
                continue;
            }
            (Some(count), _) => count,
        };
        let right = if name == "msg_iov" { "as many buffers as there are" } else { "`...`" };
        return Err(format!("`{name}({how_many})`: {right} is expected in the parentheses"));
    }
    Ok((fields, len))
}

/// `{cmsg_level=…, cmsg_type=…, cmsg_data=…}`.
fn expected(entry: &Expr, is_v4: bool) -> Result<Expected, String> {
    let entry = fields_of(entry, &["cmsg_level", "cmsg_type", "cmsg_data"], &[])?;
    let part = |name| field(entry, name).ok_or(format!("{name} is missing"));
    let (level, kind, data) = (part("cmsg_level")?, part("cmsg_type")?, part("cmsg_data")?);
    let kind = kind_of(level, kind, is_v4)?;
    let value = match kind {
        Kind::Inq => Value::Number(int(data)?.into()),
        Kind::Timestamp | Kind::TimestampNs | Kind::Timestamping => Value::Stamp(stamp(data)?),
        Kind::Error4 | Kind::Error6 => {
            let all = fields_of(data, &ERROR, &[])?.iter();
            let all = all.map(|field| Ok((field.name.clone(), number(&field.value)?)));
            Value::Error(all.collect::<Result<_, String>>()?)
        }
    };
    Ok(Expected { kind, value })
}

/// packetdrill's runner gives its scripts the names `CMSG_LEVEL_IP` and `CMSG_TYPE_RECVERR` for those of the socket's family.
fn kind_of(level: &Expr, kind: &Expr, is_v4: bool) -> Result<Kind, String> {
    let (Expr::Word(level), Expr::Word(kind)) = (level, kind) else {
        return Err(format!("`{level}`, `{kind}`: level and type of an ancillary value are names"));
    };
    let (_, own_level, own_type) = KINDS[if is_v4 { 4 } else { 5 }];
    let level = if level == "CMSG_LEVEL_IP" { own_level } else { level };
    let kind = if kind == "CMSG_TYPE_RECVERR" { own_type } else { kind };
    let known = KINDS.iter().find(|(_, of, name)| (*of, *name) == (level, kind));
    known.map(|(kind, ..)| *kind).ok_or_else(|| {
        let all: Vec<String> = KINDS.iter().map(|(_, level, name)| format!("{level} {name}")).collect();
        format!("`{level}` `{kind}` is no ancillary value that is understood here: {} are", all.join(", "))
    })
}

/// `{scm_sec=…, scm_nsec=…}` in microseconds.
fn stamp(data: &Expr) -> Result<i64, String> {
    let fields = fields_of(data, &["scm_sec", "scm_nsec"], &[])?;
    let part = |name| number(field(fields, name).ok_or(format!("{name} is missing"))?);
    let (seconds, nanos) = (part("scm_sec")?, part("scm_nsec")?);
    let micros = seconds.checked_mul(1_000_000).and_then(|micros| micros.checked_add(nanos / 1000));
    micros.ok_or_else(|| format!("`{data}` is out of range: the script's own time is expected"))
}

impl Wanted {
    /// What was told, beside what is expected of it.
    pub(super) fn compare(&self, flags: i32, told: &[Ancillary]) -> Vec<Told> {
        // Linux's `put_cmsg`.
        let cut = if self.control.is_none() && !told.is_empty() { libc::MSG_CTRUNC } else { 0 };
        let seen = i64::from(flags | cut);
        let flags = self.flags.map(|expected| Told { what: "msg_flags:".into(), expected, seen });
        let how_many = self.control.iter().map(|control| Told {
            what: "ancillary values:".into(),
            expected: count(control.len()),
            seen: count(told.len()),
        });
        let pairs = self.control.iter().flatten().zip(told);
        let pairs = pairs.flat_map(|(expected, told)| expected.compare(told, self.tolerance));
        flags.into_iter().chain(how_many).chain(pairs).collect()
    }
}

impl Expected {
    /// Times may be off by `tolerance` microseconds.
    fn compare(&self, told: &Ancillary, tolerance: i64) -> Vec<Told> {
        let (kind, seen) = of_ancillary(told);
        if kind != self.kind {
            let name =
                |wanted| KINDS.iter().find(|(kind, ..)| *kind == wanted).map_or("", |(.., name)| *name);
            let what = format!("{} where {} is:", name(self.kind), name(kind));
            return vec![Told { what, expected: 1, seen: 0 }];
        }
        match (&self.value, seen) {
            (Value::Error(all), Seen::Error(entry)) => all
                .iter()
                .map(|(name, expected)| Told {
                    what: format!("{name}:"),
                    expected: *expected,
                    seen: of_error(entry, name),
                })
                .collect(),
            (Value::Stamp(expected), Seen::Number(seen)) => {
                let seen =
                    if seen.abs_diff(*expected) <= tolerance.unsigned_abs() { *expected } else { seen };
                vec![Told { what: "time stamp, microseconds:".into(), expected: *expected, seen }]
            }
            (Value::Number(expected), Seen::Number(seen)) => {
                vec![Told { what: "TCP_CM_INQ:".into(), expected: *expected, seen }]
            }
            _ => Vec::new(),
        }
    }
}

/// What there is in an ancillary value.
enum Seen<'a> {
    Number(i64),
    Error(&'a QueuedError),
}

fn of_ancillary(told: &Ancillary) -> (Kind, Seen<'_>) {
    match told {
        Ancillary::Inq(left) => (Kind::Inq, Seen::Number(i64::from(*left))),
        Ancillary::Timestamp { at, .. } => (Kind::Timestamp, Seen::Number(micros(*at))),
        Ancillary::TimestampNs { at, .. } => (Kind::TimestampNs, Seen::Number(micros(*at))),
        Ancillary::Timestamping { at, .. } => (Kind::Timestamping, Seen::Number(micros(*at))),
        Ancillary::Error4(entry) => (Kind::Error4, Seen::Error(entry)),
        Ancillary::Error6(entry) => (Kind::Error6, Seen::Error(entry)),
    }
}

/// A time of the stack in the script's.
fn micros(at: Duration) -> i64 {
    i64::try_from(at.saturating_sub(START).as_micros()).unwrap_or(i64::MAX)
}

fn of_error(entry: &QueuedError, name: &str) -> i64 {
    match name {
        "ee_errno" => entry.errno.into(),
        "ee_origin" => entry.origin.into(),
        "ee_type" => entry.kind.into(),
        "ee_code" => entry.code.into(),
        "ee_info" => entry.info.into(),
        _ => entry.data.into(),
    }
}
