//! TCP: one connection at a time.
//!
//! `connection` holds the parts: `send_queue` over `send_blocks`, `receiver` with `receive_buffer` and `window_space`, `autotune` (how
//! large buffers are), `segment_size` (how large segments are), `mtu_search` (how large they may be),
//! `congestion` (how much) with `rate` and `window_use` (what it hears), `recovery` (what is lost), `delivery` (how fast), `limits` (what
//! holds it back), `tcp_info` (what can be seen), `pacer` (when), `burst` (how much at once), `retry_limits` (for how long: R1, R2), `ecn`,
//! `timers`, `handshake`, `beginning`, `fresh` (what all begin with), `reports` (what became of bytes), `rerouted` (another route), `special` (state of what few use), `moments`,
//! `negotiation`, `state`. `input` reads in the order of RFC 9293 §3.10.7, `output` decides which one segment goes now,
//! `fast_open_client` judges what became of Fast Open. Whom a segment belongs to is not decided here (see `stack`).

pub(crate) mod accurate_ecn;
pub(crate) mod ack_delay;
mod autotune;
mod beginning;
mod burst;
pub(crate) mod congestion;
pub(crate) mod connection;
pub(crate) mod ecn;
mod fast_open_client;
pub(crate) mod fragments;
pub(crate) mod fresh;
pub(crate) mod handshake;
pub(crate) mod input;
mod keepalive;
pub(crate) mod limits;
mod moments;
mod mtu_search;
pub(crate) mod nagle;
pub(crate) mod negotiation;
mod options;
mod ordered;
pub(crate) mod output;
mod pacer;
mod packets;
pub(crate) mod payload;
mod plain;
mod prune;
mod rate;
mod reassembly;
pub(crate) mod receive_buffer;
pub(crate) mod receiver;
mod recovery;
mod repair;
pub(crate) mod reports;
mod rerouted;
mod retry_limits;
mod room;
mod segment_size;
pub(crate) mod send_queue;
mod special;
pub(crate) mod state;
pub(crate) mod tcp_info;
pub(crate) mod timers;
mod urgent;
#[cfg(debug_assertions)]
mod watch;
pub(crate) mod window_space;
mod window_use;
pub(crate) mod write;
