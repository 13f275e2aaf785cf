//! Detects a SYN flood from the kernel's numbers.
//!
//! Rules about half-open connections, retransmissions and drops check for a flood first. A flood
//! moves all of their counters, and each rule would name another cause.
use crate::flood::Flood;
use crate::limit::Limit;
use crate::sample::Address;
use crate::sample::state::SYN_RECEIVED;
use crate::window::Window;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

/// Fewest source addresses of a flood. Fewer may be clients whose replies are lost.
pub(super) const SOURCES: Limit = Limit { rule: "ACC-07", name: "sources", value: 16.0, unit: "addresses" };

/// The half-open connections of a port.
#[derive(Default)]
struct Port {
    all: u64,
    again: u64,
    sources: BTreeSet<IpAddr>,
}

/// Returns the current flood, if there is one. The signs of a flood are:
///
/// - half-open connections from many addresses;
/// - more of them unanswered than connections are completed;
/// - a SYN queue that overflows, or is more than half full of them.
pub(super) fn flood<'w>(window: &'w Window<'_>) -> Option<&'w Flood> {
    window.flood(of)
}

fn of(window: &Window<'_>) -> Option<Flood> {
    let cookies = window.grown("TcpExtTCPReqQFullDoCookies");
    let dropped = window.grown("TcpExtTCPReqQFullDrop");
    let completed = window.grown("TcpPassiveOpens");
    let by_cookie = window.grown("TcpExtSyncookiesRecv");
    let overflowed = cookies.saturating_sub(by_cookie).saturating_add(dropped);
    let is_flooded = |number: u16, port: &Port| {
        // The backlog bounds the queue.
        let half = least(window, number);
        let distinct = port.sources.len() as u64;
        let many = distinct as f64 >= window.limit(&SOURCES) && distinct.saturating_mul(2) >= port.all;
        let unanswered = port.again.saturating_mul(2) > port.all;
        // Connections completed since boot say nothing about the present.
        let lost = overflowed.saturating_add(port.again);
        let most = window.before().is_none() || lost > completed;
        many && unanswered && most && (overflowed > 0 || port.all > half)
    };
    let mut flooded: Vec<(u16, Port)> =
        ports(window).into_iter().filter(|(number, port)| is_flooded(*number, port)).collect();
    flooded.sort_by_key(|(_, port)| std::cmp::Reverse(port.all));
    let mut flooded = flooded.into_iter();
    let (number, Port { all, again, sources }) = flooded.next()?;
    Some(Flood {
        port: number,
        half_open: all,
        unanswered: again,
        sources,
        others: flooded.map(|(port, _)| port).collect(),
        cookies,
        dropped,
        completed,
    })
}

/// Returns half of the length of a port's SYN queue. Above it Linux times half-open connections out
/// sooner.
pub(super) fn least(window: &Window<'_>, port: u16) -> u64 {
    let backlog = window.listeners().find(|listener| listener.local_port == port);
    u64::from(backlog.map_or(0, |listener| listener.send_queue)).max(8) / 2
}

fn ports(window: &Window<'_>) -> BTreeMap<u16, Port> {
    let mut ports: BTreeMap<u16, Port> = BTreeMap::new();
    for socket in window.in_state(SYN_RECEIVED) {
        let port = ports.entry(socket.local_port).or_default();
        port.all += 1;
        port.again += u64::from(socket.retransmits >= 1);
        port.sources.insert(source(socket.peer));
    }
    ports
}

/// Returns the address of a peer, or its /64 network for IPv6: an IPv6 host may use every address
/// of its network.
fn source(peer: Address) -> IpAddr {
    match peer.0 {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
    }
}
