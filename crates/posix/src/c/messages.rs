//! Calls that send and receive.

use super::{Process, addr, control, memory, watch};
use crate::destination::Destination;
use crate::errno::Errno;
use crate::receive::Receive;
use crate::send::{Send, Source};
use libc::{c_int, c_uint, c_void, iovec, mmsghdr, msghdr, sockaddr, socklen_t, timespec};

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
    if memory::is_negative(len) {
        return process.call(|sockets, _| sockets.flags(fd)).and(Err(Errno::EFAULT));
    }
    // SAFETY: as the caller says.
    unsafe { send_from(process, fd, &memory::single(buf, len), (0, None), Destination::None) }
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
    unsafe {
        let iovecs = memory::iovecs(iov, memory::count(count)?)?;
        if iovecs.iter().all(|entry| entry.iov_len == 0) {
            // Linux's `vfs_writev` does not come to the socket.
            return process.call(|sockets, _| sockets.flags(fd)).map(|_| 0);
        }
        send_from(process, fd, iovecs, (0, None), Destination::None)
    }
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
        send_from(process, fd, &memory::single(buf, len), (flags, None), to)
    }
}

/// `sendmsg`. Of ancillary data, only `SO_TIMESTAMPING` has an effect.
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
        process.call(|sockets, _| sockets.domain(fd))?;
        let message = message.as_ref().ok_or(Errno::EFAULT)?;
        let iovecs = memory::iovecs_of_message(message)?;
        let to = destination(process, fd, message.msg_name.cast(), message.msg_namelen)?;
        let stamps = control::stamps(message)?;
        send_from(process, fd, iovecs, (flags, stamps), to)
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
    match unsafe { addr::read(domain, to, len) } {
        // Too short even for a family, which is only looked at where it matters.
        Err(Errno::EINVAL) if len < 2 => Ok(Destination::Unusable(Errno::EINVAL)),
        read => read,
    }
}

unsafe fn send_from(
    process: &impl Process,
    fd: c_int,
    iovecs: &[iovec],
    (flags, stamps): (c_int, Option<u32>),
    to: Destination,
) -> Result<usize, Errno> {
    // SAFETY: as the caller says.
    let gathered = unsafe { memory::gather(iovecs) };
    if process.call(|sockets, _| sockets.is_pipe(fd)) {
        return write_to_pipe(process, fd, &gathered.bytes);
    }
    let source = Source { data: &gathered.bytes, faulty: gathered.faulty };
    let mut send = Send::new(fd, source, flags, to).stamped(stamps);
    match process.wait_for(watch(&fd), |sockets, now| send.attempt(sockets, now)) {
        Err(Errno::EINTR) if send.sent() > 0 => process.call(|sockets, _| send.interrupted(sockets)),
        result => result,
    }
}

/// All of it, unless the end does not wait (Linux's `pipe_write`).
fn write_to_pipe(process: &impl Process, fd: c_int, bytes: &[u8]) -> Result<usize, Errno> {
    let waits = process.call(|sockets, _| sockets.flags(fd))? & libc::O_NONBLOCK == 0;
    let mut written = 0;
    loop {
        match process.wait(|sockets, now| sockets.write_pipe(now, fd, &bytes[written..])) {
            Err(_) if written > 0 => return Ok(written),
            result => written += result?,
        }
        if !waits || written == bytes.len() {
            return Ok(written);
        }
    }
}

/// `read`.
///
/// # Safety
/// `buf` is null, or `len` bytes there can be written.
pub unsafe fn read(process: &impl Process, fd: c_int, buf: *mut c_void, len: usize) -> Result<usize, Errno> {
    if memory::is_negative(len) {
        // Linux's `vfs_read`, which unlike `recv` does not shorten it.
        return process.call(|sockets, _| sockets.flags(fd)).and(Err(Errno::EFAULT));
    }
    // SAFETY: as the caller says.
    unsafe { read_into(process, fd, &memory::single(buf, len)) }
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
    unsafe { read_into(process, fd, memory::iovecs(iov, memory::count(count)?)?) }
}

/// `recv` and `recvfrom`. A TCP socket returns no address.
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

