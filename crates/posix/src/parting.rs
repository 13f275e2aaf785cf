//! Names of closed sockets whose connections continue: they deliver data, or are in TIME-WAIT. A
//! later `bind` to one of their ports must consider them (in Linux they stay in the port's bucket).

mod asked;

use core::net::IpAddr;
use std::collections::BTreeMap;

/// By port. Of one address there is one entry, which allows no more than each of them did.
#[derive(Debug, Default)]
pub(crate) struct Parting {
    names: BTreeMap<u16, Vec<Parted>>,
}

#[derive(Debug)]
struct Parted {
    ip: IpAddr,
    reuse_addr: bool,
    reuse_port: bool,
}

/// Who asks for a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asks {
    pub(crate) ip: IpAddr,
    /// It speaks IPv6 and nothing else.
    pub(crate) v6_only: bool,
    pub(crate) reuse_addr: bool,
    pub(crate) reuse_port: bool,
}

impl Asks {
    fn overlaps(&self, ip: IpAddr) -> bool {
        let family = self.ip.is_ipv4() == ip.is_ipv4() || self.ip.is_ipv6() && !self.v6_only;
        self.ip == ip || self.ip.is_unspecified() && family
    }
}

impl Parting {
    /// A socket with this name and these options is closed.
    pub(crate) fn note(&mut self, (ip, port): (IpAddr, u16), reuse_addr: bool, reuse_port: bool) {
        let names = self.names.entry(port).or_default();
        match names.iter_mut().find(|parted| parted.ip == ip) {
            Some(parted) => {
                parted.reuse_addr &= reuse_addr;
                parted.reuse_port &= reuse_port;
            }
            None => names.push(Parted { ip, reuse_addr, reuse_port }),
        }
    }
}
