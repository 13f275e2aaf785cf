//! Calls about descriptors, whatever they stand for.

use super::{Process, watch};
use crate::destination::Destination;
use crate::errno::Errno;
use crate::files::Owner;
use crate::ioctl::{FIOASYNC, FIOCLEX, FIOGETOWN, FIONBIO, FIONCLEX, FIOSETOWN, SIOCGPGRP, SIOCSPGRP};
use crate::pipe::Splice;
use crate::send::{Send, Source};
use crate::sockets::Close;
use libc::{c_int, c_long, off_t};

/// `close`; waits as long as `SO_LINGER` says.
pub fn close(process: &impl Process, fd: c_int) -> Result<i32, Errno> {
    let mut lingering = Lingering { process, close: Close::new(fd) };
    process.wait(|sockets, now| lingering.close.attempt(sockets, now)).map(|()| 0)
}

/// However the call ends, by a signal or as its thread is cancelled, the socket is nobody's then (Linux's `inet_release`).
struct Lingering<'a, P: Process> {
    process: &'a P,
    close: Close,
}

impl<P: Process> Drop for Lingering<'_, P> {
    fn drop(&mut self) {
        self.process.call(|sockets, now| self.close.give_up(sockets, now));
    }
}

/// `dup`.
pub fn dup(process: &impl Process, fd: c_int) -> Result<i32, Errno> {
    process.call(|sockets, _| sockets.duplicate(fd, 0, false))
}

/// `dup2`: as [`dup3`], but two that are the same are no error.
pub fn dup2(process: &impl Process, fd: c_int, new: c_int) -> Result<i32, Errno> {
    if fd == new {
        return process.call(|sockets, _| sockets.flags(fd)).map(|_| fd);
    }
    dup3(process, fd, new, 0)
}

/// `dup3`. What is none of the library's own numbers is `EBADF`.
pub fn dup3(process: &impl Process, fd: c_int, new: c_int, flags: c_int) -> Result<i32, Errno> {
    if flags & !libc::O_CLOEXEC != 0 {
        return Err(Errno::EINVAL);
    }
    process.call(|sockets, now| sockets.duplicate_as(now, fd, new, flags & libc::O_CLOEXEC != 0))
}

/// `fcntl`: `F_GETFL`, `F_SETFL`, `F_GETFD`, `F_SETFD`, `F_DUPFD`, `F_DUPFD_CLOEXEC`, and
/// `F_GETLEASE`. `F_GETOWN`, `F_SETOWN`, `F_GETOWN_EX`, `F_SETOWN_EX`, `F_GETSIG` and `F_SETSIG`
/// only store their value.
///
/// # Safety
/// For `F_SETOWN_EX` and `F_GETOWN_EX` `argument` is the address of a `struct f_owner_ex` that can
/// be read or written, or 0.
pub unsafe fn fcntl(
    process: &impl Process,
    fd: c_int,
    command: c_int,
    argument: c_long,
) -> Result<i32, Errno> {
    if matches!(command, F_SETOWN_EX | F_GETOWN_EX) {
        // SAFETY: as the caller says.
        let place = unsafe { (argument as *mut Owner).as_mut() };
        return owner_by_kind(process, fd, command, place);
    }
    let argument = argument as c_int;
    process.call(|sockets, _| {
        let flags = sockets.flags(fd)?;
        match command {
            libc::F_GETFL => Ok(flags),
            libc::F_SETFL => sockets.set_flags(fd, argument).map(|()| 0),
            libc::F_GETFD => Ok(if sockets.closes_on_exec(fd)? { libc::FD_CLOEXEC } else { 0 }),
            libc::F_SETFD => sockets.set_close_on_exec(fd, argument & libc::FD_CLOEXEC != 0).map(|()| 0),
            libc::F_DUPFD => sockets.duplicate(fd, argument, false),
            libc::F_DUPFD_CLOEXEC => sockets.duplicate(fd, argument, true),
            libc::F_GETOWN => sockets.files.tells(fd).map(|tells| number_of(present(tells.owner))),
            libc::F_SETOWN => {
                sockets.files.tells(fd)?.owner = owner_to_be(argument)?;
                Ok(0)
            }
            F_GETSIG => sockets.files.tells(fd).map(|tells| tells.signal),
            F_SETSIG if (0..=SIGNALS).contains(&argument) => {
                sockets.files.tells(fd)?.signal = argument;
                Ok(0)
            }
            // Leases are for files of a disk.
            libc::F_GETLEASE => Ok(libc::F_UNLCK),
            libc::F_GETPIPE_SZ | libc::F_SETPIPE_SZ if !sockets.is_pipe(fd) => Err(Errno::EBADF),
            _ => Err(Errno::EINVAL),
        }
    })
}

