//! Keys of signed segments, `TCP_MD5SIG` and `TCP_MD5SIG_EXT` (RFC 2385; Linux's `tcp_v4_parse_md5_keys`, `tcp_v6_parse_md5_keys`).

use super::Setting;
use crate::errno::Errno;
use crate::socket::Domain;
use crate::sockets::Sockets;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use proto::{MD5_KEY_MAX, Md5Key};

pub(super) const TCP_MD5SIG_EXT: i32 = 32;
/// `struct tcp_md5sig`: its size, and where its parts are. Before them is a `sockaddr_storage`.
const LEN: usize = 216;
const V4_AT: usize = 4;
const V6_AT: usize = 8;
const FLAGS_AT: usize = 128;
const PREFIX_LEN_AT: usize = 129;
const KEY_LEN_AT: usize = 130;
const DEVICE_AT: usize = 132;
const KEY_AT: usize = 136;
/// `TCP_MD5SIG_FLAG_PREFIX` and `TCP_MD5SIG_FLAG_IFINDEX`.
const HAS_PREFIX: u8 = 1;
const HAS_DEVICE: u8 = 2;

impl Sockets {
    /// Adds, changes or (without a key) takes away the key of a peer or of a network. In any state: what leaves next is signed by it.
    pub(super) fn set_md5_key(&mut self, setting: &Setting<'_>) -> Result<(), Errno> {
        let Setting { now, fd, name, value, .. } = *setting;
        let domain = self.files.socket(fd)?.domain;
        let value = value.first(LEN)?;
        let extended = name == TCP_MD5SIG_EXT;
        let (address, prefix_len) = peers_of(domain, value, extended)?;
        if extended && value[FLAGS_AT] & HAS_DEVICE != 0 && value[DEVICE_AT..KEY_AT] != [0; 4] {
            // Only a routing domain could be meant, and there is none.
            return Err(Errno::EINVAL);
        }
        let key_len = usize::from(u16::from_ne_bytes([value[KEY_LEN_AT], value[KEY_LEN_AT + 1]]));
        let socket = self.files.socket_mut(fd)?;
        let keys = &mut socket.options.engine.md5_keys;
        let secret = value[KEY_AT..].get(..key_len).ok_or(Errno::EINVAL)?.into();
        let key = Md5Key { address, prefix_len, of_domain: value[FLAGS_AT] & HAS_DEVICE != 0, secret };
        match key_len {
            0 if !keys.remove(&key) => return Err(Errno::ENOENT),
            0 => {}
            1..=MD5_KEY_MAX => keys.insert(key),
            _ => return Err(Errno::EINVAL),
        }
        let (keys, connection) = (keys.clone(), socket.connection().filter(|_| !socket.ended));
        if let Some(id) = connection {
            // One that has ended meanwhile has no more to sign.
            let _ = self.stack.set_md5_keys(now, id, keys);
        }
        Ok(())
    }
}

/// Whom the key is for. An IPv4 peer of an IPv6 socket is a mapped address.
fn peers_of(domain: Domain, value: &[u8], extended: bool) -> Result<(IpAddr, u8), Errno> {
    let family = i32::from(u16::from_ne_bytes([value[0], value[1]]));
    let part = |at: usize| value[at..].first_chunk();
    let address = match domain {
        Domain::V4 if family == libc::AF_INET => part(V4_AT).map(|octets| Ipv4Addr::from(*octets).into()),
        Domain::V6 if family == libc::AF_INET6 => {
            value[V6_AT..].first_chunk().map(|octets: &[u8; 16]| Ipv6Addr::from(*octets).to_canonical())
        }
        _ => None,
    };
    let address: IpAddr = address.ok_or(Errno::EINVAL)?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let asked = extended && value[FLAGS_AT] & HAS_PREFIX != 0;
    let prefix_len = if asked { value[PREFIX_LEN_AT] } else { most };
    if prefix_len > most { Err(Errno::EINVAL) } else { Ok((address, prefix_len)) }
}
