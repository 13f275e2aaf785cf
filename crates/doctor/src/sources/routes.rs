//! Routes that say something of TCP, and rules that choose a table by source address, by rtnetlink.
use super::netlink::dump;
use crate::sample::{Device, Route, RouteMetrics};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteType,
};
use netlink_packet_route::rule::{RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::io;
use std::net::IpAddr;

/// Default routes and those with metrics; and how many rules look at the source.
pub(super) fn read(devices: &[Device]) -> io::Result<(Vec<Route>, u32)> {
    let mut routes = Vec::new();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let mut request = RouteMessage::default();
        request.header.address_family = family;
        dump(NETLINK_ROUTE, RouteNetlinkMessage::GetRoute(request), |answer| {
            if let RouteNetlinkMessage::NewRoute(message) = answer {
                routes.extend(route(&message, devices));
            }
        })?;
    }
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

fn route(message: &RouteMessage, devices: &[Device]) -> Option<Route> {
    let header = &message.header;
    if header.kind != RouteType::Unicast {
        return None;
    }
    let mut to = None;
    let mut words = String::new();
    let mut route = Route { default: header.destination_prefix_length == 0, ..Route::default() };
    let mut table = u32::from(header.table);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(address) => to = text(address),
            RouteAttribute::Gateway(address) => {
                words.push_str(&format!(" via {}", text(address)?));
            }
            RouteAttribute::Oif(index) => {
                route.device = devices.iter().find(|device| device.index == *index)?.name.clone();
            }
            RouteAttribute::Table(number) => table = *number,
            RouteAttribute::Metrics(metrics) => route.metrics = values(metrics),
            _ => {}
        }
    }
    if !route.device.is_empty() {
        words.push_str(&format!(" dev {}", route.device));
    }
    if let Some(metric) = message.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Priority(metric) => Some(*metric),
        _ => None,
    }) {
        words.push_str(&format!(" metric {metric}"));
    }
    if table != u32::from(RouteHeader::RT_TABLE_MAIN) {
        words.push_str(&format!(" table {table}"));
    }
    let to = match to {
        _ if route.default => "default".to_owned(),
        Some(address) => format!("{address}/{}", header.destination_prefix_length),
        None => return None,
    };
    route.route = to + &words;
    (route.default || route.metrics != RouteMetrics::default()).then_some(route)
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
            // RTAX_LOCK: a bit for each metric, RTAX_CWND is 7.
            RouteMetric::Lock(locks) => values.cwnd_locked = locks & 1 << 7 != 0,
            RouteMetric::Mtu(bytes) => values.mtu = *bytes,
            RouteMetric::Advmss(bytes) => values.advmss = *bytes,
            RouteMetric::Cwnd(segments) => values.cwnd = *segments,
            RouteMetric::SsThresh(segments) => values.ssthresh = *segments,
            RouteMetric::InitCwnd(segments) => values.initcwnd = *segments,
            RouteMetric::InitRwnd(segments) => values.initrwnd = *segments,
            _ => {}
        }
    }
    values
}
