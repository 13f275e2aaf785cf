//! The ordinary segment: all that was written and not sent, in one segment, on a connection where nothing is out of the ordinary.
//!
//! Nearly every packet of short exchanges is one. What the way of all others (`send_new`, `send_range`) asks step by step, for each of its
//! cases, is asked here once; what follows is then what those steps do for such a segment, and no more. The packet is the same, and so is
//! all that the connection knows afterwards: the tests let the same conversations go both ways.

use super::segment::Outgoing;
use crate::tcp::congestion::{Congestion, Controller};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::window_use::Sent;
use wire::{Flags, TxPacket};

/// What is to be known of it.
#[derive(Clone, Copy)]
struct Ordinary {
    /// Bytes.
    len: u32,
    /// Bytes in flight before it.
    flight: u32,
    /// Congestion window and slow-start threshold, bytes.
    cwnd: u32,
    ssthresh: u32,
    /// Nanoseconds.
    rto: u64,
}

impl Connection {
    /// Sends what was written, if that is an ordinary segment. False: it is none, and nothing has changed.
    #[inline(always)]
    pub(super) fn send_ordinary(&mut self, cx: &mut Context, packet: &mut TxPacket) -> bool {
        let Some(segment) = self.ordinary(cx) else { return false };
        cx.took_short_way();
        let (now, seq, alone) = (cx.now, self.snd.nxt, segment.flight == 0);
        if alone && let Congestion::Cubic(cubic) = &mut self.congestion {
            cubic.on_silence(now.nanos_since(self.window_use.last_sent_at()));
        }
        let end = seq + segment.len;
        if segment.len < u32::from(self.smss()) {
            self.snd.small_end = end;
        }
        self.snd.advance_nxt(end);
        let push = self.put_on_record(cx, &segment, packet);
        if alone {
            self.arm_for_lone(cx, segment.rto);
        } else {
            self.arm_behind_others(cx, segment.flight + segment.len);
        }
        self.answered(cx);
        let flags = if push { Flags::ACK | Flags::PSH } else { Flags::ACK };
        self.build_ordinary(cx, Outgoing::of_data(seq, segment.len, flags), packet);
        true
    }

    /// Is the next segment one? Whatever may make it another is asked here.
    #[inline(always)]
    fn ordinary(&self, cx: &Context) -> Option<Ordinary> {
        let Congestion::Cubic(cubic) = &self.congestion else { return None };
        let (snd, smss) = (&self.snd, u32::from(self.smss()));
        let is_plain = self.handshake.is_none()
            && self.special.is_none()
            && self.recovery.is_idle()
            && self.options.is_ordinary()
            && self.route.is_none()
            && self.agreed.ecn.is_off()
            && !self.rcv.has_blocks()
            && !self.reset_due
            && !self.counts_segments()
            && !cx.config.pacing
            && cx.takes_short_ways();
        if !is_plain || snd.fin_queued || snd.nxt != snd.max {
            return None;
        }
        let len = snd.queue.unsent_segment(snd.nxt)?;
        let (cwnd, ssthresh) = (cubic.cwnd(), cubic.ssthresh());
        let flight = snd.nxt.since(snd.una);
        if len > smss || flight + len > snd.wnd.min(cwnd) || len < smss && !self.small_may_go(len) {
            return None;
        }
        let rto = self.rtt.rto_nanos();
        if flight == 0 && cx.now.nanos_since(self.window_use.last_sent_at()) > rto {
            // The window may decay.
            return None;
        }
        debug_assert!(self.is_open() && flight == self.snd.flight_size());
        Some(Ordinary { len, flight, cwnd, ssthresh, rto })
    }

    /// The queue, and who watches how the window is used, learn that it leaves. Is its end pushed?
    #[inline(always)]
    fn put_on_record(&mut self, cx: &Context, segment: &Ordinary, packet: &mut TxPacket) -> bool {
        let (smss, Ordinary { flight, cwnd, ssthresh, .. }) = (u32::from(self.smss()), *segment);
        let in_flight = flight + segment.len;
        let lull = !cx.config.lull_at_writes && in_flight.saturating_add(smss) <= cwnd;
        let sent = Sent {
            now: cx.now,
            una: self.snd.una,
            nxt: self.snd.nxt,
            in_flight,
            outstanding: in_flight,
            cwnd,
            ssthresh,
            smss,
        };
        let Some((push, round)) = self.snd.queue.transmit_unsent(&sent, lull, &mut packet.payload) else {
            return false;
        };
        if !self.window_use.on_sent(Some(round), &sent) {
            self.window_is_left_unused(cx);
        }
        push
    }

    /// The timer, where something was in flight before.
    #[inline(never)]
    fn arm_behind_others(&mut self, cx: &Context, in_flight: u32) {
        self.timers.stop(crate::tcp::timers::Timer::DelayedAck);
        self.arm_for_new_data(cx, in_flight, false);
    }
}

impl Context {
    /// May ordinary segments go a short way? A test lets none, and shows that it makes no difference.
    #[inline(always)]
    pub(crate) fn takes_short_ways(&self) -> bool {
        #[cfg(test)]
        return self.short_ways.is_some();
        #[cfg(not(test))]
        true
    }

    /// One has.
    #[inline(always)]
    pub(crate) fn took_short_way(&mut self) {
        #[cfg(test)]
        if let Some(taken) = &mut self.short_ways {
            *taken += 1;
        }
    }
}
