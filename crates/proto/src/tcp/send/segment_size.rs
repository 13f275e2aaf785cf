//! Segment sizes: by the peer, the path and the device, and the MSS that we advertise.

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

/// Windows up to this many bytes are not halved (Linux's `TCP_MSS_DEFAULT`).
const BOUND_TO_HALF: u32 = 536;

/// Smallest segment that small windows cause, with TCP headers, in bytes (as in Linux).
const SEGMENT_MIN: u16 = 48;

/// Smallest advertised MSS that follows from a path's MTU, in bytes.
const ADVMSS_MIN: u16 = 256;

impl Sender {
    /// Returns the largest segment in bytes, at least `least`, if it is limited to half of the
    /// largest window (Linux's `tcp_bound_to_half_wnd`).
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
    /// Returns the unit of the first window: the payload of the peer's segments, as far as our SYN
    /// or SYN-ACK can tell.
    pub(crate) fn window_segment(&self) -> u32 {
        let timestamps =
            if self.state != State::SynSent && self.agreed.timestamps { TIMESTAMPS_LEN } else { 0 };
        u32::from(self.advmss.saturating_sub(timestamps).max(1))
    }

    /// Returns the largest payload of a segment: the peer's MSS and the path's MTU, less the
    /// options of every segment.
    pub(crate) fn smss(&self) -> u16 {
        debug_assert_eq!(self.smss, self.smss_now());
        self.smss
    }

    /// Sets the size of packets.
    pub(crate) fn set_path_mtu(&mut self, mtu: u16) {
        self.path_mtu = mtu;
        self.bound_search();
        self.resize();
    }

    /// Sets the size of packets that the path carries. If windows count segments, the congestion
    /// window keeps their number.
    pub(crate) fn path_mtu_changes(&mut self, cx: &Context, mtu: u16) {
        let smss = u32::from(self.smss());
        self.set_path_mtu(mtu);
        if cx.config.window_unit.is_segments() {
            let (segments, segment) = (self.congestion.cwnd() / smss, u32::from(self.smss()));
            self.congestion.on_resize(segments.saturating_mul(segment).max(segment));
        }
    }

    /// Notes the time of a report about the path's MTU. It is valid for `mtu_expires`.
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

    /// Tries larger packets again if the report is too old (RFC 1191 §6.3, RFC 8201 §4). Not while
    /// lost data waits, for example for the pacer: it may have been lost for its size, and would be
    /// lost again.
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

