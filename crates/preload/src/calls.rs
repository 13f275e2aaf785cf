//! Calls with one descriptor. `posix` serves the stack's, libc the kernel's. Pointers are passed on
//! as the program gave them.

use crate::handover::{self, By};
use crate::numbers::{Placeholder, holds_tcp, ours, publish_fresh};
use crate::stack::{self, with};
use crate::{real, unattended};
use core::ptr;
use libc::{
    c_int, c_uint, c_ulong, c_void, iovec, mmsghdr, msghdr, off_t, sockaddr, socklen_t, ssize_t, timespec,
};
use posix::Errno;
use posix::c::{self, returned, returned_int, returned_sent};

macro_rules! calls {
    ($(
        $name:ident ( $number:ident $(, $argument:ident : $type:ty)* ) -> $result:ty = $returned:path, |$process:ident, $fd:ident| $body:expr;
    )+) => {$(
        /// libc's function, for descriptors of the stack and of the kernel.
        ///
        /// # Safety
        /// The rules of libc's function hold.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($number: c_int $(, $argument: $type)*) -> $result {
            match ours($number) {
                // SAFETY: the caller guarantees it.
                Some($fd) => $returned(with(|$process| unsafe { $body })),
                // SAFETY: the caller guarantees it.
                None => unsafe { real::$name($number $(, $argument)*) },
            }
        }
    )+};
}

/// Returns the result of a call that sends without flags.
fn sent(result: Result<usize, Errno>) -> ssize_t {
    returned_sent(result, 0)
}

/// Accepts a connection under a new number. Without a free number the connection stays in the queue
/// (Linux's `__sys_accept4_file`).
fn accepted(accept: impl FnOnce() -> Result<c_int, Errno>) -> Result<c_int, Errno> {
    let place = Placeholder::new()?;
    number_for(accept()?, |fd| place.publish(fd))
}

fn number_for(new: c_int, publish: impl FnOnce(c_int) -> Result<c_int, Errno>) -> Result<c_int, Errno> {
    publish(new).inspect_err(|_| {
        // The descriptor is open, but has no number.
        let _ = with(|p| c::close(p, new));
    })
}

calls! {
    getsockname(number, addr: *mut sockaddr, len: *mut socklen_t) -> c_int = returned_int, |p, fd| c::name(p, fd, false, addr, len);
    getpeername(number, addr: *mut sockaddr, len: *mut socklen_t) -> c_int = returned_int, |p, fd| c::name(p, fd, true, addr, len);

    read(number, buf: *mut c_void, len: usize) -> ssize_t = returned, |p, fd| c::read(p, fd, buf, len);
    readv(number, iov: *const iovec, count: c_int) -> ssize_t = returned, |p, fd| c::readv(p, fd, iov, count);
    recv(number, buf: *mut c_void, len: usize, flags: c_int) -> ssize_t = returned,
        |p, fd| c::recvfrom(p, fd, (buf, len), flags, ptr::null_mut());
    recvfrom(number, buf: *mut c_void, len: usize, flags: c_int, addr: *mut sockaddr, addr_len: *mut socklen_t) -> ssize_t
        = returned, |p, fd| { let _ = addr; c::recvfrom(p, fd, (buf, len), flags, addr_len) };
    recvmsg(number, message: *mut msghdr, flags: c_int) -> ssize_t = returned, |p, fd| c::recvmsg(p, fd, message, flags);
    write(number, buf: *const c_void, len: usize) -> ssize_t = sent, |p, fd| c::write(p, fd, buf, len);
    writev(number, iov: *const iovec, count: c_int) -> ssize_t = sent, |p, fd| c::writev(p, fd, iov, count);

    getsockopt(number, level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t) -> c_int = returned_int,
        |p, fd| c::getsockopt(p, fd, (level, name), value, len);
    setsockopt(number, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int = returned_int,
        |p, fd| {
            if holds_tcp(number) {
                real::setsockopt(number, level, name, value, len);
            }
            c::setsockopt(p, fd, (level, name), value, len)
        };
    recvmmsg(number, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec) -> c_int = returned_int,
        |p, fd| c::recvmmsg(p, fd, messages, count, flags, timeout);
    ioctl(number, request: c_ulong, argument: usize) -> c_int = returned_int, |p, fd| c::ioctl(p, fd, request, argument as *mut c_int);
}

macro_rules! plain_calls {
    ($($name:ident ( $number:ident $(, $argument:ident : $type:ty)* ), |$process:ident, $fd:ident| $body:expr;)+) => {$(
        /// libc's function, for descriptors of the stack and of the kernel.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($number: c_int $(, $argument: $type)*) -> c_int {
            match ours($number) {
                Some($fd) => returned_int(with(|$process| $body)),
                // SAFETY: only numbers are passed.
                None => unsafe { real::$name($number $(, $argument)*) },
            }
        }
    )+};
}

