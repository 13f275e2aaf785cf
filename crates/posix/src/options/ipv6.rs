//! Options of `IPPROTO_IPV6` (Linux's `do_ipv6_setsockopt`, `do_ipv6_getsockopt`).

use super::ip::{discovery, discovery_number};
use super::{Given, Setting, bytes, ip, kept};
use crate::errno::Errno;
use crate::socket::{Domain, Role};
use crate::sockets::Sockets;
use proto::{SocketOption, State};

/// Linux's numbers that libc does not name for every target.
const IPV6_2292PKTOPTIONS: i32 = 6;
const IPV6_ROUTER_ALERT: i32 = 22;
const IPV6_JOIN_ANYCAST: i32 = 27;
const IPV6_LEAVE_ANYCAST: i32 = 28;
const IPV6_FLOWLABEL_MGR: i32 = 32;
const IPV6_IPSEC_POLICY: i32 = 34;
const IPV6_XFRM_POLICY: i32 = 35;
const MCAST_FIRST: i32 = 42;
const MCAST_MSFILTER: i32 = 48;
const IPV6_RTHDRDSTOPTS: i32 = 55;
const IPV6_PATHMTU: i32 = 61;
const IPV6_ADDR_PREFERENCES: i32 = 72;
const IPV6_MINHOPCOUNT: i32 = 73;
const IPV6_TRANSPARENT: i32 = 75;
const IPV6_UNICAST_IF: i32 = 76;
const IPV6_FREEBIND: i32 = 78;

/// RFC 8200 §5.
const MTU_MIN: i32 = 1280;
/// Sizes of `struct in6_pktinfo`, `struct ipv6_mreq`, `struct in6_flowlabel_req`, `struct ip6_mtuinfo`, `struct cmsghdr`.
const PKTINFO_LEN: usize = 20;
const MREQ_LEN: usize = 20;
const FLOWLABEL_LEN: usize = 32;
const MTUINFO_LEN: usize = 32;
const CMSG_LEN: usize = 16;
/// `struct group_filter` without sources.
const GROUP_FILTER_LEN: usize = 136;
/// Extension headers come in units of so many bytes, at most 255 of them.
const HEADER_UNIT: usize = 8;
/// What `IPV6_2292PKTOPTIONS` takes.
const PKTOPTIONS_MAX: usize = 65_536;

/// RFC 5014's preferences: pairs that exclude each other, and what is told where none is chosen.
mod preference {
    pub(super) const TMP: i32 = 0x1;
    pub(super) const PUBLIC: i32 = 0x2;
    pub(super) const COA: i32 = 0x4;
    pub(super) const CGA: i32 = 0x8;
    pub(super) const PUBTMP_DEFAULT: i32 = 0x100;
    pub(super) const HOME: i32 = 0x400;
    pub(super) const NONCGA: i32 = 0x800;
}

