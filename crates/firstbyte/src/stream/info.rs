//! A snapshot of a connection that both backends can take.
use proto::{ConnectionInfo, State};
use std::net::SocketAddr;
use std::time::Duration;

/// A snapshot of a connection, the same on our stack and on the kernel's sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamInfo {
    /// The state of RFC 9293 §3.3.2.
    pub state: State,
    /// The local end.
    pub local: SocketAddr,
    /// The peer's end.
    pub peer: SocketAddr,
    /// The smoothed round-trip time (RFC 6298). `None` before the first sample.
    pub srtt: Option<Duration>,
    /// The variation of the round-trip time.
    pub rttvar: Duration,
    /// The lowest round-trip time of the recent minutes. `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// The retransmission time-out.
    pub rto: Duration,
    /// The payload of a full segment, bytes.
    pub snd_mss: u32,
    /// The congestion window, bytes.
    pub cwnd: u32,
    /// The peer's receive window, bytes. Zero on a kernel before 5.19, which does not report it.
    pub snd_wnd: u32,
    /// Bytes written and not yet sent.
    pub notsent_bytes: u32,
    /// Segments sent and not yet acknowledged.
    pub unacked_segs: u32,
    /// Segments retransmitted since the connection began.
    pub total_retrans_segs: u32,
    /// Payload bytes sent, with those retransmitted.
    pub bytes_sent: u64,
    /// Payload bytes retransmitted.
    pub bytes_retrans: u64,
    /// Bytes that the peer has acknowledged. The kernel also counts a SYN and a FIN.
    pub bytes_acked: u64,
    /// Bytes per second that the path has lately delivered. `None` before a measurement.
    pub delivery_rate: Option<u64>,
}

impl From<&ConnectionInfo> for StreamInfo {
    fn from(info: &ConnectionInfo) -> StreamInfo {
        StreamInfo {
            state: info.state,
            local: info.local,
            peer: info.peer,
            srtt: info.srtt,
            rttvar: info.rttvar,
            min_rtt: info.min_rtt,
            rto: info.rto,
            snd_mss: info.snd_mss.into(),
            cwnd: info.cwnd,
            snd_wnd: info.snd_wnd,
            notsent_bytes: info.tcp_info.notsent_bytes,
            unacked_segs: info.tcp_info.unacked,
            total_retrans_segs: info.total_retrans,
            bytes_sent: info.tcp_info.bytes_sent,
            bytes_retrans: info.tcp_info.bytes_retrans,
            bytes_acked: info.bytes_acked,
            delivery_rate: info.delivery_rate,
        }
    }
}
