//! Hosts for which somebody outside answers, at the time of a clock: a kernel behind a TUN device.

use super::queue::Traveller;
use super::{HostPlan, Idle, Network, Profile};
use crate::capture::{HostId, Place};
use bytes::Bytes;
use core::net::IpAddr;
use core::time::Duration;
use proto::Instant;

impl Network {
    /// Adds a host without a stack: what arrives at it is kept for [`Network::take_arrived`].
    pub fn add_outside(&mut self, address: IpAddr) -> HostId {
        let id = self.add_host(HostPlan::new(Profile::Linux, address), Idle);
        self.hosts[id.0].outside = Some(Vec::new());
        id
    }

    /// Does somebody outside answer for it?
    pub(crate) fn is_outside(&self, host: HostId) -> bool {
        self.hosts[host.0].outside.is_some()
    }

    /// A host of [`Network::add_outside`] sends a packet now.
    pub fn enter(&mut self, host: HostId, bytes: Bytes) {
        let traveller = Traveller::altered(self.new_packet(), bytes);
        self.record(traveller.packet, Place::Left(host), &traveller.bytes);
        self.transmit(host, traveller);
    }

    /// What has arrived at a host of [`Network::add_outside`] since the last time.
    pub fn take_arrived(&mut self, host: HostId) -> Vec<Bytes> {
        self.hosts[host.0].outside.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Lets happen what happens until a clock's time; an earlier one than it is changes nothing.
    pub fn run_to(&mut self, at: Instant) {
        if at > self.now() {
            self.run_for(at.since(self.now()));
        }
    }

    /// From `now` to the moment when something happens next.
    pub fn idle_for(&mut self, now: Instant) -> Option<Duration> {
        self.next_event().map(|next| next.since(now))
    }
}
