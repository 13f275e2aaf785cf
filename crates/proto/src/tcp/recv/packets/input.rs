//! Seventh and eighth check with a receive buffer that is counted by packets (Linux's
//! `tcp_data_queue`): accepted and refused segments, and their acknowledgments.

use super::{Growth, Packet, PacketSpace, Seen};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::input::Segment;
use crate::tcp::recv::payload::Payload;
use crate::tcp::recv::receiver::{AckOwed, Outside, Receiver};
use crate::tcp::timers::Timer;
use crate::{Config, Events, State};
use alloc::vec::Vec;
use wire::{Flags, SeqNum};

/// Duplicate acknowledgments that are sent at once before they are compressed (Linux's
/// `TCP_FASTRETRANS_THRESH`).
const REPEATED_AT_ONCE: u8 = 3;

impl PacketSpace {
    /// Implements [`Receiver::outside`] for a window that ends at `limit`.
    pub(in crate::tcp) fn outside(
        &self,
        (seq, end): (SeqNum, SeqNum),
        fin: bool,
        (last_ack_sent, limit): (SeqNum, SeqNum),
    ) -> Option<Outside> {
        if end.before(last_ack_sent) {
            return Some(Outside::Old);
        }
        if !end.after(limit) || !(end - u32::from(fin)).after(limit) {
            return None;
        }
        // If nothing waits to be read, data beyond the window is accepted as a whole.
        (seq.after(limit) || !self.nothing_waits()).then_some(Outside::Beyond)
    }
}

impl Connection {
    /// Predicts a segment before it is examined.
    pub(in crate::tcp) fn predict_packet(&mut self, cx: &Context, segment: &Segment) {
        if self.rcv.space.packets().is_some() {
            self.predict(cx, segment);
        }
    }

    #[inline(never)]
    fn predict(&mut self, cx: &Context, segment: &Segment) {
        let offered = self.offered_by(segment);
        let plain = self.plain_header();
        let header = segment.payload.headers().saturating_sub(self.tuple.ip_header_len() as u16);
        let next = segment.header.flags - Flags::PSH == Flags::ACK
            && u32::from(header) == plain
            && segment.seq() == self.rcv.nxt
            && offered == self.snd.wnd
            && segment.header.ack.before_or_eq(self.snd.nxt);
        let inside = !segment.end().after(self.rcv.nxt + self.rcv.wnd());
        if let Some(packets) = self.rcv.space.packets_mut() {
            (packets.stamp, packets.tap_read) = (cx.now, cx.tap_read);
            packets.predicted = packets.predicts && next && inside;
        }
    }

    /// Returns whether predicted text with room in the buffer is accepted without a check of unsent
    /// data (Linux's `tcp_rcv_established`). It must acknowledge nothing new.
    #[cold]
    pub(in crate::tcp) fn text_goes_the_short_way(&self, cx: &Context, segment: &Segment) -> bool {
        let packet = Connection::packet_of(cx, segment, segment.seq());
        let Some(packets) = self.rcv.space.packets() else { return false };
        let short = packets.predicted && packet.truesize.cast_signed() <= packets.forward();
        short && !segment.payload.is_empty()
    }

    /// Length of a TCP header without rare options.
    fn plain_header(&self) -> u32 {
        if self.agreed.timestamps { 32 } else { 20 }
    }

    /// Recomputes prediction after a change of the peer's window or new text
    /// (`tcp_fast_path_check`).
    fn may_predict(&mut self) {
        let (advertised, urgent) = (self.rcv.advertised(), self.urgent_mark().is_some());
        if let Some(packets) = self.rcv.space.packets_mut() {
            packets.predicts |=
                !packets.has_holes() && advertised > 0 && packets.allocated() < packets.rcvbuf() && !urgent;
        }
    }

    /// Notes the acknowledgment of a segment. The peer had offered `offered` bytes before.
    pub(in crate::tcp) fn acknowledged_packets(&mut self, cx: &Context, segment: &Segment, offered: u32) {
        if self.rcv.space.packets().is_some() {
            self.note_acknowledged(cx, segment, offered);
        }
    }

    #[inline(never)]
    fn note_acknowledged(&mut self, cx: &Context, segment: &Segment, offered: u32) {
        if self.snd.wnd != offered {
            self.may_predict();
        }
        if self.state == State::Established {
            self.sample_packet(cx, segment);
        }
    }

