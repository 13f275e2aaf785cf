//! All that was read of a host at one moment: a plain value, saved as JSON and judged anywhere.
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One reading of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sample {
    /// The kernel's release, as `uname -r` shows it.
    pub kernel: String,
    /// Seconds since boot when it was read.
    pub uptime: f64,
    /// TCP's sockets of this namespace, in every state.
    pub sockets: Vec<Socket>,
    /// Counters of /proc/net/snmp and /proc/net/netstat, with the group in front as nstat shows them: `TcpExtListenDrops`.
    pub counters: BTreeMap<String, u64>,
    /// Settings below /proc/sys/net, by their name for sysctl(8).
    pub settings: BTreeMap<String, String>,
    /// Rows of /proc/net/softnet_stat.
    pub softnet: Vec<Softnet>,
    /// Queueing disciplines of every device.
    pub queues: Vec<Queue>,
    /// What could not be read.
    pub unread: Vec<Unread>,
}

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// inet_diag: every TCP socket.
    Sockets,
    /// /proc/net/snmp and /proc/net/netstat.
    Counters,
    /// /proc/sys/net.
    Settings,
    /// The Fast Open key, which only root may read.
    Key,
    /// /proc/net/softnet_stat.
    Softnet,
    /// rtnetlink: queueing disciplines.
    Queues,
}

/// A source that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// Which.
    pub source: Source,
    /// The error, in words.
    pub reason: String,
    /// Would it be readable for root?
    pub root_would_read: bool,
}

/// A TCP socket as inet_diag shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Socket {
    /// Its state: `TCP_ESTABLISHED` and so on, by the kernel's number.
    pub state: u8,
    /// Its own address.
    pub local: String,
    /// Its own port.
    pub local_port: u16,
    /// The peer's address.
    pub peer: String,
    /// The peer's port.
    pub peer_port: u16,
    /// Bytes not yet read; of a listener, connections not yet accepted.
    pub recv_queue: u32,
    /// Bytes not yet acknowledged; of a listener, its backlog.
    pub send_queue: u32,
    /// 0: no process holds it.
    pub inode: u32,
    /// Is a zero window being probed?
    pub probing: bool,
    /// Memory, where the kernel told of it.
    pub memory: Option<Memory>,
    /// `tcp_info`, where the kernel told of it.
    pub info: Option<Info>,
}

/// States by the kernel's numbers (include/net/tcp_states.h).
pub mod state {
    #![expect(missing_docs, reason = "RFC 9293's names")]
    pub const ESTABLISHED: u8 = 1;
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
    /// `w`: what the send queue takes.
    pub wmem_queued: u32,
    /// `d`: packets dropped before they reached the socket.
    pub drops: u32,
}

/// What is used of a connection's `tcp_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Info {
    /// TCPI_OPT_*: timestamps 1, SACK 2, window scale 4.
    pub options: u8,
    /// MSS of what it sends, bytes.
    pub snd_mss: u32,
    /// Segments in flight.
    pub unacked: u32,
    /// Congestion window, segments.
    pub snd_cwnd: u32,
    /// Smallest round trip seen, microseconds.
    pub min_rtt: u32,
    /// Milliseconds since the last acknowledgement came.
    pub last_ack_recv: u32,
    /// Bytes acknowledged by the peer.
    pub bytes_acked: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Microseconds with data to send.
    pub busy_time: u64,
    /// Of these, microseconds in which the peer's window was full.
    pub rwnd_limited: u64,
    /// Back-offs of the retransmission timer in a row.
    pub backoff: u8,
}

/// A CPU's row of /proc/net/softnet_stat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Softnet {
    /// Packets handled.
    pub processed: u64,
    /// Packets dropped because the CPU's backlog was full.
    pub dropped: u64,
    /// Rounds that ended with work left.
    pub squeezed: u64,
}

/// A queueing discipline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// The device.
    pub device: String,
    /// The discipline's handle and parent, as numbers.
    pub handle: (u16, u16),
    /// Its kind: "tbf".
    pub kind: String,
    /// Bytes that wait.
    pub backlog: u32,
    /// Packets dropped.
    pub drops: u32,
    /// Bytes sent.
    pub bytes: u64,
}

impl Sample {
    /// A setting by its name, as text.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// A setting that is one number.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.setting(name)?.trim().parse().ok()
    }

    /// The nth number of a setting that has several.
    pub fn nth(&self, name: &str, n: usize) -> Option<i64> {
        self.setting(name)?.split_whitespace().nth(n)?.parse().ok()
    }

    /// Every listener.
    pub fn listeners(&self) -> impl Iterator<Item = &Socket> {
        self.in_state(state::LISTEN)
    }

    /// Every socket in a state.
    pub fn in_state(&self, state: u8) -> impl Iterator<Item = &Socket> {
        self.sockets.iter().filter(move |socket| socket.state == state)
    }
}

impl Socket {
    /// Both ends, as ss(8) writes them.
    pub fn ends(&self) -> String {
        format!("{}:{} -> {}:{}", self.local, self.local_port, self.peer, self.peer_port)
    }

    /// Has it these ends, too: is it the same socket in another sample?
    pub fn has_ends_of(&self, other: &Socket) -> bool {
        let ends = |socket: &Socket| (socket.local_port, socket.peer_port);
        ends(self) == ends(other) && self.local == other.local && self.peer == other.peer
    }

    /// Packets that never reached it.
    pub fn drops(&self) -> u32 {
        self.memory.map_or(0, |memory| memory.drops)
    }

    /// Is its own address one that only this host reaches?
    pub fn is_loopback(&self) -> bool {
        self.local.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}
