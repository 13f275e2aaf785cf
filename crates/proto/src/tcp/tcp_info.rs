//! What Linux's `tcp_info` tells of a connection, under its names.

use super::connection::Connection;
use super::handshake::Handshake;
use super::recovery::Phase;
use super::special::Counts;
use super::timers::Timer;
use crate::{Config, Instant, NotAcknowledged, Outcome, RunningTimer, State, TimerKind};
use core::time::Duration;

/// Segments of one connection, both ways; a merged or a cut one counts as often as it is on the wire.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) segs_in: u32,
    pub(crate) segs_out: u32,
    pub(crate) data_segs_in: u32,
    pub(crate) data_segs_out: u32,
}

impl Tally {
    #[inline]
    pub(crate) fn came(&mut self, payload: usize, gso_size: u16) {
        let segments = segments(payload, gso_size);
        self.segs_in = self.segs_in.wrapping_add(segments);
        self.data_segs_in = self.data_segs_in.wrapping_add(if payload > 0 { segments } else { 0 });
    }

    #[inline]
    pub(crate) fn went(&mut self, payload: usize, segments: u32) {
        self.segs_out = self.segs_out.wrapping_add(segments);
        self.data_segs_out = self.data_segs_out.wrapping_add(if payload > 0 { segments } else { 0 });
    }
}

fn segments(payload: usize, gso_size: u16) -> u32 {
    if gso_size == 0 { 1 } else { payload.div_ceil(usize::from(gso_size)).max(1) as u32 }
}

/// Linux's `tcpi_ca_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaState {
    /// All in order.
    Open,
    /// Something was delivered out of order; nothing is held to be lost.
    Disorder,
    /// Congestion was echoed, and the window shrinks; nothing is held to be lost (Linux's `TCP_CA_CWR`).
    Reducing,
    /// Fast recovery.
    Recovery,
    /// After a time-out.
    Loss,
}

/// What Linux's `tcp_info` tells of Accurate ECN (RFC 9768). Counts wrap at 2³².
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccurateEcnInfo {
    /// Packets received with a mark.
    pub received_ce: u32,
    /// Packets of ours that the peer received with a mark, as far as it has told.
    pub delivered_ce: u32,
    /// Payload bytes received as ECT(1).
    pub received_e1_bytes: u32,
    /// As ECT(0).
    pub received_e0_bytes: u32,
    /// With a mark.
    pub received_ce_bytes: u32,
    /// Payload bytes of ours that the peer received as ECT(1).
    pub delivered_e1_bytes: u32,
    /// As ECT(0).
    pub delivered_e0_bytes: u32,
    /// With a mark.
    pub delivered_ce_bytes: u32,
    /// What the path does not carry: 2, the IP-ECN field; 8, the option.
    pub fail_mode: u16,
    /// Of the peer's options: 0 none was seen, 1 an empty one, 2 one with counters, 3 one that was zeroed, or none for too long.
    pub opt_seen: u16,
}

