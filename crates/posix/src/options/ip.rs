//! Options of `IPPROTO_IP` (Linux's `do_ip_setsockopt`, `do_ip_getsockopt`), which IPv6 sockets have, too: they hold where such a socket
//! speaks IPv4.

use super::{Given, Setting, bytes, kept};
use crate::errno::Errno;
use crate::socket::{Domain, Socket};
use crate::sockets::Sockets;
use proto::{PathMtuDiscovery, SocketOption};

/// Linux's numbers that libc does not name for every target.
const IP_HDRINCL: i32 = 3;
const IP_OPTIONS: i32 = 4;
const IP_ROUTER_ALERT: i32 = 5;
const IP_PKTOPTIONS: i32 = 9;
const IP_XFRM_POLICY: i32 = 17;
const IP_IPSEC_POLICY: i32 = 16;
const IP_MINTTL: i32 = 21;
const IP_NODEFRAG: i32 = 22;
const IP_BIND_ADDRESS_NO_PORT: i32 = 24;
const IP_RECVFRAGSIZE: i32 = 25;
const IP_MSFILTER: i32 = 41;
const IP_UNICAST_IF: i32 = 50;
const IP_LOCAL_PORT_RANGE: i32 = 51;
const IP_PROTOCOL: i32 = 52;
/// From `MCAST_JOIN_GROUP` on.
const MCAST_FIRST: i32 = 42;
const MCAST_MSFILTER: i32 = 48;
/// Bytes of IP options that a header has room for.
const OPTIONS_MAX: usize = 40;

