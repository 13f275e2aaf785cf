//! Opening a connection of the kernel, with data on the SYN where the kernel has a cookie.
use super::{Open, options, sys, unsupported};
use ::device::kernel_socket::{TcpOption, set_tcp_option};
use proto::{ConnectOptions, FastOpen, Skipped};
use rustix::io::Errno;
use rustix::net::{AddressFamily, bind, connect as connect_socket};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use tokio::net::TcpStream;

/// The first packet of a connection.
pub(super) enum First {
    /// A SYN without the option.
    Plain(Skipped),
    /// The kernel has taken so many bytes. On Linux they are on the SYN.
    Data(usize),
    /// A SYN for data that had to wait, because the kernel has no usable cookie.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the others keep the data"))]
    NoCookie,
    /// A SYN with a cookie or a request for one, without data to send.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the others wait for data"))]
    Empty,
}

/// Opens a connection and writes the first bytes. Returns when the SYN has been answered.
///
/// # Cancel safety
/// Dropping the future closes the socket.
pub(crate) async fn connect(peer: SocketAddr, options: &ConnectOptions) -> io::Result<Open> {
    ensure_supported(options)?;
    let socket = socket(peer, options)?;
    let first = begin(&socket, peer, options)?;
    let stream = TcpStream::from_std(std::net::TcpStream::from(socket))?;
    sys::answered(&stream).await?;
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    // A reset may follow the handshake at once; the stream then reports it.
    let outcome = sys::outcome(&first, &stream)?;
    let taken = if let First::Data(len) = first { len } else { 0 };
    write_all(&stream, &options.first_bytes[taken..]).await?;
    if options.fin {
        shut(&stream)?;
    }
    Ok(Open::new(stream, outcome, options.socket.clone()))
}

fn ensure_supported(options: &ConnectOptions) -> io::Result<()> {
    if options.syn_fin {
        return Err(unsupported("a FIN on the SYN"));
    }
    if options.fast_open == FastOpen::Force {
        return Err(unsupported("FastOpen::Force"));
    }
    Ok(())
}

fn socket(peer: SocketAddr, options: &ConnectOptions) -> io::Result<OwnedFd> {
    let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = sys::socket(family)?;
    options::apply(&socket, peer.is_ipv4(), &options.socket)?;
    if let Some(local) = options.local {
        bind(&socket, &of_family(local, peer)?)?;
    }
    Ok(socket)
}

/// Returns `local`; an unspecified address of the other family means any address of the peer's.
fn of_family(local: SocketAddr, peer: SocketAddr) -> io::Result<SocketAddr> {
    match (local.ip(), peer.ip()) {
        (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => Ok(local),
        (ip, IpAddr::V4(_)) if ip.is_unspecified() => Ok(SocketAddr::from(([0; 4], local.port()))),
        (ip, IpAddr::V6(_)) if ip.is_unspecified() => Ok(SocketAddr::from(([0_u16; 8], local.port()))),
        _ => Err(io::ErrorKind::AddrNotAvailable.into()),
    }
}

/// Sends the SYN.
fn begin(socket: &OwnedFd, peer: SocketAddr, options: &ConnectOptions) -> io::Result<First> {
    let data = &options.first_bytes;
    match options.fast_open {
        FastOpen::Off => return plain(socket, peer, Skipped::NotAsked),
        FastOpen::NoCookie if data.is_empty() => return plain(socket, peer, Skipped::NothingToSend),
        FastOpen::NoCookie => set_tcp_option(socket, TcpOption::FastOpenNoCookie, 1)?,
        FastOpen::Auto | FastOpen::Force => {}
    }
    match sys::connect_with_data(socket, data, peer)? {
        Ok(first) => Ok(first),
        Err(why) => plain(socket, peer, why),
    }
}

fn plain(socket: &OwnedFd, peer: SocketAddr, why: Skipped) -> io::Result<First> {
    match connect_socket(socket, &peer) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(First::Plain(why)),
        Err(error) => Err(error.into()),
    }
}

async fn write_all(stream: &TcpStream, mut data: &[u8]) -> io::Result<()> {
    while !data.is_empty() {
        stream.writable().await?;
        match stream.try_write(data) {
            Ok(written) => data = &data[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sends the FIN. A connection that has ended is shut down already.
pub(super) fn shut(stream: &TcpStream) -> io::Result<()> {
    match rustix::net::shutdown(stream.as_fd(), rustix::net::Shutdown::Write) {
        Ok(()) | Err(Errno::NOTCONN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
