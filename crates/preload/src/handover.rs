//! Sockets that become the kernel's: bound to an address that is not the stack's, or connected to a
//! loopback address that is not the stack's.
//!
//! The address decides, and a program gives it only with `bind` or `connect`. Until then the
//! placeholder of the socket is a TCP socket of the kernel, and every option is set on both. The
//! placeholder takes over with the flags, the name and the epoll registrations of the stack's
//! socket.

use crate::numbers::{self, ours};
use crate::real::{self, last_error};
use crate::{descriptors, instances};
use core::mem;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use libc::{
    c_int, epoll_event, sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage, socklen_t,
};
use posix::c::life::entered;
use posix::{Errno, RealProcess};

/// The call that gives a socket its address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Bind,
    Connect,
}

/// Hands a socket that the stack cannot serve to the kernel. Returns whether it is the kernel's
/// now.
///
/// # Errors
/// The kernel refuses the address that the socket is bound to.
///
/// # Safety
/// `addr` is null, or valid for reading `len` bytes.
pub(crate) unsafe fn give(
    number: c_int,
    by: By,
    addr: *const sockaddr,
    len: socklen_t,
) -> Result<bool, Errno> {
    // SAFETY: the caller guarantees it.
    let Some(ip) = (unsafe { ip_of(addr, len) }) else { return Ok(false) };
    let Some(fd) = ours(number) else { return Ok(false) };
    entered(|process| process.map_or(Ok(false), |process| give_for(process, (number, fd), by, ip)))
}

fn give_for(process: &RealProcess, (number, fd): (c_int, c_int), by: By, ip: IpAddr) -> Result<bool, Errno> {
    if ip.is_unspecified() || by == By::Connect && !ip.is_loopback() || !numbers::holds_tcp(number) {
        return Ok(false);
    }
    let (is_fresh, is_own) = process.call(|sockets, _| {
        let own = sockets.stack().addresses().any(|own| own == ip);
        (sockets.is_unconnected(fd), own || by == By::Bind && sockets.binds_anywhere(fd))
    });
    if is_own || !is_fresh {
        return Ok(false);
    }
    if by == By::Connect {
        bind_alike(process, number, fd)?;
    }
    let same: Vec<(c_int, c_int)> = process.call(|sockets, _| {
        numbers::all_sockets().filter(|(_, other)| sockets.is_same_file(fd, *other)).collect()
    });
    for (number, fd) in same {
        pass_on(process, number, fd);
    }
    Ok(true)
}

/// Binds the kernel's socket to the address of the stack's socket.
fn bind_alike(process: &RealProcess, number: c_int, fd: c_int) -> Result<(), Errno> {
    // SAFETY: zeros are a valid `sockaddr_storage`.
    let mut name: sockaddr_storage = unsafe { mem::zeroed() };
    let mut len = size_of::<sockaddr_storage>() as socklen_t;
    let place = (&raw mut name).cast::<sockaddr>();
    // SAFETY: `len` bytes are writable.
    unsafe {
        posix::c::name(process, fd, false, place, &raw mut len)?;
        // Without an address and a port the socket is not bound.
        let is_named = ip_of(place, len).is_some_and(|ip| !ip.is_unspecified())
            || (*place.cast::<sockaddr_in>()).sin_port != 0;
        if is_named && real::bind(number, place, len) != 0 {
            return Err(last_error());
        }
    }
    Ok(())
}

/// Leaves a number to its placeholder.
fn pass_on(process: &RealProcess, number: c_int, fd: c_int) {
    let (flags, cloexec) = process.call(|sockets, _| (sockets.flags(fd), sockets.closes_on_exec(fd)));
    let watching: Vec<(c_int, posix::Interest)> = process.call(|sockets, _| {
        let interest = |(epoll, part)| Some((epoll, sockets.epoll_interest(part, fd)?));
        instances::all().into_iter().filter_map(interest).collect()
    });
    // SAFETY: only numbers and an event of this function are passed. The kernel accepts all of them
    // for a new socket.
    unsafe {
        real::fcntl(number, libc::F_SETFL, flags.unwrap_or(0) as usize);
        real::fcntl(number, libc::F_SETFD, usize::from(cloexec.unwrap_or(true)));
        for (epoll, interest) in watching {
            let mut event = epoll_event { events: interest.events, u64: interest.data };
            real::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, number, &raw mut event);
        }
    }
    descriptors::forget(number);
}

/// Returns the IP address in a call's argument, a mapped one as IPv4.
///
/// # Safety
/// `addr` is null, or valid for reading `len` bytes.
unsafe fn ip_of(addr: *const sockaddr, len: socklen_t) -> Option<IpAddr> {
    let len = len as usize;
    if addr.is_null() || len < size_of::<sockaddr_in>() {
        return None;
    }
    // SAFETY: the bytes are readable; the reads need no alignment, and any bits are valid.
    unsafe {
        match c_int::from(addr.cast::<sa_family_t>().read_unaligned()) {
            libc::AF_INET => {
                let v4 = addr.cast::<sockaddr_in>().read_unaligned();
                Some(IpAddr::V4(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr))))
            }
            libc::AF_INET6 if len >= size_of::<sockaddr_in6>() => {
                let v6 = addr.cast::<sockaddr_in6>().read_unaligned();
                Some(IpAddr::V6(Ipv6Addr::from(v6.sin6_addr.s6_addr)).to_canonical())
            }
            _ => None,
        }
    }
}
