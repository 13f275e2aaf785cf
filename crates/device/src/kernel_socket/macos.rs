//! macOS: bsd/netinet/tcp.h, connectx(2).
use super::TcpOption;
use libc::c_int;
use rustix::net::addr::SocketAddrArg;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd as _};
use std::ptr;

pub(super) const INFO: c_int = libc::TCP_CONNECTION_INFO;
pub(super) const SAVED_SYN: Option<c_int> = None;
pub(super) const FAST_OPEN_KEY: Option<c_int> = None;
pub(super) const MAX_PACING_RATE: Option<c_int> = None;

pub(super) fn number(option: TcpOption) -> Option<c_int> {
    match option {
        TcpOption::MaxSegment => Some(libc::TCP_MAXSEG),
        TcpOption::FastOpen => Some(libc::TCP_FASTOPEN),
        _ => None,
    }
}

/// Connects with `connectx`, and hands over data that may travel on the SYN. Returns how many bytes
/// the kernel has taken: it sends them after the handshake if it has no cookie. A socket that does
/// not block is still connecting when this returns, and may count as writable meanwhile.
///
/// `CONNECT_RESUME_ON_READ_WRITE` is for a connect without data (bsd/kern/uipc_socket.c,
/// `soconnectxlocked`).
///
/// # Errors
/// The kernel's own.
pub fn connect_with_data(socket: impl AsFd, peer: SocketAddr, data: &[u8]) -> io::Result<usize> {
    let socket = socket.as_fd();
    let slice = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
    let mut taken = 0;
    let mut connect = |address: *const libc::sockaddr, len| {
        let endpoints = libc::sa_endpoints_t {
            sae_srcif: 0,
            sae_srcaddr: ptr::null(),
            sae_srcaddrlen: 0,
            sae_dstaddr: address,
            sae_dstaddrlen: len,
        };
        // SAFETY: the descriptor is open as long as it is borrowed; `address`, `slice` and `data`
        // are valid until this returns; the kernel writes one `size_t` to `taken`.
        #[expect(unsafe_code, reason = "rustix does not have connectx")]
        unsafe {
            libc::connectx(
                socket.as_raw_fd(),
                &raw const endpoints,
                libc::SAE_ASSOCID_ANY,
                libc::CONNECT_DATA_IDEMPOTENT,
                &raw const slice,
                1,
                &raw mut taken,
                ptr::null_mut(),
            )
        }
    };
    // SAFETY: the closure uses the address only while it runs.
    #[expect(unsafe_code, reason = "rustix encodes the address")]
    let result = unsafe { peer.with_sockaddr(|address, len| connect(address.cast(), len)) };
    match result {
        0 => Ok(taken),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(taken),
            error => Err(error),
        },
    }
}
