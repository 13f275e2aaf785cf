//! Middleboxes that lose packets.

use super::{Direction, Middlebox, Passed, pass};
use crate::network::flow_hash;
use crate::segment::Segment;
use bytes::Bytes;
use core::net::SocketAddr;
use proto::Instant;
use qdisc::Probability;
use std::collections::BTreeMap;

/// Loses every SYN that carries data, as firewalls do that consider SYN data an attack. Plain SYNs
/// and cookie requests pass.
#[derive(Clone, Debug, Default)]
pub struct DropSynData;

impl Middlebox for DropSynData {
    fn name(&self) -> &str {
        "firewall"
    }

    fn handle_packet(&mut self, _now: Instant, _direction: Direction, packet: Bytes) -> Passed {
        match Segment::parse(&packet) {
            Some(segment) if segment.is_syn() && !segment.payload.is_empty() => Passed::new(),
            _ => pass(packet),
        }
    }
}

/// Loses the SYNs with data of a share of connections, as if one of several equal paths had such a
/// firewall. Addresses and ports determine the path of a connection.
#[derive(Clone, Copy, Debug)]
pub struct DropSynDataOf {
    share: Probability,
}

impl DropSynDataOf {
    /// Creates the box with the share of affected connections.
    pub fn new(share: Probability) -> DropSynDataOf {
        DropSynDataOf { share }
    }
}

impl Middlebox for DropSynDataOf {
    fn name(&self) -> &str {
        DropSynData.name()
    }

    fn handle_packet(&mut self, now: Instant, direction: Direction, packet: Bytes) -> Passed {
        match f64::from(flow_hash(&packet)) < self.share.fraction() * 2f64.powi(32) {
            true => DropSynData.handle_packet(now, direction, packet),
            false => pass(packet),
        }
    }
}

/// Loses the n-th SYN-ACK of every connection, counted from 1.
#[derive(Clone, Debug)]
pub struct DropNthSynAck {
    n: u32,
    seen: BTreeMap<(SocketAddr, SocketAddr, u32), u32>,
}

impl DropNthSynAck {
    /// Creates the box. Connections are identified by addresses, ports and the SYN's sequence
    /// number.
    pub fn new(n: u32) -> DropNthSynAck {
        DropNthSynAck { n, seen: BTreeMap::new() }
    }
}

impl Middlebox for DropNthSynAck {
    fn name(&self) -> &str {
        "lossy hop"
    }

    fn handle_packet(&mut self, _now: Instant, _direction: Direction, packet: Bytes) -> Passed {
        let Some(segment) = Segment::parse(&packet).filter(Segment::is_syn_ack) else { return pass(packet) };
        let seen = self.seen.entry((segment.src(), segment.dst(), segment.tcp.seq.0)).or_default();
        *seen += 1;
        match *seen == self.n {
            true => Passed::new(),
            false => pass(packet),
        }
    }
}
