//! Hosts outside the network, in real time: for example a kernel behind a TUN device.

use super::queue::Traveller;
use super::{HostPlan, Idle, Network, Profile};
use crate::capture::{HostId, Place};
use bytes::Bytes;
use core::net::IpAddr;
use core::time::Duration;
use proto::Instant;

impl Network {
    /// Adds a host without a stack. [`Network::take_arrived`] returns the packets that arrive at
    /// it.
    pub fn add_outside(&mut self, address: IpAddr) -> HostId {
        let id = self.add_host(HostPlan::new(Profile::Linux, address), Idle);
        self.hosts[id.0].outside = Some(Vec::new());
        id
    }

    /// Returns whether the host is outside.
    pub(crate) fn is_outside(&self, host: HostId) -> bool {
        self.hosts[host.0].outside.is_some()
    }

    /// Sends a packet from a host of [`Network::add_outside`] now.
    pub fn enter(&mut self, host: HostId, bytes: Bytes) {
        let traveller = Traveller::altered(self.new_packet(), bytes);
        self.record(traveller.packet, Place::Left(host), &traveller.bytes);
        self.transmit(host, traveller);
    }

    /// Takes the packets that arrived at a host of [`Network::add_outside`] since the last call.
    pub fn take_arrived(&mut self, host: HostId) -> Vec<Bytes> {
        self.hosts[host.0].outside.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Advances to the time of a real clock. An earlier time than the current one has no effect.
    pub fn run_to(&mut self, at: Instant) {
        if at > self.now() {
            self.run_for(at.since(self.now()));
        }
    }

    /// Returns the time from `now` to the next event.
    pub fn idle_for(&mut self, now: Instant) -> Option<Duration> {
        self.next_event().map(|next| next.since(now))
    }
}
