//! `getsockopt` and `setsockopt`.

use super::at_once;
use crate::ast::{Call, Expr};
use crate::run::Runner;
use crate::run::values::{field, int, is_null, size};
use crate::run::world::{Answer, Attempt, Told};

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
        let mut bytes = bytes(value)?;
        if *len != Expr::Ellipsis {
            bytes.resize(size(len)?.min(1 << 16), 0);
        }
        Ok(at_once(move |sockets, now| {
            sockets.set_option(now, fd, level, name, &bytes).map(|()| Answer::default())
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
        let expected = if *value == Expr::Ellipsis { None } else { Some(bytes(value)?) };
        let room = match len {
            Expr::List(list) => size(list.first().ok_or("the length is missing")?)?,
            _ => expected.as_ref().map_or(256, Vec::len),
        };
        Ok(at_once(move |sockets, now| {
            let mut seen = sockets.option(now, fd, level, name, room)?;
            seen.truncate(room);
            let mut told = Vec::new();
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
        Expr::Text(text) => Ok([text.as_bytes(), &[0]].concat()),
        Expr::Fields(fields) => match (field(fields, "onoff"), field(fields, "linger")) {
            (Some(on), Some(linger)) => Ok([int(on)?.to_ne_bytes(), int(linger)?.to_ne_bytes()].concat()),
            _ => Err(format!("`{value}` is no structure that is known here")),
        },
        Expr::Ellipsis => Ok(vec![0; 4]),
        null if is_null(null) => Ok(Vec::new()),
        other => Err(format!("`{other}` is no value of an option")),
    }
}
