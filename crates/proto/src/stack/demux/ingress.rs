//! An arriving packet: IP, then demultiplexing.

use super::holders::Holder;
use super::replies::Replies;
use crate::fast_paths::FastPath;
use crate::socket_options::Options;
use crate::stack::Stack;
use crate::stack::timers::settle::{is_over, notify_listener, settle_open, settle_ordinary};
use crate::tcp::connection::Connection;
use crate::tcp::input::{Reply, Segment};
use crate::tcp::rare::fragments::cut_ident;
use crate::tcp::recv::payload::Payload;
use crate::tcp::segment::SegmentFields;
use crate::time_wait::{TimeWaitAction, TimeWaitIndex, is_old, on_segment};
use crate::tuple::FourTuple;
use crate::tuple::Name;
use crate::{ConnId, DropReason, Drops, Instant, ListenerId, SocketOption};
use alloc::vec::Vec;
use core::ops::Range;
use wire::{
    Addr, Arrival, Ecn, Flags, IpError, IpHeader, Layout, PlainSegment, RxChecksum, RxData, RxPacket, SeqNum,
    TcpError, TcpHeader, TcpOptions, Timestamps, TxPacket, protocol,
};

impl Stack {
    /// Handles a packet from the network. Returns packets of other protocols or destinations.
    pub fn handle_packet(&mut self, now: Instant, mut packet: RxPacket) -> Option<RxPacket> {
        let is_claimed = self.claim_packet(now, &mut (&mut packet).into());
        (!is_claimed).then_some(packet)
    }

    /// Handles a packet in the caller's memory, without knowing more than its bytes. Kept data is
    /// copied. Returns false for packets of other protocols or destinations.
    pub fn handle_slice(&mut self, now: Instant, packet: &[u8]) -> bool {
        let (data, truesize) = (RxData::Lent(packet), packet.len());
        self.claim_packet(now, &mut Arrival { data, truesize, checksum: RxChecksum::Verify, gso_size: 0 })
    }

    /// Claims a packet. Returns false if it is not for this stack: the caller may use it elsewhere.
    pub(in crate::stack) fn claim_packet(&mut self, now: Instant, packet: &mut Arrival<'_>) -> bool {
        if self.hooks.is_some() {
            self.note_packet(packet);
        }
        if self.trace.is_some() {
            return self.take_packet_traced(now, packet);
        }
        self.take_packet(now, packet)
    }

    #[inline]
    pub(in crate::stack) fn take_packet(&mut self, now: Instant, packet: &mut Arrival<'_>) -> bool {
        match PlainSegment::read_v4(&packet.data, packet.checksum == RxChecksum::Verify) {
            Some((plain, layout)) => self.take_plain(now, &plain, layout, packet),
            None => self.take_v6(now, packet),
        }
    }

    #[inline(never)]
    fn take_v6(&mut self, now: Instant, packet: &mut Arrival<'_>) -> bool {
        match PlainSegment::read_v6(&packet.data, packet.checksum == RxChecksum::Verify) {
            Some((plain, layout)) => self.take_plain(now, &plain, layout, packet),
            None => self.take_any(now, packet),
        }
    }

    /// Handles a packet with an ordinary header, as nearly every packet has.
    #[inline(always)]
    fn take_plain(
        &mut self,
        now: Instant,
        plain: &PlainSegment,
        layout: Layout,
        packet: &mut Arrival<'_>,
    ) -> bool {
        if !self.addresses.contains(&plain.addresses.1) {
            self.shared.counters.ip_in_addr_errors += 1;
            return false;
        }
        self.shared.counters.in_segs += 1;
        let tuple = FourTuple::of_arrival(plain);
        let hash = tuple.hash(&self.hash_key);
        let holder = self.holder_at(hash, &tuple);
        if let Some(Holder::Connection(index)) = holder
            && layout.options.is_empty()
            && self.take_predicted(now, index, &plain.into(), layout.text.clone(), packet)
        {
            return true;
        }
        let mut segment = segment_of(plain, layout, packet);
        self.dispatch_to(now, holder, tuple, hash, &mut segment);
        true
    }