/// `F_SETOWN_EX` and `F_GETOWN_EX` (Linux's `f_setown_ex`, `f_getown_ex`).
fn owner_by_kind(
    process: &impl Process,
    fd: c_int,
    command: c_int,
    place: Option<&mut Owner>,
) -> Result<i32, Errno> {
    process.call(|sockets, _| {
        let tells = sockets.files.tells(fd)?;
        let place = place.ok_or(Errno::EFAULT)?;
        if command == F_GETOWN_EX {
            *place = present(tells.owner);
            return Ok(0);
        }
        let is_there = |id: c_int| id > 0 && (is_present(id) || is_present(-id));
        match *place {
            Owner { kind, .. } if !(OWNER_THREAD..=OWNER_GROUP).contains(&kind) => Err(Errno::EINVAL),
            Owner { id, .. } if id != 0 && !is_there(id) => Err(Errno::ESRCH),
            owner => {
                tells.owner = owner;
                Ok(0)
            }
        }
    })
}

/// Linux's `F_SETOWN_EX` and `F_GETOWN_EX`, and whose number it is that they tell.
const F_SETOWN_EX: c_int = 15;
const F_GETOWN_EX: c_int = 16;
const OWNER_THREAD: c_int = 0;
const OWNER_PROCESS: c_int = 1;
const OWNER_GROUP: c_int = 2;

/// Linux's numbers, which libc does not name: the signal that tells of a socket.
const F_SETSIG: c_int = 10;
const F_GETSIG: c_int = 11;
/// Linux's `_NSIG`.
const SIGNALS: c_int = 64;

