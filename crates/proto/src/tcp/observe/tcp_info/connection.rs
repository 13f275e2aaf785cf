//! `tcp_info` of a connection.

use super::{CaState, TcpInfo};
use crate::tcp::connection::Connection;
use crate::tcp::open::handshake::Handshake;
use crate::tcp::rare::special::Counts;
use crate::tcp::recovery::Phase;
use crate::tcp::timers::Timer;
use crate::{Config, Instant, Outcome, RunningTimer, State, TimerKind};
use core::time::Duration;

impl TcpInfo {
    pub(crate) fn of(c: &Connection, config: &Config) -> TcpInfo {
        let counts = c.special.as_ref().map(|special| special.counts).unwrap_or_default();
        let marks = c.special.as_ref().and_then(|special| special.accurate_ecn.as_ref());
        let accurate_ecn = marks.map(|marks| marks.info()).unwrap_or_default();
        let closed = c.probes_window(config);
        let ended = c.state == State::Closed;
        let (sacked, lost, retrans) = c.recovery.sums();
        let fin = if ended { LoneFin::default() } else { lone_fin(c, config) };
        let (rcv_rtt, rcv_space) = c.rcv.measured();
        TcpInfo {
            ca_state: reported_ca_state(c),
            cwnd_segs: (c.reported_cwnd() / u32::from(c.whole_segment().max(1))).max(1),
            syn_in_flight: syn_in_flight(c),
            crossed: counts.crossed,
            syn_repeated: counts.syn_repeated,
            empty_syn_data: counts.empty_syn_data,
            retransmits: if closed { 0 } else { c.timeouts },
            probes: if closed { c.timeouts } else { c.probes_for_room() },
            backoff: if ended { 0 } else { c.doublings(config) },
            fastopen_client_fail: match c.outcome {
                Outcome::NotAcknowledged(why) => Some(why),
                _ => None,
            },
            ato: c.rcv.expected_ack_delay(config),
            rcv_mss: c.rcv.rcv_mss(),
            pingpong: c.rcv.in_pingpong(config),
            advmss: c.advmss,
            pmtu: c.path_mtu,
            unacked: if ended { 0 } else { c.snd.in_flight() + fin.out },
            sacked: sacked + fin.sacked,
            lost: lost + fin.lost,
            retrans: retrans + fin.again,
            last_data_sent: (c.tally.data_segs_out > 0).then(|| c.window_use.last_sent_at()),
            last_data_recv: Some(c.rcv.last_data_at()).filter(|at| *at > Instant::ZERO),
            last_ack_recv: c.heard_at(),
            rcv_ssthresh: c.rcv.space.ssthresh(),
            rcv_wnd: c.rcv.advertised(),
            rcv_rtt,
            rcv_space,
            reordering: c.recovery.reordering().unwrap_or(config.tcp_reordering),
            window_rate: c.window_rate(config),
            max_pacing_rate: c.options.max_pacing_rate,
            notsent_bytes: notsent(c),
            segs_out: c.tally.segs_out,
            data_segs_out: c.tally.data_segs_out,
            segs_in: c.tally.segs_in,
            data_segs_in: c.tally.data_segs_in,
            bytes_sent: (c.bytes_acked + u64::from(sent_unacked(c) + counts.bytes_in_vain))
                .max(c.syn_data_len.into())
                + counts.bytes_retrans,
            bytes_retrans: counts.bytes_retrans,
            total_retrans: counts.total_retrans,
            controls_acked: c.controls_acked(),
            fin_received: c.rcv.fin_received,
            fin_delivered: c.snd.lone_fin_acked() || fin.sacked > 0,
            fast_open_child: c.fast_opened && c.outcome == Outcome::Pending,
            delivered: c.snd.queue.delivery.delivered(),
            delivered_ce: counts.delivered_ce.wrapping_add(accurate_ecn.delivered_ce),
            ecn_seen: c.ecn.ect_seen(),
            accurate_ecn,
            dsack_dups: counts.dsack_dups,
            reord_seen: counts.reord_seen,
            rcv_ooopack: counts.rcv_ooopack,
            total_rto: counts.total_rto,
            total_rto_recoveries: counts.total_rto_recoveries,
            total_rto_time: Duration::from_millis(counts.total_rto_ms.into()),
            rto_since: counts.rto_since,
        }
    }
}

