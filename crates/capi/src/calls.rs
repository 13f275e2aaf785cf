//! The twins of libc's calls.
//!
//! Pointers are null or valid for the length that goes with them. The header says what a null
//! pointer means for each call.

use core::ptr;
use libc::{
    c_int, c_long, c_uint, c_ulong, c_void, epoll_event, fd_set, iovec, mmsghdr, msghdr, nfds_t, off_t,
    pollfd, sigset_t, sockaddr, socklen_t, ssize_t, timespec, timeval,
};
use posix::Errno;
use posix::c::life::{current, with};
use posix::c::{self, returned, returned_int, returned_sent};

macro_rules! calls {
    ($(
        $name:ident ( $($argument:ident : $type:ty),* ) -> $result:ty = $returned:path, |$process:ident| $body:expr;
    )+) => {$(
        /// The twin of libc's call of this name; see `firstbyte.h`.
        ///
        /// # Safety
        /// Each pointer is null, or valid for its type and the length that goes with it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            // SAFETY: the caller guarantees it.
            $returned(with(|$process| unsafe { $body }))
        }
    )+};
}

/// Exports calls without pointers; otherwise like [`calls`].
macro_rules! plain_calls {
    ($(
        $name:ident ( $($argument:ident : $type:ty),* ), |$process:ident| $body:expr;
    )+) => {$(
        /// The twin of libc's call of this name; see `firstbyte.h`.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $type),*) -> c_int {
            returned_int(with(|$process| $body))
        }
    )+};
}

plain_calls! {
    fb_listen(fd: c_int, backlog: c_int), |p| c::listen(p, fd, backlog);
    fb_shutdown(fd: c_int, how: c_int), |p| c::shutdown(p, fd, how);
    fb_close(fd: c_int), |p| c::close(p, fd);
    fb_dup(fd: c_int), |p| c::dup(p, fd);
    fb_dup2(fd: c_int, new: c_int), |p| c::dup2(p, fd, new);
    fb_dup3(fd: c_int, new: c_int, flags: c_int), |p| c::dup3(p, fd, new, flags);
}

calls! {
    fb_fcntl_arg(fd: c_int, command: c_int, argument: c_long) -> c_int = returned_int, |p| c::fcntl(p, fd, command, argument);
    fb_bind(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int = returned_int, |p| c::bind(p, fd, addr, len);
    fb_accept(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int = returned_int, |p| c::accept(p, fd, addr, len, 0);
    fb_accept4(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int = returned_int,
        |p| c::accept(p, fd, addr, len, flags);
    fb_connect(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int = returned_int, |p| c::connect(p, fd, addr, len);
    fb_getsockname(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int = returned_int, |p| c::name(p, fd, false, addr, len);
    fb_getpeername(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int = returned_int, |p| c::name(p, fd, true, addr, len);

    fb_read(fd: c_int, buf: *mut c_void, len: usize) -> ssize_t = returned, |p| c::read(p, fd, buf, len);
    fb_readv(fd: c_int, iov: *const iovec, count: c_int) -> ssize_t = returned, |p| c::readv(p, fd, iov, count);
    fb_recv(fd: c_int, buf: *mut c_void, len: usize, flags: c_int) -> ssize_t = returned,
        |p| c::recvfrom(p, fd, (buf, len), flags, ptr::null_mut());
    fb_recvfrom(fd: c_int, buf: *mut c_void, len: usize, flags: c_int, _addr: *mut sockaddr, addr_len: *mut socklen_t) -> ssize_t
        = returned, |p| c::recvfrom(p, fd, (buf, len), flags, addr_len);
    fb_recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t = returned, |p| c::recvmsg(p, fd, message, flags);

    fb_write(fd: c_int, buf: *const c_void, len: usize) -> ssize_t = sent, |p| c::write(p, fd, buf, len);
    fb_writev(fd: c_int, iov: *const iovec, count: c_int) -> ssize_t = sent, |p| c::writev(p, fd, iov, count);

    fb_ioctl_arg(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int = returned_int,
        |p| c::ioctl(p, fd, request, argument.cast());
    fb_getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t) -> c_int = returned_int,
        |p| c::getsockopt(p, fd, (level, name), value, len);
    fb_setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int = returned_int,
        |p| c::setsockopt(p, fd, (level, name), value, len);

    fb_epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int = returned_int,
        |p| c::epoll_ctl(p, epoll, operation, fd, event);
    fb_epoll_wait(epoll: c_int, events: *mut epoll_event, most: c_int, timeout: c_int) -> c_int = returned_int,
        |p| c::epoll_wait(p, epoll, events, most, timeout);

    fb_sendfile(to: c_int, file: c_int, offset: *mut off_t, len: usize) -> ssize_t = sent, |p| c::sendfile(p, to, file, offset, len);

    fb_recvmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec) -> c_int = returned_int,
        |p| c::recvmmsg(p, fd, messages, count, flags, timeout);
    fb_epoll_pwait(epoll: c_int, events: *mut epoll_event, most: c_int, timeout: c_int, mask: *const sigset_t) -> c_int
        = returned_int, |p| c::epoll_pwait(p, epoll, (events, most), timeout, mask);
    fb_epoll_pwait2(epoll: c_int, events: *mut epoll_event, most: c_int, timeout: *const timespec, mask: *const sigset_t) -> c_int
        = returned_int, |p| c::epoll_pwait2(p, epoll, (events, most), timeout, mask);
}

/// `splice`.
#[unsafe(no_mangle)]
pub extern "C" fn fb_splice(
    from: c_int,
    from_offset: *mut i64,
    to: c_int,
    to_offset: *mut i64,
    len: usize,
    flags: c_uint,
) -> ssize_t {
    sent(with(|p| c::splice(p, (from, from_offset), (to, to_offset), len, flags)))
}

/// Runs a call that needs no descriptor. Without a stack it fails with `ENETDOWN`.
fn opened(open: impl FnOnce(&'static posix::RealProcess) -> Result<c_int, Errno>) -> c_int {
    returned_int(current().ok_or(Errno::ENETDOWN).and_then(open))
}

/// `socket`.
#[unsafe(no_mangle)]
pub extern "C" fn fb_socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    opened(|p| c::socket(p, domain, kind, protocol))
}

/// `epoll_create`.
#[unsafe(no_mangle)]
pub extern "C" fn fb_epoll_create(size: c_int) -> c_int {
    opened(|p| c::epoll_create(p, size))
}

/// `epoll_create1`.
#[unsafe(no_mangle)]
pub extern "C" fn fb_epoll_create1(flags: c_int) -> c_int {
    opened(|p| c::epoll_create1(p, flags))
}

/// `pipe`.
///
/// # Safety
/// `fds` is null, or valid for writing two integers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_pipe(fds: *mut c_int) -> c_int {
    // SAFETY: the caller guarantees it.
    opened(|p| unsafe { c::pipe(p, fds) })
}

/// `poll`. Fails with `ENETDOWN` if no stack runs.
///
/// # Safety
/// `fds` is null, or valid for reading and writing `count` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: the caller guarantees it.
    opened(|p| unsafe { c::poll(p, fds, count, timeout) })
}

/// `pipe2`.
///
/// # Safety
/// `fds` is null, or valid for writing two integers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_pipe2(fds: *mut c_int, flags: c_int) -> c_int {
    // SAFETY: the caller guarantees it.
    opened(|p| unsafe { c::pipe2(p, fds, flags) })
}

/// `socketpair`.
///
/// # Safety
/// `fds` is null, or valid for writing two integers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_socketpair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    fds: *mut c_int,
) -> c_int {
    // SAFETY: the caller guarantees it.
    opened(|p| unsafe { c::socketpair(p, (domain, kind, protocol), fds) })
}

/// `ppoll`.
///
/// # Safety
/// `fds` is null, or valid for reading and writing `count` entries. `timeout` and `mask` are null
/// or readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller guarantees it.
    opened(|p| unsafe { c::ppoll(p, fds, count, timeout, mask) })
}

