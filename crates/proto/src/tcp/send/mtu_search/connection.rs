//! A connection searches for the largest packets its path carries.

use super::{ALWAYS, BLACK_HOLES, MtuSearch, Next, Probe, WINDOW_MIN};
use crate::tcp::congestion::Controller;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::observe::tcp_info::{self, CaState};
use crate::tcp::open::negotiation;
use crate::tcp::rare::special::Special;
use crate::{Config, Instant, State};
use alloc::boxed::Box;
use wire::SeqNum;

impl Connection {
    fn search(&self) -> Option<&MtuSearch> {
        self.special.as_deref()?.mtu_search.as_deref()
    }

    fn search_mut(&mut self) -> Option<&mut MtuSearch> {
        self.special.as_deref_mut()?.mtu_search.as_deref_mut()
    }

    /// Of every packet: IP and TCP header, timestamps and signature.
    fn overhead(&self) -> u16 {
        self.tuple.ip_header_len() as u16 + 20 + self.every_option_len()
    }

    /// The largest packet worth trying: what the peer takes.
    fn search_end(&self) -> u16 {
        let mss = self.agreed.peer_mss.min(negotiation::mss_clamp(&self.options));
        mss.saturating_add(self.tuple.ip_header_len() as u16 + 20)
    }

    fn begin_search(&mut self, now: Instant, mss: u32, bounds: bool) {
        let low = u16::try_from(mss).unwrap_or(u16::MAX).saturating_add(self.overhead());
        let high = if bounds { self.search_end().min(self.path_mtu) } else { self.search_end() };
        let search = MtuSearch::new(now, low, high, bounds);
        Special::of(&mut self.special, now).mtu_search = Some(Box::new(search));
    }

    /// What both ends can do is agreed.
    pub(in crate::tcp) fn search_mtu_from_start(&mut self, cx: &Context) {
        if cx.config.tcp_mtu_probing >= ALWAYS {
            let bounds = self.state == State::SynSent || !cx.config.mtu_search_from_full;
            self.begin_search(cx.now, cx.config.tcp_base_mss, bounds);
        }
    }

    /// What the path carries is known anew: it bounds the search, and the search segments (Linux's `tcp_sync_mss`).
    pub(in crate::tcp) fn bound_search(&mut self) {
        let most = self.path_mtu;
        if let Some(search) = self.search_mut() {
            (search.high, search.bounds) = (search.high.min(most), true);
        }
    }

    /// Bounds the search anew where the peer's window, larger than ever, may allow larger segments (`tcp_ack_update_window`).
    #[cold]
    pub(in crate::tcp) fn bound_search_by_window(&mut self) {
        if self.search().is_some() {
            self.bound_search();
            self.resize();
        }
    }

    /// Nothing is acknowledged for too long: smaller segments may get through (Linux's `tcp_mtu_probing`).
    pub(in crate::tcp) fn suspect_large_packets(&mut self, cx: &Context) {
        let config = &cx.config;
        if config.tcp_mtu_probing < BLACK_HOLES {
            return;
        }
        let overhead = self.overhead();
        let was = u32::from(self.smss()).max(1);
        match self.search_mut() {
            None => self.begin_search(cx.now, config.tcp_base_mss, true),
            Some(search) => {
                let halved = u32::from(search.low.saturating_sub(overhead) / 2).min(config.tcp_base_mss);
                let mss = halved.max(config.tcp_mtu_probe_floor).max(config.tcp_min_snd_mss);
                search.low = u16::try_from(mss).unwrap_or(u16::MAX).saturating_add(overhead);
                (search.bounds, search.probe) = (true, None);
            }
        }
        self.resize();
        let segments = (self.congestion.cwnd() / was).max(1);
        self.congestion.on_resize(segments.saturating_mul(self.smss().into()));
    }

    /// Is it time for a probe, when `unsent` bytes wait (Linux's `tcp_mtu_probe`)?
    pub(in crate::tcp) fn next_mtu_probe(&mut self, cx: &Context, unsent: u32) -> Next {
        let Some(search) = self.search() else { return Next::Nothing };
        let smss = u32::from(self.smss());
        let (pipe, cwnd) = (self.pipe().div_ceil(smss), self.congestion_window() / smss);
        let quiet = tcp_info::ca_state(self) == CaState::Open && self.snd.nxt == self.snd.max;
        if search.probe.is_some()
            || !quiet
            || cwnd < WINDOW_MIN
            || self.varying_options_len() > 0
            || self.urgent_end().is_some()
        {
            return Next::Nothing;
        }
        let high = search.high;
        let size = u16::midpoint(high, search.low);
        if high.saturating_sub(search.low) < threshold(&cx.config) || size > high {
            self.search_anew(cx);
            return Next::Nothing;
        }
        let payload = size.saturating_sub(self.overhead());
        let reordering = self.recovery.reordering().unwrap_or_else(|| cx.first_reordering(&self.tuple));
        let needed = u32::from(payload).saturating_add((reordering + 1).saturating_mul(smss));
        let record = self.snd.queue.record_len(self.snd.nxt).is_some_and(|record| record < payload.into());
        let leaves = size <= self.largest_packet();
        if !leaves || payload == 0 || unsent < needed || self.snd.wnd < needed || record {
            return Next::Nothing;
        }
        if self.snd.wnd.saturating_sub(self.snd.flight_size()) < needed {
            return Next::Wait;
        }
        match pipe + 2 > cwnd {
            true if pipe == 0 => Next::Nothing,
            true => Next::Wait,
            false => Next::Probe(payload),
        }
    }

