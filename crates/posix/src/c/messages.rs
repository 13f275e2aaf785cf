//! Calls that send and receive.

use super::{Process, addr, memory, watch};
use crate::errno::Errno;
use crate::receive::Receive;
use crate::send::{Destination, Send, Source};
use libc::{c_int, c_void, cmsghdr, iovec, msghdr, sockaddr, socklen_t};

/// Linux's `TCP_CM_INQ`.
const TCP_CM_INQ: c_int = 36;

/// `write`.
///
/// # Safety
/// `buf` is null, or `len` bytes there can be read.
pub unsafe fn write(
    process: &impl Process,
    fd: c_int,
    buf: *const c_void,
    len: usize,
) -> Result<usize, Errno> {
    // SAFETY: as the caller says.
    unsafe { send_from(process, fd, &memory::single(buf, len), 0, Destination::None) }
}

/// `writev`.
///
/// # Safety
/// `iov` is null, or names `count` buffers that can be read.
pub unsafe fn writev(
    process: &impl Process,
    fd: c_int,
    iov: *const iovec,
    count: c_int,
) -> Result<usize, Errno> {
    // SAFETY: as the caller says.
    unsafe { send_from(process, fd, memory::iovecs(iov, memory::count(count)?)?, 0, Destination::None) }
}

/// `send` and `sendto`; `to` may be null.
///
/// # Safety
/// `buf` and `to` are null, or can be read for their lengths.
pub unsafe fn sendto(
    process: &impl Process,
    fd: c_int,
    (buf, len): (*const c_void, usize),
    flags: c_int,
    (to, to_len): (*const sockaddr, socklen_t),
) -> Result<usize, Errno> {
    // SAFETY: as the caller says.
    unsafe {
        let to = destination(process, fd, to, to_len)?;
        send_from(process, fd, &memory::single(buf, len), flags, to)
    }
}

