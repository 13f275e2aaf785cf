//! How large segments are: what the peer takes, what the path carries, what the device cuts, and what we tell the peer.

use super::mtu_search::MtuSearch;
use super::rules::SendRules;
use crate::route::{Route, RouteMetrics};
use crate::tcp::congestion::Controller;
use crate::tcp::connection::{Connection, Context, Sender};
use crate::tcp::open::negotiation::{self, TIMESTAMPS_LEN};
use crate::tcp::rare::special::Special;
use crate::tuple::FourTuple;
use crate::{Md5Key, Md5Keys, SocketOptions, State};
use wire::{Capabilities, TCP_OPTIONS_MAX};

/// Windows up to this are not halved (Linux's `TCP_MSS_DEFAULT`), bytes.
const BOUND_TO_HALF: u32 = 536;

/// The least segment that small windows lead to, headers of TCP included (Linux's), bytes.
const SEGMENT_MIN: u16 = 48;

/// Least MSS announced that follows from a path's MTU, bytes.
const ADVMSS_MIN: u16 = 256;

impl Sender {
    /// Most bytes of a segment, `least` at least, where it may not take more than half of the largest window (Linux's
    /// `tcp_bound_to_half_wnd`).
    fn half_window(&self, least: u32) -> u32 {
        if self.wnd_max == 0 {
            return u32::MAX;
        }
        let half = if self.wnd_max > BOUND_TO_HALF { self.wnd_max / 2 } else { self.wnd_max };
        half.max(least)
    }

    #[inline]
    fn bounds_by_window(&self) -> bool {
        self.rules.contains(SendRules::FILLS_WINDOWS)
    }
}

impl Connection {
    /// The first window is a multiple of this: what the peer's segments carry, as far as our SYN or SYN-ACK knows.
    pub(crate) fn window_segment(&self) -> u32 {
        let timestamps =
            if self.state != State::SynSent && self.agreed.timestamps { TIMESTAMPS_LEN } else { 0 };
        u32::from(self.advmss.saturating_sub(timestamps).max(1))
    }

    /// Largest payload of one segment: the peer's MSS and the path's MTU less the options of every segment.
    pub(crate) fn smss(&self) -> u16 {
        debug_assert_eq!(self.smss, self.smss_now());
        self.smss
    }

    /// Packets may be of this size from now on.
    pub(crate) fn set_path_mtu(&mut self, mtu: u16) {
        self.path_mtu = mtu;
        self.bound_search();
        self.resize();
    }

    /// The path takes packets of this size from now on. Where segments are counted, the congestion window stays as many of them.
    pub(crate) fn path_mtu_changes(&mut self, cx: &Context, mtu: u16) {
        let smss = u32::from(self.smss());
        self.set_path_mtu(mtu);
        if cx.config.window_unit.is_segments() {
            let (segments, segment) = (self.congestion.cwnd() / smss, u32::from(self.smss()));
            self.congestion.on_resize(segments.saturating_mul(segment).max(segment));
        }
    }

    /// What a path carries was reported some time ago, and is believed for `mtu_expires`.
    #[cold]
    pub(crate) fn note_path_mtu_age(&mut self, cx: &Context) {
        let known = cx.paths.lookup(self.tuple.local, self.tuple.peer);
        let life = cx.config.mtu_expires;
        let known = known.filter(|path| path.fresh_path_mtu(cx.now, life).is_some());
        let until = known.map(|path| path.path_mtu_at + life);
        if until.is_some() || self.special.is_some() {
            Special::of(&mut self.special, cx.now).path_mtu_until = until;
        }
    }

    /// If that is too long ago, larger packets are tried again (RFC 1191 §6.3, RFC 8201 §4). Not while something lost waits, perhaps for its
    /// turn by the pacing rate: it may be lost for its size, and would be lost for it again, each time.
    #[inline]
    pub(crate) fn doubt_path_mtu(&mut self, cx: &Context) {
        let until = self.special.as_deref().and_then(|special| special.path_mtu_until);
        if until.is_some_and(|until| until <= cx.now) && !self.recovery.resending_waits() {
            self.forget_path_mtu(cx);
        }
    }

