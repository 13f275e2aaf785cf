//! Routes: what they tell connections, set and removed by the application.

use super::Stack;
use crate::fast_open::Network;
use crate::route::Route;
use crate::tuple::FourTuple;
use crate::{Instant, RouteMetrics};
use std::sync::Arc;

impl Stack {
    /// Sets what connections to and from `destination` begin with; the longest prefix counts. Connections there are keep what they have.
    /// False when there is no room for one more route (65 536).
    pub fn set_route(&mut self, _now: Instant, destination: Network, metrics: RouteMetrics) -> bool {
        self.routes.set(&self.shared.config, destination, metrics)
    }

    /// Removes the values of exactly this prefix, and returns them.
    pub fn remove_route(&mut self, _now: Instant, destination: Network) -> Option<RouteMetrics> {
        self.routes.remove(destination)
    }

    /// Every route, by prefix.
    pub fn routes(&self) -> impl Iterator<Item = (Network, RouteMetrics)> {
        self.routes.iter()
    }

    pub(super) fn route_of(&self, tuple: &FourTuple) -> Option<Arc<Route>> {
        let route = self.routes.lookup(tuple.peer)?.clone();
        Some(route.on_path(|| self.shared.paths.lookup(tuple.local, tuple.peer).is_some()))
    }
}
