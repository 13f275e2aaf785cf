//! The engine: IP layer and TCP of one host with complete Fast Open, sans-IO.
//!
//! [`Stack`] is a host. The caller passes packets and time (`handle_*`), calls the application's
//! methods (`connect`, `write`, …), and polls for the next action (`poll_*`). The stack has no
//! clock, device or thread, and its seed determines every random choice. The same calls therefore
//! produce the same packets, byte for byte.
//!
//! ```
//! use firstbyte_proto::{Capabilities, Config, ConnectOptions, Instant, ListenOptions, RxPacket, Stack};
//! use core::time::Duration;
//!
//! let ethernet = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
//! let mut client = Stack::new(Config::default(), ethernet, [1; 32]);
//! let mut server = Stack::new(Config::default(), ethernet, [2; 32]);
//! client.add_address("10.0.0.1".parse().unwrap(), 24);
//! server.add_address("10.0.0.2".parse().unwrap(), 24);
//!
//! let now = Instant::ZERO;
//! let listener = server.listen(now, "10.0.0.2:80".parse().unwrap(), ListenOptions::default()).unwrap();
//! let id = client.connect(now, "10.0.0.2:80".parse().unwrap(), ConnectOptions::default()).unwrap();
//! // The wire between the two, one way a millisecond.
//! for step in 1.. {
//!     let now = now + Duration::from_millis(step);
//!     let mut quiet = true;
//!     while let Some(packet) = client.poll_transmit(now) {
//!         server.handle_packet(now, RxPacket::new(packet.to_bytes()));
//!         quiet = false;
//!     }
//!     while let Some(packet) = server.poll_transmit(now) {
//!         client.handle_packet(now, RxPacket::new(packet.to_bytes()));
//!         quiet = false;
//!     }
//!     if quiet {
//!         break;
//!     }
//! }
//! let (accepted, peer) = server.accept(now, listener).unwrap();
//! assert_eq!(client.info(id).unwrap().local, peer);
//! assert_eq!(server.info(accepted).unwrap().state, firstbyte_proto::State::Established);
//! ```
//!
//! Modules: `stack` (ingress, listeners, demultiplexing, calls, egress), `tcp` (one connection),
//! [`fast_open`] (cookies, caches, verdicts, guard), `route` (values per destination), `paths` (the
//! cache of paths), `time_wait`, `timer_wheel`, `config` (the table of settings), `socket_options`,
//! `counters`. Not here: neighbors and links (a packet is an IP packet), UDP (handed back to the
//! caller), next hops.
#![no_std]
#![forbid(unsafe_code)]

#[macro_use]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod api;
mod config;
mod counters;
mod errors;
pub mod fast_open;
mod fast_paths;
mod fifo;
mod info;
mod isn;
mod keyed_hash;
mod md5;
mod memory;
mod paths;
mod port_set;
mod rate_limit;
mod rng;
mod route;
mod rtt;
mod saved;
mod slab;
mod socket_options;
mod stack;
mod tcp;
mod time;
mod time_wait;
mod timer_wheel;
mod trace;
mod tuple;
mod tuple_table;

pub use api::{
    ConnId, ConnectOptions, EarlyData, Events, FastOpen, FastOpenReadiness, ListenOptions, ListenerId,
    NotAcknowledged, Outcome, Skipped, SocketId, Verdict, WriteFlags,
};
pub use config::{
    AcceptOverflow, AccurateEcnRules, AckHabit, BurstRules, Config, CongestionControl, CrossedSyns,
    HalfOpenRules, LossRules, MssRules, NewRenoRules, PeerWindowRules, PortChoice, ProbeRules,
    ReceiveAccounting, ReductionRules, RttVariation, SettingError, SettingKind, SettingRow, SynDataRoom,
    WindowUnit, WriteRules, fastopen,
};
pub use counters::{Counters, DropReason, Drops};
pub use errors::{AcceptError, CloseReason, ConnectError, ListenError, ReadError, UrgentError, WriteError};
pub use info::{
    CongestionInfo, ConnectionInfo, IcmpReport, ListenerDrops, ListenerInfo, Queues, RunningTimer,
    SocketInfo, State, StateCounts, SynCookieCounts, TableSizes, TimerKind,
};
pub use md5::{MD5_KEY_MAX, Md5Key, Md5Keys};
pub use paths::{PathRecord, Paths, PathsError, VerdictRecord};
pub use port_set::PortSet;
pub use route::{Metric, RejectRoute, RouteError, RouteMetrics, parse_route, show_route};
pub use saved::{Repair, SavedConnection, Windows};
pub use socket_options::{OptionError, PathMtuDiscovery, SocketOption, SocketOptions};
#[cfg(debug_assertions)]
pub use stack::Complaint;
pub use stack::Stack;
pub use tcp::observe::limits::{LimitedBy, SenderLimits};
pub use tcp::observe::tcp_info::{AccurateEcnInfo, CaState, TcpInfo};
pub use tcp::rare::reports::{ReportKind, ReportKinds, SendReport};
pub use time::Instant;
pub use trace::{DropWhy, RetransmitWhy, SegmentSummary, TraceEvent, TraceMask, Traced};
pub use wire::{Addr, Capabilities, RxBatch, RxPacket, SeqNum, TxPacket};
