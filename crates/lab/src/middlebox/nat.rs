//! Network address translation with a new public address for each connection.

use super::{Direction, Middlebox, Passed, pass};
use crate::segment::Segment;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use proto::Instant;
use std::collections::BTreeMap;

/// A carrier's NAT with several public addresses: each new connection uses the next one.
///
/// The path's first end is the inside. A port is kept if it is free on the public address;
/// otherwise the next free port is taken. Packets from outside to unknown flows are lost.
#[derive(Clone, Debug)]
pub struct AlternatingNat {
    public: Vec<IpAddr>,
    next: usize,
    outward: BTreeMap<(SocketAddr, SocketAddr), SocketAddr>,
    inward: BTreeMap<(SocketAddr, SocketAddr), SocketAddr>,
}

impl AlternatingNat {
    /// Creates a NAT with these public addresses, used in turn.
    ///
    /// # Panics
    /// If there is no address.
    pub fn new(public: impl IntoIterator<Item = IpAddr>) -> AlternatingNat {
        let public: Vec<IpAddr> = public.into_iter().collect();
        assert!(!public.is_empty(), "a NAT needs a public address");
        AlternatingNat { public, next: 0, outward: BTreeMap::new(), inward: BTreeMap::new() }
    }

    /// Returns the public end of a flow. A SYN creates the flow if there is none.
    fn translate(&mut self, segment: &Segment) -> Option<SocketAddr> {
        let flow = (segment.src(), segment.dst());
        if let Some(public) = self.outward.get(&flow) {
            return Some(*public);
        }
        if !segment.is_syn() {
            return None;
        }
        let address = self.public[self.next % self.public.len()];
        self.next += 1;
        let is_free =
            |port: &u16| !self.inward.contains_key(&(segment.dst(), SocketAddr::new(address, *port)));
        let port = (flow.0.port()..=u16::MAX).find(is_free)?;
        let public = SocketAddr::new(address, port);
        self.outward.insert(flow, public);
        self.inward.insert((segment.dst(), public), segment.src());
        Some(public)
    }
}

impl Middlebox for AlternatingNat {
    fn name(&self) -> &str {
        "NAT"
    }

    fn handle_packet(&mut self, _now: Instant, direction: Direction, packet: Bytes) -> Passed {
        let Some(mut segment) = Segment::parse(&packet) else { return pass(packet) };
        match direction {
            Direction::Forward => {
                let Some(public) = self.translate(&segment) else { return Passed::new() };
                segment.set_src(public);
            }
            Direction::Backward => {
                let Some(private) = self.inward.get(&(segment.src(), segment.dst())) else {
                    return Passed::new();
                };
                segment.set_dst(*private);
            }
        }
        pass(segment.emit())
    }
}
