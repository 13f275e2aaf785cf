//! The links: from every client to every server, or from all of them to a router. A server may have
//! two links to the router.
//!
//! ```text
//!   client eth0 192.0.2.1 ──── 192.0.2.254 ┐        ┌ 198.51.100.254 ──(path)──── 198.51.100.1 eth0 ┐
//!   client eth0 10.0.0.1 ── 10.255.255.254 ┤ router │                                               │ server
//!   client eth0 10.0.0.2 ── 10.255.255.254 ┘        └ 198.18.0.254 ──(second)────── 198.18.0.1 eth1 ┘
//! ```

use super::file::PathPart;
use super::mistake::{Mistake, Within};
use super::path;
use super::quantities::Time;
use crate::capture::HostId;
use crate::network::{Network, PathId, Route};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

pub(super) const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(super) const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(SERVER_ETH0), 80);
const SERVER_ETH0: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// Addresses of a second path (RFC 2544's networks).
const SERVER_ETH1: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Address of the second client; the following clients count up from it.
const MORE_CLIENTS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Addresses of the router: on the link of the first client, of every other client, and of the
/// server's devices.
const ROUTER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 254);
const ROUTER_OF_MORE: Ipv4Addr = Ipv4Addr::new(10, 255, 255, 254);
const ROUTER_OF_ETH0: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 254);
const ROUTER_OF_ETH1: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 254);

/// A path to a server, of one client or of several behind a router.
pub(super) struct Joined {
    pub(super) id: PathId,
    pub(super) server: HostId,
}

pub(super) fn address_of_client(number: u32) -> Ipv4Addr {
    match number {
        0 => CLIENT,
        number => Ipv4Addr::from_bits(MORE_CLIENTS.to_bits() + number - 1),
    }
}

/// Joins the hosts as the path describes.
pub(super) fn join(
    network: &mut Network,
    plan: &PathPart,
    clients: &[HostId],
    servers: &[HostId],
) -> Result<Vec<Joined>, Mistake> {
    match (plan.router, servers) {
        (Some(rtt), [server]) => join_by_router(network, plan, rtt, clients, *server),
        (Some(_), _) => {
            let error = "`router` supports one server: remove `servers` or `router`";
            Err(error).within("router").within("path")
        }
        (None, _) if plan.second.is_some() => {
            let error = "`second` needs a `router`, where both paths to the server begin: add its round trip";
            Err(error).within("second").within("path")
        }
        (None, _) => {
            let mut joined = Vec::new();
            for (server, client) in
                servers.iter().flat_map(|server| clients.iter().map(move |client| (server, client)))
            {
                let id = network.join(*client, *server, path::route(plan).within("path")?);
                joined.push(Joined { id, server: *server });
            }
            Ok(joined)
        }
    }
}

fn join_by_router(
    network: &mut Network,
    plan: &PathPart,
    Time(rtt): Time,
    clients: &[HostId],
    server: HostId,
) -> Result<Vec<Joined>, Mistake> {
    let router = network.add_router(ROUTER);
    let to_server = [router, server];
    let id =
        network.join_link(to_server, [ROUTER_OF_ETH0, SERVER_ETH0], 24, path::route(plan).within("path")?);
    if let Some(Time(rtt)) = plan.second {
        network.join_link(to_server, [ROUTER_OF_ETH1, SERVER_ETH1], 24, Route::with_rtt(rtt));
    }
    set_default(network, server, ROUTER_OF_ETH0)?;
    for (number, client) in (0..).zip(clients) {
        let (gateway, prefix_len) = if number == 0 { (ROUTER, 24) } else { (ROUTER_OF_MORE, 32) };
        let addresses = [address_of_client(number), gateway];
        network.join_link([*client, router], addresses, prefix_len, Route::with_rtt(rtt));
        set_default(network, *client, gateway)?;
    }
    Ok(vec![Joined { id, server }])
}

fn set_default(network: &mut Network, host: HostId, gateway: Ipv4Addr) -> Result<(), String> {
    let Some(ways) = network.ways_mut(host) else { return Ok(()) };
    let set = ways.replace_route((Ipv4Addr::UNSPECIFIED, 0), Some(gateway), None);
    set.map_err(|error| error.to_string())
}
