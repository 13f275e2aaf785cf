//! macOS: connectx(2), tcp(4), bsd/netinet/tcp.h. Not tested.
use super::bsd;
use crate::kernel::connect::First;
use crate::kernel::unsupported;
use ::device::kernel_socket::tcp_info;
use proto::{ListenOptions, NotAcknowledged, Outcome, Skipped, State, WriteFlags};
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sockopt};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use tokio::io::Interest;
use tokio::net::TcpStream;

pub(in crate::kernel) use bsd::{set_option, state, stream_info};

/// The `tcpi_tfo_…` bits of `struct tcp_connection_info`, in their order.
mod bit {
    pub(super) const COOKIE_REQ: u32 = 1 << 0;
    pub(super) const COOKIE_RCV: u32 = 1 << 1;
    pub(super) const SYN_LOSS: u32 = 1 << 2;
    pub(super) const SYN_DATA_SENT: u32 = 1 << 3;
    pub(super) const SYN_DATA_ACKED: u32 = 1 << 4;
    pub(super) const SYN_DATA_RCV: u32 = 1 << 5;
    pub(super) const HEURISTICS_DISABLE: u32 = 1 << 11;
}

/// Offsets in `struct tcp_connection_info`: bytes in the send buffer, and the bits. (The `libc`
/// crate declares each bit as a word, which shifts the fields behind them.)
const SND_SBBYTES: usize = 32;
const TFO_BITS: usize = 52;

fn word(socket: impl AsFd, at: usize) -> io::Result<u32> {
    let info = tcp_info(socket)?;
    let bytes = info.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u32::from_ne_bytes).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

pub(in crate::kernel) fn socket(family: AddressFamily) -> io::Result<OwnedFd> {
    let socket = rustix::net::socket(family, SocketType::STREAM, Some(ipproto::TCP))?;
    rustix::io::ioctl_fioclex(&socket)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    sockopt::set_socket_nosigpipe(&socket, true)?;
    Ok(socket)
}

/// Sends the SYN, with data if the kernel has a cookie. Without data it would wait for the first
/// write or read, so Fast Open is not tried.
pub(in crate::kernel) fn connect_with_data(
    socket: &OwnedFd,
    data: &[u8],
    peer: SocketAddr,
) -> io::Result<Result<First, Skipped>> {
    if data.is_empty() {
        return Ok(Err(Skipped::NothingToSend));
    }
    let taken = ::device::kernel_socket::connect_with_data(socket, peer, data)?;
    Ok(Ok(First::Data(taken)))
}

/// Waits until the SYN has been answered, or the connect has failed. A socket with data for the SYN
/// may be writable before (bsd/kern/uipc_socket2.c, `sowriteable`).
pub(in crate::kernel) async fn answered(stream: &TcpStream) -> io::Result<()> {
    loop {
        stream.writable().await?;
        let is_open = stream.try_io(Interest::WRITABLE, || match state(stream) {
            Ok(State::SynSent) => Err(io::ErrorKind::WouldBlock.into()),
            // The socket has the error of a failed connect.
            _ => Ok(()),
        });
        if is_open.is_ok() {
            return Ok(());
        }
    }
}

/// Derives the outcome from the kernel's report after the handshake.
pub(in crate::kernel) fn outcome(first: &First, stream: &TcpStream) -> io::Result<Outcome> {
    if let First::Plain(why) = first {
        return Ok(Outcome::Skipped(*why));
    }
    let bits = word(stream, TFO_BITS)?;
    let has = |bit| bits & bit != 0;
    Ok(match () {
        () if has(bit::SYN_DATA_ACKED) => Outcome::Accepted,
        () if has(bit::SYN_LOSS) => Outcome::NotAcknowledged(NotAcknowledged::Lost),
        () if has(bit::SYN_DATA_SENT) => Outcome::NotAcknowledged(NotAcknowledged::Unknown),
        () if has(bit::COOKIE_REQ) => Outcome::CookieRequested { granted: has(bit::COOKIE_RCV) },
        () if has(bit::HEURISTICS_DISABLE) => Outcome::Skipped(Skipped::Paused),
        () => Outcome::Unknown,
    })
}

pub(in crate::kernel) fn listen(socket: &OwnedFd, options: &ListenOptions, backlog: i32) -> io::Result<()> {
    bsd::listen(socket, options, backlog, "sysctl net.inet.tcp.fastopen=3")
}

/// Returns an upper bound.
pub(in crate::kernel) fn early_len(stream: &TcpStream) -> io::Result<usize> {
    Ok(if word(stream, TFO_BITS)? & bit::SYN_DATA_RCV != 0 { bsd::EARLY_MOST } else { 0 })
}

/// True if the peer has acknowledged everything that was written, and the FIN after a shutdown.
pub(in crate::kernel) fn is_delivered(socket: impl AsFd) -> io::Result<bool> {
    let fin_is_out = matches!(state(&socket)?, State::FinWait1 | State::LastAck | State::Closing);
    Ok(!fin_is_out && word(socket, SND_SBBYTES)? == 0)
}

pub(in crate::kernel) fn send_flags(flags: WriteFlags) -> io::Result<SendFlags> {
    bsd::send_flags(flags, SendFlags::empty())
}

/// An urgent byte is always apart: by rustix, `SO_OOBINLINE` has no effect.
pub(in crate::kernel) fn set_urgent_apart(_: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    if on { Ok(()) } else { Err(unsupported("an urgent byte in its place on this system")) }
}
