//! Rules that hold of every connection when it has sent all that it may; see [`Complaint`](crate::Complaint).

use crate::tcp::connection::{Connection, Context};
use crate::tcp::open::handshake::Handshake;
use crate::tcp::recv::receiver::Receiver;
use crate::tcp::recv::window_space::Space;
use crate::tcp::timers::Timer;
use crate::{Config, State};
use alloc::string::String;

type Broken = (&'static str, String);

impl Connection {
    /// The first that is broken, and what was seen.
    pub(crate) fn broken_rule(&self, cx: &Context) -> Option<Broken> {
        if !self.is_open() {
            return None;
        }
        self.wrong_numbers().or_else(|| self.waits_without_deadline()).or_else(|| self.stays_closed(cx))
    }

    /// SND.UNA ≤ SND.NXT ≤ SND.MAX, and nothing beyond what was written.
    fn wrong_numbers(&self) -> Option<Broken> {
        let (una, nxt, max) = (self.snd.una, self.snd.nxt, self.snd.max);
        let end = self.snd.queue.end() + u32::from(self.snd.fin_queued());
        let right = self.snd.is_in_order() && (max.before_or_eq(end) || self.handshake.is_some());
        let rule = "SND.UNA ≤ SND.NXT ≤ SND.MAX ≤ what was written";
        (!right).then(|| (rule, format!("{} {} {} {}", una.0, nxt.0, max.0, end.0)))
    }

    /// What is unanswered, and what waits with nothing in flight whose answer would let it go, has a deadline.
    fn waits_without_deadline(&self) -> Option<Broken> {
        let timed = |timer| self.timers.is_set(timer);
        if timed(Timer::Retransmit) || timed(Timer::Pace) {
            return None;
        }
        match self.handshake.as_deref() {
            // The application's data will send it.
            Some(Handshake::Active(active)) if active.held() => return None,
            Some(Handshake::Active(_)) => return Some(("a SYN has a deadline", String::new())),
            Some(Handshake::Passive(_)) if timed(Timer::SynAckHold) => return None,
            Some(Handshake::Passive(_)) => return Some(("a SYN-ACK has a deadline", String::new())),
            None => {}
        }
        if self.snd.una.before(self.snd.max) {
            return Some(("what is in flight has a deadline", self.seen_of_sender()));
        }
        let fin_waits = self.snd.fin_queued() && !self.snd.fin_sent();
        let waits = self.snd.unsent() > 0 || fin_waits || self.snd.probe_due;
        waits.then(|| ("what waits has a deadline", self.seen_of_sender()))
    }

    fn seen_of_sender(&self) -> String {
        format!(
            "{:?}, in flight {}, unsent {}, SND.WND {}, cwnd {}, MSS {}",
            self.state,
            self.snd.max.since(self.snd.una),
            self.snd.unsent(),
            self.snd.wnd,
            self.congestion_window(),
            self.segment_max()
        )
    }

    /// No read would open a window that is closed though there is nothing to read: then the next acknowledgement must.
    fn stays_closed(&self, cx: &Context) -> Option<Broken> {
        let hears = matches!(self.state, State::Established | State::FinWait1 | State::FinWait2);
        let closed = self.rcv.advertised_zero() && self.rcv.buffer.is_empty() && !self.rcv.fin_received;
        if !hears || !closed || self.handshake.is_some() || cx.memory.is_exhausted() {
            return None;
        }
        let would_be = self.rcv.window_if_advertised(&cx.config, self.window_segment());
        // RFC 9293 §3.8.6.2.2: the update goes as soon as there is room for a segment, or for half of the buffer. (Where packets are counted it
        // is Linux's time that counts; what the device refuses, or `TCP_TX_DELAY` holds back, is reported later.)
        let enough = (self.rcv.space.full() / 2).min(self.advmss.into());
        let untold = self.rcv.space.counts_payload() && would_be >= enough && self.special.is_none();
        (would_be == 0 || untold).then(|| {
            let seen = format!(
                "{:?}, buffer {}, ssthresh {}, MSS {}",
                self.state,
                self.rcv.space.rcvbuf(),
                self.rcv.space.ssthresh(),
                self.rcv.mss()
            );
            ("an empty receive buffer keeps no zero window", seen)
        })
    }
}

impl Receiver {
    /// The window that an acknowledgement would tell now.
    fn window_if_advertised(&self, config: &Config, mss: u32) -> u32 {
        match &self.space {
            Space::Payload(space) => self.field(space, mss, self.wscale).0,
            Space::Packets(packets) => {
                let window =
                    packets.select(self.advertised(), self.mss(), self.wscale, config.tcp_shrink_window).0;
                (window >> self.wscale) << self.wscale
            }
        }
    }
}
