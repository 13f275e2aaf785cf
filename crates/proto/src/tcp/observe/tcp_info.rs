//! What Linux's `tcp_info` tells of a connection, under its names.

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
#[non_exhaustive]
pub struct AccurateEcnInfo {
    /// Packets received with a mark.
    pub received_ce: u32,
    /// Packets of ours that the peer received with a mark, as far as it has reported.
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
#[non_exhaustive]
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
    /// MSS announced to the peer, bytes.
    pub advmss: u16,
    /// Path MTU, bytes.
    pub pmtu: u16,
    /// Sent and not acknowledged, bytes (0 once the connection has ended, as its queue is thrown away); where segments count (`firstbyte.window_unit`), those of whole ones, as all that follows.
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
    /// The window last advertised to the peer, bytes, from the number on that was acknowledged with it.
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
    /// Acknowledgements that showed reordering.
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
