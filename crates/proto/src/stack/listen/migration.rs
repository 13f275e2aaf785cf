//! What a listener leaves behind when it closes, and who takes it over.
//!
//! Listeners that share a port are one service to their clients, who cannot know which of them is about to close: with `tcp_migrate_req`
//! the others take what has not been accepted, each client by the hash that chose its listener.

use crate::stack::Stack;
use crate::tuple::FourTuple;
use crate::{Instant, ListenerId};
use alloc::vec::Vec;

impl Stack {
    /// Hands over a listener's requests and the connections it has not accepted; what nobody takes stays.
    pub(in crate::stack) fn bequeath(&mut self, now: Instant, id: ListenerId) {
        self.share_cookies(id);
        if !self.shared.config.tcp_migrate_req || self.listener(id).is_none_or(|own| !own.share_port) {
            return;
        }
        let heirs = self.sharers(id);
        self.bequeath_requests(id, &heirs);
        self.bequeath_connections(id, &heirs);
        heirs.into_iter().for_each(|heir| self.admit_waiting(now, heir));
    }

    /// One who shares a port begins to listen, or is about to close: the clients are dealt out anew, those who were sent a SYN cookie among
    /// them. Whoever gets them takes it (Linux keeps one `synq_overflow_ts` for all).
    pub(in crate::stack) fn share_cookies(&mut self, id: ListenerId) {
        let Some(listener) = self.listener(id).filter(|listener| listener.share_port) else { return };
        let own = listener.cookie_sent_at;
        let sharers = self.sharers(id);
        let theirs = sharers.iter().filter_map(|other| self.listener(*other)?.cookie_sent_at).max();
        let latest = own.max(theirs);
        for other in sharers.into_iter().chain([id]) {
            if let Some(listener) = self.listener_mut(other) {
                listener.cookie_sent_at = latest;
            }
        }
    }

    /// The others that share a listener's port and address.
    fn sharers(&self, id: ListenerId) -> Vec<ListenerId> {
        let Some(listener) = self.listener(id) else { return Vec::new() };
        let shares = |other: &ListenerId| {
            self.listener(*other).is_some_and(|other| other.has_place_of(listener) && other.share_port)
        };
        let same_port = self.listeners_by_port.get(&listener.local.port()).into_iter().flatten();
        same_port.copied().filter(|other| *other != id && shares(other)).collect()
    }

    fn bequeath_requests(&mut self, id: ListenerId, heirs: &[ListenerId]) {
        let own = self.requests.iter().filter(|(_, request)| request.listener == id);
        let own: Vec<(u32, FourTuple)> = own.map(|(index, request)| (index, request.tuple)).collect();
        let waiting = self.listener_mut(id).map(|listener| core::mem::take(&mut listener.waiting));
        for (index, tuple) in own {
            let Some(heir) = self.heir(&tuple, heirs) else { continue };
            let Some(request) = self.requests.get_mut(index) else { continue };
            request.listener = heir;
            let young = u32::from(request.timeouts == 0);
            if let Some(listener) = self.listener_mut(id) {
                listener.requests -= 1;
                listener.young -= young;
            }
            if let Some(listener) = self.listener_mut(heir) {
                listener.requests += 1;
                listener.young += young;
            }
        }
        for (index, generation) in waiting.into_iter().flatten() {
            let request = self.requests.get(index).filter(|_| self.requests.contains(index, generation));
            let heir = request.map(|request| request.listener);
            if let Some(listener) = heir.and_then(|heir| self.listener_mut(heir)) {
                listener.waiting.push_back((index, generation));
            }
        }
    }

    fn bequeath_connections(&mut self, id: ListenerId, heirs: &[ListenerId]) {
        let queue = self.listener_mut(id).map(|listener| core::mem::take(&mut listener.accept_queue));
        for conn in queue.into_iter().flatten() {
            let Some(connection) = self.connections.find_mut(conn.index, conn.generation) else { continue };
            let tuple = connection.tuple;
            let Some(heir) = self.heir(&tuple, heirs) else {
                self.listener_mut(id).into_iter().for_each(|listener| listener.accept_queue.push_back(conn));
                continue;
            };
            let connection = self.connections.find_mut(conn.index, conn.generation);
            let pending = connection.is_some_and(|connection| {
                // A Fast Open child whose handshake is not complete counts against its listener.
                connection.parent = connection.parent.map(|_| heir);
                connection.parent.is_some()
            });
            self.queue_acceptable(heir, conn, pending);
        }
    }

    /// Who takes over this client, of those it could have been dealt to.
    fn heir(&mut self, tuple: &FourTuple, heirs: &[ListenerId]) -> Option<ListenerId> {
        let fits = |id: &&ListenerId| self.listener(**id).is_some_and(|heir| heir.fit(tuple).is_some());
        let count = heirs.iter().filter(fits).count() as u64;
        let turn = tuple.hash(&self.hash_key).checked_rem(count);
        let heir = turn.and_then(|turn| heirs.iter().filter(fits).nth(turn as usize)).copied();
        let counters = &mut self.shared.counters;
        counters.migrate_req_success += u64::from(heir.is_some());
        counters.migrate_req_failure += u64::from(heir.is_none());
        heir
    }
}