    /// Recomputes the segment size after a change.
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
            // A window of zero segments would allow nothing.
            self.congestion.on_resize(smss);
        }
        self.snd.queue.resize(smss);
        if let Some(board) = self.recovery.board_mut() {
            board.weigh(&mut self.snd.queue);
        }
    }

    /// Advertises the present MSS of the path with a retransmitted SYN. Other connections may have
    /// learned it (Linux's `tcp_advertise_mss`).
    pub(crate) fn advertise_path_mss(&mut self, cx: &Context) {
        let mtu = cx.first_path_mtu(&self.tuple, self.route_metrics());
        if mtu < self.path_mtu {
            self.set_path_mtu(mtu);
        }
        if self.route_metrics().is_none_or(|metrics| metrics.advmss.is_none()) {
            self.advmss = self.advmss.min(of_path(self.path_mtu, &self.tuple));
        }
    }

    /// Assumes the cached MSS of the peer until the peer announces it.
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

    /// Returns the SMSS without the limit by the peer's window.
    pub(crate) fn whole_segment(&self) -> u16 {
        let search = self.special.as_deref().and_then(|special| special.mtu_search.as_deref());
        let packet = search.and_then(MtuSearch::bound).map_or(self.path_mtu, |low| low.min(self.path_mtu));
        let mut mss = self.mss_in(packet);
        if !self.options.is_ordinary() {
            mss = mss.min(negotiation::mss_clamp(&self.options));
        }
        mss.saturating_sub(self.every_option_len()).max(8)
    }

    /// Returns the payload of a segment without special options or MTU search.
    fn ordinary_segment(&self) -> u16 {
        let timestamps = if self.agreed.timestamps { TIMESTAMPS_LEN } else { 0 };
        self.mss_in(self.path_mtu).saturating_sub(timestamps).max(8)
    }

    /// Returns payload and options of a segment in a packet of this size, as far as the peer
    /// accepts it.
    fn mss_in(&self, packet: u16) -> u16 {
        let headers = self.tuple.ip_header_len() as u16 + 20;
        self.agreed.peer_mss.min(packet.saturating_sub(headers))
    }

    /// Returns the room for options that remains.
    pub(in crate::tcp) fn options_room(&self) -> u16 {
        (TCP_OPTIONS_MAX as u16).saturating_sub(self.every_option_len())
    }

    /// Returns the bytes of options in every segment.
    pub(in crate::tcp) fn every_option_len(&self) -> u16 {
        let timestamps = if self.agreed.timestamps { TIMESTAMPS_LEN } else { 0 };
        timestamps + self.signature_len()
    }

    /// Handles the largest window so far.
    #[inline]
    pub(crate) fn window_grew(&mut self) {
        if self.snd.bounds_by_window() {
            self.resize();
        }
    }

    /// Returns the largest payload of the next segment: the SMSS less SACK blocks and counts of
    /// marks (Eff.snd.MSS of RFC 9293 §3.7.1).
    pub(crate) fn segment_max(&self) -> u16 {
        self.smss().saturating_sub(self.varying_options_len() as u16).max(8)
    }

    /// Returns the key that signs this connection's segments.
    pub(crate) fn md5_key(&self) -> Option<&Md5Key> {
        if self.options.is_ordinary() { None } else { self.own_md5_key() }
    }

    #[cold]
    fn own_md5_key(&self) -> Option<&Md5Key> {
        self.options.md5_keys.for_peer(self.tuple.peer.to_ip())
    }

    /// Returns the bytes of the signature in every segment.
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

    /// Returns the size to which a write's segment grows: what the device cuts, in whole segments.
    pub(crate) fn size_goal(&self, capabilities: &Capabilities) -> u32 {
        // A burst has at most half of the largest window that the peer offered (Linux's
        // `tcp_bound_to_half_wnd`).
        let half = if self.snd.wnd_max > BOUND_TO_HALF { self.snd.wnd_max / 2 } else { u32::MAX };
        self.device_goal(capabilities, half)
    }

    /// Returns how many bytes the device cuts, in whole segments, at most `most`.
    pub(crate) fn device_goal(&self, capabilities: &Capabilities, most: u32) -> u32 {
        let segment = u32::from(self.segment_max());
        // The device would copy the signature of one segment to all of the burst.
        let cut = if self.signature_len() > 0 { 0 } else { capabilities.gso_max_size };
        let device = cut.min(usize::from(u16::MAX) - wire::MAX_HEADER) as u32;
        (device.min(most) / segment).max(1) * segment
    }

    /// Handles a change of the application's limit of the MSS.
    pub(crate) fn clamp_mss(&mut self, cx: &Context) {
        self.advmss = cx.advmss(&self.tuple, self.route.as_deref(), &self.options);
        self.resize();
    }
}

impl Context {
    /// Returns the smallest MTU of the link, the route and recent ICMP reports. A locked route's
    /// MTU is not doubted.
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

    /// Returns the MSS that we advertise, by the device, the route and the application.
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

/// Returns the payload of a packet with the path's MTU, within sane limits (Linux's
/// `ip_rt_min_advmss`).
fn of_path(mtu: u16, tuple: &FourTuple) -> u16 {
    mtu.saturating_sub(tuple.ip_header_len() as u16 + 20).max(ADVMSS_MIN)
}
