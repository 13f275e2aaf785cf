//! Seventh and eighth check: the segment text, and FIN (RFC 9293 §3.10.7.4).

use super::{Reply, Segment, Stop};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::receiver::AckOwed;
use crate::tcp::state::Transition;
use crate::tcp::timers::Timer;
use crate::{CloseReason, Events, State};
use wire::Flags;

impl Connection {
    pub(super) fn process_text_and_fin(
        &mut self,
        cx: &mut Context<'_>,
        segment: Segment,
    ) -> Result<(), Stop> {
        let fin = segment.has(Flags::FIN).then(|| segment.end() - 1);
        if !segment.payload.is_empty() {
            if self.rcv.fin_received || !self.is_open() {
                // Nothing may follow a FIN; repeat what we have acknowledged.
                self.ack_now();
                return Ok(());
            }
            if self.orphan && segment.end().after(self.rcv.nxt) {
                // Nobody will read it (RFC 1122 §4.2.2.13: "SHOULD send a RST to show that data was lost").
                cx.counters.abort_on_data += 1;
                self.terminate(CloseReason::Aborted);
                return Err(Reply::Reset);
            }
            self.take_text(cx, segment);
        } else if fin.is_some_and(|fin| fin.before(self.rcv.nxt)) {
            self.ack_now();
        }
        if fin.is_some_and(|fin| self.rcv.accept_fin(fin))
            || (!self.rcv.fin_received && self.rcv.fin_in_order())
        {
            self.fin_received();
        }
        self.arm_delayed_ack(cx);
        Ok(())
    }

    fn take_text(&mut self, cx: &Context<'_>, segment: Segment) {
        let seq = segment.seq() + u32::from(segment.has(Flags::SYN));
        let len = segment.payload.len();
        let full_sized = len + 40 >= usize::from(self.advertised_mss(&cx.capabilities));
        let accepted = self.rcv.accept(cx.now, seq, segment.payload, segment.truesize, segment.gso_size);
        if accepted > 0 {
            self.events |= Events::READABLE;
            self.rcv.owe_ack(cx.config.ack_habit, full_sized);
        }
    }

    /// The peer has ended its direction.
    pub(super) fn fin_received(&mut self) {
        self.events |= Events::READABLE;
        // The application is about to close: its FIN will carry the ACK (Linux's `tcp_fin` enters pingpong mode likewise).
        self.rcv.pingpong = true;
        if self.rcv.ack_owed == AckOwed::No {
            self.rcv.ack_owed = AckOwed::Delayed;
        }
        self.transition(Transition::FinReceived);
        if matches!(self.state, State::TimeWait | State::Closing) {
            self.ack_now();
        }
        if self.state == State::TimeWait {
            self.timers.stop(Timer::Orphan);
            self.finish();
        }
    }

    /// Starts or stops the delayed-ACK timer by what is owed.
    pub(crate) fn arm_delayed_ack(&mut self, cx: &Context<'_>) {
        match self.rcv.ack_owed {
            AckOwed::Delayed if !self.timers.is_set(Timer::DelayedAck) => {
                let delay = cx.config.delayed_ack;
                if delay.is_zero() {
                    self.ack_now();
                } else {
                    self.timers.set(Timer::DelayedAck, cx.now + delay);
                }
            }
            AckOwed::Delayed => {}
            AckOwed::No | AckOwed::Now => self.timers.stop(Timer::DelayedAck),
        }
    }
}
