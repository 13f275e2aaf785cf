//! Reads routes with TCP metrics, and rules that choose a table by source address, from rtnetlink.
use super::netlink::{dump, get};
use crate::sample::{Address, Device, Route, RouteMetrics};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteNextHop,
    RouteNextHopFlags, RouteProtocol, RouteType,
};
use netlink_packet_route::rule::{RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::io;
use std::net::IpAddr;

/// Returns default routes and routes with metrics, and the number of rules that match the source.
pub(super) fn read(devices: &[Device]) -> io::Result<(Vec<Route>, u32)> {
    let tells = |route: &Route| route.default || route.metrics != RouteMetrics::default();
    let mut routes = all(devices)?;
    routes.retain(|route| route.kind.is_empty() && tells(route));
    let mut from = 0;
    let mut request = RuleMessage::default();
    request.header.family = AddressFamily::Inet;
    dump(NETLINK_ROUTE, RouteNetlinkMessage::GetRule(request), |answer| {
        if let RouteNetlinkMessage::NewRule(rule) = answer {
            from += u32::from(
                rule.attributes.iter().any(|attribute| matches!(attribute, RuleAttribute::Source(_))),
            );
        }
    })?;
    Ok((routes, from))
}

/// Returns every route of every table.
pub(super) fn all(devices: &[Device]) -> io::Result<Vec<Route>> {
    let mut routes = Vec::new();
    for (family, number) in [(AddressFamily::Inet, 4), (AddressFamily::Inet6, 6)] {
        let mut request = RouteMessage::default();
        request.header.address_family = family;
        dump(NETLINK_ROUTE, RouteNetlinkMessage::GetRoute(request), |answer| {
            if let RouteNetlinkMessage::NewRoute(message) = answer {
                routes.extend(route(&message, devices).map(|route| Route { family: number, ..route }));
            }
        })?;
    }
    Ok(routes)
}

/// Returns whether the route to this address has `fastopen_no_cookie`.
pub(super) fn is_without_cookie(to: IpAddr) -> io::Result<bool> {
    let mut request = RouteMessage::default();
    let (family, address, bits) = match to {
        IpAddr::V4(to) => (AddressFamily::Inet, RouteAddress::Inet(to), 32),
        IpAddr::V6(to) => (AddressFamily::Inet6, RouteAddress::Inet6(to), 128),
    };
    (request.header.address_family, request.header.destination_prefix_length) = (family, bits);
    request.attributes.push(RouteAttribute::Destination(address));
    let answer = get(NETLINK_ROUTE, RouteNetlinkMessage::GetRoute(request))?;
    let Some(RouteNetlinkMessage::NewRoute(route)) = answer else { return Ok(false) };
    Ok(route.attributes.iter().any(|attribute| match attribute {
        RouteAttribute::Metrics(metrics) => {
            metrics.iter().any(|metric| matches!(metric, RouteMetric::FastopenNoCookie(1..)))
        }
        _ => false,
    }))
}

fn route(message: &RouteMessage, devices: &[Device]) -> Option<Route> {
    let header = &message.header;
    let name =
        |index: u32| devices.iter().find(|device| device.index == index).map(|device| device.name.clone());
    let mut to = None;
    let mut words = String::new();
    let mut metric = None;
    let mut route = Route {
        default: header.destination_prefix_length == 0,
        kind: kind(header.kind).to_owned(),
        table: u32::from(header.table),
        protocol: protocol(header.protocol),
        scope: header.scope.to_string().to_ascii_lowercase(),
        ..Route::default()
    };
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(address) => to = text(address),
            RouteAttribute::Gateway(address) => words += &format!(" via {}", text(address)?),
            RouteAttribute::Oif(index) => route.device = name(*index)?,
            RouteAttribute::MultiPath(hops) => {
                for hop in hops {
                    words += &next_hop(hop, &name(hop.interface_index)?);
                }
            }
            RouteAttribute::Table(number) => route.table = *number,
            RouteAttribute::PrefSource(address) => route.source = text(address).map(Address),
            RouteAttribute::Priority(number) => metric = Some(*number),
            RouteAttribute::Metrics(metrics) => {
                (route.metrics, route.other_metrics) = (values(metrics), others(metrics));
            }
            _ => {}
        }
    }
    if !route.device.is_empty() {
        words += &format!(" dev {}", route.device);
    }
    if let Some(metric) = metric {
        words += &format!(" metric {metric}");
    }
    if route.table != u32::from(RouteHeader::RT_TABLE_MAIN) {
        words += &format!(" table {}", route.table);
    }
    if header.flags.contains(RouteFlags::Onlink) {
        words += " onlink";
    }
    let to = match to {
        _ if route.default => "default".to_owned(),
        Some(address) if header.destination_prefix_length == if address.is_ipv4() { 32 } else { 128 } => {
            address.to_string()
        }
        Some(address) => format!("{address}/{}", header.destination_prefix_length),
        None => return None,
    };
    route.route = to + &words;
    Some(route)
}

