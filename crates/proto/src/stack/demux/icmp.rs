//! ICMP: echo is answered; errors are believed only when they quote a segment that is in flight (RFC 5927 §4.1).

use super::holders::Holder;
use crate::stack::Stack;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::open::handshake::{CutShort, Handshake};
use crate::tuple::FourTuple;
use crate::{CloseReason, DropReason, Events, IcmpReport, Instant};
use alloc::boxed::Box;
use bytes::Bytes;
use core::ops::Range;
use smallvec::smallvec;
use wire::{Arrival, Icmp, IcmpError, IcmpParseError, IpHeader, QuotedTcp, SeqNum, TxPacket};

/// No path of IPv6 carries less (RFC 8200 §5); who tells of one is not heard (RFC 8201 §4).
const MTU_MIN_V6: u32 = 1280;

impl Stack {
    pub(in crate::stack) fn handle_icmp(
        &mut self,
        now: Instant,
        ip: &IpHeader,
        payload: Range<usize>,
        packet: &Arrival<'_>,
    ) -> bool {
        if self.is_martian(now, ip.dst, ip.src) {
            return true;
        }
        let message = payload.clone();
        let parsed = Icmp::parse(ip.src, ip.dst, &packet.data[payload]);
        self.count_icmp(&parsed);
        match parsed {
            Err(_) => self.drops.count(DropReason::Icmp),
            Ok(Icmp::EchoRequest { ident, seq, data }) if self.shared.config.icmp_echo => {
                self.answer_echo(now, ip, ident, seq, data);
            }
            Ok(Icmp::Error { error, quote }) => {
                // The path's MTU is no error of a stream.
                let is_mtu = matches!(error, IcmpError::PacketTooBig { .. });
                if is_mtu && ip.src.is_v4() && self.shared.config.ip_no_pmtu_disc == 2 {
                    return true;
                }
                let report = if is_mtu { None } else { report_of(ip, &packet.data[message], quote) };
                self.icmp_error(now, error, quote, report);
            }
            Ok(_) => return false,
        }
        true
    }

    fn count_icmp(&mut self, parsed: &Result<Icmp<'_>, IcmpParseError>) {
        let counters = &mut self.shared.counters;
        counters.icmp_in_msgs += 1;
        *match parsed {
            Err(error) => {
                counters.icmp_in_csum_errors += u64::from(*error == IcmpParseError::Checksum);
                &mut counters.icmp_in_errors
            }
            Ok(Icmp::EchoRequest { .. }) => &mut counters.icmp_in_echos,
            Ok(Icmp::EchoReply { .. }) => &mut counters.icmp_in_echo_reps,
            Ok(Icmp::Error { error: IcmpError::TimeExceeded, .. }) => &mut counters.icmp_in_time_excds,
            Ok(Icmp::Error { error: IcmpError::ParameterProblem, .. }) => &mut counters.icmp_in_parm_probs,
            Ok(Icmp::Error { .. }) => &mut counters.icmp_in_dest_unreachs,
            Ok(Icmp::Other { .. }) => return,
        } += 1;
    }

    fn answer_echo(&mut self, now: Instant, request: &IpHeader, ident: u16, seq: u16, data: &[u8]) {
        if self.routes.reject_route(request.src).is_some() {
            self.shared.counters.ip_out_no_routes += 1;
            return self.drops.count(DropReason::NoRoute);
        }
        if !self.echo_replies.take(now, request.src, self.shared.config.echo_replies_per_peer) {
            self.shared.counters.icmp_out_rate_limit += 1;
            return self.drops.count(DropReason::RateLimited);
        }
        self.shared.counters.icmp_out_echo_reps += 1;
        let reply = Icmp::EchoReply { ident, seq, data };
        let mut body = vec![0; reply.emit_len()];
        reply.emit(request.dst, request.src, &mut body);
        let hop_limit = self.shared.config.hop_limit();
        // All eight bits are the request's, ECN's too (RFC 1349 §5.1, Linux).
        let (dscp, ecn) = (request.dscp, request.ecn);
        let ip =
            IpHeader { hop_limit, dscp, ecn, ..IpHeader::new(request.dst, request.src, request.protocol) };
        let mut header = [0; 40];
        ip.emit(body.len(), &mut header);
        match self.replies.push() {
            Some(place) => *place = TxPacket::new(&header[..ip.emit_len()], smallvec![Bytes::from(body)]),
            None => self.drops.count(DropReason::RateLimited),
        }
    }

    fn icmp_error(&mut self, now: Instant, error: IcmpError, quote: &[u8], report: Option<IcmpReport>) {
        let Some(quoted) = QuotedTcp::parse(quote) else {
            return self.drops.count(DropReason::IcmpUnrelated);
        };
        let tuple = FourTuple {
            local: quoted.src,
            local_port: quoted.src_port,
            peer: quoted.dst,
            peer_port: quoted.dst_port,
        };
        let related = match self.holder_of(&tuple) {
            Some(Holder::Connection(index)) => self.connection_error(now, index, (error, report), quoted.seq),
            Some(Holder::Request(index)) => self.request_error(now, index, error, quoted.seq),
            None => return self.drops.count(DropReason::IcmpUnrelated),
        };
        if !related {
            self.shared.counters.out_of_window_icmps += 1;
            self.drops.count(DropReason::IcmpUnrelated);
        }
    }

