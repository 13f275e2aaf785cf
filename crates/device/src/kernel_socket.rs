//! Options of the kernel's TCP sockets that rustix lacks, on Linux, macOS and FreeBSD.
//!
//! One file per system has the numbers. An option that a system does not have fails with
//! [`Unsupported`](io::ErrorKind::Unsupported). macOS and FreeBSD are compiled, and never tested.
#[cfg(target_os = "freebsd")]
mod freebsd;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "freebsd")]
use freebsd as system;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

#[cfg(target_os = "macos")]
pub use macos::connect_with_data;

/// An option of a kernel TCP socket whose value is an integer (Linux: include/uapi/linux/tcp.h,
/// `setsockopt`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TcpOption {
    /// `TCP_MAXSEG`: upper bound of the segments' payload, bytes.
    MaxSegment,
    /// `TCP_SYNCNT`: retransmissions of the SYN.
    SynCount,
    /// `TCP_LINGER2`: seconds in FIN-WAIT-2 after close; negative: none.
    Linger2,
    /// `TCP_DEFER_ACCEPT`: seconds that a listener waits for the first data.
    DeferAccept,
    /// `TCP_WINDOW_CLAMP`: upper bound of the window, bytes.
    WindowClamp,
    /// `TCP_FASTOPEN`: Fast Open requests that a listener holds; 0: off. On macOS and FreeBSD only
    /// on or off, and FreeBSD has it for a connecting socket too.
    FastOpen,
    /// `TCP_NOTSENT_LOWAT`: bytes not yet sent below which a socket is writable.
    NotsentLowat,
    /// `TCP_SAVE_SYN`: a listener keeps the headers of each SYN for [`saved_syn`].
    SaveSyn,
    /// `TCP_FASTOPEN_NO_COOKIE`: a connecting socket sends data on its SYN without the Fast Open
    /// option. A listener accepts such data. No rights are needed. Since Linux 4.15.
    FastOpenNoCookie,
}

/// Sets an integer option.
///
/// # Errors
/// The kernel's own: the option is unknown, the value is out of range, or the socket's state is
/// wrong.
pub fn set_tcp_option(socket: impl AsFd, option: TcpOption, value: i32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, existing(system::number(option))?, &value.to_ne_bytes())
}

/// Sets `SO_MAX_PACING_RATE`, bytes per second; `u64::MAX`: unlimited.
///
/// # Errors
/// The kernel's own.
pub fn set_max_pacing_rate(socket: impl AsFd, bytes_per_second: u64) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, existing(system::MAX_PACING_RATE)?, &bytes_per_second.to_ne_bytes())
}

/// Sets `TCP_FASTOPEN_KEY`: the cookie keys of a listener, 16 bytes or, with a backup key, 32.
///
/// # Errors
/// The kernel's own: `EINVAL` for another length.
pub fn set_fast_open_key(socket: impl AsFd, keys: &[u8]) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, existing(system::FAST_OPEN_KEY)?, keys)
}

fn existing(number: Option<libc::c_int>) -> io::Result<libc::c_int> {
    let error = "this system's sockets do not have the option";
    number.ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, error))
}

fn set(socket: impl AsFd, level: libc::c_int, name: libc::c_int, value: &[u8]) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as it is borrowed; the kernel reads `value.len()`
    // bytes of `value` before this returns.
    #[expect(unsafe_code, reason = "rustix has none of these options")]
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads `TCP_SAVED_SYN`: the IP and TCP headers of the SYN that opened an accepted connection, if
/// its listener had [`TcpOption::SaveSyn`]. Empty if not. The kernel forgets them with this call.
///
/// # Errors
/// It is not a TCP socket.
pub fn saved_syn(socket: impl AsFd) -> io::Result<Vec<u8>> {
    get(socket, existing(system::SAVED_SYN)?, HEADERS_MOST)
}

/// The longest headers of a SYN: IPv6 with extension headers, TCP with options.
const HEADERS_MOST: usize = 2048;

/// Reads what the kernel reports about a connection, in the length that the kernel has: `TCP_INFO`
/// on Linux (`struct tcp_info`, include/uapi/linux/tcp.h) and FreeBSD, `TCP_CONNECTION_INFO` on
/// macOS. Each system has a layout of its own. Works for a connection that has ended while its
/// socket is open.
///
/// # Errors
/// It is not a TCP socket.
pub fn tcp_info(socket: impl AsFd) -> io::Result<Vec<u8>> {
    get(socket, system::INFO, TCP_INFO_MOST)
}

fn get(socket: impl AsFd, name: libc::c_int, most: usize) -> io::Result<Vec<u8>> {
    let mut value = vec![0_u8; most];
    let mut len = value.len() as libc::socklen_t;
    // SAFETY: the descriptor is open as long as it is borrowed; the kernel writes no more than
    // `len` bytes to `value`, which has as many.
    #[expect(unsafe_code, reason = "rustix has none of these options")]
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            name,
            value.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    value.truncate(len as usize);
    Ok(value)
}

/// Larger than in any kernel: Linux 6.18 has 280.
const TCP_INFO_MOST: usize = 1024;
