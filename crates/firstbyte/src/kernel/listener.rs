//! A listener of the kernel.
use super::{Open, options, sys, unsupported};
use ::device::kernel_socket::{TcpOption, set_fast_open_key, set_tcp_option};
use proto::{ListenOptions, SocketOptions};
use rustix::net::{AddressFamily, bind, listen, sockopt};
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
        Poll::Ready(Ok((Open::accepted(stream, self.has_fast_open, self.options.clone()), peer)))
    }
}

fn socket(local: SocketAddr, options: &ListenOptions, reuse_port: bool) -> io::Result<OwnedFd> {
    let family = if local.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = sys::socket(family)?;
    // As tokio and std do: a restarted server gets its port although connections are in TIME-WAIT.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if reuse_port {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    options::apply(&socket, local.is_ipv4(), &options.socket)?;
    bind(&socket, &local)?;
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
    sys::listen(&socket, options, i32::try_from(options.backlog).unwrap_or(i32::MAX))?;
    Ok(socket)
}