/// A FIN that went alone is a segment, of which neither what segments weigh tells nor the scoreboard's sums: what of it is outstanding, held by
/// the peer, lost, and retransmitted, bytes.
#[derive(Default)]
struct LoneFin {
    out: u32,
    sacked: u32,
    lost: u32,
    again: u32,
}

fn lone_fin(c: &Connection, config: &Config) -> LoneFin {
    let end = c.snd.queue.end();
    let out = c.snd.fin_queued() && c.snd.max.after(end) && !c.snd.una.after(end);
    if !(out && c.snd.counts_segments() && c.snd.fin_alone()) {
        return LoneFin::default();
    }
    let segment = u32::from(c.smss());
    let counted = c.snd.queue.is_empty() && c.snd.fin_sent();
    let timed_out = match c.resends_into_closed_window(config) {
        true => ca_state(c) == CaState::Loss,
        false => c.timeouts > 0 && c.snd.wnd > 0,
    };
    let board = c.recovery.board();
    let lost = timed_out || board.is_some_and(|board| board.fin_is_lost());
    let of = |applies: bool| if applies { segment } else { 0 };
    LoneFin {
        out: of(!counted),
        sacked: of(board.is_some_and(|board| board.has_fin())),
        lost: of(lost),
        again: of(lost && c.snd.fin_sent()),
    }
}

/// Neither a passive open nor a Fast Open child has one: they send a SYN-ACK.
fn syn_in_flight(c: &Connection) -> bool {
    match c.handshake.as_deref() {
        Some(Handshake::Active(active)) => active.transmissions > 0,
        Some(Handshake::Passive(passive)) => passive.crossed.is_some(),
        None => false,
    }
}

/// After time-outs of the SYN Linux's state lasts until what was out then is acknowledged, and without SACK a little more.
fn syn_was_lost(c: &Connection) -> bool {
    let never_answered = c.state == State::Closed && !c.is_established();
    let active = syn_in_flight(c) || never_answered;
    let timed_out = c.special.as_ref().is_some_and(|special| special.counts.total_rto > 0);
    let una_still =
        c.is_established() && c.snd.una == c.snd.iss + 1 + u32::from(c.syn_data_len) && !c.agreed.sack;
    timed_out && (active || una_still && c.outcome != Outcome::Pending)
}

/// With what became of our SYN.
pub(crate) fn reported_ca_state(c: &Connection) -> CaState {
    if syn_was_lost(c) { CaState::Loss } else { ca_state(c) }
}

pub(crate) fn ca_state(c: &Connection) -> CaState {
    let recovering = c.recovery.is_recovering();
    let disorder = c.recovery.is_disordered();
    match c.recovery.board().map(|board| board.phase) {
        Some(Phase::Loss) => CaState::Loss,
        _ if recovering => CaState::Recovery,
        _ if c.recovery.is_reducing() => CaState::Reducing,
        _ if disorder => CaState::Disorder,
        _ => CaState::Open,
    }
}

/// Written and never sent; a FIN that waits behind it counts as a byte, as in Linux.
fn notsent(c: &Connection) -> u32 {
    if c.state == State::Closed && !c.is_established() {
        return 0;
    }
    let end = c.snd.queue.end() + u32::from(c.snd.fin_queued() && c.is_open());
    if end.after(c.snd.max) { end.since(c.snd.max.latest(c.snd.iss + 1)) } else { 0 }
}

/// Payload bytes sent at least once and not acknowledged.
fn sent_unacked(c: &Connection) -> u32 {
    let sent = c.snd.max.earliest(c.snd.queue.end());
    let first = c.snd.queue.end() - c.snd.queue.len() as u32;
    if sent.after(first) { sent.since(first) } else { 0 }
}