/// `select`.
///
/// # Safety
/// Each set is null, or valid for reading and writing `count` bits. `timeout` is null, or valid for
/// reading and writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: the caller guarantees it.
    opened(|p| unsafe { c::select(p, count, [read.cast(), write.cast(), except.cast()], timeout) })
}

/// `pselect`.
///
/// # Safety
/// The rules of [`fb_select`] hold. `timeout` and `mask` are null or readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller guarantees it.
    opened(|p| unsafe { c::pselect(p, count, [read.cast(), write.cast(), except.cast()], timeout, mask) })
}

/// `send`.
///
/// # Safety
/// `buf` is null, or valid for reading `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_send(fd: c_int, buf: *const c_void, len: usize, flags: c_int) -> ssize_t {
    // SAFETY: the caller guarantees it.
    unsafe { fb_sendto(fd, buf, len, flags, ptr::null(), 0) }
}

/// `sendto`.
///
/// # Safety
/// `buf` and `addr` are null, or valid for reading their lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_sendto(
    fd: c_int,
    buf: *const c_void,
    len: usize,
    flags: c_int,
    addr: *const sockaddr,
    addr_len: socklen_t,
) -> ssize_t {
    // SAFETY: the caller guarantees it.
    let result = with(|p| unsafe { c::sendto(p, fd, (buf, len), flags, (addr, addr_len)) });
    returned_sent(result, flags)
}

/// `sendmsg`.
///
/// # Safety
/// `message` is null, or it and the memory that it points to are readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller guarantees it.
    let result = with(|p| unsafe { c::sendmsg(p, fd, message, flags) });
    returned_sent(result, flags)
}

/// `sendmmsg`.
///
/// # Safety
/// `messages` is null, or valid for reading and writing `count` entries. The memory that they point
/// to is readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_sendmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller guarantees it.
    let result = with(|p| unsafe { c::sendmmsg(p, fd, messages, count, flags) });
    returned_sent(result.map(|count| count as usize), flags) as c_int
}

/// Returns the result of a call that sends without flags, in the form that C expects.
fn sent(result: Result<usize, Errno>) -> ssize_t {
    returned_sent(result, 0)
}