/// `sendmmsg`: returns the number of messages sent. The last one may be sent in part. Reports an
/// error only if no message was sent.
///
/// # Safety
/// `messages` is null, or `count` entries there can be read and written, and what they name can be
/// read.
pub unsafe fn sendmmsg(
    process: &impl Process,
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> Result<i32, Errno> {
    process.call(|sockets, _| sockets.domain(fd))?;
    // SAFETY: as the caller says.
    let messages = unsafe { memory::messages(messages, count.min(memory::SENT_AT_ONCE))? };
    let mut sent = 0;
    for message in messages {
        let flags = flags | message.msg_hdr.msg_flags & libc::MSG_EOR;
        // SAFETY: as the caller says.
        let (result, whole) = unsafe {
            let result = sendmsg(process, fd, &raw const message.msg_hdr, flags);
            (result, memory::iovecs_of_message(&message.msg_hdr).map_or(0, discarded))
        };
        match result {
            Ok(len) => message.msg_len = len as c_uint,
            Err(_) if sent > 0 => break,
            Err(errno) => return Err(errno),
        }
        sent += 1;
        if (message.msg_len as usize) < whole {
            break;
        }
    }
    Ok(sent)
}

/// `recvmsg`. Returns the ancillary data that the socket enabled: time stamps, bytes left
/// (`TCP_INQ`). With `MSG_ERRQUEUE` it returns an entry of the error queue.
///
/// # Safety
/// `message` is null, or it can be written, and so can what it names.
pub unsafe fn recvmsg(
    process: &impl Process,
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
) -> Result<usize, Errno> {
    process.call(|sockets, _| sockets.domain(fd))?;
    // SAFETY: as the caller says.
    unsafe {
        let message = message.as_mut().ok_or(Errno::EFAULT)?;
        let iovecs = memory::iovecs_of_message(message)?;
        if flags & libc::MSG_ERRQUEUE != 0 {
            let (entry, told) = process.call(|sockets, _| sockets.receive_error(fd))?;
            message.msg_flags = libc::MSG_ERRQUEUE;
            let got = hand_over(&entry.payload, iovecs)?;
            if got < entry.payload.len() {
                message.msg_flags |= libc::MSG_TRUNC;
            }
            let name = entry.name.filter(|_| !message.msg_name.is_null());
            match name {
                Some(name) => addr::write(name, message.msg_name.cast(), &raw mut message.msg_namelen)?,
                None => message.msg_namelen = 0,
            }
            control::tell(message, &told);
            return Ok(got);
        }
        let got = receive_into(process, fd, iovecs, flags)?;
        message.msg_namelen = 0;
        message.msg_flags = flags & libc::MSG_OOB;
        let peeked = flags & libc::MSG_PEEK != 0;
        let told = if flags & libc::MSG_OOB == 0 {
            process.call(|sockets, _| sockets.ancillary(fd, got, peeked))?
        } else {
            Vec::new()
        };
        control::tell(message, &told);
        Ok(got)
    }
}

/// `recvmmsg`: returns the number of messages filled. Reports an error if none was, else in the
/// next call. Checks `timeout` between messages and writes the rest of it back, like Linux.
///
/// # Safety
/// `messages` is null, or `count` entries there can be written, and so can what they name;
/// `timeout` is null or can be written.
pub unsafe fn recvmmsg(
    process: &impl Process,
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> Result<i32, Errno> {
    // SAFETY: as the caller says.
    let timeout = unsafe { timeout.as_mut() };
    let longest = timeout.as_deref().map(super::duration).transpose()?;
    process.call(|sockets, _| sockets.domain(fd))?;
    if flags & libc::MSG_ERRQUEUE == 0
        && let Some(errno) = process.call(|sockets, _| sockets.take_errno(fd))?
    {
        return Err(errno);
    }
    // SAFETY: as the caller says.
    let messages = unsafe { memory::messages(messages, count)? };
    let mut remaining = longest.map(|longest| (process.call(|_, now| now + longest), longest));
    let mut got = 0;
    let mut each = flags & !libc::MSG_WAITFORONE;
    for message in messages {
        // SAFETY: as the caller says.
        match unsafe { recvmsg(process, fd, &raw mut message.msg_hdr, each) } {
            Ok(len) => message.msg_len = len as c_uint,
            Err(errno) if got == 0 => return Err(errno),
            Err(Errno::EAGAIN | Errno::EINTR) => break,
            Err(errno) => {
                process.call(|sockets, _| sockets.leave_errno(fd, errno));
                break;
            }
        }
        got += 1;
        if flags & libc::MSG_WAITFORONE != 0 {
            each |= libc::MSG_DONTWAIT;
        }
        if let Some((deadline, left)) = &mut remaining {
            *left = process.call(|_, now| deadline.since(now));
            if left.is_zero() {
                break;
            }
        }
        if message.msg_hdr.msg_flags & libc::MSG_OOB != 0 {
            break;
        }
    }
    if let (Some(timeout), Some((_, left))) = (timeout, remaining)
        && got > 0
    {
        *timeout = timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos().into() };
    }
    Ok(got)
}

/// As much of `bytes` as there is room for.
unsafe fn hand_over(bytes: &[u8], iovecs: &[iovec]) -> Result<usize, Errno> {
    let room = memory::room(iovecs).ok_or(Errno::EFAULT)?;
    let got = bytes.len().min(room);
    // SAFETY: the buffers have this room and can be written.
    unsafe { memory::scatter(&bytes[..got], iovecs, 0) };
    Ok(got)
}

/// Unlike `recv`, to read nothing is done at once (Linux's `sock_read_iter`).
unsafe fn read_into(process: &impl Process, fd: c_int, iovecs: &[iovec]) -> Result<usize, Errno> {
    if iovecs.iter().all(|entry| entry.iov_len == 0) {
        return process.call(|sockets, _| sockets.flags(fd)).map(|_| 0);
    }
    // SAFETY: as the caller says.
    unsafe { receive_into(process, fd, iovecs, 0) }
}

unsafe fn receive_into(
    process: &impl Process,
    fd: c_int,
    iovecs: &[iovec],
    flags: c_int,
) -> Result<usize, Errno> {
    if flags & libc::MSG_ERRQUEUE != 0 {
        let (entry, _) = process.call(|sockets, _| sockets.receive_error(fd))?;
        // SAFETY: as the caller says.
        return unsafe { hand_over(&entry.payload, iovecs) };
    }
    let room = if flags & libc::MSG_TRUNC == 0 { memory::room(iovecs) } else { Some(discarded(iovecs)) };
    let Some(room) = room else {
        // That there is something for a bad place is an error; that there is nothing comes first.
        let mut receive = Receive::new(fd, flags | libc::MSG_PEEK);
        let got = process.wait_for(watch(&fd), |sockets, now| receive.attempt(sockets, now, &mut [0]))?;
        return if got > 0 { Err(Errno::EFAULT) } else { Ok(0) };
    };
    let mut buf = vec![0; room.min(process.call(|sockets, _| sockets.worth_reading(fd, room)))];
    let place = if flags & libc::MSG_TRUNC == 0 { iovecs } else { &[] };
    if process.call(|sockets, _| sockets.is_pipe(fd)) {
        let got = process.wait(|sockets, now| sockets.read_pipe(now, fd, &mut buf))?;
        // SAFETY: the buffers have this room and can be written.
        unsafe { memory::scatter(&buf[..got], place, 0) };
        return Ok(got);
    }
    let mut receive = Receive::new(fd, flags);
    let mut total = 0;
    loop {
        let part = (room - total).min(buf.len());
        let buf = &mut buf[..part];
        let (got, goes_on) =
            match process.wait_for(watch(&fd), |sockets, now| receive.attempt(sockets, now, buf)) {
                Err(Errno::EINTR) if total + receive.copied() > 0 => (receive.copied(), false),
                result => (result?, flags & (libc::MSG_WAITALL | libc::MSG_PEEK) == libc::MSG_WAITALL),
            };
        // SAFETY: the buffers have this room and can be written.
        unsafe { memory::scatter(&buf[..got.min(part)], place, total) };
        total += got;
        // What is waited for may be more than our buffer holds.
        if !goes_on || got < part || total >= room {
            return Ok(total);
        }
        receive.use_another_buffer();
    }
}

/// With `MSG_TRUNC` bytes are thrown away: no buffer is needed.
fn discarded(iovecs: &[iovec]) -> usize {
    iovecs.iter().fold(0_usize, |sum, entry| sum.saturating_add(entry.iov_len))
}
