//! The segments of a GRO run behind its first: text that begins where the segment before it ended, with the same acknowledgement, window
//! and options. Of the checks of RFC 9293 §3.10.7.4 only the seventh, "process the segment text", has anything left to do.

use crate::State;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::recv::ack_delay::Came;
use crate::tcp::recv::payload::Payload;
use crate::tcp::recv::receiver::AckOwed;
use crate::{AckHabit, Events};
use core::time::Duration;
use wire::{Ecn, Flags, SeqNum, TcpHeader};

/// What holds for every segment of a run, computed once.
pub(crate) struct RunConstants {
    tsval: Option<u32>,
    /// The timestamp they echo, and how old it is.
    echo: Option<(u32, Duration)>,
    /// Payload that is full-sized by our MSS.
    full_sized: usize,
    /// The route wants every segment acknowledged.
    quickack: bool,
    /// The delay of an acknowledgement follows what comes, even while one is owed at once.
    adapts: bool,
}

impl Connection {
    /// Begins a run with this header, if further segments with it can change nothing but what is received: the connection is synchronized
    /// and in order, the header has no new acknowledgement, window or SACK block, and its codepoint does not call for quick ACKs.
    pub(crate) fn begin_run(&self, cx: &Context, ecn: Ecn, header: &TcpHeader) -> Option<RunConstants> {
        let options = &header.options;
        let synchronized = self.handshake.is_none()
            && matches!(self.state, State::Established | State::FinWait1 | State::FinWait2);
        let window = u32::from(header.window) << self.agreed.snd_wscale.unwrap_or(0);
        let timely = options.timestamps.is_none_or(|timestamps| {
            !self.agreed.timestamps || (timestamps.tsval.wrapping_sub(self.ts_recent) as i32) >= 0
        });
        let goes_on = synchronized
            && !self.orphan
            && !self.agreed.ecn.is_accurate()
            && (ecn != Ecn::NotEct || !self.ecn.ect_seen())
            && self.rcv.space.counts_payload()
            && self.rcv.in_order()
            && !self.rcv.refuses
            && self.recovery.is_idle()
            && header.flags - Flags::PSH == Flags::ACK
            && (header.ack, window) == (self.snd.una, self.snd.wnd)
            && (self.snd.wl2, self.timeouts) == (header.ack, 0)
            && options.sack.is_empty()
            && timely;
        goes_on.then(|| RunConstants {
            tsval: options.timestamps.filter(|_| self.agreed.timestamps).map(|timestamps| timestamps.tsval),
            echo: self.echo_age(cx, options.timestamps),
            full_sized: usize::from(self.advmss).saturating_sub(40),
            quickack: self.route_metrics().is_some_and(|route| route.quickack),
            adapts: cx.config.ack_habit == AckHabit::QuickStart,
        })
    }

    /// Whether `seq` is RCV.NXT and `len` bytes from there lie in the receive window.
    #[inline]
    pub(crate) fn takes_at_once(&self, seq: SeqNum, len: usize) -> bool {
        seq == self.rcv.nxt && len <= self.rcv.wnd() as usize
    }

    /// Takes one segment of the run. [`begin_run`](Self::begin_run) and [`takes_at_once`](Self::takes_at_once) must hold, and the stack's
    /// memory be under no pressure. [`end_run`](Self::end_run) follows the last segment.
    #[inline]
    pub(crate) fn take_run_segment(
        &mut self,
        cx: &mut Context,
        run: &RunConstants,
        seq: SeqNum,
        pushed: bool,
        text: Payload<'_, '_>,
    ) {
        let len = text.len();
        self.tally.came(len, text.gso_size());
        cx.counters.hp_hits += u64::from(self.state == State::Established);
        // What the peer sent ahead, before it retransmitted this, may have been newer.
        self.snd.wl1 = self.snd.wl1.latest(seq);
        if let Some(tsval) = run.tsval
            && seq.before_or_eq(self.rcv.last_ack_sent)
        {
            self.remember_timestamp(cx.now, tsval);
        }
        let last_data_at = self.rcv.last_data_at;
        self.rcv.accept_next(cx.now, text, &mut cx.spare);
        self.note_arrival(cx.now);
        if self.rcv.is_tunable() {
            let echo = run.echo.filter(|_| self.rcv.is_full_sized(len as u32));
            self.rcv.note_round(cx.now, len as u32, echo);
        }
        self.keep_within_memory(cx);
        if self.rcv.ack_owed != AckOwed::Now || run.adapts {
            let came =
                Came { before: last_data_at, len: len as u32, full_sized: len >= run.full_sized, pushed };
            self.owe_ack(cx, &came);
            if run.quickack {
                self.ack_now();
            }
            self.arm_delayed_ack(cx);
        }
    }

    /// Ends the run: what is done once for all of its segments, and was not by the packet that it goes on from.
    pub(crate) fn end_run(&mut self, cx: &Context) {
        self.events |= Events::READABLE;
        self.arm_delayed_ack(cx);
    }
}
