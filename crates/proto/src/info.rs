//! Snapshots of connections, listeners and tables. `listener` has listeners, `ss` a connection in
//! one line, `timer` the running timer.

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

/// A snapshot of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// State.
    pub state: State,
    /// Local address.
    pub local: SocketAddr,
    /// Peer's address.
    pub peer: SocketAddr,
    /// Outcome of Fast Open (active opens).
    pub outcome: Outcome,
    /// Bytes of data sent on the SYN.
    pub syn_data_len: usize,
    /// Bytes of them acknowledged by the SYN-ACK.
    pub syn_data_acked: usize,
    /// Range of data received in the SYN.
    pub early_data: EarlyData,
    /// Bytes of the answer sent on the SYN-ACK.
    pub synack_data_len: usize,
    /// Smoothed RTT (RFC 6298); `None` before the first sample.
    pub srtt: Option<Duration>,
    /// RTT variation.
    pub rttvar: Duration,
    /// Current retransmission timeout.
    pub rto: Duration,
    /// Lowest RTT seen.
    pub min_rtt: Option<Duration>,
    /// Congestion control algorithm.
    pub congestion: CongestionControl,
    /// Congestion window, bytes; during a reduction, the current value.
    pub cwnd: u32,
    /// Slow-start threshold, bytes.
    pub ssthresh: u32,
    /// Bytes per second of pacing; `None` if not paced.
    pub pacing_rate: Option<u64>,
    /// Bytes per second that the path delivered recently.
    pub delivery_rate: Option<u64>,
    /// True if the application may have limited `delivery_rate`.
    pub delivery_rate_app_limited: bool,
    /// Current limit of the sender, and the times of all limits.
    pub limits: SenderLimits,
    /// Bytes in flight.
    pub flight_size: u32,
    /// Effective send MSS, bytes (without options).
    pub snd_mss: u16,
    /// Peer's window, bytes.
    pub snd_wnd: u32,
    /// Receive window, bytes.
    pub rcv_wnd: u32,
    /// Negotiated send window shift.
    pub snd_wscale: u8,
    /// Negotiated receive window shift.
    pub rcv_wscale: u8,
    /// Size of the receive buffer in memory, bytes (`skmem`'s rb).
    pub recv_buffer: u32,
    /// Size of the send buffer, bytes (`skmem`'s tb).
    pub send_buffer: u32,
    /// Used part of the send buffer, bytes: payload and overhead of segments (`skmem`'s w).
    pub send_buffer_used: u64,
    /// True if a blocked writer would be woken: enough of the send buffer is free, and little is
    /// unsent.
    pub writable: bool,
    /// Memory of both buffers, bytes.
    pub memory: u32,
    /// True if windows are scaled (RFC 7323): both SYNs had the option. Otherwise a window has at
    /// most 65535 bytes.
    pub window_scaling: bool,
    /// Timestamps in use.
    pub timestamps: bool,
    /// SACK permitted by both.
    pub sack: bool,
    /// True if ECN of either kind was negotiated.
    pub ecn: bool,
    /// Bytes written, not yet acknowledged.
    pub send_queue: usize,
    /// Bytes received, not yet read.
    pub recv_queue: usize,
    /// True if the application has closed it and it ends by itself.
    pub orphan: bool,
    /// The running timer, if any.
    pub timer: Option<RunningTimer>,
    /// Segments retransmitted in total.
    pub total_retrans: u32,
    /// Payload bytes acknowledged.
    pub bytes_acked: u64,
    /// Payload bytes received in order.
    pub bytes_received: u64,
    /// Measurements of the congestion control algorithm.
    pub congestion_info: CongestionInfo,
    /// Further values of Linux's `tcp_info`.
    pub tcp_info: TcpInfo,
    /// Time of the first SYN.
    pub opened_at: Instant,
    /// Time at which the handshake completed.
    pub established_at: Option<Instant>,
}

impl ConnectionInfo {
    /// Returns the rate that the windows allow in bytes per second: the smaller window per round
    /// trip. `None` before a round trip was measured.
    pub fn window_rate(&self) -> Option<u64> {
        let window = u128::from(self.cwnd.min(self.snd_wnd));
        let per_second = window * 1_000_000_000 / self.srtt?.as_nanos().max(1);
        Some(u64::try_from(per_second).unwrap_or(u64::MAX))
    }
}

/// Measurements of some congestion control algorithms (Linux's `TCP_CC_INFO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionInfo {
    /// The algorithm has none.
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

/// Sizes of a stack's tables.
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
    /// Returns the spelling of `ss`.
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
    /// Returns the number of connections in a state.
    pub fn of(&self, state: State) -> usize {
        self.by_state[state as usize]
    }
    /// Returns the number of connections in all states except CLOSED.
    pub fn total(&self) -> usize {
        self.by_state.iter().sum()
    }
    pub(crate) fn add(&mut self, state: State, more: usize) {
        self.by_state[state as usize] += more;
    }
}

/// A socket in a list, as `ss` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketInfo {
    /// LISTEN.
    Listener(ListenerInfo),
    /// A connection.
    Connection(Box<ConnectionInfo>),
    /// A socket without a connection: a half-open request, TIME-WAIT, or an orphan in FIN-WAIT-2.
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

/// Fill levels of a connection's buffers, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queues {
    /// State of the connection.
    pub state: State,
    /// Received in order and not read.
    pub received: usize,
    /// Size of the receive buffer.
    pub recv_buffer: u32,
    /// Memory of received data, bytes (Linux's `sk_rmem_alloc`).
    pub recv_memory: u32,
    /// Memory reserved for more, bytes (`sk_forward_alloc`).
    pub recv_set_aside: u32,
    /// Written and not acknowledged.
    pub unacknowledged: usize,
    /// `unacknowledged` and the FIN of an established connection that has ended since (0 until
    /// then).
    pub left_behind: usize,
    /// Written and never sent.
    pub unsent: u32,
    /// Size of the send buffer.
    pub send_buffer: u32,
    /// See [`ConnectionInfo::send_buffer_used`].
    pub send_buffer_used: u64,
    /// See [`ConnectionInfo::writable`].
    pub writable: bool,
}

/// A received ICMP error, for sockets that report them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IcmpReport {
    /// Type; the address shows the IP version.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// Bytes 4 to 8 of the message.
    pub info: u32,
    /// Sender of the error.
    pub from: core::net::IpAddr,
    /// The quoted TCP header and the bytes after it.
    pub quote: bytes::Bytes,
}
