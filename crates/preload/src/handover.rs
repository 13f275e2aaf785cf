//! Sockets that turn out to be the kernel's: bound to an address that is not the stack's, or connected to a loopback address that is not.
//!
//! What a socket is for is known when it gets a name. Until then its placeholder is a TCP socket of the kernel's, which is told every option
//! too; it takes over with the flags, the name and the places in epoll instances that ours had.

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

/// What gives a socket its name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Bind,
    Connect,
}

/// Makes the kernel's what the stack cannot serve. `Ok`: true if it is the kernel's now.
///
/// # Errors
/// The kernel does not take the name that the socket has.
///
/// # Safety
/// `addr` is null, or `len` bytes there can be read.
pub(crate) unsafe fn give(
    number: c_int,
    by: By,
    addr: *const sockaddr,
    len: socklen_t,
) -> Result<bool, Errno> {
    // SAFETY: as the caller says.
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

/// The kernel's socket gets the name that ours has.
fn bind_alike(process: &RealProcess, number: c_int, fd: c_int) -> Result<(), Errno> {
    // SAFETY: zeroes are a `sockaddr_storage`.
    let mut name: sockaddr_storage = unsafe { mem::zeroed() };
    let mut len = size_of::<sockaddr_storage>() as socklen_t;
    let place = (&raw mut name).cast::<sockaddr>();
    // SAFETY: so many bytes are there.
    unsafe {
        posix::c::name(process, fd, false, place, &raw mut len)?;
        // Port and address are nothing: it has none.
        let is_named = ip_of(place, len).is_some_and(|ip| !ip.is_unspecified())
            || (*place.cast::<sockaddr_in>()).sin_port != 0;
        if is_named && real::bind(number, place, len) != 0 {
            return Err(last_error());
        }
    }
    Ok(())
}

/// This number is the kernel's from now on.
fn pass_on(process: &RealProcess, number: c_int, fd: c_int) {
    let (flags, cloexec) = process.call(|sockets, _| (sockets.flags(fd), sockets.closes_on_exec(fd)));
    let watching: Vec<(c_int, posix::Interest)> = process.call(|sockets, _| {
        let interest = |(epoll, part)| Some((epoll, sockets.epoll_interest(part, fd)?));
        instances::all().into_iter().filter_map(interest).collect()
    });
    // SAFETY: numbers, and an event of this function's own. The kernel refuses none of it for a new socket.
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

/// The address that a call names, if it is one of IP; one of IPv4 that is mapped as what it is.
///
/// # Safety
/// `addr` is null, or `len` bytes there can be read.
unsafe fn ip_of(addr: *const sockaddr, len: socklen_t) -> Option<IpAddr> {
    let len = len as usize;
    if addr.is_null() || len < size_of::<sockaddr_in>() {
        return None;
    }
    // SAFETY: so many bytes are there; no alignment is asked for, and any bits are such a structure.
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