/// Is there such a process, or below zero such a group?
fn is_present(owner: c_int) -> bool {
    // SAFETY: the signal 0 is none, and only tells.
    let told = unsafe { libc::kill(owner, 0) };
    told == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Whom `F_SETOWN` names: a process, or below zero a group; 0: nobody (Linux's `f_setown`).
fn owner_to_be(owner: c_int) -> Result<Owner, Errno> {
    match owner {
        c_int::MIN => Err(Errno::EINVAL),
        _ if owner != 0 && !is_present(owner) => Err(Errno::ESRCH),
        0.. => Ok(Owner { kind: OWNER_PROCESS, id: owner }),
        _ => Ok(Owner { kind: OWNER_GROUP, id: -owner }),
    }
}

/// Who has gone by now is nobody (Linux's `f_getown`).
fn present(owner: Owner) -> Owner {
    let is_there = owner.id != 0 && is_present(number_of(owner));
    if is_there { owner } else { Owner { id: 0, ..owner } }
}

/// As `F_GETOWN` tells it.
fn number_of(owner: Owner) -> c_int {
    if owner.kind == OWNER_GROUP { -owner.id } else { owner.id }
}

/// `ioctl` with an int, or without.
///
/// # Safety
/// `argument` is null or an int that can be read and written.
pub unsafe fn ioctl(
    process: &impl Process,
    fd: c_int,
    request: u64,
    argument: *mut c_int,
) -> Result<i32, Errno> {
    let flags = process.call(|sockets, _| sockets.flags(fd))?;
    match request {
        FIOCLEX | FIONCLEX => {
            return process.call(|sockets, _| sockets.set_close_on_exec(fd, request == FIOCLEX)).map(|()| 0);
        }
        FIONBIO => {
            // SAFETY: as the caller says.
            let on = unsafe { *argument.as_ref().ok_or(Errno::EFAULT)? };
            let flags = if on == 0 { flags & !libc::O_NONBLOCK } else { flags | libc::O_NONBLOCK };
            return process.call(|sockets, _| sockets.set_flags(fd, flags)).map(|()| 0);
        }
        FIOSETOWN | SIOCSPGRP if process.call(|sockets, _| sockets.domain(fd)).is_ok() => {
            // SAFETY: as the caller says.
            let owner = unsafe { *argument.as_ref().ok_or(Errno::EFAULT)? };
            // SAFETY: a number is no address.
            return unsafe { fcntl(process, fd, libc::F_SETOWN, owner.into()) };
        }
        FIOGETOWN | SIOCGPGRP if process.call(|sockets, _| sockets.domain(fd)).is_ok() => {
            // SAFETY: likewise.
            let owner = unsafe { fcntl(process, fd, libc::F_GETOWN, 0) }?;
            // SAFETY: as the caller says.
            unsafe { *argument.as_mut().ok_or(Errno::EFAULT)? = owner };
            return Ok(0);
        }
        FIOASYNC => {
            // SAFETY: as the caller says.
            let on = unsafe { *argument.as_ref().ok_or(Errno::EFAULT)? };
            return if on == 0 { Ok(0) } else { Err(Errno::EOPNOTSUPP) };
        }
        _ => {}
    }
    let value = process.call(|sockets, _| sockets.ioctl(fd, request))?;
    // SAFETY: as the caller says.
    unsafe { *argument.as_mut().ok_or(Errno::EFAULT)? = value };
    Ok(0)
}

/// `pipe`.
///
/// # Safety
/// `fds` is null, or two ints there can be written.
pub unsafe fn pipe(process: &impl Process, fds: *mut c_int) -> Result<i32, Errno> {
    // SAFETY: as the caller says.
    unsafe { pipe2(process, fds, 0) }
}

/// `pipe2` with `O_NONBLOCK` and `O_CLOEXEC`.
///
/// # Safety
/// `fds` is null, or two ints there can be written.
pub unsafe fn pipe2(process: &impl Process, fds: *mut c_int, flags: c_int) -> Result<i32, Errno> {
    if flags & !(libc::O_NONBLOCK | libc::O_CLOEXEC) != 0 {
        return Err(Errno::EINVAL);
    }
    if fds.is_null() {
        return Err(Errno::EFAULT);
    }
    let (read, write) = process.call(|sockets, _| {
        let ends = sockets.pipe()?;
        for end in [ends.0, ends.1] {
            sockets.set_flags(end, flags)?;
            sockets.set_close_on_exec(end, flags & libc::O_CLOEXEC != 0)?;
        }
        Ok(ends)
    })?;
    // SAFETY: as the caller says.
    unsafe {
        fds.write(read);
        fds.add(1).write(write);
    }
    Ok(0)
}

/// `splice`; offsets must be null: neither a pipe nor a socket has one.
pub fn splice(
    process: &impl Process,
    (from, from_offset): (c_int, *const i64),
    (to, to_offset): (c_int, *const i64),
    len: usize,
    flags: u32,
) -> Result<usize, Errno> {
    let flags = flags.cast_signed();
    if len > 0 {
        let ends = ((from, !from_offset.is_null()), (to, !to_offset.is_null()));
        process.call(|sockets, _| sockets.allow_splice(ends.0, ends.1, len, flags))?;
    }
    let mut splice = Splice::new(from, to, len, flags);
    process.wait(|sockets, now| splice.attempt(sockets, now))
}

/// What `sendfile` reads at once: a pipe's pages, as with Linux.
const SENDFILE_CHUNK: usize = 65_536;

/// `sendfile`: from a file of the system into a socket. Without `offset` it uses and moves the
/// file's own position.
///
/// # Safety
/// `offset` is null or can be read and written.
pub unsafe fn sendfile(
    process: &impl Process,
    to: c_int,
    file: c_int,
    offset: *mut off_t,
    len: usize,
) -> Result<usize, Errno> {
    process.call(|sockets, _| {
        sockets.domain(to)?;
        if sockets.is_open(file) { Err(no_source_of_sendfile(offset)) } else { Ok(()) }
    })?;
    // SAFETY: as the caller says.
    let offset = unsafe { offset.as_mut() };
    let begin = match &offset {
        Some(offset) => **offset,
        // SAFETY: no memory is passed.
        None => of_system(unsafe { libc::lseek(file, 0, libc::SEEK_CUR) } as isize)? as off_t,
    };
    if begin < 0 {
        return Err(Errno::EINVAL);
    }
    let (sent, result) = send_chunks(process, to, (file, begin), len);
    let end = begin + sent as off_t;
    match offset {
        Some(offset) => *offset = end,
        // SAFETY: no memory is passed.
        None => drop(of_system(unsafe { libc::lseek(file, end, libc::SEEK_SET) } as isize)?),
    }
    if sent > 0 { Ok(sent) } else { result.map(|()| 0) }
}

/// Returns the error of `sendfile` from a socket: a socket is not a file and has no position
/// (Linux's `do_sendfile`).
pub fn no_source_of_sendfile(offset: *const off_t) -> Errno {
    if offset.is_null() { Errno::EINVAL } else { Errno::ESPIPE }
}

fn send_chunks(
    process: &impl Process,
    to: c_int,
    (file, begin): (c_int, off_t),
    len: usize,
) -> (usize, Result<(), Errno>) {
    let mut sent = 0;
    let mut buf = vec![0; len.min(SENDFILE_CHUNK)];
    while sent < len {
        let wanted = (len - sent).min(buf.len());
        // SAFETY: the buffer is that long.
        let got = unsafe { libc::pread(file, buf.as_mut_ptr().cast(), wanted, begin + sent as off_t) };
        let got = match of_system(got) {
            Ok(0) => return (sent, Ok(())),
            Ok(got) => got,
            Err(errno) => return (sent, Err(errno)),
        };
        let flags = if got == wanted && sent + got < len { libc::MSG_MORE } else { 0 };
        let mut send = Send::new(to, Source { data: &buf[..got], faulty: false }, flags, Destination::None);
        match process.wait_for(watch(&to), |sockets, now| send.attempt(sockets, now)) {
            Ok(taken) => sent += taken,
            Err(errno) => {
                let taken = process.call(|sockets, _| send.interrupted(sockets)).unwrap_or(0);
                return (sent + taken, Err(errno));
            }
        }
    }
    (sent, Ok(()))
}

/// What the system returned, or its errno.
fn of_system(returned: isize) -> Result<usize, Errno> {
    usize::try_from(returned)
        .map_err(|_| Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)))
}
