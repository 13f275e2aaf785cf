//! What is read of a host beside its sockets: devices, queues, routes, remembered paths, lines of files.
use super::socket::Address;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A CPU's row of /proc/net/softnet_stat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Softnet {
    /// Packets handled.
    pub processed: u64,
    /// Packets dropped because the CPU's backlog was full.
    pub dropped: u64,
    /// Rounds that ended with work left.
    pub squeezed: u64,
    /// Packets dropped because one flow had more than its share.
    pub flow_limited: u64,
}

/// A queueing discipline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// The device.
    pub device: String,
    /// The discipline's handle, as numbers; 0 of one that the kernel attached by itself.
    pub handle: (u16, u16),
    /// The class above it, as numbers; 0 of a root.
    pub parent: (u16, u16),
    /// Is it the device's root?
    pub root: bool,
    /// How many use it.
    pub references: u32,
    /// Its options in the words of tc(8), in tc's order; a word without a value stands alone.
    pub options: Vec<(String, String)>,
    /// Bytes a second that it lets through, where it is a shaper that says so.
    pub rate: Option<u64>,
    /// Its kind: "tbf".
    pub kind: String,
    /// Bytes that wait.
    pub backlog: u32,
    /// Packets that wait.
    pub length: u32,
    /// Packets that the device gave back.
    pub requeues: u32,
    /// Packets that had to wait for a shaper.
    pub overlimits: u32,
    /// Packets dropped.
    pub drops: u32,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u32,
}

/// A network device, as rtnetlink, ethtool and sysfs show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its number in this namespace.
    pub index: u32,
    /// Is it up?
    pub up: bool,
    /// Is it the loopback device?
    pub loopback: bool,
    /// Its kind where it is virtual: "veth", "bond".
    pub kind: Option<String>,
    /// The hardware's name on its bus: "0000:00:03.0", "virtio2".
    pub parent: Option<String>,
    /// MTU, bytes.
    pub mtu: u32,
    /// Packets that a FIFO on it holds (txqueuelen).
    pub tx_queue_len: u32,
    /// IPv4 addresses that others may reach.
    pub addresses: u32,
    /// Packets received.
    pub rx_packets: u64,
    /// Dropped by the kernel before a protocol took them.
    pub rx_dropped: u64,
    /// Dropped because the ring had no room (counted by the hardware).
    pub rx_missed_errors: u64,
    /// As `rx_missed_errors`, where the driver counts them so.
    pub rx_fifo_errors: u64,
    /// As `rx_missed_errors`, where the driver counts them so.
    pub rx_over_errors: u64,
    /// For a protocol that nobody handles.
    pub rx_nohandler: u64,
    /// Dropped on the way out.
    pub tx_dropped: u64,
    /// Megabits a second.
    pub speed: Option<u32>,
    /// Descriptors of its rings.
    pub rings: Option<Rings>,
    /// Queues in use, and how many it could have.
    pub channels: Option<Pool>,
    /// Offloads by their name for ethtool(8), and whether they are on, or asked for.
    pub features: BTreeMap<String, bool>,
    /// Byte queue limits of its transmit queues.
    pub byte_limits: Vec<ByteLimit>,
    /// Do other CPUs take part in receiving (receive packet steering)?
    pub rps: bool,
    /// Its interrupts.
    pub interrupts: Vec<Interrupt>,
}

/// How many there are, and how many there could be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// In use.
    pub now: u32,
    /// At most.
    pub max: u32,
}

/// Descriptors of a device's rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rings {
    /// For what is received.
    pub rx: Pool,
    /// For what is sent.
    pub tx: Pool,
}

/// The byte queue limit of one transmit queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteLimit {
    /// "tx-0".
    pub queue: String,
    /// Bytes that may lie in the ring now.
    pub limit: u64,
    /// The largest limit that may be chosen.
    pub limit_max: u64,
    /// Times the queue stood still for too long (since Linux 6.9).
    pub stall_cnt: u64,
}