    /// Handles the segment that a connection expects next, with no options but timestamps. It may
    /// be the ACK that completes the handshake of a Fast Open child. Returns false for other
    /// segments, which take the general path.
    fn take_predicted(
        &mut self,
        now: Instant,
        index: u32,
        segment: &SegmentFields,
        text: Range<usize>,
        packet: &mut Arrival<'_>,
    ) -> bool {
        if self.hooks.is_some() || self.trace.is_some() {
            return false;
        }
        let Some((generation, connection)) = self.connections.entry_mut(index) else { return false };
        let cx = self.shared.context(now);
        let completes = connection.handshake.is_some();
        if completes {
            if !connection.completes(cx, segment) {
                return false;
            }
            cx.took(FastPath::CompletingChild);
            connection.complete(cx, segment);
            notify_listener(&mut self.listeners, now, connection);
            connection.note_plain();
        }
        if !connection.predicts(cx, segment) {
            return false;
        }
        let id = ConnId { index, generation };
        let text = (!text.is_empty()).then_some(Payload::new(packet, text));
        cx.took(FastPath::Segment);
        connection.take_predicted(cx, segment, text, completes);
        if is_over(connection) {
            self.end(now, id);
        } else {
            settle_open(&mut self.shared, &mut self.work, now, id, connection);
        }
        true
    }