    #[cold]
    fn forget_path_mtu(&mut self, cx: &Context) {
        self.note_path_mtu_age(cx);
        self.decide_fragments(cx);
        let mtu = cx.first_path_mtu(&self.tuple, self.route_metrics());
        if mtu != self.path_mtu {
            self.path_mtu_changes(cx, mtu);
        }
    }

    /// What segments are made for may have changed.
    #[inline]
    pub(in crate::tcp) fn resize(&mut self) {
        let smss = self.smss_now();
        if smss != self.smss {
            self.resize_to(smss);
        }
    }

    #[cold]
    fn resize_to(&mut self, smss: u16) {
        self.smss = smss;
        let smss = u32::from(smss);
        if self.handshake.is_none() && self.congestion.cwnd() < smss {
            // A window of no segment would let nothing go.
            self.congestion.on_resize(smss);
        }
        self.snd.queue.resize(smss);
        if let Some(board) = self.recovery.board_mut() {
            board.weigh(&mut self.snd.queue);
        }
    }

    /// A SYN is retransmitted, and tells what is known of the path by now, from other connections too (Linux's `tcp_advertise_mss`).
    pub(crate) fn advertise_path_mss(&mut self, cx: &Context) {
        let mtu = cx.first_path_mtu(&self.tuple, self.route_metrics());
        if mtu < self.path_mtu {
            self.set_path_mtu(mtu);
        }
        if self.route_metrics().is_none_or(|metrics| metrics.advmss.is_none()) {
            self.advmss = self.advmss.min(of_path(self.path_mtu, &self.tuple));
        }
    }

    /// The MSS that the cache holds for the peer's is taken for it until it tells it.
    pub(crate) fn assume_mss(&mut self, cx: &Context, mss: u16) {
        self.agreed.peer_mss = mss;
        self.resize();
        self.begin_congestion(cx);
    }

    #[inline]
    pub(in crate::tcp) fn smss_now(&self) -> u16 {
        let special = self.special.is_some() || self.snd.bounds_by_window() || !self.options.is_ordinary();
        if special { self.special_smss() } else { self.ordinary_segment() }
    }

    #[inline(never)]
    fn special_smss(&self) -> u16 {
        let whole = self.whole_segment();
        if !self.snd.bounds_by_window() {
            return whole;
        }
        let options = self.every_option_len();
        let most = self.snd.half_window(u32::from(SEGMENT_MIN.saturating_sub(options)));
        whole.min(u16::try_from(most).unwrap_or(u16::MAX))
    }

    /// The SMSS as it would be, were the peer's window no bound.
    pub(crate) fn whole_segment(&self) -> u16 {
        let search = self.special.as_deref().and_then(|special| special.mtu_search.as_deref());
        let packet = search.and_then(MtuSearch::bound).map_or(self.path_mtu, |low| low.min(self.path_mtu));
        let mut mss = self.mss_in(packet);
        if !self.options.is_ordinary() {
            mss = mss.min(negotiation::mss_clamp(&self.options));
        }
        mss.saturating_sub(self.every_option_len()).max(8)
    }

    /// Payload of one segment where no special option is set and no MTU is searched for.
    fn ordinary_segment(&self) -> u16 {
        let timestamps = if self.agreed.timestamps { TIMESTAMPS_LEN } else { 0 };
        self.mss_in(self.path_mtu).saturating_sub(timestamps).max(8)
    }

    /// Payload and options of one segment in a packet of this size, as the peer takes it.
    fn mss_in(&self, packet: u16) -> u16 {
        let headers = self.tuple.ip_header_len() as u16 + 20;
        self.agreed.peer_mss.min(packet.saturating_sub(headers))
    }

    /// What they leave of the room for options.
    pub(in crate::tcp) fn options_room(&self) -> u16 {
        (TCP_OPTIONS_MAX as u16).saturating_sub(self.every_option_len())
    }

    /// Bytes of the options of every segment.
    pub(in crate::tcp) fn every_option_len(&self) -> u16 {
        let timestamps = if self.agreed.timestamps { TIMESTAMPS_LEN } else { 0 };
        timestamps + self.signature_len()
    }

    /// The peer has offered more than ever before.
    #[inline]
    pub(crate) fn window_grew(&mut self) {
        if self.snd.bounds_by_window() {
            self.resize();
        }
    }

