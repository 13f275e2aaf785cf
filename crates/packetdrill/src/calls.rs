//! The functions of the table. Each believes that its first argument is the userdata it was given
//! with, and hands on the rest; pointers are null or as long as their lengths say.

use crate::plugin::{PACKET_WAIT, Plugin};
use crate::shim;
use bytes::Bytes;
use core::ptr;
use core::time::Duration;
use libc::{
    c_int, c_long, c_longlong, c_uint, c_ulong, c_void, epoll_event, iovec, msghdr, nfds_t, pollfd, sockaddr,
    socklen_t, ssize_t, timeval,
};
use posix::c::{self, returned, returned_int};

type Ud = *mut c_void;

/// The plug-in behind the userdata.
unsafe fn plugin<'a>(ud: Ud) -> &'a Plugin {
    // SAFETY: packetdrill gives back what it was given, and nothing after `free`.
    unsafe { &*ud.cast::<Plugin>() }
}

macro_rules! calls {
    ($($name:ident ( $($argument:ident : $type:ty),* ) -> $result:ty = $returned:path, |$plugin:ident| $body:expr;)+) => {$(
        pub(crate) unsafe extern "C" fn $name(ud: Ud $(, $argument: $type)*) -> $result {
            // SAFETY: C's contract.
            unsafe {
                let $plugin = plugin(ud);
                $returned($body)
            }
        }
    )+};
}

