//! A connection gets another route.

use super::Rerouted;
use crate::Instant;
use crate::route::Route;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::rare::special::Special;
use crate::time::nanos;
use alloc::sync::Arc;

impl Connection {
    /// The table of routes has another for its peer.
    #[cold]
    pub(crate) fn reroute(&mut self, cx: &Context, route: Option<Arc<Route>>) {
        let metrics = route.as_ref().map(|route| &route.metrics);
        if metrics == self.route_metrics() && self.rerouted().is_none() {
            return;
        }
        let mtu = cx.first_path_mtu(&self.tuple, metrics);
        self.leave_fast_paths();
        Special::of(&mut self.special, cx.now).rerouted = Some(Rerouted { route, mtu, seen_at: None });
    }

    fn rerouted(&self) -> Option<&Rerouted> {
        self.special.as_deref()?.rerouted.as_ref()
    }

    /// A packet leaves.
    pub(in crate::tcp) fn look_at_route(&mut self, now: Instant) {
        if let Some(rerouted) = self.special.as_deref_mut().and_then(|special| special.rerouted.as_mut()) {
            rerouted.seen_at.get_or_insert(now);
        }
    }

    /// The application writes: what it knows of the route counts from now on.
    pub(crate) fn hear_of_route(&mut self, cx: &Context) {
        let most = self.path_mtu;
        if self.rerouted().is_some_and(|rerouted| rerouted.seen_at.is_some() || rerouted.mtu < most) {
            self.take_route(cx);
        }
    }

    /// Learns of a route change where something may be sent: what left at this moment is followed by its like.
    pub(in crate::tcp) fn hear_of_route_amid(&mut self, cx: &Context) {
        let (repeats, most) = (!self.recovery.is_idle(), self.path_mtu);
        let heard = |rerouted: &Rerouted| {
            repeats || rerouted.mtu < most || rerouted.seen_at.is_some_and(|seen_at| seen_at < cx.now)
        };
        if self.rerouted().is_some_and(heard) {
            self.take_route(cx);
        }
    }

    #[cold]
    fn take_route(&mut self, cx: &Context) {
        let news = self.special.as_deref_mut().and_then(|special| special.rerouted.take());
        let Some(Rerouted { route, .. }) = news else { return };
        self.route = Route::in_place_of(self.route.as_deref(), route);
        let least = self.route_metrics().and_then(|metrics| metrics.rto_min);
        if least.is_some_and(|least| nanos(least) < self.rtt.min_rto_nanos()) {
            self.bound_rto(&cx.config);
        }
        self.decide_fragments(cx);
        let mtu = cx.first_path_mtu(&self.tuple, self.route_metrics());
        if mtu != self.path_mtu {
            self.path_mtu_changes(cx, mtu);
        }
    }

    /// The largest packet that can leave.
    pub(in crate::tcp) fn largest_packet(&self) -> u16 {
        self.rerouted().map_or(self.path_mtu, |rerouted| rerouted.mtu)
    }
}
