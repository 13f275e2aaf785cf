//! Options of the kernel's own TCP sockets that rustix does not have.
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// `TCP_FASTOPEN_NO_COOKIE` (include/uapi/linux/tcp.h): of a socket that connects, data goes with its SYN and without the Fast Open option; a
/// listener takes it so. No rights are needed.
///
/// # Errors
/// The kernel has no such option (before 4.15), or the socket is connected.
pub fn set_fast_open_without_cookie(socket: impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open as long as it is borrowed; the kernel reads `on`, of the size that is said, before this returns.
    #[expect(unsafe_code, reason = "rustix has no such option")]
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_FASTOPEN_NO_COOKIE,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads `TCP_INFO`: `struct tcp_info` (include/uapi/linux/tcp.h), as many bytes of it as the kernel has. It is told of a connection that has
/// ended, too, as long as its socket is open.
///
/// # Errors
/// It is not a TCP socket.
pub fn tcp_info(socket: impl AsFd) -> io::Result<Vec<u8>> {
    let mut info = vec![0_u8; TCP_INFO_MOST];
    let mut len = info.len() as libc::socklen_t;
    // SAFETY: the descriptor is open as long as it is borrowed; the kernel writes no more than `len` bytes to `info`, which has as many.
    #[expect(unsafe_code, reason = "rustix has no such option")]
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    info.truncate(len as usize);
    Ok(info)
}

/// More than any kernel has: Linux 6.18 has 280.
const TCP_INFO_MOST: usize = 1024;
