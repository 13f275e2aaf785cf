//! TCP sockets, as inet_diag reports them.
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// A TCP socket, as inet_diag reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Socket {
    /// State by the kernel's number: `TCP_ESTABLISHED` and so on.
    pub state: u8,
    /// Local address.
    pub local: Address,
    /// Local port.
    pub local_port: u16,
    /// Address of the peer.
    pub peer: Address,
    /// Port of the peer.
    pub peer_port: u16,
    /// Unread bytes. For a listener: connections waiting for accept().
    pub recv_queue: u32,
    /// Unacknowledged bytes. For a listener: its backlog.
    pub send_queue: u32,
    /// Inode. 0 if no process holds the socket.
    pub inode: u32,
    /// User id of the owner.
    pub uid: u32,
    /// True if any timer runs.
    pub timed: bool,
    /// True if it probes a zero window.
    pub probing: bool,
    /// True if the keepalive timer runs.
    pub keepalive: bool,
    /// Retransmissions in a row.
    pub retransmits: u8,
    /// Milliseconds until the timer expires.
    pub expires: u32,
    /// Congestion control, by its kernel name.
    pub congestion: Arc<str>,
    /// Memory, if the kernel reported it.
    pub memory: Option<Memory>,
    /// `tcp_info`, if the kernel reported it.
    pub info: Option<Info>,
}

/// States by the kernel's numbers (include/net/tcp_states.h).
pub mod state {
    #![expect(missing_docs, reason = "RFC 9293's names")]
    pub const ESTABLISHED: u8 = 1;
    pub const SYN_SENT: u8 = 2;
    pub const SYN_RECEIVED: u8 = 3;
    pub const FIN_WAIT_1: u8 = 4;
    pub const FIN_WAIT_2: u8 = 5;
    pub const TIME_WAIT: u8 = 6;
    pub const CLOSE_WAIT: u8 = 8;
    pub const LISTEN: u8 = 10;
}

/// Memory of a socket. The short names are those of `ss -m`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// `rb`: limit of the receive buffer.
    pub rcvbuf: u32,
    /// `tb`: limit of the send buffer.
    pub sndbuf: u32,
    /// `r`: memory of the receive queue.
    pub rmem_alloc: u32,
    /// `w`: memory of the send queue.
    pub wmem_queued: u32,
    /// `t`: memory passed to the queues below and not freed yet.
    #[serde(default)]
    pub wmem_alloc: u32,
    /// `f`: memory reserved for this socket and not used yet.
    #[serde(default)]
    pub fwd_alloc: u32,
    /// `o`: memory of socket options.
    #[serde(default)]
    pub optmem: u32,
    /// `bl`: packets waiting for the socket's lock.
    #[serde(default)]
    pub backlog: u32,
    /// `d`: packets dropped before they reached the socket.
    pub drops: u32,
}

