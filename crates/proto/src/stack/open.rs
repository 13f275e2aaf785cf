//! Half-open requests: the SYN-ACK, its repetition, and what becomes of them.

use super::Stack;
use super::request::{CookieReply, Request};
use crate::tcp::connection::Connection;
use crate::tcp::input::Segment;
use crate::tcp::negotiation;
use crate::{ConnId, DropReason, Instant, State};
use wire::{Flags, TcpHeader, TcpOptions, Timestamps};

impl Stack {
    pub(super) fn insert_request(&mut self, request: Request) -> u32 {
        let hash = self.hasher.hash(&request.tuple);
        let (index, _) = self.requests.insert(request);
        let (hasher, requests) = (self.hasher, &self.requests);
        self.requests_by_tuple
            .insert_unique(hash, index, |index| requests.get(*index).map_or(0, |r| hasher.hash(&r.tuple)));
        index
    }

    pub(super) fn remove_request(&mut self, index: u32) -> Option<Request> {
        let request = self.requests.remove(index)?;
        self.request_timers.clear(index);
        let hash = self.hasher.hash(&request.tuple);
        if let Ok(entry) = self.requests_by_tuple.find_entry(hash, |found| *found == index) {
            entry.remove();
        }
        if let Some(listener) = self.listener_mut(request.listener) {
            listener.requests -= 1;
        }
        Some(request)
    }

    /// Sends or repeats the SYN-ACK; only the first carries a Fast Open option (RFC 7413 §4.2.2, R33).
    pub(super) fn send_request_syn_ack(&mut self, now: Instant, index: u32, cookie: CookieReply) {
        let config = &self.shared.config;
        let Some(request) = self.requests.get_mut(index) else { return };
        let own_mss = negotiation::advertised_mss(&self.shared.capabilities, &request.tuple);
        let socket = self.listeners.get(request.listener.index).map(|listener| &listener.socket);
        let limit = socket
            .and_then(|socket| socket.recv_buffer)
            .map_or(config.tcp_rmem[1] / 2, |limit| (limit / 2) as u32);
        let window = limit.min(u32::from(u16::MAX));
        let whole = if window > u32::from(own_mss) {
            window / u32::from(own_mss) * u32::from(own_mss)
        } else {
            window
        };
        let tsval = (now.as_millis() as u32)
            .wrapping_add(self.isn.timestamp_offset(request.tuple.local, request.tuple.peer));
        let header = TcpHeader {
            src_port: request.tuple.local_port,
            dst_port: request.tuple.peer_port,
            seq: request.iss,
            ack: request.irs + 1,
            flags: Flags::SYN | Flags::ACK,
            window: whole as u16,
            urgent: 0,
            options: TcpOptions {
                mss: Some(socket.map_or(own_mss, |socket| own_mss.min(negotiation::mss_clamp(socket)))),
                window_scale: request.agreed.snd_wscale.map(|_| request.rcv_wscale),
                sack_permitted: request.agreed.sack,
                timestamps: request
                    .agreed
                    .timestamps
                    .then_some(Timestamps { tsval, tsecr: request.ts_recent }),
                fast_open: cookie.filter(|_| request.transmissions == 0),
                ..TcpOptions::default()
            },
        };
        if request.transmissions > 0 {
            self.shared.counters.retrans_segs += 1;
            self.shared.counters.syn_retrans += 1;
        }
        let backoff = u32::from(request.timeouts).min(16);
        request.transmissions = request.transmissions.saturating_add(1);
        request.sent_at = now;
        self.request_timers.set(index, now + config.rto_initial.saturating_mul(1 << backoff));
        let tuple = request.tuple;
        self.shared.counters.out_segs += 1;
        self.reply(tuple.local, tuple.peer, &header);
    }

    /// No answer to a SYN-ACK.
    pub(super) fn request_timeout(&mut self, now: Instant, index: u32) {
        let Some(request) = self.requests.get_mut(index) else { return };
        request.timeouts = request.timeouts.saturating_add(1);
        if u32::from(request.timeouts) > self.shared.config.tcp_synack_retries {
            self.shared.counters.attempt_fails += 1;
            self.remove_request(index);
            return;
        }
        self.shared.counters.timeouts += 1;
        self.send_request_syn_ack(now, index, None);
    }

