//! Routes: values for connections per destination, in the words of `ip route`.
//!
//! ```text
//!  a connect, a SYN ──► RouteTable::lookup(peer): longest prefix ──► Route
//!                       kept by the connection until it changes (tcp/rare/rerouted)
//! ```
//!
//! A socket's own option has priority over the route's value, and that over the stack's setting.
//! `text` parses and formats the words. Not here: next hops and devices (a stack has one device).

mod text;

pub use text::{RouteError, parse_route, show_route};

use crate::fast_open::Network;
use crate::{Config, CongestionControl};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::time::Duration;
use wire::Addr;

/// Most routes of a table; a connect costs a lookup per length of prefix, not per route.
const ROUTES_MAX: usize = 65_536;

/// A value of a route, and whether it overrides learned values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// In the unit of its field.
    pub value: u32,
    /// True for `lock`: connections do not change it.
    pub locked: bool,
}

/// A reject route, in `ip route`'s words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectRoute {
    /// Packets are dropped silently.
    Blackhole,
    /// The destination is reported as unreachable.
    Unreachable,
    /// The destination is reported as administratively prohibited.
    Prohibit,
}

/// Values of a route for connections; `None` or false leaves a value to the stack. They are read
/// when a connection begins. [`Stack::set_route`](crate::Stack::set_route) describes changes during
/// a connection.
/// ```
/// let metrics: firstbyte_proto::RouteMetrics = "initcwnd 20 mtu lock 1400 rto_min 50ms".parse().unwrap();
/// assert_eq!((metrics.initcwnd, metrics.mtu.unwrap().locked), (Some(20), true));
/// assert_eq!(metrics.to_string(), "mtu lock 1400 initcwnd 20 rto_min 50ms");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteMetrics {
    /// A reject route: connects to its destinations fail, and packets from them are not answered.
    /// Open connections continue.
    pub reject: Option<RejectRoute>,
    /// Maximum packet size, bytes. Locked: ICMP errors do not lower it.
    pub mtu: Option<Metric>,
    /// Advertised MSS, bytes, if the MTU has room for it.
    pub advmss: Option<u16>,
    /// Initial congestion window, segments.
    pub initcwnd: Option<u32>,
    /// Initial receive window, segments of the local MSS.
    pub initrwnd: Option<u32>,
    /// Maximum congestion window, segments. See `firstbyte.route_metrics_unlocked`.
    pub cwnd: Option<Metric>,
    /// Initial slow-start threshold, segments. See `firstbyte.route_metrics_unlocked`.
    pub ssthresh: Option<Metric>,
    /// Minimum retransmission timeout.
    pub rto_min: Option<Duration>,
    /// True to acknowledge every segment with data at once.
    pub quickack: bool,
    /// Congestion control.
    pub congctl: Option<CongestionControl>,
    /// True if Fast Open needs no cookie for this destination, in either direction (RFC 7413 §5.1).
    pub fastopen_no_cookie: bool,
}

/// A route as its connections see it.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) metrics: RouteMetrics,
    /// Slow-start threshold that holds without more ado, segments.
    pub(crate) ssthresh: Option<u32>,
    /// Limit of the congestion window, segments.
    pub(crate) cwnd_clamp: Option<u32>,
    /// That holds only where something is remembered of the path: the limit lies in Linux's memory of it (`tcp_init_metrics`).
    clamp_wants_path: bool,
}

impl Route {
    /// Linux takes `cwnd` only with `lock`, and `ssthresh` only by way of the remembered path.
    fn new(metrics: RouteMetrics, unlocked: bool) -> Route {
        Route {
            metrics,
            ssthresh: metrics.ssthresh.filter(|_| unlocked).map(|metric| metric.value),
            cwnd_clamp: metrics.cwnd.filter(|metric| metric.locked || unlocked).map(|metric| metric.value),
            clamp_wants_path: !unlocked,
        }
    }

    /// What holds for a connection that began with `old`, or without a route, from now on: of the windows what its beginning said.
    #[cold]
    pub(crate) fn in_place_of(old: Option<&Route>, new: Option<Arc<Route>>) -> Option<Arc<Route>> {
        let (ssthresh, cwnd_clamp) = old.map_or((None, None), |old| (old.ssthresh, old.cwnd_clamp));
        if new.is_none() && cwnd_clamp.is_none() {
            return None;
        }
        let metrics = new.as_ref().map(|new| new.metrics).unwrap_or_default();
        let clamp_wants_path = new.is_some_and(|new| new.clamp_wants_path);
        Some(Arc::new(Route { metrics, ssthresh, cwnd_clamp, clamp_wants_path }))
    }

    /// What it says of a path of which something is remembered, or not.
    pub(crate) fn on_path(self: Arc<Route>, is_known: impl FnOnce() -> bool) -> Arc<Route> {
        if self.clamp_wants_path && self.cwnd_clamp.is_some() && !is_known() {
            return Arc::new(Route { cwnd_clamp: None, ..*self });
        }
        self
    }
}

