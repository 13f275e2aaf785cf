//! Checks that the kernel routes the stack's packets to its device. Sends nothing.
use crate::failure::{Failure, warn};
use crate::values::Cidr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Rejects an address for a new device that another interface already has: the kernel would use
/// that one for the network.
pub(crate) fn check_unused(host_addresses: &[Cidr]) -> Result<(), Failure> {
    match host_addresses.iter().find(|host| kernel_source(host.addr).is_ok_and(|source| source == host.addr))
    {
        None => Ok(()),
        Some(used) => Err(Failure::failed(format!(
            "another interface already has the address {}; choose another network with --address \
            (and --host-address)",
            used.addr
        ))),
    }
}

/// Rejects an address that the machine itself has, and warns if the kernel's route to the stack
/// does not use the device.
pub(crate) fn check(tun: &str, addresses: &[Cidr], host_addresses: &[Cidr]) -> Result<(), Failure> {
    for own in addresses {
        match kernel_source(own.addr) {
            Ok(source) if source == own.addr => {
                return Err(Failure::failed(format!(
                    "{} is already an address of this machine; choose another one for the stack \
                    with --address",
                    own.addr
                )));
            }
            Ok(source)
                if !host_addresses.is_empty() && host_addresses.iter().all(|host| host.addr != source) =>
            {
                warn(format!(
                    "the kernel reaches {} from {source}, not through {tun}: another interface has \
                    this network; choose another one with --address",
                    own.addr
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::NetworkUnreachable => {
                warn(format!(
                    "the kernel has no route to {own}; give it an address on {tun} with \
                    --host-address, or run: ip route add {}/{} dev {tun}",
                    own.addr,
                    if own.addr.is_ipv4() { 32 } else { 128 },
                ));
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// Returns the source address that the kernel would use for `addr`.
fn kernel_source(addr: IpAddr) -> io::Result<IpAddr> {
    let any: IpAddr =
        if addr.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(SocketAddr::new(addr, DISCARD))?;
    Ok(socket.local_addr()?.ip())
}

/// Any port works: nothing is sent.
const DISCARD: u16 = 9;
