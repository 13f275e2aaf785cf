//! An option of the kernel's own TCP sockets that rustix does not have.
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
