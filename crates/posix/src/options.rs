//! `getsockopt` and `setsockopt`. `options/` has a file for each level.
//!
//! A value is the bytes that the application passes or gets. As in Linux, most options are one
//! `int`, and longer values are cut to the caller's buffer. Errors are reported in Linux's order:
//! length, address, number, state.

mod ip;
mod ipv6;
mod kept;
mod md5;
mod repair;
mod socket;
mod tcp;

pub(crate) use tcp::unanswered;

use crate::errno::Errno;
use crate::socket::{Domain, Role};
use crate::sockets::Sockets;
use core::time::Duration;
use proto::{Instant, OptionError, SocketOption};

/// The value that an application passes for an option.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// So many, in a place that cannot be read.
    Faulty(usize),
}

impl<'a> Given<'a> {
    fn len(self) -> usize {
        match self {
            Given::Bytes(bytes) => bytes.len(),
            Given::Faulty(len) => len,
        }
    }

    fn is_faulty(self) -> bool {
        matches!(self, Given::Faulty(_))
    }

    /// The first so many bytes.
    ///
    /// # Errors
    /// `EINVAL` if there are fewer, `EFAULT` if they cannot be read.
    fn first(self, len: usize) -> Result<&'a [u8], Errno> {
        match self {
            _ if self.len() < len => Err(Errno::EINVAL),
            Given::Bytes(bytes) => Ok(&bytes[..len]),
            Given::Faulty(_) if len == 0 => Ok(&[]),
            Given::Faulty(_) => Err(Errno::EFAULT),
        }
    }

    fn all(self) -> Result<&'a [u8], Errno> {
        self.first(self.len())
    }

    /// An `int`.
    ///
    /// # Errors
    /// As [`first`](Self::first).
    fn int(self) -> Result<i32, Errno> {
        Ok(self.first(size_of::<i32>())?.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes)))
    }
}

/// The value that `getsockopt` is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Bytes of room in the caller's buffer.
    pub room: i32,
    /// True if the addresses are invalid. Data that can be reported only once is then lost.
    pub faulty: bool,
}

/// The reason why `getsockopt` failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untold {
    /// The error.
    pub errno: Errno,
    /// Bytes that the value needs, to report to the caller.
    pub needed: Option<usize>,
}

impl From<Errno> for Untold {
    fn from(errno: Errno) -> Untold {
        Untold { errno, needed: None }
    }
}

/// One `setsockopt`.
#[derive(Clone, Copy)]
struct Setting<'a> {
    now: Instant,
    fd: i32,
    level: i32,
    name: i32,
    value: Given<'a>,
}

impl Sockets {
    /// `setsockopt`.
    ///
    /// # Errors
    /// Returns `ENOPROTOOPT` for an unknown option, `EINVAL` for an invalid value, and the option's
    /// own errors.
    pub fn set_option(
        &mut self,
        now: Instant,
        fd: i32,
        level: i32,
        name: i32,
        value: &[u8],
    ) -> Result<(), Errno> {
        self.set_option_given(now, fd, (level, name), Given::Bytes(value))
    }

    /// Sets the option `(level, name)` like [`set_option`](Self::set_option), with a value that may
    /// be unreadable.
    ///
    /// # Errors
    /// See [`set_option`](Self::set_option); `EFAULT`.
    pub fn set_option_given(
        &mut self,
        now: Instant,
        fd: i32,
        (level, name): (i32, i32),
        value: Given<'_>,
    ) -> Result<(), Errno> {
        self.notice_socket(fd)?;
        let setting = &Setting { now, fd, level, name, value };
        match level {
            libc::SOL_SOCKET => self.set_socket_option(setting),
            libc::IPPROTO_TCP => self.set_tcp_option(setting),
            libc::IPPROTO_IP => self.set_ip_option(setting),
            libc::IPPROTO_IPV6 => self.set_ipv6_option(setting),
            _ => Err(Errno::ENOPROTOOPT),
        }?;
        let socket = self.files.socket(fd)?;
        if let Role::Listener(id) = socket.role {
            let options = socket.listen_options();
            self.stack.set_listen_options(now, id, options);
        }
        Ok(())
    }

