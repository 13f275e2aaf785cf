//! Calls about descriptors, names, options and readiness.

use super::{Process, addr, deadline, watch};
use crate::connect::Connect;
use crate::epoll::{Control, Interest};
use crate::errno::Errno;
use crate::ioctl::FIONBIO;
use crate::readiness::{PollFd, Ready};
use crate::real_time::Watch;
use crate::send::Destination;
use core::net::SocketAddr;
use libc::{c_int, c_short, c_void, epoll_event, nfds_t, pollfd, sockaddr, socklen_t};

/// Linux's `INR_OPEN_MAX`, the most entries of `poll` without a raised limit.
const POLL_MAX: usize = 1 << 20;

/// `socket`.
pub fn socket(process: &impl Process, domain: c_int, kind: c_int, protocol: c_int) -> Result<i32, Errno> {
    process.call(|sockets, _| sockets.socket(domain, kind, protocol))
}

/// `bind`.
///
/// # Safety
/// `addr` is null, or `len` bytes there can be read.
pub unsafe fn bind(
    process: &impl Process,
    fd: c_int,
    addr: *const sockaddr,
    len: socklen_t,
) -> Result<i32, Errno> {
    let domain = process.call(|sockets, _| sockets.domain(fd))?;
    // SAFETY: as the caller says.
    let name = match unsafe { addr::read(domain, addr, len)? } {
        Destination::Address(name) => name,
        _ => return Err(Errno::EAFNOSUPPORT),
    };
    process.call(|sockets, _| sockets.bind(fd, name)).map(|()| 0)
}

/// `listen`.
pub fn listen(process: &impl Process, fd: c_int, backlog: c_int) -> Result<i32, Errno> {
    process.call(|sockets, now| sockets.listen(now, fd, backlog)).map(|()| 0)
}