    /// Takes a sample of the receiver's round trip from an echo of ours.
    fn sample_packet(&mut self, cx: &Context, segment: &Segment) {
        let Some(echo) = self.echo_age(cx, segment.header.options.timestamps) else { return };
        let (full, rcv_nxt) = (self.rcv.is_full_sized(segment.len()), self.rcv.nxt);
        if let Some(packets) = self.rcv.space.packets_mut() {
            let prompt = rcv_nxt == packets.rounds.copied();
            packets.rounds.rtt.sample_echo(echo, full, prompt);
        }
    }

    /// Takes text and FIN of a segment, if any, and notes the owed acknowledgment. Returns false if
    /// the buffer is not counted by packets.
    pub(in crate::tcp) fn take_packet(&mut self, cx: &mut Context, segment: &mut Segment) -> bool {
        let counts_packets = self.rcv.space.packets().is_some();
        if counts_packets {
            if !segment.payload.is_empty() || segment.has(Flags::FIN) {
                self.queue_packet(cx, segment);
            }
            self.owe_packet_ack(cx);
        }
        counts_packets
    }

    /// Takes text or FIN, or both.
    fn queue_packet(&mut self, cx: &mut Context, segment: &mut Segment) {
        let (rcv_nxt, open) = (self.rcv.nxt, self.rcv.wnd());
        let fin = segment.has(Flags::FIN);
        let seq = segment.seq() + u32::from(segment.has(Flags::SYN));
        let end = segment.end();
        if let Some(packets) = self.rcv.space.packets_mut().filter(|packets| !packets.predicted) {
            // A predicted segment leaves the duplicate to be reported.
            packets.sacks.duplicate = None;
        }
        if seq == rcv_nxt {
            if open > 0 || fin && segment.payload.is_empty() {
                return self.queue_next(cx, segment, seq);
            }
            cx.counters.zero_window_drop += 1;
            return self.rcv.out_of_place();
        }
        if !end.after(rcv_nxt) {
            cx.counters.delayed_ack_lost += 1;
            self.came_twice(cx, (seq, end), false);
            return self.rcv.out_of_place();
        }
        if !seq.before(rcv_nxt + open) {
            return self.rcv.out_of_place();
        }
        if seq.before(rcv_nxt) {
            self.came_twice(cx, (seq, rcv_nxt), false);
            if open == 0 {
                cx.counters.zero_window_drop += 1;
                return self.rcv.out_of_place();
            }
            return self.queue_next(cx, segment, seq);
        }
        self.queue_out_of_order(cx, segment, seq);
    }

    /// Handles a refused segment that begins before RCV.NXT (`tcp_send_dupack`). Returns false if
    /// the buffer is not counted by packets.
    pub(in crate::tcp) fn packet_repeated(&mut self, cx: &mut Context, segment: &Segment) -> bool {
        let counts_packets = self.rcv.space.packets().is_some();
        if counts_packets {
            self.rcv.enter_quick();
            self.came_twice(cx, (segment.seq(), segment.end().earliest(self.rcv.nxt)), false);
        }
        counts_packets
    }

    /// Reports a duplicate (RFC 2883). `goes_on`: it extends what this segment has reported
    /// already.
    fn came_twice(&mut self, cx: &mut Context, part: (SeqNum, SeqNum), goes_on: bool) {
        if !self.agreed.sack || !cx.config.tcp_dsack {
            return;
        }
        let in_order = part.0.before(self.rcv.nxt);
        let Some(packets) = self.rcv.space.packets_mut() else { return };
        if !goes_on {
            packets.sacks.duplicate = None;
        }
        if packets.sacks.add_duplicate(part) {
            cx.counters.dsack_old_sent += u64::from(in_order);
            cx.counters.dsack_ofo_sent += u64::from(!in_order);
        }
    }

    /// Returns the packet of a segment.
    fn packet_of(cx: &Context, segment: &Segment, seq: SeqNum) -> Packet {
        let fin = segment.has(Flags::FIN);
        let len = u32::from(segment.payload.headers()) + segment.payload.len() as u32;
        let packet = Packet::arriving(seq, segment.end(), fin, len, cx.counters.in_segs as u32);
        // Text that comes with a SYN shares memory with the request.
        if segment.has(Flags::SYN) { packet.without_room() } else { packet }
    }

