//! Common to macOS and FreeBSD.
use crate::StreamInfo;
use crate::kernel::options::set_integer;
use crate::kernel::unsupported;
use ::device::kernel_socket::{TcpOption, set_tcp_option, tcp_info};
use proto::{ListenOptions, SocketOption, State, WriteFlags};
use rustix::net::SendFlags;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use tokio::net::TcpStream;

/// The longest IP packet: neither system reports how many bytes a SYN carried.
pub(super) const EARLY_MOST: usize = 65_535;

/// Listens, then switches Fast Open on: macOS wants this order. Neither has a length of the queue
/// of its own.
pub(super) fn listen(
    socket: &OwnedFd,
    options: &ListenOptions,
    backlog: i32,
    remedy: &str,
) -> io::Result<()> {
    rustix::net::listen(socket, backlog)?;
    if options.fast_open.is_some_and(|qlen| qlen > 0) {
        set_tcp_option(socket, TcpOption::FastOpen, 1).map_err(|error| {
            let text = format!("cannot switch on Fast Open for a listener: {error}; run `{remedy}`");
            io::Error::new(error.kind(), text)
        })?;
    }
    Ok(())
}

/// The state by the kernel's number (netinet/tcp_fsm.h), the first byte of its information.
pub(in crate::kernel) fn state(socket: impl AsFd) -> io::Result<State> {
    Ok(match tcp_info(socket)?.first() {
        Some(0) => State::Closed,
        Some(2) => State::SynSent,
        Some(3) => State::SynReceived,
        Some(4) => State::Established,
        Some(5) => State::CloseWait,
        Some(6) => State::FinWait1,
        Some(7) => State::Closing,
        Some(8) => State::LastAck,
        Some(9) => State::FinWait2,
        Some(10) => State::TimeWait,
        other => {
            return Err(io::Error::other(format!("the kernel reports the unknown state {other:?}")));
        }
    })
}

/// The systems do not report all of it.
pub(in crate::kernel) fn stream_info(_: &TcpStream) -> io::Result<StreamInfo> {
    Err(unsupported("`info` on this system"))
}

/// `MSG_EOR` on a stream is an error of these systems, and they do not have `MSG_MORE`.
pub(super) fn send_flags(flags: WriteFlags, none: SendFlags) -> io::Result<SendFlags> {
    if !(flags - WriteFlags::URGENT).is_empty() {
        return Err(unsupported("MORE and END_OF_RECORD on this system"));
    }
    Ok(if flags.contains(WriteFlags::URGENT) { none | SendFlags::OOB } else { none })
}

/// Sets one of the options that not all systems have.
pub(in crate::kernel) fn set_option(socket: BorrowedFd<'_>, option: SocketOption) -> io::Result<()> {
    set_integer(socket, option)
}