/// Linux's `tcp_info`: what [`ConnectionInfo`](crate::ConnectionInfo) does not tell already. `docs/counters.md` has every field of
/// Linux 6.18's, where it is here, or why it means nothing. Sizes are in bytes where Linux counts segments, since this engine does.
/// Counts wrap at 2³².
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Where loss recovery is.
    pub ca_state: CaState,
    /// Our SYN is not acknowledged, which counts as a segment in Linux: with data as two.
    pub syn_in_flight: bool,
    /// The congestion window, whole segments: as large as the path and the peer's MSS let them be, whatever its window does.
    pub cwnd_segs: u32,
    /// SYNs have crossed.
    pub crossed: bool,
    /// A segment without data was sent with a Fast Open SYN, and counts as one.
    pub empty_syn_data: bool,
    /// Time-outs in a row without progress, of data.
    pub retransmits: u8,
    /// Probes of a closed window in a row.
    pub probes: u8,
    /// Doublings of the time-out.
    pub backoff: u8,
    /// Our SYN went more than once.
    pub syn_repeated: bool,
    /// The server's side: our SYN's data was not acknowledged, and why (`tcpi_fastopen_client_fail`).
    pub fastopen_client_fail: Option<NotAcknowledged>,
    /// Longest delay of an acknowledgement.
    pub ato: Duration,
    /// Largest segment the peer was seen to send, bytes.
    pub rcv_mss: u16,
    /// The exchange is held to go back and forth: acknowledgements wait for the answer (`TCP_QUICKACK` reads 0).
    pub pingpong: bool,
    /// MSS told to the peer, bytes.
    pub advmss: u16,
    /// Path MTU, bytes.
    pub pmtu: u16,
    /// Sent and not acknowledged, bytes (0 once the connection has ended, as its queue is thrown away); where segments count (`firstbyte.count_segments`), those of whole ones, as all that follows.
    pub unacked: u32,
    /// In flight and delivered out of order, bytes.
    pub sacked: u32,
    /// Held to be lost, bytes.
    pub lost: u32,
    /// Sent again and not yet acknowledged, bytes.
    pub retrans: u32,
    /// When data was last sent; `None`: never.
    pub last_data_sent: Option<Instant>,
    /// When data last came.
    pub last_data_recv: Option<Instant>,
    /// When the peer last acknowledged anything, if only again what it had before; to the millisecond.
    pub last_ack_recv: Option<Instant>,
    /// The window does not grow beyond this for now, bytes; `u32::MAX` = no such bound.
    pub rcv_ssthresh: u32,
    /// The window last told to the peer, bytes, from the number on that was acknowledged with it.
    pub rcv_wnd: u32,
    /// The receiver's estimate of the round trip; `None` while it has none.
    pub rcv_rtt: Option<Duration>,
    /// Most bytes the application took in a round trip; `None` while it is not measured.
    pub rcv_space: Option<u32>,
    /// Segments delivered beyond a hole that make it a loss.
    pub reordering: u32,
    /// The congestion window per round trip, and some more of it: what bursts are made for where nothing paces them, bytes per second.
    pub window_rate: Option<u64>,
    /// Most bytes per second the application allows.
    pub max_pacing_rate: Option<u32>,
    /// Written and not sent, bytes.
    pub notsent_bytes: u32,
    /// Segments sent, and of those with data.
    pub segs_out: u32,
    /// See `segs_out`.
    pub data_segs_out: u32,
    /// Segments received, and of those with data.
    pub segs_in: u32,
    /// See `segs_in`.
    pub data_segs_in: u32,
    /// Payload bytes sent, repetitions included, and of those the repetitions.
    pub bytes_sent: u64,
    /// See `bytes_sent`.
    pub bytes_retrans: u64,
    /// Segments retransmitted.
    pub total_retrans: u32,
    /// Sequence numbers acknowledged beside those of the payload, as Linux counts them: our FIN's, and of an active open the SYN's.
    pub controls_acked: u8,
    /// The peer's FIN is received, which counts as a byte in Linux.
    pub fin_received: bool,
    /// Our FIN was acknowledged that went without text, and so is a segment delivered.
    pub fin_delivered: bool,
    /// It began as the child of a Fast Open (`TCPI_OPT_TFO_CHILD`).
    pub fast_open_child: bool,
    /// Bytes delivered, acknowledged or reported by SACK.
    pub delivered: u32,
    /// Segments that were acknowledged with an echo of congestion (RFC 3168), or that the peer counted as marked (RFC 9768).
    pub delivered_ce: u32,
    /// Something that could have been marked has come (`TCPI_OPT_ECN_SEEN`).
    pub ecn_seen: bool,
    /// The counts of Accurate ECN; zeros where it was not agreed.
    pub accurate_ecn: AccurateEcnInfo,
    /// D-SACKs received.
    pub dsack_dups: u32,
    /// Acknowledgements that told of reordering.
    pub reord_seen: u32,
    /// Segments that came out of order.
    pub rcv_ooopack: u32,
    /// Time-outs of data.
    pub total_rto: u32,
    /// Rows of time-outs.
    pub total_rto_recoveries: u32,
    /// How long the rows lasted that are over.
    pub total_rto_time: Duration,
    /// When a row of them began that is not over: it does not count there yet.
    pub rto_since: Option<Instant>,
}

impl TcpInfo {
    pub(crate) fn of(c: &Connection, config: &Config) -> TcpInfo {
        let counts = c.special.as_ref().map(|special| special.counts).unwrap_or_default();
        let marks = c.special.as_ref().and_then(|special| special.accurate_ecn.as_ref());
        let accurate_ecn = marks.map(|marks| marks.info()).unwrap_or_default();
        let closed = c.probes_window(config);
        let ended = c.state == State::Closed;
        let (sacked, lost, retrans) = c.recovery.sums(c.in_flight(), c.smss().into());
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
            ato: c.rcv.delay.told(config),
            rcv_mss: c.rcv.rcv_mss(),
            pingpong: c.in_pingpong(config),
            advmss: c.advmss,
            pmtu: c.path_mtu,
            unacked: if ended { 0 } else { c.in_flight() + fin.out },
            sacked: sacked + fin.sacked,
            lost: lost + fin.lost,
            retrans: retrans + fin.again,
            last_data_sent: (c.tally.data_segs_out > 0).then(|| c.window_use.last_sent_at()),
            last_data_recv: Some(c.rcv.last_data_at).filter(|at| *at > Instant::ZERO),
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
    if !(out && c.counts_segments() && c.snd.lone_fin_sent()) {
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
    let recovering = c.recovery.is_recovering(c.snd.una);
    let disorder = c.recovery.is_disordered();
    match c.recovery.board().map(|board| board.phase) {
        Some(Phase::Loss) => CaState::Loss,
        None if c.recovery.is_resending(c.snd.una) => CaState::Loss,
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
    pub(super) fn numbers_acked(&self) -> u64 {
        self.bytes_acked + u64::from(self.controls_acked())
    }

    /// The send queue is about to be thrown away.
    pub(super) fn note_bytes_in_vain(&mut self) {
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
    pub(super) fn sent_empty_syn_data(&self) -> bool {
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
    pub(super) fn timeouts_over(&mut self, now: Instant) {
        self.timeouts = 0;
        self.note_end_of_loss(now);
    }

    pub(super) fn note_end_of_loss(&mut self, now: Instant) {
        if self.special.as_ref().is_some_and(|special| special.counts.rto_since.is_some())
            && ca_state(self) != CaState::Loss
        {
            self.counts(now).recovered(now);
        }
    }
}
