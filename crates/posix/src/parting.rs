//! Names of sockets that are closed and whose connections live on: they deliver, or are in TIME-WAIT. Who binds to one of their ports must
//! mind them (in Linux they stay in the port's bucket).

use crate::sockets::Sockets;
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

impl Sockets {
    /// Does the connection of a socket that is closed keep another one from this name? `shares`: it may be shared where both allow it.
    pub(crate) fn is_parting(&self, asks: Asks, port: u16, shares: bool) -> bool {
        let Some(names) = self.parting.names.get(&port) else { return false };
        let conflicts = |parted: &&Parted| {
            let both = asks.reuse_addr && parted.reuse_addr || asks.reuse_port && parted.reuse_port;
            asks.overlaps(parted.ip) && !(shares && both)
        };
        names.iter().filter(conflicts).any(|parted| self.stack.is_port_parting(parted.ip, port))
    }

    /// Those that are gone by now need not be minded.
    pub(crate) fn forget_parted(&mut self, port: u16) {
        let stack = &self.stack;
        if let Some(names) = self.parting.names.get_mut(&port) {
            names.retain(|parted| stack.is_port_parting(parted.ip, port));
            if names.is_empty() {
                self.parting.names.remove(&port);
            }
        }
    }
}
