//! Options of `IPPROTO_IP` and `IPPROTO_IPV6` that mean something to a TCP socket.

use super::{Setting, bytes, flag, int};
use crate::errno::Errno;
use crate::socket::Domain;
use crate::sockets::Sockets;
use proto::SocketOption;

impl Sockets {
    pub(super) fn set_ip_option(&mut self, setting: &Setting<'_>) -> Result<(), Errno> {
        let Setting { fd, level, name, value, .. } = *setting;
        // These take one byte as well as an int.
        let number = match value {
            [byte, rest @ ..] if rest.len() < 3 => i32::from(*byte),
            _ => int(value)?,
        };
        let socket = self.files.socket_mut(fd)?;
        match (level, name) {
            (libc::IPPROTO_IPV6, _) if socket.domain == Domain::V4 => Err(Errno::ENOPROTOOPT),
            (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) if socket.bound.is_some() => Err(Errno::EINVAL),
            (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => {
                socket.options.v6_only = number != 0;
                Ok(())
            }
            (libc::IPPROTO_IP, libc::IP_FREEBIND) => {
                socket.options.freebind = number != 0;
                Ok(())
            }
            (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                // The two lower bits are ECN's, which an application does not decide.
                let tos = (number & 0xfc) as u8;
                socket.options.tos = tos;
                self.set_engine(setting, SocketOption::Dscp(tos >> 2))
            }
            (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS) => {
                let hops =
                    if number == -1 { None } else { Some(u8::try_from(number).map_err(|_| Errno::EINVAL)?) };
                self.set_engine(setting, SocketOption::HopLimit(hops))
            }
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                socket.options.recverr[usize::from(level == libc::IPPROTO_IPV6)] = number != 0;
                Ok(())
            }
            (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER) | (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER) => {
                // A stream finds the path's MTU whatever is asked for.
                if !(libc::IP_PMTUDISC_DONT..=libc::IP_PMTUDISC_OMIT).contains(&number) {
                    return Err(Errno::EINVAL);
                }
                self.remember(setting, number)
            }
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    pub(super) fn ip_option(&self, fd: i32, level: i32, name: i32) -> Result<Vec<u8>, Errno> {
        let socket = self.files.socket(fd)?;
        Ok(match (level, name) {
            (libc::IPPROTO_IPV6, _) if socket.domain == Domain::V4 => return Err(Errno::EOPNOTSUPP),
            (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => flag(socket.options.v6_only),
            (libc::IPPROTO_IP, libc::IP_FREEBIND) => flag(socket.options.freebind),
            (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                bytes(socket.options.tos.into())
            }
            (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS) => {
                let default = self.stack.config().ip_default_ttl as i32;
                bytes(socket.options.engine.hop_limit.map_or(default, i32::from))
            }
            (libc::IPPROTO_IP, libc::IP_MTU) => {
                let info = socket.connection().and_then(|id| self.stack.info(id)).ok_or(Errno::ENOTCONN)?;
                bytes(info.tcp_info.pmtu.into())
            }
            (libc::IPPROTO_IP, libc::IP_RECVERR) => flag(socket.options.recverr[0]),
            (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => flag(socket.options.recverr[1]),
            (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER) | (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER) => {
                bytes(self.remembered(fd, level, name)?.unwrap_or(libc::IP_PMTUDISC_WANT))
            }
            _ => return Err(Errno::ENOPROTOOPT),
        })
    }
}