    /// True if the segment with `seq` is in flight: the error is believed.
    fn connection_error(
        &mut self,
        now: Instant,
        index: u32,
        (error, report): (IcmpError, Option<IcmpReport>),
        seq: SeqNum,
    ) -> bool {
        let Some(connection) = self.connections.get_mut(index) else { return false };
        let snd = &connection.snd;
        let in_flight = snd.una.before_or_eq(seq) && seq.before(snd.max) || snd.una == seq;
        if in_flight {
            if let Some(report) = report {
                connection.special.get_or_insert_default().icmp = Some(Box::new(report));
                connection.events |= Events::REPORT;
            }
            connection.icmp_error(self.shared.context(now), error);
            self.settle(now, index);
        }
        in_flight
    }

    /// Handles an ICMP error for a half-open request; true if `seq` is its SYN-ACK's. A request whose peer is unreachable ends silently
    /// (Linux's `tcp_req_err`).
    fn request_error(&mut self, now: Instant, index: u32, error: IcmpError, seq: SeqNum) -> bool {
        let Some(request) = self.requests.get(index) else { return false };
        let (in_flight, listener) = (request.iss == seq && !request.acked, request.listener);
        let ends = matches!(
            error,
            IcmpError::HostUnreachable | IcmpError::TimeExceeded | IcmpError::ParameterProblem
        );
        if in_flight && ends {
            self.forget_request(now, index);
            self.drop_at_listener(listener, DropReason::RequestUnreachable);
        }
        in_flight
    }
}

/// What may be an error of a socket.
fn report_of(ip: &IpHeader, message: &[u8], quote: &[u8]) -> Option<IcmpReport> {
    let &[kind, code, _, _, w0, w1, w2, w3] = message.first_chunk()?;
    let tcp = IpHeader::parse_quoted(quote).map_or(0..0, |(_, tcp)| tcp);
    Some(IcmpReport {
        kind,
        code,
        info: u32::from_be_bytes([w0, w1, w2, w3]),
        from: ip.src.to_ip(),
        quote: Bytes::copy_from_slice(quote.get(tcp).unwrap_or_default()),
    })
}

impl Connection {
    fn icmp_error(&mut self, cx: &mut Context, error: IcmpError) {
        match error {
            IcmpError::PacketTooBig { mtu } => self.packet_too_big(cx, mtu),
            IcmpError::HostUnreachable => self.unreachable(cx, CloseReason::HostUnreachable),
            IcmpError::Prohibited => self.unreachable(cx, CloseReason::Prohibited),
            IcmpError::PortUnreachable | IcmpError::ProtocolUnreachable => {
                self.unreachable(cx, CloseReason::PortUnreachable);
            }
            IcmpError::TimeExceeded => self.unreachable(cx, CloseReason::HostUnreachable),
            IcmpError::ParameterProblem => self.unreachable(cx, CloseReason::PortUnreachable),
        }
    }

    /// While opening, an unreachable peer ends the attempt (RFC 9293 §3.9.2.2 asks it of hard errors, Linux does it for all);
    /// later it is a soft error that retransmission will outlive or confirm (RFC 1122 §4.2.3.9).
    fn unreachable(&mut self, cx: &mut Context, reason: CloseReason) {
        match self.handshake.as_deref() {
            Some(Handshake::Active(_)) => self.terminate(&mut cx.counters, reason),
            // A Fast Open child the application has not accepted yet, or a simultaneous open.
            Some(Handshake::Passive(_)) if self.unaccepted || self.parent.is_none() => {
                self.terminate(&mut cx.counters, reason);
            }
            _ => self.soft_error = Some(reason),
        }
    }

    /// RFC 1191, RFC 8201: smaller packets from here on; what did not get through is retransmitted at once.
    fn packet_too_big(&mut self, cx: &mut Context, mtu: u32) {
        let (v4, discovery) = (self.tuple.peer.is_v4(), self.path_mtu_discovery(cx));
        if self.path_mtu_is_locked(cx) || !v4 && (mtu < MTU_MIN_V6 || discovery.is_deaf()) {
            return;
        }
        // Which size it was is not asked.
        let mtu = if v4 && cx.config.ip_no_pmtu_disc == 1 { 0 } else { mtu };
        let locks = v4 && mtu < cx.config.min_pmtu;
        let least =
            cx.config.min_pmtu.max(cx.config.tcp_min_snd_mss + self.tuple.ip_header_len() as u32 + 20);
        let least = if v4 { least } else { MTU_MIN_V6 };
        let mtu = mtu.max(least).min(u32::from(u16::MAX)) as u16;
        if mtu >= self.path_mtu && !locks {
            return;
        }
        let (smss, mtu, shrinks) = (self.smss(), mtu.min(self.path_mtu), mtu < self.path_mtu);
        let path = cx.paths.entry(cx.now, self.tuple.local, self.tuple.peer);
        (path.path_mtu, path.path_mtu_locked, path.path_mtu_at) = (Some(mtu), locks, cx.now);
        self.note_path_mtu_age(cx);
        self.decide_fragments(cx);
        if !shrinks {
            return;
        }
        self.path_mtu_changes(cx, mtu);
        if v4 && !discovery.resends() {
            return;
        }
        if smss == self.smss() && self.loses_probe_alone(cx) {
            return;
        }
        match self.handshake.as_deref_mut() {
            Some(Handshake::Active(active)) if active.data_sent > 0 && !active.plain => {
                active.cut_short = Some(CutShort::TooBig);
                active.plain = true;
                active.due = true;
                self.snd.rewind();
            }
            // The SYN-ACK that goes again has no data, and tells the peer at once that there is a path.
            Some(Handshake::Passive(passive)) if passive.data_sent > 0 && passive.transmissions == 1 => {
                passive.due = true;
            }
            Some(_) => {}
            // Only what is longer than a segment may be now (Linux's `tcp_simple_retransmit`): the peer's MSS, or `tcp_min_snd_mss`, may have
            // been the bound before.
            None => self.lose_too_long(cx, smss),
        }
    }
}
