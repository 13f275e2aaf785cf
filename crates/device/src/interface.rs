//! Kernel interfaces of this thread's network namespace: state, MTU, addresses, routes.
//!
//! Each rtnetlink request is one message and its answer, over a socket that lives for the call.
//! Changes need CAP_NET_ADMIN in the namespace; [`find`] needs nothing. Netlink is used instead of
//! the older ioctls because it handles IPv6 and IPv4 alike, can skip duplicate address detection,
//! and needs no `unsafe`.
mod message;

use message::{Message, family};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;

const NLM_F_ACK: u16 = 0x4;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_CREATE: u16 = 0x400;

const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFF_UP: u32 = 1;

const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// Skips duplicate address detection: the address works at once.
const IFA_F_NODAD: u8 = 0x02;

const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_LINK: u8 = 253;
const RT_SCOPE_UNIVERSE: u8 = 0;
const RTN_UNICAST: u8 = 1;
const RTN_LOCAL: u8 = 2;

/// Time limit for an address to start working, and the interval between checks.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(1);
const ADDRESS_POLL: Duration = Duration::from_millis(1);

/// A kernel interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its index in this namespace.
    pub index: u32,
    /// Its MTU, bytes.
    pub mtu: usize,
    /// Length of its transmit queue, packets (`txqueuelen`).
    pub queue_len: u32,
    /// True if it is up.
    pub is_up: bool,
}

/// Looks an interface up by name.
///
/// # Errors
/// ENODEV: there is no interface of that name.
pub fn find(name: &str) -> io::Result<Interface> {
    let mut request = Message::new(RTM_GETLINK, 0);
    request.link(0, 0, 0).string(IFLA_IFNAME, name);
    let reply = exchange(request)?;
    let body = reply.body(RTM_NEWLINK)?;
    let (header, attributes) = body.split_at_checked(16).ok_or(io::ErrorKind::InvalidData)?;
    let word = |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let number = |kind| {
        let value = message::attribute(attributes, kind)?.try_into().ok()?;
        Some(u32::from_ne_bytes(value))
    };
    let mtu = number(IFLA_MTU).ok_or(io::ErrorKind::InvalidData)?;
    let queue_len = number(IFLA_TXQLEN).ok_or(io::ErrorKind::InvalidData)?;
    Ok(Interface { index: word(4), mtu: mtu as usize, queue_len, is_up: word(8) & IFF_UP != 0 })
}

/// Sets an interface up.
///
/// # Errors
/// EPERM without CAP_NET_ADMIN, ENODEV.
pub fn set_up(index: u32) -> io::Result<()> {
    let mut request = Message::new(RTM_NEWLINK, NLM_F_ACK);
    request.link(index, IFF_UP, IFF_UP);
    exchange(request)?.acknowledged()
}

/// Sets an interface down.
///
/// # Errors
/// EPERM without CAP_NET_ADMIN, ENODEV.
pub fn set_down(index: u32) -> io::Result<()> {
    let mut request = Message::new(RTM_NEWLINK, NLM_F_ACK);
    request.link(index, 0, IFF_UP);
    exchange(request)?.acknowledged()
}

/// Deletes an interface. Descriptors of a TUN fail from then on.
///
/// # Errors
/// EPERM without CAP_NET_ADMIN, ENODEV.
pub fn delete(index: u32) -> io::Result<()> {
    let mut request = Message::new(RTM_DELLINK, NLM_F_ACK);
    request.link(index, 0, 0);
    exchange(request)?.acknowledged()
}

/// Sets the MTU in bytes.
///
/// # Errors
/// EPERM without CAP_NET_ADMIN; EINVAL outside the driver's range (TUN: 68..=65535).
pub fn set_mtu(index: u32, mtu: usize) -> io::Result<()> {
    let mtu = u32::try_from(mtu).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut request = Message::new(RTM_NEWLINK, NLM_F_ACK);
    request.link(index, 0, 0).attribute(IFLA_MTU, &mtu.to_ne_bytes());
    exchange(request)?.acknowledged()
}