/// `tcp_info` of a connection. Names are those of include/uapi/linux/tcp.h without their prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Info {
    /// Negotiated options (TCPI_OPT_*): timestamps 1, SACK 2, window scale 4, ECN 8, ECN seen 16,
    /// SYN data acknowledged 32.
    pub options: u8,
    /// State of congestion control (TCP_CA_*): open 0, disorder 1, window reduced 2, recovery 3,
    /// loss 4.
    pub ca_state: u8,
    /// Window scale of the peer.
    pub snd_wscale: u8,
    /// Window scale of this socket.
    pub rcv_wscale: u8,
    /// Doublings of the retransmission time-out in a row.
    pub backoff: u8,
    /// Unanswered probes of a closed window or an idle peer.
    pub probes: u8,
    /// True if the application limited the last sample of the delivery rate.
    pub app_limited: bool,
    /// Reason why Fast Open failed: 1 no cookie, 2 data not acknowledged, 3 SYN retransmitted.
    pub fastopen_client_fail: u8,
    /// Retransmission time-out in microseconds.
    pub rto: u32,
    /// Delay of acknowledgements in microseconds.
    pub ato: u32,
    /// MSS for sending, in bytes.
    pub snd_mss: u32,
    /// Estimated MSS of the peer's segments, in bytes.
    pub rcv_mss: u32,
    /// Advertised MSS in bytes.
    pub advmss: u32,
    /// Path MTU in bytes.
    pub pmtu: u32,
    /// Segments in flight.
    pub unacked: u32,
    /// Segments in flight that were acknowledged selectively.
    pub sacked: u32,
    /// Segments in flight that are marked lost.
    pub lost: u32,
    /// Segments in flight that were retransmitted.
    pub retrans: u32,
    /// Congestion window in segments.
    pub snd_cwnd: u32,
    /// Slow-start threshold in segments.
    pub snd_ssthresh: u32,
    /// Window that the peer advertises, in bytes.
    pub snd_wnd: u32,
    /// Smoothed round trip time in microseconds.
    pub rtt: u32,
    /// Deviation of the round trip time in microseconds.
    pub rttvar: u32,
    /// Minimum round trip time in microseconds.
    pub min_rtt: u32,
    /// Largest window to advertise now, in bytes.
    pub rcv_ssthresh: u32,
    /// Round trip time as estimated by the receiver, in microseconds.
    pub rcv_rtt: u32,
    /// Bytes that the application reads per round trip.
    pub rcv_space: u32,
    /// Reordering distance before a segment is marked lost, in segments.
    pub reordering: u32,
    /// Milliseconds since data was last sent.
    pub last_data_sent: u32,
    /// Milliseconds since data last arrived.
    pub last_data_recv: u32,
    /// Milliseconds since the last acknowledgement arrived.
    pub last_ack_recv: u32,
    /// Bytes sent, including retransmissions.
    pub bytes_sent: u64,
    /// Bytes retransmitted.
    pub bytes_retrans: u64,
    /// Bytes acknowledged by the peer.
    pub bytes_acked: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Segments sent.
    pub segs_out: u32,
    /// Segments received.
    pub segs_in: u32,
    /// Segments sent with data.
    pub data_segs_out: u32,
    /// Segments received with data.
    pub data_segs_in: u32,
    /// Segments delivered to the peer.
    pub delivered: u32,
    /// Duplicates that the peer reported (D-SACK).
    pub dsack_dups: u32,
    /// Reorderings seen.
    pub reord_seen: u32,
    /// Packets received out of order.
    pub rcv_ooopack: u32,
    /// Bytes written but not sent yet.
    pub notsent_bytes: u32,
    /// Segments retransmitted.
    pub total_retrans: u32,
    /// Microseconds with data to send.
    pub busy_time: u64,
    /// Microseconds in which the peer's window limited sending. Part of `busy_time`.
    pub rwnd_limited: u64,
    /// Microseconds in which the send buffer limited sending. Part of `busy_time`.
    pub sndbuf_limited: u64,
    /// Latest delivery rate in bytes per second.
    pub delivery_rate: u64,
    /// Pacing rate in bytes per second.
    pub pacing_rate: u64,
}

/// The process that holds a socket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// Name of the process.
    pub name: String,
}

/// An address of a socket. The unspecified address prints as "any".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Address(pub IpAddr);

impl Default for Address {
    fn default() -> Address {
        Address(Ipv4Addr::UNSPECIFIED.into())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Socket {
    /// Returns both ends in the format of ss(8).
    pub fn ends(&self) -> String {
        let end = |address: Address, port| SocketAddr::new(address.0, port);
        format!("{} -> {}", end(self.local, self.local_port), end(self.peer, self.peer_port))
    }

    /// Returns the key that identifies the same socket in another sample.
    pub fn key(&self) -> (Address, u16, Address, u16) {
        (self.local, self.local_port, self.peer, self.peer_port)
    }

    /// Returns the packets dropped before they reached the socket.
    pub fn drops(&self) -> u32 {
        self.memory.map_or(0, |memory| memory.drops)
    }

    /// Returns whether unread data fills at least half of the receive buffer. The window is then
    /// closed or about to close.
    pub fn is_half_full(&self) -> bool {
        let half = |memory: Memory| u64::from(memory.rmem_alloc) * 2 >= u64::from(memory.rcvbuf);
        self.state != state::LISTEN && self.recv_queue > 0 && self.memory.is_some_and(half)
    }

    /// Returns whether only this host can reach its local address.
    pub fn is_loopback(&self) -> bool {
        self.local.0.is_loopback()
    }

    /// Returns whether its peer is on this host.
    pub fn is_to_loopback(&self) -> bool {
        self.peer.0.is_loopback() || self.peer == self.local
    }
}