    /// Makes room for `packet`. Returns false if there is none.
    fn schedule_packet(&mut self, cx: &mut Context, packet: &Packet) -> bool {
        let sizes = self.sizes(&cx.config);
        let (rcv_nxt, pressed) = (self.rcv.nxt, cx.memory.is_under_pressure());
        let exhausted = cx.memory.is_exhausted();
        let Some(packets) = self.rcv.space.packets_mut() else { return true };
        if !packets.can_ingest() || exhausted {
            let pruned = packets.prune(packet.seq, rcv_nxt, &sizes, pressed);
            cx.counters.prune_called += u64::from(pruned.called);
            cx.counters.rcv_collapsed += u64::from(pruned.collapsed);
            cx.counters.rcv_pruned += u64::from(pruned.called && pruned.in_vain);
            if pruned.called {
                self.rcv.delay.no_more_quick();
            }
            if pruned.collapsed > 0 {
                self.rcv.compact();
            }
            if let Some(from) = pruned.out_of_order_from {
                cx.counters.ofo_pruned += 1;
                self.rcv.cut_out_of_order(from);
            }
            if pruned.in_vain || exhausted {
                return false;
            }
        }
        if let Some(packets) = self.rcv.space.packets_mut() {
            packets.schedule(packet.truesize);
        }
        true
    }

    /// The segment that is next.
    fn queue_next(&mut self, cx: &mut Context, segment: &mut Segment, seq: SeqNum) {
        let packet = Connection::packet_of(cx, segment, seq);
        let short =
            self.rcv.space.packets().is_some_and(|packets| {
                packets.predicted && packet.truesize.cast_signed() <= packets.forward()
            });
        if !short && !self.schedule_packet(cx, &packet) {
            let text = !segment.payload.is_empty();
            self.rcv.ack_owed = AckOwed::Now;
            self.events |= Events::READABLE;
            let Some(packets) = self.rcv.space.packets_mut() else { return };
            packets.no_room = true;
            if text && !packets.nothing_waits() {
                cx.counters.rcv_q_drop += 1;
                return;
            }
            packets.schedule(packet.truesize);
        }
        if let Some(packets) = self.rcv.space.packets_mut() {
            packets.push(packet);
        }
        let old = self.rcv.nxt.since(seq) as usize;
        let mut payload = segment.payload.take();
        let len = payload.len();
        payload.advance(old);
        self.rcv.append(payload, &mut cx.spare);
        self.events |= Events::READABLE;
        if len > 0 && !segment.has(Flags::SYN) {
            self.text_came(cx, segment, &packet);
        }
        if packet.fin {
            self.take_fin_of_packet(&cx.config);
        }
        self.join_out_of_order(cx);
        if !short {
            self.may_predict();
        }
    }

    /// Takes text that comes with a SYN. False: the buffer is not counted by packets.
    pub(crate) fn queue_syn_packet(&mut self, cx: &mut Context, segment: &mut Segment) -> bool {
        let Some(packets) = self.rcv.space.packets_mut() else { return false };
        let packet = Connection::packet_of(cx, segment, segment.seq() + 1);
        packets.schedule(packet.truesize);
        packets.push(packet);
        self.rcv.append(segment.payload.take(), &mut cx.spare);
        true
    }

    fn take_fin_of_packet(&mut self, config: &Config) {
        if self.rcv.fin_received {
            return;
        }
        self.rcv.take_fin();
        self.fin_received(config);
        self.rcv.out_of_order = None;
        if let Some(packets) = self.rcv.space.packets_mut() {
            packets.purge_out_of_order();
        }
    }

    /// Text in order (`tcp_event_data_recv`).
    fn text_came(&mut self, cx: &mut Context, segment: &Segment, packet: &Packet) {
        self.rcv.owe_some_ack();
        self.measure_packet(segment, packet, cx);
        let (rcv_nxt, advertised) = (self.rcv.nxt, self.rcv.advertised());
        if let Some(packets) = self.rcv.space.packets_mut() {
            packets.rounds.rtt.sample_window(cx.now, rcv_nxt, advertised);
        }
        self.rcv.measure_delay(cx, self.rcv.last_data_at, &self.rtt);
        self.rcv.last_data_at = cx.now;
        self.note_arrival(cx.now);
        let (len, rcv_mss) = (packet.len(), self.rcv.mss());
        // Linux's window does not grow with less than 128 bytes, though no larger segment may fit into it: it would stay as it is for good.
        let is_all_that_fits =
            self.rcv.space.packets().is_some_and(|packets| packets.ssthresh() < 2 * GROWS_FROM);
        if len >= GROWS_FROM.min(rcv_mss) || is_all_that_fits {
            self.grow_with(cx, packet);
        }
    }

