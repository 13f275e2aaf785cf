//! Devices, queues, routes, remembered paths and lines of configuration files.
use super::socket::Address;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A CPU's row of /proc/net/softnet_stat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Softnet {
    /// Packets processed.
    pub processed: u64,
    /// Packets dropped because the CPU's backlog queue was full.
    pub dropped: u64,
    /// Rounds that ended with packets left.
    pub squeezed: u64,
    /// Packets dropped because one flow exceeded its share.
    pub flow_limited: u64,
}

/// A queueing discipline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// The device.
    pub device: String,
    /// Handle of the discipline, as numbers. 0 if the kernel attached it by default.
    pub handle: (u16, u16),
    /// Parent class, as numbers. 0 for a root.
    pub parent: (u16, u16),
    /// True if it is the root of the device.
    pub root: bool,
    /// Number of references.
    pub references: u32,
    /// Options in the words and order of tc(8). A word without a value has an empty value.
    pub options: Vec<(String, String)>,
    /// Rate limit in bytes per second, if it is a shaper.
    pub rate: Option<u64>,
    /// Its kind: "tbf".
    pub kind: String,
    /// Bytes that wait.
    pub backlog: u32,
    /// Packets that wait.
    pub length: u32,
    /// Packets that the device refused for lack of room.
    pub requeues: u32,
    /// Packets delayed by a shaper.
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
    /// The interface index in this namespace.
    pub index: u32,
    /// True if it is up.
    pub up: bool,
    /// True if it is the loopback device.
    pub loopback: bool,
    /// Kind of a virtual device: "veth", "bond".
    pub kind: Option<String>,
    /// Name of the hardware on its bus: "0000:00:03.0", "virtio2".
    pub parent: Option<String>,
    /// MTU in bytes.
    pub mtu: u32,
    /// Length of a FIFO on this device in packets (txqueuelen).
    pub tx_queue_len: u32,
    /// Number of IPv4 addresses that other hosts can reach.
    pub addresses: u32,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets that the kernel dropped before a protocol handled them.
    pub rx_dropped: u64,
    /// Packets dropped because the ring was full (counted by the hardware).
    pub rx_missed_errors: u64,
    /// Like `rx_missed_errors`, if the driver uses this counter.
    pub rx_fifo_errors: u64,
    /// Like `rx_missed_errors`, if the driver uses this counter.
    pub rx_over_errors: u64,
    /// Packets for a protocol without a handler.
    pub rx_nohandler: u64,
    /// Packets dropped while sending.
    pub tx_dropped: u64,
    /// Speed in Mbit/s.
    pub speed: Option<u32>,
    /// Descriptors of the rings.
    pub rings: Option<Rings>,
    /// Queues: used and possible.
    pub channels: Option<Pool>,
    /// Offloads by their ethtool(8) names. True if enabled or requested.
    pub features: BTreeMap<String, bool>,
    /// Byte queue limits of the transmit queues.
    pub byte_limits: Vec<ByteLimit>,
    /// True if receive packet steering uses other CPUs.
    pub rps: bool,
    /// The interrupts.
    pub interrupts: Vec<Interrupt>,
}

/// A present value and its maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// The present value.
    pub now: u32,
    /// The maximum.
    pub max: u32,
}

/// Descriptors of a device's rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rings {
    /// Receive ring.
    pub rx: Pool,
    /// Transmit ring.
    pub tx: Pool,
}

/// The byte queue limit of one transmit queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteLimit {
    /// "tx-0".
    pub queue: String,
    /// Bytes allowed in the ring now.
    pub limit: u64,
    /// Upper bound of `limit`.
    pub limit_max: u64,
    /// Number of stalls of the queue (since Linux 6.9).
    pub stall_cnt: u64,
}

/// An interrupt of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupt {
    /// Its number.
    pub number: u32,
    /// Its name in /proc/interrupts.
    pub name: String,
    /// CPUs that handle it: "0-3".
    pub cpus: String,
}

/// A route with its attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Route {
    /// The route in the words of ip(8), without source, protocol and metrics: "default via 10.0.0.1
    /// dev eth0".
    pub route: String,
    /// The device.
    pub device: String,
    /// True if it is a default route.
    pub default: bool,
    /// Version of IP: 4 or 6.
    pub family: u8,
    /// Type, if packets are not forwarded: "unreachable", "local".
    pub kind: String,
    /// The routing table.
    pub table: u32,
    /// The protocol that created it: "kernel", "boot", "static".
    pub protocol: String,
    /// Scope: "link", "host".
    pub scope: String,
    /// Preferred source address.
    pub source: Option<Address>,
    /// Its metrics.
    pub metrics: RouteMetrics,
    /// Metrics that no rule uses, in the words of ip(8): "hoplimit 64 congctl bbr".
    pub other_metrics: String,
}

/// TCP metrics of a route. 0 means unset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteMetrics {
    /// MTU in bytes.
    pub mtu: u32,
    /// Advertised MSS in bytes.
    pub advmss: u32,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// True if `cwnd` caps the congestion window.
    pub cwnd_locked: bool,
    /// Slow-start threshold in segments.
    pub ssthresh: u32,
    /// Initial congestion window in segments.
    pub initcwnd: u32,
    /// Initial receive window in segments.
    pub initrwnd: u32,
    /// Minimum retransmission time-out in milliseconds.
    pub rto_min: u32,
    /// 1 if acknowledgements are not delayed.
    pub quickack: u32,
    /// Metrics that the kernel must not change: one bit for each (RTAX_*).
    pub locked: u32,
}

/// An entry of tcp_metrics: what the kernel remembers of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathMetrics {
    /// The peer.
    pub peer: Address,
    /// This host's address.
    pub source: Address,
    /// Milliseconds since its last use.
    pub age: u64,
    /// Slow-start threshold in segments. 0: none.
    pub ssthresh: u32,
    /// Congestion window in segments. 0: none.
    pub cwnd: u32,
    /// Round trip time in microseconds. 0: none.
    pub rtt: u32,
    /// Deviation of the round trip time in microseconds. 0: none.
    pub rttvar: u32,
    /// Reordering in segments. 0: none.
    pub reordering: u32,
    /// MSS of the peer, stored with its cookie. 0: none.
    pub fo_mss: u32,
    /// SYNs with data lost in a row.
    pub fo_syn_drops: u32,
    /// Milliseconds since the last lost SYN with data.
    pub fo_syn_drop_age: u64,
    /// True if there is a cookie.
    pub fo_cookie: bool,
    /// The cookie. Records leave it out, because it is a secret.
    #[serde(skip)]
    pub cookie: Vec<u8>,
}

/// A line of a file that sysctl reads at boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configured {
    /// The file.
    pub file: String,
    /// Line number, starting at 1.
    pub line: u32,
    /// Name of the setting, with dots.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Connection tracking of this namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conntrack {
    /// Tracked connections (`nf_conntrack_count`).
    pub count: u64,
    /// Limit of tracked connections (`nf_conntrack_max`, one for the whole host).
    pub max: u64,
    /// Packets of new connections dropped for lack of room or memory.
    pub drop: u64,
    /// Tracked connections dropped to make room.
    pub early_drop: u64,
    /// Connections not inserted because another one with the same addresses and ports was first.
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
    /// The mode in the driver's words: "load balancing (round-robin)".
    pub mode: String,
    /// Members that are down.
    pub down: Vec<String>,
    /// Address of the partner in mode 802.3ad. All zero without one.
    pub partner: Option<String>,
}