    /// Largest payload of the next segment: the SMSS less the SACK blocks and counts of marks it must carry (RFC 9293 §3.7.1's Eff.snd.MSS).
    pub(crate) fn segment_max(&self) -> u16 {
        self.smss().saturating_sub(self.varying_options_len() as u16).max(8)
    }

    /// The key by which segments of this connection are signed.
    pub(crate) fn md5_key(&self) -> Option<&Md5Key> {
        if self.options.is_ordinary() { None } else { self.own_md5_key() }
    }

    #[cold]
    fn own_md5_key(&self) -> Option<&Md5Key> {
        self.options.md5_keys.for_peer(self.tuple.peer.to_ip())
    }

    /// Bytes that its signature takes of every segment.
    pub(crate) fn signature_len(&self) -> u16 {
        if self.md5_key().is_some() { wire::SIGNATURE_OPTION_LEN } else { 0 }
    }

    pub(crate) fn set_md5_keys(&mut self, keys: Md5Keys) {
        self.options.set_md5_keys(keys);
        self.resize();
        if self.signature_len() > 0 {
            self.forgo_fast_open();
        }
    }

    /// Bytes one write's segment grows to: as much as the device cuts for us, in whole segments.
    pub(crate) fn size_goal(&self, capabilities: &Capabilities) -> u32 {
        // No burst takes more than half of the largest window the peer ever offered (Linux's `tcp_bound_to_half_wnd`).
        let half = if self.snd.wnd_max > BOUND_TO_HALF { self.snd.wnd_max / 2 } else { u32::MAX };
        self.device_goal(capabilities, half)
    }

    /// Bytes that the device cuts for us, in whole segments, `most` at most.
    pub(crate) fn device_goal(&self, capabilities: &Capabilities, most: u32) -> u32 {
        let segment = u32::from(self.segment_max());
        // The device would give all segments of a burst the signature of one.
        let cut = if self.signature_len() > 0 { 0 } else { capabilities.gso_max_size };
        let device = cut.min(usize::from(u16::MAX) - wire::MAX_HEADER) as u32;
        (device.min(most) / segment).max(1) * segment
    }

    /// The application's clamp of the MSS has changed.
    pub(crate) fn clamp_mss(&mut self, cx: &Context) {
        self.advmss = cx.advmss(&self.tuple, self.route.as_deref(), &self.options);
        self.resize();
    }
}

impl Context {
    /// The link's MTU, or the route's, or what ICMP lately reported of the path, whichever is least; a locked route's is not doubted.
    #[inline]
    pub(in crate::tcp) fn first_path_mtu(&self, tuple: &FourTuple, metrics: Option<&RouteMetrics>) -> u16 {
        let link = u16::try_from(self.capabilities.mtu).unwrap_or(u16::MAX);
        let by_metrics = metrics.and_then(|metrics| metrics.mtu);
        let own = by_metrics.map_or(link, |mtu| link.min(u16::try_from(mtu.value).unwrap_or(u16::MAX)));
        if by_metrics.is_some_and(|mtu| mtu.locked) {
            return own;
        }
        let known = self.paths.lookup(tuple.local, tuple.peer);
        known
            .and_then(|path| path.fresh_path_mtu(self.now, self.config.mtu_expires))
            .map_or(own, |mtu| own.min(mtu))
    }

    /// MSS we tell the peer: what the device and the route let it be, and the application.
    pub(in crate::tcp) fn advmss(
        &self,
        tuple: &FourTuple,
        route: Option<&Route>,
        options: &SocketOptions,
    ) -> u16 {
        let metrics = route.map(|route| &route.metrics);
        let own = negotiation::advertised_mss(&self.config, &self.capabilities, tuple, metrics);
        let by_route = metrics.is_some_and(|metrics| metrics.advmss.is_some());
        let by_path = self.config.mss_rules.mss_follows_path() && !by_route;
        let own = if by_path { own.min(of_path(self.first_path_mtu(tuple, metrics), tuple)) } else { own };
        own.min(negotiation::mss_clamp(options))
    }
}

/// What a packet of the path's MTU carries, but nothing absurd (Linux's `ip_rt_min_advmss`).
fn of_path(mtu: u16, tuple: &FourTuple) -> u16 {
    mtu.saturating_sub(tuple.ip_header_len() as u16 + 20).max(ADVMSS_MIN)
}