    /// A segment for a half-open request (RFC 9293 §3.10.7.4 in SYN-RECEIVED).
    pub(super) fn for_request(&mut self, now: Instant, index: u32, segment: Segment) {
        let Some(request) = self.requests.get(index) else { return };
        let (tuple, irs, iss) = (request.tuple, request.irs, request.iss);
        let expected = segment.seq() == irs + 1;
        if segment.has(Flags::RST) {
            if expected {
                self.shared.counters.attempt_fails += 1;
                self.remove_request(index);
            } else {
                self.drops.count(DropReason::StrayReset);
            }
            return;
        }
        if segment.has(Flags::SYN) && !segment.has(Flags::ACK) {
            self.note_repeated_syn(index, &segment);
            return self.send_request_syn_ack(now, index, None);
        }
        if !segment.has(Flags::ACK) {
            return self.drops.count(DropReason::NotForListener);
        }
        if segment.header.ack != iss + 1 {
            return self.reset_stranger(now, &tuple, &segment);
        }
        // Text may overtake the final ACK: everything that starts in the window will do.
        if segment.end().before(irs + 1) || segment.seq().since(irs + 1) > u32::from(u16::MAX) {
            return self.send_request_syn_ack(now, index, None);
        }
        self.promote(now, index, segment);
    }

    /// The newer timestamp is echoed, so that the client can tell which of its SYNs is answered (RFC 7323 §4.3).
    fn note_repeated_syn(&mut self, index: u32, segment: &Segment) {
        if let Some(request) = self.requests.get_mut(index)
            && let Some(Timestamps { tsval, .. }) = segment.header.options.timestamps
            && segment.seq() == request.irs
            && (tsval.wrapping_sub(request.ts_recent) as i32) > 0
        {
            request.ts_recent = tsval;
        }
    }

    /// The final ACK: the request becomes a connection.
    fn promote(&mut self, now: Instant, index: u32, segment: Segment) {
        let Some(request) = self.requests.get(index) else { return };
        let id = request.listener;
        if self.listener(id).is_none_or(|listener| listener.accept_queue_full()) {
            self.shared.counters.listen_overflows += 1;
            self.shared.counters.listen_drops += 1;
            // The request stays: a later ACK, or the answer to a repeated SYN-ACK, may find room.
            return self.drops.count(DropReason::AcceptQueueFull);
        }
        let Some(request) = self.remove_request(index) else { return };
        let socket = self.listener(id).map(|listener| listener.socket.clone()).unwrap_or_default();
        let ts_offset = self.isn.timestamp_offset(request.tuple.local, request.tuple.peer);
        let cx = &mut self.shared.context(now);
        let mut connection = Connection::new(cx, request.tuple, State::Established, request.iss, socket);
        connection.take_request(cx, &request, ts_offset);
        connection.unaccepted = true;
        self.shared.counters.passive_opens += 1;
        let id_of_connection: ConnId = self.insert_connection(connection);
        if let Some(listener) = self.listener_mut(id) {
            listener.accept_queue.push_back(id_of_connection);
        }
        self.announce_acceptable(id);
        self.for_connection(now, id_of_connection.index, segment);
    }
}

impl Connection {
    fn take_request(
        &mut self,
        cx: &mut crate::tcp::connection::Context<'_>,
        request: &Request,
        ts_offset: u32,
    ) {
        self.agree(cx.config, request.agreed);
        self.start_receiver(cx.config, request.irs);
        self.rcv.last_ack_sent = self.rcv.nxt;
        self.ts_offset = ts_offset;
        self.ts_recent = request.ts_recent;
        self.ts_recent_at = cx.now;
        self.snd.una = request.iss + 1;
        self.snd.advance_nxt(request.iss + 1);
        self.snd.wnd = request.peer_window.into();
        self.snd.wnd_max = self.snd.wnd;
        self.snd.wl1 = request.irs;
        self.snd.wl2 = request.iss;
        self.established_una = self.snd.una;
        self.established_at = Some(cx.now);
        self.early.confirmed = true;
        if request.transmissions == 1 {
            self.rtt.on_sample(cx.now.since(request.sent_at));
            self.save_path(cx);
        } else {
            self.rtt.on_syn_retransmitted();
        }
    }
}
