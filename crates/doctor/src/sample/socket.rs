//! A TCP socket as inet_diag shows it.
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// A TCP socket as inet_diag shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Socket {
    /// Its state: `TCP_ESTABLISHED` and so on, by the kernel's number.
    pub state: u8,
    /// Its own address.
    pub local: Address,
    /// Its own port.
    pub local_port: u16,
    /// The peer's address.
    pub peer: Address,
    /// The peer's port.
    pub peer_port: u16,
    /// Bytes not yet read; of a listener, connections not yet accepted.
    pub recv_queue: u32,
    /// Bytes not yet acknowledged; of a listener, its backlog.
    pub send_queue: u32,
    /// 0: no process holds it.
    pub inode: u32,
    /// The user it belongs to.
    pub uid: u32,
    /// Does any timer of the kernel run for it?
    pub timed: bool,
    /// Is a zero window being probed?
    pub probing: bool,
    /// Does the timer wait to ask an idle peer whether it is there?
    pub keepalive: bool,
    /// Retransmissions in a row of what is waiting for its acknowledgement.
    pub retransmits: u8,
    /// Milliseconds until its timer expires.
    pub expires: u32,
    /// The congestion control, by its kernel name.
    pub congestion: Arc<str>,
    /// Memory, where the kernel told of it.
    pub memory: Option<Memory>,
    /// `tcp_info`, where the kernel told of it.
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

/// A socket's memory, under the names that `ss -m` gives them in its manual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// `rb`: the receive buffer's limit.
    pub rcvbuf: u32,
    /// `tb`: the send buffer's limit.
    pub sndbuf: u32,
    /// `r`: what the receive queue takes.
    pub rmem_alloc: u32,
    /// `w`: what the send queue takes.
    pub wmem_queued: u32,
    /// `t`: what was handed to the queues below and is not yet freed.
    #[serde(default)]
    pub wmem_alloc: u32,
    /// `f`: set aside for this socket, and not yet used.
    #[serde(default)]
    pub fwd_alloc: u32,
    /// `o`: options of the socket.
    #[serde(default)]
    pub optmem: u32,
    /// `bl`: packets that wait for a lock on the socket.
    #[serde(default)]
    pub backlog: u32,
    /// `d`: packets dropped before they reached the socket.
    pub drops: u32,
}

/// A connection's `tcp_info`, under the names of include/uapi/linux/tcp.h without their prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Info {
    /// TCPI_OPT_*: timestamps 1, SACK 2, window scale 4, ECN 8, ECN seen 16, SYN data acknowledged 32.
    pub options: u8,
    /// How congestion control sees the path (TCP_CA_*): open 0, disorder 1, window reduced 2, recovery 3, loss 4.
    pub ca_state: u8,
    /// Shift of the windows that the peer advertises.
    pub snd_wscale: u8,
    /// Shift of the windows that it advertises.
    pub rcv_wscale: u8,
    /// Back-offs of the retransmission timer in a row.
    pub backoff: u8,
    /// Probes of a closed window, or of an idle peer, that were not answered.
    pub probes: u8,
    /// Was the last sample of the delivery rate limited by the application?
    pub app_limited: bool,
    /// Why Fast Open failed: 1 no cookie, 2 data not acknowledged, 3 SYN retransmitted.
    pub fastopen_client_fail: u8,
    /// The retransmission time-out, microseconds.
    pub rto: u32,
    /// The time it may wait with an acknowledgement, microseconds.
    pub ato: u32,
    /// MSS of what it sends, bytes.
    pub snd_mss: u32,
    /// MSS of what it receives, as it looks, bytes.
    pub rcv_mss: u32,
    /// MSS that it advertised, bytes.
    pub advmss: u32,
    /// Path MTU, bytes.
    pub pmtu: u32,
    /// Segments in flight.
    pub unacked: u32,
    /// Of these, acknowledged selectively.
    pub sacked: u32,
    /// Of these, held to be lost.
    pub lost: u32,
    /// Of these, sent again.
    pub retrans: u32,
    /// Congestion window, segments.
    pub snd_cwnd: u32,
    /// Slow-start threshold, segments.
    pub snd_ssthresh: u32,
    /// The window that the peer advertises, bytes.
    pub snd_wnd: u32,
    /// Smoothed round trip, microseconds.
    pub rtt: u32,
    /// Its variation, microseconds.
    pub rttvar: u32,
    /// Smallest round trip seen, microseconds.
    pub min_rtt: u32,
    /// The largest window that it may advertise, bytes.
    pub rcv_ssthresh: u32,
    /// The round trip as a receiver sees it, microseconds.
    pub rcv_rtt: u32,
    /// What the application takes in a round trip, bytes.
    pub rcv_space: u32,
    /// Segments that may overtake one another before one is held to be lost.
    pub reordering: u32,
    /// Milliseconds since data was sent.
    pub last_data_sent: u32,
    /// Milliseconds since data came.
    pub last_data_recv: u32,
    /// Milliseconds since the last acknowledgement came.
    pub last_ack_recv: u32,
    /// Bytes sent, again and again counted.
    pub bytes_sent: u64,
    /// Of these, sent again.
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
    /// Times that packets were seen out of order.
    pub reord_seen: u32,
    /// Packets received out of order.
    pub rcv_ooopack: u32,
    /// Bytes written that were never sent.
    pub notsent_bytes: u32,
    /// Segments sent again.
    pub total_retrans: u32,
    /// Microseconds with data to send.
    pub busy_time: u64,
    /// Of these, microseconds in which the peer's window was full.
    pub rwnd_limited: u64,
    /// Of these, microseconds in which the send buffer was full.
    pub sndbuf_limited: u64,
    /// Bytes a second that the network delivered last.
    pub delivery_rate: u64,
    /// Bytes a second at which it is paced.
    pub pacing_rate: u64,
}

/// Who holds a socket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The process.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// An address of a socket; "any" where there is none.
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
    /// Both ends, as ss(8) writes them.
    pub fn ends(&self) -> String {
        let end = |address: Address, port| SocketAddr::new(address.0, port);
        format!("{} -> {}", end(self.local, self.local_port), end(self.peer, self.peer_port))
    }

    /// What makes it the same socket in another sample.
    pub fn key(&self) -> (Address, u16, Address, u16) {
        (self.local, self.local_port, self.peer, self.peer_port)
    }

    /// Packets that never reached it.
    pub fn drops(&self) -> u32 {
        self.memory.map_or(0, |memory| memory.drops)
    }

    /// Returns whether unread data takes at least half of the receive buffer. The window is then
    /// about to close, or closed.
    pub fn is_half_full(&self) -> bool {
        let half = |memory: Memory| u64::from(memory.rmem_alloc) * 2 >= u64::from(memory.rcvbuf);
        self.state != state::LISTEN && self.recv_queue > 0 && self.memory.is_some_and(half)
    }

    /// Is its own address one that only this host reaches?
    pub fn is_loopback(&self) -> bool {
        self.local.0.is_loopback()
    }

    /// Is its peer on this host?
    pub fn is_to_loopback(&self) -> bool {
        self.peer.0.is_loopback() || self.peer == self.local
    }
}
