//! Half-open requests: retransmission of the SYN-ACK, and how requests end.

use super::listener::AtTimeout;
use super::request::{AnotherTime, Request};
use crate::stack::Stack;
use crate::stack::demux::holders::Holder;
use crate::stack::demux::ingress::ResetNumbers;
use crate::tcp::connection::Connection;
use crate::tcp::input::Segment;
use crate::tuple::Name;
use crate::{DropReason, Instant, ListenerId, State};
use wire::{Flags, TcpHeader, TcpOptions, Timestamps};

impl Stack {
    /// Ends a request.
    pub(in crate::stack) fn remove_request(&mut self, index: u32) -> Option<Request> {
        let request = self.take_request(index)?;
        self.holders.remove(request.hash, Holder::Request(index));
        Some(request)
    }

    /// Ends a request whose tuple gets a new owner.
    pub(in crate::stack) fn take_request(&mut self, index: u32) -> Option<Request> {
        let mut request = self.requests.remove(index)?;
        self.request_timers.clear(&mut request);
        if let Some(listener) = self.listener_mut(request.listener) {
            listener.requests -= 1;
            listener.young -= u32::from(request.timeouts == 0);
        }
        Some(request)
    }

    /// Retransmits the SYN-ACK. Only the first SYN-ACK carried a Fast Open option (RFC 7413 §4.2.2,
    /// R33). `timeouts` is 1 if the timer caused this, else 0. The options depend on the timeouts
    /// before this one, as in Linux's `reqsk_timer_handler`.
    fn send_syn_ack_again(&mut self, now: Instant, index: u32, timeouts: u8) {
        let Some(request) = self.requests.get(index) else { return };
        let header = self.syn_ack_of(request, now.as_millis() as u32, None);
        let Some(request) = self.requests.get_mut(index) else { return };
        self.shared.counters.retrans_segs += 1;
        self.shared.counters.syn_retrans += 1;
        self.shared.counters.syn_ack_retrans += 1;
        self.shared.counters.out_segs += 1;
        request.transmissions = request.transmissions.saturating_add(1);
        request.timeouts = request.timeouts.saturating_add(timeouts);
        request.sent_at = now;
        let (tuple, listener, dscp) = (request.tuple, request.listener, request.dscp);
        self.arm_request(now, index);
        self.reply_for(Some((listener, dscp)), tuple.local, tuple.peer, &header);
    }

    /// Retransmits the SYN-ACK to a peer that seems to lack it. `tcp_invalid_ratelimit` limits the
    /// rate, because many such segments may be a flood from forged addresses.
    fn repeat_syn_ack(&mut self, now: Instant, index: u32, segment: &Segment) {
        let interval = self.shared.config.invalid_ratelimit();
        let text = segment.len() > 0 && !segment.has(Flags::SYN);
        let Some(request) = self.requests.get_mut(index) else { return };
        if text || request.last_answer.may_answer(now, interval) {
            return self.send_syn_ack_again(now, index, 0);
        }
        self.shared.counters.ack_skipped_syn_recv += 1;
        self.drops.count(DropReason::RateLimited);
    }

    /// Handles the timeout of a request: the SYN-ACK has no answer, or the connection had no room.
    pub(in crate::stack) fn request_timeout(&mut self, now: Instant, index: u32) {
        let Some(request) = self.requests.get_mut(index) else { return };
        let (id, timeouts) = (request.listener, u32::from(request.timeouts));
        let Some(listener) = self.listeners.get_mut(id.index) else { return };
        self.shared.counters.timeouts += 1;
        let fate = listener.at_timeout(&self.shared.config, timeouts, request.acked);
        if fate == AtTimeout::Expire {
            return self.forget_request(now, index);
        }
        listener.young -= u32::from(timeouts == 0);
        match fate {
            AtTimeout::Repeat => self.send_syn_ack_again(now, index, 1),
            _ => {
                request.timeouts = request.timeouts.saturating_add(1);
                self.arm_request(now, index);
            }
        }
    }

    /// Arms the timer of a request. Each timeout doubles the next.
    fn arm_request(&mut self, now: Instant, index: u32) {
        let Some(request) = self.requests.get(index) else { return };
        let at = now + self.shared.fresh.handshake_rto(&self.shared.config, request.timeouts);
        self.request_timers.set(&mut self.requests, index, at);
        self.work.deadlines.note_other(at);
    }

    /// Ends a request without a connection.
    pub(in crate::stack) fn forget_request(&mut self, now: Instant, index: u32) {
        let Some(request) = self.remove_request(index) else { return };
        if request.acked && self.shared.config.accept_overflow.resets_expired() {
            self.reset_embryo(now, &request);
        }
    }