    fn measure_packet(&mut self, segment: &Segment, packet: &Packet, cx: &Context) {
        let (sizes, advertised, pushed) =
            (self.sizes(&cx.config), self.rcv.advertised(), self.rcv.delay.pushed());
        let seen = Seen {
            len: packet.len(),
            each: segment.payload.gso_size().into(),
            truesize: packet.truesize,
            pushed: segment.has(Flags::PSH),
            marked: segment.header.flags.intersects(Flags::FIN | Flags::URG | Flags::SYN | Flags::PSH),
            header: u32::from(segment.payload.headers()).saturating_sub(self.tuple.ip_header_len() as u32),
            plain_header: self.plain_header(),
        };
        let Some(packets) = self.rcv.space.packets_mut() else { return };
        let (rcv_mss, pushed) = packets.measure(&seen, &sizes, pushed, advertised);
        self.rcv.rcv_mss = rcv_mss as u16;
        self.rcv.delay.set_pushed(pushed);
    }

    fn grow_with(&mut self, cx: &Context, packet: &Packet) {
        let sizes = self.sizes(&cx.config);
        let Some(packets) = self.rcv.space.packets_mut() else { return };
        if cx.memory.is_under_pressure() {
            packets.shrink_under_pressure(sizes.advmss);
        } else if packets.grow(packet.len(), packet.truesize, &sizes) {
            self.rcv.delay.one_more_quick();
        }
    }

    /// Joins packets that are no longer out of order to those that wait to be read.
    fn join_out_of_order(&mut self, cx: &mut Context) {
        let rcv_nxt = self.rcv.nxt;
        let mut twice = Vec::new();
        let Some(packets) = self.rcv.space.packets_mut() else { return };
        if packets.has_holes() {
            let (end, fin) = packets.join(rcv_nxt, &mut |part| twice.push(part));
            let filled = !packets.has_holes();
            let text_end = end - u32::from(fin);
            if fin {
                self.rcv.cut_out_of_order(text_end);
            }
            if text_end.after(rcv_nxt) {
                self.rcv.fill_from_out_of_order();
            }
            if fin {
                self.take_fin_of_packet(&cx.config);
            }
            if filled || fin {
                self.rcv.ack_owed = AckOwed::Now;
            }
            twice.into_iter().for_each(|part| self.came_twice(cx, part, true));
        }
        let rcv_nxt = self.rcv.nxt;
        if let Some(packets) = self.rcv.space.packets_mut() {
            packets.pass_blocks(rcv_nxt);
        }
    }

    /// A segment beyond a gap (`tcp_data_queue_ofo`).
    fn queue_out_of_order(&mut self, cx: &mut Context, segment: &mut Segment, seq: SeqNum) {
        let packet = Connection::packet_of(cx, segment, seq);
        if !self.schedule_packet(cx, &packet) {
            cx.counters.ofo_drop += 1;
            self.events |= Events::READABLE;
            return;
        }
        self.measure_packet(segment, &packet, cx);
        self.rcv.owe_some_ack();
        self.counts(cx.now).rcv_ooopack += segment.payload.packets(packet.len());
        cx.counters.ofo_queue += 1;
        let (sack, held) = (self.agreed.sack, !self.unaccepted && !self.orphan);
        let growth = Growth::new(&cx.config, self.rcv.nxt);
        let mut twice = Vec::new();
        let Some(packets) = self.rcv.space.packets_mut() else { return };
        packets.predicts = false;
        let compression = &mut packets.compression;
        let news = compression.waiting > 0 && packets.sacks.is_much_news((packet.seq, packet.end));
        compression.waiting -= u32::from(news);
        let placed =
            packets.place_out_of_order(packet, sack, &mut |part, goes_on| twice.push((part, goes_on)));
        cx.counters.ofo_merge += u64::from(placed.merged) + u64::from(placed.covers);
        if !placed.merged {
            self.rcv.keep_out_of_order(seq, segment.payload.take());
            if packet.fin {
                self.rcv.accept_fin(packet.end - 1);
            }
            if sack {
                self.grow_with(cx, &packet);
            }
            if let Some(packets) = self.rcv.space.packets_mut().filter(|_| !placed.copied) {
                packets.charge_out_of_order(&packet);
            }
        }
        if held && let Some(packets) = self.rcv.space.packets_mut() {
            packets.fit_gap(&growth);
        }
        twice.into_iter().for_each(|(part, goes_on)| self.came_twice(cx, part, goes_on));
        if news {
            self.rcv.ack_owed = AckOwed::Now;
        }
    }

