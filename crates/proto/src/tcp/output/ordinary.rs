//! The ordinary segment: all that was written and not sent, in one segment, and the FIN if that follows, on a connection where nothing is
//! out of the ordinary.
//!
//! Nearly every packet of short exchanges with text is one. What the way of all others (`send_new`, `send_range`) asks step by step, for
//! each of its cases, is asked here once; what follows is then what those steps do for such a segment, and no more. The packet is the same,
//! and so is all that the connection knows afterwards: the tests let the same conversations go both ways.

use crate::tcp::congestion::{Congestion, Controller};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::nagle::Nagle;
use crate::tcp::timers::Timer;
use crate::tcp::window_use::Sent;
use wire::{Flags, TxPacket};

impl Connection {
    /// Sends what was written, if that is an ordinary segment: then nothing more is to be sent now. False: it is none, and nothing has changed.
    #[inline(never)]
    pub(crate) fn send_ordinary(&mut self, cx: &mut Context, packet: &mut TxPacket) -> bool {
        let (now, seq, smss) = (cx.now, self.snd.nxt, u32::from(self.smss()));
        let len = self.snd.queue.end().since(seq);
        if len == 0 || len > smss || !self.is_undisturbed(cx) || len < smss && !self.small_may_go(len) {
            return false;
        }
        let (flight, silence) = (seq.since(self.snd.una), now.nanos_since(self.window_use.last_sent_at()));
        debug_assert!(self.is_open() && flight == self.snd.flight_size());
        let (fin, alone, rto) = (self.snd.fin_queued, flight == 0, self.rtt.rto_nanos());
        // A FIN takes a number, for which the peer's window has room.
        let in_flight = flight + len + u32::from(fin);
        let Congestion::Cubic(cubic) = &mut self.congestion else { return false };
        let (cwnd, ssthresh) = (cubic.cwnd(), cubic.ssthresh());
        if in_flight > self.snd.wnd || flight + len > cwnd || alone && silence > rto {
            // The windows keep it back, or decay.
            return false;
        }
        let Some(mut unsent) = self.snd.queue.unsent_segment(seq) else { return false };
        if alone {
            unsent.flight.begin(now);
            cubic.on_silence(silence);
        }
        let push = unsent.leave(now, flight + len, &mut packet.payload);
        if !cx.config.lull_at_writes && in_flight.saturating_add(smss) <= cwnd {
            unsent.delivery.lull(unsent.flight, in_flight);
        }
        let (una, nxt) = (self.snd.una, seq + len + u32::from(fin));
        let sent = Sent { now, una, nxt, in_flight, outstanding: in_flight, cwnd, ssthresh, smss };
        let filled = self.window_use.on_sent(Some(unsent.round), &sent);
        (self.snd.nxt, self.snd.max) = (nxt, nxt);
        if len < smss {
            self.snd.small_end = nxt;
        }
        if !filled {
            self.window_is_left_unused(cx);
        }
        if alone {
            self.arm_for_lone(cx, rto, in_flight <= smss);
        } else {
            self.arm_behind_others(cx, in_flight);
        }
        self.answered(cx);
        let mut flags = if push { Flags::ACK | Flags::PSH } else { Flags::ACK };
        if fin {
            self.snd.nagle.remove(Nagle::FIN_ALONE);
            flags |= Flags::FIN;
        }
        cx.took_short_way();
        self.build_ordinary(cx, seq, len, flags, packet);
        true
    }

    /// Nothing is lost, marked or paced, and neither the application nor the handshake asks for anything: whatever may make the next segment
    /// another than usual is asked here.
    #[inline(always)]
    fn is_undisturbed(&self, cx: &Context) -> bool {
        self.handshake.is_none()
            && self.special.as_deref().is_none_or(|special| self.is_open() && special.leaves_sending_alone())
            && self.recovery.is_idle()
            && self.options.is_ordinary()
            && self.route.is_none()
            && self.agreed.ecn.is_off()
            && !self.rcv.has_blocks()
            && !self.reset_due
            && !self.snd.probe_due
            && !self.counts_segments()
            && self.snd.nxt == self.snd.max
            && !cx.config.pacing
            && cx.takes_short_ways()
    }

    /// The timer, where something was in flight before.
    #[inline(never)]
    fn arm_behind_others(&mut self, cx: &Context, in_flight: u32) {
        self.timers.stop(Timer::DelayedAck);
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
