//! `getsockopt` and `setsockopt`: what each level has is in `options/`.
//!
//! A value is the bytes the application gave, and those it gets. As in Linux most options are one `int`, and longer values are cut to
//! what the caller has room for.

mod ip;
mod socket;
mod tcp;

use crate::errno::Errno;
use crate::socket::Role;
use crate::sockets::Sockets;
use core::time::Duration;
use proto::{Instant, OptionError, SocketOption};

/// One `setsockopt`.
#[derive(Clone, Copy)]
struct Setting<'a> {
    now: Instant,
    fd: i32,
    level: i32,
    name: i32,
    value: &'a [u8],
}

impl Sockets {
    /// `setsockopt`.
    ///
    /// # Errors
    /// `ENOPROTOOPT` for an option that is none, `EINVAL` for a value that is none of it, and what the options name.
    pub fn set_option(
        &mut self,
        now: Instant,
        fd: i32,
        level: i32,
        name: i32,
        value: &[u8],
    ) -> Result<(), Errno> {
        self.files.socket(fd)?;
        let setting = &Setting { now, fd, level, name, value };
        match level {
            libc::SOL_SOCKET => self.set_socket_option(setting),
            libc::IPPROTO_TCP => self.set_tcp_option(setting),
            libc::IPPROTO_IP | libc::IPPROTO_IPV6 => self.set_ip_option(setting),
            _ => Err(Errno::ENOPROTOOPT),
        }?;
        let socket = self.files.socket(fd)?;
        if let Role::Listener(id) = socket.role {
            let options = socket.listen_options();
            self.stack.set_listen_options(now, id, options);
        }
        Ok(())
    }

    /// `getsockopt`, not yet cut to the caller's room of `room` bytes.
    ///
    /// # Errors
    /// `ENOPROTOOPT` for an option that is none, `EOPNOTSUPP` for such a level.
    pub fn option(
        &mut self,
        now: Instant,
        fd: i32,
        level: i32,
        name: i32,
        room: usize,
    ) -> Result<Vec<u8>, Errno> {
        self.files.socket(fd)?;
        match level {
            libc::SOL_SOCKET => self.socket_option(fd, name, room),
            libc::IPPROTO_TCP => self.tcp_option(now, fd, name, room),
            libc::IPPROTO_IP | libc::IPPROTO_IPV6 => self.ip_option(fd, level, name),
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    /// Sets an option of the engine: for the connection there is, or for those to come.
    fn set_engine(&mut self, setting: &Setting<'_>, option: SocketOption) -> Result<(), Errno> {
        let Setting { now, fd, .. } = *setting;
        let refused = |error| match error {
            OptionError::OutOfRange => Errno::EINVAL,
            OptionError::NotFound => Errno::ENOTCONN,
        };
        let socket = self.files.socket_mut(fd)?;
        socket.options.engine.set(option).map_err(refused)?;
        if let Role::Connection(id) = socket.role
            && !socket.ended
        {
            self.stack.set_option(now, id, option).map_err(refused)?;
        }
        Ok(())
    }

    /// Options that only have to be read back.
    fn remember(&mut self, setting: &Setting<'_>, value: i32) -> Result<(), Errno> {
        let Setting { fd, level, name, .. } = *setting;
        let remembered = &mut self.files.socket_mut(fd)?.options.remembered;
        remembered.retain(|(key, _)| *key != (level, name));
        remembered.push(((level, name), value));
        Ok(())
    }

    fn remembered(&self, fd: i32, level: i32, name: i32) -> Result<Option<i32>, Errno> {
        let remembered = &self.files.socket(fd)?.options.remembered;
        Ok(remembered.iter().find(|(key, _)| *key == (level, name)).map(|(_, value)| *value))
    }
}

/// An `int`.
///
/// # Errors
/// `EINVAL` if there are less than four bytes.
fn int(value: &[u8]) -> Result<i32, Errno> {
    value.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)).ok_or(Errno::EINVAL)
}

fn bytes(value: i32) -> Vec<u8> {
    value.to_ne_bytes().to_vec()
}

fn flag(value: bool) -> Vec<u8> {
    bytes(value.into())
}

/// 0 or 1.
fn switch(value: i32) -> Result<bool, Errno> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Errno::EINVAL),
    }
}

fn seconds(value: i32) -> Result<Duration, Errno> {
    u64::try_from(value).map(Duration::from_secs).map_err(|_| Errno::EINVAL)
}

fn whole_seconds(value: Duration) -> i32 {
    i32::try_from(value.as_secs()).unwrap_or(i32::MAX)
}