    /// What is owed goes at once, or later (`__tcp_ack_snd_check`).
    fn owe_packet_ack(&mut self, cx: &mut Context) {
        let routes = self.route_metrics().is_some_and(|route| route.quickack);
        if self.rcv.ack_owed == AckOwed::Delayed {
            let lowat = self.options.recv_lowat.unwrap_or(1);
            // This first: where little is free it ends quick acknowledgements.
            let many = self.rcv.has_many_packets(&cx.config, lowat);
            if many || routes || self.rcv.delay.is_quick() && !self.rcv.in_pingpong(&cx.config) {
                self.rcv.ack_owed = AckOwed::Now;
            } else if self.rcv.space.packets().is_some_and(|packets| packets.has_holes()) {
                return self.compress_ack(cx);
            }
        }
        self.arm_delayed_ack(cx);
    }

    /// A gap is reported three times at once, then once for many (Linux's `tcp_comp_sack_nr`).
    fn compress_ack(&mut self, cx: &mut Context) {
        let srtt = self.rtt.srtt();
        let (rcv_nxt, config, sack) = (self.rcv.nxt, &cx.config, self.agreed.sack);
        let Some(packets) = self.rcv.space.packets_mut() else { return };
        let rtt = packets.rounds.rtt.get().unwrap_or_default();
        let compression = &mut packets.compression;
        let full = compression.waiting >= config.tcp_comp_sack_nr;
        if sack && !full && compression.rcv_nxt != rcv_nxt {
            (compression.rcv_nxt, compression.repeated) = (rcv_nxt, 0);
        }
        if !sack || full || compression.repeated < REPEATED_AT_ONCE {
            compression.repeated += u8::from(sack && !full);
            self.rcv.ack_owed = AckOwed::Now;
            return self.arm_delayed_ack(cx);
        }
        compression.waiting += 1;
        if compression.waiting == 1 {
            let rtt = srtt.map_or(rtt, |srtt| srtt.min(rtt));
            compression.at = cx.now + compression_delay(rtt, config);
            let at = compression.at;
            if !self.timers.is_set(Timer::DelayedAck) || at < self.timers.deadline(Timer::DelayedAck) {
                self.timers.set(Timer::DelayedAck, at);
            }
        }
    }
}

impl Receiver {
    /// A segment that was not expected is acknowledged at once, and so are the next.
    fn out_of_place(&mut self) {
        self.enter_quick();
        self.owe_some_ack();
    }

    fn owe_some_ack(&mut self) {
        if self.ack_owed == AckOwed::No {
            self.ack_owed = AckOwed::Delayed;
        }
    }
}

/// Payloads below this do not let the window grow.
const GROWS_FROM: u32 = 128;

fn compression_delay(rtt: core::time::Duration, config: &Config) -> core::time::Duration {
    let most = core::time::Duration::from_nanos(config.tcp_comp_sack_delay_ns.into());
    (rtt * config.tcp_comp_sack_rtt_percent / 100).min(most)
}

impl crate::tcp::recv::receiver::Receiver {
    /// What comes next is acknowledged segment by segment.
    fn enter_quick(&mut self) {
        let segments = self.advertised() / (2 * self.mss());
        self.delay.enter_quick(segments);
    }

    /// A payload beyond a gap; its packet is known.
    fn keep_out_of_order(&mut self, seq: SeqNum, payload: Payload<'_, '_>) {
        if !payload.is_empty() {
            let truesize = payload.truesize();
            self.out_of_order.get_or_insert_default().insert(seq, payload.into_bytes(), truesize, u32::MAX);
        }
    }
}
