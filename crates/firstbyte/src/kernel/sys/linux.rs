//! Linux.
mod info;

pub(in crate::kernel) use info::{is_delivered, state, stream_info};

use crate::kernel::connect::First;
use crate::kernel::options::set_integer;
use crate::kernel::unsupported;
use ::device::kernel_socket::{TcpOption, saved_syn, set_tcp_option};
use info::Reported;
use proto::{CongestionControl, ListenOptions, NotAcknowledged, Outcome, Skipped, SocketOption, WriteFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with, sockopt};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;
use tokio::net::TcpStream;

/// `MSG_FASTOPEN` (include/linux/socket.h).
const MSG_FASTOPEN: SendFlags = SendFlags::from_bits_retain(0x2000_0000);

pub(in crate::kernel) fn socket(family: AddressFamily) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?)
}

/// Sends the SYN, with data if the kernel has a cookie. The reason if Fast Open cannot be tried;
/// nothing was sent then.
pub(in crate::kernel) fn connect_with_data(
    socket: &OwnedFd,
    data: &[u8],
    peer: SocketAddr,
) -> io::Result<Result<First, Skipped>> {
    match sendto(socket, data, MSG_FASTOPEN | SendFlags::NOSIGNAL, &peer) {
        Ok(0) => Ok(Ok(First::Empty)),
        Ok(sent) => Ok(Ok(First::Data(sent))),
        Err(Errno::INPROGRESS) if data.is_empty() => Ok(Ok(First::Empty)),
        Err(Errno::INPROGRESS) => Ok(Ok(First::NoCookie)),
        // Bit 1 of `net.ipv4.tcp_fastopen` is off.
        Err(Errno::OPNOTSUPP) => Ok(Err(Skipped::Disabled)),
        Err(error) => Err(error.into()),
    }
}

/// Waits until the SYN has been answered, or the connect has failed.
pub(in crate::kernel) async fn answered(stream: &TcpStream) -> io::Result<()> {
    stream.writable().await
}

/// Derives the outcome from the kernel's report after the handshake (net/ipv4/tcp_fastopen.c,
/// `tcp_fastopen_cookie_check`; net/ipv4/tcp_input.c, `tcp_rcv_fastopen_synack`).
pub(in crate::kernel) fn outcome(first: &First, stream: &TcpStream) -> io::Result<Outcome> {
    let reported = Reported::read(stream)?;
    Ok(match first {
        First::Plain(why) => Outcome::Skipped(*why),
        First::Data(_) | First::Empty if reported.syn_data_acked => Outcome::Accepted,
        First::Data(_) if reported.syn_was_retransmitted => Outcome::NotAcknowledged(NotAcknowledged::Lost),
        First::Data(_) => Outcome::NotAcknowledged(NotAcknowledged::Unknown),
        First::NoCookie | First::Empty if reported.had_no_cookie => Outcome::CookieAsked,
        First::NoCookie => Outcome::Skipped(Skipped::Paused),
        First::Empty => Outcome::Skipped(Skipped::NothingToSend),
    })
}

pub(in crate::kernel) fn listen(socket: &OwnedFd, options: &ListenOptions, backlog: i32) -> io::Result<()> {
    if let Some(qlen) = options.fast_open {
        set_tcp_option(socket, TcpOption::FastOpen, i32::try_from(qlen).unwrap_or(i32::MAX))?;
        set_tcp_option(socket, TcpOption::SaveSyn, 1)?;
    }
    Ok(rustix::net::listen(socket, backlog)?)
}

/// Returns the length of the SYN's data, by its saved headers.
pub(in crate::kernel) fn early_len(stream: &TcpStream) -> io::Result<usize> {
    if Reported::read(stream)?.syn_data_acked { Ok(payload_len(&saved_syn(stream)?)) } else { Ok(0) }
}

fn payload_len(headers: &[u8]) -> usize {
    let word = |at: usize| {
        let bytes = headers.get(at..at + 2)?;
        Some(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    };
    let packet = match headers.first().map(|first| first >> 4) {
        Some(4) => word(2),
        Some(6) => word(4).map(|payload| payload + 40),
        _ => None,
    };
    packet.map_or(0, |packet| packet.saturating_sub(headers.len()))
}

/// `MSG_MORE`, `MSG_EOR` and `MSG_OOB` stand for the flags.
pub(in crate::kernel) fn send_flags(flags: WriteFlags) -> io::Result<SendFlags> {
    let bits = [
        (WriteFlags::MORE, SendFlags::MORE),
        (WriteFlags::END_OF_RECORD, SendFlags::EOR),
        (WriteFlags::URGENT, SendFlags::OOB),
    ];
    let set = bits.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, bit)| *bit);
    Ok(set.fold(SendFlags::NOSIGNAL, SendFlags::union))
}

pub(in crate::kernel) fn set_urgent_apart(socket: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    Ok(sockopt::set_socket_oobinline(socket, !on)?)
}

/// Sets one of the options that not all systems have.
pub(in crate::kernel) fn set_option(socket: BorrowedFd<'_>, option: SocketOption) -> io::Result<()> {
    match option {
        SocketOption::Cork(on) => sockopt::set_tcp_cork(socket, on)?,
        SocketOption::QuickAck(on) => sockopt::set_tcp_quickack(socket, on)?,
        SocketOption::UserTimeout(time) => sockopt::set_tcp_user_timeout(socket, millis(time))?,
        SocketOption::ThinLinearTimeouts(on) => sockopt::set_tcp_thin_linear_timeouts(socket, on)?,
        SocketOption::Congestion(algorithm) => sockopt::set_tcp_congestion(socket, module(algorithm)?)?,
        option => set_integer(socket, option)?,
    }
    Ok(())
}

/// The kernel module of an algorithm.
fn module(algorithm: CongestionControl) -> io::Result<&'static str> {
    match algorithm {
        CongestionControl::Reno => Ok("reno"),
        CongestionControl::Cubic => Ok("cubic"),
        CongestionControl::Vegas => Ok("vegas"),
        CongestionControl::Bbr => Ok("bbr"),
        other => Err(unsupported(&format!("the congestion control {other:?}"))),
    }
}

/// Milliseconds of a time, at least 1; 0 stands for none.
fn millis(time: Option<Duration>) -> u32 {
    let millis = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX).max(1);
    time.filter(|time| !time.is_zero()).map_or(0, millis)
}

#[cfg(test)]
mod tests {
    use super::payload_len;

    #[test]
    fn the_length_of_the_data_follows_from_the_headers() {
        let mut v4 = vec![0; 60];
        v4[..4].copy_from_slice(&[0x45, 0, 0, 75]);
        assert_eq!(payload_len(&v4), 15);
        let mut v6 = vec![0; 80];
        v6[..6].copy_from_slice(&[0x60, 0, 0, 0, 0, 50]);
        assert_eq!(payload_len(&v6), 10);
        assert_eq!(payload_len(&[]), 0);
    }
}