plain_calls! {
    listen(number, backlog: c_int), |p, fd| c::listen(p, fd, backlog).inspect(|_| unattended::listens(number));
    shutdown(number, how: c_int), |p, fd| c::shutdown(p, fd, how);
}

/// `socket`. TCP sockets are the stack's.
#[unsafe(no_mangle)]
pub extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    if !stack::takes(domain, kind, protocol) {
        // SAFETY: only numbers are passed.
        return unsafe { real::socket(domain, kind, protocol) };
    }
    returned_int(stack::started(|p| {
        number_for(c::socket(p, domain, kind, protocol)?, |fd| publish_fresh(fd, domain))
    }))
}

/// `accept`: `accept4` without flags.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept(number: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { accept4(number, addr, len, 0) }
}

/// `accept4`.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept4(
    number: c_int,
    addr: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    match ours(number) {
        Some(fd) => {
            unattended::attend(number);
            // SAFETY: the caller guarantees it.
            returned_int(with(|p| accepted(|| unsafe { c::accept(p, fd, addr, len, flags) })))
        }
        // SAFETY: the caller guarantees it.
        None => unsafe { real::accept4(number, addr, len, flags) },
    }
}

/// `bind`. The socket becomes the kernel's if the address is not the stack's.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bind(number: c_int, addr: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe {
        match (ours(number), handover::give(number, By::Bind, addr, len)) {
            (Some(fd), Ok(false)) => returned_int(with(|p| c::bind(p, fd, addr, len))),
            (_, Ok(_)) => real::bind(number, addr, len),
            (_, Err(errno)) => returned_int(Err(errno)),
        }
    }
}

/// `connect`. The socket becomes the kernel's if the address is a loopback address of the kernel.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(number: c_int, addr: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe {
        match (ours(number), handover::give(number, By::Connect, addr, len)) {
            (Some(fd), Ok(false)) => returned_int(with(|p| c::connect(p, fd, addr, len))),
            (_, Ok(_)) => real::connect(number, addr, len),
            (_, Err(errno)) => returned_int(Err(errno)),
        }
    }
}

/// `send`.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(number: c_int, buf: *const c_void, len: usize, flags: c_int) -> ssize_t {
    match ours(number) {
        Some(fd) => {
            // SAFETY: the caller guarantees it.
            let result = with(|p| unsafe { c::sendto(p, fd, (buf, len), flags, (ptr::null(), 0)) });
            returned_sent(result, flags)
        }
        // SAFETY: the caller guarantees it.
        None => unsafe { real::send(number, buf, len, flags) },
    }
}

/// Decides whose socket a call is about that connects and sends.
///
/// # Safety
/// The rules of `connect` hold.
unsafe fn opened_by(number: c_int, flags: c_int, addr: *const sockaddr, len: socklen_t) -> Result<(), Errno> {
    if flags & libc::MSG_FASTOPEN != 0 {
        // SAFETY: the caller guarantees it.
        unsafe { handover::give(number, By::Connect, addr, len)? };
    }
    Ok(())
}