impl Connection {
    /// How often the time-out that runs was doubled.
    fn doublings(&self, config: &Config) -> u8 {
        self.handshake_doublings(config).map_or(self.rtt.backoff(), |doublings| doublings as u8)
    }

    /// The time-out that runs; not how long it is to the next probe of a closed window (as in Linux).
    pub(crate) fn reported_rto(&self, config: &Config) -> Duration {
        if self.probes_window(config) { self.rtt.base_rto() } else { self.rtt.rto() }
    }

    /// The peer's window is closed, and its probes are what the back-off is of.
    fn probes_window(&self, config: &Config) -> bool {
        self.snd.wnd == 0 && self.is_established() && !self.resends_into_closed_window(config)
    }

    /// The timer that Linux would show (`inet_csk_diag_fill`): that of what was sent comes first.
    pub(crate) fn running_timer(&self, config: &Config) -> Option<RunningTimer> {
        let (kind, timer, expirations) = if self.timers.is_set(Timer::Retransmit) {
            let probes = self.probes_window(config) || self.is_established() && self.snd.flight_size() == 0;
            let kind = if probes { TimerKind::Persist } else { TimerKind::Retransmission };
            (kind, Timer::Retransmit, self.timeouts)
        } else {
            let unanswered = self.special.as_ref().map_or(0, |special| special.unanswered);
            (TimerKind::Keepalive, Timer::Life, u8::try_from(unanswered).unwrap_or(u8::MAX))
        };
        let set = self.timers.is_set(timer);
        set.then(|| RunningTimer { kind, expires_at: self.timers.deadline(timer), expirations })
    }

    /// See [`TcpInfo::controls_acked`].
    fn controls_acked(&self) -> u8 {
        let fin = self.snd.fin_seq().is_some_and(|fin| self.snd.una.after(fin));
        let syn = self.is_established() && self.outcome != Outcome::Pending;
        u8::from(fin) + u8::from(syn)
    }

    /// Sequence numbers acknowledged, but for the SYN of a passive open.
    pub(in crate::tcp) fn numbers_acked(&self) -> u64 {
        self.bytes_acked + u64::from(self.controls_acked())
    }

    /// The send queue is about to be thrown away.
    pub(in crate::tcp) fn note_bytes_in_vain(&mut self) {
        let bytes = sent_unacked(self);
        if bytes > 0 {
            self.counts(Instant::ZERO).bytes_in_vain = bytes;
        }
        let fin = self.snd.fin_seq().is_some_and(|fin| !self.snd.una.after(fin));
        let left = self.snd.queue.len() as u32 + u32::from(fin);
        if left > 0 && self.is_established() {
            self.counts(Instant::ZERO).left = left;
        }
    }

    /// What an established connection that has ended did not deliver, bytes and FIN.
    pub(crate) fn left_behind(&self) -> u32 {
        self.special.as_ref().map_or(0, |special| special.counts.left)
    }

    /// See [`TcpInfo::empty_syn_data`].
    pub(in crate::tcp) fn sent_empty_syn_data(&self) -> bool {
        self.special.as_ref().is_some_and(|special| special.counts.empty_syn_data)
    }

    /// Segments retransmitted.
    pub(crate) fn total_retrans(&self) -> u32 {
        self.special.as_ref().map_or(0, |special| special.counts.total_retrans)
    }

    /// Counts of what few connections meet.
    pub(crate) fn counts(&mut self, now: Instant) -> &mut Counts {
        Counts::of(&mut self.special, now)
    }

    /// Progress was made: the row of time-outs is over. It counts until what was sent before it is acknowledged (as in Linux).
    #[cold]
    pub(in crate::tcp) fn timeouts_over(&mut self, now: Instant) {
        self.timeouts = 0;
        self.note_end_of_loss(now);
    }

    pub(in crate::tcp) fn note_end_of_loss(&mut self, now: Instant) {
        if self.special.as_ref().is_some_and(|special| special.counts.rto_since.is_some())
            && ca_state(self) != CaState::Loss
        {
            self.counts(now).recovered(now);
        }
    }
}
