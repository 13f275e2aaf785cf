//! `getsockopt` and `setsockopt`.

use super::{at_once, count};
use crate::ast::{Call, Expr};
use crate::run::Runner;
use crate::run::values::{address_of, field, fields_of, int, is_null, only, size};
use crate::run::world::{Answer, Attempt, Told};
use core::net::IpAddr;
use posix::Given;

impl Runner<'_> {
    pub(super) fn option_call(&mut self, call: &Call) -> Option<Result<Attempt, String>> {
        Some(match (call.name.as_str(), call.arguments.as_slice()) {
            ("setsockopt", [fd, level, name, value, len]) => self.set_option(fd, (level, name), value, len),
            ("getsockopt", [fd, level, name, value, len]) => self.get_option(fd, (level, name), value, len),
            _ => return None,
        })
    }

    fn set_option(
        &mut self,
        fd: &Expr,
        (level, name): (&Expr, &Expr),
        value: &Expr,
        len: &Expr,
    ) -> Result<Attempt, String> {
        let (fd, level, name) = (self.fd(fd)?, int(level)?, int(name)?);
        let (len, faulty) = (size(len)?, is_null(value));
        let mut bytes = bytes(value)?;
        bytes.resize(len.min(1 << 16), 0);
        Ok(at_once(move |sockets, now| {
            let given = if faulty { Given::Faulty(len) } else { Given::Bytes(&bytes) };
            sockets.set_option_given(now, fd, (level, name), given).map(|()| Answer::default())
        }))
    }

    fn get_option(
        &mut self,
        fd: &Expr,
        (level, name): (&Expr, &Expr),
        value: &Expr,
        len: &Expr,
    ) -> Result<Attempt, String> {
        let (fd, level, name) = (self.fd(fd)?, int(level)?, int(name)?);
        let room = size(only(len)?)?;
        let expected = if *value == Expr::Ellipsis { None } else { Some(bytes(value)?) };
        if let Some(expected) = expected.as_ref().filter(|expected| expected.len() != room) {
            return Err(format!("{value} takes {} bytes, and {room} are said", expected.len()));
        }
        Ok(at_once(move |sockets, now| {
            let mut seen = sockets.option(now, fd, level, name, room)?;
            seen.truncate(room);
            let mut told =
                vec![Told { what: "bytes:".into(), expected: count(room), seen: count(seen.len()) }];
            for (at, wanted) in expected.iter().flat_map(|bytes| bytes.chunks(4)).enumerate() {
                let found = seen.get(at * 4..).unwrap_or_default();
                let found = &found[..found.len().min(wanted.len())];
                told.push(Told { what: format!("word {at}:"), expected: word(wanted), seen: word(found) });
            }
            Ok(Answer { told, ..Answer::default() })
        }))
    }
}

/// Up to four bytes as a number.
fn word(bytes: &[u8]) -> i64 {
    let mut four = [0; 4];
    let len = bytes.len().min(4);
    four[..len].copy_from_slice(&bytes[..len]);
    i32::from_ne_bytes(four).into()
}

/// A value as the application has it in memory: ints, a text, or a structure of ints.
fn bytes(value: &Expr) -> Result<Vec<u8>, String> {
    match value {
        Expr::List(list) => {
            let mut bytes = Vec::new();
            for entry in list {
                bytes.extend(int(entry)?.to_ne_bytes());
            }
            Ok(bytes)
        }
        Expr::Text(text) => Ok(text.as_bytes().to_vec()),
        Expr::Apply(name, arguments) if name == "inet6_addr" => match address_of(arguments)? {
            IpAddr::V6(address) => Ok(address.octets().to_vec()),
            IpAddr::V4(_) => Err(format!("`{value}` is no address of IPv6")),
        },
        Expr::Fields(_) => {
            let fields = fields_of(value, &["onoff", "linger"], &[])?;
            match (field(fields, "onoff"), field(fields, "linger")) {
                (Some(on), Some(linger)) => Ok([int(on)?.to_ne_bytes(), int(linger)?.to_ne_bytes()].concat()),
                _ => Err(format!("`{value}`: `{{onoff=…, linger=…}}` is expected")),
            }
        }
        null if is_null(null) => Ok(Vec::new()),
        other => Err(format!("`{other}` is no value of an option")),
    }
}