/// An interrupt of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupt {
    /// Its number.
    pub number: u32,
    /// Its name in /proc/interrupts.
    pub name: String,
    /// The CPUs that it is delivered to: "0-3".
    pub cpus: String,
}

/// A route that says more than where to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Route {
    /// As ip(8) takes it, without source, protocol and metrics: "default via 10.0.0.1 dev eth0".
    pub route: String,
    /// The device.
    pub device: String,
    /// Is it a default route?
    pub default: bool,
    /// IPv4 or IPv6: 4 or 6.
    pub family: u8,
    /// What becomes of packets, where they are not sent: "unreachable", "local".
    pub kind: String,
    /// The table it is in.
    pub table: u32,
    /// Who has made it: "kernel", "boot", "static".
    pub protocol: String,
    /// How far it reaches: "link", "host".
    pub scope: String,
    /// This host's address for it.
    pub source: Option<Address>,
    /// Its metrics.
    pub metrics: RouteMetrics,
    /// Metrics that no rule looks at, as ip(8) takes them: "hoplimit 64 congctl bbr".
    pub other_metrics: String,
}

/// What a route says of TCP; 0: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteMetrics {
    /// Bytes.
    pub mtu: u32,
    /// Bytes.
    pub advmss: u32,
    /// Segments.
    pub cwnd: u32,
    /// Is the window clamped to `cwnd`?
    pub cwnd_locked: bool,
    /// Segments.
    pub ssthresh: u32,
    /// Segments.
    pub initcwnd: u32,
    /// Segments.
    pub initrwnd: u32,
    /// The shortest retransmission time-out, milliseconds.
    pub rto_min: u32,
    /// Acknowledgements are not delayed.
    pub quickack: u32,
    /// What the kernel may not move away from: a bit for each metric (RTAX_*).
    pub locked: u32,
}

/// What the kernel remembers of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathMetrics {
    /// The peer.
    pub peer: Address,
    /// This host's address.
    pub source: Address,
    /// Milliseconds since it was used.
    pub age: u64,
    /// Slow-start threshold, segments; 0: none.
    pub ssthresh: u32,
    /// Congestion window, segments; 0: none.
    pub cwnd: u32,
    /// Round trip, microseconds; 0: none.
    pub rtt: u32,
    /// Its variation, microseconds; 0: none.
    pub rttvar: u32,
    /// Reordering, segments; 0: none.
    pub reordering: u32,
    /// The peer's MSS, known with its cookie; 0: none.
    pub fo_mss: u32,
    /// SYNs with data that were lost in a row.
    pub fo_syn_drops: u32,
    /// Milliseconds since the last of them.
    pub fo_syn_drop_age: u64,
    /// Is there a cookie?
    pub fo_cookie: bool,
    /// The cookie. It is a secret between the two, so that no record has it.
    #[serde(skip)]
    pub cookie: Vec<u8>,
}

/// A line of a file that sysctl reads at boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configured {
    /// The file.
    pub file: String,
    /// Its line, from 1.
    pub line: u32,
    /// The setting, with dots.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The connection tracking of this namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conntrack {
    /// Tracked connections (`nf_conntrack_count`).
    pub count: u64,
    /// Most connections that may be tracked (`nf_conntrack_max`, one for the whole host).
    pub max: u64,
    /// Packets of new connections dropped because there was no room or no memory.
    pub drop: u64,
    /// Tracked connections dropped to make room.
    pub early_drop: u64,
    /// Connections that could not be entered, because another one had the same addresses and ports
    /// first.
    pub insert_failed: u64,
    /// Packets that belong to no valid connection.
    pub invalid: u64,
}

/// A bonded device, as /proc/net/bonding shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bond {
    /// Its name.
    pub name: String,
    /// Its mode, in the driver's words: "load balancing (round-robin)".
    pub mode: String,
    /// Its members that are down.
    pub down: Vec<String>,
    /// The partner's address, of mode 802.3ad: all zero without one.
    pub partner: Option<String>,
}