    /// `getsockopt`, into a place of `room` bytes.
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
        let room = i32::try_from(room).unwrap_or(i32::MAX);
        let asked = Asked { room, faulty: false };
        self.option_asked(now, fd, (level, name), asked).map_err(|untold| untold.errno)
    }

    /// Gets the option `(level, name)` like [`option`](Self::option), and returns the room that the
    /// value needs.
    ///
    /// # Errors
    /// See [`option`](Self::option).
    pub fn option_asked(
        &mut self,
        now: Instant,
        fd: i32,
        (level, name): (i32, i32),
        asked: Asked,
    ) -> Result<Vec<u8>, Untold> {
        self.has_option_level(fd, level)?;
        self.notice_socket(fd)?;
        if level == libc::IPPROTO_IPV6 {
            // Linux takes a negative length for a large one here.
            return Ok(self.ipv6_option(fd, name, asked.room.cast_unsigned() as usize)?);
        }
        let room = usize::try_from(asked.room).map_err(|_| Errno::EINVAL)?;
        let mut told = match level {
            libc::SOL_SOCKET => self.socket_option(fd, name, asked)?,
            libc::IPPROTO_TCP => self.tcp_option(now, fd, name, asked)?,
            _ => self.ip_option(fd, name, room)?,
        };
        told.truncate(room);
        Ok(told)
    }

    /// Returns whether `getsockopt` supports this level.
    ///
    /// # Errors
    /// Returns `EBADF`, `ENOTSOCK`, or `EOPNOTSUPP` for an unknown level (`ENOPROTOOPT` for an IPv6
    /// socket).
    pub fn has_option_level(&self, fd: i32, level: i32) -> Result<(), Errno> {
        let v4 = self.files.socket(fd)?.domain == Domain::V4;
        match level {
            libc::SOL_SOCKET | libc::IPPROTO_TCP | libc::IPPROTO_IP => Ok(()),
            libc::IPPROTO_IPV6 if !v4 => Ok(()),
            _ if v4 => Err(Errno::EOPNOTSUPP),
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    /// What the connection has come to by now.
    fn notice_socket(&mut self, fd: i32) -> Result<(), Errno> {
        if let Some(id) = self.files.socket(fd)?.connection() {
            self.notice_state(fd, id);
        }
        Ok(())
    }

    /// Sets an option of the engine: for the connection there is, or for those to come.
    fn set_engine(&mut self, setting: &Setting<'_>, option: SocketOption) -> Result<(), Errno> {
        let Setting { now, fd, .. } = *setting;
        let refused = |error| match error {
            OptionError::NotFound => Errno::ENOTCONN,
            _ => Errno::EINVAL,
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

    /// As [`set_engine`](Self::set_engine), of an option that each IP version has for itself.
    fn set_engine_of(&mut self, setting: &Setting<'_>, v4: bool, option: SocketOption) -> Result<(), Errno> {
        let socket = self.files.socket(setting.fd)?;
        let names = socket.connection().and_then(|id| self.stack.names(id));
        let speaks_v4 = names.map_or(socket.domain == Domain::V4, |(_, peer)| peer.is_ipv4());
        if speaks_v4 == v4 { self.set_engine(setting, option) } else { Ok(()) }
    }

    /// Options that only have to be read back.
    fn remember(&mut self, setting: &Setting<'_>, value: i32) -> Result<(), Errno> {
        let Setting { fd, level, name, .. } = *setting;
        self.files.socket_mut(fd)?.options.remember((level, name), value);
        Ok(())
    }

    fn remembered(&self, fd: i32, level: i32, name: i32) -> Result<Option<i32>, Errno> {
        let remembered = &self.files.socket(fd)?.options.remembered;
        Ok(remembered.iter().find(|(key, _)| *key == (level, name)).map(|(_, value)| *value))
    }
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