    #[inline(never)]
    fn take_any(&mut self, now: Instant, packet: &mut Arrival<'_>) -> bool {
        let (ip, payload) = match IpHeader::parse(&packet.data) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.bad_packet(error);
                return true;
            }
        };
        if !self.addresses.contains(&ip.dst) {
            self.shared.counters.ip_in_addr_errors += 1;
            return false;
        }
        match ip.protocol {
            protocol::TCP => self.handle_tcp(now, &ip, payload, packet),
            protocol::ICMP | protocol::ICMPV6 => return self.handle_icmp(now, &ip, payload, packet),
            _ => {
                self.shared.counters.ip_in_unknown_protos += 1;
                return false;
            }
        }
        true
    }

    fn bad_packet(&mut self, error: IpError) {
        let counters = &mut self.shared.counters;
        *match error {
            IpError::Address => &mut counters.ip_in_addr_errors,
            _ => &mut counters.ip_in_hdr_errors,
        } += 1;
        self.drops.count(drop_reason(error));
    }

    fn handle_tcp(&mut self, now: Instant, ip: &IpHeader, payload: Range<usize>, packet: &mut Arrival<'_>) {
        self.shared.counters.in_segs += 1;
        let verify = (packet.checksum == RxChecksum::Verify).then_some((ip.src, ip.dst));
        let mut header = TcpHeader::new(0, 0);
        let text = match header.read(&packet.data[payload.clone()], verify) {
            Ok(text) => text,
            Err(error) => return self.bad_segment(error),
        };
        let text = payload.start + text.start..payload.start + text.end;
        let mut segment = Segment { header, payload: Payload::new(packet, text), ecn: ip.ecn, dscp: ip.dscp };
        let tuple = FourTuple {
            local: ip.dst,
            local_port: segment.header.dst_port,
            peer: ip.src,
            peer_port: segment.header.src_port,
        };
        self.dispatch(now, tuple, &mut segment);
    }

    fn bad_segment(&mut self, error: TcpError) {
        self.shared.counters.in_errs += 1;
        if error == TcpError::Checksum {
            self.shared.counters.in_csum_errors += 1;
            return self.drops.count(DropReason::TcpChecksum);
        }
        self.drops.count(DropReason::TcpHeader);
    }

    /// Passes a segment on: to its connection, its half-open request, TIME-WAIT, a listener, or to
    /// nobody.
    pub(in crate::stack) fn dispatch(&mut self, now: Instant, tuple: FourTuple, segment: &mut Segment) {
        let hash = tuple.hash(&self.hash_key);
        let holder = self.holder_at(hash, &tuple);
        self.dispatch_to(now, holder, tuple, hash, segment);
    }

    fn dispatch_to(
        &mut self,
        now: Instant,
        holder: Option<Holder>,
        tuple: FourTuple,
        hash: u64,
        segment: &mut Segment,
    ) {
        if (segment.header.options.md5 || self.hooks.is_some())
            && !self.is_signed_as_due(hash, &tuple, segment)
        {
            return;
        }
        match holder {
            Some(Holder::Connection(index)) => self.for_connection(now, index, segment),
            holder => self.dispatch_to_others(now, holder, Name { tuple, hash }, segment),
        }
    }

    #[inline(never)]
    fn dispatch_to_others(
        &mut self,
        now: Instant,
        holder: Option<Holder>,
        name: Name,
        segment: &mut Segment,
    ) {
        let Name { tuple, hash } = name;
        if let Some(Holder::Request(index)) = holder {
            return self.for_request(now, index, segment);
        }
        if self.is_martian(now, tuple.local, tuple.peer) {
            return;
        }
        if self.routes.reject_route(tuple.peer).is_some() {
            return self.cannot_answer(&tuple);
        }
        if let Some(index) = self.time_wait.find(hash, &tuple) {
            return self.for_time_wait(now, index, segment);
        }
        match self.find_listener(&tuple) {
            Some(listener) => self.for_listener(now, listener, name, segment, None),
            None => self.reset_stranger(now, &tuple, segment),
        }
    }

    /// Drops a packet because a route rejects its sender. Linux, too, looks for the route of the
    /// answer first (`tcp_conn_request`).
    fn cannot_answer(&mut self, tuple: &FourTuple) {
        self.shared.counters.ip_out_no_routes += 1;
        match self.find_listener(tuple) {
            Some(listener) => self.drop_at_listener(listener, DropReason::NoRoute),
            None => self.drops.count(DropReason::NoRoute),
        }
    }

    pub(in crate::stack) fn for_connection(&mut self, now: Instant, index: u32, segment: &mut Segment) {
        if self.hooks.is_some() && !self.is_near_enough(index) {
            // The packet may have opened the connection just now. Its deadline is not known yet.
            return self.settle(now, index);
        }
        let Some((generation, connection)) = self.connections.entry_mut(index) else { return };
        let id = ConnId { index, generation };
        let end = segment.end();
        let reply = connection.segment_arrives(self.shared.context(now), segment);
        if !self.shared.meanwhile.is_empty() {
            send_first(&mut self.shared.meanwhile, connection, &mut self.replies, &mut self.drops);
        }
        if reply == Reply::Nothing
            && self.trace.is_none()
            && settle_ordinary(&mut self.shared, &mut self.work, now, id, connection)
        {
            return;
        }
        if reply == Reply::Reset {
            let tuple = connection.tuple;
            self.send_reset(now, &tuple, ResetNumbers::of(segment, end));
        }
        self.settle_turn(now, id);
    }

    fn for_time_wait(&mut self, now: Instant, index: TimeWaitIndex, segment: &mut Segment) {
        let entry = self.time_wait.get(index);
        // RFC 6191 §2: if the old connection used no timestamps, those of a new SYN count only if
        // the new connection would use timestamps.
        let used = entry.ts_recent.is_some() || self.shared.config.timestamps();
        let mut facts = segment.fields();
        facts.timestamps = facts.timestamps.filter(|_| used);
        self.shared.counters.paws_time_wait += u64::from(is_old(&entry, &facts));
        let timeout = self.shared.config.time_wait;
        self.work.deadlines.note_other(now + timeout);
        let ts_recent = facts.timestamps.map(|timestamps| timestamps.tsval);
        match on_segment(&entry, &facts, self.shared.config.tcp_rfc1337) {
            TimeWaitAction::Ignore => self.drops.count(DropReason::TimeWait),
            TimeWaitAction::Restart => self.time_wait.restart(index, now, timeout, ts_recent),
            TimeWaitAction::RestartAndAck => {
                let ts_recent = ts_recent.filter(|_| self.shared.config.time_wait_remembers_answered);
                self.time_wait.restart(index, now, timeout, ts_recent);
                self.acknowledge_time_wait(now, index, &facts);
            }
            TimeWaitAction::Ack => self.acknowledge_time_wait(now, index, &facts),
            TimeWaitAction::FinReceived => {
                self.time_wait.fin_received(index);
                self.time_wait.restart(index, now, timeout, ts_recent);
                self.acknowledge_time_wait(now, index, &facts);
            }
            TimeWaitAction::Remove => {
                self.time_wait.remove(index);
            }
            TimeWaitAction::Reset => {
                self.time_wait.remove(index);
                self.reset_stranger(now, &entry.tuple, segment);
            }
            TimeWaitAction::AcceptSyn { min_isn } => match self.find_listener(&entry.tuple) {
                Some(listener) => {
                    let looks = segment.header.options.md5 || self.hooks.is_some();
                    if !looks || self.is_signed_for(listener, &entry.tuple, segment) {
                        self.time_wait.remove(index);
                        self.for_listener(now, listener, self.name(entry.tuple), segment, Some(min_isn));
                    }
                }
                // No listener accepts the SYN. It is treated like any SYN of the old connection
                // (RFC 5961 §4.2).
                None => self.acknowledge_time_wait(now, index, &facts),
            },
        }
    }

    /// Acknowledges a segment in TIME-WAIT. The peer of a segment that occupies sequence numbers
    /// may have missed our last ACK. Others are answered at most as often as
    /// `tcp_invalid_ratelimit` allows.
    fn acknowledge_time_wait(&mut self, now: Instant, index: TimeWaitIndex, segment: &SegmentFields) {
        let interval = self.shared.config.invalid_ratelimit();
        let answers = segment.has_text() || self.time_wait.may_answer(index, now, interval);
        let entry = self.time_wait.get(index);
        if !answers {
            let counters = &mut self.shared.counters;
            *match entry.fin_awaited {
                true => &mut counters.ack_skipped_fin_wait2,
                false => &mut counters.ack_skipped_time_wait,
            } += 1;
            return self.drops.count(DropReason::RateLimited);
        }
        let ts_offset = if entry.ts_offset { self.isn.of_tuple(&entry.tuple).timestamp_offset() } else { 0 };
        let timestamps = entry.ts_recent.map(|ts_recent| Timestamps {
            tsval: (now.as_millis() as u32).wrapping_add(ts_offset),
            tsecr: ts_recent,
        });
        let header = TcpHeader {
            src_port: entry.tuple.local_port,
            dst_port: entry.tuple.peer_port,
            seq: entry.snd_nxt,
            ack: entry.rcv_nxt,
            flags: Flags::ACK,
            window: entry.rcv_wnd,
            urgent: 0,
            options: TcpOptions { timestamps, ..TcpOptions::default() },
        };
        self.shared.counters.out_segs += 1;
        self.reply(entry.tuple.local, entry.tuple.peer, &header);
    }

    /// Answers a segment without connection and listener. RFC 9293 §3.10.7.1: "An incoming segment
    /// not containing a RST causes a RST to be sent in response."
    pub(in crate::stack) fn reset_stranger(&mut self, now: Instant, tuple: &FourTuple, segment: &Segment) {
        if segment.has(Flags::RST) {
            return self.drops.count(DropReason::StrayReset);
        }
        self.send_reset(now, tuple, ResetNumbers::of(segment, segment.end()));
    }

    pub(in crate::stack) fn send_reset(&mut self, now: Instant, tuple: &FourTuple, numbers: ResetNumbers) {
        if !self.resets.take(now, tuple.peer, self.shared.config.resets_per_peer) {
            return self.drops.count(DropReason::RateLimited);
        }
        self.shared.counters.out_rsts += 1;
        self.shared.counters.out_segs += 1;
        let header = TcpHeader {
            src_port: tuple.local_port,
            dst_port: tuple.peer_port,
            seq: numbers.seq,
            ack: numbers.ack,
            flags: numbers.flags,
            window: 0,
            urgent: 0,
            options: TcpOptions::default(),
        };
        self.reply(tuple.local, tuple.peer, &header);
        if self.hooks.is_some() {
            // The reset may be the last packet of a connection or a listener.
            self.sign_reply(tuple);
        }
    }

    /// Sends a packet that belongs to no connection.
    pub(in crate::stack) fn reply(&mut self, local: Addr, peer: Addr, header: &TcpHeader) {
        self.reply_for(None, local, peer, header);
    }

    /// Gives a new connection the DiffServ class of its SYN, if `tcp_reflect_tos` is set.
    pub(in crate::stack) fn reflect_class(&self, socket: &mut Options, dscp: u8) {
        if self.shared.config.tcp_reflect_tos && socket.rare.dscp != dscp {
            // Cannot fail: a class has six bits.
            let _ = socket.rare.set(SocketOption::Dscp(dscp));
        }
    }

    /// Sends a packet on behalf of a listener, with the listener's hop limit, and its DiffServ code
    /// point or the SYN's.
    pub(in crate::stack) fn reply_for(
        &mut self,
        request: Option<(ListenerId, u8)>,
        local: Addr,
        peer: Addr,
        header: &TcpHeader,
    ) {
        let (listener, class) = request.unzip();
        let socket =
            listener.and_then(|id| self.listeners.get(id.index)).map(|listener| &*listener.socket.rare);
        let hop_limit = socket.and_then(|socket| socket.hop_limit);
        let class = class.filter(|_| self.shared.config.tcp_reflect_tos);
        let dscp = class.unwrap_or(socket.map_or(0, |socket| socket.dscp));
        let hop_limit = hop_limit.unwrap_or(self.shared.config.hop_limit());
        let discovery = socket.and_then(|socket| socket.path_mtu_discovery);
        let ident = listener.and_then(|_| cut_ident(&self.shared, discovery, (local, peer), header));
        let offload = self.shared.capabilities.tx_checksum;
        let Some(place) = self.replies.push() else { return self.drops.count(DropReason::RateLimited) };
        let segment = PlainSegment {
            addresses: (local, peer),
            ports: (header.src_port, header.dst_port),
            seq: header.seq,
            ack: header.ack,
            flags: header.flags,
            window: header.window,
            timestamps: None,
            ecn: Ecn::NotEct,
            dscp,
            hop_limit,
            payload_len: 0,
        };
        let usual = header.flags.contains(Flags::SYN) && ident.is_none();
        if !usual || !place.write_syn(&segment, &header.options, offload) {
            let (dont_fragment, ident) = (ident.is_none(), ident.unwrap_or(0));
            let ip = IpHeader::new(local, peer, protocol::TCP);
            let ip = IpHeader { dscp, hop_limit, dont_fragment, ident, ..ip };
            place.write_tcp(&ip, header, 0, offload);
        }
    }
}

