//! A listener of the kernel.
use super::info::Reported;
use super::{Open, options, unsupported};
use ::device::kernel_socket::{TcpOption, saved_syn, set_fast_open_key, set_tcp_option};
use proto::{ListenOptions, SocketOptions};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, ipproto, listen, socket_with, sockopt};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};
use tokio::net::TcpListener;

/// A listening socket of the kernel.
#[derive(Debug)]
pub(crate) struct KernelListener {
    listener: TcpListener,
    has_fast_open: bool,
    options: SocketOptions,
}

impl KernelListener {
    pub(crate) fn bind(
        local: SocketAddr,
        options: &ListenOptions,
        reuse_port: bool,
    ) -> io::Result<KernelListener> {
        if options.synack_hold.is_some_and(|hold| !hold.is_zero()) {
            return Err(unsupported("a SYN-ACK that waits for the answer (synack_hold)"));
        }
        let socket = socket(local, options, reuse_port)?;
        let listener = TcpListener::from_std(std::net::TcpListener::from(socket))?;
        let has_fast_open = options.fast_open.is_some_and(|qlen| qlen > 0);
        Ok(KernelListener { listener, has_fast_open, options: options.socket.clone() })
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    pub(crate) fn set_backlog(&self, backlog: u32) -> io::Result<()> {
        Ok(listen(&self.listener, i32::try_from(backlog).unwrap_or(i32::MAX))?)
    }

    pub(crate) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Open, SocketAddr)>> {
        let (stream, peer) = ready!(self.listener.poll_accept(cx))?;
        let early_len = if self.has_fast_open && Reported::read(&stream)?.syn_data_acked {
            payload_len(&saved_syn(&stream)?)
        } else {
            0
        };
        Poll::Ready(Ok((Open::accepted(stream, early_len, self.options.clone()), peer)))
    }
}

fn socket(local: SocketAddr, options: &ListenOptions, reuse_port: bool) -> io::Result<OwnedFd> {
    let family = if local.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    // As tokio and std do: a restarted server gets its port although connections are in TIME-WAIT.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if reuse_port {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    options::apply(&socket, local.is_ipv4(), &options.socket)?;
    bind(&socket, &local)?;
    if let Some(qlen) = options.fast_open {
        set_tcp_option(&socket, TcpOption::FastOpen, i32::try_from(qlen).unwrap_or(i32::MAX))?;
        set_tcp_option(&socket, TcpOption::SaveSyn, 1)?;
    }
    if let Some(ring) = &options.key {
        set_fast_open_key(&socket, &ring.to_bytes())?;
    }
    if options.fast_open_no_cookie {
        set_tcp_option(&socket, TcpOption::FastOpenNoCookie, 1)?;
    }
    if !options.defer_accept.is_zero() {
        let seconds = options.defer_accept.as_secs_f64().ceil() as i32;
        set_tcp_option(&socket, TcpOption::DeferAccept, seconds)?;
    }
    listen(&socket, i32::try_from(options.backlog).unwrap_or(i32::MAX))?;
    Ok(socket)
}

/// The length of a SYN's data by its saved headers.
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
