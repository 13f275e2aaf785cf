//! FreeBSD: tcp(4), sys/netinet/tcp_usrreq.c. Not tested.
use super::bsd;
use crate::kernel::connect::First;
use crate::kernel::unsupported;
use ::device::kernel_socket::{TcpOption, set_tcp_option};
use proto::{ListenOptions, Outcome, Skipped, WriteFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with, sockopt};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use tokio::net::TcpStream;

pub(in crate::kernel) use bsd::{set_option, state, stream_info};

pub(in crate::kernel) fn socket(family: AddressFamily) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?)
}

/// Sends the SYN: a send on a socket that is not connected connects it. The data travels on the SYN
/// if the kernel has a cookie, else after the handshake.
pub(in crate::kernel) fn connect_with_data(
    socket: &OwnedFd,
    data: &[u8],
    peer: SocketAddr,
) -> io::Result<Result<First, Skipped>> {
    if data.is_empty() {
        return Ok(Err(Skipped::NothingToSend));
    }
    match set_tcp_option(socket, TcpOption::FastOpen, 1) {
        Ok(()) => {}
        Err(error) if means_disabled(&error) => return Ok(Err(Skipped::Disabled)),
        Err(error) => return Err(error),
    }
    let sent = sendto(socket, data, SendFlags::NOSIGNAL, &peer)?;
    Ok(Ok(First::Data(sent)))
}

/// `net.inet.tcp.fastopen.client_enable` and `server_enable` are 0, or the kernel was built without
/// `TCP_RFC7413`.
fn means_disabled(error: &io::Error) -> bool {
    let off = [Errno::PERM, Errno::NOPROTOOPT].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| off.contains(&code))
}

/// Waits until the SYN has been answered, or the connect has failed.
pub(in crate::kernel) async fn answered(stream: &TcpStream) -> io::Result<()> {
    stream.writable().await
}

/// `TCP_INFO` has nothing about Fast Open.
pub(in crate::kernel) fn outcome(first: &First, _: &TcpStream) -> io::Result<Outcome> {
    Ok(if let First::Plain(why) = first { Outcome::Skipped(*why) } else { Outcome::Unknown })
}

pub(in crate::kernel) fn listen(socket: &OwnedFd, options: &ListenOptions, backlog: i32) -> io::Result<()> {
    bsd::listen(socket, options, backlog, "sysctl net.inet.tcp.fastopen.server_enable=1")
}

/// Returns an upper bound for each connection: the kernel does not report whether a SYN had data.
pub(in crate::kernel) fn early_len(_: &TcpStream) -> io::Result<usize> {
    Ok(bsd::EARLY_MOST)
}

/// The kernel reports the bytes in the send buffer only through an ioctl that rustix does not have.
pub(in crate::kernel) fn is_delivered(_: impl AsFd) -> io::Result<bool> {
    Err(unsupported("`delivered` on this system"))
}

pub(in crate::kernel) fn send_flags(flags: WriteFlags) -> io::Result<SendFlags> {
    bsd::send_flags(flags, SendFlags::NOSIGNAL)
}

pub(in crate::kernel) fn set_urgent_apart(socket: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    Ok(sockopt::set_socket_oobinline(socket, !on)?)
}