impl Sockets {
    pub(super) fn set_ip_option(&mut self, setting: &Setting<'_>) -> Result<(), Errno> {
        let Setting { fd, name, value, .. } = *setting;
        if let Some(kept) = kept::of_ip(name) {
            let number = number(value)?;
            if value.len() == 0 && !kept.may_be_empty {
                return Err(Errno::EINVAL);
            }
            return self.remember(setting, kept.take(number)?);
        }
        match name {
            libc::IP_TOS => {
                let number = number(value)?;
                self.set_tos(setting, number)
            }
            libc::IP_TTL => {
                let ttl = match required(value)? {
                    -1 => None,
                    number => Some(u8::try_from(number).ok().filter(|ttl| *ttl > 0).ok_or(Errno::EINVAL)?),
                };
                self.files.socket_mut(fd)?.options.ttl = ttl;
                self.set_engine_of(setting, true, SocketOption::HopLimit(ttl))
            }
            IP_MINTTL => {
                let least = u8::try_from(required(value)?).map_err(|_| Errno::EINVAL)?;
                self.files.socket_mut(fd)?.options.min_ttl = least;
                self.set_engine_of(setting, true, SocketOption::MinHops(least))
            }
            libc::IP_MTU_DISCOVER => {
                let mode = discovery(number(value)?)?;
                self.files.socket_mut(fd)?.options.mtu_discovery[0] = mode;
                self.set_engine_of(setting, true, SocketOption::PathMtuDiscovery(mode))
            }
            libc::IP_RECVERR => {
                let on = number(value)? != 0;
                self.set_recverr(fd, 0, on)
            }
            libc::IP_FREEBIND => {
                self.files.socket_mut(fd)?.options.freebind = required(value)? != 0;
                Ok(())
            }
            libc::IP_TRANSPARENT => {
                self.files.socket_mut(fd)?.options.transparent = required(value)? != 0;
                Ok(())
            }
            IP_BIND_ADDRESS_NO_PORT => {
                self.files.socket_mut(fd)?.options.bind_address_no_port = number(value)? != 0;
                Ok(())
            }
            IP_LOCAL_PORT_RANGE => self.set_local_port_range(setting),
            IP_UNICAST_IF => number(value).and_then(|_| unicast_if(value)),
            IP_OPTIONS => match value.len() {
                0 => Ok(()),
                1..=OPTIONS_MAX => Err(Errno::EOPNOTSUPP),
                _ => Err(Errno::EINVAL),
            },
            // Of raw sockets, of datagrams, of multicast.
            IP_HDRINCL | IP_NODEFRAG => number(value).and(Err(Errno::ENOPROTOOPT)),
            IP_ROUTER_ALERT | IP_RECVFRAGSIZE | libc::IP_MULTICAST_TTL => {
                number(value).and(Err(Errno::EINVAL))
            }
            libc::IP_MULTICAST_IF => Err(Errno::EINVAL),
            libc::IP_ADD_MEMBERSHIP | libc::IP_DROP_MEMBERSHIP => Err(Errno::EPROTO),
            libc::IP_UNBLOCK_SOURCE..=IP_MSFILTER | MCAST_FIRST..=MCAST_MSFILTER => Err(Errno::EINVAL),
            IP_IPSEC_POLICY | IP_XFRM_POLICY => Err(Errno::EOPNOTSUPP),
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    /// The two lower bits are ECN's, which an application does not decide. The socket's priority follows the others (`rt_tos2priority`).
    fn set_tos(&mut self, setting: &Setting<'_>, number: i32) -> Result<(), Errno> {
        let tos = (number & 0xfc) as u8;
        let options = &mut self.files.socket_mut(setting.fd)?.options;
        if std::mem::replace(&mut options.tos, tos) != tos {
            options.remember((libc::SOL_SOCKET, libc::SO_PRIORITY), PRIORITIES[usize::from(tos >> 1 & 0xf)]);
        }
        self.set_engine_of(setting, true, SocketOption::Dscp(tos >> 2))
    }

    /// What waited is forgotten with it.
    pub(super) fn set_recverr(&mut self, fd: i32, which: usize, on: bool) -> Result<(), Errno> {
        let socket = self.files.socket_mut(fd)?;
        socket.options.recverr[which] = on;
        if !on {
            socket.errors.clear();
        }
        Ok(())
    }

    /// The lower half is the lowest port, the upper half the highest; 0 is the stack's.
    fn set_local_port_range(&mut self, setting: &Setting<'_>) -> Result<(), Errno> {
        let number = number(setting.value)?.cast_unsigned();
        let (low, high) = (number as u16, (number >> 16) as u16);
        if setting.value.len() != size_of::<u32>() || low != 0 && high != 0 && low > high {
            return Err(Errno::EINVAL);
        }
        self.files.socket_mut(setting.fd)?.options.local_ports = (low, high);
        Ok(())
    }

    pub(super) fn ip_option(&self, fd: i32, name: i32, room: usize) -> Result<Vec<u8>, Errno> {
        let socket = self.files.socket(fd)?;
        let number = match name {
            IP_OPTIONS | IP_PKTOPTIONS => return Ok(Vec::new()),
            libc::IP_MULTICAST_IF => return Ok(bytes(0)),
            libc::IP_TOS => socket.options.tos.into(),
            libc::IP_TTL => socket.options.ttl.map_or(self.stack.config().ip_default_ttl as i32, i32::from),
            IP_MINTTL => socket.options.min_ttl.into(),
            libc::IP_MTU => self.path_mtu(socket)?,
            libc::IP_MTU_DISCOVER => discovery_number(socket.options.mtu_discovery[0]),
            libc::IP_RECVERR => socket.options.recverr[0].into(),
            libc::IP_FREEBIND => socket.options.freebind.into(),
            libc::IP_TRANSPARENT => socket.options.transparent.into(),
            IP_BIND_ADDRESS_NO_PORT => socket.options.bind_address_no_port.into(),
            IP_LOCAL_PORT_RANGE => {
                let (low, high) = socket.options.local_ports;
                (u32::from(high) << 16 | u32::from(low)).cast_signed()
            }
            IP_HDRINCL | IP_NODEFRAG | IP_ROUTER_ALERT | IP_RECVFRAGSIZE | IP_UNICAST_IF => 0,
            libc::IP_MULTICAST_TTL => 1,
            IP_PROTOCOL if !socket.is_named() => 0,
            IP_PROTOCOL => self.local_name(fd)?.port().into(),
            IP_MSFILTER | MCAST_MSFILTER => return Err(Errno::EINVAL),
            _ => {
                let kept = kept::of_ip(name).ok_or(Errno::ENOPROTOOPT)?;
                // IPv6 sockets begin without it.
                let without = name == kept::IP_MULTICAST_ALL && socket.domain == Domain::V6;
                let default = if without { 0 } else { kept.default };
                self.remembered(fd, libc::IPPROTO_IP, name)?.unwrap_or(default)
            }
        };
        Ok(match u8::try_from(number) {
            Ok(byte) if (1..4).contains(&room) => vec![byte],
            _ => bytes(number),
        })
    }

    pub(super) fn path_mtu(&self, socket: &Socket) -> Result<i32, Errno> {
        let info = socket.connection().and_then(|id| self.stack.info(id)).ok_or(Errno::ENOTCONN)?;
        Ok(info.tcp_info.pmtu.into())
    }
}

/// `IP_PMTUDISC_DONT` to `IP_PMTUDISC_OMIT`, which are those of IPv6, too.
const DISCOVERIES: [PathMtuDiscovery; 6] = [
    PathMtuDiscovery::Dont,
    PathMtuDiscovery::Want,
    PathMtuDiscovery::Do,
    PathMtuDiscovery::Probe,
    PathMtuDiscovery::Interface,
    PathMtuDiscovery::Omit,
];

pub(super) fn discovery(number: i32) -> Result<PathMtuDiscovery, Errno> {
    let index = usize::try_from(number).map_err(|_| Errno::EINVAL)?;
    DISCOVERIES.get(index).copied().ok_or(Errno::EINVAL)
}

pub(super) fn discovery_number(mode: PathMtuDiscovery) -> i32 {
    DISCOVERIES.iter().zip(0..).find(|(known, _)| **known == mode).map_or(0, |(_, number)| number)
}

/// Of the only device, which has no number.
pub(super) fn unicast_if(value: Given<'_>) -> Result<(), Errno> {
    match value.len() {
        4 if value.int()? == 0 => Ok(()),
        4 => Err(Errno::EADDRNOTAVAIL),
        _ => Err(Errno::EINVAL),
    }
}

/// These options take one byte as well as an `int`, and nothing for 0.
fn number(value: Given<'_>) -> Result<i32, Errno> {
    match value.len() {
        0 => Ok(0),
        1..4 => Ok(value.first(1)?[0].into()),
        _ => value.int(),
    }
}

fn required(value: Given<'_>) -> Result<i32, Errno> {
    if value.len() == 0 { Err(Errno::EINVAL) } else { number(value) }
}

/// Linux's `ip_tos2prio`, by the type of service of RFC 1349: best effort, bulk, interactive, interactive bulk.
const PRIORITIES: [i32; 16] = [0, 0, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 4, 4, 4, 4];