fn next_hop(hop: &RouteNextHop, device: &str) -> String {
    let gateway = hop.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(address) => text(address),
        _ => None,
    });
    let via = gateway.map_or(String::new(), |gateway| format!(" via {gateway}"));
    let onlink = if hop.flags.contains(RouteNextHopFlags::Onlink) { " onlink" } else { "" };
    format!(" nexthop{via} dev {device} weight {}{onlink}", u32::from(hop.hops) + 1)
}

/// Returns the protocol that created it, by its ip(8) name or its number.
fn protocol(protocol: RouteProtocol) -> String {
    match protocol {
        RouteProtocol::IcmpRedirect => "redirect".to_owned(),
        RouteProtocol::Mrt => "mrt".to_owned(),
        RouteProtocol::DnRouted => "dnrouted".to_owned(),
        RouteProtocol::Ntk => "ntk".to_owned(),
        RouteProtocol::KeepAlived => "keepalived".to_owned(),
        RouteProtocol::Mrouted | RouteProtocol::Other(_) => u8::from(protocol).to_string(),
        named => named.to_string().to_ascii_lowercase(),
    }
}

/// Returns the type of a route that does not simply forward.
fn kind(kind: RouteType) -> &'static str {
    match kind {
        RouteType::Local => "local",
        RouteType::Broadcast => "broadcast",
        RouteType::Anycast => "anycast",
        RouteType::Multicast => "multicast",
        RouteType::BlackHole => "blackhole",
        RouteType::Unreachable => "unreachable",
        RouteType::Prohibit => "prohibit",
        _ => "",
    }
}

fn text(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

fn values(metrics: &[RouteMetric]) -> RouteMetrics {
    let mut values = RouteMetrics::default();
    for metric in metrics {
        match metric {
            // RTAX_LOCK has a bit for each metric. RTAX_CWND is 7.
            RouteMetric::Lock(locks) => (values.cwnd_locked, values.locked) = (locks & 1 << 7 != 0, *locks),
            RouteMetric::Mtu(bytes) => values.mtu = *bytes,
            RouteMetric::Advmss(bytes) => values.advmss = *bytes,
            RouteMetric::Cwnd(segments) => values.cwnd = *segments,
            RouteMetric::SsThresh(segments) => values.ssthresh = *segments,
            RouteMetric::InitCwnd(segments) => values.initcwnd = *segments,
            RouteMetric::InitRwnd(segments) => values.initrwnd = *segments,
            RouteMetric::RtoMin(milliseconds) => values.rto_min = *milliseconds,
            RouteMetric::QuickAck(on) => values.quickack = *on,
            _ => {}
        }
    }
    values
}

/// Returns the metrics that [`values`] leaves out, each with its number among RTAX_*.
fn others(metrics: &[RouteMetric]) -> String {
    let locks = values(metrics).locked;
    let word = |metric: &RouteMetric| {
        // Linux stores a round trip in eighths of a millisecond, its deviation in quarters.
        let (number, name, value) = match metric {
            RouteMetric::Window(bytes) => (3, "window", bytes.to_string()),
            RouteMetric::Rtt(eighths) => (4, "rtt", format!("{}ms", eighths / 8)),
            RouteMetric::RttVar(quarters) => (5, "rttvar", format!("{}ms", quarters / 4)),
            RouteMetric::Reordering(segments) => (9, "reordering", segments.to_string()),
            RouteMetric::Hoplimit(hops) => (10, "hoplimit", hops.to_string()),
            // RTAX_FEATURE_ECN is the only one that ip(8) can set.
            RouteMetric::Features(bits) if bits & 1 != 0 => (12, "features", "ecn".to_owned()),
            RouteMetric::CcAlgo(name) => (16, "congctl", name.clone()),
            RouteMetric::FastopenNoCookie(on) => (17, "fastopen_no_cookie", on.to_string()),
            _ => return None,
        };
        let lock = if locks & (1 << number) != 0 { "lock " } else { "" };
        Some(format!("{name} {lock}{value}"))
    };
    metrics.iter().filter_map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::netlink::tests::mutated;

    #[test]
    fn mutated_routes_do_not_panic() {
        let devices: Vec<Device> = (0..300)
            .map(|index| Device { index, name: format!("eth{index}"), ..Device::default() })
            .collect();
        let mut request = RouteMessage::default();
        request.header.address_family = AddressFamily::Inet;
        mutated(NETLINK_ROUTE, RouteNetlinkMessage::GetRoute(request), |answer| {
            if let RouteNetlinkMessage::NewRoute(message) = answer {
                route(&message, &devices);
            }
        });
    }
}
