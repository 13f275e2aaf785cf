//! The window that an acknowledgement advertises, and when reading causes a window update (Linux's `tcp_select_window`,
//! `tcp_cleanup_rbuf`), where the receive buffer is counted packet by packet.

use super::rounds::Growth;
use super::window::{MSS_DEFAULT, MSS_MIN, Sizes};
use crate::Config;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::input::Segment;
use crate::tcp::recv::receiver::{AckOwed, Receiver};
use crate::tcp::recv::window_space::RCVBUF_MAX;

impl Receiver {
    /// What a window is worth: see [`PacketSpace::select`](super::PacketSpace::select). Quick acknowledgements end when little is free.
    fn select(&mut self, config: &Config) -> u32 {
        let (advertised, shift) = (self.advertised(), self.wscale);
        let Some(packets) = self.space.packets() else { return advertised };
        let (window, scarce) =
            packets.select(advertised, self.rcv_mss.into(), shift, config.tcp_shrink_window);
        if scarce {
            self.delay.no_more_quick();
        }
        window
    }

    /// The field of a segment that leaves now; what is advertised counts from RCV.NXT on.
    pub(crate) fn advertise_window(&mut self, cx: &mut Context) -> u16 {
        let (advertised, open, shift) = (self.advertised(), self.wnd(), self.wscale);
        let Some(packets) = self.space.packets_mut() else { return 0 };
        packets.stamp = cx.now;
        let compressed = core::mem::take(&mut packets.compression.waiting);
        cx.counters.ack_compressed += u64::from(compressed);
        if core::mem::take(&mut packets.no_room) {
            packets.predicts = false;
            self.adv = self.nxt;
            self.acknowledged();
            return 0;
        }
        let mut window = self.select(&cx.config);
        if window < open && !(cx.config.tcp_shrink_window && shift > 0) {
            // Never taken back (RFC 7323 §2.4).
            cx.counters.want_zero_window_adv += u64::from(window == 0);
            window = open.next_multiple_of(1 << shift);
        }
        self.adv = self.nxt + window;
        self.acknowledged();
        let field = (window >> shift).min(u16::MAX.into()) as u16;
        if field == 0 {
            cx.counters.to_zero_window_adv += u64::from(advertised > 0);
            if let Some(packets) = self.space.packets_mut() {
                packets.predicts = false;
            }
        } else {
            cx.counters.from_zero_window_adv += u64::from(advertised == 0);
        }
        field
    }

    /// More than a segment is not acknowledged, and the right edge of the window would move with an acknowledgement as far as what has
    /// come (Linux's `__tcp_ack_snd_check`); else the reader will bring it about, unless it waits for `lowat` bytes.
    pub(in crate::tcp) fn has_many_packets(&mut self, config: &Config, lowat: u32) -> bool {
        let advertised = self.advertised();
        self.nxt.since(self.last_ack_sent) > self.mss()
            && ((self.buffer.len() as u32) < lowat || self.select(config) >= advertised)
    }
}

impl Connection {
    /// `first` bytes are the first window, of which a SYN tells no more than 65535.
    pub(in crate::tcp) fn begin_packets(&mut self, first: u32) {
        if self.rcv.space.packets().is_some() {
            self.rcv.adv = self.rcv.nxt + first;
            self.rcv.delay.no_more_quick();
            self.set_first_mss(self.smss().into());
        }
    }

    fn set_first_mss(&mut self, smss: u32) {
        let hint = smss.min(self.advmss.into()).min(self.rcv.advertised() / 2).clamp(MSS_MIN, MSS_DEFAULT);
        self.rcv.rcv_mss = hint as u16;
    }

    /// What is full-sized before anything has come, where the peer's first window is that of `segment` (`tcp_initialize_rcv_mss`,
    /// `tcp_bound_to_half_wnd`).
    pub(crate) fn guess_rcv_mss(&mut self, segment: &Segment) {
        if self.rcv.space.packets().is_none() {
            return;
        }
        let offered = self.offered_by(segment);
        let half = if offered > MSS_DEFAULT { offered / 2 } else { offered };
        let smss = u32::from(self.smss());
        self.set_first_mss(if half > 0 { smss.min(half) } else { smss });
    }

    pub(in crate::tcp) fn sizes(&self, config: &Config) -> Sizes {
        Sizes {
            advmss: self.window_segment(),
            rcv_mss: self.rcv.mss(),
            rmem_max: config.tcp_rmem[2].min(RCVBUF_MAX),
        }
    }

    /// The application has read: its packets go, the buffer is fitted to its pace, and the peer may be advertised. True: now; `None`: the buffer is
    /// not counted by packets.
    pub(crate) fn packets_were_read(&mut self, cx: &mut Context) -> Option<bool> {
        self.rcv.space.packets().is_some().then(|| self.release_what_was_read(cx))
    }

    #[inline(never)]
    fn release_what_was_read(&mut self, cx: &mut Context) -> bool {
        let (copied, rcv_nxt) = (self.rcv.copied(), self.rcv.nxt);
        let growth = Growth::new(&cx.config, rcv_nxt);
        let Some(packets) = self.rcv.space.packets_mut() else { return false };
        packets.read_up_to(copied, &growth);
        let (none_left, clamp) = (packets.allocated() == 0, packets.clamp());
        let tells =
            self.rcv.acknowledges_read(&cx.config, none_left) || self.advertises_room(&cx.config, clamp);
        if tells {
            self.rcv.ack_owed = AckOwed::Now;
        }
        tells
    }

    /// A read has gone over what is no text to it, and found nothing behind: an urgent byte, or the end. Their packets go (Linux's
    /// `tcp_recvmsg_locked`). True: the peer is told of the room now; with Linux, its window probe would find it.
    #[cold]
    pub(crate) fn packets_were_passed(&mut self, cx: &mut Context) -> bool {
        let (copied, growth) = (self.rcv.copied(), Growth::new(&cx.config, self.rcv.nxt));
        let Some(packets) = self.rcv.space.packets_mut().filter(|packets| !packets.nothing_waits()) else {
            return false;
        };
        packets.read_up_to(copied, &growth);
        let clamp = packets.clamp();
        self.forget_passed_mark();
        let tells = self.advertises_room(&cx.config, clamp);
        if tells {
            self.rcv.ack_owed = AckOwed::Now;
        }
        tells
    }

    /// The window has at least doubled.
    fn advertises_room(&mut self, config: &Config, clamp: u32) -> bool {
        let shut =
            self.rcv.fin_received || self.special.as_ref().is_some_and(|special| special.reads_no_more);
        let open = self.rcv.wnd();
        if shut || !self.synchronized() || u64::from(open) * 2 > clamp.into() {
            return false;
        }
        let window = self.rcv.select(config);
        window > 0 && u64::from(window) >= 2 * u64::from(open)
    }
}