/// `accept4`.
///
/// # Safety
/// `addr` and `len` are null, or `*len` bytes at `addr` can be written.
pub unsafe fn accept(
    process: &impl Process,
    fd: c_int,
    addr: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> Result<i32, Errno> {
    let (new, peer) = process.wait_for(watch(&fd), |sockets, now| sockets.accept(now, fd, flags))?;
    // SAFETY: as the caller says.
    unsafe { addr::write(peer, addr, len)? };
    Ok(new)
}

/// `connect`.
///
/// # Safety
/// `addr` is null, or `len` bytes there can be read.
pub unsafe fn connect(
    process: &impl Process,
    fd: c_int,
    addr: *const sockaddr,
    len: socklen_t,
) -> Result<i32, Errno> {
    let domain = process.call(|sockets, _| sockets.domain(fd))?;
    // SAFETY: as the caller says.
    let peer: Option<SocketAddr> = match unsafe { addr::read(domain, addr, len)? } {
        Destination::Address(peer) => Some(peer),
        _ => None,
    };
    let mut connect = Connect::new(fd, peer);
    process.wait_for(watch(&fd), |sockets, now| connect.attempt(sockets, now)).map(|()| 0)
}

/// `getsockname` and `getpeername`.
///
/// # Safety
/// `*len` bytes at `addr` can be written; or one is null.
pub unsafe fn name(
    process: &impl Process,
    fd: c_int,
    of_peer: bool,
    addr: *mut sockaddr,
    len: *mut socklen_t,
) -> Result<i32, Errno> {
    let name =
        process.call(|sockets, _| if of_peer { sockets.peer_name(fd) } else { sockets.local_name(fd) })?;
    if addr.is_null() {
        return Err(Errno::EFAULT);
    }
    // SAFETY: as the caller says.
    unsafe { addr::write(name, addr, len)? };
    Ok(0)
}

/// `shutdown`.
pub fn shutdown(process: &impl Process, fd: c_int, how: c_int) -> Result<i32, Errno> {
    process.call(|sockets, now| sockets.shutdown(now, fd, how)).map(|()| 0)
}

/// `close`.
pub fn close(process: &impl Process, fd: c_int) -> Result<i32, Errno> {
    process.call(|sockets, now| sockets.close(now, fd)).map(|()| 0)
}

/// `fcntl`: `F_GETFL`, `F_SETFL`, `F_GETFD`, `F_SETFD`.
pub fn fcntl(process: &impl Process, fd: c_int, command: c_int, argument: c_int) -> Result<i32, Errno> {
    process.call(|sockets, _| match command {
        libc::F_GETFL => sockets.flags(fd),
        libc::F_SETFL => sockets.set_flags(fd, argument).map(|()| 0),
        // Descriptors of a library do not survive exec, whatever is asked for.
        libc::F_GETFD => sockets.flags(fd).map(|_| libc::FD_CLOEXEC),
        libc::F_SETFD => sockets.flags(fd).map(|_| 0),
        _ => Err(Errno::EINVAL),
    })
}

/// `ioctl` with an int.
///
/// # Safety
/// `argument` is null or an int that can be read and written.
pub unsafe fn ioctl(
    process: &impl Process,
    fd: c_int,
    request: u64,
    argument: *mut c_int,
) -> Result<i32, Errno> {
    if request == FIONBIO {
        // SAFETY: as the caller says.
        let on = unsafe { *argument.as_ref().ok_or(Errno::EFAULT)? };
        let flags = if on == 0 { 0 } else { libc::O_NONBLOCK };
        return process.call(|sockets, _| sockets.set_flags(fd, flags)).map(|()| 0);
    }
    let value = process.call(|sockets, _| sockets.ioctl(fd, request))?;
    // SAFETY: as the caller says.
    unsafe { *argument.as_mut().ok_or(Errno::EFAULT)? = value };
    Ok(0)
}

/// `setsockopt`.
///
/// # Safety
/// `value` is null, or `len` bytes there can be read.
pub unsafe fn setsockopt(
    process: &impl Process,
    fd: c_int,
    (level, name): (c_int, c_int),
    value: *const c_void,
    len: socklen_t,
) -> Result<i32, Errno> {
    let len = i32::try_from(len).map_err(|_| Errno::EINVAL)? as usize;
    let value = match len {
        0 => &[],
        _ if value.is_null() => return Err(Errno::EFAULT),
        // SAFETY: as the caller says.
        len => unsafe { core::slice::from_raw_parts(value.cast::<u8>(), len) },
    };
    process.call(|sockets, now| sockets.set_option(now, fd, level, name, value)).map(|()| 0)
}

/// `getsockopt`.
///
/// # Safety
/// `value` and `len` are null, or `*len` bytes at `value` can be written.
pub unsafe fn getsockopt(
    process: &impl Process,
    fd: c_int,
    (level, name): (c_int, c_int),
    value: *mut c_void,
    len: *mut socklen_t,
) -> Result<i32, Errno> {
    // SAFETY: as the caller says.
    let len = unsafe { len.as_mut() }.ok_or(Errno::EFAULT)?;
    let room = i32::try_from(*len).map_err(|_| Errno::EINVAL)? as usize;
    let bytes = process.call(|sockets, now| sockets.option(now, fd, level, name, room))?;
    let told = bytes.len().min(room);
    if value.is_null() && told > 0 {
        return Err(Errno::EFAULT);
    }
    // SAFETY: `told` bytes are there.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), value.cast::<u8>(), told) };
    *len = told as socklen_t;
    Ok(0)
}

/// `poll`.
///
/// # Safety
/// `fds` is null, or `count` entries there can be read and written.
pub unsafe fn poll(
    process: &impl Process,
    fds: *mut pollfd,
    count: nfds_t,
    timeout_ms: c_int,
) -> Result<i32, Errno> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let entries: &mut [pollfd] = match count {
        0 => &mut [],
        _ if count > POLL_MAX => return Err(Errno::EINVAL),
        _ if fds.is_null() => return Err(Errno::EFAULT),
        // SAFETY: as the caller says.
        _ => unsafe { core::slice::from_raw_parts_mut(fds, count) },
    };
    let asked = |entry: &pollfd| PollFd {
        fd: entry.fd,
        events: Ready::from_bits_truncate(u32::from(entry.events as u16)),
        found: Ready::empty(),
    };
    let mut values: Vec<PollFd> = entries.iter().map(asked).collect();
    let mut until = None;
    let fds: Vec<c_int> = entries.iter().map(|entry| entry.fd).filter(|fd| *fd >= 0).collect();
    let watched = Watch { fds: if fds.is_empty() { &[-1] } else { &fds }, is_poll: true };
    let ready = process.wait_for(watched, |sockets, now| {
        let until = *until.get_or_insert(deadline(now, timeout_ms));
        sockets.poll(now, &mut values, until)
    })?;
    for (entry, value) in entries.iter_mut().zip(&values) {
        entry.revents = value.found.bits() as c_short;
    }
    Ok(ready as i32)
}

