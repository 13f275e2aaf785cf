//! Options of the engine's names on sockets of the kernel.
use super::{sys, unsupported};
use ::device::kernel_socket::{TcpOption, set_max_pacing_rate, set_tcp_option};
use proto::{SocketOption, SocketOptions};
use rustix::net::sockopt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Sets the options that differ from a socket's own defaults.
pub(super) fn apply(socket: impl AsFd, is_v4: bool, options: &SocketOptions) -> io::Result<()> {
    let socket = socket.as_fd();
    // Our streams keep an urgent byte in place. The kernel's do not, unless told; some cannot.
    match sys::set_urgent_apart(socket, options.urgent_apart) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
        result => result?,
    }
    for option in chosen(options) {
        set(socket, is_v4, option)?;
    }
    if unmapped(options) != unmapped(&SocketOptions::default()) {
        return Err(unsupported("min_hops, save_syn, receive_times, tx_delay or md5_keys"));
    }
    Ok(())
}

/// Returns the options that [`set`] does not map.
fn unmapped(options: &SocketOptions) -> impl PartialEq + use<> {
    let md5 = options.md5_keys.clone();
    (options.min_hops, options.save_syn, options.receive_times, options.tx_delay, md5)
}

/// Lists the options that somebody has chosen.
fn chosen(options: &SocketOptions) -> Vec<SocketOption> {
    let times = [
        options.keepalive_time.map(|time| SocketOption::KeepAliveTime(Some(time))),
        options.keepalive_intvl.map(|time| SocketOption::KeepAliveInterval(Some(time))),
        options.user_timeout.map(|time| SocketOption::UserTimeout(Some(time))),
        options.linger.map(|time| SocketOption::Linger(Some(time))),
        options.linger2.map(|time| SocketOption::Linger2(Some(time))),
        options.delack_max.map(|most| SocketOption::DelackMax(Some(most))),
        options.rto_min.map(|least| SocketOption::RtoMin(Some(least))),
        options.rto_max.map(|most| SocketOption::RtoMax(Some(most))),
    ];
    let sizes = [
        options.max_segment.map(|bytes| SocketOption::MaxSegment(Some(bytes))),
        options.notsent_lowat.map(|bytes| SocketOption::NotsentLowat(Some(bytes))),
        options.send_buffer.map(SocketOption::SendBuffer),
        options.recv_buffer.map(SocketOption::RecvBuffer),
        options.recv_lowat.map(SocketOption::RecvLowat),
        options.window_clamp.map(SocketOption::WindowClamp),
        options.max_pacing_rate.map(|rate| SocketOption::MaxPacingRate(Some(rate))),
    ];
    let others = [
        options.nodelay.then_some(SocketOption::NoDelay(true)),
        options.cork.then_some(SocketOption::Cork(true)),
        options.quickack.map(SocketOption::QuickAck),
        options.keepalive.then_some(SocketOption::KeepAlive(true)),
        options.keepalive_probes.map(|probes| SocketOption::KeepAliveProbes(Some(probes))),
        options.syn_retries.map(|retries| SocketOption::SynRetries(Some(retries))),
        options.thin_linear_timeouts.then_some(SocketOption::ThinLinearTimeouts(true)),
        (options.dscp != 0).then_some(SocketOption::Dscp(options.dscp)),
        options.hop_limit.map(|hops| SocketOption::HopLimit(Some(hops))),
        options.path_mtu_discovery.map(SocketOption::PathMtuDiscovery),
        options.congestion.map(SocketOption::Congestion),
    ];
    times.into_iter().chain(sizes).chain(others).flatten().collect()
}

/// Sets one option.
pub(super) fn set(socket: impl AsFd, is_v4: bool, option: SocketOption) -> io::Result<()> {
    let socket = socket.as_fd();
    match option {
        SocketOption::NoDelay(on) => sockopt::set_tcp_nodelay(socket, on)?,
        SocketOption::KeepAlive(on) => sockopt::set_socket_keepalive(socket, on)?,
        SocketOption::KeepAliveTime(Some(time)) => sockopt::set_tcp_keepidle(socket, time)?,
        SocketOption::KeepAliveInterval(Some(time)) => sockopt::set_tcp_keepintvl(socket, time)?,
        SocketOption::KeepAliveProbes(Some(probes)) => sockopt::set_tcp_keepcnt(socket, probes.into())?,
        SocketOption::SendBuffer(bytes) => sockopt::set_socket_send_buffer_size(socket, bytes as usize)?,
        SocketOption::RecvBuffer(bytes) => sockopt::set_socket_recv_buffer_size(socket, bytes as usize)?,
        SocketOption::UrgentApart(on) => sys::set_urgent_apart(socket, on)?,
        SocketOption::Dscp(code) if is_v4 => sockopt::set_ip_tos(socket, code << 2)?,
        SocketOption::Dscp(code) => sockopt::set_ipv6_tclass(socket, u32::from(code) << 2)?,
        SocketOption::HopLimit(Some(hops)) if is_v4 => sockopt::set_ip_ttl(socket, hops.into())?,
        SocketOption::HopLimit(Some(hops)) => sockopt::set_ipv6_unicast_hops(socket, Some(hops))?,
        SocketOption::Linger(None) => sockopt::set_socket_linger(socket, None)?,
        SocketOption::Linger(Some(Duration::ZERO)) => {
            sockopt::set_socket_linger(socket, Some(Duration::ZERO))?;
        }
        SocketOption::MaxPacingRate(rate) => {
            set_max_pacing_rate(socket, rate.map_or(u64::MAX, u64::from))?;
        }
        option => sys::set_option(socket, option)?,
    }
    Ok(())
}

/// Sets one of the options that rustix does not have.
pub(super) fn set_integer(socket: BorrowedFd<'_>, option: SocketOption) -> io::Result<()> {
    let integer = |bytes: u32| i32::try_from(bytes).unwrap_or(i32::MAX);
    let (name, value) = match option {
        SocketOption::MaxSegment(bytes) => (TcpOption::MaxSegment, bytes.map_or(0, i32::from)),
        SocketOption::SynRetries(Some(retries)) => (TcpOption::SynCount, retries.into()),
        SocketOption::Linger2(Some(Duration::ZERO)) => (TcpOption::Linger2, -1),
        SocketOption::Linger2(wait) => {
            (TcpOption::Linger2, wait.map_or(0, |wait| integer(wait.as_secs().max(1) as u32)))
        }
        SocketOption::NotsentLowat(bytes) => (TcpOption::NotsentLowat, bytes.map_or(-1, integer)),
        SocketOption::WindowClamp(bytes) => (TcpOption::WindowClamp, integer(bytes)),
        SocketOption::Linger(_) => return Err(unsupported("a linger time that does not block the thread")),
        option => return Err(unsupported(&format!("the option {option:?}"))),
    };
    set_tcp_option(socket, name, value)
}