/// Sets the length of the transmit queue (`txqueuelen`). For a TUN, these are the packets that its
/// descriptor has not read yet.
///
/// # Errors
/// EPERM without CAP_NET_ADMIN.
pub fn set_queue_len(index: u32, packets: u32) -> io::Result<()> {
    let mut request = Message::new(RTM_NEWLINK, NLM_F_ACK);
    request.link(index, 0, 0).attribute(IFLA_TXQLEN, &packets.to_ne_bytes());
    exchange(request)?.acknowledged()
}

/// Adds an address to the interface; its prefix becomes reachable through it. An existing address
/// is not an error. There is no duplicate address detection; see [`wait_for_address`].
///
/// # Errors
/// EPERM without CAP_NET_ADMIN; EINVAL for a prefix that is too long; EACCES if IPv6 is disabled.
pub fn add_address(index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
    let (family, bytes) = family(&address);
    let flags = if address.is_ipv6() { IFA_F_NODAD } else { 0 };
    let mut request = Message::new(RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE);
    request.raw(&[family, prefix, flags, RT_SCOPE_UNIVERSE]).raw(&index.to_ne_bytes());
    request.attribute(IFA_LOCAL, &bytes).attribute(IFA_ADDRESS, &bytes);
    exchange(request)?.acknowledged()
}

/// Waits until the kernel accepts packets to this address of an interface that is up. The kernel
/// enables a new IPv6 address in a background thread, some time after it was added.
///
/// # Errors
/// `TimedOut` after one second.
pub fn wait_for_address(address: IpAddr) -> io::Result<()> {
    let deadline = Instant::now() + ADDRESS_TIMEOUT;
    while !is_local(address)? {
        if Instant::now() >= deadline {
            return Err(rustix::io::Errno::TIMEDOUT.into());
        }
        std::thread::sleep(ADDRESS_POLL);
    }
    Ok(())
}

/// True if a packet to this address would be delivered locally.
fn is_local(address: IpAddr) -> io::Result<bool> {
    let (family, bytes) = family(&address);
    let mut request = Message::new(RTM_GETROUTE, 0);
    request.raw(&[family, bytes.len() as u8 * 8, 0, 0, 0, 0, 0, 0]).raw(&[0; 4]);
    request.attribute(RTA_DST, &bytes);
    match exchange(request)?.body(RTM_NEWROUTE) {
        Ok(body) => Ok(body.get(7) == Some(&RTN_LOCAL)),
        Err(error) if error.kind() == io::ErrorKind::NetworkUnreachable => Ok(false),
        Err(error) => Err(error),
    }
}

/// Routes a prefix to the interface (`ip route replace PREFIX dev …`).
///
/// # Errors
/// EPERM without CAP_NET_ADMIN; ENETDOWN while it is down; EINVAL when bits beyond the prefix are
/// set.
pub fn add_route(index: u32, destination: IpAddr, prefix: u8) -> io::Result<()> {
    let (family, bytes) = family(&destination);
    let scope = if destination.is_ipv4() { RT_SCOPE_LINK } else { RT_SCOPE_UNIVERSE };
    let mut request = Message::new(RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE);
    request.raw(&[family, prefix, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, scope, RTN_UNICAST]).raw(&[0; 4]);
    if prefix != 0 {
        request.attribute(RTA_DST, &bytes);
    }
    request.attribute(RTA_OIF, &index.to_ne_bytes());
    exchange(request)?.acknowledged()
}

/// Sends one request and reads its one answer.
fn exchange(request: Message) -> io::Result<message::Reply> {
    let socket: OwnedFd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&socket, &request.finish(), SendFlags::empty())?;
    let mut reply = vec![0; 32 * 1024];
    let (len, _) = recv(&socket, reply.as_mut_slice(), RecvFlags::empty())?;
    reply.truncate(len);
    Ok(message::Reply::new(reply))
}
