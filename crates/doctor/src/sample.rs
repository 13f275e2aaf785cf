//! A sample: everything read from a host at one time, as a plain value that can be saved as JSON.
//!
//! - `sample/socket.rs`: sockets, as inet_diag reports them;
//! - `sample/host.rs`: devices, queues, routes, remembered paths, lines of configuration files.
mod host;
mod socket;

pub use host::{
    Bond, ByteLimit, Configured, Conntrack, Device, Interrupt, PathMetrics, Pool, Queue, Rings, Route,
    RouteMetrics, Softnet,
};
pub use socket::{Address, Info, Memory, Owner, Socket, state};

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One reading of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sample {
    /// True if this sample came from a Firstbyte stack, false if from the kernel.
    pub of_stack: bool,
    /// The kernel's release, as `uname -r` shows it.
    pub kernel: String,
    /// Seconds from boot to the reading.
    pub uptime: f64,
    /// TCP sockets of this namespace, in every state.
    pub sockets: Vec<Socket>,
    /// Counters of /proc/net/snmp and /proc/net/netstat, named like nstat does:
    /// `TcpExtListenDrops`.
    pub counters: BTreeMap<String, u64>,
    /// Settings below /proc/sys/net, by their sysctl(8) names.
    pub settings: BTreeMap<String, String>,
    /// Names of settings that exist but that this user cannot read.
    pub unreadable: BTreeSet<String>,
    /// Rows of /proc/net/softnet_stat.
    pub softnet: Vec<Softnet>,
    /// Queueing disciplines of every device.
    pub queues: Vec<Queue>,
    /// Queueing disciplines that this kernel supports. Empty if unknown.
    pub queue_kinds: Vec<String>,
    /// Network devices.
    pub devices: Vec<Device>,
    /// Default routes, and routes with metrics.
    pub routes: Vec<Route>,
    /// Number of routing rules that match the source address.
    pub source_rules: u32,
    /// Paths that the kernel remembers (tcp_metrics).
    pub paths: Vec<PathMetrics>,
    /// Gauges of /proc/net/sockstat: "TCP mem", "TCP orphan".
    pub sockstat: BTreeMap<String, u64>,
    /// Packets received in software interrupts, per CPU (the row NET_RX of /proc/softirqs).
    pub net_rx: Vec<u64>,
    /// Lines that set something below net, from the files that sysctl reads at boot, in its order.
    pub configured: Vec<Configured>,
    /// Bonded devices.
    pub bonds: Vec<Bond>,
    /// Connection tracking, if the kernel has it loaded.
    pub conntrack: Option<Conntrack>,
    /// Processes of the sockets for which rules name the process, by inode.
    pub owners: BTreeMap<u32, Owner>,
    /// Sources that could not be read.
    pub unread: Vec<Unread>,
}

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// inet_diag: every TCP socket.
    Sockets,
    /// /proc/net/snmp and /proc/net/netstat.
    Counters,
    /// /proc/sys/net.
    Settings,
    /// The Fast Open key, which only root can read.
    Key,
    /// /proc/net/softnet_stat.
    Softnet,
    /// rtnetlink: queueing disciplines.
    Queues,
    /// rtnetlink: devices and their statistics.
    Devices,
    /// rtnetlink: routes and rules.
    Routes,
    /// Generic netlink: tcp_metrics.
    Paths,
    /// Generic netlink: ethtool.
    Ethtool,
    /// /sys/class/net.
    Sysfs,
    /// /proc/net/sockstat.
    Sockstat,
    /// Files in sysctl.d.
    Files,
    /// /proc/interrupts and /proc/softirqs.
    Interrupts,
    /// Connection tracking: /proc/sys/net/netfilter and /proc/net/stat.
    Conntrack,
}

impl Source {
    /// Returns the name in words.
    pub fn name(self) -> &'static str {
        match self {
            Source::Sockets => "sockets (inet_diag)",
            Source::Counters => "counters (/proc/net/snmp, netstat)",
            Source::Settings => "settings (/proc/sys/net)",
            Source::Key => "the Fast Open key (root only)",
            Source::Softnet => "/proc/net/softnet_stat",
            Source::Queues => "queueing disciplines (rtnetlink)",
            Source::Devices => "devices (rtnetlink)",
            Source::Routes => "routes and rules (rtnetlink)",
            Source::Paths => "remembered paths (tcp_metrics)",
            Source::Ethtool => "rings, queues and offloads (ethtool)",
            Source::Sysfs => "/sys/class/net",
            Source::Sockstat => "/proc/net/sockstat",
            Source::Files => "files in sysctl.d",
            Source::Interrupts => "/proc/interrupts",
            Source::Conntrack => "connection tracking (/proc/net/stat/nf_conntrack)",
        }
    }
}

/// A source that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// The source.
    pub source: Source,
    /// The error message.
    pub reason: String,
    /// True if root could read it.
    pub root_would_read: bool,
}

impl Sample {
    /// Returns a setting by name, as text.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// Returns a setting that is one number.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.setting(name)?.trim().parse().ok()
    }

    /// Returns the nth number of a setting that has several.
    pub fn nth(&self, name: &str, n: usize) -> Option<i64> {
        self.setting(name)?.split_whitespace().nth(n)?.parse().ok()
    }

    /// Returns major and minor version of the kernel: (6, 18).
    pub fn version(&self) -> Option<(u32, u32)> {
        let mut parts = self.kernel.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    }

    /// Returns whether this is the network namespace that the host booted with. Only there are its
    /// global settings visible.
    pub fn is_first_namespace(&self) -> bool {
        self.settings.contains_key("net.core.netdev_max_backlog")
    }

    /// Returns a device by name.
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// Returns every listener.
    pub fn listeners(&self) -> impl Iterator<Item = &Socket> {
        self.in_state(state::LISTEN)
    }

    /// Returns every socket in a state.
    pub fn in_state(&self, state: u8) -> impl Iterator<Item = &Socket> {
        self.sockets.iter().filter(move |socket| socket.state == state)
    }
}
