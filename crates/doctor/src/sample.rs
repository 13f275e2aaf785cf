//! All that was read of a host at one moment: a plain value, saved as JSON and judged anywhere.
//!
//! - `sample/socket.rs`: what inet_diag tells of a socket;
//! - `sample/host.rs`: devices, queues, routes, remembered paths, lines of files.
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
    /// Is it a stack of ours that was read, and no kernel?
    pub of_stack: bool,
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
    /// Names of settings that are there and that this user may not read.
    pub unreadable: BTreeSet<String>,
    /// Rows of /proc/net/softnet_stat.
    pub softnet: Vec<Softnet>,
    /// Queueing disciplines of every device.
    pub queues: Vec<Queue>,
    /// Queueing disciplines that this kernel has; empty where it does not tell.
    pub queue_kinds: Vec<String>,
    /// Network devices.
    pub devices: Vec<Device>,
    /// Routes that carry metrics, and default routes.
    pub routes: Vec<Route>,
    /// Rules of routing that look at the source address.
    pub source_rules: u32,
    /// What the kernel remembers of paths (tcp_metrics).
    pub paths: Vec<PathMetrics>,
    /// Gauges of /proc/net/sockstat: "TCP mem", "TCP orphan".
    pub sockstat: BTreeMap<String, u64>,
    /// Packets received in software interrupts, per CPU (the row NET_RX of /proc/softirqs).
    pub net_rx: Vec<u64>,
    /// Lines that set something below net, of the files that sysctl reads at boot, in its order.
    pub configured: Vec<Configured>,
    /// Bonded devices.
    pub bonds: Vec<Bond>,
    /// Connection tracking, where this kernel has it loaded.
    pub conntrack: Option<Conntrack>,
    /// Processes of the sockets for which rules name the process, by the socket's inode.
    pub owners: BTreeMap<u32, Owner>,
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
    /// In words.
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
    /// Which.
    pub source: Source,
    /// The error, in words.
    pub reason: String,
    /// Would it be readable for root?
    pub root_would_read: bool,
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

    /// The kernel's version, as far as rules ask for it: (6, 18).
    pub fn version(&self) -> Option<(u32, u32)> {
        let mut parts = self.kernel.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    }

    /// Is it the network namespace that the host booted with? Only there are its global settings seen.
    pub fn is_first_namespace(&self) -> bool {
        self.settings.contains_key("net.core.netdev_max_backlog")
    }

    /// A device by its name.
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.name == name)
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
