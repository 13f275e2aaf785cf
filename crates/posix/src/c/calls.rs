//! Calls about sockets, their names and options.

use super::{Process, addr, watch, zerocopy};
use crate::connect::Connect;
use crate::destination::Destination;
use crate::errno::Errno;
use crate::open::Accept;
use crate::options::{Asked, Given};
use libc::{c_int, c_void, sockaddr, socklen_t};

/// `socket`.
pub fn socket(process: &impl Process, domain: c_int, kind: c_int, protocol: c_int) -> Result<i32, Errno> {
    process.call(|sockets, _| sockets.socket(domain, kind, protocol))
}

/// `socketpair`: there is none of TCP, but it says so as Linux does.
///
/// # Safety
/// `fds` is null, or two ints there can be written.
pub unsafe fn socketpair(
    process: &impl Process,
    (domain, kind, protocol): (c_int, c_int, c_int),
    fds: *mut c_int,
) -> Result<i32, Errno> {
    if fds.is_null() {
        return Err(Errno::EFAULT);
    }
    let (first, second) = process.call(|sockets, _| sockets.socketpair(domain, kind, protocol))?;
    // SAFETY: as the caller says.
    unsafe {
        fds.write(first);
        fds.add(1).write(second);
    }
    Ok(0)
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
        Destination::Unusable(errno) => return Err(errno),
        // SAFETY: as the caller says.
        _ => unsafe { addr::unspecified(domain, addr, len)? },
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
    let mut accept = Accept::new(fd, flags);
    let (new, peer) = process.wait_for(watch(&fd), |sockets, now| accept.attempt(sockets, now))?;
    // SAFETY: as the caller says.
    if let Err(errno) = unsafe { addr::write(peer, addr, len) } {
        // Nobody would know its number.
        process.call(|sockets, now| sockets.close(now, new))?;
        return Err(errno);
    }
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
    let mut connect = Connect::to(fd, unsafe { addr::read(domain, addr, len)? });
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
    process.call(|sockets, _| sockets.domain(fd))?;
    let len = i32::try_from(len).map_err(|_| Errno::EINVAL)? as usize;
    let value = match len {
        _ if value.is_null() => Given::Faulty(len),
        // SAFETY: as the caller says.
        len => Given::Bytes(unsafe { core::slice::from_raw_parts(value.cast::<u8>(), len) }),
    };
    process.call(|sockets, now| sockets.set_option_given(now, fd, (level, name), value)).map(|()| 0)
}

/// `getsockopt`.
///
/// # Safety
/// `value` and `len` are null, or `*len` bytes at `value` can be read and written.
pub unsafe fn getsockopt(
    process: &impl Process,
    fd: c_int,
    (level, name): (c_int, c_int),
    value: *mut c_void,
    len: *mut socklen_t,
) -> Result<i32, Errno> {
    process.call(|sockets, _| sockets.has_option_level(fd, level))?;
    // SAFETY: as the caller says.
    let len = unsafe { len.as_mut() }.ok_or(Errno::EFAULT)?;
    if (level, name) == (libc::IPPROTO_TCP, libc::TCP_ZEROCOPY_RECEIVE) {
        // SAFETY: as the caller says.
        return unsafe { zerocopy::receive(process, fd, value.cast(), len) };
    }
    let asked = Asked { room: len.cast_signed(), faulty: value.is_null() };
    let told = match process.call(|sockets, now| sockets.option_asked(now, fd, (level, name), asked)) {
        Ok(told) => told,
        Err(untold) => {
            *len = untold.needed.map_or(*len, |needed| needed as socklen_t);
            return Err(untold.errno);
        }
    };
    if level != libc::SOL_SOCKET {
        // The length is told first, also where the value then cannot be.
        *len = told.len() as socklen_t;
    }
    if value.is_null() && !told.is_empty() {
        return Err(Errno::EFAULT);
    }
    // SAFETY: no more was told than there is room for.
    unsafe { core::ptr::copy_nonoverlapping(told.as_ptr(), value.cast::<u8>(), told.len()) };
    *len = told.len() as socklen_t;
    Ok(0)
}