/// Routes by prefix.
#[derive(Debug, Default)]
pub(crate) struct RouteTable {
    routes: BTreeMap<Network, Arc<Route>>,
    /// The lengths of prefix there are, and how many routes of each: longest first when read backwards.
    lengths: BTreeMap<u8, u32>,
}

impl RouteTable {
    /// Adds or replaces; false when the table is full.
    pub(crate) fn set(&mut self, config: &Config, network: Network, metrics: RouteMetrics) -> bool {
        if self.routes.len() >= ROUTES_MAX && !self.routes.contains_key(&network) {
            return false;
        }
        let route = Arc::new(Route::new(metrics, config.route_metrics_unlocked));
        if self.routes.insert(network, route).is_none() {
            *self.lengths.entry(network.prefix_len()).or_default() += 1;
        }
        true
    }

    pub(crate) fn remove(&mut self, network: Network) -> Option<RouteMetrics> {
        let route = self.routes.remove(&network)?;
        if let Some(count) = self.lengths.get_mut(&network.prefix_len()) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&network.prefix_len());
            }
        }
        Some(route.metrics)
    }

    /// The route of the longest prefix that `peer` lies in.
    #[inline]
    pub(crate) fn lookup(&self, peer: Addr) -> Option<&Arc<Route>> {
        if self.routes.is_empty() { None } else { self.longest_prefix(peer) }
    }

    #[inline(never)]
    fn longest_prefix(&self, peer: Addr) -> Option<&Arc<Route>> {
        let width = if peer.is_v4() { 32 } else { 128 };
        let lengths = self.lengths.range(..=width).rev();
        lengths.map(|(length, _)| Network::new(peer, *length)).find_map(|network| self.routes.get(&network))
    }

    /// The reject route that `peer` matches, if any.
    #[inline]
    pub(crate) fn reject_route(&self, peer: Addr) -> Option<RejectRoute> {
        self.lookup(peer).and_then(|route| route.metrics.reject)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Network, RouteMetrics)> {
        self.routes.iter().map(|(network, route)| (*network, route.metrics))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    fn addr(text: &str) -> Addr {
        text.parse::<core::net::IpAddr>().unwrap().into()
    }

    fn initcwnd(segments: u32) -> RouteMetrics {
        RouteMetrics { initcwnd: Some(segments), ..RouteMetrics::default() }
    }

    #[test]
    fn the_longest_prefix_wins_within_its_own_family() {
        let mut table = RouteTable::default();
        let found =
            |table: &RouteTable, peer| table.lookup(addr(peer)).and_then(|route| route.metrics.initcwnd);
        assert_eq!(found(&table, "10.1.2.3"), None);
        for (prefix, segments) in [
            ("0.0.0.0/0", 1),
            ("10.0.0.0/8", 2),
            ("10.1.0.0/16", 3),
            ("10.1.2.3/32", 4),
            ("::/0", 5),
            ("fd00::/64", 6),
        ] {
            assert!(table.set(&Config::default(), network(prefix), initcwnd(segments)));
        }
        let all = ["10.1.2.3", "10.1.2.4", "10.2.0.1", "192.0.2.1", "2001:db8::1", "fd00::9"];
        assert_eq!(
            all.map(|peer| found(&table, peer)),
            [Some(4), Some(3), Some(2), Some(1), Some(5), Some(6)]
        );
        assert_eq!(table.remove(network("10.1.0.0/16")), Some(initcwnd(3)));
        assert_eq!(table.remove(network("10.1.0.0/16")), None);
        assert_eq!(found(&table, "10.1.2.4"), Some(2));
        assert_eq!(table.iter().count(), 5);
    }

    #[test]
    fn the_table_is_bounded() {
        let mut table = RouteTable::default();
        for i in 0..=ROUTES_MAX as u32 {
            let network = Network::new(Addr::from(core::net::IpAddr::from(i.to_be_bytes())), 32);
            assert_eq!(table.set(&Config::default(), network, initcwnd(1)), i < ROUTES_MAX as u32);
        }
        assert!(table.set(&Config::default(), network("0.0.0.0/32"), initcwnd(2)), "replacing needs no room");
    }

    #[test]
    fn a_profile_may_take_cwnd_only_with_lock_and_no_ssthresh() {
        let metrics: RouteMetrics = "cwnd 8 ssthresh 12".parse().unwrap();
        let locked: RouteMetrics = "cwnd lock 8 ssthresh lock 12".parse().unwrap();
        let values = |metrics, unlocked| {
            let route = Route::new(metrics, unlocked);
            (route.cwnd_clamp, route.ssthresh)
        };
        assert_eq!(values(metrics, true), (Some(8), Some(12)));
        assert_eq!(values(metrics, false), (None, None));
        assert_eq!(values(locked, false), (Some(8), None));
    }
}
