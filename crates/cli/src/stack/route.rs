//! Does the kernel send what is for the stack to its device? Asked without sending anything.
use crate::failure::{Failure, warn};
use crate::values::Cidr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Refuses an address for a new device that another interface has already: its network would be reached through that one.
pub(crate) fn check_unused(host_addresses: &[Cidr]) -> Result<(), Failure> {
    match host_addresses.iter().find(|host| kernel_source(host.addr).is_ok_and(|source| source == host.addr))
    {
        None => Ok(()),
        Some(used) => Err(Failure::failed(format!(
            "another interface has the address {} already; choose another network with --address (and --host-address)",
            used.addr
        ))),
    }
}

/// Refuses an address that the machine has itself, and warns when the kernel's route to the stack is not the device.
pub(crate) fn check(tun: &str, addresses: &[Cidr], host_addresses: &[Cidr]) -> Result<(), Failure> {
    for own in addresses {
        match kernel_source(own.addr) {
            Ok(source) if source == own.addr => {
                return Err(Failure::failed(format!(
                    "{} is an address of this machine's kernel already; give the stack another one with --address",
                    own.addr
                )));
            }
            Ok(source)
                if !host_addresses.is_empty() && host_addresses.iter().all(|host| host.addr != source) =>
            {
                warn(format!(
                    "the kernel reaches {} from {source}, not through {tun}: another interface has this network; \
                     choose another one with --address",
                    own.addr
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::NetworkUnreachable => {
                warn(format!(
                    "the kernel has no route to {own}: give it an address on {tun} with --host-address, or: ip route add {}/{} dev {tun}",
                    own.addr,
                    if own.addr.is_ipv4() { 32 } else { 128 },
                ));
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// The address from which the kernel would send to `addr`.
fn kernel_source(addr: IpAddr) -> io::Result<IpAddr> {
    let any: IpAddr =
        if addr.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(SocketAddr::new(addr, DISCARD))?;
    Ok(socket.local_addr()?.ip())
}

/// The port does not matter: nothing is sent.
const DISCARD: u16 = 9;
