//! Start of a connection: its state before anything is agreed, and the effects of the two SYNs.

use super::negotiation::{Negotiated, TIMESTAMPS_LEN};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::recv::window_space::{SIGNED_MOST, Space, whole_segments};
use crate::{ReceiveAccounting, State};
use wire::SeqNum;

impl Connection {
    /// Returns whether neither the application nor the route has special wishes.
    pub(in crate::tcp) fn asks_for_nothing(&self) -> bool {
        self.options.is_ordinary() && self.route.is_none()
    }

    /// Sets up a new connection, before anything is agreed.
    pub(crate) fn begin(&mut self, cx: &Context) {
        self.smss = self.smss_now();
        self.begin_congestion(cx);
        self.obey_options(cx);
    }

    /// Sets up a passive connection, whose options were agreed in the handshake.
    pub(crate) fn begin_agreed(&mut self, cx: &Context, agreed: Negotiated, irs: SeqNum) {
        self.obey_options(cx);
        self.agree(cx, agreed);
        self.start_receiver(cx, irs);
    }

    fn obey_options(&mut self, cx: &Context) {
        let ordinary = self.asks_for_nothing();
        if !ordinary || self.may_be_cut(cx) {
            self.decide_fragments(cx);
        }
        if usize::from(self.path_mtu) < cx.capabilities.mtu {
            self.note_path_mtu_age(cx);
        }
        if ordinary {
            return;
        }
        self.bound_rto(&cx.config);
        if self.options.keepalive {
            self.start_keepalive(cx);
        }
    }

    /// Begins to receive, with the peer's SYN.
    #[inline(always)]
    pub(crate) fn start_receiver(&mut self, cx: &Context, irs: SeqNum) {
        match cx.fresh.payload_space() {
            Some(space) if self.asks_for_nothing() && !cx.config.window_slow_start => {
                let shift = self.agreed.snd_wscale.map_or(0, |_| self.rcv.wscale);
                self.rcv.begin(irs, Space::Payload(space), shift);
                self.rcv.adv = self.rcv.nxt + space.full().min(u32::from(u16::MAX));
            }
            _ => self.start_special_receiver(cx, irs),
        }
    }

    /// Starts a receiver whose first window depends on more than its buffer.
    #[inline(never)]
    fn start_special_receiver(&mut self, cx: &Context, irs: SeqNum) {
        let config = &cx.config;
        let mut space = cx.fresh.space(config, &self.options);
        let mss = self.window_segment();
        let mut first = space.full();
        let routes = self.route_metrics().is_some_and(|route| route.initrwnd.is_some());
        if config.window_slow_start || routes || config.receive_accounting == ReceiveAccounting::Packets {
            first = whole_segments(first.min(self.initial_rcv_wnd(mss)), mss);
            if config.tcp_workaround_signed_windows {
                first = first.min(SIGNED_MOST);
            }
            space.begin_slowly(first);
        }
        let shift = self.agreed.snd_wscale.map(|_| self.rcv.wscale);
        // In Linux, `tcp_init_transfer` runs after `advmss` was reduced by the timestamps, except
        // for a Fast Open child.
        let embryo = self.fast_opened && self.state == State::SynReceived;
        let stamps = if self.agreed.timestamps && !embryo { TIMESTAMPS_LEN } else { 0 };
        let advmss = self.advmss.saturating_sub(stamps);
        let predicts = self.state != State::SynSent || shift.is_none();
        space.begin(cx.now, (first, shift), (advmss.into(), config.tcp_app_win, irs + 1), predicts);
        self.rcv.begin(irs, space, shift.unwrap_or(0));
        // Our SYN or SYN-ACK advertises this window. Data may follow the peer's SYN directly.
        self.rcv.adv = self.rcv.nxt + first.min(u32::from(u16::MAX));
        self.begin_packets(first);
        if let Some(on) = self.options.quickack {
            self.rcv.set_quickack(config, on);
        }
    }

    /// What the route's `initrwnd` leaves of the first window, bytes.
    pub(crate) fn initial_rcv_wnd(&self, mss: u32) -> u32 {
        let segments = self.route_metrics().and_then(|route| route.initrwnd);
        segments.map_or(u32::MAX, |segments| segments.saturating_mul(mss))
    }

    /// Takes over what the SYNs agreed; the congestion window starts from the agreed MSS.
    #[inline(always)]
    pub(crate) fn agree(&mut self, cx: &Context, agreed: Negotiated) {
        self.agreed = agreed;
        self.search_mtu_from_start(cx);
        self.smss = self.smss_now();
        self.begin_congestion(cx);
        self.expand_send_buffer(&cx.config);
    }
}
