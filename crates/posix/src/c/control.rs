//! Ancillary data: what `recvmsg` tells beside the bytes, and what `sendmsg` may say.

use crate::errno::Errno;
use crate::error_queue::{Ancillary, QueuedError};
use core::net::IpAddr;
use core::time::Duration;
use libc::{c_int, cmsghdr, msghdr};

/// Linux's `TCP_CM_INQ`.
const TCP_CM_INQ: c_int = 36;
/// Linux's numbers with 64-bit seconds.
const SO_TIMESTAMP_NEW: c_int = 63;
const SO_TIMESTAMPNS_NEW: c_int = 64;
const SO_TIMESTAMPING_NEW: c_int = 65;
/// `SOF_TIMESTAMPING_TX_RECORD_MASK`.
const RECORDED: u32 = 1 << 0 | 1 << 1 | 1 << 8 | 1 << 9 | 1 << 18;

const HEADER: usize = size_of::<cmsghdr>();

/// More ancillary data than this is refused (Linux's `____sys_sendmsg`).
const CONTROL_MOST: usize = i32::MAX as usize;

/// Writes what there is room for, as Linux's `put_cmsg` does: what does not fit is cut, and `MSG_CTRUNC` says so.
///
/// # Safety
/// `msg_control` is null, or `msg_controllen` bytes there can be written.
pub(super) unsafe fn tell(message: &mut msghdr, told: &[Ancillary]) {
    let mut used = 0;
    for (level, kind, data) in told.iter().map(encode) {
        let left = message.msg_controllen - used;
        if message.msg_control.is_null() || left < HEADER {
            message.msg_flags |= libc::MSG_CTRUNC;
            break;
        }
        let whole = HEADER + data.len();
        let len = whole.min(left);
        if len < whole {
            message.msg_flags |= libc::MSG_CTRUNC;
        }
        // SAFETY: `used + len` bytes are there; no alignment is asked for.
        unsafe {
            let to = message.msg_control.cast::<u8>().add(used);
            let header = cmsghdr { cmsg_len: len as _, cmsg_level: level, cmsg_type: kind };
            to.cast::<cmsghdr>().write_unaligned(header);
            core::ptr::copy_nonoverlapping(data.as_ptr(), to.add(HEADER), len - HEADER);
        }
        // The next one begins at a multiple of a word.
        used += whole.next_multiple_of(size_of::<usize>()).min(left);
    }
    message.msg_controllen = used;
}

fn encode(told: &Ancillary) -> (c_int, c_int, Vec<u8>) {
    match told {
        Ancillary::Timestamp { at, wide } => {
            let kind = if *wide { SO_TIMESTAMP_NEW } else { libc::SCM_TIMESTAMP };
            (libc::SOL_SOCKET, kind, pair(at.as_secs(), at.subsec_micros()))
        }
        Ancillary::TimestampNs { at, wide } => {
            let kind = if *wide { SO_TIMESTAMPNS_NEW } else { libc::SCM_TIMESTAMPNS };
            (libc::SOL_SOCKET, kind, timespec(*at))
        }
        Ancillary::Timestamping { at, wide } => {
            let kind = if *wide { SO_TIMESTAMPING_NEW } else { libc::SCM_TIMESTAMPING };
            // Without a device's clock the other two times are zero.
            let times = [timespec(*at), timespec(Duration::ZERO), timespec(Duration::ZERO)];
            (libc::SOL_SOCKET, kind, times.concat())
        }
        Ancillary::Inq(left) => (libc::IPPROTO_TCP, TCP_CM_INQ, left.to_ne_bytes().to_vec()),
        Ancillary::Error4(entry) => {
            let offender = sockaddr_in(entry.offender);
            (libc::IPPROTO_IP, libc::IP_RECVERR, [extended(entry), offender].concat())
        }
        Ancillary::Error6(entry) => {
            let offender = sockaddr_in6(entry.offender);
            (libc::IPPROTO_IPV6, libc::IPV6_RECVERR, [extended(entry), offender].concat())
        }
    }
}

fn pair(secs: u64, part: u32) -> Vec<u8> {
    [secs.to_ne_bytes(), u64::from(part).to_ne_bytes()].concat()
}

fn timespec(at: Duration) -> Vec<u8> {
    pair(at.as_secs(), at.subsec_nanos())
}

/// `struct sock_extended_err`.
fn extended(entry: &QueuedError) -> Vec<u8> {
    let bytes = [entry.origin, entry.kind, entry.code, 0];
    [entry.errno.to_ne_bytes(), bytes, entry.info.to_ne_bytes(), entry.data.to_ne_bytes()].concat()
}

/// Zeros where there is no such address.
fn sockaddr_in(ip: Option<IpAddr>) -> Vec<u8> {
    let mut bytes = vec![0; size_of::<libc::sockaddr_in>()];
    if let Some(IpAddr::V4(v4)) = ip {
        bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        bytes[4..8].copy_from_slice(&v4.octets());
    }
    bytes
}

fn sockaddr_in6(ip: Option<IpAddr>) -> Vec<u8> {
    let mut bytes = vec![0; size_of::<libc::sockaddr_in6>()];
    if let Some(ip) = ip {
        let v6 = match ip {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        bytes[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
        bytes[8..24].copy_from_slice(&v6.octets());
    }
    bytes
}

/// Which stamps a `sendmsg` asks for instead of the socket's (`sock_cmsg_send`).
///
/// # Errors
/// `EINVAL` for anything else of `SOL_SOCKET` but credentials and descriptors, which mean nothing to TCP.
///
/// # Safety
/// `msg_control` is null, or `msg_controllen` bytes there can be read.
pub(super) unsafe fn stamps(message: &msghdr) -> Result<Option<u32>, Errno> {
    let mut stamps = None;
    let mut at = 0;
    if message.msg_controllen > CONTROL_MOST {
        return Err(Errno::ENOBUFS);
    }
    while !message.msg_control.is_null() && message.msg_controllen - at >= HEADER {
        // SAFETY: a header is there; no alignment is asked for, and any bits are one.
        let (entry, header) = unsafe {
            let entry = message.msg_control.cast::<u8>().add(at);
            (entry, entry.cast::<cmsghdr>().read_unaligned())
        };
        let len = header.cmsg_len;
        if len < HEADER || len > message.msg_controllen - at {
            return Err(Errno::EINVAL);
        }
        match (header.cmsg_level, header.cmsg_type) {
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPING | SO_TIMESTAMPING_NEW) if len == HEADER + 4 => {
                // SAFETY: four bytes are behind the header.
                let flags = unsafe { entry.add(HEADER).cast::<u32>().read_unaligned() };
                if flags & !RECORDED != 0 {
                    return Err(Errno::EINVAL);
                }
                stamps = Some(flags);
            }
            (libc::SOL_SOCKET, libc::SCM_RIGHTS | libc::SCM_CREDENTIALS) => {}
            (libc::SOL_SOCKET, _) => return Err(Errno::EINVAL),
            _ => {}
        }
        at += len.next_multiple_of(size_of::<usize>()).min(message.msg_controllen - at);
    }
    Ok(stamps)
}
