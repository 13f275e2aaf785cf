//! Snapshots of connections, listeners and tables; `listener` has those of listeners, `ss` a connection in one line, `timer` the timer that runs.

mod listener;
mod ss;
mod timer;

use alloc::boxed::Box;
pub use listener::{ListenerDrops, ListenerInfo, SynCookieCounts};
pub use timer::{RunningTimer, TimerKind};

use crate::*;
use core::net::SocketAddr;
use core::time::Duration;

/// States of RFC 9293 §3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the RFC's own names")]
pub enum State {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// State.
    pub state: State,
    /// Local end.
    pub local: SocketAddr,
    /// Peer.
    pub peer: SocketAddr,
    /// Fast Open (active opens).
    pub outcome: Outcome,
    /// Bytes of ours the SYN carried.
    pub syn_data_len: usize,
    /// Of those, bytes the SYN-ACK acknowledged.
    pub syn_data_acked: usize,
    /// Bytes received in the SYN.
    pub early_data: EarlyData,
    /// Bytes of our answer that rode on the SYN-ACK.
    pub synack_data_len: usize,
    /// Smoothed RTT (RFC 6298); `None` before the first sample.
    pub srtt: Option<Duration>,
    /// RTT variation.
    pub rttvar: Duration,
    /// Retransmission time-out now.
    pub rto: Duration,
    /// Lowest RTT seen.
    pub min_rtt: Option<Duration>,
    /// Which algorithm sets it.
    pub congestion: CongestionControl,
    /// Congestion window, bytes; while it shrinks after a loss, what it is just now.
    pub cwnd: u32,
    /// Slow-start threshold, bytes.
    pub ssthresh: u32,
    /// Bytes per second at which data leaves; `None`: not paced.
    pub pacing_rate: Option<u64>,
    /// Bytes per second the path has lately delivered.
    pub delivery_rate: Option<u64>,
    /// The application, not the path, may have limited `delivery_rate`.
    pub delivery_rate_app_limited: bool,
    /// What limits the sender, and for how long it was limited by what.
    pub limits: SenderLimits,
    /// Bytes in flight.
    pub flight_size: u32,
    /// Effective send MSS, bytes (options taken off).
    pub snd_mss: u16,
    /// Peer's window, bytes.
    pub snd_wnd: u32,
    /// Our window, bytes.
    pub rcv_wnd: u32,
    /// Negotiated send window shift.
    pub snd_wscale: u8,
    /// Negotiated receive window shift.
    pub rcv_wscale: u8,
    /// Size of the receive buffer in memory, bytes (`skmem`'s rb).
    pub recv_buffer: u32,
    /// Size of the send buffer, bytes (`skmem`'s tb).
    pub send_buffer: u32,
    /// What it counts now, bytes: payload, and what segments take beside it (`skmem`'s w).
    pub send_buffer_used: u64,
    /// So much of the send buffer is free, and so little waits to be sent, that a writer who found no room would be woken.
    pub writable: bool,
    /// Memory that both buffers hold, bytes.
    pub memory: u32,
    /// Windows are scaled (RFC 7323): both SYNs had the option when they arrived. Without, no window is larger than 65535 bytes.
    pub window_scaling: bool,
    /// Timestamps in use.
    pub timestamps: bool,
    /// SACK permitted by both.
    pub sack: bool,
    /// ECN agreed by both, of either kind.
    pub ecn: bool,
    /// Bytes written, not yet acknowledged.
    pub send_queue: usize,
    /// Bytes received, not yet read.
    pub recv_queue: usize,
    /// Its application has let go of it, and it ends by itself.
    pub orphan: bool,
    /// The timer that runs, if one does.
    pub timer: Option<RunningTimer>,
    /// Segments retransmitted in all.
    pub total_retrans: u32,
    /// Payload bytes acknowledged.
    pub bytes_acked: u64,
    /// Payload bytes received in order.
    pub bytes_received: u64,
    /// What the algorithm of congestion control has measured itself.
    pub congestion_info: CongestionInfo,
    /// What else Linux's `tcp_info` tells.
    pub tcp_info: TcpInfo,
    /// When the SYN was first sent or received, and when the handshake completed.
    pub opened_at: Instant,
    /// See `opened_at`.
    pub established_at: Option<Instant>,
}

impl ConnectionInfo {
    /// Bytes per second that the windows let through, the smaller of both per round trip: what the connection reaches as long as neither
    /// grows. `None` before a round trip was measured.
    pub fn window_rate(&self) -> Option<u64> {
        let window = u128::from(self.cwnd.min(self.snd_wnd));
        let per_second = window * 1_000_000_000 / self.srtt?.as_nanos().max(1);
        Some(u64::try_from(per_second).unwrap_or(u64::MAX))
    }
}