impl Sockets {
    pub(super) fn set_ipv6_option(&mut self, setting: &Setting<'_>) -> Result<(), Errno> {
        let Setting { fd, name, value, .. } = *setting;
        let socket = self.files.socket(fd)?;
        if socket.domain == Domain::V4 {
            return Err(Errno::ENOPROTOOPT);
        }
        if let Some(kept) = kept::of_ipv6(name) {
            let number = if kept.may_be_empty { number(value) } else { required(value)? };
            return self.remember(setting, kept.take(number)?);
        }
        match name {
            libc::IPV6_V6ONLY if socket.is_named() => Err(Errno::EINVAL),
            libc::IPV6_V6ONLY => {
                self.files.socket_mut(fd)?.options.v6_only = required(value)? != 0;
                Ok(())
            }
            libc::IPV6_TCLASS => {
                let class = match required(value)? {
                    -1 => 0,
                    number => u8::try_from(number).map_err(|_| Errno::EINVAL)? & 0xfc,
                };
                self.files.socket_mut(fd)?.options.tclass = class;
                self.set_engine_of(setting, false, SocketOption::Dscp(class >> 2))
            }
            libc::IPV6_UNICAST_HOPS => {
                let hops = match required(value)? {
                    -1 => None,
                    number => Some(u8::try_from(number).map_err(|_| Errno::EINVAL)?),
                };
                self.files.socket_mut(fd)?.options.hops = hops;
                self.set_engine_of(setting, false, SocketOption::HopLimit(hops))
            }
            libc::IPV6_MTU_DISCOVER => {
                let mode = discovery(required(value)?)?;
                self.files.socket_mut(fd)?.options.mtu_discovery[1] = mode;
                self.set_engine_of(setting, false, SocketOption::PathMtuDiscovery(mode))
            }
            IPV6_MINHOPCOUNT => {
                let least = u8::try_from(required(value)?).map_err(|_| Errno::EINVAL)?;
                self.files.socket_mut(fd)?.options.min_hops = least;
                self.set_engine_of(setting, false, SocketOption::MinHops(least))
            }
            libc::IPV6_RECVERR => {
                let on = required(value)? != 0;
                self.set_recverr(fd, 1, on)
            }
            IPV6_FREEBIND => {
                self.files.socket_mut(fd)?.options.freebind = required(value)? != 0;
                Ok(())
            }
            IPV6_TRANSPARENT => {
                self.files.socket_mut(fd)?.options.transparent = required(value)? != 0;
                Ok(())
            }
            libc::IPV6_ADDRFORM => self.become_ipv4(setting),
            IPV6_ADDR_PREFERENCES => self.set_preferences(setting),
            // Of datagrams, of which alone this would be the greatest size.
            libc::IPV6_MTU => match required(value)? {
                0 | MTU_MIN.. => Ok(()),
                _ => Err(Errno::EINVAL),
            },
            IPV6_UNICAST_IF if value.is_faulty() && value.len() == 4 => Ok(()),
            IPV6_UNICAST_IF => ip::unicast_if(value),
            libc::IPV6_PKTINFO => pktinfo(value),
            IPV6_2292PKTOPTIONS => match value.len() {
                0 => Ok(()),
                PKTOPTIONS_MAX.. => Err(Errno::EINVAL),
                len => value.all().and(if len < CMSG_LEN { Ok(()) } else { Err(Errno::EINVAL) }),
            },
            libc::IPV6_HOPOPTS | IPV6_RTHDRDSTOPTS | libc::IPV6_RTHDR | libc::IPV6_DSTOPTS => {
                extension_header(name, value)
            }
            libc::IPV6_ADD_MEMBERSHIP | libc::IPV6_DROP_MEMBERSHIP => {
                Err(if value.len() < MREQ_LEN { Errno::EINVAL } else { Errno::EPROTO })
            }
            // No address here is anybody's but ours.
            IPV6_JOIN_ANYCAST => value.first(MREQ_LEN).and(Err(Errno::EADDRNOTAVAIL)),
            IPV6_LEAVE_ANYCAST => value.first(MREQ_LEN).and(Err(Errno::ENOENT)),
            IPV6_FLOWLABEL_MGR => {
                value.first(FLOWLABEL_LEN)?;
                Err(Errno::EOPNOTSUPP)
            }
            MCAST_FIRST..=MCAST_MSFILTER => Err(Errno::EINVAL),
            IPV6_IPSEC_POLICY | IPV6_XFRM_POLICY => Err(Errno::EOPNOTSUPP),
            IPV6_ROUTER_ALERT => required(value).and(Err(Errno::ENOPROTOOPT)),
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    /// A connection that speaks IPv4 becomes one of an IPv4 socket (`IPV6_ADDRFORM`).
    fn become_ipv4(&mut self, setting: &Setting<'_>) -> Result<(), Errno> {
        if required(setting.value)? != libc::AF_INET {
            return Err(Errno::EINVAL);
        }
        let socket = self.files.socket(setting.fd)?;
        let id = socket.connection().filter(|id| self.state(*id) == State::Established);
        let (_, peer) = id.and_then(|id| self.stack.names(id)).ok_or(Errno::ENOTCONN)?;
        if socket.options.v6_only || peer.is_ipv6() {
            return Err(Errno::EADDRNOTAVAIL);
        }
        self.files.socket_mut(setting.fd)?.domain = Domain::V4;
        Ok(())
    }

    /// Which of several source addresses (RFC 5014). A stack has one of each family, so that there is nothing to choose; what contradicts
    /// itself is refused all the same (`ip6_sock_set_addr_preferences`).
    fn set_preferences(&mut self, setting: &Setting<'_>) -> Result<(), Errno> {
        use preference::{CGA, COA, HOME, NONCGA, PUBLIC, PUBTMP_DEFAULT, TMP};
        let asked = required(setting.value)?;
        let several = |among: i32| (asked & among).count_ones() > 1;
        if several(TMP | PUBLIC | PUBTMP_DEFAULT) || several(HOME | COA) || several(CGA | NONCGA) {
            return Err(Errno::EINVAL);
        }
        self.remember(setting, asked & (TMP | PUBLIC | COA))
    }

    pub(super) fn ipv6_option(&self, fd: i32, name: i32, room: usize) -> Result<Vec<u8>, Errno> {
        let socket = self.files.socket(fd)?;
        let options = &socket.options;
        let number = match name {
            libc::IPV6_V6ONLY => options.v6_only.into(),
            libc::IPV6_TCLASS => options.tclass.into(),
            libc::IPV6_UNICAST_HOPS => {
                options.hops.map_or(self.stack.config().ip_default_ttl as i32, i32::from)
            }
            libc::IPV6_MTU_DISCOVER => discovery_number(options.mtu_discovery[1]),
            IPV6_MINHOPCOUNT => options.min_hops.into(),
            libc::IPV6_RECVERR => options.recverr[1].into(),
            IPV6_FREEBIND => options.freebind.into(),
            IPV6_TRANSPARENT => options.transparent.into(),
            libc::IPV6_ADDRFORM => match socket.role {
                Role::Connection(id) if self.state(id) == State::Established => libc::AF_INET6,
                _ => return Err(Errno::ENOTCONN),
            },
            libc::IPV6_MTU => self.path_mtu(socket)?,
            IPV6_PATHMTU => {
                if room < MTUINFO_LEN {
                    return Err(Errno::EINVAL);
                }
                // Behind an address that is none (`struct ip6_mtuinfo`).
                return Ok([vec![0; MTUINFO_LEN - 4], bytes(self.path_mtu(socket)?)].concat());
            }
            IPV6_ADDR_PREFERENCES => self.preferences(fd)?,
            IPV6_2292PKTOPTIONS
            | libc::IPV6_HOPOPTS
            | IPV6_RTHDRDSTOPTS
            | libc::IPV6_RTHDR
            | libc::IPV6_DSTOPTS => return Ok(Vec::new()),
            libc::IPV6_MULTICAST_HOPS => 1,
            libc::IPV6_MULTICAST_IF | IPV6_UNICAST_IF | IPV6_ROUTER_ALERT => 0,
            MCAST_MSFILTER if !(GROUP_FILTER_LEN..=i32::MAX as usize).contains(&room) => {
                return Err(Errno::EINVAL);
            }
            MCAST_MSFILTER => return Err(Errno::EADDRNOTAVAIL),
            IPV6_FLOWLABEL_MGR => return Err(Errno::EINVAL),
            _ => {
                let kept = kept::of_ipv6(name).ok_or(Errno::ENOPROTOOPT)?;
                self.remembered(fd, libc::IPPROTO_IPV6, name)?.unwrap_or(kept.default)
            }
        };
        let mut told = bytes(number);
        told.truncate(room);
        Ok(told)
    }

    fn preferences(&self, fd: i32) -> Result<i32, Errno> {
        use preference::{COA, HOME, PUBLIC, PUBTMP_DEFAULT, TMP};
        let kept = self.remembered(fd, libc::IPPROTO_IPV6, IPV6_ADDR_PREFERENCES)?.unwrap_or(0);
        let public = if kept & (TMP | PUBLIC) == 0 { PUBTMP_DEFAULT } else { kept & (TMP | PUBLIC) };
        Ok(public | if kept & COA == 0 { HOME } else { COA })
    }
}

/// A place that cannot be read is 0 here, and so is what is shorter than an `int`.
fn number(value: Given<'_>) -> i32 {
    value.int().unwrap_or(0)
}

fn required(value: Given<'_>) -> Result<i32, Errno> {
    if value.len() < size_of::<i32>() { Err(Errno::EINVAL) } else { Ok(number(value)) }
}

/// `IPV6_PKTINFO`, which is for datagrams: no more than that it names no device.
fn pktinfo(value: Given<'_>) -> Result<(), Errno> {
    let Given::Bytes(bytes) = value else { return Err(Errno::EINVAL) };
    let info = bytes.get(..PKTINFO_LEN).ok_or(Errno::EINVAL)?;
    if info[16..].iter().all(|byte| *byte == 0) { Ok(()) } else { Err(Errno::EINVAL) }
}

/// No packet here has extension headers: none can be taken away, and what would be one is not taken (`ipv6_set_opt_hdr`).
fn extension_header(name: i32, value: Given<'_>) -> Result<(), Errno> {
    let bytes = match value {
        _ if value.len() == 0 => return Ok(()),
        Given::Faulty(_) => return Err(Errno::EINVAL),
        Given::Bytes(bytes) => bytes,
    };
    let units = bytes.get(1).map_or(0, |units| usize::from(*units) + 1);
    let whole = bytes.len() % HEADER_UNIT == 0 && bytes.len() <= HEADER_UNIT * 255;
    if !whole || units * HEADER_UNIT > bytes.len() || name == libc::IPV6_RTHDR {
        return Err(Errno::EINVAL);
    }
    Err(Errno::EOPNOTSUPP)
}