calls! {
    socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int = returned_int, |p| c::socket(p, domain, kind, protocol);
    bind(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int = returned_int, |p| c::bind(p, fd, addr, len);
    listen(fd: c_int, backlog: c_int) -> c_int = returned_int, |p| c::listen(p, fd, backlog);
    accept(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int = returned_int, |p| c::accept(p, fd, addr, len, 0);
    connect(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int = returned_int, |p| c::connect(p, fd, addr, len);
    read(fd: c_int, buf: *mut c_void, len: usize) -> ssize_t = returned, |p| c::read(p, fd, buf, len);
    readv(fd: c_int, iov: *const iovec, count: c_int) -> ssize_t = returned, |p| c::readv(p, fd, iov, count);
    recv(fd: c_int, buf: *mut c_void, len: usize, flags: c_int) -> ssize_t = returned,
        |p| c::recvfrom(p, fd, (buf, len), flags, ptr::null_mut());
    recvfrom(fd: c_int, buf: *mut c_void, len: usize, flags: c_int, _addr: *mut sockaddr, addr_len: *mut socklen_t) -> ssize_t
        = returned, |p| c::recvfrom(p, fd, (buf, len), flags, addr_len);
    recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t = returned, |p| c::recvmsg(p, fd, message, flags);
    write(fd: c_int, buf: *const c_void, len: usize) -> ssize_t = returned, |p| c::write(p, fd, buf, len);
    writev(fd: c_int, iov: *const iovec, count: c_int) -> ssize_t = returned, |p| c::writev(p, fd, iov, count);
    send(fd: c_int, buf: *const c_void, len: usize, flags: c_int) -> ssize_t = returned,
        |p| c::sendto(p, fd, (buf, len), flags, (ptr::null(), 0));
    sendto(fd: c_int, buf: *const c_void, len: usize, flags: c_int, addr: *const sockaddr, addr_len: socklen_t) -> ssize_t
        = returned, |p| c::sendto(p, fd, (buf, len), flags, (addr, addr_len));
    sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t = returned, |p| c::sendmsg(p, fd, message, flags);
    fcntl(fd: c_int, command: c_int, argument: usize) -> c_int = returned_int,
        |p| c::fcntl(p, fd, command, argument as c_long);
    ioctl(fd: c_int, request: c_ulong, argument: usize) -> c_int = returned_int,
        |p| c::ioctl(p, fd, request, argument as *mut c_int);
    close(fd: c_int) -> c_int = returned_int, |p| c::close(p, fd);
    shutdown(fd: c_int, how: c_int) -> c_int = returned_int, |p| c::shutdown(p, fd, how);
    getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t) -> c_int = returned_int,
        |p| c::getsockopt(p, fd, (level, name), value, len);
    setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int = returned_int,
        |p| c::setsockopt(p, fd, (level, name), value, len);
    poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int = returned_int, |p| c::poll(p, fds, count, timeout);
    epoll_create(size: c_int) -> c_int = returned_int, |p| c::epoll_create(p, size);
    epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *const epoll_event) -> c_int = returned_int,
        |p| c::epoll_ctl(p, epoll, operation, fd, event);
    epoll_wait(epoll: c_int, events: *mut epoll_event, most: c_int, timeout: c_int) -> c_int = returned_int,
        |p| c::epoll_wait(p, epoll, events, most, timeout);
    pipe(fds: *mut c_int) -> c_int = returned_int, |p| c::pipe(p, fds);
    splice(from: c_int, from_offset: *mut i64, to: c_int, to_offset: *mut i64, len: usize, flags: c_uint) -> ssize_t = returned,
        |p| c::splice(p, (from, sought(from_offset)), (to, sought(to_offset)), len, flags);
}

/// Scripts have no null pointer to an offset: a place with a zero stands for it.
unsafe fn sought(offset: *const i64) -> *const i64 {
    // SAFETY: packetdrill passes null, or what it has read from the script.
    match unsafe { offset.as_ref() } {
        Some(0) => ptr::null(),
        _ => offset,
    }
}

pub(crate) unsafe extern "C" fn free(ud: Ud) {
    shim::forget();
    // SAFETY: the userdata came from a box, and packetdrill frees it once.
    drop(unsafe { Box::from_raw(ud.cast::<Plugin>()) });
}

pub(crate) unsafe extern "C" fn netdev_send(ud: Ud, packet: *const c_void, len: usize) -> c_int {
    // SAFETY: C's contract.
    let (plugin, packet) = unsafe { (plugin(ud), core::slice::from_raw_parts(packet.cast::<u8>(), len)) };
    plugin.exchange_files();
    plugin.process.inject(Bytes::copy_from_slice(packet));
    plugin.exchange_files();
    0
}

/// A length of 0 tells packetdrill that nothing will come, so that it does not ask for ever.
pub(crate) unsafe extern "C" fn netdev_receive(
    ud: Ud,
    packet: *mut c_void,
    len: *mut usize,
    micros: *mut c_longlong,
) -> c_int {
    // SAFETY: C's contract.
    unsafe {
        let plugin = plugin(ud);
        plugin.exchange_files();
        let sent = plugin.process.next_packet(PACKET_WAIT);
        plugin.exchange_files();
        let Some((at, bytes)) = sent.filter(|(_, bytes)| bytes.len() <= *len) else {
            *len = 0;
            return 0;
        };
        ptr::copy_nonoverlapping(bytes.as_ptr(), packet.cast::<u8>(), bytes.len());
        *len = bytes.len();
        *micros = (at.as_nanos() / 1000) as c_longlong;
    }
    0
}

pub(crate) unsafe extern "C" fn usleep(ud: Ud, micros: c_uint) -> c_int {
    // SAFETY: C's contract.
    let plugin = unsafe { plugin(ud) };
    plugin.exchange_files();
    plugin.process.sleep(Duration::from_micros(micros.into()));
    plugin.exchange_files();
    0
}

pub(crate) unsafe extern "C" fn gettimeofday(ud: Ud, time: *mut timeval, _zone: *mut c_void) -> c_int {
    // SAFETY: C's contract.
    unsafe {
        let micros = plugin(ud).process.time().as_nanos() / 1000;
        if !time.is_null() {
            time.write(timeval {
                tv_sec: (micros / 1_000_000) as libc::time_t,
                tv_usec: (micros % 1_000_000) as libc::suseconds_t,
            });
        }
    }
    0
}
