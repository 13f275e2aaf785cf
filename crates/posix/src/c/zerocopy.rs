//! `TCP_ZEROCOPY_RECEIVE` (Linux's `tcp_zerocopy_receive`): no page of ours can be mapped into an application's memory, so that what there
//! is comes by copy, into the buffer that is named for what lies at no page's boundary.

use super::Process;
use crate::errno::{Errno, Stop};
use crate::receive::Receive;
use libc::{c_int, socklen_t};

/// `struct tcp_zerocopy_receive`, which has grown: an application says by its length how much of it it knows.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Zerocopy {
    address: u64,
    length: u32,
    recv_skip_hint: u32,
    inq: u32,
    err: i32,
    copybuf_address: u64,
    copybuf_len: i32,
    flags: u32,
    msg_control: u64,
    msg_controllen: u64,
    msg_flags: u32,
    reserved: u32,
}

/// The least that is known, and where `inq` and `err` end.
const LEN_MIN: usize = 12;
const WITH_INQ: usize = 20;
const WITH_ERR: usize = 24;
const PAGE: u64 = 4096;
/// `TCP_CMSG_TS`, the only flag there is.
const CMSG_TS: u32 = 2;

/// # Safety
/// `value` is null, or `*len` bytes there can be read and written; so can what it names.
pub(super) unsafe fn receive(
    process: &impl Process,
    fd: c_int,
    value: *mut u8,
    len: &mut socklen_t,
) -> Result<i32, Errno> {
    let given = i32::try_from(*len).map_err(|_| Errno::EINVAL)? as usize;
    if given < LEN_MIN {
        return Err(Errno::EINVAL);
    }
    if value.is_null() {
        return Err(Errno::EFAULT);
    }
    let known = given.min(size_of::<Zerocopy>());
    // SAFETY: as the caller says.
    if unsafe { core::slice::from_raw_parts(value, given) }[known..].iter().any(|byte| *byte != 0) {
        return Err(Errno::EINVAL);
    }
    *len = known as socklen_t;
    let mut asked = Zerocopy::default();
    // SAFETY: `known` bytes are there, and in the structure, of which any bits are one.
    unsafe { core::ptr::copy_nonoverlapping(value, (&raw mut asked).cast(), known) };
    if asked.reserved != 0 || asked.msg_flags & !CMSG_TS != 0 {
        return Err(Errno::EINVAL);
    }
    let buffer = usize::try_from(asked.copybuf_len).unwrap_or(0);
    (asked.copybuf_len, asked.msg_flags) = (0, 0);
    if asked.address % PAGE != 0 {
        return Err(Errno::EINVAL);
    }
    let waiting = process.call(|sockets, _| sockets.bytes_to_map(fd))?;
    match waiting {
        0 => (asked.length, asked.recv_skip_hint) = (0, 0),
        waiting if waiting <= buffer => {
            (asked.length, asked.recv_skip_hint) = (0, 0);
            // SAFETY: as the caller says.
            asked.copybuf_len = unsafe { copy(process, fd, asked.copybuf_address, waiting)? };
        }
        waiting if (waiting as u64) < PAGE => (asked.length, asked.recv_skip_hint) = (0, waiting as u32),
        // Nothing of a socket of ours is mapped there.
        _ => return Err(Errno::EINVAL),
    }
    if known >= WITH_INQ {
        asked.inq = process.call(|sockets, _| sockets.inq_hint(fd))?.cast_unsigned();
    }
    if known >= WITH_ERR {
        asked.err = process.call(|sockets, _| sockets.take_errno(fd))?.map_or(0, |errno| -errno.0);
    }
    // SAFETY: `known` bytes are there.
    unsafe { core::ptr::copy_nonoverlapping((&raw const asked).cast(), value, known) };
    Ok(0)
}

/// # Safety
/// `waiting` bytes at `address` can be written, unless it is 0.
unsafe fn copy(process: &impl Process, fd: c_int, address: u64, waiting: usize) -> Result<i32, Errno> {
    if address == 0 {
        return Err(Errno::EFAULT);
    }
    let mut bytes = vec![0; waiting];
    let mut receive = Receive::new(fd, libc::MSG_DONTWAIT);
    let got =
        process.call(|sockets, now| receive.attempt(sockets, now, &mut bytes)).map_err(
            |stop| match stop {
                Stop::Errno(errno) => errno,
                Stop::Wait(_) => Errno::EAGAIN,
            },
        )?;
    // SAFETY: as the caller says.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, got) };
    Ok(i32::try_from(got).unwrap_or(i32::MAX))
}
