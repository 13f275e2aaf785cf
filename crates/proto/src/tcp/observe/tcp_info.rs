//! Values of Linux's `tcp_info`, under its names.

mod connection;

pub(crate) use connection::{ca_state, reported_ca_state};

use crate::{Instant, NotAcknowledged};
use core::time::Duration;

/// Segments of one connection, both ways; a merged or a cut one counts as often as it is on the wire.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(in crate::tcp) segs_in: u32,
    pub(in crate::tcp) segs_out: u32,
    pub(in crate::tcp) data_segs_in: u32,
    pub(in crate::tcp) data_segs_out: u32,
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
    /// No loss or reordering.
    Open,
    /// Data was delivered out of order; nothing is marked lost.
    Disorder,
    /// Congestion was echoed, and the window shrinks; nothing is marked lost (Linux's
    /// `TCP_CA_CWR`).
    Reducing,
    /// Fast recovery.
    Recovery,
    /// After a time-out.
    Loss,
}

/// Values of Accurate ECN in Linux's `tcp_info` (RFC 9768). Counts wrap at 2³².
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccurateEcnInfo {
    /// Packets received with a mark.
    pub received_ce: u32,
    /// Packets that the peer received with a mark, as far as reported.
    pub delivered_ce: u32,
    /// Payload bytes received as ECT(1).
    pub received_e1_bytes: u32,
    /// Payload bytes received as ECT(0).
    pub received_e0_bytes: u32,
    /// Payload bytes received with a mark.
    pub received_ce_bytes: u32,
    /// Payload bytes that the peer received as ECT(1).
    pub delivered_e1_bytes: u32,
    /// Payload bytes that the peer received as ECT(0).
    pub delivered_e0_bytes: u32,
    /// Payload bytes that the peer received with a mark.
    pub delivered_ce_bytes: u32,
    /// Failures of the path: 2, the IP-ECN field; 8, the option.
    pub fail_mode: u16,
    /// The peer's option: 0 never seen, 1 empty, 2 with counters, 3 zeroed or absent for too long.
    pub opt_seen: u16,
}

/// Values of Linux's `tcp_info` that [`ConnectionInfo`](crate::ConnectionInfo) does not have.
/// `docs/counters.md` lists every field of Linux 6.18 and its place here. Sizes are in bytes where
/// Linux counts segments. Counts wrap at 2³².
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TcpInfo {
    /// State of loss recovery.
    pub ca_state: CaState,
    /// True if the SYN is unacknowledged. Linux counts it as a segment; with data, as two.
    pub syn_in_flight: bool,
    /// Congestion window in whole segments of the maximum size for the path and the peer's MSS,
    /// whatever the peer's window is.
    pub cwnd_segs: u32,
    /// True if SYNs have crossed.
    pub crossed: bool,
    /// True if a segment without data was sent with a Fast Open SYN; it counts as one.
    pub empty_syn_data: bool,
    /// Consecutive timeouts of data without progress.
    pub retransmits: u8,
    /// Consecutive zero-window probes.
    pub probes: u8,
    /// Doublings of the timeout.
    pub backoff: u8,
    /// True if the SYN was retransmitted.
    pub syn_repeated: bool,
    /// The reason why the SYN's data was not acknowledged (`tcpi_fastopen_client_fail`).
    pub fastopen_client_fail: Option<NotAcknowledged>,
    /// Maximum delay of an acknowledgment.
    pub ato: Duration,
    /// Largest segment received from the peer, bytes.
    pub rcv_mss: u16,
    /// True if the exchange is considered interactive: acknowledgments wait for the answer
    /// (`TCP_QUICKACK` reads 0).
    pub pingpong: bool,
    /// MSS advertised to the peer, bytes.
    pub advmss: u16,
    /// Path MTU, bytes.
    pub pmtu: u16,
    /// Sent and unacknowledged bytes (0 once the connection has ended, because its queue is
    /// dropped). Where segments count (`firstbyte.window_unit`), whole segments, here and below.
    pub unacked: u32,
    /// In flight and delivered out of order, bytes.
    pub sacked: u32,
    /// Marked lost, bytes.
    pub lost: u32,
    /// Retransmitted and not yet acknowledged, bytes.
    pub retrans: u32,
    /// Time of the last sent data; `None` if never.
    pub last_data_sent: Option<Instant>,
    /// Time of the last received data.
    pub last_data_recv: Option<Instant>,
    /// Time of the last acknowledgment, new or repeated, in milliseconds.
    pub last_ack_recv: Option<Instant>,
    /// Current limit of the window's growth, bytes; `u32::MAX` for none.
    pub rcv_ssthresh: u32,
    /// Window last advertised to the peer, bytes, from the sequence number acknowledged with it.
    pub rcv_wnd: u32,
    /// Round trip estimated by the receiver; `None` if unknown.
    pub rcv_rtt: Option<Duration>,
    /// Maximum bytes read by the application in a round trip; `None` while unmeasured.
    pub rcv_space: Option<u32>,
    /// Segments delivered beyond a hole before it is marked lost.
    pub reordering: u32,
    /// Congestion window per round trip with some margin, bytes per second: the size of bursts
    /// without pacing.
    pub window_rate: Option<u64>,
    /// Maximum bytes per second allowed by the application.
    pub max_pacing_rate: Option<u32>,
    /// Written and not sent, bytes.
    pub notsent_bytes: u32,
    /// Segments sent.
    pub segs_out: u32,
    /// Segments with data sent.
    pub data_segs_out: u32,
    /// Segments received.
    pub segs_in: u32,
    /// Segments with data received.
    pub data_segs_in: u32,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Payload bytes retransmitted.
    pub bytes_retrans: u64,
    /// Segments retransmitted.
    pub total_retrans: u32,
    /// Acknowledged sequence numbers of controls, as Linux counts them: the FIN, and the SYN of an
    /// active open.
    pub controls_acked: u8,
    /// True if the peer's FIN was received; Linux counts it as a byte.
    pub fin_received: bool,
    /// True if a FIN without data was acknowledged, which counts as a delivered segment.
    pub fin_delivered: bool,
    /// True if it began as a Fast Open child (`TCPI_OPT_TFO_CHILD`).
    pub fast_open_child: bool,
    /// Bytes delivered, acknowledged or reported by SACK.
    pub delivered: u32,
    /// Segments acknowledged with an echo of congestion (RFC 3168), or counted as marked by the
    /// peer (RFC 9768).
    pub delivered_ce: u32,
    /// True if a packet that could have been marked has arrived (`TCPI_OPT_ECN_SEEN`).
    pub ecn_seen: bool,
    /// Counts of Accurate ECN; zeros if it was not negotiated.
    pub accurate_ecn: AccurateEcnInfo,
    /// D-SACKs received.
    pub dsack_dups: u32,
    /// Acknowledgments that showed reordering.
    pub reord_seen: u32,
    /// Segments received out of order.
    pub rcv_ooopack: u32,
    /// Timeouts of data.
    pub total_rto: u32,
    /// Sequences of timeouts.
    pub total_rto_recoveries: u32,
    /// Duration of finished sequences of timeouts.
    pub total_rto_time: Duration,
    /// Start of the current sequence of timeouts, which is not counted yet.
    pub rto_since: Option<Instant>,
}
