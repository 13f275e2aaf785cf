//! Openings that keep nothing: a SYN answered by a SYN cookie, and the ACK that brings it back.

use super::listener::Listener;
use super::request::{CookieReply, Request};
use super::syn_cookie::{self, VALID};
use crate::rate_limit::LastAnswer;
use crate::stack::Stack;
use crate::stack::demux::holders::Holder;
use crate::tcp::ecn::accurate::OptionSeen;
use crate::tcp::ecn::{EcnMode, counts_marks};
use crate::tcp::input::Segment;
use crate::timer_wheel::TimerHandle;
use crate::tuple::FourTuple;
use crate::tuple::Name;
use crate::{Config, Instant, ListenerId};
use wire::{Ecn, Flags};

impl Stack {
    /// The SYN-ACK says everything that the ACK must bring back; it is sent once. It may carry a Fast Open cookie, which is as
    /// stateless.
    pub(in crate::stack) fn answer_statelessly(
        &mut self,
        now: Instant,
        id: ListenerId,
        name: Name,
        segment: &Segment,
        fast_open: CookieReply,
    ) {
        let Name { tuple, .. } = name;
        let numbers = self.first_numbers(now, &tuple, None);
        let mut request = self.request_from_syn(now, id, name, numbers, segment);
        let (iss, peer_mss) =
            self.syn_cookies.isn(&self.shared.config, now, &tuple, request.irs, request.agreed.peer_mss);
        request.iss = iss;
        request.agreed.peer_mss = peer_mss;
        if !request.agreed.timestamps {
            request.agreed.snd_wscale = None;
            request.agreed.sack = false;
            request.agreed.ecn = EcnMode::Off;
        }
        let Some(listener) = self.listener_mut(id) else { return };
        listener.cookie_sent_at = Some(now);
        listener.cookies.sent += 1;
        self.shared.counters.syncookies_sent += 1;
        self.shared.counters.out_segs += 1;
        let clock = syn_cookie::pack(now.as_millis() as u32, &request.agreed);
        let header = self.syn_ack_of(&request, clock, fast_open);
        self.reply_for(Some((id, request.dscp)), tuple.local, tuple.peer, &header);
    }

    /// An ACK for a listener: a cookie coming back, or a stranger's.
    pub(in crate::stack) fn ack_for_listener(
        &mut self,
        now: Instant,
        id: ListenerId,
        tuple: FourTuple,
        segment: &mut Segment,
    ) {
        let sent_lately = self
            .listener(id)
            .and_then(|listener| listener.cookie_sent_at)
            .is_some_and(|sent_at| now.since(sent_at) < VALID);
        let enabled = self.shared.config.tcp_syncookies > 0;
        if !sent_lately || !enabled || segment.has(Flags::SYN) {
            return self.reset_stranger(now, &tuple, segment);
        }
        let request = self.request_from_cookie(now, id, tuple, segment);
        let counters = &mut self.shared.counters;
        counters.syncookies_recv += u64::from(request.is_some());
        counters.syncookies_failed += u64::from(request.is_none());
        if let Some(listener) = self.listener_mut(id) {
            listener.cookies.received += u64::from(request.is_some());
            listener.cookies.failed += u64::from(request.is_none());
        }
        match request {
            Some(request) => self.open_by_cookie(now, request, segment),
            None => self.reset_stranger(now, &tuple, segment),
        }
    }

    /// What the queue would have kept, as far as the ACK tells. Nothing is known of the window of the SYN; that of the ACK follows.
    fn request_from_cookie(
        &self,
        now: Instant,
        id: ListenerId,
        tuple: FourTuple,
        segment: &Segment,
    ) -> Option<Request> {
        let config = &self.shared.config;
        let (irs, iss) = (segment.seq() - 1, segment.header.ack - 1);
        let peer_mss = self.syn_cookies.check(config, now, &tuple, irs, iss)?;
        let timestamps = segment.header.options.timestamps.filter(|_| config.timestamps());
        let offset = self.timestamp_offset(&tuple);
        let stamp = timestamps.map(|timestamps| timestamps.tsecr.wrapping_sub(offset));
        let mut agreed = syn_cookie::unpack(config, peer_mss, stamp)?;
        if agreed.ecn == EcnMode::Classic && counts_marks(config, segment.header.flags) {
            agreed.ecn = EcnMode::Accurate(Ecn::NotEct);
        }
        let shift = |listener: &Listener| self.shared.fresh.window_shift(config, &listener.socket.rare);
        Some(Request {
            tuple,
            hash: tuple.hash(&self.hash_key),
            listener: id,
            irs,
            iss,
            agreed,
            rcv_wscale: agreed.snd_wscale.and(self.listener(id)).map_or(0, shift),
            peer_window: segment.header.window,
            ts_recent: timestamps.map_or(0, |timestamps| timestamps.tsval),
            ts_offset: offset,
            transmissions: 0,
            timeouts: 0,
            sent_at: now,
            first_sent_ms: now.as_millis() as u32,
            last_answer: LastAnswer::default(),
            acked: true,
            dscp: 0,
            timer: TimerHandle::default(),
            saved_syn: None,
            waiting: false,
            option_seen: OptionSeen::Nothing,
        })
    }

    /// There is no request that could wait for room. The same segment, retransmitted, is as good a cookie and may find some: so the client is
    /// left to try again, as by Linux (`tcp_get_cookie_sock` drops it), unless it is to be refused at once.
    fn open_by_cookie(&mut self, now: Instant, request: Request, segment: &mut Segment) {
        let Some(listener) = self.listener(request.listener) else { return };
        let Some(reason) = self.lacks_place(now, listener, &request.tuple) else {
            let before = self.request_for(&request.tuple);
            return self.establish(now, request, before, segment);
        };
        self.drop_at_listener(request.listener, reason);
        let Config { tcp_abort_on_overflow, accept_overflow, .. } = self.shared.config;
        if tcp_abort_on_overflow && accept_overflow.resets_expired() {
            self.reset_embryo(now, &request);
        }
    }

    /// A repeated SYN may have found room in the queue after the first was answered by the cookie that has come now. Two SYN-ACKs with two
    /// sequence numbers have gone then; the client has chosen, and the request ends: the connection takes its place.
    fn request_for(&mut self, tuple: &FourTuple) -> Option<Holder> {
        let holder = self.holder_of(tuple).filter(|holder| matches!(holder, Holder::Request(_)));
        if let Some(Holder::Request(index)) = holder {
            self.take_request(index);
        }
        holder
    }
}