    /// Resets the peer of a request that has ended, so that it does not wait for a connection. The
    /// peer has nothing of ours but the SYN-ACK.
    pub(in crate::stack) fn reset_embryo(&mut self, now: Instant, request: &Request) {
        self.shared.counters.embryonic_rsts += 1;
        if let Some(listener) = self.listener_mut(request.listener) {
            listener.drops.reset += 1;
        }
        self.send_reset(now, &request.tuple, ResetNumbers::behind_syn_ack(request.iss, request.irs));
    }

    /// Handles a segment for a half-open request (RFC 9293 §3.10.7.4 in SYN-RECEIVED).
    pub(in crate::stack) fn for_request(&mut self, now: Instant, index: u32, segment: &mut Segment) {
        let Some(request) = self.requests.get(index) else { return };
        let name = Name { tuple: request.tuple, hash: request.hash };
        let (id, irs, iss) = (request.listener, request.irs, request.iss);
        let counts_marks = request.agreed.ecn.is_accurate();
        let of_another_time = request.of_another_time(segment.header.options.timestamps);
        let flags = segment.header.flags & (Flags::SYN | Flags::ACK | Flags::RST);
        if flags == Flags::SYN && segment.seq() == irs && of_another_time != Some(AnotherTime::Earlier) {
            self.note_repeated_syn(index, segment);
            return self.repeat_syn_ack(now, index, segment);
        }
        if segment.has(Flags::ACK) && !segment.has(Flags::RST) && segment.header.ack != iss + 1 {
            // The ACK does not belong to this request. It may answer a SYN cookie of the listener.
            return self.for_listener(now, id, name, segment, None);
        }
        let in_window = segment.seq() == irs + 1 || self.is_in_window(index, segment);
        if of_another_time.is_some() || !in_window {
            let counters = &mut self.shared.counters;
            counters.paws_estab_rejected += u64::from(of_another_time == Some(AnotherTime::Earlier));
            counters.tsecr_rejected += u64::from(of_another_time == Some(AnotherTime::Foreign));
            return self.acknowledge_request(now, index, segment);
        }
        if segment.has(Flags::RST) {
            return self.reset_request(now, index, segment.seq() == irs + 1);
        }
        if segment.has(Flags::SYN) && segment.seq() != irs {
            if self.shared.config.half_open_rules.syn_ends_request() {
                return self.end_by_syn(now, index, segment);
            }
            return self.acknowledge_request(now, index, segment);
        }
        if !segment.has(Flags::ACK) {
            return self.drops.count(DropReason::NotForListener);
        }
        if counts_marks && let Some(request) = self.requests.get_mut(index) {
            let option = segment.header.options.accurate_ecn;
            request.option_seen = request.option_seen.after(option.as_ref());
        }
        if self.is_deferred(index, segment) {
            return self.drops.count(DropReason::Deferred);
        }
        self.promote(now, index, id, segment);
    }

    /// Checks the sequence number of a segment that is not the next one, against the window of the
    /// SYN-ACK (RFC 9293 §3.10.7.4, first check). Text may overtake the final ACK.
    fn is_in_window(&self, index: u32, segment: &Segment) -> bool {
        let Some(request) = self.requests.get(index) else { return false };
        let (seq, start) = (segment.seq(), request.irs + 1);
        let end = start + u32::from(self.syn_ack_of(request, 0, None).window);
        segment.end().after(start) && seq.before(end) || seq == end && segment.end() == end
    }

    /// Handles a reset within the window. Only the exact next number proves that the peer sent it;
    /// other resets are challenged (RFC 5961 §3.2).
    fn reset_request(&mut self, now: Instant, index: u32, exact: bool) {
        if exact {
            self.shared.counters.attempt_fails += 1;
            self.shared.counters.embryonic_rsts += 1;
            self.remove_request(index);
            return;
        }
        let config = &self.shared.config;
        let (interval, limit) = (config.invalid_ratelimit(), config.tcp_challenge_ack_limit);
        let Some(request) = self.requests.get_mut(index) else { return };
        if !request.last_answer.may_answer(now, interval) {
            self.shared.counters.ack_skipped_challenge += 1;
            self.drops.count(DropReason::RateLimited);
        } else if self.shared.challenge.take(now, limit) {
            self.shared.counters.challenge_ack += 1;
            self.send_request_ack(now, index);
        }
    }

    /// RFC 9293 §3.10.7.4: "If an incoming segment is not acceptable, an acknowledgment should be
    /// sent in reply (unless the RST bit is set, if so drop the segment and return)". A peer that
    /// has forgotten its first SYN and sent another one resets the request in answer to this ACK.
    fn acknowledge_request(&mut self, now: Instant, index: u32, segment: &Segment) {
        if segment.has(Flags::RST) {
            return self.drops.count(DropReason::StrayReset);
        }
        let interval = self.shared.config.invalid_ratelimit();
        let text = segment.len() > 0 && !segment.has(Flags::SYN);
        let Some(request) = self.requests.get_mut(index) else { return };
        if !text && !request.last_answer.may_answer(now, interval) {
            self.shared.counters.ack_skipped_syn_recv += 1;
            return self.drops.count(DropReason::RateLimited);
        }
        self.send_request_ack(now, index);
    }

