//! Routes and their values for connections, set and removed by the application.

use crate::fast_open::Network;
use crate::route::Route;
use crate::stack::Stack;
use crate::tcp::connection::Connection;
use crate::tuple::FourTuple;
use crate::{Instant, RouteMetrics};
use alloc::sync::Arc;
use alloc::vec::Vec;

impl Stack {
    /// Sets the initial values of connections to and from `destination`; the longest prefix
    /// applies. Open connections adopt changes of MTU, `quickack`, a smaller `rto_min`, and
    /// `initcwnd` after idle time, when their next packet leaves. Returns false if there is no room
    /// for another route (65 536).
    pub fn set_route(&mut self, now: Instant, destination: Network, metrics: RouteMetrics) -> bool {
        let set = self.routes.set(&self.shared.config, destination, metrics);
        self.reroute(now, destination);
        set
    }

    /// Removes the values of exactly this prefix, and returns them.
    pub fn remove_route(&mut self, now: Instant, destination: Network) -> Option<RouteMetrics> {
        let removed = self.routes.remove(destination)?;
        self.reroute(now, destination);
        Some(removed)
    }

    /// Something has changed there.
    fn reroute(&mut self, now: Instant, destination: Network) {
        let concerns = |connection: &Connection| {
            Network::new(connection.tuple.peer, destination.prefix_len()) == destination
        };
        let all = self.connections.iter().filter(|(_, connection)| concerns(connection));
        for index in all.map(|(index, _)| index).collect::<Vec<_>>() {
            let Some(tuple) = self.connections.get(index).map(|connection| connection.tuple) else {
                continue;
            };
            let route = self.route_of(&tuple);
            if let Some(connection) = self.connections.get_mut(index) {
                connection.reroute(self.shared.context(now), route);
            }
        }
    }

    /// Returns every route, by prefix.
    pub fn routes(&self) -> impl Iterator<Item = (Network, RouteMetrics)> {
        self.routes.iter()
    }

    pub(in crate::stack) fn route_of(&self, tuple: &FourTuple) -> Option<Arc<Route>> {
        let route = self.routes.lookup(tuple.peer)?.clone();
        Some(route.on_path(|| self.shared.paths.lookup(tuple.local, tuple.peer).is_some()))
    }
}