/// Returns the segment with all its options.
fn segment_of<'p, 'd>(
    plain: &PlainSegment,
    Layout { options, text }: Layout,
    packet: &'p mut Arrival<'d>,
) -> Segment<'p, 'd> {
    let payload = Payload::new(packet, text);
    // The options are large. They are read in place, because moving them would cost more.
    let mut segment = Segment { header: TcpHeader::new(0, 0), payload, ecn: plain.ecn, dscp: plain.dscp };
    plain.fill(&mut segment.header);
    if !options.is_empty() {
        segment.header.options.read(segment.payload.beside(options));
    }
    segment
}

/// The numbers of a reset that answers a segment.
#[derive(Clone, Copy)]
pub(in crate::stack) struct ResetNumbers {
    seq: SeqNum,
    ack: SeqNum,
    flags: Flags,
}

impl ResetNumbers {
    /// Returns the numbers of a reset for a peer that has only our SYN-ACK.
    pub(in crate::stack) fn behind_syn_ack(iss: SeqNum, irs: SeqNum) -> ResetNumbers {
        ResetNumbers { seq: iss + 1, ack: irs + 1, flags: Flags::RST | Flags::ACK }
    }

    /// Returns the numbers of a reset that answers `segment`, which ended at `end` before its
    /// payload was taken.
    fn of(segment: &Segment, end: SeqNum) -> ResetNumbers {
        if segment.has(Flags::ACK) {
            ResetNumbers { seq: segment.header.ack, ack: SeqNum(0), flags: Flags::RST }
        } else {
            ResetNumbers { seq: SeqNum(0), ack: end, flags: Flags::RST | Flags::ACK }
        }
    }
}

fn drop_reason(error: IpError) -> DropReason {
    match error {
        IpError::Fragment => DropReason::Fragment,
        IpError::Address => DropReason::BadAddress,
        IpError::ExtensionHeader(_) => DropReason::IpOption,
        _ => DropReason::IpHeader,
    }
}

/// Queues what the connection sent while it handled a segment. These packets leave before all that
/// waits.
#[cold]
fn send_first(
    packets: &mut Vec<TxPacket>,
    connection: &Connection,
    replies: &mut Replies,
    drops: &mut Drops,
) {
    for packet in packets.drain(..) {
        let Some(place) = replies.push() else {
            drops.count(DropReason::RateLimited);
            continue;
        };
        *place = packet;
        connection.sign_ahead(place);
    }
}

#[cfg(test)]
mod tests;
