//! The twins of libc's calls. Pointers are null or as long as their lengths say, as C has it; what a null one means is said in the
//! header.

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
        /// Pointers are null, or lead to as much as their lengths and types say.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            // SAFETY: as the caller says.
            $returned(with(|$process| unsafe { $body }))
        }
    )+};
}

/// As [`calls`], for those without pointers.
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

/// Calls that make the first descriptor: without a stack there is no network to make it in.
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
/// `fds` is null, or two ints there can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_pipe(fds: *mut c_int) -> c_int {
    // SAFETY: as the caller says.
    opened(|p| unsafe { c::pipe(p, fds) })
}

/// `poll`. Without a stack a number is no descriptor.
///
/// # Safety
/// `fds` is null, or `count` entries there can be read and written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: as the caller says.
    opened(|p| unsafe { c::poll(p, fds, count, timeout) })
}

/// `pipe2`.
///
/// # Safety
/// `fds` is null, or two ints there can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_pipe2(fds: *mut c_int, flags: c_int) -> c_int {
    // SAFETY: as the caller says.
    opened(|p| unsafe { c::pipe2(p, fds, flags) })
}

/// `socketpair`.
///
/// # Safety
/// `fds` is null, or two ints there can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_socketpair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    fds: *mut c_int,
) -> c_int {
    // SAFETY: as the caller says.
    opened(|p| unsafe { c::socketpair(p, (domain, kind, protocol), fds) })
}

/// `ppoll`.
///
/// # Safety
/// `fds` is null, or `count` entries there can be read and written; `timeout` and `mask` are null or can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as the caller says.
    opened(|p| unsafe { c::ppoll(p, fds, count, timeout, mask) })
}

/// `select`.
///
/// # Safety
/// The sets are null, or can be read and written up to `count` bits; `timeout` is null, or can be read and written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: as the caller says.
    opened(|p| unsafe { c::select(p, count, [read.cast(), write.cast(), except.cast()], timeout) })
}

/// `pselect`.
///
/// # Safety
/// As of [`fb_select`]; `timeout` and `mask` are null or can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as the caller says.
    opened(|p| unsafe { c::pselect(p, count, [read.cast(), write.cast(), except.cast()], timeout, mask) })
}

/// `send`.
///
/// # Safety
/// `buf` is null, or `len` bytes there can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_send(fd: c_int, buf: *const c_void, len: usize, flags: c_int) -> ssize_t {
    // SAFETY: as the caller says.
    unsafe { fb_sendto(fd, buf, len, flags, ptr::null(), 0) }
}

/// `sendto`.
///
/// # Safety
/// `buf` and `addr` are null, or can be read for their lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_sendto(
    fd: c_int,
    buf: *const c_void,
    len: usize,
    flags: c_int,
    addr: *const sockaddr,
    addr_len: socklen_t,
) -> ssize_t {
    // SAFETY: as the caller says.
    let result = with(|p| unsafe { c::sendto(p, fd, (buf, len), flags, (addr, addr_len)) });
    returned_sent(result, flags)
}

/// `sendmsg`.
///
/// # Safety
/// `message` is null, or it and what it names can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: as the caller says.
    let result = with(|p| unsafe { c::sendmsg(p, fd, message, flags) });
    returned_sent(result, flags)
}

/// `sendmmsg`.
///
/// # Safety
/// `messages` is null, or `count` entries there can be read and written, and what they name can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_sendmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    // SAFETY: as the caller says.
    let result = with(|p| unsafe { c::sendmmsg(p, fd, messages, count, flags) });
    returned_sent(result.map(|count| count as usize), flags) as c_int
}

/// What C is told of a call that sends without flags.
fn sent(result: Result<usize, Errno>) -> ssize_t {
    returned_sent(result, 0)
}