/// `sendmsg`; ancillary data is not looked at.
///
/// # Safety
/// `message` is null, or it and what it names can be read.
pub unsafe fn sendmsg(
    process: &impl Process,
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> Result<usize, Errno> {
    // SAFETY: as the caller says.
    unsafe {
        let message = message.as_ref().ok_or(Errno::EFAULT)?;
        let to = destination(process, fd, message.msg_name.cast(), message.msg_namelen)?;
        send_from(process, fd, memory::iovecs(message.msg_iov, message.msg_iovlen)?, flags, to)
    }
}

/// An address is looked at only where it may mean something: TCP ignores it else.
unsafe fn destination(
    process: &impl Process,
    fd: c_int,
    to: *const sockaddr,
    len: socklen_t,
) -> Result<Destination, Errno> {
    if to.is_null() || len == 0 {
        return Ok(Destination::None);
    }
    let domain = process.call(|sockets, _| sockets.domain(fd))?;
    // SAFETY: as the caller says.
    unsafe { addr::read(domain, to, len) }
}

unsafe fn send_from(
    process: &impl Process,
    fd: c_int,
    iovecs: &[iovec],
    flags: c_int,
    to: Destination,
) -> Result<usize, Errno> {
    // SAFETY: as the caller says.
    let gathered = unsafe { memory::gather(iovecs) };
    if process.call(|sockets, _| sockets.is_pipe(fd)) {
        return process.wait(|sockets, now| sockets.write_pipe(now, fd, &gathered.bytes));
    }
    let mut send = Send::new(fd, Source { data: &gathered.bytes, faulty: gathered.faulty }, flags, to);
    match process.wait_for(watch(&fd), |sockets, now| send.attempt(sockets, now)) {
        Err(Errno::EINTR) if send.sent() > 0 => Ok(send.sent()),
        result => result,
    }
}

/// `read`.
///
/// # Safety
/// `buf` is null, or `len` bytes there can be written.
pub unsafe fn read(process: &impl Process, fd: c_int, buf: *mut c_void, len: usize) -> Result<usize, Errno> {
    // SAFETY: as the caller says.
    unsafe { receive_into(process, fd, &memory::single(buf, len), 0) }
}

/// `readv`.
///
/// # Safety
/// `iov` is null, or names `count` buffers that can be written.
pub unsafe fn readv(
    process: &impl Process,
    fd: c_int,
    iov: *const iovec,
    count: c_int,
) -> Result<usize, Errno> {
    // SAFETY: as the caller says.
    unsafe { receive_into(process, fd, memory::iovecs(iov, memory::count(count)?)?, 0) }
}

/// `recv` and `recvfrom`; a TCP socket tells no address.
///
/// # Safety
/// `buf` is null, or `len` bytes there can be written; `from_len` is null or can be written.
pub unsafe fn recvfrom(
    process: &impl Process,
    fd: c_int,
    (buf, len): (*mut c_void, usize),
    flags: c_int,
    from_len: *mut socklen_t,
) -> Result<usize, Errno> {
    // SAFETY: as the caller says.
    unsafe {
        let got = receive_into(process, fd, &memory::single(buf, len), flags)?;
        if let Some(from_len) = from_len.as_mut() {
            *from_len = 0;
        }
        Ok(got)
    }
}

/// `recvmsg`. With `TCP_INQ` it tells how much is left.
///
/// # Safety
/// `message` is null, or it can be written, and so can what it names.
pub unsafe fn recvmsg(
    process: &impl Process,
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
) -> Result<usize, Errno> {
    // SAFETY: as the caller says.
    unsafe {
        let message = message.as_mut().ok_or(Errno::EFAULT)?;
        let got = receive_into(process, fd, memory::iovecs(message.msg_iov, message.msg_iovlen)?, flags)?;
        message.msg_namelen = 0;
        message.msg_flags = 0;
        let left = process.call(|sockets, _| sockets.left_to_read(fd))?;
        let written = left.map_or(0, |left| tell(message, libc::IPPROTO_TCP, TCP_CM_INQ, left));
        message.msg_controllen = written;
        Ok(got)
    }
}

/// Writes one ancillary int; its length, or 0 if there is no room.
unsafe fn tell(message: &mut msghdr, level: c_int, kind: c_int, value: c_int) -> usize {
    let header = size_of::<cmsghdr>();
    let len = header + size_of::<c_int>();
    if message.msg_control.is_null() || message.msg_controllen < len {
        message.msg_flags |= libc::MSG_CTRUNC;
        return 0;
    }
    let to = message.msg_control.cast::<u8>();
    // SAFETY: `len` bytes are there; no alignment is asked for.
    unsafe {
        to.cast::<cmsghdr>().write_unaligned(cmsghdr {
            cmsg_len: len as _,
            cmsg_level: level,
            cmsg_type: kind,
        });
        to.add(header).cast::<c_int>().write_unaligned(value);
    }
    // The next one would begin at a multiple of a word.
    len.next_multiple_of(size_of::<usize>()).min(message.msg_controllen)
}

unsafe fn receive_into(
    process: &impl Process,
    fd: c_int,
    iovecs: &[iovec],
    flags: c_int,
) -> Result<usize, Errno> {
    let room = if flags & libc::MSG_TRUNC == 0 { memory::room(iovecs) } else { Some(discarded(iovecs)) };
    let Some(room) = room else {
        // That there is something for a bad place is an error; that there is nothing comes first.
        let mut receive = Receive::new(fd, flags | libc::MSG_PEEK);
        let got = process.wait_for(watch(&fd), |sockets, now| receive.attempt(sockets, now, &mut [0]))?;
        return if got > 0 { Err(Errno::EFAULT) } else { Ok(0) };
    };
    let mut buf = vec![0; room.min(process.call(|sockets, _| sockets.worth_reading(fd, room)))];
    let got = if process.call(|sockets, _| sockets.is_pipe(fd)) {
        process.wait(|sockets, now| sockets.read_pipe(now, fd, &mut buf))?
    } else {
        let mut receive = Receive::new(fd, flags);
        match process.wait_for(watch(&fd), |sockets, now| receive.attempt(sockets, now, &mut buf)) {
            Err(Errno::EINTR) if receive.copied() > 0 => receive.copied(),
            result => result?,
        }
    };
    if flags & libc::MSG_TRUNC == 0 {
        // SAFETY: the buffers have this room and can be written.
        unsafe { memory::scatter(&buf[..got], iovecs) };
    }
    Ok(got)
}

/// With `MSG_TRUNC` bytes are thrown away: no buffer is needed.
fn discarded(iovecs: &[iovec]) -> usize {
    iovecs.iter().fold(0_usize, |sum, entry| sum.saturating_add(entry.iov_len))
}
