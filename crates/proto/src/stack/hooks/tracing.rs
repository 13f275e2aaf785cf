//! Trace points: around every received or sent packet, and after every change of a connection.

use crate::stack::Stack;
use crate::trace::{DropWhy, RetransmitWhy, SegmentSummary, TraceEvent, TraceMask, Traced, Tracer};
use crate::tuple::FourTuple;
use crate::{ConnId, Counters, Instant};
use alloc::boxed::Box;
use alloc::vec::Vec;
use wire::{Arrival, IpHeader, TcpHeader, TxPacket, protocol};

/// Events that wait to be polled; about 100 bytes each.
const TRACE_CAPACITY: usize = 65_536;

/// A segment as it lies in a packet.
struct Seen {
    tuple: FourTuple,
    header: TcpHeader,
    len: usize,
}

impl Stack {
    /// Traces every connection, and packets without one. An empty mask stops the trace; a stopped
    /// trace costs one test per packet.
    /// ```
    /// # use firstbyte_proto::*;
    /// # let ethernet = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
    /// # let mut stack = Stack::new(Config::default(), ethernet, [1; 32]);
    /// # stack.add_address("10.0.0.1".parse().unwrap(), 24);
    /// stack.set_trace(TraceMask::STATE | TraceMask::SENT);
    /// # let now = Instant::from_nanos(1_500_000_000);
    /// let id = stack.connect(now, "10.0.0.2:80".parse().unwrap(), ConnectOptions::default()).unwrap();
    /// let line = stack.poll_trace().unwrap().to_string();
    /// assert!(line.starts_with("1.500000 10.0.0.1:") && line.ends_with("10.0.0.2:80 state SynSent"));
    /// ```
    pub fn set_trace(&mut self, mask: TraceMask) {
        self.tracer().set_all(mask);
        self.drop_idle_tracer();
    }

    /// Traces one connection, in addition to [`set_trace`](Stack::set_trace) for all; an empty mask
    /// stops it.
    pub fn trace_connection(&mut self, id: ConnId, mask: TraceMask) {
        if let Some(tuple) = self.connection(id).map(|c| c.tuple) {
            self.tracer().set_single(tuple, mask);
            self.drop_idle_tracer();
        }
    }

    /// Returns the next event of the trace.
    pub fn poll_trace(&mut self) -> Option<TraceEvent> {
        let event = self.trace.as_mut()?.pop();
        if event.is_none() {
            self.drop_idle_tracer();
        }
        event
    }

    /// Returns the number of events lost since the last call for lack of room: at most 65 536
    /// events are pending.
    pub fn take_trace_lost(&mut self) -> u64 {
        self.trace.as_mut().map_or(0, |tracer| tracer.take_lost())
    }

    fn tracer(&mut self) -> &mut Tracer {
        self.trace.get_or_insert_with(|| Box::new(Tracer::new(TRACE_CAPACITY)))
    }

    fn drop_idle_tracer(&mut self) {
        self.trace.take_if(|tracer| tracer.is_idle());
    }

    /// What has changed of a connection.
    #[cold]
    pub(in crate::stack) fn trace_changes(&mut self, now: Instant, index: u32) {
        if let (Some(tracer), Some(connection)) = (&mut self.trace, self.connections.get(index)) {
            tracer.look(now, index, connection);
        }
    }

    #[cold]
    pub(in crate::stack) fn trace_end(&mut self, index: u32) {
        if let (Some(tracer), Some(connection)) = (&mut self.trace, self.connections.get(index)) {
            tracer.forget(index, &connection.tuple);
        }
    }

    /// As `take_packet`, and tells of it.
    #[cold]
    pub(in crate::stack) fn take_packet_traced(&mut self, now: Instant, packet: &mut Arrival<'_>) -> bool {
        let seen = see(&packet.data, false).filter(|seen| self.addresses.contains(&seen.tuple.local));
        if let Some(Seen { tuple, header, len }) = &seen {
            let shift = self.find_connection(tuple).and_then(|index| self.connections.get(index));
            let shift = shift.and_then(|c| c.agreed.snd_wscale);
            self.tell(now, Some(tuple), Traced::Received(SegmentSummary::new(header, *len, shift)));
        }
        let (counters, drops) = (self.shared.counters.clone(), self.drops.clone());
        let is_claimed = self.take_packet(now, packet);
        let tuple = seen.as_ref().map(|seen| &seen.tuple);
        let dropped: Vec<DropWhy> = self
            .drops
            .since(&drops)
            .map(DropWhy::Packet)
            .chain(DropWhy::of(&counters, &self.shared.counters))
            .collect();
        dropped.into_iter().for_each(|why| self.tell(now, tuple, Traced::Dropped(why)));
        is_claimed
    }

    /// As `transmit`, and tells of it.
    #[cold]
    pub(in crate::stack) fn transmit_traced(&mut self, now: Instant, packet: &mut TxPacket) -> bool {
        let before = self.shared.counters.clone();
        let sent = self.transmit(now, packet);
        if sent {
            self.trace_sent(now, packet, &before);
        }
        sent
    }

    /// A packet has been written; `before` is what had been counted until then.
    fn trace_sent(&mut self, now: Instant, packet: &TxPacket, before: &Counters) {
        let Some(Seen { tuple, header, len }) = see(&packet.to_bytes(), true) else { return };
        let connection = self.find_connection(&tuple).and_then(|index| self.connections.get(index));
        let shift = connection.filter(|c| c.agreed.snd_wscale.is_some()).map(|c| c.rcv.wscale);
        self.tell(now, Some(&tuple), Traced::Sent(SegmentSummary::new(&header, len, shift)));
        if let Some(why) = RetransmitWhy::of(before, &self.shared.counters) {
            self.tell(now, Some(&tuple), Traced::Retransmitted { seq: header.seq, len: len as u32, why });
        }
    }

    pub(in crate::stack) fn tell(&mut self, now: Instant, tuple: Option<&FourTuple>, what: Traced) {
        if let Some(tracer) = &mut self.trace {
            tracer.tell(now, tuple, what);
        }
    }
}

fn see(packet: &[u8], ours: bool) -> Option<Seen> {
    let (ip, payload) = IpHeader::parse(packet).ok()?;
    if ip.protocol != protocol::TCP {
        return None;
    }
    let (header, text) = TcpHeader::parse(packet.get(payload)?, None).ok()?;
    let (src, dst) = ((ip.src, header.src_port), (ip.dst, header.dst_port));
    let ((local, local_port), (peer, peer_port)) = if ours { (src, dst) } else { (dst, src) };
    Some(Seen { tuple: FourTuple { local, local_port, peer, peer_port }, header, len: text.len() })
}
