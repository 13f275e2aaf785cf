//! Memory of the application.

use crate::errno::Errno;
use libc::{c_int, c_uint, c_void, iovec, mmsghdr, msghdr};
use std::borrow::Cow;

/// Linux's `UIO_MAXIOV`.
const IOVECS_MAX: usize = 1024;
/// Linux's `MAX_RW_COUNT`.
const BYTES_MAX: usize = 0x7fff_f000;

/// Bytes to send, and whether more was named that cannot be read.
pub(super) struct Gathered<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    pub(super) faulty: bool,
}

/// Returns whether this is a negative length in C's types. No buffer is that long.
pub(super) fn is_negative(len: usize) -> bool {
    len > isize::MAX.cast_unsigned()
}

/// A negative length is `EINVAL` here (Linux's `copy_iovec_from_user`), and `EFAULT` where there is one buffer and no vector.
///
/// # Safety
/// `iov` is null, or `count` entries there can be read.
pub(super) unsafe fn iovecs<'a>(iov: *const iovec, count: usize) -> Result<&'a [iovec], Errno> {
    let entries = match count {
        0 => &[],
        1..=IOVECS_MAX if iov.is_null() => return Err(Errno::EFAULT),
        // SAFETY: the caller says so.
        1..=IOVECS_MAX => unsafe { core::slice::from_raw_parts(iov, count) },
        _ => return Err(Errno::EINVAL),
    };
    if entries.iter().any(|entry| is_negative(entry.iov_len)) { Err(Errno::EINVAL) } else { Ok(entries) }
}

/// Those of a message, of which there may be too many otherwise than of `readv`'s.
///
/// # Safety
/// `msg_iov` is null, or `msg_iovlen` entries there can be read.
pub(super) unsafe fn iovecs_of_message<'a>(message: &msghdr) -> Result<&'a [iovec], Errno> {
    if !message.msg_name.is_null() && message.msg_namelen.cast_signed() < 0 {
        return Err(Errno::EINVAL);
    }
    if message.msg_iovlen > IOVECS_MAX {
        return Err(Errno::EMSGSIZE);
    }
    // SAFETY: the caller says so.
    unsafe { iovecs(message.msg_iov, message.msg_iovlen) }
}

/// Of more messages than these only the first are sent (Linux's `__sys_sendmmsg`); `recvmmsg` has no such bound.
pub(super) const SENT_AT_ONCE: c_uint = IOVECS_MAX as c_uint;

/// # Safety
/// `messages` is null, or `count` entries there can be read and written.
pub(super) unsafe fn messages<'a>(messages: *mut mmsghdr, count: c_uint) -> Result<&'a mut [mmsghdr], Errno> {
    match count as usize {
        0 => Ok(&mut []),
        _ if messages.is_null() => Err(Errno::EFAULT),
        // SAFETY: the caller says so.
        count => Ok(unsafe { core::slice::from_raw_parts_mut(messages, count) }),
    }
}

/// How many entries `readv` and `writev` name.
pub(super) fn count(count: c_int) -> Result<usize, Errno> {
    usize::try_from(count).map_err(|_| Errno::EINVAL)
}

/// One buffer is left where it is, however large: what there is room for is copied from there. Of a negative length nothing is looked at:
/// where it ends only the kernel could find out.
///
/// # Safety
/// Each entry is null, or so many bytes there can be read, for `'a`.
pub(super) unsafe fn gather<'a>(iovecs: &[iovec]) -> Gathered<'a> {
    let mut filled = iovecs.iter().filter(|entry| entry.iov_len > 0);
    if let (Some(only), None) = (filled.next(), filled.next()) {
        if only.iov_base.is_null() || is_negative(only.iov_len) {
            return Gathered { bytes: Cow::Borrowed(&[]), faulty: true };
        }
        let len = only.iov_len.min(BYTES_MAX);
        // SAFETY: the caller says so; `len` is not beyond it.
        let bytes = unsafe { core::slice::from_raw_parts(only.iov_base.cast::<u8>(), len) };
        return Gathered { bytes: Cow::Borrowed(bytes), faulty: false };
    }
    let mut bytes = Vec::new();
    for entry in iovecs.iter().filter(|entry| entry.iov_len > 0) {
        if entry.iov_base.is_null() {
            return Gathered { bytes: bytes.into(), faulty: true };
        }
        let len = entry.iov_len.min(BYTES_MAX - bytes.len());
        // SAFETY: the caller says so; `len` is not beyond it.
        bytes.extend_from_slice(unsafe { core::slice::from_raw_parts(entry.iov_base.cast::<u8>(), len) });
    }
    Gathered { bytes: bytes.into(), faulty: false }
}

/// One buffer as a vector.
pub(super) fn single(base: *const c_void, len: usize) -> [iovec; 1] {
    [iovec { iov_base: base.cast_mut(), iov_len: len }]
}

/// Room of several buffers; `None`: some of it cannot be written.
pub(super) fn room(iovecs: &[iovec]) -> Option<usize> {
    let faulty = iovecs.iter().any(|entry| entry.iov_len > 0 && entry.iov_base.is_null());
    let total = iovecs.iter().fold(0_usize, |sum, entry| sum.saturating_add(entry.iov_len));
    (!faulty).then_some(total.min(BYTES_MAX))
}

/// Writes `bytes` into the buffers, which have the room, behind so many others.
///
/// # Safety
/// So many bytes at each entry can be written.
pub(super) unsafe fn scatter(mut bytes: &[u8], iovecs: &[iovec], mut behind: usize) {
    for entry in iovecs {
        let passed = behind.min(entry.iov_len);
        behind -= passed;
        let len = (entry.iov_len - passed).min(bytes.len());
        if len == 0 {
            continue;
        }
        // SAFETY: the caller says so; memory of the application does not overlap ours.
        unsafe {
            let place = entry.iov_base.cast::<u8>().add(passed);
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), place, len);
        }
        bytes = &bytes[len..];
    }
}