/// `epoll_create`.
pub fn epoll_create(process: &impl Process, size: c_int) -> Result<i32, Errno> {
    if size <= 0 {
        return Err(Errno::EINVAL);
    }
    process.call(|sockets, _| sockets.epoll_create())
}

/// `epoll_ctl`.
///
/// # Safety
/// `event` is null or can be read.
pub unsafe fn epoll_ctl(
    process: &impl Process,
    epoll: c_int,
    operation: c_int,
    fd: c_int,
    event: *const epoll_event,
) -> Result<i32, Errno> {
    let interest = || {
        if event.is_null() {
            return Err(Errno::EFAULT);
        }
        // SAFETY: as the caller says.
        let event = unsafe { event.read_unaligned() };
        Ok(Interest { events: event.events, data: event.u64 })
    };
    let control = match operation {
        libc::EPOLL_CTL_ADD => Control::Add(interest()?),
        libc::EPOLL_CTL_MOD => Control::Modify(interest()?),
        libc::EPOLL_CTL_DEL => Control::Delete,
        _ => return Err(Errno::EINVAL),
    };
    process.call(|sockets, _| sockets.epoll_ctl(epoll, fd, control)).map(|()| 0)
}

/// `epoll_wait`.
///
/// # Safety
/// `events` is null, or `most` entries there can be written.
pub unsafe fn epoll_wait(
    process: &impl Process,
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout_ms: c_int,
) -> Result<i32, Errno> {
    let most = usize::try_from(most).ok().filter(|most| *most > 0).ok_or(Errno::EINVAL)?;
    if events.is_null() {
        return Err(Errno::EFAULT);
    }
    let mut until = None;
    let found = process.wait_for(Watch { is_poll: true, ..watch(&epoll) }, |sockets, now| {
        let until = *until.get_or_insert(deadline(now, timeout_ms));
        sockets.epoll_wait(now, epoll, most, until)
    })?;
    for (at, interest) in found.iter().enumerate() {
        let event = epoll_event { events: interest.events, u64: interest.data };
        // SAFETY: no more than `most` were found.
        unsafe { events.add(at).write_unaligned(event) };
    }
    Ok(found.len() as i32)
}

/// `pipe`.
///
/// # Safety
/// `fds` is null, or two ints there can be written.
pub unsafe fn pipe(process: &impl Process, fds: *mut c_int) -> Result<i32, Errno> {
    if fds.is_null() {
        return Err(Errno::EFAULT);
    }
    let (read, write) = process.call(|sockets, _| sockets.pipe())?;
    // SAFETY: as the caller says.
    unsafe {
        fds.write(read);
        fds.add(1).write(write);
    }
    Ok(0)
}

/// `splice`; offsets must be null, or zero where a caller cannot pass null.
///
/// # Safety
/// The offsets are null or can be read.
pub unsafe fn splice(
    process: &impl Process,
    (from, from_offset): (c_int, *const i64),
    (to, to_offset): (c_int, *const i64),
    len: usize,
    flags: u32,
) -> Result<usize, Errno> {
    // SAFETY: as the caller says.
    let sought = unsafe { [from_offset.as_ref(), to_offset.as_ref()] };
    if sought.into_iter().flatten().any(|offset| *offset != 0) {
        return Err(Errno::ESPIPE);
    }
    process.wait(|sockets, now| sockets.splice(now, from, to, len, flags as i32))
}