/// What some algorithms of congestion control measure for themselves (Linux's `TCP_CC_INFO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionInfo {
    /// Of an algorithm that does not.
    Nothing,
    /// Vegas: Linux's `tcpvegas_info`.
    Vegas {
        /** it compares round trips: no loss is being repaired */
        enabled: bool,
        /** round trips measured since the last judgement */
        samples: u8,
        /** the shortest ever; `None`: none yet */
        base_rtt: Option<Duration>,
        /** the shortest since the last judgement; `None`: none yet */
        min_rtt: Option<Duration>,
    },
    /// BBR: Linux's `tcp_bbr_info`.
    Bbr {
        /** what the path is held to deliver, bytes per second */
        bandwidth: u64,
        /** the shortest round trip of the last ten seconds; `None`: none yet */
        min_rtt: Option<Duration>,
        /** percent of `bandwidth` at which data leaves */
        pacing_gain: u32,
        /** percent of `bandwidth` times `min_rtt` that may be in flight */
        cwnd_gain: u32,
    },
}

/// How much a stack holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSizes {
    /** full connections */
    pub connections: usize,
    /** half-open requests */
    pub requests: usize,
    /** TIME-WAIT entries */
    pub time_wait: usize,
}

/// Connections by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateCounts {
    /// Listeners.
    pub listening: usize,
    by_state: [usize; STATES],
}

const STATES: usize = State::Closed as usize + 1;
impl State {
    /// As `ss` writes it.
    pub fn ss(self) -> &'static str {
        match self {
            State::SynSent => "SYN-SENT",
            State::SynReceived => "SYN-RECV",
            State::Established => "ESTAB",
            State::FinWait1 => "FIN-WAIT-1",
            State::FinWait2 => "FIN-WAIT-2",
            State::CloseWait => "CLOSE-WAIT",
            State::Closing => "CLOSING",
            State::LastAck => "LAST-ACK",
            State::TimeWait => "TIME-WAIT",
            State::Closed => "UNCONN",
        }
    }

    /// Every state, in the order of a connection's life.
    pub const ALL: [State; STATES] = [
        State::SynSent,
        State::SynReceived,
        State::Established,
        State::FinWait1,
        State::FinWait2,
        State::CloseWait,
        State::Closing,
        State::LastAck,
        State::TimeWait,
        State::Closed,
    ];
}

impl StateCounts {
    /// Connections in one state.
    pub fn of(&self, state: State) -> usize {
        self.by_state[state as usize]
    }
    /// Connections in all states but CLOSED.
    pub fn total(&self) -> usize {
        self.by_state.iter().sum()
    }
    pub(crate) fn add(&mut self, state: State, more: usize) {
        self.by_state[state as usize] += more;
    }
}

/// One line of `ss`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketInfo {
    /// LISTEN.
    Listener(ListenerInfo),
    /// A connection.
    Connection(Box<ConnectionInfo>),
    /// What has only its numbers: a half-open request, TIME-WAIT, and FIN-WAIT-2 when nobody holds it.
    Numbers {
        /** SYN-RECEIVED, FIN-WAIT-2 or TIME-WAIT */
        state: State,
        /** local end */
        local: SocketAddr,
        /** peer */
        peer: SocketAddr,
        /** the timer that runs */
        timer: Option<RunningTimer>,
    },
}

/// How full a connection's buffers are, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queues {
    /// Its state, which whoever asks for these needs too.
    pub state: State,
    /// Received in order and not read.
    pub received: usize,
    /// What the receive buffer may hold.
    pub recv_buffer: u32,
    /// Memory that what was received takes, and what is set aside for more, bytes (Linux's `sk_rmem_alloc`, `sk_forward_alloc`).
    pub recv_memory: u32,
    /// See `recv_memory`.
    pub recv_set_aside: u32,
    /// Written and not acknowledged.
    pub unacknowledged: usize,
    /// That and the FIN, of an established connection that has ended since (0 until then).
    pub left_behind: usize,
    /// Written and never sent.
    pub unsent: u32,
    /// What the send buffer may hold.
    pub send_buffer: u32,
    /// See [`ConnectionInfo::send_buffer_used`].
    pub send_buffer_used: u64,
    /// See [`ConnectionInfo::writable`].
    pub writable: bool,
}

/// An ICMP error as it came, for sockets that tell their applications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IcmpReport {
    /// Type and code; which version's, the address tells.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// Bytes 4 to 8 of the message.
    pub info: u32,
    /// Who sent it.
    pub from: core::net::IpAddr,
    /// The TCP header it quotes, and what follows.
    pub quote: bytes::Bytes,
}