    /// Repeats the SYN-ACK's acknowledgment and window in a plain ACK.
    fn send_request_ack(&mut self, now: Instant, index: u32) {
        let Some(request) = self.requests.get(index) else { return };
        let (tuple, shift) = (request.tuple, request.rcv_wscale);
        let listener = (request.listener, request.dscp);
        let shift = if request.agreed.snd_wscale.is_some() { shift } else { 0 };
        let syn_ack = self.syn_ack_of(request, now.as_millis() as u32, None);
        let timestamps = syn_ack.options.timestamps;
        let header = TcpHeader {
            seq: request.iss + 1,
            flags: Flags::ACK,
            window: syn_ack.window >> shift,
            options: TcpOptions { timestamps, ..TcpOptions::default() },
            ..syn_ack
        };
        self.shared.counters.out_segs += 1;
        self.reply_for(Some(listener), tuple.local, tuple.peer, &header);
    }

    /// Handles a SYN in the window: "return this connection to the LISTEN state". Like Linux,
    /// resets the peer (`tcp_check_req`).
    fn end_by_syn(&mut self, now: Instant, index: u32, segment: &Segment) {
        let Some(request) = self.remove_request(index) else { return };
        self.shared.counters.attempt_fails += 1;
        self.shared.counters.embryonic_rsts += 1;
        self.reset_stranger(now, &request.tuple, segment);
    }

    /// Returns whether this is a bare ACK and the listener waits for data first (Linux's
    /// `tcp_check_req`).
    fn is_deferred(&mut self, index: u32, segment: &Segment) -> bool {
        let Some(request) = self.requests.get_mut(index) else { return false };
        let defer = self.listeners.get(request.listener.index).map_or(0, |listener| listener.defer_timeouts);
        let deferred = u32::from(request.timeouts) < defer && segment.end() == request.irs + 1;
        request.acked |= deferred;
        self.shared.counters.defer_accept_drop += u64::from(deferred);
        deferred
    }

    /// Keeps the newer timestamp of a repeated SYN. The echo tells the client which SYN is answered
    /// (RFC 7323 §4.3).
    fn note_repeated_syn(&mut self, index: u32, segment: &Segment) {
        if self.shared.config.half_open_rules.echoes_repeated_syn()
            && let Some(request) = self.requests.get_mut(index)
            && let Some(Timestamps { tsval, .. }) = segment.header.options.timestamps
            && (tsval.wrapping_sub(request.ts_recent) as i32) > 0
        {
            request.ts_recent = tsval;
        }
    }

    /// Turns the request into a connection: the final ACK has come.
    fn promote(&mut self, now: Instant, index: u32, id: ListenerId, segment: &mut Segment) {
        let Some(listener) = self.listener(id) else { return };
        let Some(tuple) = self.requests.get(index).map(|request| request.tuple) else { return };
        if let Some(reason) = self.lacks_place(now, listener, &tuple) {
            return self.no_room_for_request(now, index, segment, reason);
        }
        let Some(request) = self.take_request(index) else { return };
        self.establish(now, request, Some(Holder::Request(index)), segment);
    }

    /// Opens the requests that were complete when there was no room. They need not wait for another
    /// SYN-ACK.
    pub(in crate::stack) fn admit_waiting(&mut self, now: Instant, id: ListenerId) {
        while let Some(listener) = self.listener(id)
            && let Some((index, generation)) = listener.waiting.front().copied()
        {
            let first = self.requests.get(index).filter(|_| self.requests.contains(index, generation));
            if first.is_some_and(|first| self.lacks_place(now, listener, &first.tuple).is_some()) {
                return;
            }
            self.listener_mut(id).and_then(|listener| listener.waiting.pop_front());
            if self.requests.contains(index, generation)
                && let Some(request) = self.take_request(index)
            {
                let index = self.open_request(now, request, Some(Holder::Request(index)), None);
                self.settle(now, index);
            }
        }
    }

    /// Turns the request into a connection that replaces `before`. `segment` completed the
    /// handshake.
    pub(in crate::stack) fn establish(
        &mut self,
        now: Instant,
        request: Request,
        before: Option<Holder>,
        segment: &mut Segment,
    ) {
        let option_seen = request.option_seen;
        let index = self.open_request(now, request, before, Some(&segment.header));
        if let Some(connection) = self.connections.get_mut(index) {
            connection.guess_rcv_mss(segment);
            connection.marks_agreed_by_request(self.shared.context(now), option_seen, segment);
        }
        self.for_connection(now, index, segment);
    }

