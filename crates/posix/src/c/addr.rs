//! Socket addresses.

use crate::destination::Destination;
use crate::errno::Errno;
use crate::name::name_bytes;
use crate::socket::Domain;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use libc::{sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage, socklen_t};

/// `sockaddr_in6` without `sin6_scope_id` (Linux's `SIN6_LEN_RFC2133`).
const SIN6_LEN_MIN: usize = 24;

/// An address that an application gave, for a socket of this family.
///
/// # Errors
/// `EFAULT`, `EINVAL` if it is too short for a family. What is no address of this socket's is told later.
///
/// # Safety
/// `addr` is null, or `len` bytes there can be read.
pub(super) unsafe fn read(
    domain: Domain,
    addr: *const sockaddr,
    len: socklen_t,
) -> Result<Destination, Errno> {
    let len = len as usize;
    if len > size_of::<sockaddr_storage>() {
        return Err(Errno::EINVAL);
    }
    if addr.is_null() && len > 0 {
        return Err(Errno::EFAULT);
    }
    if len < size_of::<sa_family_t>() {
        return Err(Errno::EINVAL);
    }
    // SAFETY: two bytes are there; no alignment is asked for.
    let family = unsafe { addr.cast::<sa_family_t>().read_unaligned() };
    match (i32::from(family), domain) {
        (libc::AF_UNSPEC, _) => Ok(Destination::Unspecified),
        (libc::AF_INET, Domain::V4) if len >= size_of::<sockaddr_in>() => {
            // SAFETY: that many bytes are there; any bits are a `sockaddr_in`.
            let v4 = unsafe { addr.cast::<sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Ok(Destination::Address(SocketAddr::new(ip.into(), u16::from_be(v4.sin_port))))
        }
        (libc::AF_INET6, Domain::V6) if len >= SIN6_LEN_MIN => {
            // SAFETY: a zeroed `sockaddr_in6` is one.
            let mut v6: sockaddr_in6 = unsafe { core::mem::zeroed() };
            let bytes = len.min(size_of::<sockaddr_in6>());
            // SAFETY: `bytes` are there, and fit; the two do not overlap.
            unsafe { core::ptr::copy_nonoverlapping(addr.cast::<u8>(), (&raw mut v6).cast::<u8>(), bytes) };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Ok(Destination::Address(SocketAddr::new(ip.into(), u16::from_be(v6.sin6_port))))
        }
        (_, Domain::V4) if len < size_of::<sockaddr_in>() => Ok(Destination::Unusable(Errno::EINVAL)),
        (_, Domain::V6) if len < SIN6_LEN_MIN => Ok(Destination::Unusable(Errno::EINVAL)),
        _ => Ok(Destination::Unusable(Errno::EAFNOSUPPORT)),
    }
}

/// What `bind` makes of `AF_UNSPEC`: to IPv4 it is any address, if none is named (Linux's "compatibility games").
///
/// # Errors
/// `EINVAL` if it is too short, else `EAFNOSUPPORT`.
///
/// # Safety
/// `len` bytes at `addr` can be read.
pub(super) unsafe fn unspecified(
    domain: Domain,
    addr: *const sockaddr,
    len: socklen_t,
) -> Result<SocketAddr, Errno> {
    let least = if domain == Domain::V4 { size_of::<sockaddr_in>() } else { SIN6_LEN_MIN };
    if (len as usize) < least {
        return Err(Errno::EINVAL);
    }
    if domain == Domain::V6 {
        return Err(Errno::EAFNOSUPPORT);
    }
    // SAFETY: that many bytes are there; any bits are a `sockaddr_in`.
    let v4 = unsafe { addr.cast::<sockaddr_in>().read_unaligned() };
    if v4.sin_addr.s_addr != 0 {
        return Err(Errno::EAFNOSUPPORT);
    }
    Ok(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), u16::from_be(v4.sin_port)))
}

/// Tells an application an address, cut to its room, and how long it is. Null pointers: it does not want to know.
///
/// # Safety
/// `addr` and `len` are null, or `*len` bytes at `addr` can be written.
pub(super) unsafe fn write(name: SocketAddr, addr: *mut sockaddr, len: *mut socklen_t) -> Result<(), Errno> {
    if addr.is_null() {
        return Ok(());
    }
    if len.is_null() {
        return Err(Errno::EFAULT);
    }
    // SAFETY: the caller says so.
    let room = unsafe { *len } as usize;
    if i32::try_from(room).is_err() {
        return Err(Errno::EINVAL);
    }
    let bytes = name_bytes(name);
    // SAFETY: no more than `room` bytes are written.
    unsafe {
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), addr.cast::<u8>(), bytes.len().min(room));
        *len = bytes.len() as socklen_t;
    }
    Ok(())
}