    /// The search is at its end. After `tcp_probe_interval` another begins: the path may have changed.
    fn search_anew(&mut self, cx: &Context) {
        let (low, high) = (self.smss().saturating_add(self.overhead()), self.search_end());
        if let Some(search) = self.search_mut()
            && cx.now.since(search.since) >= cx.config.tcp_probe_interval
        {
            *search = MtuSearch::new(cx.now, low, high, search.bounds);
        }
    }

    /// The next segment, with this payload, is the probe.
    pub(in crate::tcp) fn mtu_probe_leaves(&mut self, payload: u16) {
        let (from, size) = (self.snd.nxt, payload.saturating_add(self.overhead()));
        if let Some(search) = self.search_mut() {
            search.probe = Some(Probe { from, end: from + u32::from(payload), size });
        }
    }

    /// This segment is the probe: no device cuts it.
    pub(in crate::tcp) fn is_mtu_probe(&self, seq: SeqNum, len: u32) -> bool {
        let probe = self.search().and_then(|search| search.probe);
        probe.is_some_and(|probe| probe.from == seq && probe.end == seq + len)
    }

    /// Something is retransmitted: the probe shows nothing any more.
    pub(in crate::tcp) fn forget_mtu_probe(&mut self) {
        if let Some(search) = self.search_mut() {
            search.probe = None;
        }
    }

    /// Everything up to `una` is acknowledged. With a probe among it segments become as large; the window holds as many bytes as before,
    /// less the segment by which the probe was larger than it counted.
    pub(in crate::tcp) fn judge_mtu_probe(&mut self, cx: &mut Context, una: SeqNum) {
        let Some(probe) = self.search().and_then(|search| search.probe) else { return };
        if una.before(probe.end) {
            return;
        }
        let was = self.smss();
        let before = u32::from(was.saturating_add(self.overhead()));
        if let Some(search) = self.search_mut() {
            (search.low, search.probe) = (probe.size, None);
        }
        self.bound_search();
        self.resize();
        cx.counters.mtup_success += 1;
        let smss = u32::from(self.smss());
        let cwnd = self.congestion.cwnd() / u32::from(was).max(1);
        let scaled = u64::from(cwnd.saturating_sub(1)) * u64::from(before) / u64::from(probe.size);
        let scaled = u32::try_from(scaled).unwrap_or(u32::MAX).max(1).saturating_mul(smss);
        self.congestion.on_resize(scaled);
    }

    /// A loss was found, the first of a flight. Is it the probe that is lost? Then larger packets are not tried again, and the window
    /// need not shrink.
    pub(in crate::tcp) fn mtu_probe_is_lost(&mut self, cx: &mut Context) -> bool {
        let una = self.snd.una;
        let Some(search) = self.search_mut() else { return false };
        let Some(probe) = search.probe.take_if(|probe| probe.from == una) else { return false };
        search.high = probe.size - 1;
        cx.counters.mtup_fail += 1;
        true
    }

    /// Retransmits a lost probe of the path MTU, as after a time-out. False: the loss is not the probe's.
    pub(in crate::tcp) fn repairs_lost_probe(&mut self, cx: &mut Context) -> bool {
        let Some(probe) = self.search().and_then(|search| search.probe) else { return false };
        let is_lost = self.mtu_probe_is_lost(cx);
        if is_lost {
            self.lose_probe(cx, probe);
        }
        is_lost
    }

    fn lose_probe(&mut self, cx: &Context, probe: Probe) {
        let (una, nxt) = (self.snd.una, self.snd.nxt);
        let board = self.recovery.make_board(una, self.agreed.sack, || cx.first_reordering(&self.tuple));
        board.lose_range(&mut self.snd.queue, (probe.from, probe.end), nxt);
        let lost = board.take_lost();
        self.segments_lost(lost);
    }

    /// The path has reported that it takes no packets so large, and it is the probe alone that was. True: no more than that is lost.
    pub(crate) fn loses_probe_alone(&mut self, cx: &Context) -> bool {
        let Some(probe) = self.search().and_then(|search| search.probe) else { return false };
        self.forget_mtu_probe();
        self.lose_probe(cx, probe);
        true
    }
}

fn threshold(config: &Config) -> u16 {
    u16::try_from(config.tcp_probe_threshold).unwrap_or(u16::MAX)
}