    /// Creates a connection that the application may accept. Returns its index. `ack` is the final
    /// ACK, if it has just come.
    pub(in crate::stack) fn open_request(
        &mut self,
        now: Instant,
        request: Request,
        before: Option<Holder>,
        ack: Option<&TcpHeader>,
    ) -> u32 {
        let id = request.listener;
        let mut socket = self.listener(id).map(|listener| listener.socket.clone()).unwrap_or_default();
        self.reflect_class(&mut socket, request.dscp);
        socket.rare.narrow_md5_keys(&request.tuple.peer);
        let name = Name { tuple: request.tuple, hash: request.hash };
        let begin = (State::Established, request.iss);
        let id_of_connection = self.begin_connection(now, name, begin, socket, before);
        if let Some(connection) = self.connections.get_mut(id_of_connection.index) {
            let cx = self.shared.context(now);
            connection.take_request(cx, &request, ack);
            connection.keep_syn(now, request.saved_syn.map(|syn| *syn));
            connection.unaccepted = true;
        }
        self.shared.counters.passive_opens += 1;
        self.queue_acceptable(id, id_of_connection, false);
        id_of_connection.index
    }

    /// Keeps a request for which there is no room, unless `tcp_abort_on_overflow` is set. A later
    /// ACK, or the answer to a repeated SYN-ACK, may find room.
    fn no_room_for_request(&mut self, now: Instant, index: u32, segment: &Segment, reason: DropReason) {
        let Some(id) = self.requests.get(index).map(|request| request.listener) else { return };
        self.drop_at_listener(id, reason);
        if self.shared.config.tcp_abort_on_overflow {
            let Some(request) = self.remove_request(index) else { return };
            self.shared.counters.embryonic_rsts += 1;
            if let Some(listener) = self.listener_mut(request.listener) {
                listener.drops.reset += 1;
            }
            return self.reset_stranger(now, &request.tuple, segment);
        }
        let Some(generation) = self.requests.generation(index) else { return };
        let Some(request) = self.requests.get_mut(index) else { return };
        request.acked = true;
        if self.shared.config.accept_overflow.admits_waiting()
            && !core::mem::replace(&mut request.waiting, true)
        {
            self.note_waiting(id, (index, generation));
        }
    }

    /// The queue is never longer than the number of requests.
    fn note_waiting(&mut self, id: ListenerId, handle: (u32, u32)) {
        let requests = &self.requests;
        let Some(listener) = self.listeners.get_mut(id.index) else { return };
        if listener.waiting.len() >= listener.requests as usize {
            listener.waiting.retain(|(index, generation)| requests.contains(*index, *generation));
        }
        listener.waiting.push_back(handle);
    }
}

impl Connection {
    fn take_request(
        &mut self,
        cx: &mut crate::tcp::connection::Context,
        request: &Request,
        ack: Option<&TcpHeader>,
    ) {
        // Counts the SYN.
        self.tally.came(0, 0);
        self.rcv.wscale = request.rcv_wscale;
        self.begin_agreed(cx, request.agreed, request.irs);
        self.rcv.last_ack_sent = self.rcv.nxt;
        self.ts_offset = request.ts_offset;
        self.remember_timestamp(cx.now, request.ts_recent);
        self.establish(cx.now, request.iss + 1, 0);
        // The unscaled window of the SYN does not count for the largest window (as in Linux's
        // `tcp_create_openreq_child`).
        self.snd.wnd = ack.map_or(request.peer_window.into(), |ack| {
            u32::from(ack.window) << request.agreed.snd_wscale.unwrap_or(0)
        });
        self.snd.wnd_max = self.snd.wnd;
        self.window_grew();
        self.snd.wl1 = request.irs;
        self.snd.wl2 = request.iss;
        self.early_confirmed = true;
        self.syns_were_lost(cx, request.timeouts);
        if request.transmissions > 1 {
            let since_first = (cx.now.as_millis() as u32).wrapping_sub(request.first_sent_ms);
            let retrans = u32::from(request.transmissions) - 1;
            self.counts(cx.now).begin_late(retrans, request.timeouts.into(), since_first);
        }
        match request.round_trip(cx, ack.and_then(|ack| ack.options.timestamps)) {
            Some(rtt) => self.rtt.on_sample_nanos(cx.now, rtt, self.snd.span()),
            // A SYN cookie does not tell how often the SYN-ACK was sent.
            None if request.transmissions > 1 => self.rtt.on_syn_retransmitted(),
            None => {}
        }
        self.recall_path(cx);
    }
}