/// `sendto`.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    number: c_int,
    buf: *const c_void,
    len: usize,
    flags: c_int,
    addr: *const sockaddr,
    addr_len: socklen_t,
) -> ssize_t {
    // SAFETY: the caller guarantees it.
    if let Err(errno) = unsafe { opened_by(number, flags, addr, addr_len) } {
        return returned(Err(errno));
    }
    match ours(number) {
        Some(fd) => {
            // SAFETY: the caller guarantees it.
            let result = with(|p| unsafe { c::sendto(p, fd, (buf, len), flags, (addr, addr_len)) });
            returned_sent(result, flags)
        }
        // SAFETY: the caller guarantees it.
        None => unsafe { real::sendto(number, buf, len, flags, addr, addr_len) },
    }
}

/// `sendmsg`.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(number: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller guarantees it.
    let opened = unsafe {
        message.as_ref().map_or(Ok(()), |to| opened_by(number, flags, to.msg_name.cast(), to.msg_namelen))
    };
    if let Err(errno) = opened {
        return returned(Err(errno));
    }
    match ours(number) {
        // SAFETY: the caller guarantees it.
        Some(fd) => returned_sent(with(|p| unsafe { c::sendmsg(p, fd, message, flags) }), flags),
        // SAFETY: the caller guarantees it.
        None => unsafe { real::sendmsg(number, message, flags) },
    }
}

/// `sendmmsg`.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmmsg(
    number: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    match ours(number) {
        Some(fd) => {
            // SAFETY: the caller guarantees it.
            let result = with(|p| unsafe { c::sendmmsg(p, fd, messages, count, flags) });
            returned_sent(result.map(|count| count as usize), flags) as c_int
        }
        // SAFETY: the caller guarantees it.
        None => unsafe { real::sendmmsg(number, messages, count, flags) },
    }
}

/// `splice`. Between the stack's sockets and the kernel's pipes it fails with `EINVAL`; programs
/// then copy.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splice(
    from: c_int,
    from_offset: *mut i64,
    to: c_int,
    to_offset: *mut i64,
    len: usize,
    flags: c_uint,
) -> ssize_t {
    if ours(from).or(ours(to)).is_some() {
        return returned(Err(Errno::EINVAL));
    }
    // SAFETY: the caller guarantees it.
    unsafe { real::splice(from, from_offset, to, to_offset, len, flags) }
}

/// `sendfile`: from a file of the kernel into a socket of the stack.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile(out: c_int, file: c_int, offset: *mut off_t, len: usize) -> ssize_t {
    let Some(fd) = ours(out) else {
        // SAFETY: the caller guarantees it.
        return unsafe { real::sendfile(out, file, offset, len) };
    };
    if ours(file).is_some() {
        return returned(Err(c::no_source_of_sendfile(offset)));
    }
    // SAFETY: the caller guarantees it.
    sent(with(|p| unsafe { c::sendfile(p, fd, file, offset, len) }))
}

/// `sendfile` of a program that was built for large files.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile64(out: c_int, file: c_int, offset: *mut off_t, len: usize) -> ssize_t {
    // SAFETY: the caller guarantees it; with words of 64 bits both are the same.
    unsafe { sendfile(out, file, offset, len) }
}

/// `read` of a program built with `_FORTIFY_SOURCE`; `room` is the size of the buffer.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __read_chk(number: c_int, buf: *mut c_void, len: usize, room: usize) -> ssize_t {
    // SAFETY: the caller guarantees it; `len` is at most `room`.
    unsafe { read(number, buf, len.min(room)) }
}

/// `recv` of a program built with `_FORTIFY_SOURCE`.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recv_chk(
    number: c_int,
    buf: *mut c_void,
    len: usize,
    room: usize,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller guarantees it; `len` is at most `room`.
    unsafe { recv(number, buf, len.min(room), flags) }
}

/// `recvfrom` of a program built with `_FORTIFY_SOURCE`.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recvfrom_chk(
    number: c_int,
    buf: *mut c_void,
    len: usize,
    room: usize,
    flags: c_int,
    addr: *mut sockaddr,
    addr_len: *mut socklen_t,
) -> ssize_t {
    // SAFETY: the caller guarantees it; `len` is at most `room`.
    unsafe { recvfrom(number, buf, len.min(room), flags, addr, addr_len) }
}
